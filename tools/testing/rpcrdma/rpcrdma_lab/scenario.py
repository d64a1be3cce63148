# SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
"""Scenarios: what they say about themselves, and running them in guests."""

import collections
import concurrent.futures
import dataclasses
import fnmatch
import functools
import itertools
import os
import pathlib
import re
import shutil
import subprocess
import time

from . import host, kernels
from .guest import MEMORY_MIB, Guest, GuestFailure, Link, kill_all
from .host import BUILD, LAB, LabError

# How much longer than on User-Mode Linux things take elsewhere.
SLOWNESS = {"um": 1, "um-debug": 8, kernels.COVERAGE: 2,
            "debian-6.1": 6, "debian-6.12": 6, "smp-debug": 20}

ONE_GUEST = (("server", 1), ("client", 1), ("client_done", 1), ("server_done", 1))
TWO_GUESTS = (("server", 1), ("client", 2), ("client_done", 2), ("server_done", 1))


@dataclasses.dataclass(frozen=True)
class Scenario:
    """
    A file in scenarios/. Its first comment says:

      shows:    what it shows, in a line
      guests:   where it runs
      also:     where it runs too, if asked to run everywhere: `make check` has
                half an hour
      devices:  rxe, siw, or none where it needs none   (none)
      ends:     1, 2 or both: client and server in one guest, or in two (1)
      modules:  which rpcrdma it can be run with: ours, inbox (both), kunit; or
                SERVER+CLIENT where there are two guests
      limit:    seconds that one of its functions may take on um (60)
      steps:    its functions, where they are not the usual four
      host:     a function that runs on the host when the guests are done
      skip:     GUEST DEVICE ENDS MODULE: why; any number of these, with *
    """
    name: str
    path: pathlib.Path
    shows: str
    guests: tuple
    devices: tuple
    ends: tuple
    modules: tuple
    limit: int
    steps: tuple
    host: str
    skips: tuple

    @staticmethod
    def load(path, everywhere=False):
        fields = {}
        skips = []
        for line in path.read_text().splitlines():
            if not line.startswith("#"):
                break
            match = re.match(r"# (\w+): +(.*)", line)
            if match and match[1] == "skip":
                what, _, why = match[2].partition(": ")
                skips.append((what.split(), why))
            elif match:
                fields[match[1]] = match[2]
        if "shows" not in fields or "guests" not in fields:
            raise LabError(f"{path} does not say what it shows and on which guests it runs")
        guests, also = fields["guests"].split(), fields.get("also", "").split()
        unknown = {*guests, *also}.difference(kernels.NAMES, [kernels.COVERAGE])
        if unknown:
            raise LabError(f"{path} names guests that there are not: {' '.join(unknown)}")
        return Scenario(
            path.stem, path, fields["shows"], tuple(guests + also if everywhere else guests),
            tuple(fields.get("devices", "none").split()),
            tuple(int(n) for n in fields.get("ends", "1").split()),
            tuple(fields.get("modules", "ours inbox").split()),
            int(fields.get("limit", "60")), tuple(fields.get("steps", "").split()),
            fields.get("host"), tuple(skips))

    def why_skipped(self, job):
        guest = "um" if job.guest == kernels.COVERAGE else job.guest
        for patterns, why in self.skips:
            here = (guest, job.device, str(job.ends), job.module)
            if all(fnmatch.fnmatch(have, want) for have, want in zip(here, patterns)):
                return why
        if job.device == "siw" and job.guest in kernels.STOCK:
            return "Debian's kernels have no siw"
        return None


def module_of(modules, end):
    """ours+inbox: the server's is ours, the client's inbox; else both have the same."""
    return modules.split("+")[-1 if end == 2 else 0]


