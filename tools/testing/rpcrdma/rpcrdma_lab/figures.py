# SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
"""The figures of the benchmark: its variants and jobs, and how samples of them are compared."""

import dataclasses
import itertools
import json
import math
import re
import statistics
from collections.abc import Callable, Iterable, Mapping, Sequence

MEM = "mem"
DEVICES = (MEM, "siw", "rxe")

Sample = dict[str, int]         # figures that were measured together

NOTHING = "–"                   # in a cell: this is not measured here


@dataclasses.dataclass(frozen=True)
class Variant:
    """What is measured: a module, and the highest protocol version that it may use."""
    name: str
    module: str
    version: int


INBOX = Variant("inbox", "inbox", 1)
OURS = Variant("ours", "ours", 1)
OURS_2 = Variant("ours version 2", "ours", 2)
VARIANTS = (INBOX, OURS, OURS_2)
ARROWS = " → ".join(variant.name for variant in VARIANTS)


def variants_on(device: str) -> tuple[Variant, ...]:
    """
    What is measured on a device. There are so many jobs for mem that version 2 is compared
    on the others only.
    """
    return (INBOX, OURS) if device == MEM else VARIANTS


# Jobs

@dataclasses.dataclass(frozen=True)
class Job:
    """
    One row of the tables. What it does is its direction: fio's read or write; create, stat
    or remove for a tree of files; bare for RDMA Writes without NFS; memory for connections
    that rest.
    """
    device: str
    direction: str
    kib: int = 0                # the size of one I/O
    processes: int = 1
    nconnect: int = 1           # connections of the mount
    bandwidth: int = 0          # of the device, in MB/s; 0: as fast as it can

    @property
    def name(self) -> str:
        """Its name in tables and patterns."""
        size = "" if not self.kib else " 1m" if self.kib == 1024 else f" {self.kib}k"
        what = {"bare": "bare write", "memory": "memory"}.get(self.direction, self.direction)
        return "".join([
            f"{self.device} {what}{size}",
            f" x{self.processes}" if self.processes > 1 else "",
            f" nconnect={self.nconnect}" if self.nconnect > 1 else "",
            f" at {self.bandwidth} MB/s" if self.bandwidth else ""])

    @property
    def is_io(self) -> bool:
        """Whether fio does it."""
        return self.direction in ("read", "write")

    @property
    def is_tree(self) -> bool:
        """Whether it works on a tree of files."""
        return self.direction in ("create", "stat", "remove")

    @property
    def compares(self) -> bool:
        """Whether it compares the variants: all is measured of it, not only the time."""
        return (self.is_io or self.is_tree) and not self.bandwidth

    def variables(self, ios: int, milliseconds: int) -> dict[str, str | int]:
        """What guest/bench.sh gets."""
        return {"RW": self.direction, "KB": self.kib, "NUMJOBS": self.processes,
                "NCONNECT": self.nconnect, "BANDWIDTH": self.bandwidth,
                "IOS": ios, "MS": milliseconds}


SIZES = (4, 8, 64, 1024)
# The bandwidth at which reads are compared with the bare loop: one CPU can do several
# times as much, so the device is what limits both.
WIRE = 1000

MEM_JOBS = [
    *(Job(MEM, direction, kib, processes) for processes in (1, 8) for kib in SIZES
      for direction in ("read", "write")),
    *(Job(MEM, direction) for direction in ("create", "stat", "remove")),
    *(Job(MEM, "read", 4, 8, nconnect) for nconnect in (4, 16)),
    Job(MEM, "bare", 1024),
    *(Job(MEM, direction, 1024, processes, bandwidth=WIRE)
      for direction, processes in (("bare", 1), ("read", 1), ("read", 8))),
    Job(MEM, "memory")]

JOBS = MEM_JOBS + [Job(device, *job) for device in DEVICES if device != MEM for job in (
    ("read", 4, 1), ("write", 4, 1), ("read", 8, 1), ("read", 64, 1), ("write", 64, 1),
    ("read", 1024, 1), ("write", 1024, 1), ("read", 4, 8), ("write", 4, 8))]

Samples = Mapping[tuple[Job, Variant], Sequence[Sample]]    # of each job with each variant


# Figures

@dataclasses.dataclass(frozen=True)
class Figure:
    """A column: its title, and how its figure is computed from a sample."""
    title: str
    digits: int
    of: Callable[[Sample], float]
    more_is_better: bool = False

    def text(self, number: float) -> str:
        """The figure as it is printed."""
        return NOTHING if math.isnan(number) else f"{number:,.{self.digits}f}"


