# SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
"""The parts of a check that build the module as its users do."""

import os
import re
import shutil

from . import cache, host, kernels, module, style
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


def make_for(release: str, *words: str) -> str:
    """The output of `make` with the headers of a kernel that has nothing but a release."""
    fake = BUILD / "headers"
    shutil.rmtree(fake, ignore_errors=True)
    (fake / "include/generated").mkdir(parents=True)
    (fake / "include/generated/utsrelease.h").write_text(f'#define UTS_RELEASE "{release}"\n')
    (fake / "Makefile").write_text("modules: ; @echo builds\n")
    return attempt("make", "-C", TOP, "--no-print-directory", f"KDIR={fake}", *words).stdout


def dkms_for(release: str, untested: str = "") -> str:
    """What dkms.conf says about a kernel, and which kernels it takes."""
    return attempt("bash", "-euc", '. ./dkms.conf; echo "${BUILD_EXCLUSIVE_KERNEL:-}"', cwd=TOP,
                   env=dict(os.environ, kernelver=release, UNTESTED=untested)).stdout


def takes_tested(test: Test) -> None:
    """`make` and dkms.conf take the kernels that the tests cover."""
    for series in style.tested_by_make():
        release = f"{series}.17-lab"
        test.step("builds" in make_for(release), f"make builds for {release}")
        test.step(not dkms_for(release).strip(), f"dkms.conf builds for {release}")


def refuses_others(test: Test) -> None:
    """`make` and dkms.conf refuse other kernels in one line, which says how to insist."""
    other = "6.2.17-lab"
    refusal = make_for(other).splitlines()
    told = [line for line in refusal if "UNTESTED=1" in line]
    test.step(len(told) == 1 and "builds" not in refusal, "make refuses another kernel")
    test.step("builds" in make_for(other, "UNTESTED=1"), "make UNTESTED=1 builds for it")
    test.step("UNTESTED=1 dkms install" in dkms_for(other), "dkms.conf refuses another kernel")
    test.step(not dkms_for(other, "1").strip(), "UNTESTED=1 makes dkms.conf build for it")


def make_refuses(report: Reporter) -> None:
    """`make` and dkms.conf refuse kernels that the tests do not cover."""
    with report.test("make") as test:
        takes_tested(test)
        refuses_others(test)
        newest = kernels.source_package(kernels.SOURCE_7).removeprefix("linux-source-")
        if newest not in style.tested_by_make():
            test.line(f"# Debian has kernel {newest} now, and the guests take it: if "
                      "`make check ALL=1` passes, add it to the Makefile")
