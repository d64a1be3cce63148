# SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
"""A guest's console: what a kernel prints when something is wrong with it."""

import re
import time
from collections.abc import Sequence
from pathlib import Path

REPORT_LINES = 60       # printed with a failure; the log has all of the console

KERNEL_ERROR = re.compile(
    r"\bBUG\b(?!: KCSAN: )|\bWARNING: (?!.*\bGuest personality\b)|\bOops\b|KASAN:|UBSAN:|ODEBUG:"
    r"|: [0-9a-f]{4} \[#\d+\]|PANIC: double fault"
    r"|general protection fault|Kernel panic|Call Trace:|Unable to handle"
    r"|possible (?:circular|recursive) locking|inconsistent lock state|suspicious RCU"
    r"|held lock freed|lock held when returning|invalid wait context"
    r"|INFO: (?:task|rcu|trying to register)|soft lockup|hung[_ ]task"
    r"|scheduling while atomic|sleeping function called"
    r"|refcount_t:|list_(?:add|del) corruption"
    r"|kmemleak: (?:[1-9]\d* new|Memory pool empty|Kernel memory leak detector disabled)"
    r"|Segmentation fault|segfault at|Out of memory:"
    r"|unregister_netdevice: waiting for"
    # The test device found that a transport breaks a rule of verbs.
    r"|rdma_mem: violation: "
    r"|DMA-API: (?!preallocated |debugging enabled|dma_debug_entry pool grown)")

# What our module prints when a connection breaks that neither end has closed. Unit tests
# break theirs, and some kernels have no names of errors.
BROKEN_CONNECTION = re.compile(r"rpcrdma: (?!KUnit: ).*(?:work request failed|does not stop"
                               r"|: closed: (?!-(?:ESHUTDOWN|108|ECONNRESET|104)\b))")

# What siw makes of a Send that is wholly sent when the peer closes (siw_qp_sq_proc_tx())
CLOSED_OVER_SIW = re.compile(r"rpcrdma: .*: (?:work request failed: local QP operation error"
                             r"|closed: -(?:EIO|5)\b)")

# A data race. The rest of the kernel has many that are none of our business, so a report
# counts only if one of its two stacks has a function of the module under test.
RACE = re.compile(rb"BUG: KCSAN: ")
END_OF_RACE = re.compile(rb"={60,}\r?\n")
OUR_FUNCTION = re.compile(rb"\[rpcrdma\]")


class GuestFailure(Exception):
    """A guest failed: its kernel printed an error, it did not answer in time, or it ended."""

    def __init__(self, what: str, printed: Sequence[str] = ()) -> None:
        super().__init__(what)
        self.printed = printed      # the lines after the one that is in the message


class NoAnswer(GuestFailure):
    """A guest did not answer in time."""


def whole_lines(path: Path, start: int) -> bytes:
    """A log from an offset up to the last newline: the line after it is still being printed."""
    with open(path, "rb") as stream:
        stream.seek(start)
        octets = stream.read()
    return octets[:octets.rfind(b"\n") + 1]


def is_bad(line: str, steady: str) -> bool:
    """
    Whether a line is a kernel error or, if connections over a device shall be steady, says
    that one broke.
    """
    return bool(KERNEL_ERROR.search(line) or
                (steady and BROKEN_CONNECTION.search(line) and
                 not (steady == "siw" and CLOSED_OVER_SIW.search(line))))


def check_log(path: Path, start: int = 0, whose: str = "", steady: str = "") -> int:
    """
    Raise GuestFailure if a log has a line from an offset on that is_bad(). Returns how many
    octets were checked: a report of a race that is still being printed is left for the next
    call.
    """
    octets = whole_lines(path, start)
    unfinished = len(octets)
    for match in re.finditer(rb".*\n", octets):
        if RACE.search(match[0]):
            end = END_OF_RACE.search(octets, match.end())
            if not end:
                unfinished = min(unfinished, match.start())
            bad = bool(end and OUR_FUNCTION.search(octets, match.start(), end.start()))
        else:
            bad = is_bad(match[0].decode(errors="replace"), steady)
        if bad:
            time.sleep(1)       # for the kernel to print the rest
            report = whole_lines(path, start + match.start())
            lines = report.decode(errors="replace").splitlines()
            cut = ["..."] if len(lines) > REPORT_LINES else []
            raise GuestFailure(f"{path.name}{whose}: {lines[0].strip()}",
                               lines[1:REPORT_LINES] + cut)
    return unfinished


def last_lines(path: Path, count: int = 40) -> list[str]:
    """The end of a log."""
    lines = path.read_text(errors="replace").splitlines()
    return [line.rstrip() for line in lines[-count:]]
