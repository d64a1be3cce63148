# SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
"""The part of a check that reads the sources: style, documentation comments, licences, types."""

import os
import re
import sys

from . import kernels, results
from .host import BUILD, LAB, TOP, attempt, run
from .ktap import Reporter
from .steps import C_FOLDERS, MODULE_FOLDERS, check_step, sources

# Kernel headers of the module that this one replaces.
FORBIDDEN = re.compile(r"include <(linux/sunrpc/(rpc_rdma|svc_rdma|svc_rdma_pcl|xprtrdma"
                       r"|rpc_rdma_cid)|trace/events/rpcrdma)\.h")

# A line of the log: its level and its format, in which some things are variable; and its text and
# its level in the administrator's guide
LOG_LINE = re.compile(r'\bpr_(err|warn|notice|info|debug)\w*\(\s*"((?:[^"\\]|\\.)*)\\n"')
CONVERSION = re.compile(r"%(?:p[A-Za-z]*|[a-z]+)")
VARIABLE = "(?:[A-Z0-9: ]*|connected|accepted|closed|not connected|rpcrdma)"
GUIDE_LINE = re.compile(r"^``(.*)`` \((error|warning|notice|info|debug)\)$", re.M)

# A function of the shell, and those of guest/lib.sh that scenarios are meant to define
FUNCTION = re.compile(r"^(\w+)\(\)", re.M)
STEPS = {"server", "client", "client_done", "server_done"}

# Complaints of checkpatch that do not apply: the tools are programs of user
# space, with C's names of types and the compiler's of attributes, trace headers have a layout
# of their own in all of the kernel, the overlay has macros in place of functions, the device's
# compat.h tells kernel versions apart, libFuzzer and ld --wrap name functions, and the KUnit
# shim has KUnit's names.
EXEMPT = {
    "net/sunrpc/xprtrdma/trace.h": {"PARENTHESIS_ALIGNMENT", "OPEN_ENDED_LINE", "COMPLEX_MACRO",
                                    "TRAILING_SEMICOLON", "MACRO_ARG_REUSE",
                                    "MACRO_ARG_UNUSED"},
    "include/": {"CONSTANT_COMPARISON", "COMPLEX_MACRO", "MACRO_ARG_REUSE",
                 "MACRO_ARG_PRECEDENCE", "SPACING"},
    "include/rpcrdma-probes.c": {"CAMELCASE"},      # _Static_assert: a probe uses no macro
    "tools/rpcrdma/": {"PREFER_KERNEL_TYPES", "PREFER_DEFINED_ATTRIBUTE_MACRO",
                       "EMBEDDED_FUNCTION_NAME", "MACRO_ARG_REUSE"},
    "tools/rpcrdma/table.h": {"COMPLEX_MACRO"},     # options of several commands
    "tools/rpcrdma/test/": {"CAMELCASE", "AVOID_EXTERNS"},
    "tools/testing/rpcrdma/device/compat.h": {"LINUX_VERSION_CODE", "CONSTANT_COMPARISON"},
    "tools/testing/rpcrdma/wire/fuzz.c": {"CAMELCASE"},
    "tools/testing/rpcrdma/wire/kunit/test.h": {"MACRO_ARG_REUSE", "MACRO_ARG_PRECEDENCE",
                                                "PREFER_DEFINED_ATTRIBUTE_MACRO"},
}


def checkpatch() -> list[str]:
    """What checkpatch says about all C files, but for EXEMPT."""
    tree, passes = kernels.source(), results.Passes("checkpatch")
    keys = {path: results.hash_of([path], kernels.source_version(), repr(EXEMPT))
            for path in sources(C_FOLDERS, "*.[ch]")}
    files = [path for path, key in keys.items() if key not in passes.known]
    if not files:
        return []
    done = attempt("perl", tree / "scripts/checkpatch.pl", f"--root={tree}", "--strict",
                   "--terse", "--no-summary", "--show-types", "-f", *files, cwd=BUILD)
    lines = [line.replace(f"{TOP}/", "") for line in done.stdout.splitlines()]
    complaints = [line for line in lines if ": " in line and not exempt(line)]
    passes.keep({} if complaints else {keys[path]: True for path in files})
    return complaints


def exempt(line: str) -> bool:
    """Whether a complaint is one of EXEMPT."""
    return any(line.startswith(path) and any(f"{kind}:" in line for kind in kinds)
               for path, kinds in EXEMPT.items())


def kernel_doc() -> list[str]:
    """What kernel-doc says about the module's documentation comments."""
    script = kernels.source() / "scripts/kernel-doc"
    out = run("perl", script, "-none", "-Wall", *sources(MODULE_FOLDERS, "*.[ch]"))
    return [line.replace(f"{TOP}/", "") for line in out.splitlines()
            if "warning:" in line or "error:" in line]


