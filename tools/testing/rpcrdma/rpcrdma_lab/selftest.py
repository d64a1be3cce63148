# SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
"""The lab's own tests, which are in tests/. pytest runs them: each is a step."""

import re
import sys

from . import peer
from .host import LAB, attempt
from .ktap import Reporter

# What pytest -v prints of each test
RESULT = re.compile(r"\S+\.py::(.+) (PASSED|FAILED|ERROR) +\[")


def run(report: Reporter) -> None:
    """All of them, one file after the other."""
    peer.program("amd64")      # so that the runs started below need not build it
    for file in sorted((LAB / "rpcrdma_lab/tests").glob("test_*.py")):
        with report.test(f"runner [{file.stem.removeprefix('test_')}]") as test:
            done = attempt(sys.executable, "-m", "pytest", "-v", file, cwd=LAB)
            for line in done.stdout.splitlines():
                if match := RESULT.match(line):
                    test.step(match[2] == "PASSED", match[1])
                elif done.returncode:
                    test.line(f"# {line}")
            if done.returncode and not test.bad:
                test.fail(f"pytest ended with status {done.returncode}")
