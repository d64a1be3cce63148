# SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
"""Scenarios: what they say about themselves, and running them in guests."""

import collections
import dataclasses
import fnmatch
import functools
import itertools
import math
import os
import pathlib
import re
import shutil
import subprocess
import threading
import time
import traceback
import typing

from . import host, kernels, lanes
from .guest import Guest, GuestFailure, Link
from .host import LAB, LOGS, LabError
from .lanes import Work

# About how much longer than on User-Mode Linux things take elsewhere: for plans
# alone, as long as nobody knows how long they take on this machine.
GUESS = {"um": 1, "um-debug": 4, kernels.COVERAGE: 1,
         "debian-6.1": 4, "debian-6.12": 4, "smp-debug": 12}

# They wait long, and run hardly a line that others do not: um-gcov runs them with ALL=1.
LEFT_OUT = {"thresholds", "unload-connecting", "faults-dead-server"}

# Seconds that the jobs of one boot may take together, if they are several: guests
# that boot quickly share the machine better in small pieces.
PIECE = {"um": 45, kernels.COVERAGE: 45, "um-debug": 120}
LARGE_PIECE = 300

ONE_GUEST = (("server", 1), ("client", 1), ("client_done", 1), ("server_done", 1))
TWO_GUESTS = (("server", 1), ("client", 2), ("client_done", 2), ("server_done", 1))


@dataclasses.dataclass(frozen=True)
class Scenario:
    """
    A file in scenarios/. Its first comment says:

      shows:    what it shows, in a line
      guests:   where it runs every day: a guest, or GUEST/DEVICE or GUEST/ENDS
                for that alone
      also:     where else it runs if asked to run everywhere, likewise
      devices:  rxe, siw, or none where it needs none   (none)
      ends:     1, 2 or both: client and server in one guest, or in two (1)
      modules:  which rpcrdma it can be run with: ours, inbox (both), kunit; or
                SERVER+CLIENT where there are two guests
      limit:    seconds that one of its functions may take on um (60); guests get
                more by as much as they are slower
      steps:    its functions, where they are not the usual four
      host:     a function that runs on the host when the guests are done
      skip:     GUEST DEVICE ENDS MODULE: why; any number of these, with *
    """
    name: str
    path: pathlib.Path
    shows: str
    guests: tuple
    also: tuple
    devices: tuple
    ends: tuple
    modules: tuple
    limit: int
    steps: tuple
    host: str
    skips: tuple

    @staticmethod
    def load(path):
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
        devices, ends = fields.get("devices", "none").split(), fields.get("ends", "1").split()
        for place in guests + also:
            name, _, what = place.partition("/")
            if (name not in (*kernels.NAMES, kernels.COVERAGE)
                    or what and what not in devices + ends):
                raise LabError(f"{path} names a place that there is not: {place}")
        return Scenario(
            path.stem, path, fields["shows"], tuple(guests), tuple(also), tuple(devices),
            tuple(int(n) for n in ends),
            tuple(fields.get("modules", "ours inbox").split()),
            int(fields.get("limit", "60")), tuple(fields.get("steps", "").split()),
            fields.get("host"), tuple(skips))

    def runs_on(self, places, guest, device, ends):
        """Whether one of the places is this one; the guest that counts lines is another um."""
        guest = guest_name(guest)
        return any(place in (guest, f"{guest}/{device}", f"{guest}/{ends}") for place in places)

    def why_skipped(self, job):
        guest = guest_name(job.guest)
        for patterns, why in self.skips:
            here = (guest, job.device, str(job.ends), job.module)
            if all(fnmatch.fnmatch(have, want) for have, want in zip(here, patterns)):
                return why
        if job.device == "siw" and job.guest in kernels.STOCK:
            return "Debian's kernels have no siw"
        return None


