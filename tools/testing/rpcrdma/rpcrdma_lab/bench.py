# SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
"""`make bench`: what the kernel's own module costs and what ours does, side by side."""

import collections
import contextlib
import dataclasses
import fnmatch
import math
import os
import re
import select
import signal
import statistics
import subprocess
import time
import typing

from . import kernels, scenario
from .guest import Guest, GuestFailure, follow_parent
from .host import BUILD, LabError, say
from .instructions import PAGE, CountingGuest

MODULES = ("inbox", "ours")
DEVICES = ("siw", "rxe")
LIMIT = 60                      # seconds for one step in the guest

# Figures drift with what else the machine does: many short jobs, so that what
# is compared lies close together in time.
ROUNDS = 3
JOB_MS = 1200
# Where every event is recorded, a fixed number of I/Os; fewer of the large ones.
TRACED_IOS = {4: 1000, 8: 1000, 64: 1000, 1024: 250}

# With a prime for a period, samples do not fall into step with a loop.
EVENT = "instructions:u"
PERIOD = 100003
PERF_MS = 2000
# Where perf cannot, TCG counts, which is slow.
EMULATED_IOS = {4: 1000, 8: 1000, 64: 400, 1024: 100}


@dataclasses.dataclass(frozen=True)
class Job:
    """One row of the tables: one fio run."""
    device: str
    direction: str
    kib: int
    processes: int

    @property
    def name(self):
        size = "1m" if self.kib == 1024 else f"{self.kib}k"
        several = f" x{self.processes}" if self.processes > 1 else ""
        return f"{self.device} {self.direction} {size}{several}"

    def variables(self, ios, milliseconds):
        return {"RW": self.direction, "KB": self.kib, "NUMJOBS": self.processes,
                "IOS": ios, "MS": milliseconds}


JOBS = [Job(device, *job) for device in DEVICES for job in (
    ("read", 4, 1), ("write", 4, 1), ("read", 8, 1), ("read", 64, 1), ("write", 64, 1),
    ("read", 1024, 1), ("write", 1024, 1), ("read", 4, 8), ("write", 4, 8))]


@dataclasses.dataclass(frozen=True)
class Figure:
    """A column: what it is called, and what makes it from one sample of a job."""
    title: str
    digits: int
    of: typing.Callable
    more_is_better: bool = False

    def text(self, number):
        return f"{number:,.{self.digits}f}"


def per_rpc(title, key, digits):
    return Figure(title, digits, lambda sample: sample[key] / sample["rpcs"])


TIMED = (Figure("IOPS", 0, lambda sample: 1000 * sample["ops"] / sample["ms"], True),
         per_rpc("switches per RPC", "switches", 1))
INSTRUCTIONS = (per_rpc("instructions per RPC", "instructions", 0),
                per_rpc("in the transport", "transport", 0))
COUNTED = (per_rpc("completions", "completions", 2), per_rpc("CQ interrupts", "interrupts", 2),
           per_rpc("CQ polls", "polls", 2), per_rpc("MRs allocated", "allocations", 2),
           per_rpc("work items", "works", 2), per_rpc("packets", "packets", 2))


# Instructions, where this machine can count them

def perf_counts(scratch):
    """Whether perf samples what we want; where it cannot, some versions of it just say 0."""
    try:
        return not subprocess.run(["perf", "record", "-q", "-e", EVENT, "-c", str(PERIOD),
                                   "-o", scratch, "true"], stdin=subprocess.DEVNULL, timeout=20,
                                  stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
                                  check=False).returncode
    except (OSError, subprocess.TimeoutExpired):
        return False


@contextlib.contextmanager
def sampling(pid, data):
    """Record one process for as long as this lasts, from an exact moment on."""
    (control, to_perf), (from_perf, ack) = os.pipe(), os.pipe()
    argv = ["perf", "record", "-q", "-e", EVENT, "-c", str(PERIOD), "-i", "-p", str(pid),
            "-D", "-1", "--control", f"fd:{control},{ack}", "-o", str(data)]
    # pylint: disable-next=consider-using-with,subprocess-popen-preexec-fn
    perf = subprocess.Popen(argv, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
                            stderr=subprocess.DEVNULL, pass_fds=(control, ack),
                            preexec_fn=follow_parent)
    os.close(control)
    os.close(ack)
    try:
        os.write(to_perf, b"enable\n")
        if not select.select([from_perf], [], [], LIMIT)[0] or not os.read(from_perf, 16):
            raise LabError("perf does not begin to sample")
        yield
    finally:
        perf.send_signal(signal.SIGINT)
        try:
            perf.wait(LIMIT)
        except subprocess.TimeoutExpired:
            perf.kill()
            perf.wait()
        os.close(to_perf)
        os.close(from_perf)


