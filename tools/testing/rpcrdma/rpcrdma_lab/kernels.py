# SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
"""
The guests' kernels, with their modules and what our module is built against. All of
it comes from Debian packages and is kept in the cache under a key of package version
and configuration.
"""

import dataclasses
import hashlib
import re
import shutil
import subprocess
from pathlib import Path

from . import cache, host, packages
from .host import CACHE, LAB, LabError, once, run

SOURCE_PACKAGE = "linux-source-6.12"
FRAGMENTS = LAB / "kernels"

# Modules of a stock kernel that its guests use. Those that they depend on are added.
STOCK_MODULES = """
    virtio_pci virtio_blk virtio_net 9p 9pnet_virtio squashfs overlay loop ext4
    rpcrdma rdma_rxe ib_uverbs rdma_ucm ib_umad ib_ipoib
    nfs nfsv3 nfsv4 nfsd nfs_acl rpcsec_gss_krb5 grace lockd
    crc32_generic crc32c_generic crc32c_intel crc32_pclmul libcrc32c
    cbc cts ccm sha1_generic sha256_generic sha512_generic hmac aes_generic
    camellia_generic cmac md5
    dummy veth bridge sch_netem sch_prio cls_u32 af_packet virtio_rng
""".split()


@dataclasses.dataclass(frozen=True)
class Kernel:
    """A guest's kernel in the cache."""
    name: str
    image: Path                 # what is booted
    release: str                # uname -r
    kdir: Path                  # what our module is built against
    modules: Path               # has lib/modules/<release>
    make_args: tuple[str, ...] = ()
    append: str = ""            # added to its command line


@dataclasses.dataclass(frozen=True)
class Flavour:
    """A kernel that the lab builds from linux-source."""
    arch: str
    image: str
    targets: tuple[str, ...]
    fragments: tuple[str, ...]      # files of kernels/, without .config
    append: str = ""


FLAVOURS = {
    "um": Flavour("um", "linux", ("linux", "modules"), ("common", "um", "gcov")),
    "um-debug": Flavour("um", "linux", ("linux", "modules"), ("common", "um", "debug", "um-debug")),
    "smp-debug": Flavour("x86_64", "arch/x86/boot/bzImage", ("bzImage", "modules"),
                         ("common", "smp", "debug"),
                         # With KASAN under TCG, the ACPI interpreter needs a minute
                         # to route PCI interrupts.
                         "acpi=noirq"),
}

# Stock kernels: the package that names the newest image, and its headers.
STOCK = {
    "debian-6.1": ("linux-image-amd64", "linux-headers-amd64"),
    "debian-6.12": ("linux-image-6.12-amd64", "linux-headers-6.12-amd64"),
}

NAMES = ("um", "um-debug", "debian-6.1", "debian-6.12", "smp-debug")

# The guest whose module counts the lines that it runs; its kernel is that of um.
COVERAGE = "um-gcov"


def short_hash(*texts: str) -> str:
    """A short hash, for keys of the cache."""
    return hashlib.sha256("\0".join(texts).encode()).hexdigest()[:10]


def source_version() -> str:
    """The version of Debian's kernel source."""
    return packages.package_version(SOURCE_PACKAGE)


@once
def source() -> Path:
    """The kernel source that the lab's own kernels are built from."""

    def unpack(directory: Path) -> None:
        packages.fetch_packages(directory, SOURCE_PACKAGE)
        tarball, = (directory / "usr/src").glob("linux-source-*.tar.xz")
        # Kconfig reads every folder. These have nothing for it, and are large.
        bulk = ["arch/*/boot/dts", "drivers/gpu/drm/amd/include", "tools/testing/selftests"]
        unused = [f"--exclude=*/{path}" for path in bulk]
        run("tar", "-xJf", tarball, "--strip-components=1", "-C", directory, *unused)
        shutil.rmtree(directory / "usr/src")
        shutil.rmtree(directory / "usr/share")

    return cache.cached("source", source_version(), unpack)


def fragment_text(flavour: Flavour) -> str:
    """The Kconfig options of a flavour, without comments, which do not change a kernel."""
    lines = [line for name in flavour.fragments
             for line in (FRAGMENTS / f"{name}.config").read_text().splitlines()]
    return "".join(f"{line}\n" for line in lines if re.match("(# )?CONFIG_", line))


def check_config(wanted: str, config: Path) -> None:
    """Raise LabError if Kconfig has dropped an option, which it does silently."""
    got = set(config.read_text().splitlines())
    lost = [line for line in wanted.splitlines()
            if line.startswith("CONFIG_") and line not in got]
    if lost:
        raise LabError(f"Kconfig drops {', '.join(lost)}: "
                       f"correct what these depend on in {FRAGMENTS}")


def configure(tree: Path, out: Path, flavour: Flavour) -> None:
    """Write out/.config from the fragments of a flavour, on top of allnoconfig."""
    fragment = out / "lab.config"
    fragment.write_text(fragment_text(flavour))
    run("make", "-C", tree, f"ARCH={flavour.arch}", f"O={out.name}",
        f"KCONFIG_ALLCONFIG={fragment}", "allnoconfig")
    check_config(fragment.read_text(), out / ".config")


def compiler() -> list[str]:
    """Words for make. With ccache a kernel that was built before takes a minute or two."""
    return ["CC=ccache gcc"] if shutil.which("ccache") else []


def last_lines(log: Path, count: int) -> str:
    """The end of a log."""
    return "\n".join(log.read_text("utf-8", "replace").splitlines()[-count:])


