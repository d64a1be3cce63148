# SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
"""
`make soak`: verified I/O of many kinds in all NFS versions, for hours, while faults happen at
random.

A run consists of periods. At the end of each all faults and mounts end, the module is unloaded,
and memory must be what it was after the first one, the warm-up, which has each kind of fault once.
Each further period has a seed of its own, one more than that of the period before. The sequence
of its faults depends on commit, guest, device and this seed alone; which workers and flavours a
mount has depends on the seed. So the seed of the period that failed repeats it. guest/soak.sh has
the faults and what is checked.
"""

import collections
import contextlib
import dataclasses
import itertools
import math
import random
import re
import time
from collections.abc import Iterator, Mapping, Sequence
from typing import TextIO

from . import chart, check, console, emulator, host, kernels
from .console import GuestFailure
from .device import MEM
from .guest import Guest
from .host import BUILD, say

PACKAGES = chart.PACKAGES
GUEST, DEVICE, HOURS = "um-7-smp", MEM, 2.0
PERIOD = 900            # seconds, without its end
STEP_SECONDS = 1200     # most steps have bounds of their own, which are shorter
SAMPLE_SECONDS = 60

VERSIONS = ("3", "4.0", "4.1", "4.2")
FLAVOURS = ("sys", "krb5", "krb5i", "krb5p")
WORKERS = ("fio", "fsx", "tree", "locks", "renames")    # of guest/soak-worker

# What the module logs when mounts come and go, when any connection breaks, and when it is loaded
ALWAYS = (r": (?:accepted|connected) on |: version \d: inline |taints kernel"
          r"|: closed: -(?:ESHUTDOWN|108|ECONNRESET|104)\b")
BREAKS = r": closed: |: not connected: |: work request failed: "
MODULE_LINE = re.compile(r"\brpcrdma: ")

# One operation of the test device, as its file "fault" takes it
OPERATIONS = """
    send/1/qp-fatal send-inv/2/qp-fatal recv/5/qp-fatal write/1/qp-fatal send/3/retry-exc-err
    send-inv/1/fatal-err reg/1/loc-qp-op-err read/1/rem-access-err write/2/rem-op-err
    recv/1/loc-len-err local-inv/1/general-err send/1/late/3 send-inv/1/late/3 recv/1/late/3
    reg/1/late/3 read/1/late/3 write/1/late/3 post-send/3/nomem post-recv/3/nomem datagram/1/lose
    datagram/2/lose datagram/1/duplicate
""".split()
SETTINGS = """
    svc_rdma/max_requests=4 svc_rdma/max_requests=64 svc_rdma/max_bc_requests=2
    svc_rdma/max_req_size=1024 svc_rdma/max_req_size=65536 svc_rdma/max_outbound_read_requests=1
    svc_rdma/private_data=0 svc_rdma/private_data=1 svc_rdma/remote_invalidation=0
    svc_rdma/remote_invalidation=1 svc_rdma/version=1 svc_rdma/version=2 rdma_version=1
    rdma_version=2 rdma_max_inline_read=1024 rdma_max_inline_read=65536
    rdma_max_inline_write=1024 rdma_max_inline_write=65536 rdma_private_data=0
    rdma_private_data=1 rdma_remote_invalidation=0 rdma_remote_invalidation=1
""".split()

# gnuplot's commands
CHART = """
set terminal svg size 900,400 fixed background "white" font "sans-serif,12"
set output "{drawn}"
set encoding utf8
set xlabel "minutes"
set ylabel "memory in use, MiB"
set y2label "longest operation of each minute, s"
set yrange [0:]
set y2range [0:]
set ytics nomirror
set y2tics
set key outside top center horizontal
$samples << END
{data}
END
plot $samples using 1:2 with lines lc rgb "#0072b2" title "memory", \\
     $samples using 1:3 axes x1y2 with points pt 7 ps 0.5 lc rgb "#d55e00" title "operation"
"""


@dataclasses.dataclass(frozen=True)
class Kind:
    """A kind of fault: inject_KIND of guest/soak.sh."""
    arguments: Sequence[str]        # one of them
    explains: str = BREAKS          # lines of the module's log
    device: str = ""                # the only one that it needs
    injected: bool = False          # by the kernel's fault injection, which debug kernels have


