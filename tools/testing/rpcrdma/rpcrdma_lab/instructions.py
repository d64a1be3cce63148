# SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
"""A guest in which QEMU's TCG counts the kernel's instructions: exact and slow, on any machine."""

import shutil
from collections.abc import Mapping
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

    def __init__(self, directory: Path) -> None:
        programs = BUILD / "instructions"
        run("make", "-C", LAB / "instructions", f"O={programs}")
        self.pages = directory / "pages"
        super().__init__("debian-6.12", directory, "ours",
                         plugin=f"{programs}/plugin.so,path={self.pages}", rdma=MEM)
        shutil.copy(programs / "counted", self.share)
        modules = self.share / "lib/modules" / self.kernel.release
        shutil.copy(build_siw(self.kernel), modules / "updates")
        run("depmod", "-b", self.share, self.kernel.release)

    def counted(self, code: Mapping[str, range]) -> Sample:
        """The kernel's instructions in the last command: all, and those in some ranges."""
        found = counts(self.pages.read_text(), code)
        self.pages.unlink()
        return found


def counts(text: str, code: Mapping[str, range]) -> Sample:
    """Sum up lines of pages and their counts: all, and those in some ranges."""
    pages = [[int(word, 0) for word in line.split()] for line in text.splitlines()]
    return {"instructions": sum(count for _, count in pages),
            **{name: sum(count for page, count in pages if page in inside)
               for name, inside in code.items()}}