def sampled_instructions(data, text):
    """All instructions, and those in a range of addresses."""
    done = subprocess.run(["perf", "script", "-i", data, "-F", "ip"], stdin=subprocess.DEVNULL,
                          stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True,
                          check=True)
    addresses = [int(word, 16) for word in done.stdout.split()]
    inside = sum(address in text for address in addresses)
    return {"instructions": PERIOD * len(addresses), "transport": PERIOD * inside}


# Measuring

class Bench:
    """One guest, both modules in turn, and what they were seen to do."""

    def __init__(self, rounds, pattern):
        self.rounds = max(rounds, 1)
        self.jobs = [job for job in JOBS
                     if fnmatch.fnmatch(job.name, scenario.pattern_for(pattern))]
        self.guest = Guest("um", BUILD / "logs/bench", "ours")
        self.perf_data = self.guest.directory / "perf.data"
        self.perf = perf_counts(self.perf_data)
        self.timed = collections.defaultdict(list)      # (job, module): samples
        self.counted = {}                               # (job, module): samples
        self.instructions = {}                          # likewise
        self.memory = {}                                # (device, module): a sample
        self.sizes = {}                                 # likewise

    def step(self, function, device, module, **variables):
        """Have the guest do one thing. Returns the figures that it printed."""
        lines = []
        variables |= {"MODULE": module, "DEVICE": device, "ENDS": 1, "END": 1}
        if self.guest.run(variables, "bench", function, LIMIT, lines.append):
            raise LabError("\n".join([f"{function} failed with {device}, {module}:", *lines]))
        return figures(lines)

    def job(self, function, job, module, ios=0, milliseconds=JOB_MS):
        return self.step(function, job.device, module, **job.variables(ios, milliseconds))

    @contextlib.contextmanager
    def session(self, what, device, module):
        """An NFS server and a mount of it, with one of the modules."""
        start = time.monotonic()
        facts = self.step("up", device, module)
        self.sizes[device, module] = facts["rsize"], facts["wsize"]
        yield facts
        self.step("down", device, module)
        say(f"# {what}: {device} {module}, {time.monotonic() - start:.0f} s")

    def sessions(self, what, modules):
        """A session with each module for each device that has jobs."""
        for device in dict.fromkeys(job.device for job in self.jobs):
            jobs = [job for job in self.jobs if job.device == device]
            for module in modules:
                with self.session(what, device, module) as facts:
                    yield device, module, jobs, facts

    def time(self):
        for number in range(1, self.rounds + 1):
            # Whoever is first now is second next time: what drifts favours nobody.
            order = MODULES if number % 2 else MODULES[::-1]
            for _, module, jobs, _ in self.sessions(f"round {number} of {self.rounds}", order):
                for job in jobs:
                    self.timed[job, module].append(self.job("job", job, module))

    def count(self):
        for device, module, jobs, facts in self.sessions("counting", MODULES):
            for job in jobs:
                self.counted[job, module] = [
                    self.job("traced_job", job, module, ios=TRACED_IOS[job.kib])]
                if self.perf:
                    self.instructions[job, module] = [self.sample(job, module, facts)]
            self.memory[device, module] = self.step("memory", device, module)

    def sample(self, job, module, facts):
        """A job's instructions, without those of starting and ending fio."""
        samples = []
        for ios in (job.processes, 0):
            with sampling(self.guest.process.pid, self.perf_data):
                sample = self.job("job", job, module, ios, PERF_MS)
            samples.append(sample | sampled_instructions(self.perf_data, text_of(facts)))
        return difference(samples)

    def emulate(self):
        """Count the instructions of the jobs in a guest that QEMU emulates."""
        self.guest.kill()
        self.guest = CountingGuest(BUILD / "logs/bench-instructions")
        self.guest.boot()
        for _, module, jobs, facts in self.sessions("instructions", MODULES):
            # Programs and files are looked for once, which is no job's business.
            self.job("job", jobs[-1], module, jobs[-1].processes)
            for job in jobs:
                self.instructions[job, module] = [difference([
                    self.job("counted_job", job, module, ios) | self.guest.counted(text_of(facts))
                    for ios in (job.processes, EMULATED_IOS[job.kib])])]

    # Reporting

    def compare(self, samples, table):
        """Medians of both modules and of the ratio in each round, for each figure."""
        for job in self.jobs:
            row = []
            for figure in table:
                inbox, ours = ([figure.of(sample) for sample in samples[job, module]]
                               for module in MODULES)
                ratios = sorted(b / a if a else math.nan for a, b in zip(inbox, ours))
                row.append((figure, statistics.median(inbox), statistics.median(ours), ratios))
            yield job, row

    def report(self):
        rows, worse = [], []
        for job, row in self.compared():
            cells = [job.name]
            for figure, inbox, ours, ratios in row:
                ratio = statistics.median(ratios)
                cells += [figure.text(inbox), figure.text(ours), ratio_text(ratios)]
                behind = round(ratio, 2) < 1 if figure.more_is_better else round(ratio, 2) > 1
                if behind:
                    worse.append(f"{job.name}: {figure.title} {ratio:.2f}")
            rows.append(cells)
        titles = [f"{figure.title}: inbox | ours | ours/inbox".split(" | ")
                  for figure in TIMED + INSTRUCTIONS]
        say(f"Medians of {self.rounds} rounds, ours/inbox is the median of the rounds' ratios "
            "(least to most).")
        say("IOPS: more is better. Context switches of the guest, and what else is here: "
            "less is better.")
        say("Instructions: " + ("of the guest's process, as perf samples them." if self.perf else
                                "of a guest's kernel, Debian's 6.12, as QEMU's TCG counts them "
                                "(perf cannot count any on this machine)."))
        say()
        say(markdown(["device, job", *sum(titles, [])], rows))
        say()
        say("Per RPC, inbox → ours, while every event is recorded; less is better.")
        say()
        say(markdown(["device, job", *(figure.title for figure in COUNTED)], [
            [job.name, *(f"{figure.text(inbox)} → {figure.text(ours)}"
                         for figure, inbox, ours, _ in row)]
            for job, row in self.compare(self.counted, COUNTED)]))
        say()
        say("Memory for each connection, both ends and the device's part, inbox → ours; "
            "less is better.")
        say()
        say(markdown(["device", "memory, KiB", "of it unreclaimable slab", "not back after umount"],
                     self.memory_rows()))
        say()
        for (device, _), sizes in self.sizes.items():
            if sizes != self.sizes[device, "inbox"]:
                say(f"On {device} rsize and wsize are {self.sizes[device, 'inbox']} with inbox "
                    f"and {sizes} with ours: an RPC is not the same thing.")
        say("Ours is behind in: " + "; ".join(worse) if worse
            else "Ours is at least as good as inbox in every row of the first table.")

    def compared(self):
        """The rows of the first table."""
        timed = self.compare(self.timed, TIMED)
        instructions = self.compare(self.instructions, INSTRUCTIONS)
        return ((job, row + more) for (job, row), (_, more) in zip(timed, instructions))

    def memory_rows(self):
        for device in dict.fromkeys(device for device, _ in self.memory):
            inbox, ours = (self.memory[device, module] for module in MODULES)
            yield [device, *(f"{inbox[key] / inbox['connections']:,.0f} → "
                             f"{ours[key] / ours['connections']:,.0f}"
                             for key in ("free", "slab", "lost"))]


