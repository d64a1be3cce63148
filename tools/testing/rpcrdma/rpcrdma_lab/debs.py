# SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
"""
The parts of a check that are about the project's Debian packages: what `make deb` makes, and
what the package for DKMS does in a root file system with Debian's kernels and in a guest.

In the root file system everything is built at the host's speed. The guest then boots it, and
builds the module once more. There the compiler's results come from ccache, because a guest in
QEMU's TCG would compile for a quarter of an hour.
"""

import functools
import math
import os
import re
import shutil
import tempfile
from collections.abc import Sequence
from pathlib import Path

from . import cache, emulator, host, kernels, module, packages, root, toolchain
from .guest import Guest
from .host import BUILD, LAB, LOGS, TOP, LabError, attempt, once, run
from .kernels import Kernel
from .ktap import Reporter, Test
from .session import next_boot
from .steps import check_step

# The kernels whose parts run with ALL=1: one of each release. The other one is installed there as
# well and gets its module, which is not loaded.
KERNELS = ("debian-6.1", "debian-13-7")

# What `make check` needs for it, and `make demo` does not
PACKAGES = ("debhelper", "dh-dkms", "gpg", "gpg-agent", "lintian")

# What a root file system needs to build the module, besides the compiler of its kernels
TOOLS = ("apt", "ccache", "dkms", "initramfs-tools", "linux-base", "openssl", "pahole")

# Only root can unpack a tar file with devices. mmdebstrap has its own.
NO_DEVICES = ("--skip=output/dev",)

# The version that is upgraded from: this tree under another name
PREVIOUS = "0.0.9"

# Seconds that the guest's part may take on um; slower guests get more
GUEST_SECONDS = 120

FILES = {
    "rpcrdma-dkms": ("./usr/src/rpcrdma-VERSION/dkms.conf", "./usr/src/rpcrdma-VERSION/Makefile",
                     "./usr/src/rpcrdma-VERSION/net/sunrpc/xprtrdma/main.c",
                     "./usr/lib/udev/rules.d/60-rpcrdma-dkms.rules",
                     "./usr/share/man/man4/rpcrdma.4.gz",
                     "./usr/share/doc/rpcrdma-dkms/admin-guide.rst.gz",
                     "./usr/share/doc/rpcrdma-dkms/examples/nfs.conf.d/rpcrdma.conf",
                     "./usr/share/doc/rpcrdma-dkms/examples/sysctl.d/rpcrdma.conf"),
    "rpcrdma-tools": ("./usr/sbin/rpcrdma", "./usr/share/man/man8/rpcrdma.8.gz",
                      "./usr/share/doc/rpcrdma-tools/admin-guide.rst.gz",
                      "./usr/share/ynl/specs/rpcrdma.yaml",
                      "./usr/share/doc/rpcrdma-tools/examples/rpcrdma.rules.yml",
                      "./usr/share/doc/rpcrdma-tools/examples/rpcrdma.dashboard.json",
                      "./lib/systemd/system/rpcrdma-metrics.service",
                      "./lib/systemd/system/rpcrdma-metrics.timer",
                      "./usr/share/bash-completion/completions/rpcrdma"),
    "rpcrdma-dev": ("./usr/include/linux/rpcrdma.h",),
}

# The kernel whose package of the module is signed and loaded. The host can build for it.
SIGNED = "debian-6.12"


# The packages

def version() -> str:
    """The version of the tree, without that of the packages."""
    match = re.match(r"rpcrdma \((.*)-", (TOP / "debian/changelog").read_text())
    if not match:
        raise LabError("debian/changelog does not begin with a version: correct it")
    return match[1]


@once
def make_previous() -> Path:
    """The same for a copy of the tree that has an older version."""
    copy = BUILD / "deb-previous"
    shutil.rmtree(copy, ignore_errors=True)
    copy.mkdir(parents=True)
    tar = copy / "tree.tar"
    run("tar", "-C", TOP, "--exclude-vcs", "--exclude=./build", "-cf", tar, ".")
    run("tar", "-C", copy, "-xf", tar)
    tar.unlink()
    for name, before, after in (
            ("debian/changelog", f"rpcrdma ({version()}-", f"rpcrdma ({PREVIOUS}-"),
            ("dkms.conf", f'PACKAGE_VERSION="{version()}"', f'PACKAGE_VERSION="{PREVIOUS}"')):
        kernels.Edit(name, before, after).apply(copy)
    run("make", "-C", copy, "deb")
    return copy / "build/deb"


def only_for(kernel: Kernel, deb: Path) -> list[str]:
    """A complaint if a package of the module depends on more than its kernel."""
    depends = run("dpkg-deb", "-f", deb, "Depends").strip()
    return [] if depends == f"linux-image-{kernel.release}" else [f"Depends: {depends}"]


def tarball() -> list[str]:
    """A complaint if `make dist` makes another tarball in a clone."""
    clone = BUILD / "dist-clone"
    shutil.rmtree(clone, ignore_errors=True)
    run("git", "clone", "--quiet", TOP, clone)
    made: list[Path] = []
    for tree in (TOP, clone):
        run("make", "-C", tree, "dist")
        made += (tree / "build/dist").iterdir()
    first, second = made
    return [] if first.read_bytes() == second.read_bytes() else ["they differ"]


