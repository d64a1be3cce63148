# SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
"""Faults are reported: those that are planted in a guest, and lines on its console."""

import re
from pathlib import Path

import pytest

from .. import results, scenario, session
from ..console import KERNEL_ERROR, GuestFailure, check_log, is_bad
from ..ktap import Report


PLANTS = scenario.load_all("selftest")


@pytest.mark.parametrize("plant", PLANTS, ids=[plant.name for plant in PLANTS])
def test_planted_fault(plant: scenario.Scenario) -> None:
    """
    Each scenario in selftest/ must fail, with one failure, as its "expect:" lines say. The
    console must be printed as well, with the path of its log.
    """
    lines: list[str] = []
    report = Report(out=lines.append)
    session.run_jobs(scenario.jobs([plant]), session.Run(report, results.Times()), lines.append)
    printed = "\n".join(lines)
    assert not report.close() and report.failed == 1, printed
    for wanted in (*re.findall(r"^# expect: +(.*)$", plant.path.read_text(), re.M),
                   r"# last lines of /.*/console\.log:"):
        assert any(re.search(wanted, line) for line in lines), f"{wanted} is not in:\n{printed}"


# What kernels print about errors that no planted fault causes, because most of them would take
# long, and what they print when there is no error
ERROR_LINES = """
    BUG: KASAN: slab-use-after-free in dd+0x17/0x40
    WARNING: possible circular locking dependency detected
    WARNING: possible recursive locking detected
    WARNING: inconsistent lock state
    WARNING: suspicious RCU usage
    WARNING: held lock freed!
    WARNING: lock held when returning to user space!
    INFO: task mount.nfs:170 blocked for more than 60 seconds.
    rcu: INFO: rcu_preempt self-detected stall on CPU
    watchdog: BUG: soft lockup - CPU#0 stuck for 26s! [dd:170]
    BUG: scheduling while atomic: dd/170/0x00000002
    BUG: sleeping function called from invalid context at mm/slab.h:17
    BUG: Invalid wait context
    refcount_t: underflow; use-after-free.
    kmemleak: 17 new suspected memory leaks (see /sys/kernel/debug/kmemleak)
    kmemleak: Memory pool empty, consider increasing CONFIG_DEBUG_KMEMLEAK_MEM_POOL_SIZE
    kmemleak: Kernel memory leak detector disabled
    list_del corruption. prev->next should be ffff88800, but was 0
    ODEBUG: free active (active state 0) object type: timer_list
    UBSAN: array-index-out-of-bounds in a.c:17:17
    int3: 0000 [#1] PREEMPT SMP NOPTI
    traps: PANIC: double fault, error_code: 0x0
    general protection fault, probably for non-canonical address 0xdead
    Unable to handle kernel paging request at virtual address 0000dead
    Out of memory: Killed process 170 (dd)
    dd[170]: segfault at 0 ip 0 sp 0 error 4
    unregister_netdevice: waiting for lab0 to become free. Usage count = 2
    rdma_mem: violation: send-touched: mem0: QP 17: a Send of 170 octets, address 0x17000
    DMA-API: rdma_mem rdma_mem.0: device driver frees DMA memory with different size
    DMA-API: debugging out of memory - disabling
"""
NORMAL_LINES = """
    rpcrdma: loading out-of-tree module taints kernel.
    rpcrdma: 10.17.0.1:20049: closed: -104
    DEBUG: nothing
    kmemleak: Kernel memory leak detector initialized (mem pool available: 31016)
    # rpcrdma_wire_golden: pass:4 fail:0 skip:0 total:4
    DMA-API: preallocated 65536 debug entries
    DMA-API: debugging enabled by kernel config
    DMA-API: dma_debug_entry pool grown to 131072 (200%)
    BUG: KCSAN: data-race in tick_do_update_jiffies64 / tick_nohz_handler
"""


@pytest.mark.parametrize("line", ERROR_LINES.strip().splitlines(), ids=str.strip)
def test_line_is_an_error(line: str) -> None:
    assert KERNEL_ERROR.search(f"[   17.170000] {line.strip()}")


@pytest.mark.parametrize("line", NORMAL_LINES.strip().splitlines(), ids=str.strip)
def test_line_is_no_error(line: str) -> None:
    assert not KERNEL_ERROR.search(f"[   17.170000] {line.strip()}")


@pytest.mark.parametrize("text, devices", [
    ("work request failed: local QP operation error (vendor error 0x0)", "rxe"),
    ("closed: -5", "rxe"),
    ("work request failed: remote access error (vendor error 0x0)", "rxe siw"),
    ("closed: -110", "rxe siw"),
    ("the queue pair does not stop", "rxe siw"),
    ("closed: -104", ""),
    ("closed: -ESHUTDOWN", "")])
def test_broken_connection(text: str, devices: str) -> None:
    """
    What the module prints of a connection, and over which devices it fails a scenario that
    declares no faults: not the end that siw gives to one.
    """
    line = f"[   17.170000] rpcrdma: 10.17.0.2:43479: {text}"
    assert [device for device in ("", "rxe", "siw") if is_bad(line, device)] == devices.split()


# What KCSAN prints, with the function at the top of each stack
RACE = """[   17.17] {line}
[   17.17] BUG: KCSAN: data-race in {one} / {other}
[   17.17]
[   17.17] write to 0xffff888017 of 8 bytes by task 170 on cpu 0:
[   17.17]  {one}+0x17/0x40
[   17.17]  worker_thread+0x17/0x40
[   17.17] read to 0xffff888017 of 8 bytes by task 171 on cpu 1:
[   17.17]  {other}+0x17/0x40
[   17.17]
[   17.17] Reported by Kernel Concurrency Sanitizer on:
[   17.17] {line}
"""
OURS, OTHERS = ("xprt_connect", "conn_event [rpcrdma]"), ("mem_poll_cq [rdma_mem]", "kfree")


def race_log(folder: Path, *functions: tuple[str, str], cut: int = 0) -> Path:
    """A console with reports of races. The last octets are not printed yet."""
    text = "".join(RACE.format(line=66 * "=", one=one, other=other) for one, other in functions)
    log = folder / "console.log"
    log.write_text(text[:len(text) - cut])
    return log


def test_race_of_the_module_is_a_failure(tmp_path: Path) -> None:
    with pytest.raises(GuestFailure):
        check_log(race_log(tmp_path, OTHERS, OURS))


def test_races_of_others_are_no_failure(tmp_path: Path) -> None:
    log = race_log(tmp_path, OTHERS, OTHERS)
    assert check_log(log) == log.stat().st_size


def test_incomplete_race_is_looked_at_again(tmp_path: Path) -> None:
    log = race_log(tmp_path, OTHERS, OURS, cut=80)
    assert check_log(log) < log.stat().st_size
