# SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
"""The kernel's own netlink tool, ynl, which needs a YAML library that guests do not have."""

import shutil
from pathlib import Path

from . import cache, host, kernels, packages
from .host import TOP

SPECIFICATION = TOP / "Documentation/netlink/specs/rpcrdma.yaml"


def yaml_library() -> Path:
    """The folder with python3-yaml, which is only unpacked."""
    apt = packages.apt(host.debian())
    key = apt.version("python3-yaml").replace(":", ".")
    directory = cache.cached("yaml", key, lambda folder: apt.fetch(folder, "python3-yaml"))
    return directory / "usr/lib/python3/dist-packages/yaml"


def copy(folder: Path) -> None:
    """Make a folder with the tool, its library, and the specifications of our family and nfsd's."""
    tool = kernels.source() / "tools/net/ynl"
    (folder / "lib").mkdir(parents=True)
    shutil.copy(tool / "cli.py", folder)
    for path in (tool / "lib").glob("*.py"):
        shutil.copy(path, folder / "lib")
    shutil.copytree(yaml_library(), folder / "yaml")
    shutil.copy(SPECIFICATION, folder)
    shutil.copy(kernels.source() / "Documentation/netlink/specs/nfsd.yaml", folder)
