# SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
"""The scripted peer: a program for the guests, which have the same Debian as the host."""

import functools
import threading

from .host import BUILD, LAB, run

_building = threading.Lock()


def program():
    """Built once, whoever of the lanes asks first."""
    with _building:
        return build()


@functools.lru_cache(maxsize=None)
def build():
    out = BUILD / "peer"
    run("make", "-C", LAB / "peer", f"O={out}")
    return out / "peer"
