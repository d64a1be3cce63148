# SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
"""Our module, built out of tree for each guest in a folder of its own; and the packages."""

import collections
import filecmp
import os
import shutil
import threading
from collections.abc import Iterable
from pathlib import Path

from . import host, kernels, toolchain
from .host import BUILD, TOP, run
from .kernels import Kernel
from .steps import GENERATED

SOURCES = ("Kbuild", "Kconfig", "Makefile", "dkms.conf", "include", "net")

# The variant "old", a peer of the present module: the first commit with packages, and so the
# oldest that somebody may still run
OLD = "ad12fc04eb3c5ac091d17c19304195ff1dfdf999"

# Where `make deb` puts the packages
DEBS = BUILD / "deb"


def sync_sources(directory: Path, names: Iterable[str] = SOURCES) -> None:
    """Copy the files that have changed, so that make rebuilds only these."""
    wanted = set()
    for name in names:
        paths = [TOP / name] if (TOP / name).is_file() else (TOP / name).rglob("*")
        for path in paths:
            if path.is_file() and path.suffix in ("", ".awk", ".c", ".conf", ".h") \
                    and not path.name.endswith(GENERATED):
                wanted.add(path.relative_to(TOP))
    for path in wanted:
        copy = directory / path
        if not copy.exists() or not filecmp.cmp(TOP / path, copy, shallow=False):
            copy.parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(TOP / path, copy)
    for path in directory.rglob("*.[ch]"):
        if not path.name.endswith(GENERATED) and path.relative_to(directory) not in wanted:
            path.unlink()


def old_sources(directory: Path) -> None:
    """Write those of OLD, which git dates so that make rebuilds nothing."""
    directory.mkdir(parents=True, exist_ok=True)
    archive = directory / "old.tar"
    run("git", "-C", TOP, "archive", f"--output={archive}", OLD, *SOURCES)
    run("tar", "-C", directory, "-xf", archive)


def directory_of(name: str, variant: str = "ours") -> Path:
    """Where the module for a guest is built."""
    commit = f"-{OLD[:7]}" if variant == "old" else ""
    return BUILD / f"module-{name}{commit}{host.built_on()}"


def root_of(kernel: Kernel, variant: str) -> Path:
    """Where it is installed."""
    return directory_of(kernel.name, variant) / f"root-{variant}"


# One make at a time works in a guest's folder. A variant is installed before the next
# one is linked there.
_locks: collections.defaultdict[str, threading.RLock] = collections.defaultdict(threading.RLock)


def make(kernel: Kernel, *words: str, variant: str = "ours", log: str = "make") -> str:
    """
    Run make for one kernel and return its output. The variant "ours" is the module as
    users build it, "kunit" has its unit tests as well; both are linked from the same
    objects; "old" is that of OLD. The module that counts lines always has the tests; they run if
    it is "kunit".
    """
    directory = directory_of(kernel.name, variant)
    options = [f"KDIR={kernel.kdir}", *kernel.make_args, f"-j{host.jobs()}", "W=1",
               "KCFLAGS=-Werror", "UNTESTED=1",
               # Also where nothing is installed: other modules of the host do not count.
               f"INSTALL_MOD_PATH={root_of(kernel, variant)}"]
    if variant == "kunit" or kernel.name == kernels.COVERAGE:
        options.append("KUNIT=1")
    if kernel.name == kernels.COVERAGE:
        options.append("GCOV=1")
    with _locks[kernel.name]:
        return run(*toolchain.inside(kernel), "make", "-C", directory, *options, *words,
                   log=directory / f"{log}.log")


def build_log(kernel: Kernel, variant: str) -> Path:
    """The log of build()."""
    return directory_of(kernel.name, variant) / f"build-{variant}.log"


@host.once
def build(kernel: Kernel, variant: str) -> Path:
    """
    Build the module for one kernel; warnings are errors. Returns the folder with
    lib/modules/<release>/updates, as `make install` leaves it.
    """
    directory = directory_of(kernel.name, variant)
    root = root_of(kernel, variant)
    with _locks[kernel.name]:
        if variant == "old":
            old_sources(directory)
        else:
            sync_sources(directory)
        shutil.rmtree(root, ignore_errors=True)
        make(kernel, variant=variant, log=f"build-{variant}")
        make(kernel, "install", variant=variant)
    return root


@host.once
def debs() -> Path:
    """Run `make deb`. Returns the folder with the packages."""
    run("make", "-C", TOP, "deb")
    return DEBS


@host.once
def deb_for(kernel: Kernel, *words: str) -> Path:
    """Run `make deb BINARY=1` for a kernel. Returns the package."""
    run("make", "-C", TOP, "deb", "BINARY=1", f"KDIR={kernel.kdir}", *words,
        env=dict(os.environ, KBUILD_SIGN_PIN="snakeoil"))
    deb, = BUILD.glob(f"deb-{kernel.release}/*.deb")
    return deb
