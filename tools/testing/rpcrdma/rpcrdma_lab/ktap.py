# SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
"""What a run prints: KTAP, and one line at the end that counts the results."""

import re
import threading
import time
from collections.abc import Callable, Sequence
from types import TracebackType
from typing import Protocol

from .host import clock, say
from .results import Outcome

RESULT = re.compile(r"\s*(not ok|ok) \d+(?: -)? ?(.*?)(?: # SKIP ?(.*))?$")


class Reporter(Protocol):
    """Where tests are reported."""

    def test(self, name: str, only_failure: bool = False) -> "Test":
        """Begin a test."""

    def skip(self, name: str, reason: str) -> None:
        """Report a test that does not run."""


class Report:
    """
    The top level of one run. Tests may run side by side: each is named when it begins,
    and printed when it has ended. The lab's own tests pass a function as out, to read
    the report instead of printing it.
    """

    def __init__(self, out: Callable[[str], object] = say) -> None:
        self.out = out
        self.lock = threading.Lock()    # protects the counts, and the output
        self.passed = self.failed = self.skipped = 0
        self.number = 0
        self.failures: list[str] = []
        self.outcomes: list[Outcome] = []
        self.start = time.monotonic()
        self.out("KTAP version 1")

    def test(self, name: str, only_failure: bool = False,
             outcomes: list[Outcome] | None = None) -> "Test":
        """Begin a test; its outcome is added to the list."""
        return Test(self, name, only_failure, outcomes)

    def branch(self) -> "Branch":
        """A report for one task."""
        return Branch(self)

    def note(self, text: str) -> None:
        """Print a line that is no result."""
        with self.lock:
            self.out(f"# {text}")

    def skip(self, name: str, reason: str) -> None:
        """Report a test that does not run."""
        with self.lock:
            self.number += 1
            self.skipped += 1
            self.out(f"ok {self.number} - {name} # SKIP {reason}")

    def earlier(self, outcome: Outcome) -> None:
        """Report a test that passed in an earlier run of the same tree."""
        with self.lock:
            self.number += 1
            self.passed += outcome.passed
            self.skipped += outcome.skipped
            self.out(f"ok {self.number} - {outcome.name}")
            self.out(f"# {outcome.name}: {outcome.passed} passed, {outcome.skipped} skipped, "
                     "in an earlier run of this tree")

    def close(self) -> bool:
        """Print the counts. Returns whether something passed and nothing failed."""
        for name in self.failures:
            self.out(f"# failed: {name}")
        self.out(f"# {clock(time.monotonic() - self.start)} in all")
        self.out(f"{self.passed} passed, {self.failed} failed, {self.skipped} skipped")
        return self.failed == 0 and self.passed > 0


class Branch:
    """A report for one task. It knows the outcomes of the task's tests."""

    def __init__(self, report: Report) -> None:
        self.report = report
        self.outcomes: list[Outcome] = []

    def test(self, name: str, only_failure: bool = False) -> "Test":
        """Begin a test."""
        return self.report.test(name, only_failure, self.outcomes)

    def skip(self, name: str, reason: str) -> None:
        """Report a test that does not run."""
        self.report.skip(name, reason)


def together(name: str, outcomes: Sequence[Outcome], seconds: float) -> Outcome:
    """Several outcomes as that of one test."""
    return Outcome(name, sum(outcome.passed for outcome in outcomes),
                   sum(outcome.failed for outcome in outcomes),
                   sum(outcome.skipped for outcome in outcomes), seconds)


class Test:
    """One top-level test. Its steps are the results that are counted."""

    def __init__(self, report: Report, name: str, only_failure: bool = False,
                 outcomes: list[Outcome] | None = None) -> None:
        self.report = report
        self.name = name
        self.outcomes = outcomes            # the list that its outcome is added to
        self.only_failure = only_failure    # print and count it only if it fails
        self.lines: list[str] = []
        self.steps = self.skipped = self.bad = 0
        self.start = time.monotonic()
        self.cpu = 0.0                      # seconds that the guests have used
        self.waited = 0.0                   # seconds that they have waited for a CPU

    def __enter__(self) -> "Test":
        if not self.only_failure:
            self.report.note(f"{self.name} ...")
        return self

    def out(self, text: str) -> None:
        """Add a line to what is printed at the end."""
        self.lines.append(text)

    def line(self, text: str) -> None:
        """Add a line that a step printed; if it is a result, count it."""
        match = RESULT.match(text)
        if match:
            self.step(match[1] == "ok", match[2], match[3])
        else:
            self.out(f"    # {text.removeprefix('# ')}")

    def step(self, passed: bool, what: str, skipped: str | None = None) -> None:
        """
        Add a result; skipped is the reason why a step was not done. A step that failed was
        done, whatever it says.
        """
        self.steps += 1
        if not passed:
            self.bad += 1
        elif skipped is not None:
            self.skipped += 1
        directive = f" # SKIP {skipped}" if skipped is not None else ""
        self.out(f"    {'ok' if passed else 'not ok'} {self.steps} - {what}{directive}")

    def restart(self) -> None:
        """Do not count what was done so far, such as booting, as the test's time."""
        self.start = time.monotonic()

    def fail(self, what: str, *details: str) -> None:
        """Add a result that is a failure, after lines that explain it."""
        for text in details:
            self.out(f"    # {text}")
        self.step(False, what)

    def __exit__(self, kind: type[BaseException] | None, value: BaseException | None,
                 traceback: TracebackType | None) -> None:
        if kind is not None:
            return
        if not self.steps:
            self.step(False, "nothing was checked")
        if self.only_failure and not self.bad:
            self.report.note(f"{self.name}: passed")
            return
        outcome = Outcome(self.name, self.steps - self.skipped - self.bad, self.bad,
                          self.skipped, time.monotonic() - self.start, self.cpu,
                          max(self.waited, 0))
        self.print(outcome)
        if self.outcomes is not None:
            self.outcomes.append(outcome)

    def print(self, outcome: Outcome) -> None:
        """Print the test and add it to the report's counts."""
        report = self.report
        with report.lock:
            report.number += 1
            report.passed += outcome.passed
            report.skipped += outcome.skipped
            report.failed += outcome.failed
            if outcome.failed:
                report.failures.append(self.name)
            report.outcomes.append(outcome)
            for line in ("    KTAP version 1", f"    # Subtest: {self.name}",
                         f"    1..{self.steps}", *self.lines,
                         f"{'not ok' if self.bad else 'ok'} {report.number} - {self.name}",
                         f"# {self.name}: {outcome.seconds:.1f} s"
                         + (f", {outcome.cpu:.1f} s of CPU" if outcome.cpu else "")):
                report.out(line)
