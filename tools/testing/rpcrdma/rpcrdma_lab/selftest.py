# SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
"""
The lab's own tests: the lab must report faults that are planted in a guest, leave no process
when it is killed, and compare correctly what the benchmark measures.
"""

import dataclasses
import io
import itertools
import os
import random
import re
import signal
import subprocess
import sys
import tarfile
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

from . import benchtest, cache, host, kernels, packages, peer, results, root, scenario, session
from .console import KERNEL_ERROR, GuestFailure, check_log, is_bad
from .host import LAB, LabError
from .ktap import Report, Reporter, Test


def planted_faults(test: Test) -> None:
    """
    Each scenario in selftest/ must fail, with one failure, as its "expect:" lines say. The
    console must be printed as well, with the path of its log.
    """
    for plant in scenario.load_all("selftest"):
        expect = [*re.findall(r"^# expect: +(.*)$", plant.path.read_text(), re.M),
                  r"# last lines of /.*/console\.log:"]
        lines: list[str] = []
        report = Report(out=lines.append)
        session.run_jobs(scenario.jobs([plant]), session.Run(report, results.Times()),
                         lines.append)
        failed = not report.close() and report.failed == 1
        seen = all(any(re.search(wanted, line) for line in lines) for wanted in expect)
        details = [] if failed and seen else lines
        for line in details:
            test.line(f"# {line}")
        test.step(failed and seen, f"{plant.name}: {plant.shows}")


# What kernels print about errors that no planted fault causes, and what they print when
# there is no error
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


def console_lines(test: Test) -> None:
    """
    Lines on a console are recognised as errors or not. The errors are not caused here,
    because that would take long for most of them.
    """
    for text, bad in ((ERROR_LINES, True), (NORMAL_LINES, False)):
        wrong = [line.strip() for line in text.strip().splitlines()
                 if bool(KERNEL_ERROR.search(f"[   17.170000] {line.strip()}")) != bad]
        for line in wrong:
            test.line(f"# {line}")
        test.step(not wrong, f"lines on a console that are {'errors' if bad else 'no errors'}")


# What the module prints of a connection, after the devices over which it fails a scenario
# that declares no faults
CONNECTION_LINES = """
    rxe      work request failed: local QP operation error (vendor error 0x0)
    rxe      closed: -5
    rxe siw  work request failed: remote access error (vendor error 0x0)
    rxe siw  closed: -110
    rxe siw  the queue pair does not stop
             closed: -104
             closed: -ESHUTDOWN
"""


def broken_connections(test: Test) -> None:
    """A connection that breaks is a failure, but not the end that siw gives to one."""
    wrong = []
    for line in CONNECTION_LINES.strip("\n").splitlines():
        printed = f"[   17.170000] rpcrdma: 10.17.0.2:43479: {line[13:]}"
        bad = [device for device in ("", "rxe", "siw") if is_bad(printed, device)]
        if bad != line[:13].split():
            wrong.append(line)
    for line in wrong:
        test.line(f"# {line}")
    test.step(not wrong, "lines about connections that are errors over a device")


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


def race_is_found(*functions: tuple[str, str], cut: int = 0) -> tuple[bool, int]:
    """
    Whether reports of races are a failure, and how many octets of them are left to be
    checked. The last octets are not printed yet.
    """
    text = "".join(RACE.format(line=66 * "=", one=one, other=other) for one, other in functions)
    with tempfile.TemporaryDirectory() as scratch:
        log = Path(scratch) / "console.log"
        log.write_text(text[:len(text) - cut])
        try:
            return False, len(text) - cut - check_log(log)
        except GuestFailure:
            return True, 0


def races(test: Test) -> None:
    """A data race is a failure if the module under test has a part in it."""
    ours, others = ("xprt_connect", "conn_event [rpcrdma]"), ("mem_poll_cq [rdma_mem]", "kfree")
    test.step(race_is_found(others, ours)[0], "a data race of the module")
    test.step(race_is_found(others, others) == (False, 0), "data races of others are no failure")
    found, left = race_is_found(others, ours, cut=80)
    test.step(not found and left > 0, "a report that is not complete is looked at again")


# Names of packages, of which the lab must take one
PACKAGE_NAMES = """
    linux-image-6.12.99+deb13-amd64
    linux-image-7.9.12+deb13-amd64
    linux-image-7.10.2+deb13-amd64
    linux-image-7.10.2+deb13-cloud-amd64
    linux-image-8.0.1+deb13-amd64
"""


