# SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
"""A running guest: boot it, have it run steps, check its console, end it."""

import contextlib
import dataclasses
import math
import os
import re
import select
import shutil
import socket
import subprocess
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path

from . import (console, device, emulator, extra, host, kernels, module, peer, root, toolchain,
               tools, ynl)
from .console import GuestFailure, NoAnswer
from .host import LAB, TOP, die_with_parent

# Seconds that a boot may take on a quick machine; slower ones get more in proportion.
BOOT_SECONDS = {"um": 60, "qemu": 240}
# What a quick machine takes to boot um, and the most by which a guest counts as slower
QUICK_BOOT = 0.7
SLOWEST = 40

_running: set["subprocess.Popen[bytes]"] = set()
_stopping = threading.Event()


def kill_all() -> None:
    """End all guests at once, whichever threads booted them, and prevent further boots."""
    _stopping.set()
    for process in list(_running):
        process.kill()


@dataclasses.dataclass
class Link:
    """One end of the network between two guests: a socket that the guest inherits."""
    sock: socket.socket

    @staticmethod
    def pair(uml: bool) -> list["Link"]:
        """Both ends."""
        kind = socket.SOCK_SEQPACKET if uml else socket.SOCK_STREAM
        ends = socket.socketpair(socket.AF_UNIX, kind)
        for end in ends:
            for option in (socket.SO_SNDBUF, socket.SO_RCVBUF):
                end.setsockopt(socket.SOL_SOCKET, option, 4 << 20)
        return [Link(end) for end in ends]


class Channel:
    """The runner's end of the serial line to a guest's agent."""

    def __init__(self, sock: socket.socket) -> None:
        self.sock = sock
        self.buffer = b""       # what was received and not yet returned by lines()

    def send(self, line: str) -> None:
        """Send the agent a line."""
        self.sock.sendall(f"{line}\n".encode())

    def lines(self) -> Iterator[str]:
        """The whole lines that were received."""
        while b"\n" in self.buffer:
            line, self.buffer = self.buffer.split(b"\n", 1)
            yield line.decode(errors="replace").rstrip("\r")

    def receive(self, seconds: float) -> bool:
        """Wait for more, for so long at most. Returns False if the guest has ended."""
        if not select.select([self.sock], [], [], seconds)[0]:
            return True
        data = self.sock.recv(1 << 16)
        self.buffer += data
        return bool(data)

    def close(self) -> None:
        """Close the line."""
        self.sock.close()


