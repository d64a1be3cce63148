# SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
"""`make check`: everything that must hold before a change lands, in parts and scenarios."""

import dataclasses
import fnmatch
import functools
import os
import shutil
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import cast

from . import (backports, builds, cache, compilers, coverage, debs, dissector, emulator, host,
               kernels, ktap, module, packages, results, root, scenario, selftest, session, steps,
               style, tasks, toolchain, tools, wire)
from .host import TOP, LabError
from .ktap import Report, Reporter, Test
from .results import Results
from .scenario import Job
from .session import Run
from .steps import check_step

# The rpcrdma that is tested unless MODULE= names the other one
MODULE = "ours"

# Scenarios that run on um with the kernel's own module as well. That they pass shows that the
# scenarios are correct. Those in INBOX_DAILY run every day, and with ALL=1 on the kernels that
# users have; the others with ALL=1.
INBOX_TOO = {"capture", "copy", "fio", "mount", "ping", "tree"}
INBOX_DAILY = {"mount", "ping"}


def matches(name: str, pattern: str) -> bool:
    """Whether a part matches T=PATTERN."""
    return fnmatch.fnmatch(name, scenario.pattern_for(pattern))


@dataclasses.dataclass(frozen=True)
class Part:
    """A part of a check that is no scenario."""
    function: Callable[[Reporter], None]
    guess: float                        # seconds
    kernels: tuple[str, ...] = ()       # that it needs
    daily: bool = True                  # False: only with ALL=1, or when T= names it
    # All files that it depends on. It need not run again as long as these, and the programs in
    # part_ran_with(), stay as they are.
    inputs: tuple[str, ...] = ()
    named: bool = False                 # only when T= names it, not even with ALL=1


LAB_FILES = "tools/testing/rpcrdma/rpcrdma_lab"
WIRE = (f"{coverage.FOLDER}/wire", f"{coverage.FOLDER}/test", "tools/testing/rpcrdma/wire",
        "Makefile", f"{LAB_FILES}/wire.py")
BUILT = (*module.SOURCES, "scripts", *(f"{LAB_FILES}/{name}.py" for name in
                                       ("backports", "builds", "module", "kernels", "toolchain")))
COMPILED = (*module.SOURCES, *(f"{LAB_FILES}/{name}.py" for name in
                               ("compilers", "module", "kernels")),
            "tools/testing/rpcrdma/kernels")
INSTALLED = (*module.SOURCES, "tools", "scripts", "debian", "Documentation", "LICENSES",
             "NEWS", "README.md", "COPYING")
STOCK_BUILDS = {f"build [{name}]": name for name in kernels.STOCK}
PARTS = {
    "style": Part(style.style, 60, inputs=(*INSTALLED, ".ci", ".clang-format", ".gitignore")),
    **{part: Part(functools.partial(builds.build_for_stock, name), 60, (name,),
                  kernels.STOCK[name].release == "12", BUILT)
       for part, name in STOCK_BUILDS.items()},
    "build [in-tree]": Part(functools.partial(builds.build_in_tree, "um"), 60, ("um",),
                            inputs=BUILT),
    "build [in-tree um-7]": Part(functools.partial(builds.build_in_tree, "um-7"), 120, ("um-7",),
                                 False, BUILT),
    "build [backports]": Part(backports.build, 60, tuple(backports.BACKPORTS), inputs=BUILT),
    "build [i386]": Part(compilers.i386, 200, daily=False, inputs=COMPILED),
    "build [clang]": Part(compilers.clang, 120, daily=False, inputs=COMPILED),
    "make": Part(builds.make_refuses, 5),
    "packages": Part(debs.make_deb, 30, inputs=INSTALLED),
    "packages [signed]": Part(debs.signed, 120, (debs.SIGNED,), False, INSTALLED),
    **{debs.part(name): Part(functools.partial(debs.with_kernel, name), 600, (name,), False,
                             named=name not in debs.KERNELS) for name in kernels.TESTED},
    "wire": Part(wire.wire, 60, inputs=WIRE),
    "big-endian": Part(wire.big_endian, 10, daily=False, inputs=WIRE),
    "tools": Part(tools.tools, 45, inputs=(
        "tools/rpcrdma", "include/uapi", "Documentation/netlink", "Documentation/monitoring",
        f"{coverage.FOLDER}/wire", "Makefile", "dkms.conf", f"{LAB_FILES}/tools.py",
        f"{LAB_FILES}/wire.py")),
    "dissector": Part(dissector.dissector, 5),
    "runner": Part(selftest.run, 60, ("um",), inputs=(
        *module.SOURCES, "tools", "Documentation/examples", "debian/60-rpcrdma-dkms.rules")),
}


# What to run

