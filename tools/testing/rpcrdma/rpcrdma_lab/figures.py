# SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
"""The figures of the benchmark: its variants and jobs, and how samples of them are compared."""

import dataclasses
import json
import math
import re
import statistics
from collections.abc import Callable, Iterable, Mapping, Sequence

from . import ratio
from .ratio import NOTHING, Ratio

MEM = "mem"
DEVICES = (MEM, "siw", "rxe")

Sample = dict[str, int]         # figures that were measured together


@dataclasses.dataclass(frozen=True)
class Variant:
    """What is measured: a module, how many octets it sends inline, and its highest version."""
    name: str
    module: str
    inline: int
    version: int = 1


INBOX = Variant("inbox", "inbox", 4096)             # as it is
TUNED = Variant("inbox tuned", "inbox", 16384)
OURS = Variant("ours", "ours", 16384)               # as it is
OURS_4096 = Variant("ours at 4096", "ours", 4096)
OURS_2 = Variant("ours version 2", "ours", 16384, version=2)
TCP = Variant("TCP", "tcp", 0)                      # over the loopback device
VARIANTS = (INBOX, TUNED, OURS, OURS_4096, OURS_2, TCP)

# Two variants, of which the first is divided by the second
Pair = tuple[Variant, Variant]
PAIRS: tuple[Pair, ...] = ((OURS, TUNED), (OURS, INBOX), (OURS_4096, INBOX), (OURS_2, OURS),
                           (OURS, TCP))


# Jobs

# Those of guest/programs.sh
PROGRAMS = ("tar-x", "tar-c", "rsync", "git-clone", "git-status", "make-j2", "pgbench", "sqlite",
            "overlayfs", "swap")
# Jobs that are done only if they are called by these words
APART = ("memory", "program", "scale")


@dataclasses.dataclass(frozen=True)
class Job:
    """
    One row of the tables. What it does is its direction: fio's read or write, or 70 % reads among
    writes at random places; create, stat or remove for a tree of files; one of PROGRAMS; bare for
    RDMA Writes without NFS; memory for connections that rest.
    """
    device: str
    direction: str
    kib: int = 0                # the size of one I/O
    processes: int = 1
    buffered: bool = False      # through the client's page cache
    bandwidth: int = 0          # of the device, in MB/s; 0: as fast as it can
    connections: int = 0        # see guest/scale.sh; 0: one

    @property
    def name(self) -> str:
        """Its name in tables and patterns."""
        if self.connections:
            return f"scale {self.connections}"
        size = "" if not self.kib else " 1m" if self.kib == 1024 else f" {self.kib}k"
        what = {"bare": "bare write", "randrw": "mix",
                **{name: f"program {name}" for name in PROGRAMS}}.get(self.direction, self.direction)
        return "".join([
            self.device, " buffered" * self.buffered, f" {what}{size}",
            f" x{self.processes}" if self.processes > 1 else "",
            f" at {self.bandwidth} MB/s" if self.bandwidth else ""])

    @property
    def variants(self) -> tuple[Variant, ...]:
        """
        The variants that it is measured with. Inbox's inline sizes matter where data is inline
        with those of ours alone. Version 2 is left out on mem, which has many jobs.
        """
        if self.bandwidth:
            return (OURS,)
        if self.direction == "memory" or self.connections:
            return (INBOX, OURS)
        if self.program:
            return (INBOX, TUNED, OURS, TCP)
        if self.device != MEM:
            return (INBOX, TUNED, OURS, *[OURS_2] * (self.kib == 4))
        return (INBOX, TUNED, OURS, *[OURS_4096] * (self.kib in (4, 8) and self.processes == 1))

    @property
    def program(self) -> bool:
        """Whether it is a program that users know."""
        return self.direction in PROGRAMS

    @property
    def fio(self) -> bool:
        """Whether fio does it."""
        return self.direction not in ("bare", "memory", *PROGRAMS)

    @property
    def compares(self) -> bool:
        """
        Whether it compares the variants: all is measured of it, not only the time, and means and
        goals are about it.
        """
        return (self.direction not in ("bare", "memory") and not self.bandwidth
                and not self.connections)

    def variables(self, ios: int, milliseconds: int) -> dict[str, str | int]:
        """What guest/bench.sh, guest/programs.sh or guest/scale.sh gets."""
        return {"RW": self.direction, "KB": self.kib, "NUMJOBS": self.processes,
                "BUFFERED": int(self.buffered), "BANDWIDTH": self.bandwidth,
                "CONNECTIONS": self.connections, "IOS": ios, "MS": milliseconds}