def text_of(facts):
    """
    The module's text. Behind its last symbol it may reach into one more page;
    behind its end no address is in use for a page.
    """
    return range(facts["text"] & -PAGE, facts["last_symbol"] + PAGE)


def difference(samples):
    little, much = samples
    return {key: much[key] - little[key] for key in much}


def figures(lines):
    """What lines of NAME=NUMBER say, among lines that say other things."""
    found = {}
    for line in lines:
        if re.fullmatch(r"(\w+=\S+ ?)+", line):
            found |= {key: int(value, 0) for key, value in
                      (word.split("=") for word in line.split())}
    return found


def ratio_text(ratios):
    middle = f"{statistics.median(ratios):.2f}"
    return middle if len(ratios) == 1 else f"{middle} ({ratios[0]:.2f} to {ratios[-1]:.2f})"


def markdown(head, rows):
    """A table that reads well as it is, and is one in Markdown too."""
    rows = [head, *rows]
    widths = [max(len(row[column]) for row in rows) for column in range(len(head))]
    lines = ["| " + " | ".join(cell.ljust(width) if not column else cell.rjust(width)
                               for column, (cell, width) in enumerate(zip(row, widths))) + " |"
             for row in rows]
    rule = "|".join("-" * (width + 2) if not column else "-" * (width + 1) + ":"
                    for column, width in enumerate(widths))
    return "\n".join([lines[0], f"|{rule}|", *lines[1:]])


def bench(rounds, pattern):
    """Measure, print, and be content whoever wins."""
    run = Bench(rounds, pattern)
    if not run.jobs:
        raise LabError(f"no job matches {pattern}; they are "
                       + ", ".join(job.name for job in JOBS))
    start = time.monotonic()
    try:
        run.guest.boot()
        run.time()
        run.count()
        if not run.perf:
            run.emulate()
    except GuestFailure as failure:
        say("\n".join(run.guest.last_lines()))
        raise LabError(f"the guest failed: {failure}; console: {run.guest.console}") from failure
    finally:
        run.guest.kill()
    say(f"# kernel {kernels.kernel('um').release} in User-Mode Linux, "
        f"{time.monotonic() - start:.0f} s")
    say()
    run.report()
    return True