def per_rpc(title: str, key: str, digits: int, unit: float = 1) -> Figure:
    """A figure that counts something for each RPC, in a unit of so many."""
    return Figure(title, digits, lambda sample: quotient(sample, key, "rpcs") / unit)


def quotient(sample: Sample, key: str, by: str) -> float:
    """One value of a sample divided by another; nan if there is none."""
    return sample[key] / sample[by] if key in sample and sample.get(by) else math.nan


def latency(title: str, key: str) -> Figure:
    """A percentile of fio's latencies."""
    return Figure(title, 1, lambda sample: sample.get(key, math.nan) / 1000)


IOPS = Figure("IOPS", 0, lambda sample: 1e6 * quotient(sample, "ops", "us"), True)
LATENCIES = (latency("p50", "p50"), latency("p99", "p99"), latency("p99.9", "p999"))
CPU_TIME = per_rpc("CPU time", "cpu_ns", 1, 1000)
SWITCHES = per_rpc("switches", "switches", 1)
CAUSED = per_rpc("switches of the transport", "transport_switches", 2)
INSTRUCTIONS = per_rpc("instructions", "instructions", 0)
OUTSIDE = per_rpc("instructions outside the device", "outside", 0)
TRANSPORT = per_rpc("instructions in the transport", "transport", 0)

# What each group of samples is for: of jobs that run for a time, of jobs while every event
# is recorded, and of jobs whose instructions are counted.
TIMED = (IOPS, *LATENCIES, CPU_TIME, SWITCHES)
WORK_REQUESTS = ("sends", "sends_inv", "writes", "writes_imm", "reads", "reads_inv",
                 "registrations", "invalidations")
DEVICE = (Figure("work requests", 2, lambda sample: sum(
              quotient(sample, f"mem_{name}", "rpcs") for name in WORK_REQUESTS)),
          per_rpc("registrations", "mem_registrations", 2),
          per_rpc("doorbells", "mem_doorbells", 2),
          per_rpc("interrupts", "mem_interrupts", 2))
COUNTED = (CAUSED, per_rpc("of nfsd", "nfsd_switches", 2), per_rpc("of CQs", "cq_switches", 2),
           per_rpc("of its own work", "own_switches", 2),
           per_rpc("completions", "completions", 2), per_rpc("CQ interrupts", "interrupts", 2),
           per_rpc("CQ polls", "polls", 2), per_rpc("MRs allocated", "allocations", 2),
           per_rpc("DMA maps", "maps", 2), per_rpc("work items", "works", 2),
           per_rpc("packets", "packets", 2))
IN_CODE = (INSTRUCTIONS, OUTSIDE, TRANSPORT)
# Where CPU time may go, see parts.py. If it was sampled, samples of jobs that run for a time
# have a key in ns for each.
PARTS = {"transport": "transport", "device": "device", "ib_core": "ib_core", "sunrpc": "sunrpc",
         "nfs": "NFS client", "nfsd": "nfsd", "switching": "switching", "copies": "copies",
         "kernel": "rest of the kernel", "libraries": "libc", "host": "host's kernel"}
IN_PARTS = tuple(per_rpc(f"µs in {title}", f"{part}_ns", 2, 1000)
                 for part, title in PARTS.items())
SWITCH_COST = Figure("µs of switching per switch", 2,
                     lambda sample: quotient(sample, "switching_ns", "switches") / 1000)


def of_cpu(sample: Sample, what: str) -> float:
    """
    What the guest's kernel ("sampled") or its programs take of the time on the clock that
    other processes of the host left them; nan if that was not sampled.
    """
    if "others_ns" not in sample:
        return math.nan
    left = sample["clock_ns"] - sample["others_ns"]
    used = {name: sample[f"{name}_ns"] for name in ("sampled", "programs")}
    return (used | {"idle": left - sum(used.values())})[what] / left


CPU = (Figure("kernel, %", 1, lambda sample: 100 * of_cpu(sample, "sampled")),
       Figure("programs, %", 1, lambda sample: 100 * of_cpu(sample, "programs")),
       Figure("idle, %", 1, lambda sample: 100 * of_cpu(sample, "idle")))
OTHER_PROCESSES = Figure("other processes, % of the clock", 1,
                         lambda sample: 100 * quotient(sample, "others_ns", "clock_ns"))
# IOPS as if no other process had used the guest's CPU
IOPS_ALONE = Figure("IOPS of the CPU that others leave", 0, lambda sample: math.nan
                    if "others_ns" not in sample else
                    1e9 * sample["ops"] / (sample["clock_ns"] - sample["others_ns"]), True)
