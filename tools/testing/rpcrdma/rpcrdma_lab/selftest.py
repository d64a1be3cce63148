# SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
"""The lab's own tests: faults are planted in a guest, and have to be reported."""

import os
import re
import signal
import subprocess
import sys
import time

from . import guest, ktap, peer, results, scenario
from .host import LAB


def planted(test):
    """
    Each scenario in selftest/ must fail in the way that its "expect:" lines say
    and in no other, and the console must be printed, with the path of the log.
    """
    for plant in scenario.load_all("selftest"):
        expect = [*re.findall(r"^# expect: +(.*)$", plant.path.read_text(), re.M),
                  r"# last lines of /.*/console\.log:"]
        lines = []
        report = ktap.Report(out=lines.append)
        scenario.run_jobs(scenario.jobs([plant]), scenario.Run(report, results.Times()),
                          lines.append)
        failed = not report.close() and report.failed == 1
        seen = all(any(re.search(wanted, line) for line in lines) for wanted in expect)
        details = [] if failed and seen else lines
        for line in details:
            test.line(f"# {line}")
        test.step(failed and seen, f"{plant.name}: {plant.shows}")


# What kernels say of each kind of trouble, one that no planted fault makes them
# say; and what they say in good health.
SPLATS = """
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
"""
HEALTH = """
    rpcrdma: loading out-of-tree module taints kernel.
    rpcrdma: 10.17.0.1:20049: closed: -104
    DEBUG: nothing
    kmemleak: Kernel memory leak detector initialized (mem pool available: 31016)
    # rpcrdma_wire_golden: pass:4 fail:0 skip:0 total:4
"""


def told_apart(test):
    """Kernels are slow to make say some of it: the lines alone have to do."""
    for text, bad in ((SPLATS, True), (HEALTH, False)):
        wrong = [line.strip() for line in text.strip().splitlines()
                 if bool(guest.BAD.search(f"[   17.170000] {line.strip()}")) != bad]
        for line in wrong:
            test.line(f"# {line}")
        test.step(not wrong, f"a console's lines that are {'bad' if bad else 'good'}")


def processes_of(mark, word=b""):
    """Processes that have a runner's mark in their environment, a word in their command line."""
    found = []
    for entry in os.listdir("/proc"):
        if entry.isdigit():
            try:
                with open(f"/proc/{entry}/environ", "rb") as environ, \
                     open(f"/proc/{entry}/cmdline", "rb") as command:
                    if (f"RPCRDMA_LAB_TEST={mark}".encode() in environ.read()
                            and word in command.read()):
                        found.append(int(entry))
            except OSError:
                pass
    return found


def wait_until(condition, seconds):
    deadline = time.monotonic() + seconds
    while not condition():
        if time.monotonic() > deadline:
            return False
        time.sleep(0.1)
    return True


# What a runner is in the middle of, how a process of that is known, and the runner:
# of a make in one of its lanes.
GUEST = ("guest", b"lab.share=",
         [str(LAB / "lab"), "run", "--folder", "selftest", "--module", "inbox", "hang"])
MAKE = ("make", b"sleep\x0060",
        [sys.executable, "-c", "from rpcrdma_lab import __main__ as lab, check, host; "
         "check.PARTS = {'make': check.Part(lambda report: "
         "host.run('make', '-f', '/dev/null', '--eval', 'all: ; sleep 60'), 60)}; "
         "lab.main()", "check", "make"])


def dies_with_runner(test, middle, number):
    """A runner gets a signal; nothing of it may be left."""
    what, word, argv = middle
    mark = f"{os.getpid()}-{number}"
    with subprocess.Popen(argv, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
                          stderr=subprocess.DEVNULL,
                          env=dict(os.environ, PYTHONPATH=str(LAB),
                                   RPCRDMA_LAB_TEST=mark)) as runner:
        begun = wait_until(lambda: processes_of(mark, word), 60)
        runner.send_signal(number)
        # Sooner than the guest would be given up for its silence
        gone = wait_until(lambda: runner.poll() is not None and not processes_of(mark), 5)
        runner.kill()
    for pid in processes_of(mark):
        os.kill(pid, signal.SIGKILL)
    test.step(begun and gone, f"a runner ended by {signal.Signals(number).name} "
              f"takes its {what} along")


def run(report):
    peer.program()      # those that are started below find it made
    with report.test("the lab reports planted faults") as test:
        planted(test)
        told_apart(test)
    with report.test("guests die with their runner") as test:
        for number in (signal.SIGINT, signal.SIGTERM, signal.SIGKILL):
            dies_with_runner(test, GUEST, number)
            dies_with_runner(test, MAKE, number)