def make_kernel(tree: Path, out: Path, flavour: Flavour, what: str) -> None:
    """Run make in a kernel tree, and print its progress every half minute."""
    argv = ["make", "-C", str(tree), f"ARCH={flavour.arch}", f"O={out.name}",
            f"-j{host.jobs() + 1}", *compiler(), *flavour.targets]
    log = out / "build.log"
    with open(log, "w", encoding="utf-8") as sink:
        # pylint: disable-next=consider-using-with,subprocess-popen-preexec-fn
        build = subprocess.Popen(argv, stdin=subprocess.DEVNULL, stdout=sink,
                                 stderr=subprocess.STDOUT,
                                 preexec_fn=host.terminate_with_parent)
        while True:
            try:
                status = build.wait(timeout=30)
                break
            except subprocess.TimeoutExpired:
                done = sum(line.startswith("  ")
                           for line in log.read_text("utf-8", "replace").splitlines())
                host.say(f"#   {what}: {done} steps done")
            except BaseException:
                build.terminate()       # make ends its children
                raise
    if status:
        raise LabError(f"{what} does not build (whole log: {log})\n{last_lines(log, 30)}")


def build_own(name: str) -> Kernel:
    """
    A kernel from linux-source. It is built in a folder of the source tree, because
    kbuild uses relative paths there. So a build can be continued in a copy of the tree,
    and also with a new configuration: only what differs is compiled again.
    """
    flavour = FLAVOURS[name]
    tree = source()

    def build(directory: Path) -> None:
        for old in cache.unused_entries(name, tree, but=directory):
            directory.rmdir()
            old.rename(directory)
            (directory / ".complete").unlink(missing_ok=True)
            break
        configure(tree, directory, flavour)
        make_kernel(tree, directory, flavour, f"kernel {name}")
        run("make", "-C", tree, f"ARCH={flavour.arch}", f"O={directory.name}",
            "INSTALL_MOD_PATH=mods", "INSTALL_MOD_STRIP=1", "modules_install")

    out = cache.cached(name, version(name), build, parent=tree)
    release = (out / "include/config/kernel.release").read_text().strip()
    return Kernel(name, out / flavour.image, release, out, out / "mods",
                  (f"ARCH={flavour.arch}",), flavour.append)


def relocate_headers(directory: Path) -> None:
    """Correct the paths in Debian's headers, which are those in /usr/src."""
    for makefile in (directory / "usr/src").glob("*/Makefile"):
        text = makefile.read_text()
        if text.startswith("include /usr/src"):
            makefile.write_text(text.replace("include /usr/src", f"include {directory}/usr/src"))


def wanted_modules(modules: Path) -> list[str]:
    """The files of STOCK_MODULES and of the modules that they depend on."""
    depends = {}
    names = {}
    for line in (modules / "modules.dep").read_text().splitlines():
        path, _, needed = line.partition(":")
        depends[path] = needed.split()
        names[Path(path).name.split(".ko")[0].replace("-", "_")] = path
    # Some kernels have some of them built in.
    found = [names[name] for name in STOCK_MODULES if name in names]
    return sorted({file for path in found for file in (path, *depends[path])})


def trim_modules(modules: Path) -> None:
    """Remove the modules that guests do not use, so that depmod takes seconds only."""
    run("depmod", "-b", modules.parents[2], modules.name)
    keep = {modules / path for path in wanted_modules(modules)}
    for path in modules.rglob("*.ko*"):
        if path not in keep:
            path.unlink()
    run("depmod", "-b", modules.parents[2], modules.name)


def stock_packages(name: str) -> tuple[str, str]:
    """The packages of the newest image and of its headers."""
    image_meta, headers_meta = STOCK[name]
    image, = (p for p in packages.package_depends(image_meta) if p.startswith("linux-image-"))
    headers, = (p for p in packages.package_depends(headers_meta) if p.startswith("linux-headers-"))
    return image, headers


def fetch_stock(name: str) -> Kernel:
    """One of Debian's own kernels, unmodified, and its headers."""
    image, headers = stock_packages(name)
    release = image.removeprefix("linux-image-")

    def fetch(directory: Path) -> None:
        parts = [p for p in packages.package_depends(headers)
                 if re.match(r"linux-(headers|kbuild)-", p)]
        packages.fetch_packages(directory, image, headers, *parts)
        relocate_headers(directory)
        trim_modules(directory / "lib/modules" / release)
        shutil.rmtree(directory / "usr/share")

    directory = cache.cached(name, version(name), fetch)
    return Kernel(name, directory / f"boot/vmlinuz-{release}", release,
                  directory / f"usr/src/{headers}", directory)


@once
def version(name: str) -> str:
    """The key of a guest's kernel in the cache, whether the entry exists or not."""
    if name == COVERAGE:
        return version("um")
    if name in STOCK:
        image = stock_packages(name)[0]
        release = image.removeprefix("linux-image-")
        return f"{packages.package_version(image)}-{short_hash(release, *STOCK_MODULES)}"
    return f"{source_version()}-{short_hash(fragment_text(FLAVOURS[name]))}"


def missing(name: str) -> bool:
    """Whether a guest's kernel has to be built or fetched first."""
    own = CACHE / f"source-{source_version()}"
    name = "um" if name == COVERAGE else name
    return not ((CACHE if name in STOCK else own) / f"{name}-{version(name)}/.complete").exists()


@once
def kernel(name: str) -> Kernel:
    """A guest's kernel; it is built or fetched if the cache has none."""
    if name == COVERAGE:
        return dataclasses.replace(kernel("um"), name=name)
    return fetch_stock(name) if name in STOCK else build_own(name)
