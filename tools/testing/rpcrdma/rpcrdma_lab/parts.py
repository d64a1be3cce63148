# SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
"""Which parts of a guest in User-Mode Linux use CPU time, from what perf samples."""

import bisect
import collections
import itertools
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

from .figures import PARTS, Sample
from .host import LabError, once, run
from .kernels import Kernel
from .perf import PERIOD, PerfSample

# Parts that are built in, by the object files that their functions come from. "switching" is
# what a switch of tasks is made of: the scheduler, which also wakes tasks, and the work
# queues, whose workers begin and end with one.
OBJECTS = {
    "switching": ("kernel/sched/*.o", "kernel/workqueue.o"),
    "ib_core": ("drivers/infiniband/core/*.o",),
    "sunrpc": ("net/sunrpc/*.o",),
    "nfs": ("fs/nfs/*.o",),
    "nfsd": ("fs/nfsd/*.o",),
    "copies": ("arch/x86/lib/memcpy_64.o", "arch/x86/lib/memmove_64.o"),
}
# What the architecture adds to a switch
SWITCH = ("__switch_to", "switch_threads", "kernel_setjmp", "kernel_longjmp")

# The processes in which User-Mode Linux 7.x runs a guest's programs
PROGRAMS = "uml-userspace"

# Other addresses: those of the host's kernel begin here. What is neither there nor in a
# symbol of the guest's kernel, nor in a module, is in libc or in the vDSO.
HOST = 1 << 63

Layout = Sequence[tuple[int, str]]      # where a part's code begins, sorted


def symbols(text: str) -> list[tuple[int, str]]:
    """Functions in the output of nm, sorted by their addresses."""
    found = (line.split() for line in text.splitlines())
    return sorted((int(words[0], 16), words[2]) for words in found
                  if len(words) == 3 and words[1] in "tTwW")


def layout(functions: Sequence[tuple[int, str]], part_of: Mapping[str, str]) -> Layout:
    """
    Where each part's code begins, from the kernel's functions and the parts of some of them;
    all others are "kernel". If several functions have the same name, each of them belongs to
    the part that the one before it belongs to, since an object file's functions are neighbours.
    """
    count = collections.Counter(name for _, name in functions)
    found = []
    part = "kernel"
    for address, name in functions:
        if count[name] == 1:
            part = part_of.get(name, "kernel")
        found.append((address, part))
    return found


@once
def layout_of(kernel: Kernel) -> Layout:
    """The same of a kernel that the lab has built."""
    part_of = dict.fromkeys(SWITCH, "switching")
    for part, patterns in OBJECTS.items():
        files = [file for pattern in patterns for file in sorted(kernel.kdir.glob(pattern))]
        if not files:
            raise LabError(f"{kernel.kdir} has none of {', '.join(patterns)}: correct OBJECTS in "
                           f"{Path(__file__).name}")
        for file in files:
            part_of |= {name: part for _, name in symbols(run("nm", file))}
    return layout(symbols(run("nm", kernel.image)), part_of)


def parts(addresses: Iterable[int], built_in: Layout, modules: Mapping[str, range]) -> Sample:
    """How many of some addresses are in each part; modules may be parts of their own."""
    starts = [start for start, _ in built_in]
    pages = sorted((code.start, code.stop, name) for name, code in modules.items()
                   if name in PARTS)

    def part_of(address: int) -> str:
        if address >= HOST:
            return "host"
        for start, stop, name in pages:
            if start <= address < stop:
                return name
        if starts[0] <= address <= starts[-1]:
            return built_in[bisect.bisect_right(starts, address) - 1][1]
        return "libraries"

    found = dict.fromkeys(PARTS, 0)
    for address, same in itertools.groupby(sorted(addresses)):
        found[part_of(address)] += len(list(same))
    return found


def cpu_time(found: Sequence[PerfSample], pid: int, built_in: Layout,
             modules: Mapping[str, range]) -> Sample:
    """
    CPU time in ns of each part of the guest's kernel, and of the processes in which its programs
    run.
    """
    counts = parts((taken.address for taken in found if taken.pid == pid), built_in, modules) | {
        "programs": sum(taken.comm == PROGRAMS for taken in found)}
    return {f"{name}_ns": PERIOD * count for name, count in counts.items()}
