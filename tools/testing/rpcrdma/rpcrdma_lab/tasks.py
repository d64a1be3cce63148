# SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
"""
Work that runs side by side, and what a person is told of it meanwhile.

Each piece of work has a thread of its own, because a guest dies with the thread
that booted it. As many run as the machine has CPUs; one more is added whenever
CPUs are seen to be idle, since most guests wait most of the time.
"""

import collections
import dataclasses
import os
import pathlib
import re
import threading
import time
import typing

from . import guest, host

# How often it is looked whether there is room for one more, and progress is told
LOOK_SECONDS = 1
TELL_SECONDS = 30
# CPUs that have to be idle for one more piece of work
IDLE_CPUS = 0.4
MOST = 8


@dataclasses.dataclass(eq=False)
class Work:
    """One piece of it."""
    group: str                  # what it is counted under: a guest, or a part of the check
    call: typing.Callable[[], None]
    seconds: float              # about: what it took last time, or a guess
    needs: tuple = ()           # groups that have to be done before
    alone: str = ""             # of those with the same word one runs at a time
    start: float = 0.0


class Idle:
    """How many of the machine's CPUs nobody has used lately."""

    def __init__(self):
        self.since, self.ticks = time.monotonic(), self.idle_ticks()

    @staticmethod
    def idle_ticks():
        """Of the CPUs that we may use: idle, and waiting for a disk."""
        lines = [line.split() for line in pathlib.Path("/proc/stat").read_text("ascii").splitlines()]
        ours = {f"cpu{number}" for number in os.sched_getaffinity(0)}
        return sum(int(fields[4]) + int(fields[5]) for fields in lines if fields[0] in ours)

    def cpus(self):
        """Since this was asked for last; 0 if that is too short to tell."""
        seconds = time.monotonic() - self.since
        if seconds < LOOK_SECONDS / 2:
            return 0
        before, self.ticks, self.since = self.ticks, self.idle_ticks(), self.since + seconds
        return (self.ticks - before) / os.sysconf("SC_CLK_TCK") / seconds


def most_lanes():
    """
    As many as there is memory for. Of what a guest may take hardly one takes a third,
    but who finds none dies.
    """
    memory = pathlib.Path("/proc/meminfo").read_text("ascii")
    available = int(re.search(r"MemAvailable: +(\d+) kB", memory)[1]) // 1024
    status = os.statvfs(guest.memory_folder())
    room = status.f_bavail * status.f_frsize >> 20
    return max(1, min(MOST, available // guest.MEMORY_MIB, 2 * room // guest.MEMORY_MIB))


class Lanes:
    """Runs every piece of work once. Whoever makes one has it end with its thread."""

    def __init__(self, works, most, tell=host.say):
        # What is there already holds up others for nothing.
        self.waiting = sorted(works, key=lambda work: (work.seconds > 0,
                                                       -self.urgency(work, works)))
        self.running = []
        self.count = len(works)
        self.most = most
        self.tell = tell
        self.failure = None
        self.changed = threading.Condition()    # protects all of the above
        self.begun = time.monotonic()
        self.total = sum(work.seconds for work in works)
        self.spent = collections.Counter()      # seconds, by group

    @staticmethod
    def urgency(work, works):
        """Its own time and that of all that waits for it."""
        return work.seconds + sum(other.seconds for other in works if work.group in other.needs)

    def run(self):
        idle = Idle()
        told = self.begun
        with self.changed:
            while self.waiting or self.running:
                self.start(idle.cpus())
                self.changed.wait(LOOK_SECONDS)
                if time.monotonic() - told >= TELL_SECONDS:
                    told = time.monotonic()
                    self.tell(self.progress())
                if self.failure:
                    raise self.failure

    def start(self, idle):
        """Fill the lanes that there are CPUs for, and one more if CPUs are idle."""
        extra = idle >= IDLE_CPUS
        while len(self.running) < self.most:
            if len(self.running) >= host.jobs() and not extra:
                return
            extra = extra and len(self.running) < host.jobs()
            work = next((work for work in self.waiting if self.ready(work)), None)
            if not work:
                return
            self.waiting.remove(work)
            self.running.append(work)
            work.start = time.monotonic()
            threading.Thread(target=self.lane, args=(work,), daemon=True).start()

    def ready(self, work):
        unfinished = {other.group for other in self.waiting + self.running}
        taken = {other.alone for other in self.running if other.alone}
        return not unfinished.intersection(work.needs) and work.alone not in taken

    def lane(self, work):
        failure = None
        try:
            work.call()
        except BaseException as error:      # pylint: disable=broad-exception-caught
            failure = error
        with self.changed:
            self.failure = self.failure or failure
            self.running.remove(work)
            self.spent[work.group] += time.monotonic() - work.start
            self.changed.notify()

    def progress(self):
        """What is left, and about how long it takes at the speed so far."""
        now = time.monotonic()
        left = collections.Counter()
        for work in self.waiting:
            left[work.group] += work.seconds
        for work in self.running:
            left[work.group] += max(work.seconds - (now - work.start), 0)
        seconds = now - self.begun
        done = self.total - sum(left.values())
        names = ", ".join(f"{group} {seconds:.0f} s" for group, seconds in left.most_common()
                          if seconds >= 0.5)
        finished = self.count - len(self.waiting) - len(self.running)
        more = ""
        if done > 0:
            more = f", about {clock(seconds * sum(left.values()) / done)} more"
        return (f"# {clock(seconds)}: {finished} of {self.count} pieces done{more}. "
                f"Left, by what it took last time or else a guess: {names or 'nothing'}")


def run(works, tell=host.say):
    """Whatever ends the runner ends all guests."""
    try:
        lanes = Lanes(works, most_lanes(), tell)
        lanes.run()
    except BaseException:
        guest.kill_all()
        raise
    return lanes


def clock(seconds):
    minutes, seconds = divmod(int(seconds), 60)
    return f"{minutes} min {seconds:02} s"
