# SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
"""The program rpcrdma: what guests get of it, and its tests. It is built on the host."""

import functools
import re
import shutil
from pathlib import Path

from . import cache, host, packages, toolchain
from .host import BUILD, TOP, once, run
from .ktap import Reporter
from .steps import check_step
from .wire import short_fuzz

FOLDER = TOP / "tools/rpcrdma"
OUT = BUILD / "tools"
# Of what guests get. ASan needs more address space than User-Mode Linux has.
SANITIZE = "-fsanitize=undefined -fno-sanitize-recover=all"
TESTS = ("make", "-C", str(FOLDER / "test"), f"O={OUT / 'test'}")
FUZZ_SECONDS = 10


@once
def program(arch: str) -> Path:
    """Build the program for guests of an architecture, and return its path."""
    out = BUILD / f"tools-{arch}"
    run("make", "-C", FOLDER, f"O={out}", f"CFLAGS=-O1 -g -Werror {SANITIZE}",
        "LDFLAGS=-static-libubsan", *toolchain.words(arch))
    return out / "rpcrdma"


def warnings() -> list[str]:
    """What the compiler says about the program."""
    done = host.attempt("make", "-B", "-C", FOLDER, f"O={OUT / 'warnings'}")
    return [line for line in done.stdout.splitlines() if "warning:" in line or "rror" in line]


def rules() -> list[str]:
    """A complaint if the rules for attributes are not those of the specification."""
    written = host.attempt(FOLDER / "rules.py").stdout
    return [] if written == (FOLDER / "rules.c").read_text() else [
        "run tools/rpcrdma/rules.py >tools/rpcrdma/rules.c"]


def manual_pages() -> list[str]:
    """What groff says about the manual pages."""
    complaints: list[str] = []
    for page in sorted((FOLDER / "man").glob("*.[1-9]")):
        done = host.attempt("groff", "-mandoc", "-Tutf8", "-ww", "-z", page)
        complaints += done.stdout.splitlines()
    return complaints


@once
def promtool() -> Path:
    """Prometheus' checker. Its package would run a server, so this file alone is kept of it."""
    def fetch(directory: Path) -> None:
        apt.fetch(directory, "prometheus")
        shutil.move(directory / "usr/bin/promtool", directory)
        for folder in [path for path in directory.iterdir() if path.is_dir()]:
            shutil.rmtree(folder)

    apt = packages.apt(host.debian())
    key = apt.version("prometheus").replace(":", ".")
    return cache.cached("promtool", key, fetch) / "promtool"


def tests_of(folder: Path) -> list[str]:
    """Run the tests of one command. Raises LabError if one fails."""
    run("make", "-C", folder, "check", f"O={OUT / 'test' / folder.name}",
        f"PROMTOOL={promtool()}")
    return []


def tools(report: Reporter) -> None:
    """
    Compile without warnings, the golden tests, then a short run of the fuzzer, and the tests
    of single commands.
    """
    with report.test("tools [user space, ASan, UBSan]") as test:
        check_step(test, "rpcrdma compiles without warnings", warnings)
        check_step(test, "rules.c has the rules of the netlink specification", rules)
        check_step(test, "groff has nothing against the manual pages", manual_pages)
        done = host.attempt(*TESTS, "test")
        before = test.bad
        for line in done.stdout.splitlines():
            if re.match(r"(not )?ok |# ", line):
                test.line(line)
        if done.returncode and test.bad == before:
            test.fail("the golden tests failed", *done.stdout.splitlines()[-30:])
    with report.test("tools [fuzz]") as test:
        check_step(test, f"{FUZZ_SECONDS} s from the committed corpus",
                   functools.partial(short_fuzz, test, TESTS, FUZZ_SECONDS))
    for makefile in sorted((FOLDER / "test").glob("*/Makefile")):
        with report.test(f"tools [{makefile.parent.name}]") as test:
            check_step(test, "its tests", functools.partial(tests_of, makefile.parent))
