# SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
"""What the parts of a check have in common."""

import itertools
from collections.abc import Callable, Iterable
from pathlib import Path

from .host import LEFT_BEHIND, TOP, LabError
from .ktap import Test

# Where the module's files are, and where all C files are
MODULE_FOLDERS = ("net", "include")
C_FOLDERS = ("net", "include", "tools")

# C files that a build makes beside the sources
GENERATED = (".mod.c", "rpcrdma-probes.h")


def sources(folders: Iterable[str], *patterns: str) -> list[Path]:
    """The project's own files below some of its folders, without what a build makes there."""
    found: set[Path] = set()
    for folder, pattern in itertools.product(folders, patterns):
        found.update(path for path in (TOP / folder).rglob(pattern) if path.is_file())
    return sorted(path for path in found
                  if not LEFT_BEHIND & set(path.relative_to(TOP).parts)
                  and not path.name.endswith((*GENERATED, ".o", ".ko", ".cmd", ".mod", ".order")))


def check_step(test: Test, what: str, function: Callable[[], Iterable[str]]) -> None:
    """A step of a test. It fails if the function raises LabError or returns lines."""
    try:
        complaints = list(function())
    except LabError as error:
        complaints = str(error).splitlines()
    for line in complaints:
        test.line(f"# {line}")
    test.step(not complaints, what)