def spdx() -> list[str]:
    """Files that do not name their licence in their first lines; data and patches need not."""
    wanted = sources(("net", "include", "tools", "scripts", "Documentation", ".ci"), "*")
    wanted += [TOP / name for name in ("Makefile", "Kbuild", "Kconfig", "dkms.conf", "NEWS",
                                       "README.md", "COPYING", ".clang-format", ".gitignore")]
    return [f"{path.relative_to(TOP)}: no SPDX line" for path in wanted
            if path.parent.name not in ("corpus", "golden") and path.suffix != ".patch"
            and "SPDX-License-Identifier" not in path.read_text(errors="replace")[:200]]


def project_rules() -> list[str]:
    """Violations of rules that only this project has."""
    complaints = []
    for path in sources(MODULE_FOLDERS, "*.[ch]"):
        name = path.relative_to(TOP)
        for number, line in enumerate(path.read_text().splitlines(), 1):
            if FORBIDDEN.search(line):
                complaints.append(f"{name}:{number}: a header of the kernel's own transport")
            if re.search(r"LINUX_VERSION_CODE|KERNEL_VERSION\(", line):
                complaints.append(f"{name}:{number}: a kernel's number: write a probe in include/")
    library = set(FUNCTION.findall((LAB / "guest/lib.sh").read_text())) - STEPS
    for path in sources(["tools/testing/rpcrdma/scenarios"], "*.sh"):
        complaints += [f"{path.relative_to(TOP)}: {name}() is a function of guest/lib.sh"
                       for name in FUNCTION.findall(path.read_text()) if name in library]
    match = re.search(r'^PACKAGE_VERSION="(.*)"', (TOP / "dkms.conf").read_text(), re.M)
    version = match[1] if match else "no PACKAGE_VERSION"
    for file, start in (("debian/changelog", f"rpcrdma ({version}-"), ("NEWS", f"{version}, ")):
        if not re.match(rf"(#.*\n)?{re.escape(start)}", (TOP / file).read_text()):
            complaints.append(f"dkms.conf: {version} is not the newest version of {file}")
    return complaints


def citations() -> list[str]:
    """Sections that the files cite and an RFC does not have."""
    return run(TOP / "scripts/check-citations").splitlines()


def type_hints() -> list[str]:
    """What mypy says about the Python files."""
    done = attempt(sys.executable, "-m", "mypy", "--config-file", LAB / "mypy.ini",
                   "--cache-dir", BUILD / "mypy", "--no-error-summary",
                   LAB / "rpcrdma_lab", TOP / "scripts/check-citations",
                   *sources(["tools/rpcrdma"], "*.py"), cwd=LAB)
    return done.stdout.splitlines() or ["mypy failed"] * bool(done.returncode)


def log_lines() -> list[str]:
    """Lines of the kernel's log that only the code or only the administrator's guide has."""
    guide = GUIDE_LINE.findall((TOP / "Documentation/admin-guide.rst").read_text())
    complaints, found = [], set()
    for path in sources(MODULE_FOLDERS, "*.[ch]"):
        for level, text in LOG_LINE.findall(path.read_text()):
            words = CONVERSION.split(text.replace('\\"', '"'))
            line = re.compile(VARIABLE.join(map(re.escape, words)))
            same = {entry for entry in guide
                    if line.fullmatch(entry[0]) and entry[1].startswith(level)}
            found |= same
            if not same:
                complaints.append(f"{path.relative_to(TOP)}: admin-guide.rst lacks \"{text}\" "
                                  f"({level})")
    return complaints + [f"admin-guide.rst: nothing logs \"{text}\" ({level})"
                         for text, level in guide if (text, level) not in found]


def running_kernel() -> list[str]:
    """What `make -n uninstall` prints, unless it is about the running kernel."""
    out = run("make", "-C", TOP, "-n", "uninstall")
    return [] if f"/lib/modules/{os.uname().release}/updates" in out else out.splitlines()


def style(report: Reporter) -> None:
    """Check the sources without running them."""
    BUILD.mkdir(exist_ok=True)
    with report.test("style") as test:
        check_step(test, "checkpatch.pl --strict", checkpatch)
        check_step(test, "kernel-doc", kernel_doc)
        check_step(test, "every file names its licence", spdx)
        check_step(test, "the project's own rules", project_rules)
        check_step(test, "every section of an RFC that is cited exists", citations)
        check_step(test, "the administrator's guide has each line of the log, and no other", log_lines)
        check_step(test, "mypy --strict", type_hints)
        check_step(test, "make finds the running kernel by itself", running_kernel)
