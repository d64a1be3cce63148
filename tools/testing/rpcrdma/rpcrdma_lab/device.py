# SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
"""
The test device: an RDMA device whose wire is memory. Its module is built like ours, in a
folder of its own for each guest, and is never installed on the host.
"""

import collections
import shutil
import threading
from pathlib import Path

from . import host, kernels, module, toolchain
from .host import BUILD, once, run
from .kernels import Kernel

# What scenarios call it
MEM = "mem"

FOLDER = "tools/testing/rpcrdma/device"

# One make at a time works in a guest's folder.
_locks: collections.defaultdict[str, threading.Lock] = collections.defaultdict(threading.Lock)


@once
def build(kernel: Kernel, tests: bool) -> Path:
    """
    Build the device for one kernel, with its unit tests or without; warnings are errors.
    Returns a folder with lib/modules/<release>/extra.
    """
    name = kernels.kernel_of(kernel.name)
    directory = BUILD / f"device-{name}{host.built_on()}"
    variant = "kunit" if tests else "plain"
    # um-gcov has the folder of um-7, but copies its result at another time.
    root = directory / f"root-{kernel.name}-{variant}"
    installed = root / "lib/modules" / kernel.release / "extra"
    with _locks[name]:
        module.sync_sources(directory, [FOLDER])
        run(*toolchain.inside(kernel), "make", "-C", kernel.kdir, f"M={directory / FOLDER}",
            *kernel.make_args, f"-j{host.jobs()}", "W=1", "KCFLAGS=-Werror",
            *(["CONFIG_RDMA_MEM_KUNIT_TEST=y"] if tests else []), "modules",
            log=directory / f"build-{variant}.log")
        shutil.rmtree(root, ignore_errors=True)
        installed.mkdir(parents=True)
        shutil.copy(directory / FOLDER / "rdma_mem.ko", installed)
    return root
