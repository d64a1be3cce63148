# SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
"""What check of xfstests has printed, and what is made of it."""

import pytest

from .. import xfstests
from ..host import LabError
from ..xfstests import Known

LINES = """\
FSTYP         -- nfs
generic/001 5s ...  3s
generic/002        0s
generic/003       [not run] this test requires atime
generic/004 1s ... [failed, exit status 1]- output mismatch (see .../004.out.bad)
generic/005       - output mismatch (see .../005.out.bad)
generic/006       [expunged]
generic/007        1s
_check_dmesg: something found in dmesg (see /lab/out/results/generic/007.dmesg)
""".splitlines()
SUMMARY = """\
Ran: generic/001 generic/002 generic/004 generic/005 generic/007
Not run: generic/003
Failures: generic/004 generic/005 generic/007
Failed 3 of 5 tests
""".splitlines()
FOUND = {"generic/001": "passed", "generic/002": "passed", "generic/003": "not run",
         "generic/004": "failed", "generic/005": "failed", "generic/007": "passed"}


def test_verdicts() -> None:
    """The lines tell most, the summary all."""
    assert xfstests.verdicts(LINES) == FOUND
    assert xfstests.verdicts(LINES + SUMMARY) == FOUND | {"generic/007": "failed"}


def test_known() -> None:
    """A failure of ours is explained by its version or any; that of others needs no reason."""
    known = xfstests.read_known("# TEST\n\ngeneric/004 any fails it wants swap\n"
                                "generic/005 3 fails no server's clock\n")
    assert known["generic/004"] == Known("fails", "any", "it wants swap")
    results = {("ours", "4.2"): FOUND, ("inbox", "3"): FOUND,
               ("ours", "3"): FOUND | {"generic/001": "ended the guest"}}
    assert xfstests.unexplained(results, known) == [
        "generic/005 over v4.2: failed", "generic/001 over v3: ended the guest"]
    assert xfstests.table(results, known)[2:] == [
        "| passed | 3 | 3 | 2 |  |", "| failed | 2 | 2 | 2 |  |", "| not run | 1 | 1 | 1 |  |",
        "| generic/001 | passed | passed | ended the guest |  |",
        "| generic/004 | failed | failed | failed | it wants swap |",
        "| generic/005 | failed | failed | failed | no server's clock |"]


def test_known_verdict() -> None:
    """What is known to end a guest does not explain a failure, and nothing explains such an end."""
    known = xfstests.read_known("generic/004 any ends it wants swap\n"
                                "generic/005 any fails no server's clock\n")
    ended = {"generic/004": xfstests.ENDED, "generic/005": xfstests.ENDED}
    assert xfstests.unexplained({("ours", "4.2"): FOUND, ("ours", "3"): ended}, known) == [
        "generic/004 over v4.2: failed", "generic/004 over v3: ended the guest",
        "generic/005 over v3: ended the guest"]


def test_wrong_line() -> None:
    """A wrong verdict is told."""
    with pytest.raises(LabError, match="generic/004"):
        xfstests.read_known("generic/004 any skips it wants swap")
