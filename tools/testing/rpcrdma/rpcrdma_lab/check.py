# SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
"""`make check`: everything that has to hold before a change lands, part by part."""

import contextlib
import dataclasses
import fnmatch
import functools
import itertools
import os
import pathlib
import re
import shutil
import subprocess
import time
import typing

from . import coverage, guest, host, kernels, ktap, lanes, module, results, scenario, selftest
from .host import BUILD, LAB, TOP, LabError, run

# Which rpcrdma the scenarios are about, unless MODULE= says otherwise.
MODULE = "ours"

FUZZ_SECONDS = 20

# Scenarios that the kernel's own module has to pass too: so the lab tells the truth.
TRUTH = {"capture", "copy", "fio", "mount", "tree"}
DAILY_TRUTH = {"mount"}

# Kernel headers of the module that this one replaces.
FORBIDDEN = re.compile(r"include <(linux/sunrpc/(rpc_rdma|svc_rdma|svc_rdma_pcl|xprtrdma"
                       r"|rpc_rdma_cid)|trace/events/rpcrdma)\.h")


def sources(folders, *patterns):
    """The project's own files below some of its folders."""
    found = set()
    for folder, pattern in itertools.product(folders, patterns):
        found.update(path for path in (TOP / folder).rglob(pattern) if path.is_file())
    return sorted(path for path in found
                  if not {"build", "__pycache__"} & set(path.relative_to(TOP).parts)
                  and not path.name.endswith((".mod.c", ".o", ".ko", ".cmd", ".mod", ".order")))


C_FILES = (("net", "include", "tools"), "*.[ch]")
MODULE_FILES = (("net", "include"), "*.[ch]")


def attempt(test, what, function):
    """One step of a test, failed by a LabError or by the lines it returns."""
    try:
        complaints = function()
    except LabError as error:
        complaints = str(error).splitlines()
    for line in complaints or ():
        test.line(f"# {line}")
    test.step(not complaints, what)


# The module, built as its users build it

def warnings_of(kernel):
    """Those that are no errors, such as modpost's and objtool's. It is built from nothing."""
    module.build(kernel, MODULE)
    log = module.directory_of(kernel.name) / f"build-{MODULE}.log"
    return [line for line in log.read_text().splitlines() if re.search(r"\bwarning:", line, re.I)]


def sparse(kernel):
    """What sparse says of our files; kernel headers have remarks of their own."""
    directory = module.directory_of(kernel.name)
    out = module.make(kernel, "C=2", "CF=-D__CHECK_ENDIAN__")
    ours = rf"(net/sunrpc/xprtrdma|{directory.name}/include)/\S+:\d+:\d+: (warning|error)"
    # A header is read for each file that includes it.
    return list(dict.fromkeys(line for line in out.splitlines() if re.search(ours, line)))


def build_for_stock(name, report):
    with report.test(f"build [{name}]") as test:
        kernel = kernels.kernel(name)
        attempt(test, f"against the headers of {kernel.release}, W=1",
                lambda: warnings_of(kernel))
        attempt(test, "sparse, with endianness", lambda: sparse(kernel))


def build_in_tree(report):
    """
    The um kernel once more, with our transport built in. Its tree is a copy of
    the source made of hard links, and its build continues um's: only what
    differs is compiled.
    """
    with report.test("build [in-tree]") as test:
        attempt(test, "CONFIG_SUNRPC_XPRT_RDMA=y in a kernel tree", overlay_and_build)


def overlay_and_build():
    kernel = kernels.kernel("um")
    tree = host.CACHE / "intree"
    out = tree / kernel.kdir.name
    with host.locked("intree"):
        if not out.exists():
            shutil.rmtree(tree, ignore_errors=True)
            run("cp", "-al", kernel.kdir.parent, tree)
            for build in tree.glob("*/lab.config"):
                shutil.rmtree(build.parent)
            fresh = tree / "fresh"
            run("cp", "-a", kernel.kdir, fresh)
            run(tree / "scripts/config", "--file", fresh / ".config",
                "--enable", "SUNRPC_XPRT_RDMA")
            fresh.rename(out)
        # A warning is said once: compile ours anew.
        shutil.rmtree(out / "net/sunrpc/xprtrdma", ignore_errors=True)
        run(TOP / "scripts/overlay-kernel", tree)
        words = ["make", "-C", tree, "ARCH=um", f"O={out.name}", *kernels.compiler()]
        run(*words, "olddefconfig")
        output = run(*words, f"-j{host.jobs()}", "linux", log=BUILD / "intree.log")
    if "CONFIG_SUNRPC_XPRT_RDMA=y" not in (out / ".config").read_text():
        return ["CONFIG_SUNRPC_XPRT_RDMA=y is not what was built"]
    return [line for line in output.splitlines()
            if "warning:" in line and "net/sunrpc/xprtrdma" in line]


