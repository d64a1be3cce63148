# SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
"""The figures of the benchmark, and the tables that compare its variants."""

import dataclasses
import itertools
import math
import re
import statistics
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

DEVICES = ("siw", "rxe")

Sample = dict[str, int]         # figures that were measured together


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
PAIRS = tuple(itertools.pairwise(VARIANTS))     # each variant is compared with the one before it
ARROWS = " → ".join(variant.name for variant in VARIANTS)


@dataclasses.dataclass(frozen=True)
class Job:
    """One row of the tables: one fio run."""
    device: str
    direction: str
    kib: int
    processes: int

    @property
    def name(self) -> str:
        """Its name in tables and patterns."""
        size = "1m" if self.kib == 1024 else f"{self.kib}k"
        several = f" x{self.processes}" if self.processes > 1 else ""
        return f"{self.device} {self.direction} {size}{several}"

    def variables(self, ios: int, milliseconds: int) -> dict[str, str | int]:
        """What guest/bench.sh gets."""
        return {"RW": self.direction, "KB": self.kib, "NUMJOBS": self.processes,
                "IOS": ios, "MS": milliseconds}


JOBS = [Job(device, *job) for device in DEVICES for job in (
    ("read", 4, 1), ("write", 4, 1), ("read", 8, 1), ("read", 64, 1), ("write", 64, 1),
    ("read", 1024, 1), ("write", 1024, 1), ("read", 4, 8), ("write", 4, 8))]

Samples = Mapping[tuple[Job, Variant], Sequence[Sample]]    # of each job with each variant


@dataclasses.dataclass(frozen=True)
class Figure:
    """A column: its title, and how its figure is computed from a sample."""
    title: str
    digits: int
    of: Callable[[Sample], float]
    more_is_better: bool = False

    def text(self, number: float) -> str:
        """The figure as it is printed."""
        return f"{number:,.{self.digits}f}"


def per_rpc(title: str, key: str, digits: int) -> Figure:
    """A figure that counts something for each RPC."""
    return Figure(title, digits, lambda sample: sample[key] / sample["rpcs"])


TIMED = (Figure("IOPS", 0, lambda sample: 1000 * sample["ops"] / sample["ms"], True),
         per_rpc("switches per RPC", "switches", 1))
INSTRUCTIONS = (per_rpc("instructions per RPC", "instructions", 0),
                per_rpc("in the transport", "transport", 0))
COUNTED = (per_rpc("completions", "completions", 2), per_rpc("CQ interrupts", "interrupts", 2),
           per_rpc("CQ polls", "polls", 2), per_rpc("MRs allocated", "allocations", 2),
           per_rpc("work items", "works", 2), per_rpc("packets", "packets", 2))


@dataclasses.dataclass(frozen=True)
class Comparison:
    """
    All variants in one row and column: their medians, and for each of PAIRS the ratios of
    the rounds, sorted.
    """
    figure: Figure
    medians: list[float]
    ratios: list[list[float]]

    def cells(self) -> list[str]:
        """What the first table has of it: see titles()."""
        return [*map(self.figure.text, self.medians), *map(ratio_text, self.ratios)]

    def arrows(self) -> str:
        """The medians in one cell."""
        return " → ".join(map(self.figure.text, self.medians))

    def worse(self, pair: int) -> float | None:
        """The median ratio of a pair, if the second of it is worse by half a percent or more."""
        ratio = round(statistics.median(self.ratios[pair]), 2)
        return ratio if (ratio < 1 if self.figure.more_is_better else ratio > 1) else None


def titles(figure: Figure) -> list[str]:
    """The titles of the columns that the first table has for a figure."""
    first, *others = (variant.name for variant in VARIANTS)
    return [f"{figure.title}: {first}", *others,
            *(f"{second.name}/{first.name}" for first, second in PAIRS)]


def parse(lines: Iterable[str]) -> Sample:
    """The figures in lines of NAME=NUMBER; other lines are ignored."""
    found: Sample = {}
    for line in lines:
        if re.fullmatch(r"(\w+=\S+ ?)+", line):
            found |= {key: int(value, 0) for key, value in
                      (word.split("=") for word in line.split())}
    return found


def difference(little: Sample, much: Sample) -> Sample:
    """Subtract a sample of a job with few I/Os: this removes the costs of start and end."""
    return {key: much[key] - little[key] for key in much}


def compare(jobs: Sequence[Job], samples: Samples,
            table: Sequence[Figure]) -> Iterator[tuple[Job, list[Comparison]]]:
    """The rows of a table."""
    for job in jobs:
        row = []
        for figure in table:
            found = {variant: [figure.of(sample) for sample in samples[job, variant]]
                     for variant in VARIANTS}
            row.append(Comparison(
                figure, [statistics.median(found[variant]) for variant in VARIANTS],
                [sorted(b / a if a else math.nan for a, b in zip(found[first], found[second]))
                 for first, second in PAIRS]))
        yield job, row


def ratio_text(ratios: Sequence[float]) -> str:
    """The median of sorted ratios, and their range if there are several."""
    middle = f"{statistics.median(ratios):.2f}"
    return middle if len(ratios) == 1 else f"{middle} ({ratios[0]:.2f} to {ratios[-1]:.2f})"


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
