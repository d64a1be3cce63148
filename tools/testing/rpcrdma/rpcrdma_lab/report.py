# SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
"""What the benchmark has measured, as tables, as JSON, and beside its goals."""

import dataclasses
import json
import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path

from . import figures, ratio
from .figures import (AGAIN, CAUSED, COUNTED, CPU_TIME, DEVICE, ELAPSED, IN_CODE, IN_PARTS, INBOX,
                      IOPS, MEM, OF_PROGRAMS, OURS, OURS_2, OURS_4096, OUTSIDE, P50, P99, P999,
                      PAIRS, SCALE, SCALED, SHOW, SWITCHES, TCP, TIMED, TRANSPORT, TUNED, UP, WIRE,
                      Figure, Job, Pair, Sample, Samples, Variant, markdown, median, scale_job)
from .host import say
from .ratio import NOTHING, Ratio

# What is judged, with intervals
JUDGED = (IOPS, CPU_TIME, P99)
AGAINST_TUNED, AGAINST_INBOX, AT_4096, VERSION_2, AGAINST_TCP = PAIRS
# The other tables: their figures of each variant
DETAILS = {
    "IOPS; latencies of fio in µs; per RPC CPU time of the guest's kernel in µs, and context "
    "switches of the whole guest": TIMED,
    "What the device is asked, and its interrupts, per RPC": DEVICE,
    "Switches that the transport causes, and other events, per RPC, while every event is recorded":
        COUNTED,
    "CPU time per RPC in each part of the guest's kernel, and in its programs": IN_PARTS,
    "Instructions per RPC": IN_CODE,
    "Seconds and RPCs of programs": OF_PROGRAMS,
}


@dataclasses.dataclass
class Measured:
    """Everything that was measured."""
    conditions: Mapping[str, str]
    rounds: int
    rows: list[Job]
    # Samples of each job with each variant: one for each round in timed, one in the others
    timed: Samples
    counted: Samples
    instructions: Samples
    # Of each device with each variant: a sample of connections that rest; rsize and wsize
    rested: Mapping[tuple[str, Variant], Sample]
    sizes: Mapping[tuple[str, Variant], tuple[int, int]]

    def samples_of(self, figure: Figure) -> Samples:
        """The samples that have a figure."""
        return (self.counted if figure in COUNTED else self.instructions
                if figure in IN_CODE else self.timed)

    def values(self, job: Job, variant: Variant, figure: Figure) -> list[float]:
        """A figure in each round, if it is known."""
        found = figures.values(self.samples_of(figure), job, variant, figure)
        return [] if any(map(math.isnan, found)) else found

    def ratio(self, job: Job, figure: Figure, pair: Pair = AGAINST_TUNED) -> Ratio:
        """The ratio of two variants."""
        return ratio.of_rounds(figures.rounds(self.samples_of(figure), job, pair, figure))

    def mean(self, device: str, figure: Figure, pair: Pair = AGAINST_TUNED) -> Ratio:
        """The geometric mean of a figure's ratios on a device."""
        return figures.mean(self.samples_of(figure), self.compared(device), pair, figure)

    def compared(self, device: str) -> list[Job]:
        """The jobs on a device that means and goals are about."""
        return [job for job in self.rows if job.device == device and job.compares]

    @property
    def devices(self) -> list[str]:
        """Those that have rows, in their order."""
        return list(dict.fromkeys(job.device for job in self.rows))


# Tables

def ratio_table(found: Measured, columns: Sequence[tuple[Figure, Pair]],
                shown: Sequence[Variant] = (), what: Figure = IOPS) -> str:
    """A figure of some variants, and ratios; after the rows of each device their means."""
    rows = []
    for device in found.devices:
        jobs = [job for job in found.rows if job.device == device
                and any(found.ratio(job, *column).measured for column in columns)]
        rows += [[job.name, *(what.text(median(found.values(job, variant, what)))
                              for variant in shown),
                  *(found.ratio(job, *column).text() for column in columns)] for job in jobs]
        if sum(job.compares for job in jobs) > 1:
            rows.append([f"{device}, geometric mean", *[""] * len(shown),
                         *(found.mean(device, *column).text() for column in columns)])
    return markdown(["device, job", *(f"{what.title}: {variant.name}" for variant in shown),
                     *(f"{figure.title}, {pair_text(pair)}" for figure, pair in columns)],
                    rows) if rows else ""


def pair_text(pair: Pair) -> str:
    """Which variant is divided by which."""
    return "/".join(variant.name for variant in pair)


