# SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
"""
The part of a check that builds against headers of older kernels with interfaces of later ones,
as distributions backport them. A build is right if include/ sees what is there, and the files
that use it compile; else it must be refused with the names of the probes.
"""

import dataclasses
import functools
import re
import shutil
from collections.abc import Iterable, Sequence
from pathlib import Path

from . import host, kernels, module, toolchain
from .host import BUILD, LabError, attempt
from .kernels import Edit, Kernel
from .ktap import Reporter, Test
from .steps import check_step

FOLDER = BUILD / "backports"
NET = "net/sunrpc/xprtrdma"


@dataclasses.dataclass(frozen=True)
class Backport:
    """An interface of another kernel."""
    edits: tuple[Edit, ...]
    objects: tuple[str, ...]            # of net/, which use it
    changes: tuple[str, ...] = ()       # the probes whose results change


SVC = "include/linux/sunrpc/svc.h"
PAGES_OBJECTS = ("server/pages.o", "server/pull.o", "server/request.o", "test/pages_test.o",
                 "test/pull_test.o")
IN_STRUCT = "\tstruct page\t\t*rq_pages[RPCSVC_MAXPAGES + 1];\n"
POINTS_INTO = "\tstruct page *\t\t*rq_respages;\t/* points into rq_pages */\n"
ALLOCATED = "\tunsigned long\t\trq_maxpages;\n\tstruct page *\t\t*rq_pages;\n"
TWO = ALLOCATED + "\tstruct page *\t\t*rq_respages;\t/* Reply buffer pages */\n"
NFREE = "\tunsigned long\t\trq_pages_nfree;\n"
CONTRACT = Edit(SVC, "\nstruct svc_rqst {\n",
                "\n/*\n * For rq_respages, svc_rqst_release_pages() NULLs entries in\n"
                " * [rq_respages, rq_next_page) after each RPC.\n */\nstruct svc_rqst {\n")

# By the kernel whose headers get them
BACKPORTS = {
    "debian-6.12": {
        "DMA operations of 6.19": Backport(
            (Edit("include/linux/dma-map-ops.h", "\tvoid (*unmap_page)(struct device *dev",
                  "\tvoid (*unmap_phys)(struct device *dev"),),
            ("test/resource_test.o",), ("HAVE_UNMAP_PHYS",)),
        "num_pages_contiguous() of 7.0": Backport(
            (Edit("include/linux/mm_inline.h", "#define LINUX_MM_INLINE_H\n",
                  "#define LINUX_MM_INLINE_H\n\n#include <linux/types.h>\n\nstruct page;\n"
                  "size_t num_pages_contiguous(struct page **pages, size_t nr_pages);\n"),),
            ("server/rw.o",), ("HAVE_NUM_PAGES_CONTIGUOUS",)),
        "queue pairs of 7.3": Backport(
            (Edit("include/rdma/ib_verbs.h", "\nstruct ib_qp {\n",
                  "\nstruct ib_qp {\n\tstruct xarray\t\tcomp_cntrs;\n"),),
            ("test/conn_test.o", "test/fake_conn.o"), ("HAVE_COMP_CNTRS",)),
        "an allocated array of pages, of 6.16": Backport(
            (Edit(SVC, IN_STRUCT, ALLOCATED),), PAGES_OBJECTS, ("HAVE_RQ_MAXPAGES",)),
        "two arrays of pages, of 7.3": Backport(
            (Edit(SVC, IN_STRUCT + POINTS_INTO, NFREE + TWO), CONTRACT), PAGES_OBJECTS,
            ("HAVE_ONE_PAGE_ARRAY", "HAVE_TWO_PAGE_ARRAYS", "HAVE_RQ_PAGES_NFREE",
             "HAVE_RQ_MAXPAGES")),
    },
    "debian-6.1": {
        "callers of 6.3": Backport(
            (Edit("include/linux/sunrpc/svc_xprt.h",
                  "\tvoid\t\t(*xpo_secure_port)(struct svc_rqst *rqstp);\n", ""),),
            ("server/xprt.o", "server/request.o"), ("HAVE_XPO_SECURE_PORT",)),
        "tables with a length, of 6.6": Backport(
            (Edit("include/linux/sysctl.h", "\nvoid unregister_sysctl_table(struct",
                  "\n#define register_sysctl(path, table) \\\n"
                  "\tregister_sysctl_sz(path, table, ARRAY_SIZE(table))\n"
                  "struct ctl_table_header *register_sysctl_sz(const char *path,\n"
                  "\tstruct ctl_table *table, size_t table_size);\n"
                  "void unregister_sysctl_table(struct"),),
            ("client/sysctl.o", "server/sysctl.o")),
        "nla_put_uint() of 6.7": Backport(
            (Edit("include/net/netlink.h", "\n/**\n * nla_put_be64 - Add",
                  "\nstatic inline int nla_put_uint(struct sk_buff *skb, int attrtype, u64 value)\n"
                  "{\n\treturn nla_put_64bit(skb, attrtype, sizeof(value), &value, 0);\n}\n"
                  "\n/**\n * nla_put_be64 - Add"),),
            ("status/status.o",), ("HAVE_NLA_PUT_UINT",)),
    },
}

# Several at once
GROUPS = {
    "debian-6.12": (("DMA operations of 6.19", "num_pages_contiguous() of 7.0"),
                    ("an allocated array of pages, of 6.16", "queue pairs of 7.3"),
                    ("DMA operations of 6.19", "num_pages_contiguous() of 7.0",
                     "queue pairs of 7.3", "two arrays of pages, of 7.3")),
    "debian-6.1": (tuple(BACKPORTS["debian-6.1"]),),
}