def newest_kernel(test: Test) -> None:
    """The newest kernel is found by its number, and only kernels of its own kind count."""
    apt = packages.Apt("13")
    apt.answers = {"apt-cache pkgnames linux-image-": PACKAGE_NAMES}
    found = apt.newest(kernels.STOCK["debian-13-7"].image)
    test.step(found == "linux-image-7.10.2+deb13-amd64", f"the newest kernel 7.x is {found}")


def kinds_of_entries(test: Test) -> None:
    """An entry of the cache that is removed for a newer one belongs to the same guest."""
    wrong = [f"{one} and {other}" for one, other in itertools.permutations(kernels.NAMES, 2)
             if re.match(rf"{re.escape(kernels.kind(one))}-\d", kernels.kind(other))]
    for line in wrong:
        test.line(f"# {line}")
    test.step(not wrong, "guests have entries of their own in the cache")


def options_change(test: Test) -> None:
    """A fragment of Kconfig options changes what those before it say."""
    lines = kernels.fragment_text(kernels.FLAVOURS["um-7"]).splitlines()
    test.step("# CONFIG_UML_NET is not set" in lines and "CONFIG_UML_NET=y" not in lines,
              "a fragment takes options back")


def mounts_stay(test: Test) -> None:
    """An entry of the cache below which something is mounted is not removed."""
    mounts = cache.MOUNTS
    with tempfile.TemporaryDirectory() as scratch:
        entry = Path(scratch) / "root-1"
        (entry / "dev/shm").mkdir(parents=True)
        cache.MOUNTS = Path(scratch) / "mountinfo"
        cache.MOUNTS.write_text(f"30 20 0:22 / {entry}/dev/shm rw - tmpfs tmpfs rw\n",
                                encoding="ascii")
        try:
            cache.remove(entry)
            refused = False
        except LabError as error:
            refused = f"umount {entry}/dev/shm" in str(error)
        test.step(refused and (entry / "dev/shm").exists(),
                  "an entry of the cache with mounts is not removed")
        cache.MOUNTS.write_text(f"30 20 0:22 / {scratch}/root-12 rw - tmpfs tmpfs rw\n",
                                encoding="ascii")
        cache.remove(entry)
        test.step(not entry.exists(), "one without mounts is")
    cache.MOUNTS = mounts


