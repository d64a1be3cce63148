# SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
"""The scripted peer: a program for the guests, which have the same Debian as the host."""

from .host import BUILD, LAB, once, run


@once
def program():
    out = BUILD / "peer"
    run("make", "-C", LAB / "peer", f"O={out}")
    return out / "peer"
