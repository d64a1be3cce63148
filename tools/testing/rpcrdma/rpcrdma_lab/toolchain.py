# SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
"""
Compilers of another release of Debian than the host's, or for another architecture. The headers
of a newer kernel want the compiler and the libc of its release. They are in a root file system in
the cache, and make runs inside it. Programs for another architecture are compiled on the host,
with the libraries in such a root.
"""

import itertools
import os
from collections.abc import Sequence
from pathlib import Path

from . import cache, host, kernels, packages, root
from .host import CACHE, TOP, LabError, attempt, once, run
from .kernels import Kernel

TOOLS = ("make", "gcc", "libc6-dev", "libelf-dev", "kmod", "pahole", "sparse", "bc")

# What programs for guests are compiled with
LIBRARIES = ("libc6-dev", "libibverbs-dev", "libjansson-dev", "libkmod-dev", "libmnl-dev",
             "libmount-dev", "librdmacm-dev", "libsmartcols-dev")

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


def key(release: str, names: Sequence[str]) -> str:
    """The key in the cache of a root file system with some packages."""
    versions = [f"{name}={packages.apt(release).version(name)}" for name in names]
    return f"{release[:2]}-{kernels.short_hash(*versions)}"


def unpacked(kind: str, release: str, names: Sequence[str]) -> Path:
    """That root file system. Its files belong to the user of the lab."""

    def build(directory: Path) -> None:
        tar = root.bootstrap(directory, release, names)
        (directory / "root").mkdir()
        run("tar", "-xf", tar, "-C", directory / "root", "--no-same-owner", "--exclude=./dev/*")
        tar.unlink()

    return cache.cached(kind, key(release, names), build) / "root"


@once
def version(release: str) -> str:
    """The key of the compilers for a release's kernels, whether the entry exists or not."""
    return key(release[:2], package_names(release))


@once
def folder(release: str) -> Path:
    """The root file system that has these."""
    return unpacked(f"toolchain{release[2:]}", release[:2], package_names(release))


@once
def words(arch: str) -> Sequence[str]:
    """Words for make that compile a program on the host for guests of an architecture."""
    if arch == "amd64":     # The host's Debian is that of the guests or older.
        return ()
    triplet = kernels.CROSS[arch][:-1]
    packages.require_packages([f"gcc-{triplet}"])
    libraries = unpacked(f"libraries-{arch}", packages.release_of(arch), LIBRARIES)
    return (f"CC={triplet}-gcc --sysroot={libraries}",
            f"PKG_CONFIG=env PKG_CONFIG_SYSROOT_DIR={libraries} "
            f"PKG_CONFIG_LIBDIR={libraries}/usr/lib/{triplet}/pkgconfig pkg-config")


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
