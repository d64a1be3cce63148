# SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
"""
What a guest is made of: a kernel, its modules, what our module is built
against, and a root file system. All of it comes from Debian packages and is
kept in the cache, keyed by package version and configuration.
"""

import dataclasses
import hashlib
import os
import pathlib
import re
import shutil
import subprocess

from . import host
from .host import CACHE, LAB, LabError, cached, once, run

SOURCE_PACKAGE = "linux-source-6.12"
FRAGMENTS = LAB / "kernels"

# Modules of a stock kernel that its guests use, with all that those depend on.
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
    """One guest kernel as it lies in the cache."""
    name: str
    image: pathlib.Path         # what is booted
    release: str                # uname -r
    kdir: pathlib.Path          # what our module is built against
    modules: pathlib.Path       # holds lib/modules/<release>
    make_args: tuple = ()
    append: str = ""            # more for its command line


@dataclasses.dataclass(frozen=True)
class Flavour:
    """A kernel that the lab builds from linux-source."""
    arch: str
    image: str
    targets: tuple
    fragments: tuple
    append: str = ""


FLAVOURS = {
    "um": Flavour("um", "linux", ("linux", "modules"), ("common", "um", "gcov")),
    "um-debug": Flavour("um", "linux", ("linux", "modules"), ("common", "um", "debug", "um-debug")),
    "smp-debug": Flavour("x86_64", "arch/x86/boot/bzImage", ("bzImage", "modules"),
                         ("common", "smp", "debug"),
                         # Interpreting ACPI to route PCI interrupts takes a
                         # minute under TCG with KASAN.
                         "acpi=noirq"),
}

# Stock kernels: the package that names the newest image, and its headers.
STOCK = {
    "debian-6.1": ("linux-image-amd64", "linux-headers-amd64"),
    "debian-6.12": ("linux-image-6.12-amd64", "linux-headers-6.12-amd64"),
}

NAMES = ("um", "um-debug", "debian-6.1", "debian-6.12", "smp-debug")

# The kernel of um once more: the guest whose module counts the lines it runs.
COVERAGE = "um-gcov"


def digest(*texts):
    return hashlib.sha256("\0".join(texts).encode()).hexdigest()[:10]


def source_version():
    return host.package_version(SOURCE_PACKAGE)


@once
def source():
    """The kernel source that the lab's own kernels are built from."""
    version = source_version()

    def unpack(directory):
        host.fetch_packages(directory, SOURCE_PACKAGE)
        tarball, = (directory / "usr/src").glob("linux-source-*.tar.xz")
        # Kconfig looks into every folder; what is left out here is only bulk.
        bulk = ["arch/*/boot/dts", "drivers/gpu/drm/amd/include", "tools/testing/selftests"]
        unused = [f"--exclude=*/{path}" for path in bulk]
        run("tar", "-xJf", tarball, "--strip-components=1", "-C", directory, *unused)
        shutil.rmtree(directory / "usr/src")
        shutil.rmtree(directory / "usr/share")

    return cached("source", version, unpack), version


def fragment_text(flavour):
    """What a flavour asks of Kconfig; an edited comment asks nothing new."""
    lines = [line for name in flavour.fragments
             for line in (FRAGMENTS / f"{name}.config").read_text().splitlines()]
    return "".join(f"{line}\n" for line in lines if re.match("(# )?CONFIG_", line))


def check_config(wanted, config):
    """Kconfig drops what its dependencies forbid without a word; the lab does not."""
    got = set(config.read_text().splitlines())
    lost = [line for line in wanted.splitlines()
            if line.startswith("CONFIG_") and line not in got]
    if lost:
        raise LabError(f"the kernel cannot be configured with {', '.join(lost)}")


def configure(tree, out, flavour):
    fragment = out / "lab.config"
    fragment.write_text(fragment_text(flavour))
    run("make", "-C", tree, f"ARCH={flavour.arch}", f"O={out.name}",
        f"KCONFIG_ALLCONFIG={fragment}", "allnoconfig")
    check_config(fragment.read_text(), out / ".config")


def compiler():
    """For make: whoever has ccache builds the kernels that he had before in a minute or two."""
    return ["CC=ccache gcc"] if shutil.which("ccache") else []


