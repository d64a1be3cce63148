# SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
"""
The guests' kernels, with their modules and what our module is built against. All of
it comes from Debian packages and is kept in the cache under a key of package version
and configuration.
"""

import dataclasses
import hashlib
import os
import re
import shutil
import subprocess
from pathlib import Path

from . import cache, host, packages
from .host import CACHE, LAB, LabError, once, run

FRAGMENTS = LAB / "kernels"

# Modules of a stock kernel that its guests use. Those that they depend on are added.
STOCK_MODULES = """
    virtio_pci virtio_blk virtio_net 9p 9pnet_virtio squashfs overlay loop ext4
    rpcrdma rdma_rxe ib_uverbs rdma_ucm ib_umad ib_ipoib
    nfs nfsv3 nfsv4 nfsd nfs_acl rpcsec_gss_krb5 grace lockd
    crc32_generic crc32c_generic crc32c_intel crc32_pclmul libcrc32c
    cbc cts ccm sha1_generic sha256_generic sha512_generic hmac aes_generic
    camellia_generic cmac md5
    dummy veth bridge sch_netem sch_prio cls_u32 af_packet virtio_rng autofs4
    nf_tables iptable_filter xt_tcpudp
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
    append_mem: str = ""        # added where the test device is used
    tools: str | None = None    # the release of Debian whose compiler the module needs
    cpus: int = 0               # how many it has; 0: as many as others, see emulator.py
    arch: str = "amd64"         # Debian's name


@dataclasses.dataclass(frozen=True)
class Edit:
    """A text that a file of a kernel source has once, and the text in its place."""
    file: str
    before: str
    after: str

    def fits(self, tree: Path) -> bool:
        """Whether the text is there once."""
        path = tree / self.file
        return path.exists() and path.read_text().count(self.before) == 1

    def apply(self, tree: Path) -> None:
        """Change the file."""
        path = tree / self.file
        if not self.fits(tree):
            raise LabError(f"{path} does not have \"{self.before}\" once: correct the edits in "
                           f"{Path(__file__).name}")
        path.write_text(path.read_text().replace(self.before, self.after))


@dataclasses.dataclass(frozen=True)
class Source:
    """A kernel source of Debian, of which the newest package that matches is taken, or a tree."""
    kind: str           # of its entry in the cache
    release: str = ""   # of Debian
    package: str = ""   # a pattern, see packages.Apt.newest()
    edits: tuple[Edit, ...] = ()
    tree: str = ""      # a folder that the user names, and whose copy gets the edits that fit


# Servers with kernel 7.x take 4 MiB. Its NFS client mounts with 1 MiB at most, and has 2 MiB
# at most in one RPC, because that is what a page of pointers to pages is for.
LARGE_IO = (Edit("include/linux/nfs_xdr.h", "NFS_MAX_FILE_IO_SIZE\t(1048576U)",
                 "NFS_MAX_FILE_IO_SIZE\t(4194304U)"),
            Edit("fs/nfs/pagelist.c", "sizeof(struct page *) > PAGE_SIZE",
                 "sizeof(struct page *) > 2 * PAGE_SIZE"))

# User-Mode Linux 6.12 sets a process's floating point state in a buffer of this size, which the
# host refuses if its CPU has more state, as with AMX. It takes no more of a larger buffer than
# it needs. 7.x asks the host for the size.
LARGE_STATE = (Edit("arch/x86/um/user-offsets.c", "HOST_FP_SIZE, 2696", "HOST_FP_SIZE, 12288"),)

# Opening the network between two guests takes locks, with softirqs enabled, that softirqs take.
# Lockdep reports that and switches itself off.
VECTOR_LOCKS = (Edit("arch/um/drivers/vector_kern.c", "\tvector_reset_stats(vp);",
                     "\tlocal_bh_disable();\n\tvector_reset_stats(vp);\n\tlocal_bh_enable();"),)

# A device has DMA operations of its own only where the architecture has, see device/dma.c.
DMA_OPS = (Edit("arch/um/Kconfig", "\tselect NO_DMA if !UML_DMA_EMULATION\n",
                "\tselect NO_DMA if !UML_DMA_EMULATION\n"
                "\tselect ARCH_HAS_DMA_OPS if UML_DMA_EMULATION\n"),)

# KASAN, kmemleak and others take a call trace of each allocation. User-Mode Linux looks up each
# word on the stack as an address of code, and then records return addresses in frames alone. So
# look up only these, except for a call trace that is printed.
STACK_WORDS = (Edit("arch/um/kernel/stacktrace.c", "void dump_trace(",
                    "static const struct stacktrace_ops dump_ops;\n\nvoid dump_trace("),
               Edit("arch/um/kernel/stacktrace.c", "\t\tif (__kernel_text_address(addr)) {",
                    "\t\tif ((ops != &dump_ops || !IS_ENABLED(CONFIG_FRAME_POINTER) ||\n"
                    "\t\t     (unsigned long)sp == bp + sizeof(long)) &&\n"
                    "\t\t    __kernel_text_address(addr)) {"))

SOURCE_6 = Source("source", "12", r"linux-source-(6\.12)",
                  LARGE_STATE + VECTOR_LOCKS + DMA_OPS + STACK_WORDS)
SOURCE_7 = Source("source7", "13", r"linux-source-(7\.\d+)",
                  LARGE_IO + VECTOR_LOCKS + DMA_OPS + STACK_WORDS)
# With DIR= the guest um has the kernel of that tree.
TREE = Source("tree", edits=SOURCE_6.edits, tree=os.environ.get("RPCRDMA_TREE", ""))


@dataclasses.dataclass(frozen=True)
class Flavour:
    """A kernel that the lab builds from linux-source."""
    arch: str
    image: str
    targets: tuple[str, ...]
    fragments: tuple[str, ...]      # files of kernels/, without .config
    append: str = ""
    append_mem: str = ""
    source: Source = SOURCE_6
    cpus: int = 0                   # see Kernel
    words: tuple[str, ...] = ()     # for make
    release: str = ""               # of Debian, of its user space; none: the host's


FLAVOURS = {
    "um": Flavour("um", "linux", ("linux", "modules"), ("common", "um", "6")),
    "um-debug": Flavour("um", "linux", ("linux", "modules"), ("common", "um", "debug", "um-debug")),
    "smp-debug": Flavour("x86_64", "arch/x86/boot/bzImage", ("bzImage", "modules"),
                         ("common", "qemu", "smp", "debug", "smp-debug"),
                         # With KASAN under TCG, the ACPI interpreter needs a minute
                         # to route PCI interrupts.
                         "acpi=noirq",
                         # Each DMA mapping is a copy: who accesses memory that is mapped, and
                         # does not sync it, gets wrong data. 128 MiB, in slots of 2 KiB.
                         "swiotlb=65536,force"),
    "smp-kcsan": Flavour("x86_64", "arch/x86/boot/bzImage", ("bzImage", "modules"),
                         ("common", "qemu", "smp", "kcsan"), "acpi=noirq"),
    "um-7": Flavour("um", "linux", ("linux", "modules"), ("common", "um", "7", "gcov"),
                    "seccomp=on", source=SOURCE_7),
    "um-7-debug": Flavour("um", "linux", ("linux", "modules"),
                          ("common", "um", "debug", "um-debug", "7"),
                          "seccomp=on", source=SOURCE_7),
    "um-7-smp": Flavour("um", "linux", ("linux", "modules"), ("common", "um", "7", "um-smp"),
                        "seccomp=on ncpus=2", source=SOURCE_7, cpus=2),
    # For `make bench GUEST=um-7-lockstat`, which builds it. It is no guest of scenarios.
    "um-7-lockstat": Flavour("um", "linux", ("linux", "modules"),
                             ("common", "um", "7", "um-smp", "lockstat"),
                             "seccomp=on ncpus=2", source=SOURCE_7, cpus=2),
    # With one CPU, as the unit tests want it
    "arm64-64k": Flavour("arm64", "arch/arm64/boot/Image", ("Image", "modules"),
                         ("common", "qemu", "arm64-64k"), cpus=1, release="13-arm64"),
    "s390x": Flavour("s390", "arch/s390/boot/bzImage", ("bzImage", "modules"),
                     ("common", "qemu", "s390x"), cpus=1, release="12-s390x"),
}
if TREE.tree:       # which may need the options of 6.12, those of 7.x, or some of both
    FLAVOURS["um"] = dataclasses.replace(FLAVOURS["um"], fragments=("7", "common", "um", "6"),
                                         source=TREE)


@dataclasses.dataclass(frozen=True)
class Stock:
    """
    A kernel of Debian, unmodified. The package of its image is a pattern, of which the
    newest is taken, or one that depends on the newest.
    """
    release: str
    image: str
    headers: str | None = None      # None: named after the image


STOCK = {
    "debian-6.1": Stock("12", "linux-image-amd64", "linux-headers-amd64"),
    "debian-6.12": Stock("12", "linux-image-6.12-amd64", "linux-headers-6.12-amd64"),
    "debian-13": Stock("13", r"linux-image-(6\.12\.\d+)\+deb13(\.\d+)?-amd64"),
    "debian-13-7": Stock("13", r"linux-image-(7\.\d+\.\d+)\+deb13(\.\d+)?-amd64"),
    "debian-13-arm64": Stock("13-arm64", r"linux-image-(6\.12\.\d+)\+deb13(\.\d+)?-arm64"),
    # With pages of 16 KiB
    "debian-13-arm64-16k": Stock("13-arm64",
                                 r"linux-image-(6\.12\.\d+)\+deb13(\.\d+)?-arm64-16k"),
    # With PREEMPT_RT: spinlocks sleep, and softirqs are threads
    "debian-13-rt": Stock("13", r"linux-image-(6\.12\.\d+)\+deb13(\.\d+)?-rt-amd64"),
    "debian-13-7-rt": Stock("13", r"linux-image-(7\.\d+\.\d+)\+deb13(\.\d+)?-rt-amd64"),
}
# Those that the project's packages and TESTED in the Makefile are for
TESTED = ("debian-6.1", "debian-6.12", "debian-13", "debian-13-7")

# The prefix of the compiler for another architecture, by the names of the kernel and of Debian
CROSS = {"arm64": "aarch64-linux-gnu-", "s390": "s390x-linux-gnu-", "s390x": "s390x-linux-gnu-"}

NAMES = ("um", "um-debug", "um-7", "um-7-debug", "um-7-smp", "debian-6.1", "debian-6.12",
         "debian-13", "debian-13-7", "debian-13-rt", "debian-13-7-rt", "debian-13-arm64",
         "debian-13-arm64-16k", "arm64-64k", "s390x", "smp-debug", "smp-kcsan")

# The guest whose module counts the lines that it runs
COVERAGE = "um-gcov"
# The guest whose kernel it has. Most scenarios run in it, and seccomp=on spares CPU time.
COVERAGE_KERNEL = "um-7"
# The guests in whose place it runs scenarios
COVERED = ("um", "um-7")
# The guest that looks for errors in memory use and locking each day
DEBUG = "um-7-debug"


def kernel_of(name: str) -> str:
    """The guest whose kernel a guest boots: um-gcov has another's, all others their own."""
    return COVERAGE_KERNEL if name == COVERAGE else name


