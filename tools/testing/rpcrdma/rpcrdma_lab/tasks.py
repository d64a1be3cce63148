# SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
"""
Tasks that run side by side, and what is printed about them meanwhile.

Each task has a thread of its own, because a guest is killed when the thread that
booted it ends. Most guests wait most of the time. So as many run as together use the
machine's CPUs, by what they used the last time, or would have without waiting for one,
and as have room in its memory.
"""

import collections
import dataclasses
import threading
import time
from collections.abc import Callable, Sequence

from . import emulator, guest, host
from .emulator import MEMORY_MIB, Memory

# How often the progress is printed
TELL_SECONDS = 30
# CPUs that tasks may use beyond those of the machine, because few use as many all the time
MORE_CPUS = 0.5
# Those of a guest that has not run on this machine
GUESSED_CPUS = 0.6
# How many tasks that are less urgent may start before one that needs more than is free
MOST_PASSED = 5
MOST_TASKS = 8


@dataclasses.dataclass(eq=False)
class Task:
    """One task of a run."""
    group: str                  # the guest or part of the check that its time is added to
    call: Callable[[], object]
    seconds: float              # what it took the last time, or a guess
    needs: tuple[str, ...] = ()     # groups that must be done first
    alone: str = ""             # only one task with the same word runs at a time
    cpus: float = 1             # that it uses on average
    # What its guests may take. Few take a third of it, but one that gets no memory dies.
    memory: Memory = Memory(MEMORY_MIB["qemu"], MEMORY_MIB["um"])
    passed: int = 0             # tasks that started before it because they need less
    start: float = 0.0


class Scheduler:
    """Runs each task once. A process that a task starts must end with the task's thread."""

    def __init__(self, tasks: Sequence[Task], memory: Memory,
                 tell: Callable[[str], object] = host.say) -> None:
        # Tasks that take no time are first: others wait for them.
        self.waiting = sorted(tasks, key=lambda task: (task.seconds > 0,
                                                       -self.urgency(task, tasks)))
        self.running: list[Task] = []
        self.count = len(tasks)
        self.memory = memory
        self.tell = tell
        self.failure: BaseException | None = None
        self.changed = threading.Condition()    # protects all of the above
        self.begun = time.monotonic()
        self.total = sum(task.seconds for task in tasks)
        self.spent: dict[str, float] = collections.defaultdict(float)   # seconds, by group

    @staticmethod
    def urgency(task: Task, tasks: Sequence[Task]) -> float:
        """Its own time and that of all tasks that wait for it."""
        return task.seconds + sum(other.seconds for other in tasks if task.group in other.needs)

    def run(self) -> None:
        """Run all tasks. Raises the exception of the first one that fails."""
        told = self.begun
        with self.changed:
            while self.waiting or self.running:
                self.start()
                self.changed.wait(1)
                if time.monotonic() - told >= TELL_SECONDS:
                    told = time.monotonic()
                    self.tell(self.progress())
                if self.failure:
                    raise self.failure

    def start(self) -> None:
        """Start as many tasks as there are CPUs and memory for."""
        while len(self.running) < MOST_TASKS:
            task = self.next()
            if not task:
                return
            self.waiting.remove(task)
            self.running.append(task)
            task.start = time.monotonic()
            threading.Thread(target=self.do, args=(task,), daemon=True).start()

    def next(self) -> Task | None:
        """The most urgent task that may start now, and for which there are CPUs and memory."""
        passed: list[Task] = []
        for task in filter(self.ready, self.waiting):
            if self.fits(task):
                for other in passed:
                    other.passed += 1
                return task
            if task.passed == MOST_PASSED:
                return None
            passed.append(task)
        return None

    def fits(self, task: Task) -> bool:
        """Whether there are CPUs and memory for a task. One runs in any case."""
        both = [*self.running, task]
        return not self.running or (
            sum(one.cpus for one in both) <= host.jobs() + MORE_CPUS
            and sum(one.memory.all for one in both) <= self.memory.all
            and sum(one.memory.folder for one in both) <= self.memory.folder)

    def ready(self, task: Task) -> bool:
        """Whether a task may start: what it needs is done, and no other excludes it."""
        unfinished = {other.group for other in self.waiting + self.running}
        excluded = {other.alone for other in self.running if other.alone}
        return not unfinished.intersection(task.needs) and task.alone not in excluded

    def do(self, task: Task) -> None:
        """The thread of a task."""
        failure = None
        try:
            task.call()
        except BaseException as error:      # pylint: disable=broad-exception-caught
            failure = error
        with self.changed:
            self.failure = self.failure or failure
            self.running.remove(task)
            self.spent[task.group] += time.monotonic() - task.start
            self.changed.notify()

    def progress(self) -> str:
        """What is left, and about how long that takes at the speed so far."""
        now = time.monotonic()
        left: dict[str, float] = collections.defaultdict(float)
        for task in self.waiting:
            left[task.group] += task.seconds
        for task in self.running:
            left[task.group] += max(task.seconds - (now - task.start), 0)
        seconds = now - self.begun
        remaining = sum(left.values())
        done = self.total - remaining
        longest = sorted(left.items(), key=lambda item: item[1], reverse=True)
        groups = ", ".join(f"{group} {time_left:.0f} s" for group, time_left in longest
                           if time_left >= 0.5)
        finished = self.count - len(self.waiting) - len(self.running)
        more = f", about {host.clock(seconds * remaining / done)} to go" if done > 0 else ""
        return (f"# {host.clock(seconds)}: {finished} of {self.count} tasks done{more}. "
                f"Left, by the times of earlier runs or a guess: {groups or 'nothing'}")


def run(tasks: Sequence[Task], tell: Callable[[str], object] = host.say) -> dict[str, float]:
    """
    Run all tasks; if one raises an exception, all guests are killed. Returns the seconds
    of each group.
    """
    try:
        scheduler = Scheduler(tasks, emulator.free_memory(), tell)
        scheduler.run()
    except BaseException:
        guest.kill_all()
        raise
    return scheduler.spent
