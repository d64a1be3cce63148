# SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
"""
The guests' root file systems, one for each release of Debian, and the initrd that mounts
one. They are made from Debian packages.
"""

import os
import shutil
import subprocess
from collections.abc import Sequence
from pathlib import Path

from . import cache, host, kernels, packages
from .host import CACHE, LAB, LabError, once, run

ROOT_PACKAGES = """
    kmod mount util-linux procps psmisc iproute2 iputils-ping hostname
    nfs-common nfs-kernel-server rpcbind keyutils
    rdma-core ibverbs-providers ibverbs-utils rdmacm-utils
    libjansson4 libmnl0 jq nftables iptables
    systemd autofs
    fio e2fsprogs acl attr tcpdump krb5-user krb5-kdc krb5-admin-server
""".split()
# What scenarios and the benchmark need besides. Each of these makes root file systems of its own.
MORE_PACKAGES = {
    "": (),
    "programs": ("gcc", "git", "libc6-dev", "make", "postgresql", "sqlite3", "rsync",
                 "linux-headers-amd64", "dbench", "fsmark", "stress-ng"),
    # Those with -dev bring the libraries, whose own names depend on the release.
    "xfstests": ("bc", "dbench", "gawk", "libaio-dev", "libcap2-bin", "libgdbm-dev", "liburing-dev",
                 "quota", "sqlite3", "uuid-runtime", "xfsprogs"),
    # What BUILT needs
    "ganesha": ("bison", "cmake", "flex", "g++", "libacl1-dev", "libblkid-dev", "libcap-dev",
                "libibverbs-dev", "libkrb5-dev", "libnfsidmap-dev", "libnsl-dev", "librdmacm-dev",
                "liburcu-dev", "make", "pkgconf", "uuid-dev"),
    "prometheus": ("curl", "prometheus", "prometheus-node-exporter"),
}

# Other file systems and interfaces of nfs-ganesha, which want further packages
UNUSED = [f"-DUSE_{name}=OFF" for name in (
    "9P", "DBUS", "GUI_ADMIN_TOOLS", "RADOS_RECOV", "FSAL_CEPH", "FSAL_GLUSTER", "FSAL_GPFS",
    "FSAL_KVSFS", "FSAL_LIZARDFS", "FSAL_LUSTRE", "FSAL_MEM", "FSAL_NULL", "FSAL_PROXY_V3",
    "FSAL_PROXY_V4", "FSAL_RGW", "FSAL_SAUNAFS", "FSAL_XFS")]

# What else mmdebstrap does in some of these roots. nfs-ganesha and its ntirpc are built from
# Debian's sources, because its own packages are without RDMA.
BUILT = {
    "ganesha": (
        '--customize-hook=cd "$1/usr/src" && APT_CONFIG="$MMDEBSTRAP_APT_CONFIG" '
        'apt-get source --download-only --tar-only nfs-ganesha ntirpc',
        '--customize-hook=chroot "$1" sh -ec "cd /usr/src; '
        'for tar in *.orig.tar.*; do tar -xf \\$tar; done; '
        'cp -r ntirpc-*/. nfs-ganesha-*/src/libntirpc; mkdir build; cd build; '
        'cmake ../nfs-ganesha-*/src -DCMAKE_BUILD_TYPE=Release -DCMAKE_INSTALL_PREFIX=/usr '
        f'-DUSE_NFS_RDMA=ON -DRADOS_URLS=OFF {" ".join(UNUSED)}; '
        'make -j2 install; ldconfig; rm -r /usr/src/*"'),
}

# How mksquashfs reads a tar file. With -tar alone it packs the ends of files together as
# fragments. When a file then has the blocks of an earlier one but another end, it takes back
# the place of the blocks while its other thread may give a fragment the place behind them, and
# later data is written over that fragment (seen with 4.5.1: /var/lib/dpkg/status could not be
# read). With -no-tailends such a file has no fragment.
SQUASHFS_OPTIONS = ("-tar", "-no-tailends", "-comp", "lz4")


