# SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
"""The parts of a check that build the module as its users do."""

import re
import shutil

from . import cache, host, kernels, module
from .host import BUILD, TOP, run
from .kernels import Kernel
from .ktap import Reporter
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


def build_in_tree(report: Reporter) -> None:
    """Build our transport into a kernel, in the kernel's own tree."""
    with report.test("build [in-tree]") as test:
        check_step(test, "CONFIG_SUNRPC_XPRT_RDMA=y in a kernel tree", overlay_and_build)


def overlay_and_build() -> list[str]:
    """
    Put our transport into a copy of um's source, and continue um's build in the copy. The
    copy has hard links, and only what differs is compiled. Returns the warnings of our files.
    """
    kernel = kernels.kernel("um")
    tree = host.CACHE / "intree"
    out = tree / kernel.kdir.name
    with cache.locked("intree"):
        if not out.exists():
            shutil.rmtree(tree, ignore_errors=True)
            run("cp", "-al", kernel.kdir.parent, tree)
            for build in tree.glob("*/lab.config"):
                shutil.rmtree(build.parent)
            fresh = tree / "fresh"
            run("cp", "-a", kernel.kdir, fresh)
            run(tree / "scripts/config", "--file", fresh / ".config",
                "--enable", "SUNRPC_XPRT_RDMA")
            fresh.rename(out)
        # A compiler prints a warning only when it compiles: compile all of our files.
        shutil.rmtree(out / "net/sunrpc/xprtrdma", ignore_errors=True)
        run(TOP / "scripts/overlay-kernel", tree)
        words = ["make", "-C", str(tree), "ARCH=um", f"O={out.name}", *kernels.compiler()]
        run(*words, "olddefconfig")
        output = run(*words, f"-j{host.jobs()}", "linux", log=BUILD / "intree.log")
    if "CONFIG_SUNRPC_XPRT_RDMA=y" not in (out / ".config").read_text():
        return ["CONFIG_SUNRPC_XPRT_RDMA=y was dropped by Kconfig"]
    return [line for line in output.splitlines()
            if "warning:" in line and "net/sunrpc/xprtrdma" in line]
