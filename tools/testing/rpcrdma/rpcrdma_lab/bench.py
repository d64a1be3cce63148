# SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
"""
`make bench`: measure what the kernel's own module and ours cost, each with different settings,
and compare them.
"""

import collections
import dataclasses
import fnmatch
import itertools
import math
import os
import statistics
import time
from collections.abc import Callable, Mapping, Sequence

from . import chart, figures, host, parts, perf, ratio, report, root, scenario
from .console import GuestFailure, NoAnswer
from .figures import (APART, INBOX, JOBS, KIB, MEM, OURS, OURS_2, TUNED, VARIANTS, Job, Sample,
                      Variant, difference)
from .guest import Guest
from .host import BUILD, TOP, LabError, attempt, say
from .instructions import PAGE, CountingGuest

# Packages that it needs, and the other parts of the lab do not
PACKAGES = (*chart.PACKAGES, *ratio.PACKAGES)

# Seccomp spares most of what the host's ptrace takes of each RPC. um-7-smp has two CPUs, and so has
# um-7-lockstat, which also tells how often locks are waited for.
GUEST = os.environ.get("GUEST", "um-7")
LIMIT = 60                      # seconds for one step in the guest
LONG = 240                      # for the first one, which makes files, and for a program
# How often a session is tried with the kernel's own module over siw, which may lose the first
# message of a connection (Documentation/known-failures.rst)
TRIES = 5

Measure = Callable[[Variant, Sequence[Job]], None]

# The load of the machine changes the figures. So jobs are short and are repeated, and after so
# many, or one program, the next variant does the same ones: figures that are compared are measured
# at nearly the same time.
ROUNDS = 7
JOB_MS = 1000
IN_TURN = 8
# The variants of which every event is recorded
TRACED = (TUNED, OURS)
# How many I/Os of each size in KiB a job does while every event is recorded; files of a tree
# under the size 0
TRACED_IOS = {0: 300, 4: 1000, 8: 1000, 16: 1000, 64: 1000, 1024: 250}
# Whether the CPU time of jobs that run for a time is sampled
SAMPLE = os.environ.get("SAMPLE", "0") != "0"
# How many I/Os of each size a job does whose instructions TCG counts, which is slow
EMULATED_IOS = {0: 300, 4: 1000, 8: 1000, 16: 1000, 64: 400, 1024: 100}
EMULATED = (INBOX, OURS, OURS_2)

# How many connections rest, for how many seconds; each mount has 16 of them. With the
# kernel's own module so many need more memory than the guest has.
CONNECTIONS = int(os.environ.get("CONNECTIONS", "1024"))
REST = int(os.environ.get("REST", "120"))
INBOX_CONNECTIONS = 64

# MiB of a guest with many connections, and how much of that they may take by what each of fewer
# took. One of the kernel's own module took 6 MB.
SCALE_MIB = 8192
SCALE_PART = 0.8
# Where TCG counts, which is slow: with how many connections. The guest there has less memory.
EMULATED_SCALE = {INBOX: (1,), OURS: (1, 1024)}

# Modules of the kernel whose instructions are counted apart, where they are modules
OTHERS = ("sunrpc", "nfs", "nfsv3", "nfsd", "ib_core")

# The condition that says what ended a run before its time
FAILED = "incomplete, failed"

CHART = TOP / "Documentation/drawings/bench.svg"
SCALE_CHART = TOP / "Documentation/drawings/scale.svg"


