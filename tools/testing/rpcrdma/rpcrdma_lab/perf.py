# SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
"""What perf samples of the CPU time of a process, and of all else that runs on its CPU."""

import contextlib
import os
import select
import signal
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import NamedTuple

from .host import LabError, die_with_parent

LIMIT = 60                      # seconds for perf to start or to end

# A timer's event, so no hardware counter is needed. If one process were sampled, the timer would
# be set whenever the host switches to it, which doubles the CPU time of a guest in User-Mode
# Linux. So the whole CPU is.
EVENT = "cpu-clock"
# After how many ns a sample is taken: a prime, so that samples do not keep step with a loop
PERIOD = 99991


def record(data: Path, *target: str) -> list[str]:
    """The beginning of perf's command line."""
    return ["perf", "record", "-q", "-e", EVENT, "-c", str(PERIOD), "-o", str(data), *target]


class PerfSample(NamedTuple):
    """One sample: of which process, and the address where it was."""
    comm: str
    pid: int
    address: int


def works(scratch: Path) -> bool:
    """
    Whether perf can sample. Where it may not, some versions of perf leave out the host's kernel
    and report no error.
    """
    try:
        subprocess.run([*record(scratch, "-a"), "true"], stdin=subprocess.DEVNULL,
                       timeout=20, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
                       check=True)
        done = subprocess.run(["perf", "evlist", "-i", scratch], stdin=subprocess.DEVNULL,
                              stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True,
                              timeout=20, check=True)
    except (OSError, subprocess.SubprocessError):
        return False
    return done.stdout.split()[:1] == [EVENT]


@contextlib.contextmanager
def sampling(pid: int, data: Path) -> Iterator[Callable[[bool], None]]:
    """
    In a with statement, record the CPUs that a process may use, while that is switched
    on. Gives the function that switches.
    """
    cpus = ",".join(map(str, sorted(os.sched_getaffinity(pid))))
    (control, to_perf), (from_perf, ack) = os.pipe(), os.pipe()
    argv = [*record(data, "-C", cpus), "-D", "-1", "--control", f"fd:{control},{ack}"]
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


def samples(data: Path) -> list[PerfSample]:
    """All samples."""
    done = subprocess.run(["perf", "script", "-i", data, "-F", "comm,pid,ip"],
                          stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                          stderr=subprocess.DEVNULL, text=True, errors="replace", check=True)
    return parse(done.stdout)


def parse(text: str) -> list[PerfSample]:
    """The samples that perf prints. A name may have spaces."""
    found = (line.strip().rsplit(None, 2) for line in text.splitlines())
    return [PerfSample(words[0], int(words[1]), int(words[2], 16)) for words in found
            if len(words) == 3]
