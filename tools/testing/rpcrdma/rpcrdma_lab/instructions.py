# SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
"""A guest whose kernel's instructions QEMU's TCG counts: slow, exact, on any machine."""

import shutil

from . import host, kernels
from .guest import Guest
from .host import BUILD, LAB, run

PAGE = 4096


def build_siw(kernel):
    """Debian's kernels come without siw; their source has it, and it builds as a module."""
    directory = BUILD / f"{kernel.name}-siw"
    shutil.copytree(kernels.source()[0] / "drivers/infiniband/sw/siw", directory,
                    dirs_exist_ok=True)
    run("make", "-C", kernel.kdir, f"M={directory}", f"-j{host.jobs()}", "CONFIG_RDMA_SIW=m",
        "modules", log=directory / "make.log")
    return directory / "siw.ko"


class CountingGuest(Guest):
    """Debian's 6.12 with both modules, siw, and /lab/counted, which runs a command and counts."""

    def __init__(self, directory):
        programs = BUILD / "instructions"
        run("make", "-C", LAB / "instructions", f"O={programs}")
        self.pages = directory / "pages"
        super().__init__("debian-6.12", directory, "ours",
                         plugin=f"{programs}/plugin.so,path={self.pages}")
        shutil.copy(programs / "counted", self.share)
        modules = self.share / "lib/modules" / self.kernel.release
        shutil.copy(build_siw(self.kernel), modules / "updates")
        run("depmod", "-b", self.share, self.kernel.release)

    def counted(self, text):
        """What the kernel did meanwhile: all of it, and what lies in a range of addresses."""
        counts = [[int(word, 0) for word in line.split()]
                  for line in self.pages.read_text().splitlines()]
        self.pages.unlink()
        return {"instructions": sum(count for _, count in counts),
                "transport": sum(count for page, count in counts if page in text)}
