# SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
"""
`make xfstests DIR=...`: a checkout of xfstests on NFS with ours, in a guest for each NFS version.
What fails there is run again with the kernel's own module and over TCP. guest/xfstests.sh runs it.

xfstests.known says which tests fail or end a guest whatever the transport, and why.
"""

import re
import shutil
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

from . import emulator, host
from .console import GuestFailure
from .guest import Guest
from .host import BUILD, LAB, LabError, run, say

# What building it takes; what it runs is the set "xfstests" of root.MORE_PACKAGES.
PACKAGES = ("autoconf", "automake", "libtool-bin", "libacl1-dev", "libaio-dev", "libattr1-dev",
            "libcap-dev", "libgdbm-dev", "liburing-dev", "uuid-dev", "xfslibs-dev")

GUEST, MEMORY_MIB = "um-7", 4096
OTHERS = ("inbox", "tcp")
VERSIONS = ("4.2", "3")
TESTS = "-g generic/quick"
STEP_SECONDS = 4 * 3600

KNOWN = LAB / "xfstests.known"
TEST = re.compile(r"\w+/\d{3,}$")
# A line of check about a test: a time at its end if it has passed
LINE = re.compile(r"(\w+/\d{3,})\s(.*)")
SUMMARY = {"Ran": "passed", "Not run": "not run", "Failures": "failed"}
ENDED = "ended the guest"
BAD = ("failed", ENDED)


class Known(NamedTuple):
    """A line of xfstests.known."""
    verdict: str    # fails, or ends: the guest, so that it is not run
    version: str    # of NFS, or any
    why: str


def read_known(text: str) -> dict[str, Known]:
    """What is known of each test."""
    known = {}
    for line in text.splitlines():
        if line and not line.startswith("#"):
            name, version, verdict, why = line.split(maxsplit=3)
            if not TEST.match(name) or verdict not in ("fails", "ends"):
                raise LabError(f"{KNOWN}: this line is not TEST VERSION fails|ends WHY: {line}")
            known[name] = Known(verdict, version, why)
    return known


def verdicts(lines: Sequence[str]) -> dict[str, str]:
    """
    What became of each test, by its line and by the summary, which knows more, but is missing if
    the guest has ended before.
    """
    found: dict[str, str] = {}
    for line in lines:
        what, _, names = line.partition(": ")
        if what in SUMMARY:
            found |= {name: SUMMARY[what] for name in names.split()}
        elif (match := LINE.match(line)) and "[expunged]" not in line:
            found[match[1]] = ("not run" if "[not run]" in line else
                               "passed" if re.search(r"\d+s$", match[2]) else "failed")
    return found


def build(checkout: Path) -> Path:
    """Build a copy of the checkout, which has to be whole."""
    if not (checkout / "tests/generic").is_dir():
        raise LabError(f"{checkout} is no checkout of xfstests: get one by git clone "
                       "https://github.com/kdave/xfstests, and name it with DIR=")
    copy = BUILD / "xfstests"
    shutil.rmtree(copy, ignore_errors=True)
    shutil.copytree(checkout, copy, symlinks=True,
                    ignore=shutil.ignore_patterns(".git"))
    with host.step(f"building {checkout}"):
        run("make", "-C", copy, f"-j{host.jobs()}", log=BUILD / "xfstests.log")
    return copy


def run_variant(tree: Path, variant: str, version: str, tests: str) -> dict[str, str]:
    """Run it in a guest of its own. Returns what became of each test."""
    lines: list[str] = []
    name = f"xfstests-{variant}-{version}"
    guest = Guest(GUEST, BUILD / f"logs/{name}", "inbox" if variant == "tcp" else variant,
                  memory=MEMORY_MIB, more="xfstests")
    run("cp", "-al", tree, guest.share / "xfstests")
    variables: dict[str, str | int] = {
        "MODULE": variant, "DEVICE": "rxe", "ENDS": 1, "END": 1, "FAULTS": 1, "GUEST": GUEST,
        "VERSION": version, "TESTS": tests.replace(" ", ",")}

    def on_line(line: str) -> None:
        lines.append(line)
        say(f"# {variant} v{version}: {line}")

    found: dict[str, str] = {}
    try:
        guest.boot()
        if guest.run(variables, "xfstests", "xfstests", STEP_SECONDS, on_line):
            raise LabError("\n".join([f"{name} did not run", *lines[-20:]]))
    except GuestFailure as failure:
        begun = re.findall(r"run fstests (\S+)", guest.console.read_text(errors="replace"))
        say(f"# {name}: the guest has ended: {failure}; see {guest.console}")
        found = {begun[-1]: ENDED} if begun else {}
    finally:
        guest.kill()
    return verdicts(lines) | found


def table(results: Mapping[tuple[str, str], Mapping[str, str]],
          known: Mapping[str, Known]) -> list[str]:
    """How many passed; then each test that failed somewhere, with what is known of it."""
    columns = [f"{variant} v{version}" for variant, version in results]
    rows = [["test", *columns, "why"], ["---"] * (len(columns) + 2)]
    for word in ("passed", "failed", "not run"):
        rows.append([word, *(str(list(found.values()).count(word)) for found in results.values()),
                     ""])
    for name in sorted({name for found in results.values() for name in found}):
        each = [found.get(name, "") for found in results.values()]
        if set(BAD) & set(each):
            rows.append([name, *each, known[name].why if name in known else ""])
    return [f"| {' | '.join(row)} |" for row in rows]


def unexplained(results: Mapping[tuple[str, str], Mapping[str, str]],
                known: Mapping[str, Known]) -> list[str]:
    """What fails with ours and is not known to, and what ended the guest: the rest did not run."""
    return [f"{name} over v{version}: {verdict}"
            for (variant, version), found in results.items() if variant == "ours"
            for name, verdict in found.items()
            if verdict == ENDED or (verdict == "failed" and not (
                name in known and known[name].verdict == "fails"
                and known[name].version in (version, "any")))]


def xfstests(checkout: str, tests: str) -> bool:
    """Run it and print the table. Returns whether all failures are known."""
    emulator.require_memory_folder(MEMORY_MIB)
    known = read_known(KNOWN.read_text("utf-8"))
    tree = build(Path(checkout).resolve())
    ends = [name for name, what in known.items() if what.verdict == "ends"]
    (tree / "not-run").write_text("".join(f"{name}\n" for name in ends))
    results = {}
    for version in VERSIONS:
        results["ours", version] = found = run_variant(tree, "ours", version, tests)
        if bad := [name for name, verdict in found.items() if verdict in BAD]:
            for variant in OTHERS:
                results[variant, version] = run_variant(tree, variant, version, " ".join(bad))
    lines = table(results, known)
    (BUILD / "xfstests.md").write_text("".join(f"{line}\n" for line in lines))
    say("\n".join(lines))
    unknown = unexplained(results, known)
    say("\n".join(f"# not known: {line}" for line in unknown) or "# all failures are known")
    return not unknown and all("passed" in results["ours", version].values()
                               for version in VERSIONS)
