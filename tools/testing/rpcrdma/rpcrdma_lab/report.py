# SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
"""What the benchmark has measured, as tables, as JSON, and beside its goals."""

import dataclasses
import json
import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path

from . import figures, perf
from .figures import (ARROWS, CAUSED, COUNTED, CPU, CPU_TIME, DEVICE, IN_CODE, IN_PARTS, INBOX,
                      INSTRUCTIONS, IOPS, IOPS_ALONE, LATENCIES, MEM, NOTHING, OTHER_PROCESSES,
                      OURS, OURS_2, OUTSIDE, SAMPLED, SWITCH_COST, SWITCHES, TIMED, TRANSPORT,
                      VARIANTS, WIRE, Comparison, Figure, Job, Sample, Samples, Variant,
                      geometric_mean, markdown, of_cpu, quotient, ratio_text, spread_text,
                      variants_on)
from .host import say

# The first table: IOPS as measured, and ratios of what else is to be judged
JUDGED = (CPU_TIME, SWITCHES, CAUSED, OUTSIDE, TRANSPORT)
OF_VERSION_2 = (IOPS, SWITCHES, INSTRUCTIONS, TRANSPORT)
# The other tables
DETAILS = {
    "Time: latencies of fio in µs; CPU time of the guest's kernel in µs per RPC":
        (*LATENCIES, CPU_TIME),
    "Context switches per RPC: of the whole guest, and those that the transport causes, while "
    "every event is recorded": (SWITCHES, *COUNTED[:4]),
    "Events per RPC, while every event is recorded": COUNTED[4:],
    "Counted by the device, per RPC": DEVICE,
    "Instructions per RPC": IN_CODE,
    "CPU time per RPC in each part of the guest's kernel": IN_PARTS,
    "What the guest's CPU does, of the time that other processes leave it":
        (*CPU, OTHER_PROCESSES, SWITCH_COST, IOPS_ALONE),
}
FIGURES = (*TIMED, *DEVICE, *COUNTED, *IN_CODE, *SAMPLED)


@dataclasses.dataclass
class Measured:
    """Everything that was measured."""
    rounds: int
    rows: list[Job]
    sampled: bool               # perf has sampled instructions; otherwise TCG has counted them
    # Samples of each job with each variant: one for each round in timed, one in the others
    timed: Samples
    counted: Samples
    instructions: Samples
    # Of each device with each variant: a sample of 16 connections, one of connections that
    # rest, and rsize and wsize
    memory: dict[tuple[str, Variant], Sample]
    rested: dict[tuple[str, Variant], Sample]
    sizes: dict[tuple[str, Variant], tuple[int, int]]

    def samples_of(self, figure: Figure) -> Samples:
        """The samples that have a figure."""
        return (self.counted if figure in COUNTED else self.instructions
                if figure in IN_CODE else self.timed)

    def cell(self, job: Job, figure: Figure) -> Comparison:
        """One figure of one job."""
        return figures.compare_one(job, self.samples_of(figure), figure)

    def ratio(self, job: Job, figure: Figure) -> float:
        """Ours divided by inbox."""
        return self.cell(job, figure).ratio()

    def compared(self, device: str) -> list[Job]:
        """The jobs on a device in which variants are compared."""
        return [job for job in self.rows if job.device == device and job.compares]

    def mean(self, device: str, figure: Figure) -> float:
        """The geometric mean of a figure's ratios on a device."""
        return geometric_mean(self.ratio(job, figure) for job in self.compared(device))

    def cpu_samples(self, job: Job, variant: Variant) -> Sample:
        """What was sampled of the CPU time of a job, in all rounds; nothing if it was not."""
        found = figures.pooled(self.timed.get((job, variant), ()))
        return found if "sampled_ns" in found else {}

    @property
    def devices(self) -> list[str]:
        """Those that have rows, in their order."""
        return list(dict.fromkeys(job.device for job in self.rows))


# Tables

def first_table(found: Measured) -> str:
    """The first table of performance.rst."""
    rows = []
    for device in found.devices:
        for job in (job for job in found.rows if job.device == device):
            cell = found.cell(job, IOPS)
            rows.append([job.name, *map(IOPS.text, cell.medians[:2]), spread_text(cell.ratios[0]),
                         *(ratio_text(found.ratio(job, figure)) for figure in JUDGED)])
        if len(found.compared(device)) > 1:
            rows.append([f"{device}, geometric mean", "", "",
                         *(ratio_text(found.mean(device, figure)) for figure in (IOPS, *JUDGED))])
    return markdown(["device, job", "IOPS: inbox", "ours", "ours/inbox",
                     *(figure.title for figure in JUDGED)], rows)