class Guest:
    """
    One guest. Its folder on the host has the console's log, the folder lab/ that it
    shares with the guest, and in lab/out what the guest leaves there.
    """

    def __init__(self, name: str, directory: Path, under_test: str = "inbox",
                 link: Link | None = None, end: int = 1, plugin: str | None = None,
                 rdma: str = "", image: Path | None = None, memory: int = 0,
                 more: str = "", extras: Iterable[str] = (), signed: bool = False) -> None:
        self.name = name
        self.kernel = kernels.kernel(name)
        self.uml = name.startswith("um")
        self.machine = emulator.MACHINES[self.kernel.arch]
        self.cpus = (1 if plugin else
                     self.kernel.cpus or emulator.CPUS["um" if self.uml else "qemu"])
        self.directory = directory
        self.console = directory / "console.log"
        self.share = directory / "lab"
        self.out = self.share / "out"
        self.module = under_test
        self.link = link
        self.end = end
        self.plugin = plugin            # of QEMU's TCG: its file and arguments
        self.rdma = rdma                # device of a shell; the test device is there if "mem"
        self.image = image              # a root with modules of its own
        self.memory = emulator.memory_of(name, memory).all     # MiB
        self.more = more                # packages that its root has, see root.MORE_PACKAGES
        self.extras = extras            # modules of tests that it has, see extra.py
        self.signed = signed            # QEMU's: it takes only modules that are signed
        self.cpu: int | None = None     # that it is pinned to
        self.boot_seconds = 0.0
        self.start_seconds = 0.0        # what some programs took to start after the boot
        self.pace: float = 1            # how many times slower than a quick machine's um
        self.process: subprocess.Popen[bytes] | None = None
        self.channel: Channel | None = None
        self.checked = 0                # octets of the console that were checked
        self.steady = ""                # device whose connections may not break now
        self._fill()

    def _fill(self) -> None:
        """Make the folder that the guest sees as /lab."""
        shutil.rmtree(self.directory, ignore_errors=True)
        self.out.mkdir(parents=True)
        for part in ("guest", "scenarios"):
            shutil.copytree(LAB / part, self.share / part)
        for planted in (LAB / "selftest").glob("*.sh"):
            shutil.copy(planted, self.share / "scenarios")
        shutil.copy(root.busybox(self.kernel.arch), self.share / "guest/busybox")
        if self.image:
            return
        shutil.copytree(TOP / "Documentation/examples", self.share / "examples")
        shutil.copy(TOP / "debian/60-rpcrdma-dkms.rules", self.share)
        shutil.copy(peer.program(self.kernel.arch), self.share / "peer")
        shutil.copy(tools.program(self.kernel.arch), self.share / "rpcrdma")
        ynl.copy(self.share / "ynl")
        tree = self.share / "lib/modules" / self.kernel.release
        shutil.copytree(self.kernel.modules / "lib/modules" / self.kernel.release, tree,
                        ignore=shutil.ignore_patterns("build", "source"), symlinks=True)
        if self.module != "inbox":
            built = module.build(self.kernel, self.module)
            shutil.copytree(built, self.share, dirs_exist_ok=True)
        if self.more == "programs":     # one of which is the compiler
            module.sync_sources(self.share / "source")
        if self.more == "prometheus":   # which reads what our packages write
            deb, = module.debs().glob("rpcrdma-tools_*.deb")
            shutil.copy(deb, self.share / "rpcrdma-tools.deb")
            if not toolchain.needed(kernels.STOCK[self.kernel.name].release):
                shutil.copy(module.deb_for(self.kernel), self.share / "rpcrdma-modules.deb")
        if self.rdma == device.MEM:
            built = device.build(self.kernel, tests=self.module == "kunit")
            shutil.copytree(built, self.share, dirs_exist_ok=True)
        for name in self.extras:
            (tree / "extra").mkdir(exist_ok=True)
            shutil.copy(extra.build(name, kernels.kernel_of(self.name)), tree / "extra")
        host.run("depmod", "-b", self.share, self.kernel.release)

    # Booting

    def boot(self) -> float:
        """Boot the guest and wait for its agent. Returns the seconds that took."""
        if _stopping.is_set():
            raise GuestFailure("the runner ends")
        self._start()
        start = time.monotonic()
        kind = "um" if self.uml else "qemu"
        match = self._read_until(re.compile(r"# ready (\d+)"),
                                 math.ceil(BOOT_SECONDS[kind] * host.pace()), "boot")
        if int(match[1]) != self.cpus:
            raise GuestFailure(f"boot: {match[1]} CPUs instead of {self.cpus}")
        console.check_log(self.out / "boot.log", whose=self._whose())
        self.boot_seconds = time.monotonic() - start
        self.start_seconds = self._start_programs()
        return self.boot_seconds

    def _start(self) -> None:
        """Start the process that is the guest."""
        ours, theirs = socket.socketpair()
        self.channel = Channel(ours)
        argv = (self._uml(theirs.fileno(), "ttyS0") if self.uml
                else self._qemu(theirs.fileno(), self.machine.channel))
        fds = [theirs.fileno()]
        if self.link:
            fds.append(self.link.sock.fileno())
        if self.uml:
            self.cpu = emulator.take_cpu()
        with open(self.console, "ab") as sink:
            # pylint: disable-next=consider-using-with,subprocess-popen-preexec-fn
            self.process = subprocess.Popen(argv, stdin=subprocess.DEVNULL, stdout=sink,
                                            stderr=subprocess.STDOUT, pass_fds=fds,
                                            preexec_fn=self._prepare, start_new_session=True)
        _running.add(self.process)
        if _stopping.is_set():
            self.process.kill()
        theirs.close()

    def _prepare(self) -> None:
        """What the new process does before it becomes the guest."""
        die_with_parent()
        if self.cpu is not None:
            os.sched_setaffinity(0, {self.cpu})

    def _command_line(self, channel: str, disk: str) -> str:
        """The kernel's command line, see guest/init and guest/agent."""
        share = self.share if self.uml else "9p"
        more = ""
        if self.rdma == device.MEM:
            # In `many` one host has more connections than ib_core has Receives for their CM.
            more = f"{self.kernel.append_mem} ib_core.recv_queue_size=4096"
        if self.module != "kunit":      # where the module has its tests all the same
            more += " kunit.filter_glob=none"
        if self.signed:
            more += " module.sig_enforce=1"
        return (f"quiet panic=-1 lab.disk={disk} lab.share={share} lab.channel={channel} "
                f"lab.module={self.module} lab.device={self.rdma} {self.kernel.append} {more}")

    def _root(self) -> Path:
        """The image of its root file system."""
        return self.image or root.image(kernels.user_space(self.name), self.more)

    def _uml(self, fd: int, channel: str) -> list[str]:
        """The command that runs it in User-Mode Linux."""
        emulator.require_memory_folder(self.memory)
        args = [str(self.kernel.image), f"mem={self.memory}M",
                f"initrd={root.initrd(self.kernel, self.directory)}",
                f"ubd0r={self._root()}",
                "con=null", "con0=fd:0,fd:1",
                # For the file with its process id, which would be below ~/.uml otherwise.
                f"uml_dir={self.directory}",
                "ssl=null", f"ssl0=fd:{fd}", *self._command_line(channel, "/dev/ubda").split()]
        if self.link:
            args.append(f"vec0:transport=fd,fd={self.link.sock.fileno()},depth=256")
        return args

    def _qemu(self, fd: int, channel: str) -> list[str]:
        """The command that runs it in QEMU."""
        args = emulator.qemu(self.kernel, self.directory, self.share, self.memory, self._root(),
                             self.plugin)
        args += ["-append", f"console={self.machine.console} mitigations=off "
                 + self._command_line(channel, "/dev/vda")]
        args += ["-serial", "stdio", "-chardev", f"socket,id=channel,fd={fd}",
                 *self.machine.second]
        if self.signed:
            args += emulator.firmware(self.directory)
        if self.link:
            args += ["-netdev", f"socket,id=net0,fd={self.link.sock.fileno()}",
                     "-device", f"virtio-net,netdev=net0,mac=52:54:00:17:00:{self.end:02}"]
        return args

    # Steps

    def run(self, variables: Mapping[str, str | int], scenario: str, function: str, limit: int,
            on_line: Callable[[str], object]) -> int:
        """
        Have the guest run one function of a scenario; on_line gets each line that it
        prints. Returns its exit status. Raises GuestFailure.
        """
        words = " ".join(f"{key}={value}" for key, value in variables.items())
        self._connected().send(f"run {words} {scenario} {function}")
        match = self._read_until(re.compile(r"# exit (\d+)"), limit, function, on_line)
        # A kernel error is printed before the step that caused it ends.
        self.check_console()
        return int(match[1])

    def measure_pace(self) -> None:
        """
        Measure how slow the guest is at the moment; time limits are scaled by that. The time
        of its boot shows how slow guest and machine are together. The time that programs
        take to start shows what has changed since. The pace is at least half of the boot's,
        because the machine may be idle for a moment only.
        """
        now = self._start_programs()
        boot = self.boot_seconds / QUICK_BOOT
        self.pace = min(max(1, boot * now / self.start_seconds, boot / 2), SLOWEST)

    def _start_programs(self) -> float:
        """Have the agent start some programs. Returns the seconds that took."""
        start = time.monotonic()
        self._connected().send("pace")
        self._read_until(re.compile("# paced"),
                         math.ceil(BOOT_SECONDS["qemu"] * host.pace()), "pace")
        return time.monotonic() - start

    def _connected(self) -> Channel:
        """The channel of a guest that was booted."""
        if not self.channel:
            raise GuestFailure("the guest does not run")
        return self.channel

    def _read_until(self, wanted: re.Pattern[str], limit: int, what: str,
                    on_line: Callable[[str], object] = lambda line: None) -> re.Match[str]:
        """Read lines up to one that matches; on_line gets those before it."""
        deadline = time.monotonic() + limit
        channel = self._connected()
        while True:
            for text in channel.lines():
                match = wanted.match(text)
                if match:
                    return match
                on_line(text)
            try:
                self.check_console()
            except GuestFailure:
                # What the step says about it may be on its way.
                for _ in range(10):
                    if not channel.receive(0.1):
                        break
                    for text in channel.lines():
                        on_line(text)
                raise
            left = deadline - time.monotonic()
            if left <= 0:
                raise NoAnswer(f"{what}: no answer within {limit} s")
            if not channel.receive(min(left, 0.25)):
                assert self.process
                self.process.wait(timeout=5)
                self.check_console()
                raise GuestFailure(f"{what}: the guest ended "
                                   f"(status {self.process.returncode})")

    def cpu_seconds(self) -> tuple[float, float]:
        """
        The CPU time that the guest has used, its process and those that run its programs, and for
        how long each of its CPUs has waited for one of the host.
        """
        ticks = waited = 0
        for stat in Path("/proc").glob("[0-9]*/stat"):
            with contextlib.suppress(OSError):      # it has just ended
                fields = stat.read_text("ascii", "replace").rpartition(")")[2].split()
                if self.process and int(fields[3]) == self.process.pid:     # its session
                    ticks += sum(map(int, fields[11:15]))
                    waited += sum(int(thread.read_text("ascii").split()[1])
                                  for thread in stat.parent.glob("task/*/schedstat"))
        return ticks / os.sysconf("SC_CLK_TCK"), waited / 1e9 / self.cpus

    # The console

    def _whose(self) -> str:
        """Which of two guests this is."""
        return f" of end {self.end}" if self.link else ""

    def check_console(self) -> None:
        """Raise GuestFailure if the kernel has printed an error since the last check."""
        self.checked += console.check_log(self.console, self.checked, self._whose(),
                                          self.steady)

    def last_lines(self) -> list[str]:
        """The end of the console."""
        return console.last_lines(self.console)

    # Ending

    def kill(self) -> None:
        """End the guest, in any state."""
        self._end()
        if self.link:
            self.link.sock.close()

    def restart(self) -> None:
        """End the guest, in any state, and boot it again with the same folder and network."""
        self._end()
        self.boot()

    def _end(self) -> None:
        """End its process, but keep its network."""
        if self.process:
            if self.process.poll() is None:
                self.process.kill()
                self.process.wait()
            _running.discard(self.process)
        if self.cpu is not None:
            emulator.give_cpu(self.cpu)
            self.cpu = None
        if self.channel:
            self.channel.close()
            self.channel = None

    def shell(self) -> None:
        """Boot with the console on this terminal, for a user."""
        if self.uml:
            argv = [arg for arg in self._uml(0, "shell") if not arg.startswith("ssl0=")]
        else:
            argv = emulator.qemu(self.kernel, self.directory, self.share, self.memory,
                                 self._root())
            argv += ["-append", f"console={self.machine.console} mitigations=off "
                     + self._command_line("shell", "/dev/vda"), "-serial", "mon:stdio"]
        subprocess.run(argv, check=False, preexec_fn=die_with_parent)
