# SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
"""
`make bench`: measure what the kernel's own module and ours cost, ours with both versions of
the protocol, and compare them.
"""

import collections
import fnmatch
import time
from collections.abc import Callable, Iterator, Sequence

from . import figures, kernels, perf, scenario
from .console import GuestFailure, NoAnswer
from .figures import (ARROWS, COUNTED, INBOX, INSTRUCTIONS, JOBS, PAIRS, TIMED, VARIANTS,
                      Comparison, Job, Sample, Variant, difference, markdown)
from .guest import Guest
from .host import BUILD, LabError, say
from .instructions import PAGE, CountingGuest

LIMIT = 60                      # seconds for one step in the guest
# How often a session is tried with the kernel's own module over siw, which may lose the first
# message of a connection (Documentation/testing.rst)
TRIES = 5

Measure = Callable[[str, Variant, list[Job], Sample], None]

# The load of the machine changes the figures. So jobs are short and are repeated: figures
# that are compared are measured at nearly the same time.
ROUNDS = 3
JOB_MS = 1200
# How many I/Os of each size in KiB a job does while every event is recorded
TRACED_IOS = {4: 1000, 8: 1000, 64: 1000, 1024: 250}
# How long a job takes whose instructions perf samples
PERF_MS = 2000
# How many I/Os of each size a job does whose instructions TCG counts. That is slow, and
# is done only where perf cannot count.
EMULATED_IOS = {4: 1000, 8: 1000, 64: 400, 1024: 100}


