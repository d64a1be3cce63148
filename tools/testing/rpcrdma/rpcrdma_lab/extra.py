# SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
"""
Small kernel modules of tests, each in a folder of its own: bare does RDMA Writes in a loop,
which the benchmark compares with, and crowd is many clients of a server.
"""

from pathlib import Path

from . import host, kernels, module, toolchain
from .host import BUILD, LAB, TOP, once, run


@once
def build(name: str, guest: str) -> Path:
    """Build one for a guest's kernel; warnings are errors. Returns its file."""
    kernel = kernels.kernel(guest)
    directory = BUILD / f"{name}-{guest}{host.built_on()}"
    folder = str((LAB / name).relative_to(TOP))
    module.sync_sources(directory, (folder,))
    run(*toolchain.inside(kernel), "make", "-C", kernel.kdir, f"M={directory / folder}",
        *kernel.make_args, f"-j{host.jobs()}", "W=1", "KCFLAGS=-Werror", "modules",
        log=directory / "make.log")
    return directory / folder / f"rdma_{name}.ko"