def short_hash(*texts: str) -> str:
    """A short hash, for keys of the cache."""
    return hashlib.sha256("\0".join(texts).encode()).hexdigest()[:10]


def source_package(wanted: Source) -> str:
    """The newest package of a kernel source."""
    return packages.apt(wanted.release).newest(wanted.package)


def source_version(wanted: Source = SOURCE_6) -> str:
    """The version of a kernel source."""
    if wanted.tree:
        version_of_tree = run("make", "-s", "-C", wanted.tree, "kernelversion").strip()
        return f"{version_of_tree}-{short_hash(wanted.tree)}"
    return packages.apt(wanted.release).version(source_package(wanted))


def source_key(wanted: Source) -> str:
    """The key of a kernel source in the cache."""
    edits = [f"-{short_hash(repr(wanted.edits))}"] if wanted.edits else []
    return "".join([source_version(wanted), *edits])


@once
def source(wanted: Source = SOURCE_6) -> Path:
    """A kernel source that the lab's own kernels are built from."""

    def unpack(directory: Path) -> None:
        if wanted.tree:
            run("sh", "-c", 'tar -C "$0" --exclude=./.git -c . | tar -C "$1" -x', wanted.tree,
                directory)
            for edit in wanted.edits:
                if edit.fits(directory):
                    edit.apply(directory)
            return
        packages.apt(wanted.release).fetch(directory, source_package(wanted))
        tarball, = (directory / "usr/src").glob("linux-source-*.tar.xz")
        # Kconfig reads every folder. These have nothing for it, and are large.
        bulk = ["arch/*/boot/dts", "drivers/gpu/drm/amd/include", "tools/testing/selftests"]
        unused = [f"--exclude=*/{path}" for path in bulk]
        run("tar", "-xJf", tarball, "--strip-components=1", "-C", directory, *unused)
        shutil.rmtree(directory / "usr/src")
        shutil.rmtree(directory / "usr/share")
        for edit in wanted.edits:
            edit.apply(directory)

    return cache.cached(wanted.kind, source_key(wanted), unpack)


