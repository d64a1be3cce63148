# SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
"""Running scenarios: boot their guests, run their steps, report the results."""

import collections
import dataclasses
import functools
import math
import os
import shutil
import subprocess
import threading
import time
import traceback
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import ParamSpec

from . import emulator, host, kernels, root, scenario, tasks
from .console import GuestFailure
from .guest import Guest, Link
from .host import LAB, LOGS, LabError
from .ktap import Report, Reporter, Test
from .results import Outcome, Results, Times
from .scenario import Job, Scenario, SessionKey, Step
from .tasks import Task

P = ParamSpec("P")

# Guests in which scenarios do less
SLOWEST = ("smp-debug", "smp-kcsan")

# Seconds that the jobs of one boot may take together if they are several. Longer boots save CPU
# time: a boot of um-7-debug and its search for leaks take ten seconds of it. Shorter ones spread
# better over the CPUs. In QEMU a boot takes up to a minute, and has twice as long.
BOOT_LIMIT = 240


@dataclasses.dataclass
class Run:
    """What the tasks of one run share."""
    report: Report
    times: Times
    results: Results | None = None      # of a run that can be continued
    # Keeps the counts of lines that a guest left in a folder; returns a name for them.
    keep_counts: Callable[[Path, bool], str] | None = None
    cpu: Times = dataclasses.field(default_factory=lambda: Times("cpu"))

    def keep(self, outcomes: Sequence[Outcome], ran_with: str, counts: str = "") -> None:
        """
        Keep the results of tests that shared a boot, unless one of them failed: then it
        is not known which of them leaked memory or killed the guest.
        """
        if self.results:
            failed = any(outcome.failed for outcome in outcomes)
            self.results.keep(outcomes, failed, ran_with, counts)


_boots = collections.Counter[str]()
_boots_lock = threading.Lock()      # protects _boots


def next_boot(name: str) -> Path:
    """A new folder for each boot. The first one of a run removes those of earlier runs."""
    with _boots_lock:
        if not _boots[name]:
            for old in LOGS.glob(f"{name}-[0-9]*"):
                shutil.rmtree(old)
        _boots[name] += 1
        return LOGS / f"{name}-{_boots[name]}"