SAMPLED = (*IN_PARTS, SWITCH_COST, *CPU, OTHER_PROCESSES, IOPS_ALONE)


# Samples

def parse(lines: Iterable[str]) -> Sample:
    """The figures in lines of NAME=NUMBER; other lines are ignored."""
    found: Sample = {}
    for line in lines:
        if re.fullmatch(r"(\w+=\S+ ?)+", line):
            found |= {key: int(value, 0) for key, value in
                      (word.split("=") for word in line.split())}
    return found


PERCENTILES = {"p50": "50.000000", "p99": "99.000000", "p999": "99.900000"}


def parse_fio(text: str, direction: str) -> Sample:
    """
    What fio did in one direction, from its JSON: I/Os, microseconds that they took in sum
    on the clock, and percentiles of their latencies in ns. Messages may be before the JSON.
    """
    done = json.loads(text[text.index("{"):])["jobs"][0][direction]
    found: Sample = {"ops": int(done["total_ios"]), "us": 1000 * int(done["runtime"])}
    percentiles = done["clat_ns"].get("percentile", {})
    return found | {key: int(percentiles[name]) for key, name in PERCENTILES.items()
                    if name in percentiles}


def difference(little: Sample, much: Sample) -> Sample:
    """Subtract a sample of a job with few I/Os: this removes the costs of start and end."""
    return {key: much[key] - little[key] for key in much if key in little}


# Comparisons

@dataclasses.dataclass(frozen=True)
class Comparison:
    """
    All variants in one row and column: their medians; and for each variant after the first,
    its ratios to the one before it in each round, sorted.
    """
    figure: Figure
    medians: list[float]
    ratios: list[list[float]]

    def arrows(self) -> str:
        """The medians in one cell."""
        return (NOTHING if all(map(math.isnan, self.medians))
                else " → ".join(map(self.figure.text, self.medians)))

    def ratio(self, pair: int = 0) -> float:
        """The median ratio of a pair, or nan."""
        return median(self.ratios[pair]) if pair < len(self.ratios) else math.nan

    def worse(self, pair: int) -> float | None:
        """The median ratio of a pair, if the second of it is worse by half a percent or more."""
        ratio = round(self.ratio(pair), 2)
        return ratio if (ratio < 1 if self.figure.more_is_better else ratio > 1) else None


def pooled(samples: Sequence[Sample]) -> Sample:
    """The sums of what several samples have counted."""
    return {key: sum(sample[key] for sample in samples) for key in (samples[0] if samples else ())}


def median(numbers: Sequence[float]) -> float:
    """The median; nan if there is none."""
    return statistics.median(numbers) if numbers else math.nan


def geometric_mean(numbers: Iterable[float]) -> float:
    """The geometric mean of those that are numbers; nan if there are none."""
    found = [number for number in numbers if number > 0]
    return statistics.geometric_mean(found) if found else math.nan


def compare_one(job: Job, samples: Samples, figure: Figure) -> Comparison:
    """One row and column."""
    variants = variants_on(job.device)
    found = [[figure.of(sample) for sample in samples.get((job, variant), ())]
             for variant in variants]
    ratios = [[b / a if a else math.nan for a, b in zip(first, second)]
              for first, second in itertools.pairwise(found)]
    return Comparison(figure, [median(numbers) for numbers in found],
                      [sorted(numbers) for numbers in ratios])


# Text

def ratio_text(ratio: float) -> str:
    """A ratio."""
    return NOTHING if math.isnan(ratio) else f"{ratio:.2f}"


def spread_text(ratios: Sequence[float]) -> str:
    """The median of sorted ratios, and their range if there are several."""
    middle = ratio_text(median(ratios))
    return (middle if len(ratios) < 2 or middle == NOTHING
            else f"{middle} ({ratios[0]:.2f} to {ratios[-1]:.2f})")


def markdown(head: Sequence[str], body: Iterable[Sequence[str]]) -> str:
    """A table in Markdown, with columns that are aligned."""
    rows = [head, *body]
    widths = [max(len(row[column]) for row in rows) for column in range(len(head))]
    lines = ["| " + " | ".join(cell.ljust(width) if not column else cell.rjust(width)
                               for column, (cell, width) in enumerate(zip(row, widths))) + " |"
             for row in rows]
    rule = "|".join("-" * (width + 2) if not column else "-" * (width + 1) + ":"
                    for column, width in enumerate(widths))
    return "\n".join([lines[0], f"|{rule}|", *lines[1:]])