def fragment_text(flavour: Flavour) -> str:
    """
    The Kconfig options of a flavour, without comments, which do not change a kernel. A
    fragment may change what those before it say.
    """
    options = {}
    for name in flavour.fragments:
        for line in (FRAGMENTS / f"{name}.config").read_text().splitlines():
            match = re.match(r"(?:# )?(CONFIG_\w+)", line)
            if match:
                options[match[1]] = line
    return "".join(f"{line}\n" for line in options.values())


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
    run("make", "-C", tree, *target(flavour.arch), f"O={out.name}", *flavour.words,
        f"KCONFIG_ALLCONFIG={fragment}", "allnoconfig")
    if not flavour.source.tree:     # what a tree lacks, the scenarios miss
        check_config(fragment.read_text(), out / ".config")


def target(arch: str) -> tuple[str, ...]:
    """Words for make."""
    return (f"ARCH={arch}", *([f"CROSS_COMPILE={CROSS[arch]}"] if arch in CROSS else []))


def compiler(arch: str) -> list[str]:
    """Words for make. With ccache a kernel that was built before takes a minute or two."""
    words = [f"CC=ccache {CROSS.get(arch, '')}gcc"] if shutil.which("ccache") else []
    if arch == "um" and host.debian() != "12":
        # User-Mode Linux has large addresses. gcc 14 therefore puts large arrays into
        # sections of their own, which kmemleak does not scan.
        words.append("KCFLAGS=-mlarge-data-threshold=2147483647")
    return words