@dataclasses.dataclass(frozen=True)
class Job:
    """One scenario in one place."""
    scenario: Scenario
    guest: str
    device: str
    ends: int
    module: str

    @property
    def name(self):
        place = [self.guest] + (["2 guests"] if self.ends == 2 else [])
        place += [self.device] if self.device != "none" else []
        return f"{self.scenario.name} [{' '.join(place + [self.module])}]"

    @property
    def session(self):
        """Jobs with the same session share a booted guest."""
        return (self.guest, self.ends, self.module)

    def functions(self):
        if self.scenario.steps:
            return [(function, end) for function in self.scenario.steps
                    for end in range(1, self.ends + 1)]
        return ONE_GUEST if self.ends == 1 else TWO_GUESTS

    def limit(self):
        return self.scenario.limit * SLOWNESS[self.guest]


def load_all(folder="scenarios", everywhere=False):
    return [Scenario.load(path, everywhere) for path in sorted((LAB / folder).glob("*.sh"))]


def jobs(scenarios, guests=None, modules=("inbox",), pattern="*"):
    """Every place where the scenarios run that the arguments leave, in running order."""
    found = []
    for scenario in scenarios:
        # Line coverage is for those who ask for it.
        places = scenario.guests + ((kernels.COVERAGE,) if "um" in scenario.guests else ())
        for guest, device, ends, mod in itertools.product(
                places, scenario.devices, scenario.ends, scenario.modules):
            job = Job(scenario, guest, device, ends, mod)
            if (guest in (guests or kernels.NAMES)
                    and (set(mod.split("+")) & set(modules) or mod == "kunit")
                    and fnmatch.fnmatch(job.name, pattern_for(pattern))):
                found.append(job)
    order = list(kernels.NAMES) + [kernels.COVERAGE]
    return sorted(found, key=lambda job: (order.index(job.guest), job.module, job.ends))


def pattern_for(text):
    """T=fio and T='mount \\[um rxe*' both do what one would think."""
    text = text.replace("[", "[[]")
    return text if any(c in text for c in "*?") else f"*{text}*"


class Session:
    """The guests that a row of jobs shares, booted when first needed."""

    def __init__(self, key):
        self.name, self.ends, self.module = key
        self.guests = []
        self.boots = 0

    def directory(self, end):
        slug = "-".join([self.name, self.module] + ([f"end{end}"] if self.ends == 2 else []))
        return BUILD / "logs" / f"{slug}-{self.boots}"

    def boot(self, test):
        self.boots += 1
        links = Link.pair(self.name.startswith("um")) if self.ends == 2 else [None]
        for end, link in enumerate(links, 1):
            directory = self.directory(end)
            if self.boots == 1:     # of an earlier run
                for old in directory.parent.glob(f"{directory.name[:-1]}[0-9]*"):
                    shutil.rmtree(old)
            guest = Guest(self.name, directory, module_of(self.module, end), link, end)
            self.guests.append(guest)
            seconds = guest.boot()
            test.line(f"# {self.name} booted in {seconds:.1f} s, log: {guest.console}")

    def kill(self):
        for guest in self.guests:
            guest.kill()
        self.guests = []

    def run(self, job, test):
        """Run one job; afterwards the guests are either as clean as before or gone."""
        before = test.bad
        try:
            if not self.guests:
                self.boot(test)
            done = all(self.step(job, test, *where) for where in job.functions())
            if done and job.scenario.host:
                self.host_step(job, test)
        except (GuestFailure, LabError, OSError, subprocess.SubprocessError) as failure:
            fail(test, failure)
        if test.bad > before:
            self.last_words(test)
            self.kill()

    def step(self, job, test, function, end):
        variables = {"MODULE": module_of(job.module, end), "DEVICE": job.device,
                     "ENDS": job.ends, "END": end, "GUEST": self.name,
                     "SLOW": int(SLOWNESS[self.name] > 10)}
        before = test.bad
        status = self.guests[end - 1].run(variables, job.scenario.name, function,
                                          job.limit(), test.line)
        if status and test.bad == before:
            test.fail(f"{function} ended with status {status}")
        for other in self.guests:
            other.check_console()
        return test.bad == before

    def host_step(self, job, test):
        """A scenario's function that runs on the host, over what the guests left in out/."""
        outs = {f"OUT{guest.end}": str(guest.out) for guest in self.guests}
        script = f". {LAB}/guest/lib.sh; . {job.scenario.path}; {job.scenario.host}; finish"
        done = subprocess.run(["bash", "-c", script], stdin=subprocess.DEVNULL,
                              stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
                              env=dict(os.environ, **outs), check=False,
                              timeout=job.limit(), preexec_fn=host.follow_gently)
        before = test.bad
        for line in done.stdout.splitlines():
            test.line(line)
        if done.returncode and test.bad == before:
            test.fail(f"{job.scenario.host} ended with status {done.returncode}")

    def last_steps(self, report):
        """What the kernel can say of a whole session: what leaked, which lines ran."""
        for name in ("leaks", "coverage"):
            scenario = Scenario.load(LAB / f"guest/{name}.sh")
            if self.guests and self.name in scenario.guests:
                job = Job(scenario, self.name, "none", self.ends, self.module)
                with report.test(job.name) as test:
                    self.run(job, test)

    def last_look(self, report):
        """What work that outlived the last scenario left on the console."""
        time.sleep(1)
        for guest in self.guests:
            try:
                guest.check_console()
            except GuestFailure as failure:
                with report.test(f"console [{self.name} {self.module}]") as test:
                    fail(test, failure)
                    self.last_words(test)

    def last_words(self, test):
        """What the guests of a failed test said last, and where all of it is."""
        for guest in self.guests:
            if guest.console.exists():      # it got as far as that
                test.line(f"# last lines of {guest.console}:")
                for line in guest.last_lines():
                    test.line(f"#   {line}")


