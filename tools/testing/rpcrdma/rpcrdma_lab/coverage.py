# SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
"""
Which lines of net/ the unit tests and the scenarios run, together. A module
built for it counts them in um-gcov; guest/coverage.sh leaves the counts in
lab/out/gcov; gcov, which comes with the compiler, tells lines from counts. They are
kept with the results of the tree, so that a run that is taken up again has all of them.
"""

import dataclasses
import itertools
import json
import os
import pathlib
import shutil
import subprocess
import tempfile

from . import kernels, module, scenario
from .host import BUILD, LabError

FLOOR = 85      # percent
REPORT = BUILD / "coverage.txt"
ROOM = "net/sunrpc/xprtrdma"


def jobs(scenarios, everywhere=False):
    """Every scenario that runs in one guest; two would count little that one does not."""
    return [job for job in scenario.jobs(scenarios, [kernels.COVERAGE], ("ours",),
                                         everywhere=everywhere)
            if job.ends == 1 and job.module == "ours" and (everywhere or job.daily)]


def counts_for(job, todo):
    """Whether one of those to do runs in um-gcov what this one runs in um."""
    return job.guest == "um" and dataclasses.replace(job, guest=kernels.COVERAGE) in todo


def forget(results):
    """Only counts of this run are to be found afterwards, of what runs every day."""
    for old in results.counts.glob("daily-*"):
        shutil.rmtree(old)


def keep(results, out, daily):
    """What a guest counted, and the compiler's notes that tell what was counted."""
    built = module.directory_of(kernels.COVERAGE) / ROOM
    results.counts.mkdir(parents=True, exist_ok=True)
    scratch = pathlib.Path(tempfile.mkdtemp(prefix=".", dir=results.counts))
    shutil.copytree(out / "gcov", scratch, dirs_exist_ok=True)
    for file in scratch.rglob("*.gcda"):
        notes = file.with_suffix(".gcno")
        shutil.copy(built / notes.relative_to(scratch), notes)
    return scratch.rename(results.counts / f"{'daily' if daily else 'all'}-{scratch.name[1:]}").name


def counts(results, *kinds):
    """How often each line ran: {file below net/sunrpc/xprtrdma: {line: times}}."""
    built = module.directory_of(kernels.COVERAGE) / ROOM
    files = {}
    for left in (path for kind in kinds for path in results.counts.glob(f"{kind}-*")):
        out = subprocess.run(["gcov", "--json-format", "--stdout", *left.rglob("*.gcda")],
                             stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
                             check=False)
        if out.returncode:
            raise LabError(f"gcov cannot read {left}\n{out.stderr}")
        for line in out.stdout.splitlines():    # one for each object file
            for file in json.loads(line)["files"]:
                name = os.path.relpath(file["file"], built)
                if not name.startswith(("..", "test/")):
                    add(files.setdefault(name, {}), file["lines"])
    if not files:
        raise LabError(f"no guest left its counts in {results.counts}")
    return files


def add(times, lines):
    for line in lines:
        number = line["line_number"]
        times[number] = times.get(number, 0) + line["count"]


def in_rows(numbers, among):
    """Lines as "3-7 12": from one to another if all that count between them are meant."""
    blocks = itertools.groupby(sorted(among), key=lambda number: number in numbers)
    ends = [(block[0], block[-1]) for block in (list(block) for meant, block in blocks if meant)]
    return " ".join(str(first) if first == last else f"{first}-{last}" for first, last in ends)


def ran(times):
    return {number for number, count in times.items() if count}


def row(name, done, among, rest):
    line = (f"{name:26} {len(done):5} of {len(among):5} "
            f"{100 * len(done) / max(len(among), 1):5.1f} %  {in_rows(rest, among)}")
    return f"{line.rstrip()}\n"


def whole(files):
    """All files as one."""
    return {(name, number): count for name, times in files.items()
            for number, count in times.items()}


def measure(results, everywhere):
    """Write the report and return the percentage of all files that runs every day."""
    files = counts(results, "daily")
    lines = ["lines run every day, and which are not:\n"]
    lines += [row(name, ran(times), times, set(times) - ran(times))
              for name, times in sorted(files.items())]
    total = whole(files)
    lines.append(row("all", ran(total), total, ()))
    if everywhere:
        more = counts(results, "daily", "all")
        lines.append("\nlines run with ALL=1, and which only then:\n")
        lines += [row(name, ran(times), times, ran(times) - ran(files.get(name, {})))
                  for name, times in sorted(more.items())]
        lines.append(row("all", ran(whole(more)), whole(more), ()))
    REPORT.write_text("".join(lines))
    return 100 * len(ran(total)) / len(total)