# Style

def checkpatch():
    tree = kernels.source()[0]
    script = tree / "scripts/checkpatch.pl"
    done = subprocess.run(["perl", script, f"--root={tree}", "--strict", "--terse", "--no-summary",
                           "--show-types", "-f", *sources(*C_FILES)], stdin=subprocess.DEVNULL,
                          stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
                          cwd=BUILD, check=False, preexec_fn=host.follow_gently)
    lines = [line.replace(f"{TOP}/", "") for line in done.stdout.splitlines()]
    return [line for line in lines if ": " in line and not exempt(line)]


# What checkpatch cannot know: trace headers have a layout of their own all over
# the kernel, telling kernel versions apart is what the overlay is for, libFuzzer
# names its entry point, the KUnit shim has KUnit's names.
EXEMPT = {
    "net/sunrpc/xprtrdma/trace.h": {"PARENTHESIS_ALIGNMENT", "OPEN_ENDED_LINE", "COMPLEX_MACRO",
                                    "TRAILING_SEMICOLON", "MACRO_ARG_REUSE"},
    "include/": {"LINUX_VERSION_CODE", "CONSTANT_COMPARISON", "COMPLEX_MACRO", "MACRO_ARG_REUSE",
                 "MACRO_ARG_PRECEDENCE", "SPACING"},
    "tools/testing/rpcrdma/wire/fuzz.c": {"CAMELCASE"},
    "tools/testing/rpcrdma/wire/kunit/test.h": {"MACRO_ARG_REUSE", "MACRO_ARG_PRECEDENCE",
                                                "PREFER_DEFINED_ATTRIBUTE_MACRO"},
}


def exempt(line):
    return any(line.startswith(path) and any(f"{kind}:" in line for kind in kinds)
               for path, kinds in EXEMPT.items())


def kernel_doc():
    script = kernels.source()[0] / "scripts/kernel-doc"
    out = run("perl", script, "-none", "-Wall", *sources(*MODULE_FILES))
    return [line.replace(f"{TOP}/", "") for line in out.splitlines()
            if "warning:" in line or "error:" in line]


def spdx():
    """Every file but data names its licence in its first lines."""
    wanted = sources(("net", "include", "tools", "scripts", "Documentation", ".ci"), "*")
    wanted += [TOP / name for name in ("Makefile", "Kbuild", "Kconfig", "dkms.conf", "README.md",
                                       "COPYING", ".clang-format", ".gitignore")]
    return [f"{path.relative_to(TOP)}: no SPDX line" for path in wanted
            if path.parent.name != "corpus"
            and "SPDX-License-Identifier" not in path.read_text(errors="replace")[:200]]


def house_rules():
    complaints = []
    for path in sources(*MODULE_FILES):
        name = path.relative_to(TOP)
        for number, line in enumerate(path.read_text().splitlines(), 1):
            if FORBIDDEN.search(line):
                complaints.append(f"{name}:{number}: a header of the kernel's own transport")
            if name.parts[0] == "net" and re.search(r"LINUX_VERSION_CODE|KERNEL_VERSION\(", line):
                complaints.append(f"{name}:{number}: kernel versions belong in include/")
    version = re.search(r'^PACKAGE_VERSION="(.*)"', (TOP / "dkms.conf").read_text(), re.M)[1]
    if f'MODULE_VERSION("{version}")' not in (TOP / "net/sunrpc/xprtrdma/main.c").read_text():
        complaints.append(f"dkms.conf: {version} is not the MODULE_VERSION of main.c")
    return complaints


def citations():
    return run(TOP / "scripts/check-citations").splitlines()