SIZES = (4, 8, 16, 64, 1024)
# The bandwidth at which reads are compared with the bare loop: one CPU can do several
# times as much, so the device is what limits both.
WIRE = 1000


def everywhere(device: str) -> list[Job]:
    """The jobs that are done on each device."""
    return [*(Job(device, direction, 64, buffered=True) for direction in ("read", "write")),
            *(Job(device, direction) for direction in ("create", "stat", "remove"))]


# How many connections there are; 16 of them are used, by as many processes.
SCALE = (1, 16, 256, 1024, 10000)


def scale_job(connections: int) -> Job:
    """The job with so many connections."""
    return Job(MEM, "read", 4, 16, connections=connections)


JOBS = [
    *(Job(MEM, direction, kib, processes) for processes in (1, 8) for kib in SIZES
      for direction in ("read", "write")),
    *(Job(MEM, "randrw", 8, processes) for processes in (1, 8)),
    *everywhere(MEM),
    *(Job(MEM, direction, 1024, bandwidth=WIRE) for direction in ("bare", "read")),
    *(job for device in DEVICES if device != MEM for job in (
        *(Job(device, direction, 4) for direction in ("read", "write")), *everywhere(device))),
    Job(MEM, "memory"), *(Job(MEM, name) for name in PROGRAMS), *map(scale_job, SCALE)]

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


def per_rpc(title: str, *keys: str, digits: int = 2, unit: float = 1) -> Figure:
    """A figure that counts some things for each RPC, in a unit of so many."""
    return Figure(title, digits, lambda sample: sum(
        quotient(sample, key, "rpcs") for key in keys) / unit)


def quotient(sample: Sample, key: str, by: str) -> float:
    """One value of a sample divided by another; nan if there is none."""
    return sample[key] / sample[by] if key in sample and sample.get(by) else math.nan


def latency(title: str, key: str) -> Figure:
    """A percentile of fio's latencies."""
    return Figure(title, 1, lambda sample: sample.get(key, math.nan) / 1000)


def of_program(title: str, key: str, digits: int, unit: float = 1) -> Figure:
    """A figure of a whole program."""
    return Figure(title, digits, lambda sample: sample[key] / unit if "elapsed_us" in sample
                  else math.nan)


def of_crowd(title: str, *keys: str) -> Figure:
    """
    KiB of each resting connection: what they took, less what the other keys have. It is not known
    of a few, beside which other changes of free memory count.
    """
    def of(sample: Sample) -> float:
        if sample.get("resting", 0) < 100 or not all(key in sample for key in keys):
            return math.nan
        return (sample[keys[0]] - sum(sample[key] for key in keys[1:])) / sample["resting"]
    return Figure(title, 0, of)


def seconds(title: str, key: str) -> Figure:
    """A time that has a key in µs."""
    return Figure(title, 2, lambda sample: sample.get(key, math.nan) / 1e6)


IOPS = Figure("IOPS", 0, lambda sample: 1e6 * quotient(sample, "ops", "us"), True)
P50, P99, P999 = (latency(name, key) for name, key in
                  (("p50", "p50"), ("p99", "p99"), ("p99.9", "p999")))
CPU_TIME = per_rpc("CPU time", "cpu_ns", digits=1, unit=1000)
SWITCHES = per_rpc("switches", "switches")
CAUSED = per_rpc("switches of the transport", "transport_switches")
OUTSIDE = per_rpc("instructions outside the device", "outside", digits=0)
TRANSPORT = per_rpc("instructions in the transport", "transport", digits=0)
ELAPSED = of_program("seconds", "elapsed_us", 2, unit=1e6)
RPCS = of_program("RPCs", "rpcs", 0)