class Bench:
    """One guest that runs all variants in turn, and what was measured."""

    def __init__(self, rounds: int, pattern: str) -> None:
        self.rounds = max(rounds, 1)
        self.jobs = [job for job in JOBS
                     if fnmatch.fnmatch(job.name, scenario.pattern_for(pattern))]
        self.make_guest: Callable[[], Guest] = lambda: Guest("um", BUILD / "logs/bench", "ours")
        self.guest = self.make_guest()
        self.perf_data = self.guest.directory / "perf.data"
        self.perf = perf.works(self.perf_data)
        # Samples of each job with each variant: one for each round in timed, one in the others
        self.timed: dict[tuple[Job, Variant], list[Sample]] = collections.defaultdict(list)
        self.counted: dict[tuple[Job, Variant], list[Sample]] = {}
        self.instructions: dict[tuple[Job, Variant], list[Sample]] = {}
        # Of each device with each variant: a sample, and rsize and wsize
        self.memory: dict[tuple[str, Variant], Sample] = {}
        self.sizes: dict[tuple[str, Variant], tuple[int, int]] = {}

    def step(self, function: str, device: str, variant: Variant,
             **variables: str | int) -> Sample:
        """Have the guest run a function. Returns the figures that it printed."""
        lines: list[str] = []
        variables |= {"MODULE": variant.module, "VERSION": variant.version, "DEVICE": device,
                      "ENDS": 1, "END": 1}
        if self.guest.run(variables, "bench", function, LIMIT, lines.append):
            raise LabError("\n".join([f"{function} failed with {device}, {variant.name}:",
                                      *lines]))
        return figures.parse(lines)

    def job(self, function: str, job: Job, variant: Variant, ios: int = 0,
            milliseconds: int = JOB_MS) -> Sample:
        """Run a job for a number of I/Os or, if that is 0, for a time."""
        return self.step(function, job.device, variant, **job.variables(ios, milliseconds))

    def sessions(self, what: str, measure: Measure, variants: Sequence[Variant] = VARIANTS
                 ) -> None:
        """Measure with each variant on each device that has jobs."""
        for device in dict.fromkeys(job.device for job in self.jobs):
            for variant in variants:
                self.session(what, device, variant, measure)

    def session(self, what: str, device: str, variant: Variant, measure: Measure) -> None:
        """
        Measure with an NFS server and a mount of it. A failure of the kernel's own module that
        is known leads to another try.
        """
        tries = TRIES if (device, variant) == ("siw", INBOX) else 1
        for left in reversed(range(tries)):
            try:
                return self.one_session(what, device, variant, measure)
            except NoAnswer as failure:
                if not left:
                    raise
                say(f"# {what}: {device} {variant.name}: {failure}: again, in a new guest")
                self.reboot()

    def one_session(self, what: str, device: str, variant: Variant, measure: Measure) -> None:
        """Measure with an NFS server and a mount of it, once."""
        start = time.monotonic()
        facts = self.step("up", device, variant)
        self.sizes[device, variant] = facts["rsize"], facts["wsize"]
        measure(device, variant, [job for job in self.jobs if job.device == device], facts)
        self.step("down", device, variant)
        say(f"# {what}: {device} {variant.name}, {time.monotonic() - start:.0f} s")

    def reboot(self) -> None:
        """End the guest and boot a new one."""
        self.guest.kill()
        self.guest = self.make_guest()
        self.guest.boot()

    def time(self) -> None:
        """Run each job for a time, in each round."""
        for number in range(1, self.rounds + 1):
            # The variant that is first in one round is last in the next one, so that a
            # change of the machine's load does not favour one of them.
            order = VARIANTS if number % 2 else VARIANTS[::-1]
            self.sessions(f"round {number} of {self.rounds}", self.time_jobs, order)

    def time_jobs(self, _device: str, variant: Variant, jobs: list[Job], _facts: Sample) -> None:
        """Run each job for a time. A session that fails leaves no samples."""
        for job, sample in [(job, self.job("job", job, variant)) for job in jobs]:
            self.timed[job, variant].append(sample)

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
        samples = []
        for ios in (job.processes, 0):
            with perf.sampling(self.guest.process.pid, self.perf_data):
                sample = self.job("job", job, variant, ios, PERF_MS)
            samples.append(sample | perf.sampled_instructions(self.perf_data, text_of(facts)))
        return difference(*samples)

    def emulate(self, _device: str, variant: Variant, jobs: list[Job], facts: Sample) -> None:
        """Count the instructions of each job in a guest that QEMU emulates."""
        guest = self.guest
        assert isinstance(guest, CountingGuest)
        # The first job also looks for programs and files, so it is not counted.
        self.job("job", jobs[-1], variant, jobs[-1].processes)
        for job in jobs:
            self.instructions[job, variant] = [difference(*(
                self.job("counted_job", job, variant, ios) | guest.counted(text_of(facts))
                for ios in (job.processes, EMULATED_IOS[job.kib])))]

    # Reporting

    def report(self) -> None:
        """Print all tables, and what is worse than what it is compared with."""
        worse = self.report_jobs()
        self.report_events()
        self.report_memory()
        for (device, variant), sizes in self.sizes.items():
            if sizes != self.sizes[device, INBOX]:
                say(f"On {device} rsize and wsize are {self.sizes[device, INBOX]} with inbox "
                    f"and {sizes} with {variant.name}: their RPCs cannot be compared.")
        for (first, second), cells in zip(PAIRS, worse):
            name = second.name.capitalize()
            say(f"{name} is worse than {first.name} in: " + "; ".join(cells) if cells else
                f"{name} is at least as good as {first.name} in every row of the first table.")

    def report_jobs(self) -> list[list[str]]:
        """Print the first table. Returns for each of PAIRS the cells in which it is worse."""
        rows = []
        worse: list[list[str]] = [[] for _ in PAIRS]
        for job, row in self.compared():
            rows.append([job.name, *(text for cell in row for text in cell.cells())])
            for cell in row:
                for pair, cells in enumerate(worse):
                    if (ratio := cell.worse(pair)) is not None:
                        cells.append(f"{job.name}: {cell.figure.title} {ratio:.2f}")
        columns = [title for figure in TIMED + INSTRUCTIONS for title in figures.titles(figure)]
        say(f"Medians of {self.rounds} rounds; a ratio is the median of the rounds' ratios "
            "(least to most).")
        say("IOPS: more is better. All other figures: less is better. The context switches are "
            "those of the whole guest.")
        say("Instructions: " + ("of the guest's process, as perf samples them." if self.perf else
                                "of a guest's kernel, Debian's 6.12, as QEMU's TCG counts them "
                                "(perf cannot count any on this machine)."))
        say()
        say(markdown(["device, job", *columns], rows))
        say()
        return worse

    def compared(self) -> Iterator[tuple[Job, list[Comparison]]]:
        """The rows of the first table."""
        timed = figures.compare(self.jobs, self.timed, TIMED)
        instructions = figures.compare(self.jobs, self.instructions, INSTRUCTIONS)
        return ((job, row + more) for (job, row), (_, more) in zip(timed, instructions))

    def report_events(self) -> None:
        """Print the table of events."""
        say(f"Per RPC, {ARROWS}, while every event is recorded; less is better.")
        say()
        say(markdown(["device, job", *(figure.title for figure in COUNTED)],
                     [[job.name, *(cell.arrows() for cell in row)]
                      for job, row in figures.compare(self.jobs, self.counted, COUNTED)]))
        say()

    def report_memory(self) -> None:
        """Print the table of memory."""
        rows = []
        for device in dict.fromkeys(device for device, _ in self.memory):
            samples = [self.memory[device, variant] for variant in VARIANTS]
            rows.append([device, *(" → ".join(f"{sample[key] / sample['connections']:,.0f}"
                                              for sample in samples)
                                   for key in ("free", "slab", "lost"))])
        say(f"Memory for each connection, both ends and the device's part, {ARROWS}; "
            "less is better.")
        say()
        say(markdown(["device", "memory, KiB", "of it unreclaimable slab", "not back after umount"],
                     rows))
        say()


def text_of(facts: Sample) -> range:
    """
    The addresses of the module's code, in whole pages. Its last symbol may extend into
    one more page; if not, nothing else has addresses in that page.
    """
    return range(facts["text"] & -PAGE, facts["last_symbol"] + PAGE)


def bench(rounds: int, pattern: str) -> bool:
    """Measure and print, whichever variant is better."""
    run = Bench(rounds, pattern)
    if not run.jobs:
        raise LabError(f"no job matches {pattern}: the jobs are "
                       + ", ".join(job.name for job in JOBS))
    start = time.monotonic()
    try:
        run.guest.boot()
        run.time()
        run.sessions("counting", run.count)
        if not run.perf:
            run.make_guest = lambda: CountingGuest(BUILD / "logs/bench-instructions")
            run.reboot()
            run.sessions("instructions", run.emulate)
    except GuestFailure as failure:
        say("\n".join(run.guest.last_lines()))
        raise LabError(f"the guest failed: {failure}; see {run.guest.console}") from failure
    finally:
        run.guest.kill()
    say(f"# kernel {kernels.kernel('um').release} in User-Mode Linux, "
        f"{time.monotonic() - start:.0f} s")
    say()
    run.report()
    return True
