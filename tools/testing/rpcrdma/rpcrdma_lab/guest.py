# SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
"""A running guest: boot it, have it run steps, watch its console, end it."""

import collections
import dataclasses
import math
import os
import pathlib
import re
import select
import shutil
import socket
import subprocess
import tempfile
import threading
import time

from . import host, kernels, module, peer
from .host import LAB, follow_parent

MEMORY_MIB = 3072
CPUS = {"um": 1, "qemu": 2}
# Of a quick machine; others get more by as much as they are slower.
BOOT_SECONDS = {"um": 60, "qemu": 240}
# What a quick machine takes to boot um; and how much slower a guest may count as
QUICK_BOOT = 0.7
SLOWEST = 40
SPLAT_LINES = 60        # with a failure; the whole console is in its log

# What a kernel prints when something is wrong with it.
BAD = re.compile(
    r"\bBUG\b|\bWARNING: (?!.*\bGuest personality\b)|\bOops\b|KASAN:|UBSAN:|ODEBUG:"
    r"|: [0-9a-f]{4} \[#\d+\]|PANIC: double fault"
    r"|general protection fault|Kernel panic|Call Trace:|Unable to handle"
    r"|possible (?:circular|recursive) locking|inconsistent lock state|suspicious RCU"
    r"|held lock freed|lock held when returning|invalid wait context"
    r"|INFO: (?:task|rcu|trying to register)|soft lockup|hung[_ ]task"
    r"|scheduling while atomic|sleeping function called"
    r"|refcount_t:|list_(?:add|del) corruption"
    r"|kmemleak: (?:[1-9]\d* new|Memory pool empty|Kernel memory leak detector disabled)"
    r"|Segmentation fault|segfault at|Out of memory:"
    r"|unregister_netdevice: waiting for")


_running = set()
_stopping = threading.Event()

_pinned = collections.Counter()     # how many User-Mode Linux guests each CPU has
_pinned_lock = threading.Lock()     # protects it


def take_cpu():
    """
    User-Mode Linux is two processes that take turns, kernel and program. On one CPU
    they do so twice as quickly as across two.
    """
    with _pinned_lock:
        cpu = min(os.sched_getaffinity(0), key=lambda number: _pinned[number])
        _pinned[cpu] += 1
    return cpu


def give_cpu(cpu):
    with _pinned_lock:
        _pinned[cpu] -= 1


def kill_all():
    """End every guest at once, whichever thread booted it, and boot no more."""
    _stopping.set()
    for process in list(_running):
        process.kill()


class GuestFailure(Exception):
    """The guest itself went wrong: a splat, no answer in time, or it died."""

    def __init__(self, what, printed=()):
        super().__init__(what)
        self.printed = printed      # lines, the rest of a splat


def lines_behind(path, start):
    """The octets of a log's whole lines behind start: one still being printed is left."""
    with open(path, "rb") as stream:
        stream.seek(start)
        octets = stream.read()
    return octets[:octets.rfind(b"\n") + 1]


@dataclasses.dataclass
class Link:
    """One end of the network between two guests: a socket inherited by the guest."""
    sock: socket.socket

    @staticmethod
    def pair(uml):
        kind = socket.SOCK_SEQPACKET if uml else socket.SOCK_STREAM
        ends = socket.socketpair(socket.AF_UNIX, kind)
        for end in ends:
            for option in (socket.SO_SNDBUF, socket.SO_RCVBUF):
                end.setsockopt(socket.SOL_SOCKET, option, 4 << 20)
        return [Link(end) for end in ends]