def signature() -> list[str]:
    """A complaint if `make dist KEYID=` makes no good signature in that clone."""
    clone = BUILD / "dist-clone"
    with tempfile.TemporaryDirectory() as keys:
        env = dict(os.environ, GNUPGHOME=keys)
        run("gpg", "--batch", "--passphrase", "", "--quick-generate-key", "lab", env=env)
        run("make", "-C", clone, "dist", "KEYID=lab", env=env)
        signed, = (clone / "build/dist").glob("*.asc")
        checked = attempt("gpg", "--verify", signed, signed.with_suffix(""), env=env)
    return [] if checked.returncode == 0 else checked.stdout.splitlines()


def lintian(folder: Path = module.DEBS) -> list[str]:
    """What lintian says about all packages and the source package."""
    changes, = folder.glob("*.changes")
    return attempt("lintian", "--allow-root", "-I", "--pedantic", changes).stdout.splitlines()


def missing_files() -> list[str]:
    """Files that a package should have, and what it should not have: scripts that load."""
    complaints = []
    for name, files in FILES.items():
        deb = next(module.DEBS.glob(f"{name}_*.deb"), None)
        if not deb:
            complaints.append(f"there is no package {name}")
            continue
        # Debian 13's debhelper puts units below /usr.
        have = {line.split()[5].replace("./usr/lib/systemd", "./lib/systemd")
                for line in run("dpkg-deb", "-c", deb).splitlines()}
        complaints += [f"{name} has no {file}" for file in files
                       if file.replace("VERSION", version()) not in have]
        complaints += [f"{name} has {file}: nothing is to be switched on by installing"
                       for file in have if file.startswith("./etc/") and not file.endswith("/")]
        control = BUILD / "deb-control"
        shutil.rmtree(control, ignore_errors=True)
        run("dpkg-deb", "-e", deb, control)
        complaints += [f"{name}: {script.name} loads or unloads modules"
                       for script in control.iterdir()
                       if re.search(r"\b(modprobe|rmmod|insmod)\b", script.read_text())]
    return complaints


def manual() -> list[str]:
    """What groff says about the module's manual page."""
    done = attempt("groff", "-ww", "-man", "-Tutf8", "-z", TOP / "Documentation/man/rpcrdma.4")
    return done.stdout.splitlines()


def make_deb(report: Reporter) -> None:
    """Make the packages and look at them."""
    with report.test("packages") as test:
        check_step(test, "make deb", lambda: [] if module.debs() else ["no packages"])
        if not test.bad:
            check_step(test, "lintian -I --pedantic", lintian)
            check_step(test, "the packages have their files, and switch on nothing",
                       missing_files)
        check_step(test, "groff -ww: rpcrdma.4", manual)
        if (TOP / ".git").exists():
            check_step(test, "make dist makes the same in a clone", tarball)
            check_step(test, "make dist KEYID= signs it", signature)


# A root file system with Debian's kernels

def of_release(release: str) -> list[str]:
    """The stock kernels of a release."""
    return [name for name in kernels.TESTED if kernels.STOCK[name].release == release]


def kernel_packages(name: str) -> list[str]:
    """
    The packages of a stock kernel's image and headers, and those of theirs. A kernel from
    backports wants the linux-base from there: apt takes it from the repository when it
    installs that kernel, while the other kernel has the release's own.
    """
    image, headers = kernels.stock_packages(name)
    release = kernels.STOCK[name].release
    apt = packages.apt(release)
    wanted = r"linux-(base-\d|binary|modules|headers|kbuild|compiler)"
    backports = "~bpo" in apt.version(image)
    return [image, headers,
            *(package for parent in (image, headers)
              for package in apt.depends(parent) if re.match(wanted, package)),
            *([f"linux-base/{packages.CODENAMES[release]}-backports"] if backports else [])]


def base_packages(release: str) -> tuple[list[str], list[str]]:
    """What is installed in that root file system, and the packages of its kernels."""
    names = of_release(release)
    tools = (tool for name in names for tool in kernels.header_tools(name))
    debs = {deb for name in names for deb in kernel_packages(name)}
    return sorted({*root.ROOT_PACKAGES, *TOOLS, *tools}), sorted(debs)


@once
def base_version(name: str) -> str:
    """The key in the cache of the root file system for a stock kernel."""
    release = kernels.STOCK[name].release
    installed, debs = base_packages(release)
    apt = packages.apt(release)
    versions = [f"{package}={apt.version(package)}" for package in [*installed, *debs]]
    return f"{release}-{kernels.short_hash(*versions, *NO_DEVICES)}"


@once
def base(name: str) -> Path:
    """A folder in the cache with root.tar, and the packages of all kernels of its release."""
    release = kernels.STOCK[name].release
    installed, debs = base_packages(release)

    def build(directory: Path) -> None:
        root.bootstrap(directory, release, installed, *NO_DEVICES)
        (directory / "kernels").mkdir()
        packages.apt(release).run("apt-get", "download", *debs, cwd=directory / "kernels")

    return cache.cached(f"debs{release}", base_version(name), build)