def running_kernel():
    out = run("make", "-C", TOP, "-n", "uninstall")
    return [] if f"/lib/modules/{os.uname().release}/updates" in out else out.splitlines()


def style(report):
    BUILD.mkdir(exist_ok=True)
    with report.test("style") as test:
        attempt(test, "checkpatch.pl --strict", checkpatch)
        attempt(test, "kernel-doc", kernel_doc)
        attempt(test, "every file names its licence", spdx)
        attempt(test, "rules of the house", house_rules)
        attempt(test, "every section of an RFC that is cited exists", citations)
        attempt(test, "make finds the running kernel by itself", running_kernel)


# The wire format in user space

WIRE = ("make", "-C", str(LAB / "wire"), f"O={BUILD / 'wire'}")


def fuzz(seconds):
    """`make fuzz`: what libFuzzer says, as it says it."""
    return not subprocess.run([*WIRE, "fuzz", f"SECONDS={seconds}"], stdin=subprocess.DEVNULL,
                              check=False, preexec_fn=host.follow_gently).returncode


def wire(report):
    with report.test("wire [user space, ASan, UBSan]") as test:
        done = subprocess.run([*WIRE, "test"], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                              stderr=subprocess.STDOUT, text=True, check=False,
                              preexec_fn=host.follow_gently)
        before = test.bad
        for line in done.stdout.splitlines():
            # Suites print their cases indented, and a result of their own.
            if re.match(r"\s+(not )?ok ", line) or "EXPECTATION" in line or "ERROR" in line:
                test.line(line)
        if done.returncode and test.bad == before:
            test.fail("the test program", *done.stdout.splitlines()[-30:])
    with report.test("wire [fuzz]") as test:
        attempt(test, f"{FUZZ_SECONDS} s from the committed corpus",
                lambda: run(*WIRE, "fuzz", f"SECONDS={FUZZ_SECONDS}") and None)


# All together

def matches(name, pattern):
    return fnmatch.fnmatch(name, scenario.pattern_for(pattern))


@dataclasses.dataclass(frozen=True)
class Part:
    """What a check has besides scenarios."""
    function: typing.Callable
    guess: float            # seconds
    kernels: tuple = ()     # that it needs


STOCK_BUILDS = {f"build [{name}]": name for name in kernels.STOCK}
PARTS = {
    "style": Part(style, 60),
    **{part: Part(functools.partial(build_for_stock, name), 60, (name,))
       for part, name in STOCK_BUILDS.items()},
    "build [in-tree]": Part(build_in_tree, 60, ("um",)),
    "wire": Part(wire, 60),
    "runner": Part(selftest.run, 60, ("um",)),
}


def wanted_jobs(pattern, under_test, everywhere, counted):
    """The scenarios that a check runs, each in its places."""
    everything = scenario.load_all()
    todo = scenario.jobs(everything, None, (under_test or MODULE,), pattern, everywhere)
    if not under_test:
        # Where it is quickest, and if there is time where people have it
        where = ["um", *(kernels.STOCK if everywhere else ())]
        truth = TRUTH if everywhere else DAILY_TRUTH
        todo += [job for job in scenario.jobs(everything, where, ("inbox",), pattern, everywhere)
                 if job not in todo and job.scenario.name in truth]
    if counted:
        counts = coverage.jobs(everything, everywhere)
        if pattern == "*" and not everywhere:
            # It is the kernel of um: what runs there need not run twice. But the module
            # is built for counting there, so some run with the one for users, too.
            todo = [job for job in todo if job.scenario.name in DAILY_TRUTH
                    or not coverage.counts_for(job, counts)]
        todo = counts + todo
    return todo


def part_ran_with(name):
    """What a result of a part holds for."""
    versions = [kernels.source_version(), kernels.root_version(),
                *(kernels.version(kernel) for kernel in PARTS[name].kernels)]
    return " ".join([*versions, *(host.package_version(tool) for tool in ("gcc-12", "clang"))])


def do_part(name, run):
    """One of the parts; what became of its tests is kept as one outcome."""
    report = run.report.branch()
    start = time.monotonic()
    scenario.guarded(report, name, PARTS[name].function, report)
    seconds = time.monotonic() - start
    if not any(outcome.failed for outcome in report.outcomes):
        run.times.keep({name: seconds})
    run.keep([ktap.together(name, report.outcomes, seconds)], part_ran_with(name))


