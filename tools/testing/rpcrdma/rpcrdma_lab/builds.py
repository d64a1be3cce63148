# SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
"""The parts of a check that build the module as its users do."""

import dataclasses
import os
import re
import shutil
from collections.abc import Sequence
from pathlib import Path

from . import cache, host, kernels, module
from .host import BUILD, TOP, attempt, run
from .kernels import Kernel
from .ktap import Reporter, Test
from .steps import check_step


def warnings_of(kernel: Kernel) -> list[str]:
    """Warnings that do not fail the build, such as those of modpost and objtool."""
    module.build(kernel, "ours")
    log = module.build_log(kernel, "ours").read_text()
    return [line for line in log.splitlines() if re.search(r"\bwarning:", line, re.I)]


def sparse(kernel: Kernel) -> list[str]:
    """What sparse says about our files, without what it says about kernel headers."""
    directory = module.directory_of(kernel.name)
    out = module.make(kernel, "C=2", "CF=-D__CHECK_ENDIAN__")
    ours = rf"(net/sunrpc/xprtrdma|{directory.name}/include)/\S+:\d+:\d+: (warning|error)"
    # A header is checked for each file that includes it.
    return list(dict.fromkeys(line for line in out.splitlines() if re.search(ours, line)))


def build_for_stock(name: str, report: Reporter) -> None:
    """Build the module for one of Debian's kernels."""
    with report.test(f"build [{name}]") as test:
        kernel = kernels.kernel(name)
        check_step(test, f"against the headers of {kernel.release}, W=1",
                   lambda: warnings_of(kernel))
        check_step(test, "sparse, with endianness", lambda: sparse(kernel))


def build_in_tree(name: str, report: Reporter) -> None:
    """Build our transport in a kernel's own tree, into the kernel and as a module."""
    kernel = kernels.kernel(name)
    part = "build [in-tree]" if name == "um" else f"build [in-tree {name}]"
    with report.test(part) as test:
        check_step(test, "CONFIG_SUNRPC_XPRT_RDMA=y in a kernel tree",
                   lambda: overlay_and_build(kernel, "y"))
        if name != "um":
            check_step(test, "CONFIG_SUNRPC_XPRT_RDMA=m in a kernel tree, W=1",
                       lambda: overlay_and_build(kernel, "m"))


def overlay_and_build(kernel: Kernel, setting: str) -> list[str]:
    """
    Put our transport into a copy of a guest's source, and continue the guest's build in the
    copy. The copy has hard links, and only what differs is compiled. Returns the warnings
    of our files.
    """
    what = f"intree-{kernel.name}"
    tree = host.CACHE / what
    out = tree / kernel.kdir.name
    with cache.locked(what):
        if not out.exists():
            shutil.rmtree(tree, ignore_errors=True)
            run("cp", "-al", kernel.kdir.parent, tree)
            for build in tree.glob("*/lab.config"):
                shutil.rmtree(build.parent)
            fresh = tree / "fresh"
            run("cp", "-a", kernel.kdir, fresh)
            fresh.rename(out)
        run(tree / "scripts/config", "--file", out / ".config",
            {"y": "--enable", "m": "--module"}[setting], "SUNRPC_XPRT_RDMA")
        # A compiler prints a warning only when it compiles: compile all of our files.
        shutil.rmtree(out / "net/sunrpc/xprtrdma", ignore_errors=True)
        run(TOP / "scripts/overlay-kernel", tree)
        words = ["make", "-C", str(tree), "ARCH=um", f"O={out.name}", f"-j{host.jobs()}",
                 *kernels.compiler("um")]
        run(*words, "olddefconfig")
        output = ""
        if setting == "m":      # the kernel's own files have warnings with W=1
            output = run(*words, "W=1", "net/sunrpc/xprtrdma/", log=BUILD / f"{what}-w1.log")
        output += run(*words, {"y": "linux", "m": "modules"}[setting],
                      log=BUILD / f"{what}-{setting}.log")
    if f"CONFIG_SUNRPC_XPRT_RDMA={setting}" not in (out / ".config").read_text():
        return [f"CONFIG_SUNRPC_XPRT_RDMA={setting} was dropped by Kconfig"]
    return [line for line in output.splitlines()
            if "warning:" in line.lower() and "net/sunrpc/xprtrdma" in line]


# Releases of kernels that the tests cover, besides those of the guests
COVERED = ("6.1.0-41-amd64", "6.12.57+deb12-amd64", "6.12.57+deb13-amd64",
           "6.12.115+deb13.1-amd64", "7.3.4+deb13-amd64", "6.12.117", "7.3.4",
           "6.12.117-rpcrdma-lab")

# Releases of others, many with a number that the tests cover
NOT_COVERED = ("6.12.0-124.8.1.el10_1.x86_64", "6.12.0-160000.5-default",
               "6.1.155-176.282.amzn2023.x86_64", "6.12.33-production+truenas",
               "6.12.25+rpt-rpi-v8", "6.12.57+deb13-rt-amd64", "6.12.57+deb12-rt-amd64",
               "6.1.0-41-rt-amd64", "6.12.57+deb13-cloud-amd64", "6.1.0-41-cloud-amd64",
               "6.12.57+deb13-arm64", "6.12.57+deb14-amd64", "6.12.12+bpo-amd64",
               "6.12.57-amd64", "6.12.117-mine", "6.12.0-rc7", "6.12.117+", "6.12", "6.1.155",
               "6.2.17", "6.120.1", "16.12.3", "6012.3", "7.3.0-rc1")