def tables(found: Measured) -> Iterator[tuple[str, str]]:
    """All tables, each with what it is; those without rows are empty."""
    judged = [(figure, pair) for pair in (AGAINST_TUNED, AGAINST_INBOX) for figure in JUDGED]
    yield ("Ours against the kernel's own module, which also gets the inline sizes of ours",
           ratio_table(found, judged, (INBOX, TUNED, OURS)))
    yield ("Ours with the inline sizes of inbox", ratio_table(
        found, [(figure, AT_4096) for figure in JUDGED], (INBOX, OURS_4096)))
    yield ("Version 2 against version 1", ratio_table(
        found, [(figure, VERSION_2) for figure in (*JUDGED, SWITCHES)], (OURS, OURS_2)))
    yield ("Programs over NFSv4.2", ratio_table(
        found, [(ELAPSED, pair) for pair in (AGAINST_TUNED, AGAINST_INBOX, AGAINST_TCP)],
        (INBOX, TUNED, OURS, TCP), ELAPSED))
    yield "Switches of the transport", ratio_table(found, [(CAUSED, AGAINST_TUNED)])
    yield ("Instructions", ratio_table(
        found, [(figure, pair) for pair in (AGAINST_INBOX, VERSION_2)
                for figure in (OUTSIDE, TRANSPORT)]))
    for title, columns in DETAILS.items():
        yield title, detail_table(found, columns)
    yield ("KiB for each of many connections, after a few reads of 64 KiB and when they have "
           "rested", rested_table(found))
    yield ("Many connections, of which 16 are used: CPU time per RPC in µs; memory of each that "
           "rests", detail_table(dataclasses.replace(
               found, rows=[job for job in found.rows if job.connections]), SCALED))


def detail_table(found: Measured, columns: Sequence[Figure]) -> str:
    """Medians of figures of each job with each variant."""
    rows = [[job.name, variant.name, *(figure.text(median(found.values(job, variant, figure)))
                                       for figure in columns)]
            for job in found.rows for variant in job.variants]
    rows = [row for row in rows if set(row[2:]) != {NOTHING}]
    return markdown(["device, job", "variant", *(figure.title for figure in columns)],
                    rows) if rows else ""


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
                     "one end without device: used", "rested"], rows) if rows else ""


def kib_text(kib: float) -> str:
    """KiB, or that they are not known."""
    return NOTHING if math.isnan(kib) else f"{kib:,.0f}"


# Goals

@dataclasses.dataclass(frozen=True)
class Goal:
    """
    A bound for ours on the test device, whether it is met, None if that is not known, and the
    values that miss it or the only one that there is.
    """
    text: str
    met: bool | None
    told: list[str]


def bound(text: str, values: Iterable[tuple[str, Ratio]], good: Callable[[Ratio], bool]) -> Goal:
    """A goal that each of some values has to meet. One that is not known misses it."""
    found = list(values)
    missed = [(name, value) for name, value in found if not (value.measured and good(value))]
    met = not missed if any(value.measured for _, value in found) else None
    return Goal(text, met, [f"{name} {value.numbers()}"
                            for name, value in (found if len(found) == 1 else missed)])


def goals(found: Measured) -> Iterator[Goal]:
    """
    What is to be reached on the test device, against inbox tuned. A row is worse only if its whole
    interval is.
    """
    def mean(figure: Figure, text: str, good: Callable[[float], bool]) -> Goal:
        return bound(f"geometric mean of {figure.title}: {text}",
                     [("it is", found.mean(MEM, figure))],
                     lambda value: good(round(value.middle, 2)))

    def most_connections(figure: Figure, limit: float) -> Goal:
        values = found.values(scale_job(SCALE[-1]), OURS, figure)
        return bound(f"{figure.title}, with {SCALE[-1]:,} connections: at most {limit}",
                     [("it is", Ratio(median(values)))], lambda value: value.middle <= limit)

    def each(figure: Figure, text: str, good: Callable[[Ratio], bool]) -> Goal:
        return bound(f"each row of {figure.title}: {text}",
                     ((job.name, found.ratio(job, figure)) for job in found.compared(MEM)), good)

    yield mean(IOPS, "at least 1.25", lambda value: value >= 1.25)
    yield each(IOPS, "not below 1.00", lambda value: value.beyond() >= 0)
    yield mean(CPU_TIME, "at most 0.75", lambda value: value <= 0.75)
    yield each(CPU_TIME, "at most 0.95", lambda value: round(value.middle, 2) <= 0.95)
    yield mean(P99, "at most 0.80", lambda value: value <= 0.8)
    yield each(P99, "not above 1.00", lambda value: value.beyond() <= 0)
    yield mean(ELAPSED, "at most 0.95", lambda value: value <= 0.95)
    yield each(ELAPSED, "not above 1.00", lambda value: value.beyond() <= 0)
    yield bound(f"one job reads 1 MiB at {WIRE} MB/s: at least 0.95 of a bare loop of RDMA Writes",
                [("it is", bare_ratio(found))], lambda value: value.middle >= 0.95)
    yield bound("a connection that rests: at most 64 KiB for one end, without the device",
                [("it is", Ratio(kib_of_end(found.rested.get((MEM, OURS), {}), "rested")))],
                lambda value: value.middle <= 64)
    yield bound(f"{CPU_TIME.title} with many connections: at most 1.05 of that with one",
                ((job.name, beside_one(found, job)) for job in found.rows if job.connections > 1),
                lambda value: value.beyond(1.05) <= 0)
    yield most_connections(UP, 30)
    yield most_connections(AGAIN, 15)
    yield most_connections(SHOW, 1)