KINDS: Mapping[str, Kind] = {
    # Wrong by so many seconds for a moment: less than the 300 that Kerberos allows
    "clock": Kind(("200", "-200"), ALWAYS),
    "container": Kind(VERSIONS, ALWAYS, device=MEM),
    "device": Kind(("1", "0", "5")),            # removed for so many seconds
    "disconnect": Kind(("",)),
    "dropping": Kind(("client", "server"), injected=True),
    "kill": Kind([str(number) for number in range(2 * len(VERSIONS))], ALWAYS),
    "link": Kind(("1", "3", "8"), device=MEM),  # down for so many seconds
    "memory": Kind(("failslab", "fail_page_alloc"), injected=True),
    "mount": Kind(VERSIONS, ALWAYS),
    "namespace": Kind(VERSIONS, ALWAYS),
    "operation": Kind(OPERATIONS, device=MEM),
    "server": Kind(("1", "0", "5")),            # stopped for so many seconds
    "setting": Kind(SETTINGS, rf"{BREAKS}|: no answer in version "),
}


@dataclasses.dataclass(frozen=True)
class Fault:
    """One fault."""
    kind: str
    argument: str
    settle: bool        # each worker has to advance before it
    pause: float        # seconds after it


def kinds_in(guest: str, device: str) -> list[str]:
    """The kinds of faults that a guest and a device can have."""
    return [name for name, kind in KINDS.items() if kind.device in ("", device)
            and (guest.endswith("-debug") or not kind.injected)]


def warm_up(kinds: Sequence[str]) -> Iterator[Fault]:
    """Each kind once."""
    for name in kinds:
        yield Fault(name, KINDS[name].arguments[0], True, 1)


def faults(seed: int, kinds: Sequence[str]) -> Iterator[Fault]:
    """
    Faults without an end, each kind as often as others. A server that has stopped forgets its
    locks: nothing may keep clients from it while it waits for them.
    """
    numbers = random.Random(seed)
    last = ""
    while True:
        for name in numbers.sample(kinds, len(kinds)):
            settle = numbers.random() < 0.7 or "server" in (name, last)
            yield Fault(name, numbers.choice(KINDS[name].arguments), settle,
                        round(numbers.uniform(0, 8), 1))
            last = name


def mounts(seed: int) -> str:
    """
    MOUNTS of guest/soak.sh. Each worker and each flavour has a mount at least. That of NFSv4.0 has
    neither locks nor data: see known-failures.rst.
    """
    numbers = random.Random(seed)
    order = iter(2 * numbers.sample(WORKERS, len(WORKERS)))
    text = []
    for version, flavour in zip(VERSIONS, numbers.sample(FLAVOURS, len(FLAVOURS))):
        workers = "renames" if version == "4.0" else f"{next(order)}/{next(order)}"
        text.append(f"{version}/{numbers.choice((1, 1, 2))}/{flavour}/{workers}")
    return ",".join(text)


def unexplained(line: str, kinds: Sequence[str]) -> bool:
    """Whether the module has logged a line that no fault of these kinds explains."""
    wanted = "|".join([ALWAYS, *(KINDS[name].explains for name in kinds)])
    return bool(MODULE_LINE.search(line)) and not re.search(wanted, line)