def inbox_too(job: Job, everywhere: bool) -> bool:
    """Whether a scenario runs there with the kernel's own module as well."""
    if job.guest in kernels.STOCK:
        return job.scenario.name in INBOX_DAILY and job.ends == 1
    return job.scenario.name in (INBOX_TOO if everywhere else INBOX_DAILY)


def wanted_jobs(pattern: str, under_test: str | None, everywhere: bool,
                counted: bool) -> list[Job]:
    """The scenarios that a check runs, each in its places."""
    scenarios = scenario.load_all()
    todo = scenario.jobs(scenarios, None, (under_test or MODULE,), pattern, everywhere)
    if not under_test:
        where = ["um", *(kernels.STOCK if everywhere else ())]
        todo += [job for job in scenario.jobs(scenarios, where, ("inbox",), pattern, everywhere)
                 if job not in todo and inbox_too(job, everywhere)]
    counts: list[Job] = []
    if counted:
        counts = coverage.jobs(scenarios, everywhere)
        if pattern == "*" and not everywhere:
            # What um-gcov runs need not run on um or um-7. But its module is built to count
            # lines, so some scenarios also run with the users' module.
            todo = [job for job in todo if job.scenario.name in INBOX_DAILY
                    or not coverage.counts_for(job, counts)]
        todo = counts + todo
    if pattern == "*":
        # With ALL=1 um-gcov runs over all devices what takes turns on um.
        tree = results.tree()[0]
        todo = [job for job in todo if job.has_turn(tree)
                or everywhere and not coverage.counts_for(job, counts)]
    return todo


def part_ran_with(name: str) -> str:
    """What a result of a part is valid for."""
    versions = [kernels.source_version(), root.version(host.debian()),
                *(kernels.version(kernel) for kernel in PARTS[name].kernels)]
    releases = {kernels.STOCK[kernel].release for kernel in PARTS[name].kernels
                if kernel in kernels.STOCK}
    versions += [toolchain.version(release) for release in releases if toolchain.needed(release)]
    if name == "make":      # which says whether it takes the newest ones
        versions += [kernels.version(kernel) for kernel in kernels.TESTED]
    if name == "style":     # make has to find the running kernel
        versions.append(os.uname().release)
    versions += [debs.base_version(kernel) for kernel in PARTS[name].kernels
                 if name == debs.part(kernel)]
    have = packages.installed()
    names = [*packages.PACKAGES, *packages.RELEASE_PACKAGES[host.debian()], *debs.PACKAGES,
             "gcc-14", "clang-14", "clang-19", "coccinelle", "gcc-s390x-linux-gnu"]
    return " ".join([*versions, *(have.get(name, "") for name in names)])


def inputs_key(name: str) -> str | None:
    """A hash of all that a part depends on, if it says what that is."""
    if not PARTS[name].inputs:
        return None
    paths = [TOP / path for path in PARTS[name].inputs]
    files = [path for path in paths if path.is_file()]
    folders = [str(path.relative_to(TOP)) for path in paths if path.is_dir()]
    return results.hash_of(files + steps.sources(folders, "*"), name, part_ran_with(name))


def passed_before(key: str | None) -> list[int] | None:
    """The tests passed and skipped, and the seconds, of a part that has passed with this key."""
    return cast(list[int] | None, results.Passes("parts").known.get(key)) if key else None


def do_part(name: str, run: Run, again: bool) -> None:
    """
    Run one part. The results of its tests are kept as one. If nothing that it depends on has
    changed since it passed, it only runs if it is to run again.
    """
    report = run.report.branch()
    key = inputs_key(name)
    before = passed_before(key)
    if before and not again:
        passed, skipped, took = before
        outcome = results.Outcome(name, passed, 0, skipped, took)
        run.report.earlier(outcome)
        run.keep([outcome], part_ran_with(name))
        return
    start = time.monotonic()
    session.guarded(report, name, PARTS[name].function, report)
    seconds = time.monotonic() - start
    if not any(outcome.failed for outcome in report.outcomes):
        run.times.keep({name: seconds})
    outcome = ktap.together(name, report.outcomes, seconds)
    run.keep([outcome], part_ran_with(name))
    if key and outcome.failed:
        results.Passes("parts").forget(key)
    # If a file has changed meanwhile, it is not known what was tested.
    elif key and key == inputs_key(name) and outcome.passed:
        results.Passes("parts").keep({key: [outcome.passed, outcome.skipped, round(seconds)]})


def part_task(name: str, run: Run, again: bool) -> tasks.Task:
    """A task that runs one part."""
    part = PARTS[name]
    needs = [need for kernel in part.kernels for need in session.needs(kernel)]
    return tasks.Task(name, functools.partial(session.guarded, run.report, name,
                                              do_part, name, run, again),
                      run.times.about(name, part.guess), tuple(needs))