def detail_tables(found: Measured) -> Iterator[tuple[str, str]]:
    """The other tables with figures of jobs, each with what it is."""
    for title, columns in DETAILS.items():
        rows = [[job.name, *(found.cell(job, figure).arrows() for figure in columns)]
                for job in found.rows]
        # Jobs without RPCs have none of these figures.
        rows = [row for row in rows if set(row[1:]) != {NOTHING}]
        if rows:
            yield f"{title}, {ARROWS}", markdown(
                ["device, job", *(figure.title for figure in columns)], rows)
    rows = [[job.name, *(spread_text(found.cell(job, figure).ratios[1])
                         for figure in OF_VERSION_2)]
            for job in found.rows if OURS_2 in variants_on(job.device)]
    if rows:
        yield f"{OURS_2.name} divided by {OURS.name}", markdown(
            ["device, job", *(figure.title for figure in OF_VERSION_2)], rows)


def memory_table(found: Measured) -> str:
    """Memory of 16 connections."""
    rows = []
    for device in dict.fromkeys(device for device, _ in found.memory):
        samples = [found.memory[device, variant] for variant in variants_on(device)]
        rows.append([device, *(" → ".join(f"{sample[key] / sample['connections']:,.0f}"
                                          for sample in samples)
                               for key in ("free", "slab", "lost"))])
    return markdown(["device", "memory, KiB", "of it unreclaimable slab", "not back after umount"],
                    rows)


# When memory was measured: just after the reads, and after the rest
RESTED = ("used", "rested")


def kib_of_end(sample: Sample, when: str) -> float:
    """
    KiB of a connection for one end, which is half of what both have in this guest, without
    what the device has. nan if the device does not say that.
    """
    if f"{when}_device" not in sample:
        return math.nan
    return (sample[when] - sample[f"{when}_device"]) / sample["connections"] / 2


def rested_table(found: Measured) -> str:
    """Memory of connections that rest."""
    rows = []
    for (device, variant), sample in found.rested.items():
        rows.append([f"{device} {variant.name}", f"{sample['connections']:,}",
                     *(kib_text(sample[when] / sample["connections"]) for when in RESTED),
                     *(kib_text(kib_of_end(sample, when)) for when in RESTED)])
    return markdown(["device, module", "connections", "both ends and device: used", "rested",
                     "one end without device: used", "rested"], rows)


def kib_text(kib: float) -> str:
    """KiB, or that they are not known."""
    return NOTHING if math.isnan(kib) else f"{kib:,.0f}"


# Bounds: how good ours would be without some of its CPU time

WITHOUT = ("without the transport", "nor its switches", "nor any switching")


@dataclasses.dataclass(frozen=True)
class Ideal:
    """Ours divided by inbox, if some of the CPU time of ours were not needed."""
    cpu_time: float
    iops: float


def bounds(found: Measured, job: Job) -> list[Ideal]:
    """
    The bounds of one job, for each of WITHOUT. The time on the clock becomes less by the same
    time as CPU time does, because the guest's CPU is the only one.
    """
    sample = found.cpu_samples(job, OURS)
    transport, switching = (quotient(sample, f"{part}_ns", "sampled_ns")
                            for part in ("transport", "switching"))
    caused = found.cell(job, CAUSED).medians[1] / SWITCHES.of(sample)
    busy = of_cpu(sample, "sampled")
    return [Ideal(found.ratio(job, CPU_TIME) * (1 - gone),
                  found.ratio(job, IOPS_ALONE) / (1 - busy * gone))
            for gone in (transport, transport + caused * switching, transport + switching)]


def all_bounds(found: Measured) -> dict[str, list[Ideal]]:
    """The bounds of each job whose CPU time was sampled, and geometric means of a device."""
    rows: dict[str, list[Ideal]] = {}
    for device in found.devices:
        jobs = [job for job in found.compared(device) if found.cpu_samples(job, OURS)]
        of_jobs = {job.name: bounds(found, job) for job in jobs}
        rows |= of_jobs
        if len(jobs) > 1:
            rows[f"{device}, geometric mean"] = [
                Ideal(geometric_mean(ideal.cpu_time for ideal in column),
                      geometric_mean(ideal.iops for ideal in column))
                for column in zip(*of_jobs.values())]
    return rows


