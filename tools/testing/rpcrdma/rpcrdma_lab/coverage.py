# SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
"""
Which lines of net/ the unit tests and the scenarios run, together. A module
built for it counts them in um-gcov; guest/coverage.sh leaves the counts in
lab/out/gcov; gcov, which comes with the compiler, tells lines from counts.
"""

import dataclasses
import itertools
import json
import os
import shutil
import subprocess

from . import kernels, scenario
from .host import BUILD, LabError

FLOOR = 85      # percent
REPORT = BUILD / "coverage.txt"
ROOM = "net/sunrpc/xprtrdma"

# They wait long, and run hardly a line that others do not.
LEFT_OUT = {"thresholds", "unload-connecting", "faults-dead-server"}


def jobs():
    """Every scenario that runs in one guest; two would count little that one does not."""
    return [job for job in scenario.jobs(scenario.load_all(), [kernels.COVERAGE], ("ours",))
            if job.ends == 1 and job.module == "ours" and job.scenario.name not in LEFT_OUT]


def counts_for(job, todo):
    """Whether one of those to do runs in um-gcov what this one runs in um."""
    return job.guest == "um" and dataclasses.replace(job, guest=kernels.COVERAGE) in todo


def forget():
    """Only counts of this run are to be found afterwards."""
    for old in BUILD.glob(f"logs/{kernels.COVERAGE}-*"):
        shutil.rmtree(old)


def counts():
    """How often each line ran: {file below net/sunrpc/xprtrdma: {line: times}}."""
    built = BUILD / f"{kernels.COVERAGE}-ours" / ROOM
    files = {}
    for left in BUILD.glob(f"logs/{kernels.COVERAGE}-*/lab/out/gcov"):
        data = list(left.rglob("*.gcda"))
        for file in data:       # gcov wants the compiler's notes beside them
            notes = file.relative_to(left).with_suffix(".gcno")
            shutil.copy(built / notes, left / notes)
        out = subprocess.run(["gcov", "--json-format", "--stdout", *data],
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
        raise LabError(f"no guest left its counts, see {BUILD / 'logs'}")
    return files


def add(times, lines):
    for line in lines:
        number = line["line_number"]
        times[number] = times.get(number, 0) + line["count"]


def not_run(times):
    """The lines that never ran, as "3-7 12": from one to another if none between them ran."""
    blocks = itertools.groupby(sorted(times), key=lambda number: times[number] > 0)
    ends = [(block[0], block[-1]) for block in (list(block) for run_, block in blocks if not run_)]
    return " ".join(str(first) if first == last else f"{first}-{last}" for first, last in ends)


def figure(times):
    """Lines that ran, lines, and the percentage."""
    ran = sum(count > 0 for count in times.values())
    return ran, len(times), 100 * ran / max(len(times), 1)


def measure():
    """Write the report and return the percentage of all files."""
    files = counts()
    total = {(name, number): count for name, times in files.items()
             for number, count in times.items()}
    row = "{:26} {:5} of {:5} {:5.1f} %  {}".format
    rows = [row(name, *figure(times), not_run(times)) for name, times in sorted(files.items())]
    rows.append(row("all", *figure(total), ""))
    REPORT.write_text("".join(f"{line.rstrip()}\n" for line in ["lines run, not run:", *rows]))
    return figure(total)[2]
