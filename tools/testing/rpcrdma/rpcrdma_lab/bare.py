# SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
"""The module that does RDMA Writes in a loop, without NFS. The benchmark compares with it."""

from pathlib import Path

from . import host, module, toolchain
from .host import BUILD, once, run
from .kernels import Kernel

FOLDER = "tools/testing/rpcrdma/bare"


@once
def build(kernel: Kernel) -> Path:
    """Build it for one kernel; warnings are errors. Returns its file."""
    directory = BUILD / f"bare-{kernel.name}{host.built_on()}"
    module.sync_sources(directory, (FOLDER,))
    run(*toolchain.inside(kernel), "make", "-C", kernel.kdir, f"M={directory / FOLDER}",
        *kernel.make_args, f"-j{host.jobs()}", "W=1", "KCFLAGS=-Werror", "modules",
        log=directory / "make.log")
    return directory / FOLDER / "rdma_bare.ko"