def last_lines(log: Path, count: int) -> str:
    """The end of a log."""
    return "\n".join(log.read_text("utf-8", "replace").splitlines()[-count:])


def make_kernel(tree: Path, out: Path, flavour: Flavour, what: str) -> None:
    """Run make in a kernel tree, and print its progress every half minute."""
    argv = ["make", "-C", str(tree), *target(flavour.arch), f"O={out.name}",
            f"-j{host.jobs() + 1}", *compiler(flavour.arch), *flavour.targets]
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
    tree = source(flavour.source)
    if flavour.arch in CROSS:
        packages.require_packages([f"gcc-{CROSS[flavour.arch][:-1]}"])

    def build(directory: Path) -> None:
        for old in cache.unused_entries(kind(name), tree, but=directory):
            directory.rmdir()
            old.rename(directory)
            (directory / ".complete").unlink(missing_ok=True)
            break
        configure(tree, directory, flavour)
        make_kernel(tree, directory, flavour, f"kernel {name}")
        run("make", "-C", tree, *target(flavour.arch), f"O={directory.name}",
            "INSTALL_MOD_PATH=mods", "INSTALL_MOD_STRIP=1", "modules_install")

    out = cache.cached(kind(name), version(name), build, parent=tree)
    release = (out / "include/config/kernel.release").read_text().strip()
    return Kernel(name, out / flavour.image, release, out, out / "mods",
                  target(flavour.arch), flavour.append, flavour.append_mem, cpus=flavour.cpus,
                  arch=packages.architecture(flavour.release))


def relocate_headers(directory: Path) -> None:
    """Correct the paths in Debian's headers, which are those in /usr/src."""
    for makefile in (directory / "usr/src").glob("*/Makefile"):
        text = makefile.read_text()
        # Two lines at most; the kernel's own Makefile is long.
        if re.match(r"(KBUILD_OUTPUT=|include )/usr/src/", text):
            makefile.write_text(re.sub(r"(=| )/usr/src/", rf"\1{directory}/usr/src/", text))


def move_modules(directory: Path) -> None:
    """Put modules where all programs of the lab look for them: below lib/ and not usr/lib/."""
    usr = directory / "usr/lib/modules"
    if usr.is_dir():
        shutil.copytree(usr, directory / "lib/modules", symlinks=True, dirs_exist_ok=True)
        shutil.rmtree(usr)


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
    # For the initrd's insmod
    for path in modules.rglob("*.ko.xz"):
        run("xz", "--decompress", path)
    run("depmod", "-b", modules.parents[2], modules.name)


