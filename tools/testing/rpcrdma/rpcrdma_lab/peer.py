# SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
"""The scripted peer. It is built on the host."""

from pathlib import Path

from . import toolchain
from .host import BUILD, LAB, once, run


@once
def program(arch: str) -> Path:
    """Build the scripted peer for guests of an architecture, and return its path."""
    out = BUILD / f"peer-{arch}"
    run("make", "-C", LAB / "peer", f"O={out}", *toolchain.words(arch))
    return out / "peer"