def repository(directory: Path, sources: Sequence[Path]) -> None:
    """A folder of all packages that are in some folders."""
    directory.mkdir(parents=True)
    for source in sources:
        for deb in source.glob("*.deb"):
            shutil.copy(deb, directory)


def tools(name: str) -> int:
    """1 if the host's rpcrdma-tools installs in a release: its Debian is that one or older."""
    return int(int(host.debian()) <= int(kernels.STOCK[name].release))


def in_root(kernel: Kernel, other: str, directory: Path, test: Test) -> Path:
    """
    Install and remove the package in a root file system. Returns its squashfs, where the
    previous version is installed for one kernel.
    """
    lab = directory / "lab"
    shutil.rmtree(directory, ignore_errors=True)
    have = base(kernel.name)
    sources = [have / "kernels", module.debs(), make_previous()]
    modules = int(not toolchain.needed(kernels.STOCK[kernel.name].release))
    if modules:
        sources.append(module.deb_for(kernel).parent)
    repository(lab / "repository", sources)
    shutil.copytree(LAB / "guest", lab / "guest")
    (lab / "variables").write_text(f"KERNEL={kernel.release} OTHER={other} VERSION={version()} "
                                   f"PREVIOUS={PREVIOUS} TOOLS={tools(kernel.name)} "
                                   f"MODULES={modules}\n")
    tar = directory / "root.tar"
    run("mmdebstrap", "--variant=custom", "--skip=check/empty,update,cleanup/apt",
        '--setup-hook=mkdir -p "$1/dev"', f"--setup-hook=tar-in {have}/root.tar /",
        f"--customize-hook=copy-in {lab} /",
        '--customize-hook=chroot "$1" bash /lab/guest/in-root packages',
        f"--customize-hook=copy-out /results {directory}",
        '--customize-hook=rm -r "$1/lab"',
        packages.CODENAMES[kernels.STOCK[kernel.name].release], tar,
        env=root.root_environment(directory), log=directory / "mmdebstrap.log")
    for line in (directory / "results").read_text().splitlines():
        test.line(line)
    image = directory / "root.sqfs"
    root.squash(tar, image)
    return image


def in_guest(kernel: Kernel, image: Path, test: Test) -> None:
    """Boot that root, upgrade the package while a mount is in use, and purge it."""
    guest = Guest(kernel.name, next_boot(f"{kernel.name}-packages"), image=image)
    try:
        seconds = guest.boot()
        test.line(f"# {guest.name} booted in {seconds:.1f} s, log: {guest.console}")
        guest.measure_pace()
        variables: dict[str, str | int] = {
            "MODULE": "ours", "DEVICE": "rxe", "ENDS": 1, "END": 1, "GUEST": kernel.name,
            "VERSION": version(), "PREVIOUS": PREVIOUS, "TOOLS": tools(kernel.name)}
        status = guest.run(variables, "packages", "in_guest",
                           math.ceil(GUEST_SECONDS * guest.pace), test.line)
        if status and not test.bad:
            test.fail(f"in_guest ended with status {status}")
    finally:
        guest.kill()


def part(name: str) -> str:
    """The name of the part for a stock kernel."""
    return f"packages [{name}]"


def with_kernel(name: str, report: Reporter) -> None:
    """Install, upgrade and purge the package with one of Debian's kernels."""
    with report.test(part(name)) as test:
        kernel = kernels.kernel(name)
        other, = (kernels.kernel(one).release for one in of_release(kernels.STOCK[name].release)
                  if one != name)
        directory = LOGS / f"packages-{name}"
        image = in_root(kernel, other, directory, test)
        if not test.bad:
            in_guest(kernel, image, test)
        if not test.bad:
            image.unlink()


# A kernel that takes only signed modules

def signed(report: Reporter) -> None:
    """Make the package of the module for one kernel, and load it where it has to be signed."""
    with report.test("packages [signed]") as test:
        kernel = kernels.kernel(SIGNED)
        packages.require_packages(["ovmf"])
        guest = Guest(kernel.name, next_boot(f"{kernel.name}-signed"), signed=True)
        for name, words in (("unsigned", ()),
                            ("signed", (f"KEY={emulator.KEY}", f"CERT={emulator.CERT}"))):
            deb = module.deb_for(kernel, *words)
            shutil.copy(deb, guest.share / f"{name}.deb")
            check_step(test, f"{name}: lintian -I --pedantic", functools.partial(lintian, deb.parent))
            check_step(test, f"{name}: it needs its kernel alone",
                       functools.partial(only_for, kernel, deb))
        try:
            guest.boot()
            guest.measure_pace()
            status = guest.run({"MODULE": "ours", "DEVICE": "rxe", "ENDS": 1, "END": 1,
                                "GUEST": kernel.name, "VERSION": version()}, "signed", "in_guest",
                               math.ceil(GUEST_SECONDS * guest.pace), test.line)
            if status and not test.bad:
                test.fail(f"in_guest ended with status {status}")
        finally:
            guest.kill()