class Guest:
    """
    One booted guest. Its folder on the host holds the console's log, what it
    shares with the guest (lab/) and, in lab/out, what the guest leaves there.
    """

    def __init__(self, name, directory, under_test="inbox", link=None, end=1, plugin=None):
        self.name = name
        self.kernel = kernels.kernel(name)
        self.uml = name.startswith("um")
        self.directory = pathlib.Path(directory)
        self.console = self.directory / "console.log"
        self.share = self.directory / "lab"
        self.out = self.share / "out"
        self.module = under_test
        self.link = link
        self.end = end
        self.plugin = plugin    # of QEMU's TCG: its file and arguments
        self.cpu = None         # that it keeps to
        self.booted = 0.0       # seconds that took
        self.started = 0.0      # seconds that starting some programs took then
        self.pace = 1           # how much slower than a quick machine's um it is just now
        self.process = None
        self.channel = None
        self.seen = 0           # how much of the console has been judged
        self.buffer = b""       # what the channel brought behind the last whole line
        self._fill()

    def _fill(self):
        """Lay out the folder that the guest sees as /lab."""
        shutil.rmtree(self.directory, ignore_errors=True)
        self.out.mkdir(parents=True)
        for part in ("guest", "scenarios"):
            shutil.copytree(LAB / part, self.share / part)
        for planted in (LAB / "selftest").glob("*.sh"):
            shutil.copy(planted, self.share / "scenarios")
        shutil.copy(kernels.busybox(), self.share / "guest/busybox")
        shutil.copy(peer.program(), self.share / "peer")
        tree = self.share / "lib/modules" / self.kernel.release
        shutil.copytree(self.kernel.modules / "lib/modules" / self.kernel.release, tree,
                        ignore=shutil.ignore_patterns("build", "source"), symlinks=True)
        if self.module != "inbox":
            root = module.build(self.kernel, self.module)
            shutil.copytree(root, self.share, dirs_exist_ok=True)
        host.run("depmod", "-b", self.share, self.kernel.release)

    # Booting

    def boot(self):
        if _stopping.is_set():
            raise GuestFailure("the runner ends")
        ours, theirs = socket.socketpair()
        self.channel = ours
        command = self._uml() if self.uml else self._qemu()
        argv = command(theirs.fileno(), "ttyS0" if self.uml else "ttyS1")
        fds = [theirs.fileno()]
        if self.link:
            fds.append(self.link.sock.fileno())
        if self.uml:
            self.cpu = take_cpu()
        with open(self.console, "wb") as sink:
            # pylint: disable-next=consider-using-with,subprocess-popen-preexec-fn
            self.process = subprocess.Popen(argv, stdin=subprocess.DEVNULL, stdout=sink,
                                            stderr=subprocess.STDOUT, pass_fds=fds,
                                            preexec_fn=self._begin, start_new_session=True)
        _running.add(self.process)
        if _stopping.is_set():
            self.process.kill()
        theirs.close()
        start = time.monotonic()
        kind = "um" if self.uml else "qemu"
        match = self._read_until(re.compile(r"# ready (\d+)"),
                                 math.ceil(BOOT_SECONDS[kind] * host.pace()), "boot")
        cpus = 1 if self.plugin else CPUS[kind]
        if int(match[1]) != cpus:
            raise GuestFailure(f"boot: {match[1]} CPUs instead of {cpus}")
        self._judge(self.out / "boot.log")
        self.booted = time.monotonic() - start
        self.started = self._start_programs()
        return self.booted

    def _begin(self):
        """In the new process"""
        follow_parent()
        if self.cpu is not None:
            os.sched_setaffinity(0, {self.cpu})

    def _command_line(self, channel, disk):
        share = self.share if self.uml else "9p"
        return (f"quiet panic=-1 lab.disk={disk} lab.share={share} lab.channel={channel} "
                f"lab.module={self.module} {self.kernel.append}")

    def _uml(self):
        require_memory_folder()

        def argv(fd, channel):
            args = [str(self.kernel.image), f"mem={MEMORY_MIB}M",
                    f"initrd={kernels.initrd(self.kernel, self.directory)}",
                    f"ubd0r={kernels.root_image()}", "con=null", "con0=fd:0,fd:1",
                    # Its process id, which it writes below ~/.uml otherwise.
                    f"uml_dir={self.directory}",
                    "ssl=null", f"ssl0=fd:{fd}", *self._command_line(channel, "/dev/ubda").split()]
            if self.link:
                args.append(f"vec0:transport=fd,fd={self.link.sock.fileno()},depth=256")
            return args
        return argv

    def _qemu(self):
        def argv(fd, channel):
            args = qemu_base(self.kernel, self.directory, self.share, self.plugin)
            args += ["-append", "console=ttyS0 mitigations=off "
                     + self._command_line(channel, "/dev/vda")]
            args += ["-serial", "stdio", "-chardev", f"socket,id=channel,fd={fd}",
                     "-serial", "chardev:channel"]
            if self.link:
                args += ["-netdev", f"socket,id=net0,fd={self.link.sock.fileno()}",
                         "-device", f"virtio-net-pci,netdev=net0,mac=52:54:00:17:00:{self.end:02}"]
            return args
        return argv

    # Steps

    def run(self, variables, scenario, function, limit, on_line):
        """
        Have the guest run one function of a scenario; on_line gets each line
        it prints. Returns its exit status. Raises GuestFailure.
        """
        words = " ".join(f"{key}={value}" for key, value in variables.items())
        self.channel.sendall(f"run {words} {scenario} {function}\n".encode())
        match = self._read_until(re.compile(r"# exit (\d+)"), limit, function, on_line)
        # A splat is printed by the time the step that caused it has ended.
        self.check_console()
        return int(match[1])

    def measure_pace(self):
        """
        Limits of time follow how slow the guest is at the moment. Its boot tells how
        slow guest and machine are together, starting programs what has changed since.
        """
        now = self._start_programs()
        boot = self.booted / QUICK_BOOT
        # A lull is no reason to expect much.
        self.pace = min(max(1, boot * now / self.started, boot / 2), SLOWEST)

    def _start_programs(self):
        start = time.monotonic()
        self.channel.sendall(b"pace\n")
        self._read_until(re.compile("# paced"), math.ceil(BOOT_SECONDS["qemu"] * host.pace()),
                         "pace")
        return time.monotonic() - start

    def _read_until(self, wanted, limit, what, on_line=lambda line: None):
        deadline = time.monotonic() + limit
        while True:
            while b"\n" in self.buffer:
                line, self.buffer = self.buffer.split(b"\n", 1)
                text = line.decode(errors="replace").rstrip("\r")
                match = wanted.match(text)
                if match:
                    return match
                on_line(text)
            self.check_console()
            left = deadline - time.monotonic()
            if left <= 0:
                raise GuestFailure(f"{what}: no answer within {limit} s")
            if select.select([self.channel], [], [], min(left, 0.25))[0]:
                data = self.channel.recv(1 << 16)
                if not data:
                    self.process.wait(timeout=5)
                    self.check_console()
                    raise GuestFailure(f"{what}: the guest ended "
                                       f"(status {self.process.returncode})")
                self.buffer += data

    # The console

    def check_console(self):
        self.seen += self._judge(self.console, self.seen)

    def _judge(self, path, start=0):
        """Look for trouble in the lines behind an octet; returns how many octets these have."""
        octets = lines_behind(path, start)
        for match in re.finditer(rb".*\n", octets):
            if BAD.search(match[0].decode(errors="replace")):
                time.sleep(1)       # let it print the rest
                self._fail(path, lines_behind(path, start + match.start()))
        return len(octets)

    def _fail(self, path, octets):
        where = path.name + (f" of end {self.end}" if self.link else "")
        lines = octets.decode(errors="replace").splitlines()
        cut = ["..."] if len(lines) > SPLAT_LINES else []
        raise GuestFailure(f"{where}: {lines[0].strip()}", lines[1:SPLAT_LINES] + cut)

    def last_lines(self, count=40):
        lines = self.console.read_text(errors="replace").splitlines()
        return [line.rstrip() for line in lines[-count:]]

    def kill(self):
        if self.process and self.process.poll() is None:
            self.process.kill()
            self.process.wait()
        if self.cpu is not None:
            give_cpu(self.cpu)
            self.cpu = None
        _running.discard(self.process)
        if self.channel:
            self.channel.close()
            self.channel = None
        if self.link:
            self.link.sock.close()

    def shell(self):
        """Boot with the console on this terminal, for a person."""
        if self.uml:
            argv = self._uml()(0, "shell")
            argv = [arg for arg in argv if not arg.startswith("ssl0=")]
        else:
            argv = qemu_base(self.kernel, self.directory, self.share)
            argv += ["-append", "console=ttyS0 mitigations=off "
                     + self._command_line("shell", "/dev/vda"), "-serial", "mon:stdio"]
        subprocess.run(argv, check=False, preexec_fn=follow_parent)


