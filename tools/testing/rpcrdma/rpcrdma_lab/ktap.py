# SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
"""What a run prints: KTAP, and one line at the end that counts the leaves."""

import re
import threading
import time

from .host import say
from .results import Outcome

RESULT = re.compile(r"\s*(not ok|ok) \d+(?: -)? ?(.*?)(?: # SKIP ?(.*))?$")


class Report:
    """
    The top level of one run. A test is a leaf: whatever prints a result of
    its own. Tests may run side by side: each is named when it begins, and printed
    when it has ended. The lab's own tests read a report instead of printing it.
    """

    def __init__(self, out=say):
        self.out = out
        self.lock = threading.Lock()    # protects the counts, and the output
        self.passed = self.failed = self.skipped = 0
        self.number = 0
        self.failures = []
        self.seconds = {}       # of each test
        self.start = time.monotonic()
        self.out("KTAP version 1")

    def test(self, name, only_failure=False, outcomes=None):
        return Test(self, name, only_failure, outcomes)

    def branch(self):
        return Branch(self)

    def note(self, text):
        with self.lock:
            self.out(f"# {text}")

    def skip(self, name, reason):
        with self.lock:
            self.number += 1
            self.skipped += 1
            self.out(f"ok {self.number} - {name} # SKIP {reason}")

    def earlier(self, outcome):
        """A test that an earlier run of the same tree has shown to pass."""
        with self.lock:
            self.number += 1
            self.passed += outcome.passed
            self.skipped += outcome.skipped
            self.out(f"ok {self.number} - {outcome.name}")
            self.out(f"# {outcome.name}: {outcome.passed} passed, {outcome.skipped} skipped, "
                     "in an earlier run of this tree")

    def close(self):
        for name in self.failures:
            self.out(f"# failed: {name}")
        minutes, seconds = divmod(int(time.monotonic() - self.start), 60)
        self.out(f"# {minutes} min {seconds:02} s in all")
        self.out(f"{self.passed} passed, {self.failed} failed, {self.skipped} skipped")
        return self.failed == 0 and self.passed > 0


class Branch:
    """A report to whoever does one piece of a run, which knows what became of its tests."""

    def __init__(self, report):
        self.report = report
        self.outcomes = []
        self.note = report.note
        self.skip = report.skip

    def test(self, name, only_failure=False):
        return self.report.test(name, only_failure, self.outcomes)


def together(name, outcomes, seconds):
    """Several outcomes as that of one test."""
    return Outcome(name, sum(outcome.passed for outcome in outcomes),
                   sum(outcome.failed for outcome in outcomes),
                   sum(outcome.skipped for outcome in outcomes), seconds)


class Test:
    """One top-level test; its steps are leaves, or it is one itself."""

    def __init__(self, report, name, only_failure=False, outcomes=None):
        self.report = report
        self.name = name
        self.outcomes = outcomes            # where this one's is added
        self.only_failure = only_failure    # that counts, and nothing else is printed
        self.lines = []
        self.steps = self.skipped = self.bad = 0
        self.start = time.monotonic()

    def __enter__(self):
        if not self.only_failure:
            self.report.note(f"{self.name} ...")
        return self

    def out(self, text):
        self.lines.append(text)

    def line(self, text):
        """A line that a step printed; a result among them is counted."""
        match = RESULT.match(text)
        if match:
            self.step(match[1] == "ok", match[2], match[3])
        else:
            self.out(f"    # {text.removeprefix('# ')}")

    def step(self, passed, what, skipped=None):
        self.steps += 1
        if skipped is not None:
            self.skipped += 1
        elif not passed:
            self.bad += 1
        directive = f" # SKIP {skipped}" if skipped is not None else ""
        self.out(f"    {'ok' if passed else 'not ok'} {self.steps} - {what}{directive}")

    def restart(self):
        """What was done so far, such as booting, does not count as the test's own time."""
        self.start = time.monotonic()

    def fail(self, what, *details):
        for text in details:
            self.out(f"    # {text}")
        self.step(False, what)

    def __exit__(self, kind, value, traceback):
        if kind is not None:
            return
        if not self.steps:
            self.step(False, "nothing was checked")
        report = self.report
        if self.only_failure and not self.bad:
            report.note(f"{self.name}: passed")
            return
        with report.lock:
            report.number += 1
            report.passed += self.steps - self.skipped - self.bad
            report.skipped += self.skipped
            report.failed += self.bad
            if self.bad:
                report.failures.append(self.name)
            seconds = report.seconds[self.name] = time.monotonic() - self.start
            for line in ("    KTAP version 1", f"    # Subtest: {self.name}",
                         f"    1..{self.steps}", *self.lines,
                         f"{'not ok' if self.bad else 'ok'} {report.number} - {self.name}",
                         f"# {self.name}: {seconds:.1f} s"):
                report.out(line)
        if self.outcomes is not None:
            self.outcomes.append(Outcome(self.name, self.steps - self.skipped - self.bad,
                                         self.bad, self.skipped, seconds))