class Session:
    """The guests that some jobs share. They boot when they are first needed."""

    def __init__(self, key: SessionKey, jobs: Iterable[Job]) -> None:
        self.name, self.ends, self.module, self.rdma, _, self.memory, self.root = key
        self.extras = sorted({name for job in jobs for name in job.scenario.loads})
        self.guests: list[Guest] = []

    def boot(self, test: Test) -> None:
        """Boot one guest or two."""
        links: Sequence[Link | None] = [None]
        if self.ends == 2:
            links = Link.pair(self.name.startswith("um"))
        for end, link in enumerate(links, 1):
            name = "-".join([self.name, self.module, *([self.rdma] if self.rdma else []),
                             *([f"end{end}"] if self.ends == 2 else [])])
            guest = Guest(scenario.guest_at(self.name, end), next_boot(name),
                          scenario.module_of(self.module, end), link, end, rdma=self.rdma,
                          memory=self.memory, more=self.root, extras=self.extras)
            self.guests.append(guest)
            seconds = guest.boot()
            test.line(f"# {guest.name} booted in {seconds:.1f} s, log: {guest.console}")
        test.restart()

    def cpu_seconds(self) -> tuple[float, float]:
        """The CPU time that the guests have used, and for how long one has waited for it."""
        each = [guest.cpu_seconds() for guest in self.guests]
        return sum(used for used, _ in each), max((waited for _, waited in each), default=0)

    def kill(self) -> None:
        """End the guests."""
        for guest in self.guests:
            guest.kill()
        self.guests = []

    def run(self, job: Job, test: Test) -> None:
        """Run one job. If it fails the guests are killed, so that the next job gets new ones."""
        before = test.bad
        used = waited = 0.0
        try:
            if not self.guests:
                self.boot(test)
            used, waited = self.cpu_seconds()
            for guest in self.guests:
                guest.steady = "" if job.scenario.faults else job.device
                guest.measure_pace()
                test.line("# this guest is now "
                          f"{guest.pace:.1f} times as slow as um on a quick machine")
            done = all(self.step(job, test, step) for step in job.steps())
            if done and job.scenario.host:
                self.host_step(job, job.scenario.host, test)
        except (GuestFailure, LabError, OSError, subprocess.SubprocessError) as failure:
            fail(test, failure)
        test.cpu, test.waited = self.cpu_seconds()
        test.cpu -= used
        test.waited -= waited
        if test.bad > before:
            self.show_consoles(test)
            self.kill()

    def step(self, job: Job, test: Test, step: Step) -> bool:
        """Run one step. Returns whether it passed."""
        guest = self.guests[step.end - 1]
        if step.function == scenario.KILL:
            guest.restart()
            return True
        variables: dict[str, str | int] = {
            "MODULE": scenario.module_of(job.module, step.end), "DEVICE": job.device,
            "ENDS": job.ends, "END": step.end, "GUEST": kernels.kernel_of(guest.name),
            "PACE": min(math.ceil(100 * guest.pace), 400),
            "FAULTS": int(job.scenario.faults is not None), "SLOW": int(self.name in SLOWEST)}
        before = test.bad
        status = guest.run(variables, job.scenario.name, step.function,
                           math.ceil(job.scenario.limit * guest.pace), test.line)
        if status and test.bad == before:
            test.fail(f"{step.function} ended with status {status}")
        for other in self.guests:
            other.check_console()
        return test.bad == before

    def host_step(self, job: Job, function: str, test: Test) -> None:
        """Run a scenario's function on the host, with what the guests left in lab/out."""
        outs = {f"OUT{guest.end}": str(guest.out) for guest in self.guests}
        script = f". {LAB}/guest/lib.sh; . {job.scenario.path}; {function}; finish"
        done = host.attempt("bash", "-c", script, env=dict(os.environ, **outs), timeout=600)
        before = test.bad
        for line in done.stdout.splitlines():
            test.line(line)
        if done.returncode and test.bad == before:
            test.fail(f"{function} ended with status {done.returncode}")

    def check_boot(self, report: Reporter) -> None:
        """
        Check what is only known after all jobs: leaked memory, and which lines ran.
        This counts as a test only if it fails. Otherwise the number of tests would
        depend on how jobs were divided into boots.
        """
        for name in ("leaks", "coverage"):
            last = Scenario.load(LAB / f"guest/{name}.sh")
            if self.guests and self.name in last.guests:
                job = Job(last, self.name, "none", self.ends, self.module)
                with report.test(job.name, only_failure=True) as test:
                    self.run(job, test)

    def check_consoles(self, report: Reporter) -> None:
        """Check for errors that the kernel prints after the last scenario has ended."""
        time.sleep(1)
        for guest in self.guests:
            try:
                guest.check_console()
            except GuestFailure as failure:
                with report.test(f"console [{self.name} {self.module}]") as test:
                    fail(test, failure)
                    self.show_consoles(test)

    def show_consoles(self, test: Test) -> None:
        """Print the end of each console, and the path of its log."""
        for guest in self.guests:
            if guest.console.exists():      # not if the guest did not start
                test.line(f"# last lines of {guest.console}:")
                for line in guest.last_lines():
                    test.line(f"#   {line}")


def fail(test: Test, failure: Exception) -> None:
    """Report an exception as a failed step."""
    first, *rest = (str(failure) or repr(failure)).splitlines()
    printed = failure.printed if isinstance(failure, GuestFailure) else ()
    test.fail(first, *rest, *printed)


def guarded(report: Reporter, name: str, function: Callable[P, object], *args: P.args,
            **kwargs: P.kwargs) -> None:
    """Call a function. Report an exception as a failed test, so that the run continues."""
    try:
        function(*args, **kwargs)
    except (LabError, OSError, subprocess.SubprocessError) as error:
        with report.test(name) as test:
            fail(test, error)
    except Exception as error:      # pylint: disable=broad-exception-caught
        with report.test(name) as test:
            test.fail(repr(error), *traceback.format_exc().splitlines())


def run_session(key: SessionKey, jobs: Sequence[Job], run: Run) -> None:
    """Run jobs in one boot. After a failure the remaining jobs get a new boot."""
    session = Session(key, jobs)
    report = run.report.branch()
    try:
        for job in jobs:
            why = job.scenario.why_skipped(job)
            if why:
                report.skip(job.name, why)
                continue
            with report.test(job.name) as test:
                session.run(job, test)
        run.times.keep({outcome.name: outcome.seconds for outcome in report.outcomes
                        if not outcome.failed})
        run.cpu.keep({outcome.name: outcome.wanted_cpu for outcome in report.outcomes
                      if not outcome.failed})
        session.check_boot(report)
        session.check_consoles(report)
        counts = ""
        if session.name == kernels.COVERAGE and run.keep_counts:
            for guest in session.guests:
                counts = run.keep_counts(guest.out, jobs[0].daily)
    finally:
        session.kill()
    run.keep(report.outcomes, jobs[0].ran_with, counts)


