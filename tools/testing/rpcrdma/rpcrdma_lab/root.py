# SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
"""
The guests' root file system, which is the same for all of them, and the initrd that
mounts it. Both are made from Debian packages.
"""

import os
import shutil
import subprocess
from pathlib import Path

from . import cache, kernels, packages
from .host import CACHE, LAB, LabError, once, run

ROOT_PACKAGES = """
    kmod mount util-linux procps psmisc iproute2 iputils-ping hostname
    nfs-common nfs-kernel-server rpcbind keyutils
    rdma-core ibverbs-providers ibverbs-utils rdmacm-utils
    fio e2fsprogs acl attr tcpdump krb5-user krb5-kdc krb5-admin-server
""".split()


def debian_sources() -> str:
    """The sources of Debian 12 in apt's configuration, without its other sources."""
    fields = "$(ORIGIN)|$(CODENAME)|$(REPO_URI)|$(RELEASE)|$(COMPONENT)"
    out = run("apt-get", "indextargets", "--format", fields, "Identifier: Packages")
    keyring = "/usr/share/keyrings/debian-archive-keyring.gpg"
    lines = set()
    for line in out.splitlines():
        if line.count("|") != 4:    # a warning of apt about a source that is listed twice
            continue
        origin, codename, uri, release, component = line.split("|")
        if origin == "Debian" and codename.startswith("bookworm") and component == "main":
            lines.add(f"deb [signed-by={keyring}] {uri} {release} {component}\n")
    if not lines:
        raise LabError("apt has no source of Debian 12 (bookworm) for the guests: "
                       "add one to /etc/apt/sources.list")
    return "".join(sorted(lines))


def root_environment(directory: Path) -> dict[str, str] | None:
    """
    The environment of mmdebstrap, which says where it unpacks. As root that is in the
    cache. For other users it is /tmp, because their user namespace cannot read their
    home directory.
    """
    if not os.geteuid():
        return dict(os.environ, TMPDIR=str(directory))
    probe = subprocess.run(["unshare", "--map-auto", "--map-root-user", "true"], check=False,
                           stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    if probe.returncode:
        raise LabError("mmdebstrap cannot make a user namespace for this user: run as root "
                       "sysctl kernel.unprivileged_userns_clone=1 and "
                       "usermod --add-subuids 100000-165535 --add-subgids 100000-165535 USER")
    return None


@once
def version() -> str:
    """The key of the root file system in the cache, whether the entry exists or not."""
    versions = [f"{name}={packages.package_version(name)}" for name in ROOT_PACKAGES]
    return f"12-{kernels.short_hash(*versions)}"


def missing() -> bool:
    """Whether the root file system has to be built first."""
    return not (CACHE / f"root-{version()}/.complete").exists()


@once
def image() -> Path:
    """The squashfs that every guest mounts as its root, under a tmpfs."""

    def build(directory: Path) -> None:
        sources = directory / "sources.list"
        sources.write_text(debian_sources())
        options = [f"--dpkgopt=path-exclude=/usr/share/{path}/*"
                   for path in ("doc", "man", "info", "locale")]
        tar = directory / "root.tar"
        run("mmdebstrap", "--variant=essential", f"--include={','.join(ROOT_PACKAGES)}",
            '--aptopt=APT::Install-Recommends "false"', *options, "bookworm", tar, sources,
            env=root_environment(directory))
        with open(tar, "rb") as stream:
            run("mksquashfs", "-", directory / "root.sqfs", "-tar", "-comp", "lz4",
                "-noappend", "-quiet", "-no-progress", stdin=stream)
        tar.unlink()
        sources.unlink()

    return cache.cached("root", version(), build) / "root.sqfs"


@once
def busybox() -> Path:
    """A static busybox. It is not installed, because its package would replace the host's."""
    key = packages.package_version("busybox-static").replace(":", ".")
    directory = cache.cached("busybox", key,
                             lambda folder: packages.fetch_packages(folder, "busybox-static"))
    return directory / "bin/busybox"


def initrd(kernel: kernels.Kernel, directory: Path) -> Path:
    """
    The initrd that mounts the root: busybox, guest/init and, for a stock kernel, the
    modules for disk, squashfs, overlay and 9p. It is made for each boot, so that it
    always has the current guest/init.
    """
    tree = directory / "initrd"
    shutil.rmtree(tree, ignore_errors=True)
    (tree / "bin").mkdir(parents=True)
    shutil.copy(busybox(), tree / "bin/busybox")
    shutil.copy(LAB / "guest/init", tree / "init")
    os.chmod(tree / "init", 0o755)
    if kernel.name in kernels.STOCK:
        copy_boot_modules(kernel, tree)
    packed = directory / "initrd.gz"
    names = sorted(str(p.relative_to(tree)) for p in tree.rglob("*"))
    archive = subprocess.run(["cpio", "-o", "-H", "newc", "--quiet", "-R", "0:0"], cwd=tree,
                             input="\n".join(names).encode(), stdout=subprocess.PIPE, check=True)
    gzip = subprocess.run(["gzip", "-1"], input=archive.stdout, stdout=subprocess.PIPE,
                          check=True)
    packed.write_bytes(gzip.stdout)
    shutil.rmtree(tree)
    return packed


def copy_boot_modules(kernel: kernels.Kernel, tree: Path) -> None:
    """Copy modules under names in load order: each comes after those that it depends on."""
    modules = kernel.modules / "lib/modules" / kernel.release
    order: list[Path] = []
    for name in ("virtio_pci", "virtio_blk", "9p", "9pnet_virtio", "squashfs", "overlay"):
        out = run("modprobe", "--show-depends", "-d", kernel.modules, "-S", kernel.release, name)
        for line in out.splitlines():
            if line.startswith("insmod "):
                path = Path(line.split()[1])
                if path not in order:
                    order.append(path)
    assert all(modules in path.parents for path in order)
    (tree / "modules").mkdir()
    for number, path in enumerate(order):
        shutil.copy(path, tree / f"modules/{number:02}-{path.name}")