def share_text(sample: Sample, part: str) -> str:
    """A part's share of CPU time in percent, with its standard error."""
    share = quotient(sample, f"{part}_ns", "sampled_ns")
    error = math.sqrt(share * (1 - share) * perf.CPU_TIME.period / sample["sampled_ns"])
    return f"{100 * share:.1f} ± {100 * error:.1f}"


def shares_table(found: Measured) -> str:
    """Shares of CPU time in the transport, and in switching."""
    return markdown(
        ["device, job", "transport", "switching"],
        [[job.name, *(" → ".join(share_text(found.cpu_samples(job, variant), part)
                                 for variant in variants_on(job.device))
                      for part in ("transport", "switching"))]
         for job in found.rows if found.cpu_samples(job, OURS) and job.compares])


def bounds_table(found: Measured) -> str:
    """Ours divided by inbox, and what bounds that."""
    jobs = {job.name: [job] for job in found.rows} | {
        f"{device}, geometric mean": found.compared(device) for device in found.devices}
    rows = []
    for name, row in all_bounds(found).items():
        cpu_time, iops = (geometric_mean(found.ratio(job, figure) for job in jobs[name])
                          for figure in (CPU_TIME, IOPS_ALONE))
        rows.append([name, *map(ratio_text, (cpu_time, *(ideal.cpu_time for ideal in row),
                                             iops, *(ideal.iops for ideal in row)))])
    return markdown(["device, job", CPU_TIME.title, *WITHOUT, IOPS_ALONE.title, *WITHOUT], rows)


# Goals

@dataclasses.dataclass(frozen=True)
class Goal:
    """A bound for ours on the test device, and what misses it; None if that is not known."""
    text: str
    missed: list[str] | None


def bound(text: str, values: Iterable[tuple[str, float]], good: Callable[[float], bool]) -> Goal:
    """A goal that each of some values has to meet; those that are nan were not measured."""
    found = [(name, value) for name, value in values if not math.isnan(value)]
    missed = [f"{name} {value:.2f}" for name, value in found if not good(value)]
    return Goal(text, missed if found else None)


def goals(found: Measured) -> Iterator[Goal]:
    """What is to be reached on the test device."""
    jobs = found.compared(MEM)
    yield bound("one job: at most 3 switches of the transport per RPC",
                ((job.name, found.cell(job, CAUSED).medians[1]) for job in jobs
                 if job.processes == 1), lambda value: value <= 3)
    yield bound("several jobs: at most half of inbox's switches of the transport",
                ((job.name, found.ratio(job, CAUSED)) for job in jobs if job.processes > 1),
                lambda value: value <= 0.5)
    for figure in (OUTSIDE, CPU_TIME):
        yield bound(f"geometric mean of {figure.title}: at most 0.75",
                    [("it is", found.mean(MEM, figure))], lambda value: value <= 0.75)
    yield bound("geometric mean of IOPS: at least 1.25", [("it is", found.mean(MEM, IOPS))],
                lambda value: value >= 1.25)
    for figure in (OUTSIDE, CPU_TIME):
        yield bound(f"each row of {figure.title}: at most 0.95",
                    ((job.name, found.ratio(job, figure)) for job in jobs),
                    lambda value: value <= 0.95)
    yield bound(f"each row of {TRANSPORT.title}: at most 1.00",
                ((job.name, round(found.ratio(job, TRANSPORT), 2)) for job in jobs),
                lambda value: value <= 1)
    yield bound(f"reads of 1 MiB at {WIRE} MB/s: at least 0.95 of a bare loop of RDMA Writes",
                [("it is", bare_ratio(found, OURS))], lambda value: value >= 0.95)
    yield bound("a connection that rests: at most 192 KiB for one end, without the device",
                [("it is", kib_of_end(found.rested.get((MEM, OURS), {}), "rested"))],
                lambda value: value <= 192)


def bare_ratio(found: Measured, variant: Variant) -> float:
    """The most that reads of 1 MiB reach of the bare loop at the same bandwidth."""
    best = {bare: max((found.cell(job, IOPS).medians[variants_on(MEM).index(variant)]
                       for job in found.rows
                       if job.bandwidth and (job.direction == "bare") == bare), default=math.nan)
            for bare in (True, False)}
    return best[False] / best[True]


# Everything