class Bench:
    """The guests that run all variants in turn, one for each device, and what was measured."""

    def __init__(self, rounds: int, pattern: str) -> None:
        self.rounds = max(rounds, 0)
        self.jobs = chosen(pattern)
        # If one is a program or has many connections, all are or have.
        self.programs = self.jobs[0].program
        self.scales = bool(self.jobs[0].connections)
        self.cpus = os.sched_getaffinity(0)
        self.guest = self.make_guest()
        self.conditions = conditions(self.guest)
        self.perf_data = BUILD / "perf.data"
        if SAMPLE and not perf.works(self.perf_data):
            raise LabError("SAMPLE=1 needs perf, and that it may sample the host's kernel: install "
                           "linux-perf, and be root or set kernel.perf_event_paranoid to 0 or less")
        # What is done when the guest says that what counts begins or ends; and the CPU time
        # that has counted in a step
        self.switch: Callable[[bool], None] = lambda on: None
        self.cpu_ns = 0
        # What starting so many processes of fio takes in this guest
        self.start: dict[int, Sample] = {}
        self.round = 0
        # See report.Measured
        self.timed: dict[tuple[Job, Variant], list[Sample]] = collections.defaultdict(list)
        self.counted: dict[tuple[Job, Variant], list[Sample]] = {}
        self.instructions: dict[tuple[Job, Variant], list[Sample]] = {}
        self.functions: dict[tuple[Job, Variant], Sample] = {}  # instructions of 100 RPCs
        self.rested: dict[tuple[str, Variant], Sample] = {}
        self.sizes: dict[tuple[str, Variant], tuple[int, int]] = {}

    def measured(self) -> report.Measured:
        """Everything that was measured."""
        rows = [job for job in self.jobs if job.direction != "memory"]
        return report.Measured(self.conditions, self.rounds, rows, self.timed, self.counted,
                               self.instructions, self.rested, self.sizes)

    # Guests

    def make_guest(self) -> Guest:
        """A guest with both modules, the test device, and the bare loop or the counter."""
        if not self.rounds:
            return CountingGuest(BUILD / "logs/bench-instructions", ["crowd"] * self.scales)
        guest = Guest(GUEST, BUILD / "logs/bench", "ours", rdma=MEM,
                      memory=SCALE_MIB * self.scales,
                      more="programs" if self.programs else "",
                      extras=["crowd" if self.scales else "bare"])
        # The default of Debian's kernels
        guest.kernel = dataclasses.replace(
            guest.kernel, append=f"{guest.kernel.append} init_on_alloc=1")
        return guest

    def begin(self, device: str) -> None:
        """Boot a new guest and prepare a device in it. The runner leaves the guest its CPU."""
        os.sched_setaffinity(0, self.cpus)
        if self.guest.process:
            self.guest.kill()
            self.guest = self.make_guest()
        self.guest.boot()
        os.sched_setaffinity(0, self.cpus - {self.guest.cpu} or self.cpus)
        self.start = {}
        self.step("ready", device, OURS, LONG)

    # Steps

    def step(self, function: str, device: str, variant: Variant, limit: int = LIMIT, /,
             **variables: str | int) -> Sample:
        """Have the guest run a function. Returns the figures that it printed."""
        lines: list[str] = []
        variables |= {"MODULE": variant.module, "VERSION": variant.version,
                      "INLINE": variant.inline, "DEVICE": device, "ENDS": 1, "END": 1}

        def on_line(line: str) -> None:
            lines.append(line)
            self.mark(line)

        self.cpu_ns = 0
        library = "programs" if self.programs else "scale" if self.scales else "bench"
        if self.guest.run(variables, library, function, limit, on_line):
            raise LabError("\n".join([f"{function} failed with {device}, {variant.name}:",
                                      *lines]))
        return figures.parse(lines)

    def mark(self, line: str) -> None:
        """If with this line the guest says that what counts begins or ends, count that."""
        if line in ("# begin", "# end"):
            begun = line == "# begin"
            assert self.guest.process
            self.cpu_ns += (-1 if begun else 1) * cpu_ns(self.guest.process.pid)
            self.switch(begun)

    def job(self, function: str, job: Job, variant: Variant, ios: int = 0) -> Sample:
        """Run a job for a number of I/Os or, if that is 0, for a time."""
        sample = self.step(function, job.device, variant, LONG if job.program else LIMIT,
                           **job.variables(ios, JOB_MS))
        if job.fio:
            sample |= figures.parse_fio((self.guest.out / "fio.json").read_text())
            sample["cpu_ns"] = self.cpu_ns
        return sample

    # Sessions

    def sessions(self, what: str, measure: Measure, jobs: Sequence[Job],
                 variants: Sequence[Variant], in_turn: int = IN_TURN) -> None:
        """Measure jobs with variants, which take turns after so many jobs."""
        start = time.monotonic()
        for at in range(0, len(jobs), in_turn):
            for variant in variants:
                if some := [job for job in jobs[at:at + in_turn] if variant in job.variants]:
                    self.session(what, measure, variant, some)
        say(f"# {what}, {time.monotonic() - start:.0f} s")

    def session(self, what: str, measure: Measure, variant: Variant, jobs: Sequence[Job]) -> None:
        """
        Measure with an NFS server and a mount of it. A failure of the kernel's own module that
        is known leads to another try.
        """
        device = jobs[0].device
        tries = TRIES if (device, variant.module) == ("siw", "inbox") else 1
        for left in reversed(range(tries)):
            try:
                facts = self.step("up", device, variant)
                self.sizes[device, variant] = facts["rsize"], facts["wsize"]
                measure(variant, jobs)
                if self.step("down", device, variant)["unsteady"]:
                    say(f"# {what}, {variant.name}: a connection broke, or Calls were sent again "
                        f"or had no answer in time, among {jobs[0].name} to {jobs[-1].name}")
                if (waits := self.guest.out / "waits").exists():
                    say(f"# {what}, {variant.name}: µs of waits, waits, times taken, lock\n"
                        f"{waits.read_text()}")
                return
            except NoAnswer as failure:
                if not left:
                    raise
                say(f"# {what}, {variant.name}: {failure}: again, in a new guest")
                self.begin(device)

    # Measuring

    def time(self, jobs: Sequence[Job]) -> None:
        """Run each job for a time, in each round."""
        for self.round in range(self.rounds):
            # The variant that is first in one round is last in the next one, so that a
            # change of the machine's load does not favour one of them.
            order = VARIANTS[::-1] if self.round % 2 else VARIANTS
            self.sessions(f"{jobs[0].device}: round {self.round + 1} of {self.rounds}",
                          self.time_jobs, jobs, order, 1 if jobs[0].program else IN_TURN)

    def time_jobs(self, variant: Variant, jobs: Sequence[Job]) -> None:
        """Run each job for a time."""
        code = code_of(self.step("code", jobs[0].device, variant)) if SAMPLE else {}
        for job in jobs:
            start = self.start_of(job, variant, code) if job.fio else {}
            sample = self.timed_job(job, variant, 0, code)
            # In place of what a session has left that failed in this round
            self.timed[job, variant][self.round:] = [without_start(sample, start)]

    def start_of(self, job: Job, variant: Variant, code: Mapping[str, range]) -> Sample:
        """What starting as many processes of fio takes: the median of three."""
        many = job.processes
        if many not in self.start:
            little = Job(job.device, "read", 4, many)
            # The first time takes more, because nothing is in caches.
            samples = [self.timed_job(little, variant, many, code) for _ in range(4)][1:]
            self.start[many] = {key: round(statistics.median(sample[key] for sample in samples))
                                for key in samples[0]}
        return self.start[many]

    def timed_job(self, job: Job, variant: Variant, ios: int,
                  code: Mapping[str, range]) -> Sample:
        """Run a job as job() does, and sample what its CPU does if that is wanted."""
        if not SAMPLE:
            return self.job("job", job, variant, ios)
        assert self.guest.process
        pid = self.guest.process.pid
        try:
            with perf.sampling(pid, self.perf_data) as self.switch:
                sample = self.job("job", job, variant, ios)
        finally:
            self.switch = lambda on: None
        return sample | parts.cpu_time(perf.samples(self.perf_data), pid,
                                       parts.layout_of(self.guest.kernel), code)

    def count(self, variant: Variant, jobs: Sequence[Job]) -> None:
        """Record events of each job."""
        for job in jobs:
            self.counted[job, variant] = [
                self.job("traced_job", job, variant, ios=TRACED_IOS[job.kib])]

    def emulate(self, variant: Variant, jobs: Sequence[Job]) -> None:
        """Count the instructions of each job in a guest that QEMU emulates."""
        guest = self.guest
        assert isinstance(guest, CountingGuest)
        facts = self.step("code", jobs[0].device, variant)
        # The first job also looks for programs and files, and the kernel fills its caches, so it
        # is not counted.
        self.job("job", jobs[0], variant, jobs[0].processes)
        for job in jobs:
            samples, functions = [], []
            for ios in (job.processes, EMULATED_IOS[job.kib]):
                samples.append(self.job("counted_job", job, variant, ios) |
                               guest.counted(code_of(facts)))
                functions.append(guest.functions())
            found = outside(difference(*samples))
            self.instructions[job, variant] = [found]
            self.functions[job, variant] = per_rpc(functions, found["rpcs"])

    def rest(self, variant: Variant, jobs: Sequence[Job]) -> None:
        """Measure the memory of many connections that rest."""
        device = jobs[0].device
        most = INBOX_CONNECTIONS if variant == INBOX else CONNECTIONS
        mounts = max(min(CONNECTIONS, most) // 16, 1)
        self.rested[device, variant] = self.step("rest", device, variant,
                                                 LIMIT + REST + 5 * mounts,
                                                 MOUNTS=mounts, REST=REST)

    def scale(self, jobs: Sequence[Job], variant: Variant) -> None:
        """
        Measure with more and more connections, as far as the guest's memory lets a module get. A
        failure of the kernel's own ends this, too.
        """
        kib = math.nan      # of a connection
        for job in jobs:
            start = time.monotonic()
            if job.connections * kib / 1024 > SCALE_PART * self.guest.memory:
                say(f"# {job.name}, {variant.name}: left out, because a connection takes "
                    f"{kib:,.0f} KiB and the guest has {self.guest.memory:,} MiB")
                return
            try:
                self.session(job.name, self.scale_job, variant, [job])
            except (GuestFailure, LabError) as failure:
                if variant == OURS:
                    raise
                say("\n".join([*self.guest.last_lines(),
                               f"# {job.name}, {variant.name}: {failure}"]))
                self.begin(job.device)
                return
            say(f"# {job.name}, {variant.name}, {time.monotonic() - start:.0f} s")
            kib = figures.median(figures.values(self.timed, job, variant, KIB))

    def scale_job(self, variant: Variant, jobs: Sequence[Job]) -> None:
        """Run a job for a time, in each round, while other connections rest."""
        job, = jobs
        found = self.step("scale", job.device, variant, LONG, **job.variables(0, JOB_MS))
        for self.round in range(self.rounds):
            self.time_jobs(variant, jobs)
            self.timed[job, variant][self.round].update(found)
        if not self.rounds:
            self.emulate(variant, jobs)
        self.step("scale_end", job.device, variant, LONG)

    def all(self) -> None:
        """Measure everything that was selected. Without rounds, that is what TCG counts."""
        for device, same in itertools.groupby(self.jobs, key=lambda job: job.device):
            jobs = list(same)
            compared = [job for job in jobs if job.compares]
            self.begin(device)
            if jobs[0].direction == "memory":
                self.sessions("memory", self.rest, jobs, VARIANTS)
            elif self.scales:
                for variant in jobs[0].variants:
                    self.scale([job for job in jobs if self.rounds
                                or job.connections in EMULATED_SCALE[variant]], variant)
            elif self.rounds:
                self.time(jobs)
                if not self.programs:
                    self.sessions(f"{device}: events", self.count, compared, TRACED)
            else:
                self.sessions(f"{device}: instructions", self.emulate, compared, EMULATED,
                              len(JOBS))


def conditions(guest: Guest) -> dict[str, str]:
    """What is measured, and where."""
    commit = attempt("git", "-C", TOP, "describe", "--always", "--dirty", "--abbrev=7")
    emulator = (f"User-Mode Linux ({guest.kernel.append}), "
                f"{'pinned to one CPU' if guest.cpus == 1 else 'two CPUs'}" if guest.uml
                else "QEMU's TCG, one CPU")
    return {"commit": "unknown" if commit.returncode else commit.stdout.strip(),
            "host": host.machine(), "guest": f"{guest.kernel.release} in {emulator}"}


def chosen(pattern: str) -> list[Job]:
    """The jobs that match. Some are done only if they are called by their name."""
    jobs = [job for job in JOBS if fnmatch.fnmatch(job.name, scenario.pattern_for(pattern))
            and all((word in pattern) == (word in job.name) for word in APART)]
    if not jobs:
        raise LabError(f"no job matches {pattern}: the jobs are "
                       + ", ".join(job.name for job in JOBS))
    return jobs


def cpu_ns(pid: int) -> int:
    """
    The CPU time in ns that a process and its threads have used. That of User-Mode Linux is
    the time of the guest's kernel: its programs run in processes of their own.
    """
    # What clock_getcpuclockid() returns
    return time.clock_gettime_ns(~pid << 3 | 2)


def code_of(facts: Sample) -> dict[str, range]:
    """
    The addresses of the module's and of the device's code. Of a module these are whole
    pages. Its last symbol may extend into one more page; if not, nothing else has addresses
    in that page. Of a device that is built in, the end is known. Other modules are there if
    they are modules.
    """
    def pages(prefix: str) -> range:
        return range(facts[f"{prefix}text"] & -PAGE, facts[f"{prefix}last_symbol"] + PAGE)

    built_in = "device_end" in facts
    return {**({"transport": pages("")} if "text" in facts else {}),
            "device": (range(facts["device_text"], facts["device_end"]) if built_in
                       else pages("device_")),
            **{name: pages(f"{name}_") for name in OTHERS if f"{name}_text" in facts}}


def per_rpc(functions: Sequence[Sample], rpcs: int) -> Sample:
    """Instructions of 100 RPCs in each function, from those of a short job and a long one."""
    short, long = functions
    return {name: round(100 * (count - short.get(name, 0)) / rpcs)
            for name, count in long.items()}


def instructions_text(run: Bench) -> str:
    """Instructions per RPC of the kernel, of modules, and of functions, those with most first."""
    lines = []
    for (job, variant), (sample,) in run.instructions.items():
        lines.append(f"{job.name}, {variant.name}")
        lines += [f"{sample[name] / sample['rpcs']:10.0f} {name}"
                  for name in ("instructions", "device", "transport", *OTHERS) if name in sample]
        lines += [f"{count / 100:14.1f} {name}" for name, count in
                  sorted(run.functions[job, variant].items(), key=lambda item: -item[1])
                  if count > 0 and not (variant.module == "inbox" and "[rpcrdma]" in name)]
    return "".join(f"{line}\n" for line in lines)


def without_start(sample: Sample, start: Sample) -> Sample:
    """Subtract the times that starting and ending fio takes."""
    return sample | {key: value - start.get(key, 0) for key, value in sample.items()
                     if key.endswith("_ns")}


def outside(sample: Sample) -> Sample:
    """Add the instructions outside the device."""
    return sample | {"outside": sample["instructions"] - sample["device"]}


def finish(run: Bench, pattern: str) -> None:
    """
    Print what was measured, and leave it in build/. A whole run of all jobs, or of all with many
    connections, draws the chart of the documentation.
    """
    found = run.measured()
    say()
    report.report(found)
    report.write_json(found, BUILD / "bench.json")
    say(f"# everything that was measured is in {BUILD / 'bench.json'}")
    if run.functions:
        (BUILD / "instructions.txt").write_text(instructions_text(run))
        say(f"# instructions in each function are in {BUILD / 'instructions.txt'}")
    file = BUILD / "bench.svg"
    if run.rounds and FAILED not in run.conditions:
        if pattern == "*":
            file = CHART
        elif run.jobs == [job for job in JOBS if job.connections]:
            file = SCALE_CHART
    if chart.draw(found, file, BUILD):
        say(f"# the chart is in {file}")


def bench(rounds: int, pattern: str) -> bool:
    """
    Measure and print, whichever variant is better. A failure ends it, but what was measured
    before is printed all the same.
    """
    run = Bench(rounds, pattern)
    start = time.monotonic()
    try:
        run.all()
    except GuestFailure as failure:
        say("\n".join(run.guest.last_lines()))
        run.conditions[FAILED] = f"the guest failed: {failure}; see {run.guest.console}"
    except LabError as failure:
        run.conditions[FAILED] = str(failure)
    finally:
        run.guest.kill()
    say(f"# {time.monotonic() - start:.0f} s")
    finish(run, pattern)
    if FAILED in run.conditions:
        raise LabError(run.conditions[FAILED])
    return True