def guest_name(name):
    """What scenarios call a guest: the one that counts lines is another um."""
    return "um" if name == kernels.COVERAGE else name


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
    def daily(self):
        """Whether it runs every day, or only if everything does."""
        if self.guest == kernels.COVERAGE and self.scenario.name in LEFT_OUT:
            return False
        return self.scenario.runs_on(self.scenario.guests, self.guest, self.device, self.ends)

    @property
    def session(self):
        """
        Jobs with the same session share a booted guest. Which lines run every day,
        and which only if everything does, is counted apart.
        """
        return (self.guest, self.ends, self.module,
                self.guest == kernels.COVERAGE and not self.daily)

    def functions(self):
        if self.scenario.steps:
            return [(function, end) for function in self.scenario.steps
                    for end in range(1, self.ends + 1)]
        return ONE_GUEST if self.ends == 1 else TWO_GUESTS

    @property
    def ran_with(self):
        """What a result of it holds for."""
        return f"{kernels.version(self.guest)} {kernels.root_version()}"

    def about(self, times):
        """Seconds that it takes once its guest has booted."""
        return times.about(self.name, self.scenario.limit / 3 * GUESS[self.guest])


def load_all(folder="scenarios"):
    return [Scenario.load(path) for path in sorted((LAB / folder).glob("*.sh"))]


def jobs(scenarios, guests=None, modules=("inbox",), pattern="*", everywhere=False):
    """Every place where the scenarios run that the arguments leave, in running order."""
    found = []
    names = [*kernels.NAMES, kernels.COVERAGE]      # line coverage is for those who ask for it
    for scenario in scenarios:
        places = scenario.guests + (scenario.also if everywhere else ())
        for guest, device, ends, mod in itertools.product(
                guests or kernels.NAMES, scenario.devices, scenario.ends, scenario.modules):
            job = Job(scenario, guest, device, ends, mod)
            if (scenario.runs_on(places, guest, device, ends)
                    and (set(mod.split("+")) & set(modules) or mod == "kunit")
                    and fnmatch.fnmatch(job.name, pattern_for(pattern))):
                found.append(job)
    return sorted(found, key=lambda job: (names.index(job.guest), job.module, job.ends))


def pattern_for(text):
    """T=fio and T='mount \\[um rxe*' both do what one would think."""
    text = text.replace("[", "[[]")
    return text if any(c in text for c in "*?") else f"*{text}*"


@dataclasses.dataclass
class Run:
    """What the pieces of one run share."""
    report: object
    times: object
    results: object = None      # of a run that is to be taken up again
    keep_counts: typing.Callable = None     # of the lines that ran in a guest

    def keep(self, outcomes, ran_with, counts=""):
        """
        What passed need not run again. What ran beside a failure does: which one of
        them it was that leaked, or killed the guest, nobody knows.
        """
        if self.results:
            failed = any(outcome.failed for outcome in outcomes)
            self.results.keep(outcomes, failed, ran_with, counts)


_boots = collections.Counter()
_boots_lock = threading.Lock()      # protects it


def next_boot(slug):
    """Each boot has a folder of its own; those of earlier runs make room for the first."""
    with _boots_lock:
        if not _boots[slug]:
            for old in LOGS.glob(f"{slug}-[0-9]*"):
                shutil.rmtree(old)
        _boots[slug] += 1
        return LOGS / f"{slug}-{_boots[slug]}"


class Session:
    """The guests that a row of jobs shares, booted when first needed."""

    def __init__(self, key):
        self.name, self.ends, self.module, _ = key
        self.guests = []

    def boot(self, test):
        links = Link.pair(self.name.startswith("um")) if self.ends == 2 else [None]
        for end, link in enumerate(links, 1):
            slug = "-".join([self.name, self.module] + ([f"end{end}"] if self.ends == 2 else []))
            guest = Guest(self.name, next_boot(slug), module_of(self.module, end), link, end)
            self.guests.append(guest)
            seconds = guest.boot()
            test.line(f"# {self.name} booted in {seconds:.1f} s, log: {guest.console}")
        test.restart()

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
            for guest in self.guests:
                guest.measure_pace()
                test.line(f"# a quick machine's um is {guest.pace:.1f} times as quick just now")
            done = all(self.step(job, test, *where) for where in job.functions())
            if done and job.scenario.host:
                self.host_step(job, test)
        except (GuestFailure, LabError, OSError, subprocess.SubprocessError) as failure:
            fail(test, failure)
        if test.bad > before:
            self.last_words(test)
            self.kill()

    def step(self, job, test, function, end):
        guest = self.guests[end - 1]
        variables = {"MODULE": module_of(job.module, end), "DEVICE": job.device,
                     "ENDS": job.ends, "END": end, "GUEST": guest_name(self.name),
                     "PACE": min(math.ceil(100 * guest.pace), 400), "SLOW": int(self.name == "smp-debug")}
        before = test.bad
        status = guest.run(variables, job.scenario.name, function,
                           math.ceil(job.scenario.limit * guest.pace), test.line)
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
                              timeout=600, preexec_fn=host.follow_gently)
        before = test.bad
        for line in done.stdout.splitlines():
            test.line(line)
        if done.returncode and test.bad == before:
            test.fail(f"{job.scenario.host} ended with status {done.returncode}")

    def last_steps(self, report):
        """
        What the kernel can say of a whole session: what leaked, which lines ran.
        Only trouble counts as a test, or the number of tests would depend on how
        jobs were divided.
        """
        for name in ("leaks", "coverage"):
            scenario = Scenario.load(LAB / f"guest/{name}.sh")
            if self.guests and self.name in scenario.guests:
                job = Job(scenario, self.name, "none", self.ends, self.module)
                with report.test(job.name, only_failure=True) as test:
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