def report(found: Measured) -> None:
    """Print all tables, and what is worse than what it is compared with."""
    say((f"Medians of {found.rounds} rounds; a" if found.rounds else "A") + " ratio is ours "
        "divided by inbox, the median of the rounds' ratios (least to most).")
    say("IOPS: more is better. All other figures: less is better. They are per RPC. Switches: "
        "context switches of the whole guest, and those that the transport causes.")
    say("Instructions: " + ("of the guest's process, as perf samples them." if found.sampled else
                            "of a guest's kernel, Debian's 6.12, as QEMU's TCG counts them "
                            "(perf cannot count any on this machine)."))
    if found.rows:
        print_table("", first_table(found))
    for title, table in detail_tables(found):
        print_table(f"{title}:", table)
    if found.memory:
        print_table(f"Memory for each connection, both ends and the device's part, {ARROWS}; "
                    "less is better.", memory_table(found))
    if found.rested:
        print_table("KiB for each of many connections, after a few reads of 64 KiB and when they "
                    "have rested:", rested_table(found))
    if all_bounds(found):
        print_table(f"Shares of CPU time in %, {ARROWS}, with their standard errors:",
                    shares_table(found))
        print_table("Ours divided by inbox, as measured, and if some of the CPU time of ours were "
                    "not needed:", bounds_table(found))
    for line in [*other_sizes(found), *worse_cells(found), *goal_lines(found)]:
        say(line)


def print_table(title: str, table: str) -> None:
    """Print a table."""
    if title:
        say(title)
    say()
    say(table)
    say()


def other_sizes(found: Measured) -> Iterator[str]:
    """Variants whose RPCs have other sizes than those of inbox."""
    for (device, variant), sizes in found.sizes.items():
        if sizes != found.sizes.get((device, INBOX), sizes):
            yield (f"On {device} rsize and wsize are {found.sizes[device, INBOX]} with inbox "
                   f"and {sizes} with {variant.name}: their RPCs cannot be compared.")


def worse_cells(found: Measured) -> Iterator[str]:
    """For each variant but the first, in which cells it is worse than the one before it."""
    for pair, columns in enumerate(((IOPS, *JUDGED), OF_VERSION_2)):
        first, second = VARIANTS[pair:pair + 2]
        jobs = [job for job in found.rows
                if job.compares and second in variants_on(job.device)]
        cells = [f"{job.name}: {figure.title} {ratio:.2f}" for job in jobs for figure in columns
                 if (ratio := found.cell(job, figure).worse(pair)) is not None]
        if not jobs:
            continue
        name = second.name.capitalize()
        yield (f"{name} is worse than {first.name} in: " + "; ".join(cells) if cells else
               f"{name} is at least as good as {first.name} in every row.")


def goal_lines(found: Measured) -> Iterator[str]:
    """Each goal, and what misses it."""
    if MEM not in found.devices and not found.rested:
        return
    for goal in goals(found):
        yield (f"Goal not measured: {goal.text}" if goal.missed is None else
               f"Goal missed: {goal.text}: {'; '.join(goal.missed)}" if goal.missed else
               f"Goal met: {goal.text}")


Json = dict[str, object]


def known(number: float) -> float | None:
    """JSON has no nan."""
    return None if math.isnan(number) else number


def json_of_cell(cell: Comparison, variants: Sequence[Variant]) -> Json:
    """One figure of one job."""
    pairs = zip(variants, variants[1:], cell.ratios)
    return {"medians": {variant.name: known(number)
                        for variant, number in zip(variants, cell.medians)},
            "ratios": {f"{second.name}/{first.name}": [known(ratio) for ratio in ratios]
                       for first, second, ratios in pairs}}


def json_of_bounds(found: Measured) -> Json:
    """The bounds of each job, and their means."""
    return {name: {without: {"CPU time": known(ideal.cpu_time), "IOPS": known(ideal.iops)}
                   for without, ideal in zip(WITHOUT, row)}
            for name, row in all_bounds(found).items()}


def as_json(found: Measured, kernel: str) -> Json:
    """Everything that was measured, but for single samples."""
    return {
        "kernel": kernel, "rounds": found.rounds,
        "instructions": "sampled" if found.sampled else "counted",
        "jobs": {job.name: {figure.title: json_of_cell(cell, variants_on(job.device))
                            for figure in FIGURES
                            if (cell := found.cell(job, figure)).arrows() != NOTHING}
                 for job in found.rows},
        "bounds": json_of_bounds(found),
        "memory": {f"{device} {variant.name}": sample
                   for (device, variant), sample in found.memory.items()},
        "resting": {f"{device} {variant.name}": sample
                    for (device, variant), sample in found.rested.items()},
        "goals": [{"goal": goal.text, "missed": goal.missed} for goal in goals(found)],
    }


def write_json(found: Measured, kernel: str, file: Path) -> None:
    """Write everything that was measured to a file."""
    file.write_text(json.dumps(as_json(found, kernel), indent=1, ensure_ascii=False) + "\n")
