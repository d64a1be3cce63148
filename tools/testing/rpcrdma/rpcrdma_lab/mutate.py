# SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
"""
`make mutate`: plants small defects in net/, one at a time, and says which of them the daily
checks find. A defect that survives shows what is not checked.

Each scenario for one guest first runs once in um-gcov, which shows the lines that it runs. A
defect is planted in a copy of the checkout, and the scenarios that run its line follow until
one fails: the unit tests first, then the others by the time that they take, last the daily
ones with KASAN and lockdep.
"""

import dataclasses
import functools
import os
import random
import re
import shutil
import subprocess
import threading
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import cast

from . import coverage, host, kernels, ktap, results, scenario, session, steps, tasks
from .host import BUILD, LAB, TOP, LabError
from .scenario import Job

FOLDER = BUILD / "mutate"
NET = Path(coverage.FOLDER)
COUNT = 100
# Seconds of scenarios that one defect may take, by their times in earlier runs
BUDGET = 300
# A defect may make a scenario slow. It is found if that takes so much longer than before.
SLOWER, SLOWER_SECONDS = 4, 60
# Seconds until the first scenario
SLOWEST_BUILD = 600

# What is planted where a statement is a call of such a function
CALLS = {
    "drop a put": r"(?!nla_)\w*_put(_\w+)?|put_(page|device|net|cred)\w*|kv?free\w*|"
                  r"\w+_(free|release|destroy)\w*|refcount_dec\w*",
    "drop a get": r"\w*_get(_\w+)?|get_(page|device|net|cred)|refcount_inc\w*",
    "drop an unlock": r"(spin|mutex|read|write|rcu_read)_\w*unlock\w*",
    "drop a wake-up": r"wake_up\w*|complete(_all)?|queue_\w*work\w*|mod_delayed_work|"
                      r"rpc_wake\w*|xprt_wake\w*|xprt_write_space|svc_xprt_enqueue|"
                      r"tasklet_schedule|\w+_(wake|enqueue)\w*",
}
CALL = {rule: re.compile(rf"(\t+)({names})\(.*\);") for rule, names in CALLS.items()}
COMPARISON = re.compile(r"(?<= )(<=|>=|==|!=|<|>)(?= )")
OTHER = {"<": "<=", "<=": "<", ">": ">=", ">=": ">", "==": "!=", "!=": "=="}
# A condition in one line that has a bound, and leaves
GUARD = re.compile(r"(\t+)if \((.* [<>]=? .*)\)")
LEAVES = re.compile(r"\t+(return|goto|break|continue)\b")
LIMIT = re.compile(r"\bmin(_t|3)?\(")
DIRECTION = re.compile(r"DMA_(TO|FROM)_DEVICE")
ACCESS = re.compile(r"IB_ACCESS_\w+")


@dataclasses.dataclass(frozen=True)
class Defect:
    """A line of net/ that is changed."""
    rule: str
    file: str       # below net/sunrpc/xprtrdma
    number: int
    old: str
    new: str

    def __str__(self) -> str:
        return f"{self.file}:{self.number}: {self.rule}: {self.old.strip()}"


def changes(line: str, after: str) -> Iterator[tuple[str, str]]:
    """The defects that can be planted in a line: the rule, and the line with it."""
    if re.match(r"\s*(\*|/\*|#)", line):
        return
    for rule, pattern in CALL.items():
        match = pattern.fullmatch(line)
        if match:
            yield rule, f"{match[1]}do {{ }} while (0);"
    for match in COMPARISON.finditer(line):
        yield "flip a comparison", f"{line[:match.start()]}{OTHER[match[1]]}{line[match.end():]}"
    match = GUARD.fullmatch(line)
    if match and LEAVES.match(after):
        yield "remove a bound", f"{match[1]}if (0 && ({match[2]}))"
    for match in LIMIT.finditer(line):
        yield ("remove a bound",
               f"{line[:match.start()]}max{match[1] or ''}({line[match.end():]}")
    for match in DIRECTION.finditer(line):
        other = {"TO": "FROM", "FROM": "TO"}[match[1]]
        yield ("swap DMA directions",
               f"{line[:match.start()]}DMA_{other}_DEVICE{line[match.end():]}")
    for match in ACCESS.finditer(line):
        yield "drop an access flag", f"{line[:match.start()]}0{line[match.end():]}"
        if "REMOTE_WRITE" not in line:
            yield ("add an access flag",
                   f"{line[:match.end()]} | IB_ACCESS_REMOTE_WRITE{line[match.end():]}")


