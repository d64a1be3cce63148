# SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
"""
Compilers of another release of Debian than the host's. The headers of a newer kernel want
the compiler and the libc of its release. They are in a root file system in the cache, and
make runs inside it.
"""

import itertools
import os
from collections.abc import Sequence
from pathlib import Path

from . import cache, host, kernels, packages, root
from .host import CACHE, TOP, LabError, attempt, once, run
from .kernels import Kernel

TOOLS = ("make", "gcc", "libc6-dev", "libelf-dev", "kmod", "pahole", "sparse", "bc")

# Runs a command inside a root where the folders of the lab have the same paths as outside.
ENTER = """
root=$1; shift
until [ "$1" = -- ]; do
	mkdir -p "$root$1" && mount --rbind "$1" "$root$1" || exit
	shift
done
shift
exec chroot "$root" "$@"
"""


def needed(release: str) -> bool:
    """Whether the host cannot build for kernels of a release. It has no cross compiler."""
    # Older headers name their compiler, which a newer Debian has as well.
    return packages.architecture(release) != "amd64" or int(release) > int(host.debian())


def package_names(release: str) -> list[str]:
    """The packages of a root file system that can build for all kernels of a release."""
    wanted = (kernels.header_tools(name) for name, stock in kernels.STOCK.items()
              if stock.release == release)
    return sorted({*TOOLS, *itertools.chain(*wanted)})


@once
def version(release: str) -> str:
    """Its key in the cache, whether the entry exists or not."""
    apt = packages.apt(release[:2])
    versions = [f"{name}={apt.version(name)}" for name in package_names(release)]
    return f"{release[:2]}-{kernels.short_hash(*versions)}"


@once
def folder(release: str) -> Path:
    """That root file system. Its files belong to the user of the lab."""

    def build(directory: Path) -> None:
        tar = root.bootstrap(directory, release[:2], package_names(release))
        (directory / "root").mkdir()
        run("tar", "-xf", tar, "-C", directory / "root", "--no-same-owner", "--exclude=./dev/*")
        tar.unlink()

    return cache.cached(f"toolchain{release[2:]}", version(release), build) / "root"


@once
def own_mounts() -> Sequence[str]:
    """The words before a command that gets a mount namespace of its own."""
    words = ["unshare", "--mount", *(["--map-root-user"] if os.geteuid() else [])]
    done = attempt(*words, "mount", "--rbind", "/dev", "/mnt")
    if done.returncode:
        raise LabError(f"{' '.join(words)}: {done.stdout.strip()}: on Debian 12 the module for "
                       "Debian 13's kernels is built in a mount namespace: in a container add "
                       "--cap-add SYS_ADMIN and --security-opt apparmor=unconfined, elsewhere "
                       "run as root sysctl kernel.unprivileged_userns_clone=1; or use Debian 13")
    return words


def inside(kernel: Kernel) -> Sequence[str | Path]:
    """The words before a command that builds for a kernel; none if the host can do it."""
    if kernel.tools is None or not needed(kernel.tools):
        return ()
    return (*own_mounts(), "sh", "-c", ENTER, "enter",
            folder(kernel.tools), "/dev", "/proc", TOP, CACHE, "--")