def make_kernel(tree, out, flavour, what):
    """Run make in a kernel tree, saying every half minute how far it is."""
    argv = ["make", "-C", str(tree), f"ARCH={flavour.arch}", f"O={out.name}",
            f"-j{host.jobs() + 1}", *compiler(), *flavour.targets]
    log = out / "build.log"
    with open(log, "w", encoding="utf-8") as sink:
        # pylint: disable-next=consider-using-with,subprocess-popen-preexec-fn
        build = subprocess.Popen(argv, stdin=subprocess.DEVNULL, stdout=sink,
                                 stderr=subprocess.STDOUT, preexec_fn=host.follow_gently)
        while True:
            try:
                status = build.wait(timeout=30)
                break
            except subprocess.TimeoutExpired:
                done = sum(1 for line in open(log, encoding="utf-8", errors="replace")
                           if line.startswith("  "))
                host.say(f"#   {what}: {done} steps done")
            except BaseException:
                build.terminate()       # make takes its children along
                raise
    if status:
        tail = "".join(open(log, encoding="utf-8", errors="replace").readlines()[-30:])
        raise LabError(f"{what} does not build (whole log: {log})\n{tail}")


def build_own(name):
    """
    A kernel from linux-source. It is built in a folder of the source tree
    itself: kbuild then uses relative paths, and a copy of the tree continues
    a build instead of starting again. So does a new configuration, from what
    the one before it left.
    """
    flavour = FLAVOURS[name]
    tree, _ = source()

    def build(directory):
        for old in host.unused_entries(name, tree, but=directory):
            directory.rmdir()
            old.rename(directory)
            (directory / ".complete").unlink(missing_ok=True)
            break
        configure(tree, directory, flavour)
        make_kernel(tree, directory, flavour, f"kernel {name}")
        run("make", "-C", tree, f"ARCH={flavour.arch}", f"O={directory.name}",
            "INSTALL_MOD_PATH=mods", "INSTALL_MOD_STRIP=1", "modules_install")

    out = cached(name, version(name), build, parent=tree)
    release = (out / "include/config/kernel.release").read_text().strip()
    return Kernel(name, out / flavour.image, release, out, out / "mods",
                  (f"ARCH={flavour.arch}",), flavour.append)


def relocate_headers(directory):
    """Debian's headers name their own place in /usr/src; here they lie elsewhere."""
    for makefile in (directory / "usr/src").glob("*/Makefile"):
        text = makefile.read_text()
        if text.startswith("include /usr/src"):
            makefile.write_text(text.replace("include /usr/src", f"include {directory}/usr/src"))


def wanted_modules(modules):
    """The files of STOCK_MODULES and of everything those depend on."""
    depends = {}
    names = {}
    for line in (modules / "modules.dep").read_text().splitlines():
        path, _, needed = line.partition(":")
        depends[path] = needed.split()
        names[pathlib.Path(path).name.split(".ko")[0].replace("-", "_")] = path
    wanted = set()
    for name in STOCK_MODULES:
        path = names.get(name.replace("-", "_"))
        if path:        # not every kernel has each of them as a module
            wanted.update([path, *depends[path]])
    return sorted(wanted)


def trim_modules(modules):
    """Keep what the guests use: depmod runs in seconds, even in a guest without KVM."""
    run("depmod", "-b", modules.parents[2], modules.name)
    keep = {modules / path for path in wanted_modules(modules)}
    for path in modules.rglob("*.ko*"):
        if path not in keep:
            path.unlink()
    run("depmod", "-b", modules.parents[2], modules.name)


def stock_packages(name):
    """The newest image, and its headers."""
    image_meta, headers_meta = STOCK[name]
    image, = (p for p in host.package_depends(image_meta) if p.startswith("linux-image-"))
    headers, = (p for p in host.package_depends(headers_meta) if p.startswith("linux-headers-"))
    return image, headers


def fetch_stock(name):
    """One of Debian's own kernels, unmodified, and the headers that go with it."""
    image, headers = stock_packages(name)
    release = image.removeprefix("linux-image-")

    def fetch(directory):
        parts = [p for p in host.package_depends(headers)
                 if re.match(r"linux-(headers|kbuild)-", p)]
        host.fetch_packages(directory, image, headers, *parts)
        relocate_headers(directory)
        trim_modules(directory / "lib/modules" / release)
        shutil.rmtree(directory / "usr/share")

    directory = cached(name, version(name), fetch)
    return Kernel(name, directory / f"boot/vmlinuz-{release}", release,
                  directory / f"usr/src/{headers}", directory)


@once
def version(name):
    """Of a guest's kernel and what else its cache entry depends on, whether it is there or not."""
    if name == COVERAGE:
        return version("um")
    if name in STOCK:
        image = stock_packages(name)[0]
        release = image.removeprefix("linux-image-")
        return f"{host.package_version(image)}-{digest(release, *STOCK_MODULES)}"
    return f"{source_version()}-{digest(fragment_text(FLAVOURS[name]))}"


def missing(name):
    """Whether a guest's kernel has to be built or fetched first."""
    own = CACHE / f"source-{source_version()}"
    name = "um" if name == COVERAGE else name
    return not ((CACHE if name in STOCK else own) / f"{name}-{version(name)}/.complete").exists()


@once
def kernel(name):
    if name == COVERAGE:
        return dataclasses.replace(kernel("um"), name=name)
    return fetch_stock(name) if name in STOCK else build_own(name)