def net_files(tests: bool) -> list[Path]:
    """The files of net/, its unit tests or the others."""
    return [path for path in steps.sources([str(NET)], "*.[ch]")
            if (path.relative_to(TOP / NET).parts[0] == "test") == tests]


def all_defects() -> list[Defect]:
    """Every defect that could be planted, in an order that does not change."""
    found = []
    for path in net_files(tests=False):
        name = path.relative_to(TOP / NET)
        if name.name.startswith("trace."):
            continue
        lines = [*path.read_text().split("\n"), ""]
        found += [Defect(rule, str(name), number, line, new)
                  for number, line in enumerate(lines[:-1], 1)
                  for rule, new in changes(line, lines[number])]
    return found


def shuffled(defects: Sequence[Defect], seed: int) -> Iterator[Defect]:
    """
    The defects in an order that depends on the seed alone. Each rule has its turn, because
    there are many comparisons and few wake-ups.
    """
    rng = random.Random(seed)
    rules = {}
    for rule in sorted({defect.rule for defect in defects}):
        mine = [defect for defect in defects if defect.rule == rule]
        rules[rule] = rng.sample(mine, len(mine))
    while rules:
        for rule in list(rules):
            yield rules[rule].pop()
            if not rules[rule]:
                del rules[rule]


# Which scenario runs which lines

Counted = dict[str, dict[int, bool]]    # {file: {line that has code: whether it ran}}
Lines = dict[str, Counted]              # {job: counted}


def key_of(job: Job) -> str:
    """A hash of what the lines that a job runs depend on, as a rule."""
    files = net_files(tests=False) + [job.scenario.path]
    return results.hash_of(files + net_files(tests=True) if job.module == "kunit" else files)


def lines_run(out: Path) -> Counted:
    """Which lines the guests ran that left counts in a folder."""
    return {name: {number: count > 0 for number, count in times.items()}
            for name, times in coverage.read_counts([out]).items()}


def make_map(jobs: Sequence[Job], run: session.Run) -> Lines:
    """Run the jobs that are not known yet, each in a boot of its own."""
    file = FOLDER / "counts.json"
    keys = {job.name: key_of(job) for job in jobs}
    kept = cast(dict[str, tuple[str, dict[str, list[tuple[int, bool]]]]], results.read(file))
    kept = {name: entry for name, entry in kept.items() if entry[0] == keys.get(name)}
    lock = threading.Lock()             # protects kept

    def do(job: Job) -> None:
        def keep(out: Path, _: bool) -> str:
            counts = coverage.with_notes(out, Path(FOLDER / "gcov"))
            lines = lines_run(counts)
            shutil.rmtree(counts)
            with lock:
                kept[job.name] = keys[job.name], {name: list(counted.items())
                                                  for name, counted in lines.items()}
                results.write(file, kept)
            return ""
        session.run_session(job.session, [job], dataclasses.replace(run, keep_counts=keep))

    todo = [job for job in jobs if job.name not in kept]
    tasks.run([*session.guest_tasks([job.guest for job in todo], run),
               *(tasks.Task(job.guest, functools.partial(do, job), job.about(run.times),
                            session.needs(job.guest), cpus=session.cpus_of([job], run),
                            memory=session.memory_of(job.session))
                 for job in todo)])
    return {job: {name: dict(counted) for name, counted in lines.items()}
            for job, (_, lines) in kept.items()}