class Soak:
    """A run in one guest."""

    def __init__(self, guest: Guest, device: str, seed: int, log: TextIO) -> None:
        self.guest, self.device, self.log = guest, device, log
        self.kinds = kinds_in(guest.name, device)
        self.seed = seed                                # of this period
        self.begun = self.sampled = time.monotonic()
        self.count = collections.Counter[str]()         # faults of each kind
        self.recent: list[str] = []                     # kinds of this period's faults
        self.operations = self.before = 0               # of all periods, of those before this one
        self.samples: list[str] = []                    # data of the chart
        self.printed: list[str] = []                    # by the present step
        self.explained = 0                              # octets of the console

    def on_line(self, line: str) -> None:
        """What a step prints."""
        self.printed.append(line)
        self.log.write(f"{time.monotonic() - self.begun:8.1f} {line}\n")
        self.log.flush()

    def step(self, function: str, scenario: str = "soak", **more: str) -> None:
        """Have the guest do a step. Raises GuestFailure unless all is well after it."""
        variables: dict[str, str | int] = {
            "MODULE": check.MODULE, "DEVICE": self.device, "ENDS": 1, "END": 1, "FAULTS": 1,
            "GUEST": kernels.kernel_of(self.guest.name), **more}
        self.printed = []
        if self.guest.run(variables, scenario, function, STEP_SECONDS, self.on_line):
            good = itertools.takewhile(lambda line: not line.startswith("not ok"), self.printed)
            raise GuestFailure(f"{function} failed", self.printed[len(list(good)):])
        octets = console.whole_lines(self.guest.console, self.explained)
        self.explained += len(octets)
        for line in octets.decode(errors="replace").splitlines():
            if unexplained(line, self.recent):
                raise GuestFailure(f"no fault explains this line of the log: {line.strip()}")

    def sample(self) -> None:
        """Print how it is going."""
        self.step("sample")
        operations, longest, kib = next(
            line.split()[2:] for line in self.printed if line.startswith("# sample "))
        self.sampled = time.monotonic()
        self.operations = self.before + int(operations)
        passed, mib = self.sampled - self.begun, int(kib) >> 10
        self.samples.append(f"{passed / 60:.2f} {mib} {longest}")
        kinds = ", ".join(f"{kind} {number}" for kind, number in sorted(self.count.items()))
        say(f"# {host.clock(passed)}, seed {self.seed}: {self.operations} operations, the longest "
            f"now {longest} s, {mib} MiB in use, faults: {kinds or 'none'}")

    def period(self, plan: Iterator[Fault], seconds: float) -> None:
        """Load, and faults for so long, or as long as there are some; then all has to be well."""
        self.recent, self.before = [], self.operations
        self.step("start", MOUNTS=mounts(self.seed))
        end = time.monotonic() + seconds
        for fault in plan:
            if time.monotonic() > end:
                break
            if fault.settle:
                self.step("settle")
            self.count[fault.kind] += 1
            self.recent.append(fault.kind)
            self.step("inject", KIND=fault.kind, ARG=fault.argument)
            time.sleep(fault.pause)
            if time.monotonic() - self.sampled >= SAMPLE_SECONDS:
                self.sample()
        self.sample()
        self.step("stop")

    def run(self, hours: float) -> None:
        """All periods. Raises GuestFailure."""
        self.guest.boot()
        self.step("up")
        say("# warm-up: each kind of fault once")
        self.period(warm_up(self.kinds), 3600)
        for self.seed, left in enumerate(range(math.ceil(hours * 3600), 0, -PERIOD), self.seed):
            say(f"# a period: seed {self.seed}, {mounts(self.seed)}")
            self.period(faults(self.seed, self.kinds), min(left, PERIOD))
        self.step("down")
        if self.guest.name.endswith("-debug"):
            self.step("leaks", "leaks")
        say(f"# passed: {sum(self.count.values())} faults, {self.operations} operations")

    def failed(self, failure: GuestFailure) -> None:
        """Say what has failed and how to repeat it; keep what may tell why."""
        say("\n".join([f"# failed: {failure}", *failure.printed]))
        say(f"# again: make soak SEED={self.seed} HOURS={PERIOD / 3600} "
            f"GUEST={self.guest.name} DEVICE={self.device}")
        say(f"# what is left of it: {self.log.name}, {self.guest.directory}")
        with contextlib.suppress(GuestFailure, OSError):
            self.guest.checked = self.guest.console.stat().st_size
            self.guest.run({}, "soak", "leave", 60, self.on_line)

    def draw(self) -> None:
        """The chart of memory, and of the longest operation of each minute."""
        if self.samples:
            commands, drawn = BUILD / "soak.gnuplot", BUILD / "soak.svg"
            commands.write_text(CHART.format(drawn=drawn, data="\n".join(self.samples)))
            host.run("gnuplot", commands)
            say(f"# the chart is in {drawn}")


def soak(hours: float, seed: int | None, name: str, device: str) -> bool:
    """Run it. Returns whether all went well."""
    if name.startswith("um"):
        emulator.require_memory_folder()
    seed = random.randrange(100000) if seed is None else seed
    say(f"# seed {seed}: {name} over {device}, {hours:g} hours after the warm-up")
    guest = Guest(name, BUILD / "logs/soak", check.MODULE, rdma=device)
    with open(BUILD / "soak.log", "w", encoding="utf-8") as log:
        run = Soak(guest, device, seed, log)
        try:
            run.run(hours)
            return True
        except GuestFailure as failure:
            run.failed(failure)
            return False
        finally:
            guest.kill()
            run.draw()