# What a vendor's RDMA stack has, each enough to recognise it, for the kernel {}
VENDORS = ("lib/modules/{}/updates/dkms/ib_core.ko", "lib/modules/{}/updates/dkms/ib_core.ko.xz",
           "lib/modules/{}/updates/kernel/drivers/infiniband/core/ib_core.ko.gz",
           "lib/modules/{}/extra/mlnx-ofa_kernel/drivers/infiniband/core/ib_core.ko.zst",
           "lib/modules/{}/weak-updates/mlnx-ofa_kernel/drivers/infiniband/core/ib_core.ko",
           "usr/src/ofa_kernel/x86_64/{}/Module.symvers")

# What does not make the kernel's own RDMA stack another
HARMLESS = ("lib/modules/{}/kernel/drivers/infiniband/core/ib_core.ko.xz",
            "lib/modules/{}/updates/dkms/rpcrdma.ko", "lib/modules/{}/updates/dkms/irdma.ko",
            "lib/modules/{}-other/updates/dkms/ib_core.ko",
            "usr/src/ofa_kernel/x86_64/{}-other/Module.symvers")


@dataclasses.dataclass(frozen=True)
class Planted:
    """A root folder with nothing but headers of a kernel, which have nothing but a release."""
    release: str
    root: Path = BUILD / "headers"

    def plant(self, *files: str) -> "Planted":
        """Make it anew, with some empty files."""
        shutil.rmtree(self.root, ignore_errors=True)
        headers = self.root / "usr/src/linux-headers"
        (headers / "include/generated").mkdir(parents=True)
        (headers / "include/generated/utsrelease.h").write_text(
            f'#define UTS_RELEASE "{self.release}"\n')
        (headers / "Makefile").write_text("modules: ; @echo builds\n")
        for file in files:
            path = self.root / file.format(self.release)
            path.parent.mkdir(parents=True, exist_ok=True)
            path.touch()
        return self

    def make(self, *words: str) -> list[str]:
        """What `make` says; the line "builds" if it builds."""
        return attempt("make", "-C", TOP, "--no-print-directory", f"INSTALL_MOD_PATH={self.root}",
                       f"KDIR={self.root}/usr/src/linux-headers", *words).stdout.splitlines()

    def dkms(self, untested: str = "") -> list[str]:
        """What dkms.conf says; the line "builds" if dkms builds then."""
        script = """. ./dkms.conf
                    regex=${BUILD_EXCLUSIVE_KERNEL:-}
                    [[ -n $regex && ! $kernelver =~ $regex ]] || echo builds"""
        return attempt("bash", "-euc", script, cwd=TOP,
                       env=dict(os.environ, kernelver=self.release, UNTESTED=untested,
                                install_tree=f"{self.root}/lib/modules",
                                source_tree=f"{self.root}/usr/src")).stdout.splitlines()


def takes(test: Test, what: str, said: Sequence[str]) -> None:
    """A step: the module is built, and nothing is said."""
    test.step("builds" in said and not tells(said), what)


def refuses(test: Test, what: str, said: Sequence[str], *wanted: str) -> None:
    """A step: it is not built, and one line says some things."""
    lines = tells(said)
    test.step("builds" not in said and len(lines) == 1 and all(text in lines[0] for text in wanted),
              what)


def tells(said: Sequence[str]) -> list[str]:
    """The lines for people."""
    return [line for line in said if re.match(r"make: [^*]|rpcrdma: ", line)]


def by_release(test: Test) -> None:
    """`make` and dkms.conf take the kernels that the tests cover, and say how to insist."""
    guests = [kernels.stock_packages(name)[0].removeprefix("linux-image-")
              for name in kernels.TESTED if name != "debian-13-7"]
    for release in [*guests, *COVERED]:
        kernel = Planted(release).plant()
        takes(test, f"make builds for {release}", kernel.make())
        takes(test, f"dkms.conf builds for {release}", kernel.dkms())
    for release in NOT_COVERED:
        kernel = Planted(release).plant()
        refuses(test, f"make refuses {release}", kernel.make(), release, "UNTESTED=1")
        refuses(test, f"dkms.conf refuses {release}", kernel.dkms(), release,
                "UNTESTED=1 dkms install")
        takes(test, "make UNTESTED=1 builds for it", kernel.make("UNTESTED=1"))
        takes(test, "UNTESTED=1 makes dkms.conf build for it", kernel.dkms("1"))


def by_stack(test: Test) -> None:
    """They refuse a kernel with a vendor's RDMA stack."""
    release = COVERED[0]
    for file in VENDORS:
        kernel = Planted(release).plant(file)
        found = f"{kernel.root}/{file.format(release)}".removesuffix("/Module.symvers")
        refuses(test, f"make refuses a kernel with {file}", kernel.make(), found)
        refuses(test, "so it does with UNTESTED=1", kernel.make("UNTESTED=1"), found)
        refuses(test, "dkms.conf refuses it", kernel.dkms(), found)
        refuses(test, "so it does with UNTESTED=1", kernel.dkms("1"), found)
    kernel = Planted(release).plant(*HARMLESS)
    takes(test, "make builds where only other kernels have one", kernel.make())
    takes(test, "so does dkms.conf", kernel.dkms())


def make_refuses(report: Reporter) -> None:
    """`make` and dkms.conf refuse kernels that the tests do not cover."""
    with report.test("make") as test:
        by_release(test)
        by_stack(test)
        newest = kernels.stock_packages("debian-13-7")[0].removeprefix("linux-image-")
        if "builds" not in Planted(newest).plant().make():
            test.line(f"# Debian has kernel {newest} now, and the guests take it: if "
                      "`make check ALL=1` passes, add it to the Makefile")