def memory_folder():
    """Where User-Mode Linux makes the file that is a guest's memory."""
    for name in ("TMPDIR", "TMP", "TEMP"):
        if os.environ.get(name):
            return os.environ[name]
    mounts = pathlib.Path("/proc/mounts").read_text("utf-8")
    return "/dev/shm" if re.search(r" /dev/shm tmpfs ", mounts) else "/tmp"


@host.once
def require_memory_folder():
    """A guest that finds no room for a page of its memory dies of SIGBUS, without a word."""
    folder = memory_folder()
    try:
        status = os.statvfs(folder)
    except OSError as error:
        raise host.LabError(f"User-Mode Linux finds no folder for its memory: {error}; "
                            "set TMPDIR") from error
    free = status.f_bavail * status.f_frsize >> 20
    if free < MEMORY_MIB or status.f_flag & os.ST_NOEXEC:
        raise host.LabError(
            f"User-Mode Linux keeps its memory in {folder}, which "
            + ("is mounted noexec" if status.f_flag & os.ST_NOEXEC else f"has {free} MiB left")
            + f": set TMPDIR to a folder with {MEMORY_MIB} MiB for each guest at a time, "
              "best a tmpfs, not noexec")


def tcg(kernel):
    """
    QEMU 7.2's TCG translates code without a lock against a CPU that changes it meanwhile,
    which stock kernels do all the time, so there one thread runs both CPUs in turn. The
    lab's own, which hardly does, has a thread for each CPU to find races with.
    """
    threads = "single" if kernel.name in kernels.STOCK else "multi"
    return ["-accel", f"tcg,thread={threads}", "-cpu", "max"]