# What is refused with 6.12's headers, and the probes that the message must name
REFUSED = {
    "rq_pages_nfree with one array": (
        (Edit(SVC, IN_STRUCT, IN_STRUCT + NFREE),), ("HAVE_ONE_PAGE_ARRAY", "HAVE_RQ_PAGES_NFREE")),
    "two arrays without rq_pages_nfree": (
        (Edit(SVC, IN_STRUCT + POINTS_INTO, TWO), CONTRACT), ("HAVE_RQ_PAGES_NFREE",)),
    "two arrays where nothing says which pages are released": (
        (Edit(SVC, IN_STRUCT + POINTS_INTO, NFREE + TWO),), ("HAVE_TWO_PAGE_ARRAYS",)),
    "another queue of backward Calls": (
        (Edit(SVC, "struct lwq\t\tsv_cb_list;", "struct llist_head\tsv_cb_list;"),),
        ("HAVE_BC_LIST", "HAVE_BC_LWQ")),
    "headers with an error": (
        (Edit(SVC, "\nstruct svc_rqst {\n", "\n#include <linux/none.h>\nstruct svc_rqst {\n"),),
        ("the compiler cannot read",)),
}


def own(tree: Path, copy: Path, file: Path) -> Path:
    """
    A file of a copy that has nothing of its own but such files, the folders that they are in,
    and links to all else.
    """
    for folder in reversed(file.parents):
        if (copy / folder).is_symlink():
            (copy / folder).unlink()
        if not (copy / folder).exists():
            (copy / folder).mkdir(parents=True)
            for entry in (tree / folder).iterdir():
                (copy / folder / entry.name).symlink_to(entry)
    if (copy / file).is_symlink():
        (copy / file).unlink()
        shutil.copyfile(tree / file, copy / file)
    return copy / file


def plant(kernel: Kernel, edits: Iterable[Edit]) -> Path:
    """A kernel's headers with edits, in FOLDER. Returns their KDIR."""
    shutil.rmtree(FOLDER, ignore_errors=True)
    headers = kernel.kdir.parent
    makefile = own(kernel.kdir, FOLDER / kernel.kdir.name, Path("Makefile"))
    text = makefile.read_text()
    found = re.search(rf"^include {re.escape(str(headers))}/(\S+)/Makefile$", text, re.M)
    if not found:
        raise LabError(f"{kernel.kdir}/Makefile includes no other of {headers}")
    makefile.write_text(text.replace(f"{headers}/", f"{FOLDER}/"))
    own(headers / found[1], FOLDER / found[1], Path("Makefile"))
    for edit in edits:
        own(headers / found[1], FOLDER / found[1], Path(edit.file))
        edit.apply(FOLDER / found[1])
    return FOLDER / kernel.kdir.name


def compile_for(kernel: Kernel, edits: Iterable[Edit],
                objects: Iterable[str]) -> tuple[int, str, set[str]]:
    """
    Compile some objects against a kernel's headers with edits. Returns make's status and
    output, and the probes that have succeeded.
    """
    kdir, directory = plant(kernel, edits), FOLDER / "module"
    module.sync_sources(directory)
    done = attempt(*toolchain.inside(kernel), "make", "-C", kdir, f"M={directory}",
                   f"-j{host.jobs()}", "W=1", "KCFLAGS=-Werror",
                   "CONFIG_SUNRPC_XPRT_RDMA_KUNIT_TEST=y",
                   *(f"{NET}/{name}" for name in sorted(set(objects))))
    header = directory / NET / "rpcrdma-probes.h"
    text = header.read_text() if header.exists() else ""
    return done.returncode, done.stdout, set(re.findall(r"^#define (\w+)$", text, re.M))


def complaints_of(kernel: Kernel, before: set[str], backports: Sequence[Backport]) -> list[str]:
    """What is wrong with a build against headers that have backports."""
    status, output, have = compile_for(
        kernel, [edit for backport in backports for edit in backport.edits],
        [name for backport in backports for name in backport.objects])
    if status:
        return output.splitlines()[-30:]
    wanted = before ^ {probe for backport in backports for probe in backport.changes}
    return [f"{probe}: {'not ' * (probe not in have)}found" for probe in sorted(have ^ wanted)]


def build_with(test: Test, name: str) -> None:
    """Build with what is backported to one kernel, one at a time and in groups."""
    kernel = kernels.kernel(name)
    status, output, before = compile_for(kernel, (), ("address.o",))
    test.step(not status and bool(before), f"what {kernel.release} has")
    if status:
        test.line(output)
    for what, backport in BACKPORTS[name].items():
        check_step(test, f"{what}, in {kernel.release}",
                   functools.partial(complaints_of, kernel, before, [backport]))
    for group in GROUPS[name]:
        check_step(test, f"{'; '.join(group)}: together in {kernel.release}",
                   functools.partial(complaints_of, kernel, before,
                                     [BACKPORTS[name][what] for what in group]))


def refuse(test: Test) -> None:
    """Build nothing if a probe cannot tell what the kernel does."""
    kernel = kernels.kernel("debian-6.12")
    for what, (edits, wanted) in REFUSED.items():
        status, output, _ = compile_for(kernel, edits, ("address.o",))
        said = [line for line in output.splitlines() if line.startswith("rpcrdma: ")]
        test.step(status != 0 and len(said) == 1 and all(text in said[0] for text in wanted),
                  f"refuses {what}")


def build(report: Reporter) -> None:
    """Build against headers with backports."""
    with report.test("build [backports]") as test:
        for name in BACKPORTS:
            build_with(test, name)
        refuse(test)