# For a root of another architecture, whose programs the host cannot run: packages are unpacked,
# and this does what the guests need of what packages do when they are installed.
UNPACKED = (
    "--variant=extract", "--include=?essential",
    '--extract-hook=cd "$1" && cp usr/share/base-passwd/passwd.master etc/passwd && '
    'cp usr/share/base-passwd/group.master etc/group && '
    'printf "%s:x:%s:65534::/:/bin/false\\n" _rpc 100 statd 101 tcpdump 102 >>etc/passwd && '
    'printf "hosts: files\\n" >etc/nsswitch.conf && '
    'for name in iptables ip6tables; do ln -sf $name-nft usr/sbin/$name; done && '
    'ln -sf mawk usr/bin/awk')


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


def bootstrap(directory: Path, release: str, names: Sequence[str], *more: str) -> Path:
    """
    Make a tar file of a root file system that has some packages of a release; more are
    options of mmdebstrap.
    """
    sources = directory / "sources.list"
    text = packages.sources_list(release)
    if more:    # may want sources: of these apt takes the newest, so not those of backports
        text += f"{text.splitlines()[0].replace('deb', 'deb-src', 1)}\n"
    sources.write_text(text)
    options = [f"--dpkgopt=path-exclude=/usr/share/{path}/*"
               for path in ("doc", "man", "info", "locale")]
    tar = directory / "root.tar"
    arch = packages.architecture(release)
    variant = ["--variant=essential"] if arch == "amd64" else [f"--architectures={arch}", *UNPACKED]
    run("mmdebstrap", *variant, f"--include={','.join(names)}",
        '--aptopt=APT::Install-Recommends "false"', *options, *more, packages.CODENAMES[release],
        tar, sources, env=root_environment(directory))
    sources.unlink()
    return tar


def squash(tar: Path, squashfs: Path) -> None:
    """Make a squashfs of a tar file, which is removed."""
    with open(tar, "rb") as stream:
        run("mksquashfs", "-", squashfs, *SQUASHFS_OPTIONS, "-noappend", "-quiet",
            "-no-progress", stdin=stream)
    tar.unlink()


@once
def version(release: str, more: str = "") -> str:
    """
    The key of a root file system in the cache, whether the entry exists or not; more is one of
    MORE_PACKAGES.
    """
    apt = packages.apt(release)
    versions = [f"{name}={apt.version(name)}" for name in (*ROOT_PACKAGES, *MORE_PACKAGES[more])]
    how = [*SQUASHFS_OPTIONS, *(UNPACKED if packages.architecture(release) != "amd64" else ()),
           *BUILT.get(more, ())]
    return f"{release}-{kernels.short_hash(*versions, *how)}"


def kind(release: str, more: str = "") -> str:
    """The kind of its entry in the cache, of which there is one for each release."""
    return (f"{more}-" if more else "") + ("root" if release == "12" else f"root{release}")


def missing(release: str) -> bool:
    """Whether a root file system has to be built first."""
    return not (CACHE / f"{kind(release)}-{version(release)}/.complete").exists()


@once
def image(release: str, more: str = "") -> Path:
    """The squashfs that guests mount as their root, under a tmpfs."""

    def build(directory: Path) -> None:
        names = (*ROOT_PACKAGES, *MORE_PACKAGES[more])
        tar = bootstrap(directory, release, names, *BUILT.get(more, ()))
        squash(tar, directory / "root.sqfs")

    return cache.cached(kind(release, more), version(release, more), build) / "root.sqfs"


@once
def busybox(arch: str = "amd64") -> Path:
    """A static busybox. It is not installed, because its package would replace the host's."""
    apt = packages.apt(host.debian() if arch == "amd64" else packages.release_of(arch))
    key = apt.version("busybox-static").replace(":", ".")
    directory = cache.cached("busybox" if arch == "amd64" else f"busybox-{arch}", key,
                             lambda folder: apt.fetch(folder, "busybox-static"))
    return next(path for path in (directory / "bin/busybox", directory / "usr/bin/busybox")
                if path.exists())


def initrd(kernel: kernels.Kernel, directory: Path) -> Path:
    """
    The initrd that mounts the root: busybox, guest/init and, for a stock kernel, the
    modules for disk, squashfs, overlay and 9p. It is made for each boot, so that it
    always has the current guest/init.
    """
    tree = directory / "initrd"
    shutil.rmtree(tree, ignore_errors=True)
    (tree / "bin").mkdir(parents=True)
    shutil.copy(busybox(kernel.arch), tree / "bin/busybox")
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