def runs_line(lines: Counted, defect: Defect) -> bool:
    """
    Whether a line ran, or one next to it. One without code of its own, such as the second of a
    statement, counts with what is before it, and a call of an inline function has no sure count.
    """
    counted = lines.get(defect.file, {})
    return any(counted.get(defect.number + near, False) for near in range(-3, 2))


# Finding a defect

@dataclasses.dataclass
class Verdict:
    """What became of a defect."""
    defect: Defect
    what: str           # found, survived, not covered, not built
    by: str = ""
    seconds: float = 0


class Watch:
    """Kills a process that takes too long."""

    def __init__(self, process: "subprocess.Popen[str]") -> None:
        self.process = process
        self.timer: threading.Timer | None = None
        self.killed = False

    def allow(self, seconds: float | None) -> None:
        """Let it run for so many seconds from now on, or for ever."""
        if self.timer:
            self.timer.cancel()
        if seconds:
            self.timer = threading.Timer(seconds, self.kill)
            self.timer.start()

    def kill(self) -> None:
        """End it; its guests end with it."""
        self.killed = True
        self.process.kill()


class Worker:
    """A copy of the checkout that defects are planted in."""

    def __init__(self, cpu: int, times: results.Times) -> None:
        self.cpu = cpu      # that its lab uses alone
        self.top = FOLDER / f"copy-{cpu}"
        self.times = times
        self.top.mkdir(parents=True, exist_ok=True)
        for old in self.top.iterdir():
            if old.name != "build" and old.is_dir():
                shutil.rmtree(old)
        shutil.copytree(TOP, self.top, dirs_exist_ok=True, symlinks=True,
                        ignore=lambda folder, names: {"build", ".git"} & set(names)
                        if Path(folder) == TOP else set())

    def test(self, defect: Defect, jobs: Sequence[Job]) -> Verdict:
        """Plant a defect, run jobs until one fails, and remove it."""
        path = self.top / NET / defect.file
        good = path.read_text()
        lines = good.split("\n")
        lines[defect.number - 1] = defect.new
        path.write_text("\n".join(lines))
        start = time.monotonic()
        try:
            what, by = self.run(jobs)
        finally:
            path.write_text(good)
        return Verdict(defect, what, by, time.monotonic() - start)

    def prepare(self) -> None:
        """What the new process does before it becomes the lab."""
        host.die_with_parent()
        os.sched_setaffinity(0, {self.cpu})

    def run(self, jobs: Sequence[Job]) -> tuple[str, str]:
        """Have a lab of its own run the jobs. It ends with the first failure, or is ended."""
        argv = [str(self.top / LAB.relative_to(TOP) / "lab"), "jobs", *(job.name for job in jobs)]
        with subprocess.Popen(argv, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                              stderr=subprocess.STDOUT, text=True, errors="replace",
                              preexec_fn=self.prepare) as process:
            assert process.stdout
            job, text = "", []
            watch = Watch(process)
            watch.allow(SLOWEST_BUILD)
            for line in process.stdout:
                text.append(line)
                match = re.fullmatch(r"# (.* \[.*\]) \.\.\.\n", line)
                if match:
                    job = match[1]
                    watch.allow(SLOWER * self.times.about(job, 30) + SLOWER_SECONDS)
            watch.allow(None)
        (self.top / "jobs.log").write_text("".join(text))
        if watch.killed:
            return "found", f"{job}, which does not end"
        if process.returncode == 0:
            return "survived", ""
        failed = [line[len("# failed: "):].strip() for line in text
                  if line.startswith("# failed: ")]
        if not failed or any(": exit status 2" in line and "make" in line for line in text):
            return "not built", ""
        return "found", failed[0]


def jobs_for(defect: Defect, lines: Lines, all_jobs: Sequence[Job],
             times: results.Times) -> list[Job]:
    """The jobs that run a line of code, those first that probably find it soonest."""
    counted = {job.scenario.name for job in all_jobs if job.name in lines}
    covering = {job.scenario.name for job in all_jobs
                if job.name in lines and runs_line(lines[job.name], defect)}
    # Of those in which no lines are counted it is known only if they run elsewhere, too.
    jobs = [job for job in all_jobs
            if (runs_line(lines[job.name], defect) if job.name in lines
                else job.scenario.name in covering or job.scenario.name not in counted)]
    jobs.sort(key=lambda job: (job.scenario.name != "kunit", job.guest == kernels.DEBUG,
                               job.about(times)))
    return jobs