# Tasks

def divide(jobs: Sequence[Job], times: Times, seconds: float) -> list[list[Job]]:
    """Divide jobs into boots that take about so many seconds each."""
    total = sum(job.about(times) for job in jobs)
    count = max(1, min(len(jobs), math.ceil(total / seconds)))
    boots: list[list[Job]] = [[] for _ in range(count)]
    lengths = [0.0] * count
    for job in sorted(jobs, key=lambda job: -job.about(times)):
        shortest = lengths.index(min(lengths))
        lengths[shortest] += job.about(times)
        boots[shortest].append(job)
    return boots


def build_task(run: Run, name: str, missing: bool, build: Callable[[], object], guess: float,
               alone: str = "") -> Task:
    """A task that builds part of a guest. It takes no time if the part exists already."""

    def timed() -> None:
        start = time.monotonic()
        build()
        if missing:
            run.times.keep({name: time.monotonic() - start})

    return Task(name, functools.partial(guarded, run.report, name, timed),
                run.times.about(name, guess) if missing else 0, alone=alone)


def guest_tasks(names: Iterable[str], run: Run) -> list[Task]:
    """Tasks that build what guests need. Each kernel build uses all CPUs, so it is alone."""
    guests = list(dict.fromkeys(kernels.kernel_of(name) for place in names
                                for name in scenario.guests_at(place)))
    releases = dict.fromkeys([host.debian(), *(kernels.user_space(name) for name in guests)])
    found = [build_task(run, root_task(release), root.missing(release),
                        functools.partial(root.image, release), 60) for release in releases]
    for name in guests:
        found.append(build_task(run, f"kernel {name}", kernels.missing(name),
                                functools.partial(kernels.kernel, name),
                                30 if name in kernels.STOCK else 300, "kernel"))
    return found


def root_task(release: str) -> str:
    """The name of the task that makes a root file system."""
    return "guests' root" if release == host.debian() else f"guests' root of Debian {release}"


def needs(place: str) -> tuple[str, ...]:
    """The tasks that build what the guests of a place need."""
    names = [kernels.kernel_of(name) for name in scenario.guests_at(place)]
    return tuple(dict.fromkeys([*(root_task(kernels.user_space(name)) for name in names),
                                *(f"kernel {name}" for name in names)]))


def cpus_of(jobs: Sequence[Job], run: Run) -> float:
    """How many CPUs a boot with these jobs uses on average."""
    seconds = sum(job.about(run.times) for job in jobs)
    used = sum(run.cpu.about(job.name, tasks.GUESSED_CPUS * job.about(run.times))
               for job in jobs)
    return used / seconds if seconds else 0


def memory_of(key: SessionKey) -> emulator.Memory:
    """What the guests of a boot may take."""
    one = emulator.memory_of(key.guest, key.memory)
    return emulator.Memory(key.ends * one.all, key.ends * one.folder)


def session_tasks(jobs: Iterable[Job], run: Run) -> list[Task]:
    """Tasks that run jobs. Each task is one boot."""
    sessions: dict[SessionKey, list[Job]] = {}
    for job in jobs:
        sessions.setdefault(job.session, []).append(job)
    found = []
    for key, group in sessions.items():
        name = key.guest
        limit = BOOT_LIMIT if name.startswith("um") else 2 * BOOT_LIMIT
        for boot in divide(group, run.times, limit):
            todo = [job for job in boot if not job.scenario.why_skipped(job)]
            found.append(Task(
                name, functools.partial(guarded, run.report, name, run_session, key, boot, run),
                sum(job.about(run.times) for job in todo), needs(name), cpus=cpus_of(todo, run),
                memory=memory_of(key),
                # These guests have a thread for each of their two CPUs. On a host with two
                # CPUs, two such guests run faster one after the other than at the same
                # time: a CPU that waits for a spinlock uses up its time while the holder
                # does not run.
                alone="smp" if name in SLOWEST else ""))
    return found


def run_jobs(jobs: Sequence[Job], run: Run,
             tell: Callable[[str], object] = host.say) -> dict[str, float]:
    """Run jobs with the tasks that they need. Returns the seconds of each group."""
    names = [job.guest for job in jobs]
    return tasks.run(guest_tasks(names, run) + session_tasks(jobs, run), tell)
