# SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
"""The lab's own tests: faults are planted in a guest, and have to be reported."""

import os
import re
import signal
import subprocess
import time

from . import ktap, scenario
from .host import LAB


def planted(test):
    """Each scenario in selftest/ must fail in the way that its "expect:" line says."""
    for plant in scenario.load_all("selftest"):
        expect = re.search(r"^# expect: +(.*)$", plant.path.read_text(), re.M)[1]
        lines = []
        report = ktap.Report(out=lines.append)
        todo = scenario.jobs([plant])
        scenario.run_jobs(todo, report)
        failed = not report.close()
        seen = any(re.search(expect, line) for line in lines)
        details = [] if failed and seen else lines[-20:]
        for line in details:
            test.line(f"# {line}")
        test.step(failed and seen, f"{plant.name}: {plant.shows}")


def processes_of(mark, word=b""):
    """Processes that have a runner's mark in their environment, a word in their command line."""
    found = []
    for entry in os.listdir("/proc"):
        if entry.isdigit():
            try:
                with open(f"/proc/{entry}/environ", "rb") as environ, \
                     open(f"/proc/{entry}/cmdline", "rb") as command:
                    if (f"RPCRDMA_LAB_TEST={mark}".encode() in environ.read()
                            and word in command.read()):
                        found.append(int(entry))
            except OSError:
                pass
    return found


def wait_until(condition, seconds):
    deadline = time.monotonic() + seconds
    while not condition():
        if time.monotonic() > deadline:
            return False
        time.sleep(0.1)
    return True


def dies_with_runner(test, number):
    """A runner in the middle of a scenario gets a signal; nothing of it may be left."""
    mark = f"{os.getpid()}-{number}"
    argv = [str(LAB / "lab"), "run", "--folder", "selftest", "--module", "inbox",
            "hang"]
    with subprocess.Popen(argv, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
                          stderr=subprocess.DEVNULL,
                          env=dict(os.environ, RPCRDMA_LAB_TEST=mark)) as runner:
        booted = wait_until(lambda: processes_of(mark, b"lab.share="), 20)
        runner.send_signal(number)
        # Sooner than the guest would be given up for its silence
        gone = wait_until(lambda: runner.poll() is not None and not processes_of(mark), 2)
        runner.kill()
    for pid in processes_of(mark):
        os.kill(pid, signal.SIGKILL)
    test.step(booted and gone, f"a runner ended by {signal.Signals(number).name} "
              "takes its guest along")


def run(report):
    with report.test("the lab reports planted faults") as test:
        planted(test)
    with report.test("guests die with their runner") as test:
        for number in (signal.SIGINT, signal.SIGTERM, signal.SIGKILL):
            dies_with_runner(test, number)
