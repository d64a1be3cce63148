# SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
"""A runner that is killed leaves no process."""

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

import pytest

from ..host import LAB, LOGS


def processes_of(mark: str, word: bytes = b"") -> list[int]:
    """Processes with a runner's mark in their environment and a word in their command line."""
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


def wait_until(condition: Callable[[], object], seconds: float) -> bool:
    """Wait for a condition. Returns whether it was met in time."""
    deadline = time.monotonic() + seconds
    while not condition():
        if time.monotonic() > deadline:
            return False
        time.sleep(0.1)
    return True


class Runner(NamedTuple):
    """A run that a test kills while it waits for a certain process."""
    word: bytes         # part of the command line of that process
    argv: list[str]     # command of the run
    console: Path | None = None     # it is waiting once a certain word is in here


# In its first milliseconds User-Mode Linux tries what ptrace can do, with a child that stays
# for ever, stopped, if it is killed then. So it is killed when it does what "hang" does.
GUEST = Runner(b"lab.share=",
               [str(LAB / "lab"), "run", "--folder", "selftest", "--module", "inbox", "hang"],
               LOGS / "um-inbox-1/console.log")
MAKE = Runner(b"sleep\x0060",
              [sys.executable, "-c", "from rpcrdma_lab import __main__ as lab, check, host; "
               "check.PARTS = {'make': check.Part(lambda report: "
               "host.run('make', '-f', '/dev/null', '--eval', 'all: ; sleep 60'), 60)}; "
               "lab.main()", "check", "make"])


def waits(killed: Runner, mark: str) -> bool:
    """Whether the process that a runner shall take with it is there and waits."""
    return bool(processes_of(mark, killed.word)) and (
        killed.console is None or "SOFTLOCKUP" in killed.console.read_text(errors="replace"))


@pytest.mark.parametrize("name", ["SIGINT", "SIGTERM", "SIGKILL"])
@pytest.mark.parametrize("killed", [GUEST, MAKE], ids=["guest", "make"])
def test_dies_with_runner(killed: Runner, name: str) -> None:
    """Send a signal to a runner; no process of it may be left."""
    number = signal.Signals[name]
    mark = f"{os.getpid()}-{number}"
    with subprocess.Popen(killed.argv, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
                          stderr=subprocess.DEVNULL,
                          env=dict(os.environ, PYTHONPATH=str(LAB),
                                   RPCRDMA_LAB_TEST=mark)) as runner:
        begun = wait_until(lambda: waits(killed, mark), 60)
        runner.send_signal(number)
        # Before the runner would kill the guest because it does not answer
        gone = wait_until(lambda: runner.poll() is not None and not processes_of(mark), 5)
        runner.kill()
    for pid in processes_of(mark):
        os.kill(pid, signal.SIGKILL)
    assert begun and gone