# The guests' root file system

ROOT_PACKAGES = """
    kmod mount util-linux procps psmisc iproute2 iputils-ping hostname
    nfs-common nfs-kernel-server rpcbind keyutils
    rdma-core ibverbs-providers ibverbs-utils rdmacm-utils
    fio e2fsprogs acl attr tcpdump krb5-user krb5-kdc krb5-admin-server
""".split()


def debian_sources():
    """apt's sources of Debian 12 itself, whatever else this machine's apt knows."""
    fields = "$(ORIGIN)|$(CODENAME)|$(REPO_URI)|$(RELEASE)|$(COMPONENT)"
    out = run("apt-get", "indextargets", "--format", fields, "Identifier: Packages")
    keyring = "/usr/share/keyrings/debian-archive-keyring.gpg"
    lines = set()
    for line in out.splitlines():
        if line.count("|") != 4:    # apt warns of sources that are named twice
            continue
        origin, codename, uri, release, component = line.split("|")
        if origin == "Debian" and codename.startswith("bookworm") and component == "main":
            lines.add(f"deb [signed-by={keyring}] {uri} {release} {component}\n")
    if not lines:
        raise LabError("apt has no source of Debian 12 (bookworm), which the guests are made from")
    return "".join(sorted(lines))


def root_environment(directory):
    """
    Where mmdebstrap unpacks. As root it does so inside the cache; an ordinary
    user's namespace cannot look into his home, so that leaves /tmp.
    """
    if not os.geteuid():
        return dict(os.environ, TMPDIR=str(directory))
    probe = subprocess.run(["unshare", "--map-auto", "--map-root-user", "true"], check=False,
                           stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    if probe.returncode:
        raise LabError("without being root, mmdebstrap needs user namespaces: as root, "
                       "sysctl kernel.unprivileged_userns_clone=1 and "
                       "usermod --add-subuids 100000-165535 --add-subgids 100000-165535 USER")
    return None


@once
def root_version():
    versions = [f"{name}={host.package_version(name)}" for name in ROOT_PACKAGES]
    return f"12-{digest(*versions)}"


def root_missing():
    return not (CACHE / f"root-{root_version()}/.complete").exists()


@once
def root_image():
    """The squashfs that every guest has as its root, under a tmpfs."""

    def build(directory):
        sources = directory / "sources.list"
        sources.write_text(debian_sources())
        options = [f'--dpkgopt=path-exclude=/usr/share/{path}/*'
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

    return cached("root", root_version(), build) / "root.sqfs"


@once
def busybox():
    """A static one. Installing it would throw out the one that the host may have."""
    version = host.package_version("busybox-static")
    directory = cached("busybox", version.replace(":", "."),
                       lambda folder: host.fetch_packages(folder, "busybox-static"))
    return directory / "bin/busybox"


def initrd(kern, directory):
    """
    A first root just large enough to find the real one: busybox, init and,
    for a stock kernel, the modules for disk, squashfs, overlay and 9p. Made
    anew for each boot, so that an edited init needs no cache entry.
    """
    tree = directory / "initrd"
    shutil.rmtree(tree, ignore_errors=True)
    (tree / "bin").mkdir(parents=True)
    shutil.copy(busybox(), tree / "bin/busybox")
    shutil.copy(LAB / "guest/init", tree / "init")
    os.chmod(tree / "init", 0o755)
    if kern.name in STOCK:
        copy_boot_modules(kern, tree)
    image = directory / "initrd.gz"
    names = sorted(str(p.relative_to(tree)) for p in tree.rglob("*"))
    archive = subprocess.run(["cpio", "-o", "-H", "newc", "--quiet", "-R", "0:0"], cwd=tree,
                             input="\n".join(names).encode(), stdout=subprocess.PIPE, check=True)
    packed = subprocess.run(["gzip", "-1"], input=archive.stdout, stdout=subprocess.PIPE,
                            check=True)
    image.write_bytes(packed.stdout)
    shutil.rmtree(tree)
    return image


def copy_boot_modules(kern, tree):
    """In load order, each after what it depends on; init loads them as listed."""
    modules = kern.modules / "lib/modules" / kern.release
    order = []
    for name in ("virtio_pci", "virtio_blk", "9p", "9pnet_virtio", "squashfs", "overlay"):
        out = run("modprobe", "--show-depends", "-d", kern.modules, "-S", kern.release, name)
        for line in out.splitlines():
            if line.startswith("insmod "):
                path = pathlib.Path(line.split()[1])
                if path not in order:
                    order.append(path)
    assert all(modules in path.parents for path in order)
    (tree / "modules").mkdir()
    for number, path in enumerate(order):
        shutil.copy(path, tree / f"modules/{number:02}-{path.name}")
