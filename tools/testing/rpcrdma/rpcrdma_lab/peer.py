# SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
"""The scripted peer. It is built on the host, whose Debian is that of the guests or older."""

from pathlib import Path

from .host import BUILD, LAB, once, run


@once
def program() -> Path:
    """Build the scripted peer and return its path."""
    out = BUILD / "peer"
    run("make", "-C", LAB / "peer", f"O={out}")
    return out / "peer"