def still_open(parts: list[str], todo: list[Job], run: Run,
               known: Results) -> tuple[list[str], list[Job]]:
    """
    The parts and jobs that have not passed in an earlier run of the same tree. Those
    that have are reported.
    """
    passed = {name: known.earlier(name, part_ran_with(name)) for name in parts}
    passed |= {job.name: known.earlier(job.name, job.ran_with) for job in todo}
    for outcome in passed.values():
        if outcome:
            run.report.earlier(outcome)
    parts = [name for name in parts if not passed[name]]
    todo = [job for job in todo if not passed[job.name]]
    names = parts + [job.name for job in todo if not job.scenario.why_skipped(job)]
    host.say(f"# {known.commit}: {len(passed) - len(parts) - len(todo)} tests passed in "
             f"earlier runs, see {known.file}; {len(names)} are still to run")
    for name in names:
        host.say(f"#   to run: {name}")
    return parts, todo


# The coverage of a run

def measure_coverage(report: Report, known: Results, everywhere: bool) -> None:
    """Write the report of line coverage; less than the minimum is a failure."""
    with report.test("coverage") as test:
        check_step(test, f"{coverage.FLOOR} % of the lines of net/ or more",
                   lambda: too_few_lines(test, known, everywhere))


def too_few_lines(test: Test, known: Results, everywhere: bool) -> Iterable[str]:
    """A complaint if fewer lines ran than must run."""
    percent = coverage.measure(known, everywhere)
    test.line(f"# the unit tests and the daily scenarios run {percent:.1f} % of the lines of "
              f"net/; the other lines are listed in {coverage.REPORT}")
    return ["too few lines ran"] if percent < coverage.FLOOR else []


# The check

def check(pattern: str, under_test: str | None, everywhere: bool) -> bool:
    """Run what matches and report it. Returns whether everything passed."""
    # Results with the kernel's own module are not kept.
    known = None if under_test == "inbox" else Results()
    run = Run(Report(), results.Times(), known)
    counted = known is not None and matches("coverage", pattern)
    parts = [name for name, part in PARTS.items()
             if matches(name, pattern)
             and (pattern != "*" or part.daily or everywhere and not part.named)]
    todo = wanted_jobs(pattern, under_test, everywhere, counted)
    if not parts and not todo:
        raise LabError(f"no check matches {pattern}: name a scenario, {', '.join(PARTS)} "
                       "or coverage" + ("" if everywhere else ", or add ALL=1"))
    if any(job.guest.startswith("um") for job in todo):
        emulator.require_memory_folder()
    if known and counted:
        run.keep_counts = functools.partial(coverage.keep, known)
        if not everywhere:
            coverage.forget(known)
    if known and everywhere and pattern == "*":
        parts, todo = still_open(parts, todo, run, known)
    spent = run_all(parts, todo, run, again=everywhere or pattern != "*")
    if known and counted:
        measure_coverage(run.report, known, everywhere)
    say_times(run.report, spent)
    if known and known.changed:
        host.say("# files have changed during the run: its results are not kept for ALL=1")
    host.say(f"# cache: {cache.size()} MB in {host.CACHE}")
    return run.report.close()


def run_all(parts: Sequence[str], todo: Sequence[Job], run: Run,
            again: bool) -> dict[str, float]:
    """Run parts and jobs. Returns the seconds of each group."""
    for name in parts:
        # Compile all files: others would print no warnings.
        if name in STOCK_BUILDS and (again or not passed_before(inputs_key(name))):
            shutil.rmtree(module.directory_of(STOCK_BUILDS[name]), ignore_errors=True)
    names = [job.guest for job in todo] + [name for part in parts for name in PARTS[part].kernels]
    return tasks.run([*session.guest_tasks(names, run),
                      *(part_task(name, run, again) for name in parts),
                      *session.session_tasks(todo, run)])


def say_times(report: Report, spent: Mapping[str, float]) -> None:
    """Print which groups and tests took the most time."""
    host.say("# seconds of each guest and part; they overlap:")
    for group in sorted(spent, key=lambda group: spent[group], reverse=True):
        host.say(f"#   {spent[group]:6.0f}  {group}")
    host.say("# the slowest tests:")
    for outcome in sorted(report.outcomes, key=lambda outcome: -outcome.seconds)[:10]:
        host.say(f"#   {outcome.seconds:6.0f}  {outcome.name}")
    host.say(f"# {sum(outcome.cpu for outcome in report.outcomes):.0f} s of CPU in scenarios, "
             "most in:")
    for outcome in sorted(report.outcomes, key=lambda outcome: -outcome.cpu)[:10]:
        host.say(f"#   {outcome.cpu:6.0f}  {outcome.name}")
