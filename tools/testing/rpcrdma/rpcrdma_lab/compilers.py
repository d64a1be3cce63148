# SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
"""
Parts of a check that compile the module as no guest does, or only read it: for 32 bits, by clang,
with W=2, and by the kernel's coccicheck. Nothing is linked, since these kernels are only prepared.
"""

import re
import shutil
from pathlib import Path

from . import cache, host, kernels, module, packages
from .host import run
from .kernels import Flavour, Kernel
from .ktap import Reporter
from .steps import check_step

FLAVOURS = {
    "i386": Flavour("i386", "", ("modules_prepare",), ("common", "i386")),
    "clang": Flavour("x86_64", "", ("modules_prepare",), ("common",), words=("CC=clang",)),
}

# Warnings that the unit tests may have with W=2: of initializers that leave members out, and of
# the copy of a file that they test, beside their own variables.
OF_TESTS = re.compile(r"/test/.*\[-W(missing-field-initializers|shadow)\]$")

# Scripts of coccicheck that need an OCaml compiler, that propose what wire/ has not in user space,
# or that only propose other words.
LEFT_OUT = ("check_bq27xxx_data", "badzero", "minmax", "string_choices")


def prepared(name: str) -> Kernel:
    """A kernel that is configured, and not built."""
    flavour, tree = FLAVOURS[name], kernels.source()
    words = (f"ARCH={flavour.arch}", *flavour.words)

    def prepare(directory: Path) -> None:
        kernels.configure(tree, directory, flavour)
        run("make", "-C", tree, *words, f"O={directory.name}", f"-j{host.jobs()}",
            *flavour.targets)

    key = kernels.short_hash(kernels.fragment_text(flavour), packages.installed()["clang"])
    out = cache.cached(f"{name}{host.built_on()}", f"{kernels.source_version()}-{key}", prepare,
                       parent=tree)
    return Kernel(name, out, "", out, out, (*words, "KBUILD_MODPOST_WARN=1"))


def warnings(name: str, *words: str) -> list[str]:
    """Compile all files, the tests, too. Returns the warnings of our files."""
    kernel, directory = prepared(name), module.directory_of(name)
    # A compiler prints a warning only when it compiles.
    shutil.rmtree(directory, ignore_errors=True)
    module.sync_sources(directory)
    ours = re.compile(rf"{directory.name}/(net|include)/\S+ warning: ")
    lines = module.make(kernel, *words, variant="kunit").splitlines()
    return [line for line in lines if ours.search(line) and not OF_TESTS.search(line)]


def divisions(name: str) -> list[str]:
    """Functions that a division of 64 bits calls, and that kernels of 32 bits do not have."""
    objects = module.directory_of(name) / "net/sunrpc/xprtrdma/rpcrdma.o"
    return re.findall(r"__u?(?:div|mod)di3", run("nm", "-u", objects))


def coccicheck(name: str) -> list[str]:
    """What the kernel's semantic patches report about the files that were compiled."""
    packages.require_packages(["coccinelle"])
    kernel, directory = prepared(name), module.directory_of(name)
    output = ""
    for script in sorted((kernels.source() / "scripts/coccinelle").rglob("*.cocci")):
        if script.stem not in LEFT_OUT:
            output += run("make", "-s", "-C", kernel.kdir, *kernel.make_args, "MODE=report",
                          f"M={directory}/net", f"COCCI={script}", f"J={host.jobs()}",
                          "coccicheck")
    return [line for line in output.splitlines() if re.match(r"\S+\.[ch]:\d+:", line)]


def i386(report: Reporter) -> None:
    """Compile for 32 bits, and look for more."""
    with report.test("build [i386]") as test:
        check_step(test, "for 32 bits: no warning with W=12",
                   lambda: warnings("i386", "W=12", "KCFLAGS="))
        check_step(test, "no division that 32 bits lack", lambda: divisions("i386"))
        check_step(test, "coccicheck", lambda: coccicheck("i386"))


def clang(report: Reporter) -> None:
    """Compile by clang."""
    with report.test("build [clang]") as test:
        check_step(test, "by clang, W=1", lambda: warnings("clang"))