# What each group of samples is for: of jobs that run for a time, of jobs while every event
# is recorded, and of jobs whose instructions are counted.
TIMED = (IOPS, P50, P99, P999, CPU_TIME, SWITCHES)
OF_PROGRAMS = (ELAPSED, RPCS)
DEVICE = (per_rpc("Sends", "mem_sends", "mem_sends_inv"),
          per_rpc("RDMA Writes", "mem_writes", "mem_writes_imm"),
          per_rpc("RDMA Reads", "mem_reads", "mem_reads_inv"),
          per_rpc("registrations", "mem_registrations"),
          per_rpc("invalidations", "mem_invalidations"),
          per_rpc("doorbells", "mem_doorbells"),
          per_rpc("interrupts", "mem_interrupts"))
COUNTED = (CAUSED, per_rpc("of nfsd", "nfsd_switches"), per_rpc("of CQs", "cq_switches"),
           per_rpc("of its own work", "own_switches"),
           per_rpc("completions", "completions"), per_rpc("CQ interrupts", "interrupts"),
           per_rpc("CQ polls", "polls"), per_rpc("MRs allocated", "allocations"),
           per_rpc("DMA maps", "maps"), per_rpc("work items", "works"),
           per_rpc("packets", "packets"))
KIB = of_crowd("KiB of a connection", "used")
KIB_ALONE = of_crowd("KiB without the device", "used", "used_device")
UP = seconds("s until all are up", "up_us")
AGAIN = seconds("s after a restart", "again_us")
SHOW = seconds("s for rpcrdma show", "show_us")
SCALED = (IOPS, CPU_TIME, KIB, KIB_ALONE, UP, AGAIN, SHOW)
IN_CODE = (per_rpc("instructions", "instructions", digits=0), OUTSIDE, TRANSPORT)
# Where CPU time may go, see parts.py. If it was sampled, samples of jobs that run for a time
# have a key in ns for each.
PARTS = {"transport": "transport", "device": "device", "ib_core": "ib_core", "sunrpc": "sunrpc",
         "nfs": "NFS client", "nfsd": "nfsd", "switching": "switching", "copies": "copies",
         "kernel": "rest of the kernel", "libraries": "libc", "host": "host's kernel"}
IN_PARTS = tuple(per_rpc(f"µs in {title}", f"{part}_ns", unit=1000)
                 for part, title in PARTS.items())


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


def parse_fio(text: str) -> Sample:
    """
    What fio did, reads and writes together, from its JSON: I/Os, microseconds that they took in
    sum on the clock, and percentiles of their latencies in ns. Messages may be before the JSON.
    """
    done = json.loads(text[text.index("{"):])["jobs"][0]["mixed"]
    found: Sample = {"ops": int(done["total_ios"]), "us": 1000 * int(done["runtime"])}
    percentiles = done["clat_ns"].get("percentile", {})
    return found | {key: int(percentiles[name]) for key, name in PERCENTILES.items()
                    if name in percentiles}


def difference(little: Sample, much: Sample) -> Sample:
    """Subtract a sample of a job with few I/Os: this removes the costs of start and end."""
    return {key: much[key] - little[key] for key in much if key in little}


# Comparisons

def values(samples: Samples, job: Job, variant: Variant, figure: Figure) -> list[float]:
    """One figure of one job with one variant, in each round."""
    return [figure.of(sample) for sample in samples.get((job, variant), ())]


def median(numbers: Sequence[float]) -> float:
    """The median; nan if there is none."""
    return statistics.median(numbers) if numbers else math.nan


def rounds(samples: Samples, job: Job, pair: Pair, figure: Figure) -> list[float]:
    """The ratio of two variants in each round."""
    return ratio.quotients(*(values(samples, job, variant, figure) for variant in pair))


def mean(samples: Samples, jobs: Iterable[Job], pair: Pair, figure: Figure) -> Ratio:
    """The geometric mean of all jobs that have a ratio, in each round, and from these the ratio."""
    found = [column for job in jobs if ratio.known(column := rounds(samples, job, pair, figure))]
    return ratio.of_rounds([statistics.geometric_mean(row) for row in zip(*found)])


# Text

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
