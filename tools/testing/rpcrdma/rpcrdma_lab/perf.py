# SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
"""Instructions of a process, sampled by perf where the machine can count them."""

import contextlib
import os
import select
import signal
import subprocess
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path

from .figures import Sample
from .host import LabError, die_with_parent

# The period is a prime, so that samples do not keep step with a loop.
EVENT = "instructions:u"
PERIOD = 100003
LIMIT = 60                      # seconds for perf to start or to end


def works(scratch: Path) -> bool:
    """
    Whether perf can sample the event. Where it cannot, some versions of perf report a
    count of 0 instead of an error.
    """
    try:
        return not subprocess.run(["perf", "record", "-q", "-e", EVENT, "-c", str(PERIOD),
                                   "-o", scratch, "true"], stdin=subprocess.DEVNULL, timeout=20,
                                  stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
                                  check=False).returncode
    except (OSError, subprocess.TimeoutExpired):
        return False


@contextlib.contextmanager
def sampling(pid: int, data: Path) -> Iterator[Callable[[bool], None]]:
    """
    In a with statement, record one process while it is switched on. Gives the function that
    switches.
    """
    (control, to_perf), (from_perf, ack) = os.pipe(), os.pipe()
    argv = ["perf", "record", "-q", "-e", EVENT, "-c", str(PERIOD), "-i", "-p", str(pid),
            "-D", "-1", "--control", f"fd:{control},{ack}", "-o", str(data)]
    # pylint: disable-next=consider-using-with,subprocess-popen-preexec-fn
    perf = subprocess.Popen(argv, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
                            stderr=subprocess.DEVNULL, pass_fds=(control, ack),
                            preexec_fn=die_with_parent)
    os.close(control)
    os.close(ack)

    def switch(on: bool) -> None:
        os.write(to_perf, b"enable\n" if on else b"disable\n")
        if not select.select([from_perf], [], [], LIMIT)[0] or not os.read(from_perf, 16):
            raise LabError("perf does not begin to sample: try `perf record true`")

    try:
        yield switch
    finally:
        perf.send_signal(signal.SIGINT)
        try:
            perf.wait(LIMIT)
        except subprocess.TimeoutExpired:
            perf.kill()
            perf.wait()
        os.close(to_perf)
        os.close(from_perf)


def sampled_instructions(data: Path, code: Mapping[str, range]) -> Sample:
    """All instructions, and those in some ranges of addresses."""
    done = subprocess.run(["perf", "script", "-i", data, "-F", "ip"], stdin=subprocess.DEVNULL,
                          stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True,
                          check=True)
    addresses = [int(word, 16) for word in done.stdout.split()]
    return {"instructions": PERIOD * len(addresses),
            **{name: PERIOD * sum(address in inside for address in addresses)
               for name, inside in code.items()}}
