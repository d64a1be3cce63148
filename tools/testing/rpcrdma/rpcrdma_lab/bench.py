# SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
"""
`make bench`: measure what the kernel's own module and ours cost, ours with both versions of
the protocol, and compare them.
"""

import collections
import dataclasses
import fnmatch
import os
import shutil
import time
from collections.abc import Callable, Mapping, Sequence

from . import bare, chart, figures, kernels, parts, perf, report, scenario
from .console import GuestFailure, NoAnswer
from .figures import INBOX, JOBS, MEM, VARIANTS, Job, Sample, Variant, difference, variants_on
from .guest import Guest
from .host import BUILD, TOP, LabError, say
from .instructions import PAGE, CountingGuest

LIMIT = 60                      # seconds for one step in the guest
# How often a session is tried with the kernel's own module over siw, which may lose the first
# message of a connection (Documentation/testing.rst)
TRIES = 5

Measure = Callable[[str, Variant, list[Job], Sample], None]

# The load of the machine changes the figures. So jobs are short and are repeated: figures
# that are compared are measured at nearly the same time.
ROUNDS = 3
JOB_MS = 1000
# How many I/Os of each size in KiB a job does while every event is recorded; files of a tree
# under the size 0
TRACED_IOS = {0: 300, 4: 1000, 8: 1000, 64: 1000, 1024: 250}
# How long a job takes whose instructions perf samples
PERF_MS = 2000
# Whether the CPU time of jobs that run for a time is sampled. As that takes minutes,
# instructions are then not counted by TCG.
SAMPLE = os.environ.get("SAMPLE", "0") != "0"
# How many I/Os of each size a job does whose instructions TCG counts. That is slow, and
# is done only where perf cannot count.
EMULATED_IOS = {0: 300, 4: 1000, 8: 1000, 64: 400, 1024: 100}

# How many connections rest, for how many seconds; each mount has 16 of them. With the
# kernel's own module so many need more memory than the guest has.
CONNECTIONS = int(os.environ.get("CONNECTIONS", "1024"))
REST = int(os.environ.get("REST", "120"))
INBOX_CONNECTIONS = 64

# Modules of the kernel whose instructions are counted apart, where they are modules
OTHERS = ("sunrpc", "nfs", "nfsv3", "nfsd", "ib_core")

CHART = TOP / "Documentation/drawings/bench.svg"


