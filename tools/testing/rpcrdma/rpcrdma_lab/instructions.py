# SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
"""
A guest in which QEMU's TCG counts the kernel's instructions: exact and slow, on any machine.
"""

import bisect
import collections
import shutil
from collections.abc import Iterable, Mapping
from pathlib import Path

from . import host, kernels
from .figures import MEM, Sample
from .guest import Guest
from .host import BUILD, LAB, run
from .kernels import Kernel

PAGE = 4096


def build_siw(kernel: Kernel) -> Path:
    """Build siw as a module, from the source of Debian's kernels, which do not have it."""
    directory = BUILD / f"{kernel.name}-siw"
    shutil.copytree(kernels.source() / "drivers/infiniband/sw/siw", directory,
                    dirs_exist_ok=True)
    run("make", "-C", kernel.kdir, f"M={directory}", f"-j{host.jobs()}", "CONFIG_RDMA_SIW=m",
        "modules", log=directory / "make.log")
    return directory / "siw.ko"


class CountingGuest(Guest):
    """
    Debian's 6.12 with both modules, the test device, siw, and /lab/counted, which runs a
    command to count.
    """

    def __init__(self, directory: Path, extras: Iterable[str] = ()) -> None:
        programs = BUILD / "instructions"
        run("make", "-C", LAB / "instructions", f"O={programs}")
        self.places = directory / "places"
        self.last = ""          # what the plugin wrote of the last command
        super().__init__("debian-6.12", directory, "ours",
                         plugin=f"{programs}/plugin.so,path={self.places}", rdma=MEM,
                         extras=extras)
        shutil.copy(programs / "counted", self.share)
        modules = self.share / "lib/modules" / self.kernel.release
        shutil.copy(build_siw(self.kernel), modules / "updates")
        run("depmod", "-b", self.share, self.kernel.release)

    def counted(self, code: Mapping[str, range]) -> Sample:
        """The kernel's instructions in the last command, all and those in some ranges."""
        self.last = self.places.read_text()
        self.places.unlink()
        return counts(self.last, code)

    def functions(self) -> dict[str, int]:
        """The same, of each of the kernel's functions."""
        return by_function(self.last, symbols((self.out / "kallsyms").read_text()))


def parse(text: str) -> list[list[int]]:
    """Lines of addresses and their counts."""
    return [[int(word, 0) for word in line.split()] for line in text.splitlines()]


def counts(text: str, code: Mapping[str, range]) -> Sample:
    """Sum up places and their counts, all and those in some ranges."""
    places = parse(text)
    return {"instructions": sum(count for _, count in places),
            **{name: sum(count for place, count in places if place in inside)
               for name, inside in code.items()}}


def symbols(text: str) -> list[tuple[int, str]]:
    """The functions in /proc/kallsyms, by their addresses, with their modules."""
    found = (line.split(maxsplit=2) for line in text.splitlines())
    return sorted((int(address, 16), " ".join(name.split()))
                  for address, kind, name in found if kind in "tTwW")


def by_function(text: str, names: list[tuple[int, str]]) -> dict[str, int]:
    """Sum up places and their counts for each function."""
    addresses = [address for address, _ in names]
    found: dict[str, int] = collections.Counter()
    for address, count in parse(text):
        if at := bisect.bisect_right(addresses, address):
            found[names[at - 1][1]] += count
    return found