def within_budget(jobs: Sequence[Job], times: results.Times) -> list[Job]:
    """
    The first jobs of those without checks, and of those with, that together take BUDGET
    seconds.
    """
    chosen: list[Job] = []
    for checks in (False, True):
        spent = 0.0
        for job in (job for job in jobs if (job.guest == kernels.DEBUG) == checks):
            spent += job.about(times)
            if spent <= BUDGET / 2:
                chosen.append(job)
    return chosen


def daily_jobs() -> list[Job]:
    """The scenarios of the daily check in one guest that show a defect of the module."""
    scenarios = scenario.load_all()
    return [job for job in [*coverage.jobs(scenarios),
                            *scenario.jobs(scenarios, [kernels.DEBUG], ("ours",))]
            if job.ends == 1 and not job.scenario.why_skipped(job)
            and job.scenario.name != "device-kunit"]


def mutate(count: int, seed: int) -> bool:
    """Plant defects, and print what became of each. Returns whether all were found."""
    report = ktap.Report(lambda line: None if re.match(r"    (?!not ok)", line) else host.say(line))
    times = results.Times()
    run = session.Run(report, times)
    jobs = daily_jobs()
    lines = make_map([job for job in jobs if job.guest == kernels.COVERAGE], run)
    if report.failed:
        raise LabError("scenarios fail without a defect: mend them first")
    waiting = shuffled(all_defects(), seed)
    verdicts: list[Verdict] = []
    lock = threading.Lock()     # protects waiting, verdicts and taken
    taken = 0

    def work(worker: Worker) -> None:
        nonlocal taken
        while True:
            with lock:
                if taken == count:
                    return
                defect = next(waiting, None)
                taken += 1
            if not defect:
                return
            todo = jobs_for(defect, lines, jobs, times)
            chosen = within_budget(todo, times)
            verdict = worker.test(defect, chosen) if chosen else Verdict(defect, "not covered")
            if verdict.what == "survived":
                verdict.by = f"{len(chosen)} of {len(todo)} scenarios that run the line"
            with lock:
                taken -= verdict.what == "not built"
                verdicts.append(verdict)
                host.say(f"{verdict.what:12}{verdict.seconds:5.0f} s  {verdict.defect}"
                         f"{'  # ' if verdict.by else ''}{verdict.by}")

    tasks.run([tasks.Task("mutate", functools.partial(work, Worker(cpu, times)), 60 * count)
               for cpu in os.sched_getaffinity(0)], lambda line: None)
    return summary(verdicts, seed)


def summary(verdicts: Sequence[Verdict], seed: int) -> bool:
    """Print the counts. Returns whether everything that was planted was found."""
    planted = [verdict for verdict in verdicts if verdict.what != "not built"]
    for rule in sorted({verdict.defect.rule for verdict in planted}):
        mine = [verdict.what for verdict in planted if verdict.defect.rule == rule]
        host.say(f"# {rule}: {mine.count('found')} of {len(mine)} found")
    whats = [verdict.what for verdict in planted]
    host.say(f"# seed {seed}: {len(planted)} planted: {whats.count('found')} found, "
             f"{whats.count('survived')} survived, {whats.count('not covered')} not covered")
    return whats.count("found") == len(planted)


def run_jobs(names: Sequence[str]) -> bool:
    """Run jobs by their names, each in a boot of its own, until one fails."""
    report = ktap.Report()
    # The times with a defect are no times for others.
    run = session.Run(report, results.Times("mutate-times"), cpu=results.Times("mutate-cpu"))
    known = {job.name: job for job in daily_jobs()}
    for name in names:
        job = known[name]
        session.guarded(report, name, session.run_session, job.session, [job], run)
        if report.failed:
            break
    return report.close()