def bare_ratio(found: Measured) -> Ratio:
    """What reads reach of the bare loop at the same bandwidth."""
    return ratio.of_rounds(ratio.quotients(*(
        found.values(Job(MEM, direction, 1024, bandwidth=WIRE), OURS, IOPS)
        for direction in ("read", "bare"))))


def beside_one(found: Measured, job: Job) -> Ratio:
    """The CPU time of a job's RPCs beside that with one connection."""
    return ratio.of_rounds(ratio.quotients(*(
        found.values(which, OURS, CPU_TIME) for which in (job, scale_job(1)))))


# Everything

def report(found: Measured) -> None:
    """Print all tables, and what is worse than what it is compared with."""
    for name, text in found.conditions.items():
        say(f"# {name}: {text}")
    say("IOPS: more is better; of all else less is.")
    if found.rounds:
        say(f"Medians of {found.rounds} rounds. A ratio is the Hodges-Lehmann estimate, with its "
            f"{100 * ratio.CONFIDENCE:.0f} % interval if there are {ratio.LEAST_ROUNDS} rounds or "
            "more; if 1.00 is in that, there is no difference.")
    for title, table in tables(found):
        if table:
            say(f"\n{title}:\n\n{table}")
    say()
    for line in [*other_sizes(found), *worse_rows(found), *goal_lines(found)]:
        say(line)


def other_sizes(found: Measured) -> Iterator[str]:
    """Variants whose RPCs have other sizes than those of inbox."""
    for (device, variant), sizes in found.sizes.items():
        if sizes != found.sizes.get((device, INBOX), sizes):
            yield (f"On {device} rsize and wsize are {found.sizes[device, INBOX]} with inbox "
                   f"and {sizes} with {variant.name}: their RPCs cannot be compared.")


def worse_rows(found: Measured) -> Iterator[str]:
    """In which rows ours is worse than each variant of the kernel's own module."""
    for pair in (AGAINST_TUNED, AGAINST_INBOX):
        cells = [f"{job.name}: {figure.title} {value.text()}" for job in found.rows
                 for figure in (*JUDGED, OUTSIDE, ELAPSED)
                 if (value := found.ratio(job, figure, pair)).measured
                 and value.beyond() == (-1 if figure.more_is_better else 1)]
        if cells:
            yield f"Ours is worse than {pair[1].name}: " + "; ".join(cells)


def goal_lines(found: Measured) -> Iterator[str]:
    """Each goal, and what misses it."""
    for goal in goals(found):
        if goal.met is not None:
            yield ": ".join([f"Goal {'met' if goal.met else 'missed'}", goal.text,
                             *(["; ".join(goal.told)] if goal.told else [])])


Json = dict[str, object]


def json_of_ratio(value: Ratio) -> Json:
    """A ratio and its interval. JSON has no nan."""
    return {name: None if math.isnan(number) else number
            for name, number in dataclasses.asdict(value).items()}


def json_of_job(found: Measured, job: Job) -> Json:
    """All figures of a job in each round, and the ratios that are judged."""
    known = {figure.title: {variant.name: numbers for variant in job.variants
                            if (numbers := found.values(job, variant, figure))}
             for columns in (*DETAILS.values(), SCALED) for figure in columns}
    ratios = {pair_text(pair): {figure.title: json_of_ratio(value)
                                for figure in (IOPS, CPU_TIME, P50, P99, P999, CAUSED, OUTSIDE,
                                               ELAPSED)
                                if (value := found.ratio(job, figure, pair)).measured}
              for pair in PAIRS if set(pair) <= set(job.variants)}
    return {"figures": {title: numbers for title, numbers in known.items() if numbers},
            "ratios": ratios}


def as_json(found: Measured) -> Json:
    """Everything that was measured."""
    return {
        "conditions": found.conditions, "rounds": found.rounds,
        "jobs": {job.name: json_of_job(found, job) for job in found.rows},
        "means": {device: {pair_text(pair): {
            figure.title: json_of_ratio(found.mean(device, figure, pair))
            for figure in (*JUDGED, ELAPSED)}
            for pair in PAIRS} for device in found.devices},
        "resting": {f"{device} {variant.name}": sample
                    for (device, variant), sample in found.rested.items()},
        "goals": [dataclasses.asdict(goal) for goal in goals(found)],
    }


def write_json(found: Measured, file: Path) -> None:
    """Write everything that was measured to a file."""
    file.write_text(json.dumps(as_json(found), indent=1, ensure_ascii=False) + "\n")
