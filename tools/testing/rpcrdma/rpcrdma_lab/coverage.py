# SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
"""
Which lines of net/ the unit tests and the scenarios run, taken together. In um-gcov
the module counts its lines. guest/coverage.sh leaves the counts in lab/out/gcov, and
gcov, which is part of the compiler, reads them. They are kept with the results of the
tree, so that a run that is continued has all of them.
"""

import dataclasses
import itertools
import json
import os
import shutil
import subprocess
import tempfile
from collections.abc import Collection, Hashable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import TypedDict, TypeVar

from . import kernels, module, scenario
from .device import MEM
from .host import BUILD, LabError
from .results import Results
from .scenario import Job, Scenario

FLOOR = 93      # percent
REPORT = BUILD / "coverage.txt"
FOLDER = "net/sunrpc/xprtrdma"

Line = TypeVar("Line", bound=Hashable)


class GcovLine(TypedDict):
    """A line in gcov's JSON."""
    line_number: int
    count: int


class GcovFile(TypedDict):
    """A source file in gcov's JSON."""
    file: str
    lines: list[GcovLine]


class GcovReport(TypedDict):
    """What gcov prints for one object file. The files are relative to the compiler's folder."""
    current_working_directory: str
    files: list[GcovFile]


def jobs(scenarios: Sequence[Scenario], everywhere: bool = False) -> list[Job]:
    """
    Every scenario that runs in one guest. Two guests would add hardly a line. Nor would the
    test device in a scenario that also runs there over another.
    """
    return [job for job in scenario.jobs(scenarios, [kernels.COVERAGE], ("ours",),
                                         everywhere=everywhere)
            if job.ends == 1 and job.module in ("ours", "kunit") and (everywhere or job.daily)
            and not job.scenario.why_skipped(job)
            and (job.device != MEM or only_over_mem(job) and job.module == "ours")]


def only_over_mem(job: Job) -> bool:
    """Whether a scenario over the test device runs over no other in this guest."""
    return all(job.scenario.why_skipped(dataclasses.replace(job, device=device))
               for device in job.scenario.devices if device != MEM)


def counts_for(job: Job, todo: Sequence[Job]) -> bool:
    """Whether um-gcov will run this scenario in place of another guest."""
    return (job.guest in kernels.COVERED
            and dataclasses.replace(job, guest=kernels.COVERAGE) in todo)


def forget(results: Results) -> None:
    """Remove the counts of earlier daily runs."""
    for old in results.counts.glob("daily-*"):
        shutil.rmtree(old)


def keep(results: Results, out: Path, daily: bool) -> str:
    """
    Keep a guest's counts with the results of the tree. Returns the name of their folder.
    """
    scratch = with_notes(out, results.counts)
    return scratch.rename(results.counts / f"{'daily' if daily else 'all'}-{scratch.name[1:]}").name


def with_notes(out: Path, parent: Path) -> Path:
    """A new folder with a guest's counts and the notes of the compiler, which gcov needs."""
    built = module.directory_of(kernels.COVERAGE) / FOLDER
    parent.mkdir(parents=True, exist_ok=True)
    scratch = Path(tempfile.mkdtemp(prefix=".", dir=parent))
    shutil.copytree(out / "gcov", scratch, dirs_exist_ok=True)
    for file in scratch.rglob("*.gcda"):
        notes = file.with_suffix(".gcno")
        shutil.copy(built / notes.relative_to(scratch), notes)
    return scratch


def counts(results: Results, *kinds: str) -> dict[str, dict[int, int]]:
    """How often each line ran, by the results of the tree."""
    return read_counts(path for kind in kinds for path in results.counts.glob(f"{kind}-*"))


def read_counts(folders: Iterable[Path]) -> dict[str, dict[int, int]]:
    """How often each line ran: {file below net/sunrpc/xprtrdma: {line: times}}."""
    built = module.directory_of(kernels.COVERAGE) / FOLDER
    files: dict[str, dict[int, int]] = {}
    for left in folders:
        out = subprocess.run(["gcov", "--json-format", "--stdout", *left.rglob("*.gcda")],
                             stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
                             check=False)
        if out.returncode:
            raise LabError(f"gcov cannot read {left}: remove it and run the check again\n"
                           f"{out.stderr}")
        for line in out.stdout.splitlines():    # one for each object file
            report: GcovReport = json.loads(line)
            for file in report["files"]:
                path = Path(report["current_working_directory"], file["file"])
                name = os.path.relpath(path, built)
                if not name.startswith(("..", "test/")):
                    add(files.setdefault(name, {}), file["lines"])
    if not files:
        raise LabError("there are no line counts: see why the guests um-gcov failed")
    return files


def add(times: dict[int, int], lines: Iterable[GcovLine]) -> None:
    """Add the counts of some lines."""
    for line in lines:
        number = line["line_number"]
        times[number] = times.get(number, 0) + line["count"]


def measure(results: Results, everywhere: bool) -> float:
    """Write the report. Returns the percentage of all lines that runs every day."""
    files = counts(results, "daily")
    lines = ["lines run every day, and which are not:\n"]
    daily = {name: ran(times) for name, times in files.items()}
    lines += [row(name, daily[name], times, set(times) - daily[name])
              for name, times in sorted(files.items())]
    total = whole(files)
    lines.append(total_row(total))
    if everywhere:
        more = counts(results, "daily", "all")
        lines.append("\nlines run with ALL=1, and which only then:\n")
        for name, times in sorted(more.items()):
            done = ran(times)
            lines.append(row(name, done, times, done - daily.get(name, set())))
        lines.append(total_row(whole(more)))
    REPORT.write_text("".join(lines))
    return 100 * len(ran(total)) / len(total)


def ran(times: Mapping[Line, int]) -> set[Line]:
    """The lines that ran at least once."""
    return {line for line, count in times.items() if count}


def whole(files: Mapping[str, Mapping[int, int]]) -> dict[tuple[str, int], int]:
    """The lines of all files."""
    return {(name, number): count for name, times in files.items()
            for number, count in times.items()}


def ratio(name: str, done: int, among: int) -> str:
    """The first columns of a row."""
    return f"{name:26} {done:5} of {among:5} {100 * done / max(among, 1):5.1f} %"


def row(name: str, done: Collection[int], among: Collection[int], rest: Collection[int]) -> str:
    """One file: how many of its lines ran, and a list of other lines."""
    return f"{ratio(name, len(done), len(among))}  {in_rows(rest, among)}".rstrip() + "\n"


def total_row(times: Mapping[tuple[str, int], int]) -> str:
    """All files."""
    return ratio("all", len(ran(times)), len(times)) + "\n"


def in_rows(numbers: Collection[int], among: Iterable[int]) -> str:
    """Lines as "3-7 12". A range may include lines without code, such as comments."""
    blocks = itertools.groupby(sorted(among), key=lambda number: number in numbers)
    ends = [(block[0], block[-1]) for block in (list(block) for meant, block in blocks if meant)]
    return " ".join(str(first) if first == last else f"{first}-{last}" for first, last in ends)