def squashfs_is_whole(test: Test) -> None:
    """
    What is read from a squashfs is what was in the tar file, also where many files begin
    alike and end differently.
    """
    numbers = random.Random(1)
    ends = " ".join(str(numbers.randrange(9999)) for _ in range(400_000)).encode()
    files = {}
    for number in range(400):
        start = numbers.randrange(len(ends) - 100_000)
        files[str(number)] = (bytes([number // 2 % 256]) * 131072 +
                              ends[start:start + numbers.randrange(60_000, 100_000)])
    with tempfile.TemporaryDirectory() as scratch:
        folder = Path(scratch)
        with tarfile.open(folder / "tar", "w") as tar:
            for name, content in files.items():
                info = tarfile.TarInfo(name)
                info.size = len(content)
                tar.addfile(info, io.BytesIO(content))
        root.squash(folder / "tar", folder / "squashfs")
        host.attempt("unsquashfs", "-quiet", "-no-progress", "-dest", folder / "out",
                     folder / "squashfs")
        wrong = [name for name, content in files.items()
                 if not (folder / "out" / name).exists()
                 or (folder / "out" / name).read_bytes() != content]
    if wrong:
        test.line(f"# {len(wrong)} of {len(files)} files are missing or wrong")
    test.step(not wrong, "a squashfs has what was in its tar file")


def places_of_pairs(test: Test) -> None:
    """Places with two different guests, each with a kernel of its own."""
    pair = dataclasses.replace(
        scenario.load_all()[0], name="pair", guests=("um-7+um/ours+inbox",), also=("um+um-7",),
        devices=("rxe",), ends=(1, 2), modules=("ours+inbox", "inbox+ours"), skips=())
    daily = scenario.jobs([pair], modules=("ours",))
    more = scenario.jobs([pair], modules=("ours",), everywhere=True)
    test.step([job.name for job in daily] == ["pair [um-7+um 2 guests rxe ours+inbox]"],
              "a pair runs in its place, with two guests and its modules")
    test.step(len(more) == 3 and scenario.guest_at(more[0].guest, 2) == "um-7",
              "with ALL=1 it runs in more places")
    test.step(not scenario.jobs([pair], ["um"], ("ours",), everywhere=True),
              "it does not run if one of its guests is not wanted")
    test.step(not scenario.is_place("um+debian-6.1") and not scenario.is_place("um-8"),
              "guests that no network joins are no place")


def places_of_device(test: Test) -> None:
    """The test device runs where it is named, in one guest, in boots of its own."""
    both = dataclasses.replace(
        scenario.load_all()[0], name="both", guests=("um",), also=("um/mem", "um-debug"),
        devices=("rxe", "mem"), ends=(1, 2), modules=("ours",), skips=())
    alone = dataclasses.replace(both, guests=(), devices=("mem",))
    found = {job.name: job for job in scenario.jobs([both], modules=("ours",), everywhere=True)}
    test.step(sorted(found) == ["both [um 2 guests rxe ours]", "both [um mem ours]",
                                "both [um rxe ours]", "both [um-debug 2 guests rxe ours]",
                                "both [um-debug rxe ours]"],
              "the test device runs in one guest, and beside another only where it is named")
    test.step(found["both [um mem ours]"].session != found["both [um rxe ours]"].session,
              "it has boots of its own")
    test.step([job.name for job in scenario.jobs([alone], modules=("ours",), everywhere=True)]
              == ["both [um mem ours]", "both [um-debug mem ours]"],
              "a scenario over it alone runs wherever it says")
    test.step(not scenario.jobs([alone], modules=("ours",)), "and with ALL=1 only if it says so")


def processes_of(mark: str, word: bytes = b"") -> list[int]:
    """Processes with a runner's mark in their environment and a word in their command line."""
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


def wait_until(condition: Callable[[], object], seconds: float) -> bool:
    """Wait for a condition. Returns whether it was met in time."""
    deadline = time.monotonic() + seconds
    while not condition():
        if time.monotonic() > deadline:
            return False
        time.sleep(0.1)
    return True


class Runner(NamedTuple):
    """A run that a test kills while it waits for a certain process."""
    what: str           # name of that process in the test's output
    word: bytes         # part of that process's command line
    argv: list[str]     # command of the run
    console: Path | None = None     # it is waiting once a certain word is in here


# In its first milliseconds User-Mode Linux tries what ptrace can do, with a child that stays
# for ever, stopped, if it is killed then. So it is killed when it does what "hang" does.
GUEST = Runner("guest", b"lab.share=",
               [str(LAB / "lab"), "run", "--folder", "selftest", "--module", "inbox", "hang"],
               host.BUILD / "logs-test/um-inbox-1/console.log")
MAKE = Runner("make", b"sleep\x0060",
              [sys.executable, "-c", "from rpcrdma_lab import __main__ as lab, check, host; "
               "check.PARTS = {'make': check.Part(lambda report: "
               "host.run('make', '-f', '/dev/null', '--eval', 'all: ; sleep 60'), 60)}; "
               "lab.main()", "check", "make"])


def waits(killed: Runner, mark: str) -> bool:
    """Whether the process that a runner shall take with it is there and waits."""
    return bool(processes_of(mark, killed.word)) and (
        killed.console is None or "SOFTLOCKUP" in killed.console.read_text(errors="replace"))


def dies_with_runner(test: Test, killed: Runner, number: int) -> None:
    """Send a signal to a runner; no process of it may be left."""
    mark = f"{os.getpid()}-{number}"
    with subprocess.Popen(killed.argv, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
                          stderr=subprocess.DEVNULL,
                          env=dict(os.environ, PYTHONPATH=str(LAB),
                                   RPCRDMA_LAB_TEST=mark)) as runner:
        begun = wait_until(lambda: waits(killed, mark), 60)
        runner.send_signal(number)
        # Before the runner would kill the guest because it does not answer
        gone = wait_until(lambda: runner.poll() is not None and not processes_of(mark), 5)
        runner.kill()
    for pid in processes_of(mark):
        os.kill(pid, signal.SIGKILL)
    test.step(begun and gone, f"{signal.Signals(number).name} ends a runner and its {killed.what}")


def run(report: Reporter) -> None:
    """All tests of the lab itself."""
    peer.program()      # so that the runs started below need not build it
    with report.test("the lab reports planted faults") as test:
        planted_faults(test)
        console_lines(test)
        broken_connections(test)
        races(test)
    with report.test("the benchmark compares variants") as test:
        benchtest.run(test)
    with report.test("the lab plans kernels and places") as test:
        newest_kernel(test)
        kinds_of_entries(test)
        options_change(test)
        mounts_stay(test)
        squashfs_is_whole(test)
        places_of_pairs(test)
        places_of_device(test)
    with report.test("guests die with their runner") as test:
        for number in (signal.SIGINT, signal.SIGTERM, signal.SIGKILL):
            dies_with_runner(test, GUEST, number)
            dies_with_runner(test, MAKE, number)