def qemu_base(kernel, directory, share, plugin=None):
    machine = ([*tcg(kernel), "-smp", "1", "-plugin", plugin] if plugin
               else [*(kvm() or tcg(kernel)), "-smp", str(CPUS["qemu"])])
    return ["qemu-system-x86_64", *machine, "-m", f"{MEMORY_MIB}M",
            "-display", "none", "-no-reboot", "-nodefaults", "-monitor", "none",
            "-kernel", str(kernel.image), "-initrd", str(kernels.initrd(kernel, directory)),
            # Nobody writes to it, and User-Mode Linux locks what it reads.
            "-drive", f"file={kernels.root_image()},if=virtio,format=raw,readonly=on,"
                      "file.locking=off",
            "-virtfs", f"local,path={share},mount_tag=lab,security_model=none",
            "-device", "virtio-rng-pci"]


@host.once
def kvm():
    """KVM if a guest is seen to boot under it."""
    why = why_not_kvm()
    if not why:
        host.say("# QEMU uses KVM")
        return ["-accel", "kvm", "-cpu", "host"]
    host.say(f"# QEMU uses TCG, which is slow: {why}")
    return None


def why_not_kvm():
    """Boot a stock kernel to the first line of an init of its own; 10 s are plenty."""
    try:
        with open("/dev/kvm", "r+b", buffering=0):
            pass
    except OSError as error:        # whoever is not in the group kvm may not
        return error
    kernel = kernels.kernel("debian-6.12")
    with tempfile.TemporaryDirectory(dir=host.CACHE) as scratch:
        argv = ["qemu-system-x86_64", "-accel", "kvm", "-cpu", "host", "-smp", "2", "-m", "512M",
                "-display", "none", "-nodefaults", "-no-reboot", "-serial", "stdio",
                "-kernel", str(kernel.image),
                "-initrd", str(kernels.initrd(kernel, pathlib.Path(scratch))),
                "-append", "console=ttyS0 quiet panic=-1 rdinit=/bin/busybox -- echo KVM BOOTS"]
        try:
            out = subprocess.run(argv, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                                 stderr=subprocess.DEVNULL, timeout=10, check=False,
                                 preexec_fn=follow_parent).stdout
        except subprocess.TimeoutExpired as late:
            out = late.stdout or b""
    return None if b"KVM BOOTS" in out else "no guest boots under KVM here"