def stock_packages(name: str) -> tuple[str, str]:
    """The packages of the newest image and of its headers."""
    stock = STOCK[name]
    apt = packages.apt(stock.release)
    if stock.headers is None:
        image = apt.newest(stock.image)
        return image, image.replace("linux-image-", "linux-headers-")
    image, = (p for p in apt.depends(stock.image) if p.startswith("linux-image-"))
    headers, = (p for p in apt.depends(stock.headers) if p.startswith("linux-headers-"))
    return image, headers


def fetch_stock(name: str) -> Kernel:
    """One of Debian's own kernels, unmodified, and its headers."""
    image, headers = stock_packages(name)
    release = image.removeprefix("linux-image-")
    apt = packages.apt(STOCK[name].release)

    def fetch(directory: Path) -> None:
        # Since 7.x the image is three packages.
        parts = [p for p in apt.depends(image) if re.match(r"linux-(base-\d|binary|modules)", p)]
        parts += [p for p in apt.depends(headers) if p.startswith("linux-headers-")]
        apt.fetch(directory, image, headers, *parts)
        # Its programs run on the host.
        packages.apt(STOCK[name].release[:2]).fetch(
            directory, *(p for p in apt.depends(headers) if p.startswith("linux-kbuild-")))
        relocate_headers(directory)
        move_modules(directory)
        trim_modules(directory / "lib/modules" / release)
        shutil.rmtree(directory / "usr/share")

    directory = cache.cached(kind(name), version(name), fetch)
    boot = directory / f"boot/vmlinuz-{release}"
    image_file = boot if boot.exists() else directory / f"lib/modules/{release}/vmlinuz"
    arch = packages.architecture(STOCK[name].release)
    return Kernel(name, image_file, release, directory / f"usr/src/{headers}", directory,
                  () if arch == "amd64" else target(arch), tools=STOCK[name].release, arch=arch)


def header_tools(name: str) -> list[str]:
    """The packages with the compiler that the headers of a stock kernel want, for amd64."""
    depends = packages.apt(STOCK[name].release).depends(stock_packages(name)[1])
    compilers = [package for package in depends if package.startswith("gcc-")]
    if packages.architecture(STOCK[name].release) == "amd64":
        return compilers
    prefix = CROSS[packages.architecture(STOCK[name].release)]
    return [re.sub(r"(gcc-\d+).*", rf"\1-{prefix[:-1]}", package) for package in compilers]


def user_space(name: str) -> str:
    """The release of Debian of a guest's root: of Debian 12's kernels on amd64 the host's."""
    name = kernel_of(name)
    release = STOCK[name].release if name in STOCK else FLAVOURS[name].release
    return host.debian() if release in ("", "12") else release


def of_host() -> str:
    """The guest with the 6.12 and the user space of the host's release."""
    return {"12": "debian-6.12", "13": "debian-13"}[host.debian()]


def kind(name: str) -> str:
    """
    The kind of a kernel's entry in the cache. Entries of a kind are found by its name, a
    hyphen and a digit. So um-7 has the kind um7, or it would be found as an um. Other
    names would be clearer, but with them all kernels would be built again.
    """
    kind_of = re.sub(r"-(7|13|16k)\b", r"\1", name)
    return kind_of if name in STOCK else f"{kind_of}{host.built_on()}"


@once
def version(name: str) -> str:
    """The key of a guest's kernel in the cache, whether the entry exists or not."""
    name = kernel_of(name)
    if name in STOCK:
        image = stock_packages(name)[0]
        release = image.removeprefix("linux-image-")
        package = packages.apt(STOCK[name].release).version(image)
        return f"{package}-{short_hash(release, *STOCK_MODULES)}"
    flavour = FLAVOURS[name]
    return f"{source_key(flavour.source)}-{short_hash(fragment_text(flavour))}"


def missing(name: str) -> bool:
    """Whether a guest's kernel has to be built or fetched first."""
    name = kernel_of(name)
    parent = CACHE
    if name not in STOCK:
        wanted = FLAVOURS[name].source
        parent = CACHE / f"{wanted.kind}-{source_key(wanted)}"
    return not (parent / f"{kind(name)}-{version(name)}/.complete").exists()


@once
def kernel(name: str) -> Kernel:
    """A guest's kernel; it is built or fetched if the cache has none."""
    if name == COVERAGE:
        return dataclasses.replace(kernel(kernel_of(name)), name=name)
    return fetch_stock(name) if name in STOCK else build_own(name)