class Bench:
    """One guest that runs all variants in turn, and what was measured."""

    def __init__(self, rounds: int, pattern: str) -> None:
        self.rounds = max(rounds, 0)
        self.jobs = [job for job in JOBS
                     if fnmatch.fnmatch(job.name, scenario.pattern_for(pattern))]
        self.rows = [job for job in self.jobs if job.direction != "memory"]
        self.make_guest: Callable[[], Guest] = make_guest if self.rounds else counting_guest
        self.guest = self.make_guest()
        self.perf_data = self.guest.directory / "perf.data"
        self.perf = bool(self.rounds) and perf.works(perf.INSTRUCTIONS, self.perf_data)
        if SAMPLE and not perf.works(perf.CPU_TIME, self.perf_data):
            raise LabError("SAMPLE=1 needs perf, and that it may sample the host's kernel: install "
                           "linux-perf, and be root or set kernel.perf_event_paranoid to 0 or less")
        self.nconnect = 1       # connections of the mount that there is
        # What is done when the guest says that what counts begins or ends; and the CPU time,
        # and the time on the clock, that have counted in a step
        self.switch: Callable[[bool], None] = lambda on: None
        self.cpu_ns = self.clock_ns = 0
        # See report.Measured
        self.timed: dict[tuple[Job, Variant], list[Sample]] = collections.defaultdict(list)
        self.counted: dict[tuple[Job, Variant], list[Sample]] = {}
        self.instructions: dict[tuple[Job, Variant], list[Sample]] = {}
        self.functions: dict[tuple[Job, Variant], Sample] = {}  # instructions of 100 RPCs
        self.memory: dict[tuple[str, Variant], Sample] = {}
        self.rested: dict[tuple[str, Variant], Sample] = {}
        self.sizes: dict[tuple[str, Variant], tuple[int, int]] = {}

    def measured(self) -> report.Measured:
        """Everything that was measured."""
        return report.Measured(self.rounds, self.rows, self.perf, self.timed, self.counted,
                               self.instructions, self.memory, self.rested, self.sizes)

    # Steps

    def step(self, function: str, device: str, variant: Variant, limit: int = LIMIT, /,
             **variables: str | int) -> Sample:
        """Have the guest run a function. Returns the figures that it printed."""
        lines: list[str] = []
        variables |= {"MODULE": variant.module, "VERSION": variant.version, "DEVICE": device,
                      "ENDS": 1, "END": 1}

        def on_line(line: str) -> None:
            lines.append(line)
            self.mark(line)

        self.cpu_ns = self.clock_ns = 0
        if self.guest.run(variables, "bench", function, limit, on_line):
            raise LabError("\n".join([f"{function} failed with {device}, {variant.name}:",
                                      *lines]))
        return figures.parse(lines)

    def mark(self, line: str) -> None:
        """If with this line the guest says that what counts begins or ends, count that."""
        if line in ("# begin", "# end"):
            begun = line == "# begin"
            assert self.guest.process
            sign = -1 if begun else 1
            self.cpu_ns += sign * cpu_ns(self.guest.process.pid)
            self.clock_ns += sign * time.monotonic_ns()
            self.switch(begun)

    def job(self, function: str, job: Job, variant: Variant, ios: int = 0,
            milliseconds: int = JOB_MS) -> Sample:
        """Run a job for a number of I/Os or, if that is 0, for a time."""
        variables = job.variables(ios, milliseconds)
        if job.direction != "bare" and job.nconnect != self.nconnect:
            self.step("connect", job.device, variant, **variables)
            self.nconnect = job.nconnect
        sample = self.step(function, job.device, variant, **variables) | {
            "cpu_ns": self.cpu_ns, "clock_ns": self.clock_ns}
        if job.is_io:
            text = (self.guest.out / "fio.json").read_text()
            sample |= figures.parse_fio(text, job.direction)
        return sample

    # Sessions

    def sessions(self, what: str, measure: Measure, jobs: Sequence[Job],
                 variants: Sequence[Variant] = VARIANTS) -> None:
        """Measure with each variant on each device that has jobs."""
        for device in dict.fromkeys(job.device for job in jobs):
            for variant in (variant for variant in variants if variant in variants_on(device)):
                self.session(what, device, variant, measure,
                             [job for job in jobs if job.device == device])

    def session(self, what: str, device: str, variant: Variant, measure: Measure,
                jobs: list[Job]) -> None:
        """
        Measure with an NFS server and a mount of it. A failure of the kernel's own module that
        is known leads to another try.
        """
        tries = TRIES if (device, variant) == ("siw", INBOX) else 1
        for left in reversed(range(tries)):
            try:
                return self.one_session(what, device, variant, measure, jobs)
            except NoAnswer as failure:
                if not left:
                    raise
                say(f"# {what}: {device} {variant.name}: {failure}: again, in a new guest")
                self.reboot()

    def one_session(self, what: str, device: str, variant: Variant, measure: Measure,
                    jobs: list[Job]) -> None:
        """Measure with an NFS server and a mount of it, once."""
        start = time.monotonic()
        facts = self.step("up", device, variant)
        self.nconnect = 1
        self.sizes[device, variant] = facts["rsize"], facts["wsize"]
        measure(device, variant, jobs, facts)
        self.step("down", device, variant)
        say(f"# {what}: {device} {variant.name}, {time.monotonic() - start:.0f} s")

    def reboot(self) -> None:
        """End the guest and boot a new one."""
        self.guest.kill()
        self.guest = self.make_guest()
        self.guest.boot()

    # Measuring

    def time(self) -> None:
        """Run each job for a time, in each round."""
        for number in range(1, self.rounds + 1):
            # The variant that is first in one round is last in the next one, so that a
            # change of the machine's load does not favour one of them.
            order = VARIANTS if number % 2 else VARIANTS[::-1]
            self.sessions(f"round {number} of {self.rounds}", self.time_jobs, self.rows, order)

    def time_jobs(self, _device: str, variant: Variant, jobs: list[Job], facts: Sample) -> None:
        """Run each job for a time. A session that fails leaves no samples."""
        code = code_of(facts)

        def run(function: str, job: Job, variant: Variant, ios: int) -> Sample:
            return (self.sampled_job(function, job, variant, ios, code) if SAMPLE
                    else self.job(function, job, variant, ios))

        start: dict[int, Sample] = {}   # what starting so many processes of fio takes
        found = []
        for job in jobs:
            if job.is_io and job.processes not in start:
                little = dataclasses.replace(job, kib=4, bandwidth=0)
                # The first time takes more, because nothing is in caches.
                self.job("job", little, variant, job.processes)
                start[job.processes] = run("job", little, variant, job.processes)
            sample = run("job", job, variant, 0)
            found.append((job, without_start(sample, start[job.processes]) if job.is_io
                          else sample))
        for job, sample in found:
            self.timed[job, variant].append(sample)

    def sampled_job(self, function: str, job: Job, variant: Variant, ios: int,
                    code: Mapping[str, range]) -> Sample:
        """Run a job as job() does, and sample what its CPU does."""
        assert self.guest.process
        pid = self.guest.process.pid
        with perf.sampling(perf.CPU_TIME, pid, self.perf_data) as self.switch:
            sample = self.job(function, job, variant, ios)
        self.switch = lambda on: None
        return sample | parts.cpu_time(perf.samples(self.perf_data), pid,
                                       parts.layout_of(self.guest.kernel), code)

    def count(self, device: str, variant: Variant, jobs: list[Job], facts: Sample) -> None:
        """Record events and, with perf, instructions of each job; then measure memory."""
        for job in jobs:
            self.counted[job, variant] = [
                self.job("traced_job", job, variant, ios=TRACED_IOS[job.kib])]
            if self.perf:
                self.instructions[job, variant] = [self.sample(job, variant, facts)]
        self.memory[device, variant] = self.step("memory", device, variant)

    def sample(self, job: Job, variant: Variant, facts: Sample) -> Sample:
        """The instructions of a job, without those of starting and ending fio."""
        assert self.guest.process
        pid = self.guest.process.pid
        samples = []
        for ios in (job.processes, 0):
            with perf.sampling(perf.INSTRUCTIONS, pid, self.perf_data) as self.switch:
                sample = self.job("job", job, variant, ios, PERF_MS)
            self.switch = lambda on: None
            samples.append(sample | perf.instructions(perf.samples(self.perf_data),
                                                      code_of(facts)))
        return outside(difference(*samples))

    def emulate(self, _device: str, variant: Variant, jobs: list[Job], facts: Sample) -> None:
        """Count the instructions of each job in a guest that QEMU emulates."""
        guest = self.guest
        assert isinstance(guest, CountingGuest)
        mounted = 0             # connections of the mount for which there was a job
        for job in jobs:
            # The first job with a mount also looks for programs and files, and the kernel
            # fills its caches, so it is not counted.
            if job.nconnect != mounted:
                self.job("job", job, variant, job.processes)
                mounted = job.nconnect
            samples, functions = [], []
            for ios in (job.processes, EMULATED_IOS[job.kib]):
                samples.append(self.job("counted_job", job, variant, ios) |
                               guest.counted(code_of(facts)))
                if variant.module == "ours":
                    functions.append(guest.functions(facts["text"]))
            found = outside(difference(*samples))
            self.instructions[job, variant] = [found]
            if functions:
                self.functions[job, variant] = per_rpc(functions, found["rpcs"])

    def rest(self, device: str, variant: Variant, _jobs: list[Job], _facts: Sample) -> None:
        """Measure the memory of many connections that rest."""
        most = INBOX_CONNECTIONS if variant == INBOX else CONNECTIONS
        mounts = max(min(CONNECTIONS, most) // 16, 1)
        self.rested[device, variant] = self.step("rest", device, variant,
                                                 LIMIT + REST + 5 * mounts,
                                                 MOUNTS=mounts, REST=REST)

    def all(self) -> None:
        """Measure everything that was selected. Without rounds, that is what TCG counts."""
        compared = [job for job in self.rows if job.compares]
        self.guest.boot()
        if not self.rounds:
            return self.sessions("instructions", self.emulate, compared)
        self.time()
        self.sessions("counting", self.count, compared)
        # Memory that was used before may be in caches, so these get a new guest.
        resting = [job for job in self.jobs if job.direction == "memory"]
        if resting:
            self.reboot()
            self.sessions("memory", self.rest, resting)
        if compared and not self.perf and not SAMPLE:
            self.make_guest = counting_guest
            self.reboot()
            self.sessions("instructions", self.emulate, compared)


def make_guest() -> Guest:
    """The guest for everything but instructions: both modules, the test device, the loop."""
    guest = Guest("um", BUILD / "logs/bench", "ours", rdma=MEM)
    folder = guest.share / "lib/modules" / guest.kernel.release / "extra"
    folder.mkdir(parents=True, exist_ok=True)
    shutil.copy(bare.build(guest.kernel), folder)
    return guest


def counting_guest() -> CountingGuest:
    """The guest for what TCG counts."""
    return CountingGuest(BUILD / "logs/bench-instructions")


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
    return {"transport": pages(""),
            "device": (range(facts["device_text"], facts["device_end"]) if built_in
                       else pages("device_")),
            **{name: pages(f"{name}_") for name in OTHERS if f"{name}_text" in facts}}


def per_rpc(functions: Sequence[Sample], rpcs: int) -> Sample:
    """Instructions of 100 RPCs in each function, from those of a short job and a long one."""
    short, long = functions
    return {name: round(100 * (count - short.get(name, 0)) / rpcs)
            for name, count in long.items()}


def instructions_text(run: Bench) -> str:
    """
    Instructions per RPC of the kernel, of modules, and of our module's functions, those with
    most first.
    """
    lines = []
    for (job, variant), (sample,) in run.instructions.items():
        lines.append(f"{job.name}, {variant.name}")
        lines += [f"{sample[name] / sample['rpcs']:10.0f} {name}"
                  for name in ("instructions", "device", "transport", *OTHERS) if name in sample]
        functions = run.functions.get((job, variant), {})
        lines += [f"{count / 100:14.1f} {name}" for name, count in
                  sorted(functions.items(), key=lambda item: -item[1]) if count > 0]
    return "".join(f"{line}\n" for line in lines)


def without_start(sample: Sample, start: Sample) -> Sample:
    """Subtract the times that starting and ending fio takes."""
    return sample | {key: value - start[key] for key, value in sample.items()
                     if key.endswith("_ns")}


def outside(sample: Sample) -> Sample:
    """Add the instructions outside the device."""
    return sample | {"outside": sample["instructions"] - sample["device"]}


def finish(run: Bench, pattern: str) -> None:
    """Print what was measured, and leave it in build/. A run of all jobs draws the chart."""
    found = run.measured()
    say()
    report.report(found)
    kernel = kernels.kernel("um" if run.rounds else run.guest.name).release
    say(f"# kernel {kernel}" + " in User-Mode Linux" * bool(run.rounds))
    report.write_json(found, kernel, BUILD / "bench.json")
    say(f"# everything that was measured is in {BUILD / 'bench.json'}")
    if run.functions:
        (BUILD / "instructions.txt").write_text(instructions_text(run))
        say(f"# instructions in each function of our module are in {BUILD / 'instructions.txt'}")
    file = CHART if pattern == "*" and run.rounds else BUILD / "bench.svg"
    if chart.draw(found, file, BUILD):
        say(f"# the chart is in {file}")


def bench(rounds: int, pattern: str) -> bool:
    """Measure and print, whichever variant is better."""
    run = Bench(rounds, pattern)
    if not run.jobs:
        raise LabError(f"no job matches {pattern}: the jobs are "
                       + ", ".join(job.name for job in JOBS))
    start = time.monotonic()
    try:
        run.all()
    except GuestFailure as failure:
        say("\n".join(run.guest.last_lines()))
        raise LabError(f"the guest failed: {failure}; see {run.guest.console}") from failure
    finally:
        run.guest.kill()
    say(f"# {time.monotonic() - start:.0f} s")
    finish(run, pattern)
    return True
