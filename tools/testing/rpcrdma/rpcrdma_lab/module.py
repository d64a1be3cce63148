# SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
"""Our module, built out of tree for each guest in a folder of its own."""

import collections
import filecmp
import shutil
import threading

from . import host, kernels
from .host import BUILD, TOP, run

SOURCES = ("Kbuild", "Kconfig", "Makefile", "include", "net")


def sync_sources(directory):
    """Copy what changed, so that make rebuilds what changed."""
    wanted = set()
    for name in SOURCES:
        paths = [TOP / name] if (TOP / name).is_file() else (TOP / name).rglob("*")
        for path in paths:
            if path.is_file() and path.suffix in ("", ".c", ".h"):
                wanted.add(path.relative_to(TOP))
    for path in wanted:
        copy = directory / path
        if not copy.exists() or not filecmp.cmp(TOP / path, copy, shallow=False):
            copy.parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(TOP / path, copy)
    for path in directory.rglob("*.[ch]"):
        if not path.name.endswith(".mod.c") and path.relative_to(directory) not in wanted:
            path.unlink()


def directory_of(name):
    """Where it is built for a guest."""
    return BUILD / f"module-{name}"


# One make at a time works in a guest's folder, and what it linked is installed before
# the next one links the other variant.
_folders = collections.defaultdict(threading.RLock)


def make(kernel, *words, variant="ours", log="make"):
    """
    Run make for one kernel: "ours" is the module as users build it, "kunit" has its
    unit tests in it; both are linked from the same objects. The one that counts
    lines has the tests always: they run when it is loaded. Returns what make said.
    """
    directory = directory_of(kernel.name)
    options = [f"KDIR={kernel.kdir}", *kernel.make_args, f"-j{host.jobs()}", "W=1",
               "KCFLAGS=-Werror"]
    if variant == "kunit" or kernel.name == kernels.COVERAGE:
        options.append("KUNIT=1")
    if kernel.name == kernels.COVERAGE:
        options.append("GCOV=1")
    with _folders[kernel.name]:
        return run("make", "-C", directory, *options, *words, log=directory / f"{log}.log")


@host.once
def build(kernel, variant):
    """
    Build for one kernel, warnings being errors. Returns the folder that holds
    lib/modules/<release>/updates, as `make install` leaves it.
    """
    directory = directory_of(kernel.name)
    root = directory / f"root-{variant}"
    with _folders[kernel.name]:
        sync_sources(directory)
        shutil.rmtree(root, ignore_errors=True)
        make(kernel, variant=variant, log=f"build-{variant}")
        make(kernel, f"INSTALL_MOD_PATH={root}", "install", variant=variant)
    return root