def fail(test, failure):
    first, *rest = (str(failure) or repr(failure)).splitlines()
    test.fail(first, *rest, *getattr(failure, "printed", ()))


def run_session(key, group, report):
    """Jobs that share a session, in one boot as far as they let it."""
    session = Session(key)
    report.note(f"{' '.join(str(part) for part in key)}: "
                f"{', '.join(dict.fromkeys(job.scenario.name for job in group))}")
    try:
        for job in group:
            why = job.scenario.why_skipped(job)
            if why:
                report.skip(job.name, why)
                continue
            with report.test(job.name) as test:
                session.run(job, test)
        session.last_steps(report)
        session.last_look(report)
    finally:
        session.kill()


def weight(group):
    """About how long a session takes, against others."""
    return sum(job.limit() for job in group if not job.scenario.why_skipped(job))


def lane_count():
    """
    One for each CPU, and one because guests sleep, too, as far as there is memory
    for a guest in each.
    """
    memory = pathlib.Path("/proc/meminfo").read_text("ascii")
    available = int(re.search(r"MemAvailable: +(\d+) kB", memory)[1]) // 1024
    return max(1, min(host.jobs() + 1, available // MEMORY_MIB))


def run_jobs(todo, report, beside=()):
    """
    Run sessions side by side, one in each lane, and between them the calls in
    "beside". A guest dies with the thread that booted it, so whatever ends the
    runner ends all of them.

    Two QEMU guests whose CPUs have a thread each, on two CPUs, take longer side by
    side than one after the other: what waits for a lock waits for a CPU that is not
    running. So one lane begins with QEMU's guests, and the next one with what needs
    a single CPU, both with pairs of guests and with what takes longest; who has
    nothing left helps the other. The one beyond the CPUs never does.
    """
    sessions = {}
    for job in todo:
        sessions.setdefault(job.session, []).append(job)
    large, small = collections.deque(), collections.deque(beside)
    for key in sorted(sessions, key=lambda key: (key[1], weight(sessions[key])), reverse=True):
        queue = small if key[0].startswith("um") else large
        queue.append(functools.partial(run_session, key, sessions[key], report))

    def lane(*queues):
        for queue in queues:
            while True:
                try:
                    work = queue.popleft()
                except IndexError:
                    break
                work()

    count = lane_count()
    orders = itertools.cycle(((large, small), (small, large)))
    orders = [*itertools.islice(orders, host.jobs()), (small,)]
    with concurrent.futures.ThreadPoolExecutor(count) as lanes:
        running = [lanes.submit(lane, *queues) for queues in orders[:count]]
        try:
            for done in concurrent.futures.as_completed(running):
                done.result()
        except BaseException:
            large.clear()
            small.clear()
            kill_all()
            raise