def guarded(report, name, function, *args):
    """Whatever goes wrong is a failed test, so that a run ends with its counts."""
    try:
        function(*args)
    except (LabError, OSError, subprocess.SubprocessError) as error:
        with report.test(name) as test:
            fail(test, error)
    except Exception as error:      # pylint: disable=broad-exception-caught
        with report.test(name) as test:
            test.fail(repr(error), *traceback.format_exc().splitlines())


def run_session(key, group, run):
    """Jobs that share a session, in one boot as far as they let it."""
    session = Session(key)
    report = run.report.branch()
    try:
        for job in group:
            why = job.scenario.why_skipped(job)
            if why:
                report.skip(job.name, why)
                continue
            with report.test(job.name) as test:
                session.run(job, test)
        run.times.keep({outcome.name: outcome.seconds for outcome in report.outcomes
                        if not outcome.failed})
        session.last_steps(report)
        session.last_look(report)
        counts = ""
        if session.name == kernels.COVERAGE and run.keep_counts:
            for guest in session.guests:
                counts = run.keep_counts(guest.out, group[0].daily)
    finally:
        session.kill()
    run.keep(report.outcomes, group[0].ran_with, counts)


def divide(group, times, seconds):
    """Jobs of one session, in as many boots as it takes to be done in that time each."""
    total = sum(job.about(times) for job in group)
    count = max(1, min(len(group), math.ceil(total / seconds)))
    pieces = [[0, []] for _ in range(count)]
    for job in sorted(group, key=lambda job: -job.about(times)):
        least = min(pieces, key=lambda piece: piece[0])
        least[0] += job.about(times)
        least[1].append(job)
    return [piece for _, piece in pieces]


def guest_works(names, run):
    """What has to be there before these guests can boot; a kernel at a time, for it has all CPUs."""
    works = []

    def add(name, missing, make, *args, guess=60, alone=""):
        def made():
            start = time.monotonic()
            make(*args)
            if missing:
                run.times.keep({name: time.monotonic() - start})

        def do():
            guarded(run.report, name, made)
        works.append(Work(name, do, run.times.about(name, guess) if missing else 0,
                          alone=alone))

    add("guests' root", kernels.root_missing(), kernels.root_image)
    for name in dict.fromkeys(guest_name(name) for name in names):
        add(f"kernel {name}", kernels.missing(name), kernels.kernel, name,
            guess=30 if name in kernels.STOCK else 300, alone="kernel")
    return works


def session_works(todo, run):
    """The jobs to do, in pieces that share a boot."""
    sessions = {}
    for job in todo:
        sessions.setdefault(job.session, []).append(job)
    works = []
    for key, group in sessions.items():
        name = key[0]
        for piece in divide(group, run.times, PIECE.get(name, LARGE_PIECE)):
            works.append(Work(name, functools.partial(guarded, run.report, name,
                                                      run_session, key, piece, run),
                              sum(job.about(run.times) for job in piece
                                  if not job.scenario.why_skipped(job)),
                              ("guests' root", f"kernel {guest_name(name)}"),
                              # Two guests whose CPUs have a thread each take longer side by
                              # side than one after the other, on two CPUs: what waits for a
                              # lock waits for a CPU that is not running.
                              alone=name if name == "smp-debug" else ""))
    return works


def run_jobs(todo, run, tell=host.say):
    names = [job.guest for job in todo]
    return lanes.run(guest_works(names, run) + session_works(todo, run), tell)