def part_works(names, run):
    return [lanes.Work(name, functools.partial(scenario.guarded, run.report, name,
                                               do_part, name, run),
                       run.times.about(name, PARTS[name].guess),
                       ("guests' root", *(f"kernel {kernel}" for kernel in PARTS[name].kernels))
                       if PARTS[name].kernels else ())
            for name in names]


def measure_coverage(report, results, everywhere):
    with report.test("coverage") as test:
        attempt(test, f"{coverage.FLOOR} % of the lines of net/ or more",
                lambda: too_few(test, results, everywhere))


def too_few(test, results, everywhere):
    percent = coverage.measure(results, everywhere)
    test.line(f"# KUnit and the scenarios of every day run {percent:.1f} % of the lines of net/; "
              f"the others are in {coverage.REPORT}")
    return percent < coverage.FLOOR and ["that is not enough"]


def still_open(parts, todo, run):
    """What an earlier run of the same tree has not shown yet; the rest is reported."""
    shown = {name: run.results.earlier(name, part_ran_with(name)) for name in parts}
    shown |= {job.name: run.results.earlier(job.name, job.ran_with) for job in todo}
    for outcome in shown.values():
        if outcome:
            run.report.earlier(outcome)
    parts = [name for name in parts if not shown[name]]
    todo = [job for job in todo if not shown[job.name]]
    names = parts + [job.name for job in todo if not job.scenario.why_skipped(job)]
    host.say(f"# of {run.results.commit} {len(shown) - len(parts) - len(todo)} tests have "
             f"passed already, see {run.results.file}; open: {len(names)}")
    for name in names:
        host.say(f"#   open: {name}")
    return parts, todo


def check(pattern, under_test, everywhere):
    run = scenario.Run(ktap.Report(), results.Times(), results.Results())
    if under_test == "inbox":
        run.results = None      # they are about ours
    counted = matches("coverage", pattern) and run.results is not None
    parts = [name for name in PARTS if matches(name, pattern)]
    todo = wanted_jobs(pattern, under_test, everywhere, counted)
    if not parts and not todo:
        raise LabError(f"no check matches {pattern}: there are the scenarios, "
                       f"{', '.join(PARTS)}, and coverage"
                       + ("" if everywhere else "; with ALL=1 there are more scenarios"))
    if any(job.guest.startswith("um") for job in todo):
        guest.require_memory_folder()
    if counted:
        run.keep_counts = functools.partial(coverage.keep, run.results)
    if counted and not everywhere:
        coverage.forget(run.results)
    if everywhere and pattern == "*" and run.results:
        parts, todo = still_open(parts, todo, run)
    for name in parts:
        if name in STOCK_BUILDS:    # from nothing, since a warning is said only once
            shutil.rmtree(module.directory_of(STOCK_BUILDS[name]), ignore_errors=True)
    names = [job.guest for job in todo] + [name for part in parts for name in PARTS[part].kernels]
    works = scenario.guest_works(names, run)
    works += part_works(parts, run) + scenario.session_works(todo, run)
    done = lanes.run(works)
    if counted:
        measure_coverage(run.report, run.results, everywhere)
    say_times(run.report, done)
    if run.results and run.results.changed:
        host.say("# the files here have changed meanwhile: what passed is not kept for ALL=1")
    host.say(f"# cache: {cache_size()} MB in {host.CACHE}")
    return run.report.close()


def say_times(report, done):
    """Where the time went, so that it is known before anything is added."""
    host.say("# seconds of each guest and part; they overlap:")
    for group, seconds in done.spent.most_common():
        host.say(f"#   {seconds:6.0f}  {group}")
    host.say("# the slowest tests:")
    for name in sorted(report.seconds, key=report.seconds.get, reverse=True)[:10]:
        host.say(f"#   {report.seconds[name]:6.0f}  {name}")


def cache_size():
    """Disk used, in MB; what is linked twice counts once."""
    blocks = {}
    for folder, _, files in os.walk(host.CACHE):
        for name in files:
            with contextlib.suppress(FileNotFoundError):    # another run has removed it
                status = os.lstat(pathlib.Path(folder) / name)
                blocks[status.st_ino] = status.st_blocks
    return sum(blocks.values()) * 512 // 10**6
