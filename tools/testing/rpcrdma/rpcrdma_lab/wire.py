# SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
"""The wire format in user space: unit tests with sanitizers, the fuzzer, and both on s390x."""

import functools
import re
import subprocess
from collections.abc import Sequence

from . import host, packages
from .host import BUILD, LAB, LabError
from .ktap import Reporter, Test
from .steps import check_step

MAKE = ("make", "-C", str(LAB / "wire"), f"O={BUILD / 'wire'}")
FUZZ_SECONDS = 20


def fuzz(seconds: int) -> bool:
    """`make fuzz`: print what libFuzzer prints. Returns whether it found nothing."""
    return not subprocess.run([*MAKE, "fuzz", f"SECONDS={seconds}"], stdin=subprocess.DEVNULL,
                              check=False, preexec_fn=host.terminate_with_parent).returncode


def executions(output: str) -> str:
    """What libFuzzer says that it did. Without feedback from the code it does nothing."""
    done = re.search(r"^#(\d+)\s+DONE\s+cov: (\d+)", output, re.MULTILINE)
    if not done:
        raise LabError("libFuzzer did not say how many inputs it tried")
    return f"{done[1]} executions, {done[2]} branches covered"


def short_fuzz(test: Test, make: Sequence[str], seconds: int) -> list[str]:
    """Fuzz for so long, and print the counts. Raises LabError if that finds something."""
    test.line(f"# {executions(host.run(*make, 'fuzz', f'SECONDS={seconds}'))}")
    return []


def suites(test: Test, *make: str) -> None:
    """Run make, which runs the unit tests, and count these."""
    done = host.attempt(*make)
    before = test.bad
    for line in done.stdout.splitlines():
        # The results of cases are indented; those of suites are not, and not counted.
        if re.match(r"\s+(not )?ok ", line) or "EXPECTATION" in line or "ERROR" in line:
            test.line(line)
    if done.returncode and test.bad == before:
        test.fail("the test program failed", *done.stdout.splitlines()[-30:])


def wire(report: Reporter) -> None:
    """The unit tests, then a short run of the fuzzer."""
    with report.test("wire [user space, ASan, UBSan]") as test:
        suites(test, *MAKE, "test")
    with report.test("wire [fuzz]") as test:
        check_step(test, f"{FUZZ_SECONDS} s from the golden messages and those at the limits",
                   functools.partial(short_fuzz, test, MAKE, FUZZ_SECONDS))


def big_endian(report: Reporter) -> None:
    """The unit tests, and the inputs of the fuzzer, as programs for s390x."""
    with report.test("big-endian [user space]") as test:
        packages.require_packages(["gcc-s390x-linux-gnu", "libc6-dev-s390x-cross", "qemu-user"])
        # In a folder of its own, because the fuzzer may run at the same time.
        suites(test, "make", "-C", str(LAB / "wire"), f"O={BUILD / 'big-endian'}",
               f"FOUND={BUILD / 'wire/found'}", "big-endian")
