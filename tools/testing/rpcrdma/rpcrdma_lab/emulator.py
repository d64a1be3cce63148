# SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
"""What guests run in: User-Mode Linux, or QEMU with KVM or TCG."""

import collections
import os
import re
import subprocess
import tempfile
import threading
from pathlib import Path
from typing import NamedTuple

from . import host, kernels, packages, root
from .kernels import Kernel

# User-Mode Linux copies the page tables of all its memory for each new process. KASAN's
# quarantine grows with memory, and is searched when a cache is destroyed. So these guests get no
# more than they need. A scenario may say what it needs.
MEMORY_MIB = {"um": 1024, "qemu": 3072}
CPUS = {"um": 1, "qemu": 2}


class Machine(NamedTuple):
    """What QEMU is for an architecture, and what Linux calls its serial lines."""
    command: tuple[str, ...]
    cpu: str
    console: str
    channel: str
    second: tuple[str, ...]     # QEMU's option for the channel, whose chardev is "channel"


MACHINES = {
    "amd64": Machine(("qemu-system-x86_64",), "max", "ttyS0", "ttyS1",
                     ("-serial", "chardev:channel")),
    # It has one serial line, so another is on PCI. Pointers are signed in a quick way.
    "arm64": Machine(("qemu-system-aarch64", "-M", "virt,gic-version=3"), "max,pauth-impdef=on",
                     "ttyAMA0", "ttyS0", ("-device", "pci-serial,chardev=channel")),
    "s390x": Machine(("qemu-system-s390x",), "max", "ttysclp0", "hvc0",
                     ("-device", "virtio-serial", "-device", "virtconsole,chardev=channel")),
}


class Memory(NamedTuple):
    """MiB of the host, and how many of them in the folder of User-Mode Linux's memory."""
    all: int
    folder: int


def memory_of(name: str, wanted: int = 0) -> Memory:
    """What a guest may take: what its scenario wants, or as much as most guests."""
    kind = "um" if name.startswith("um") else "qemu"
    mib = wanted or MEMORY_MIB[kind]
    return Memory(mib, mib if kind == "um" else 0)


def free_memory() -> Memory:
    """What guests may take together."""
    meminfo = Path("/proc/meminfo").read_text("ascii")
    match = re.search(r"MemAvailable: +(\d+) kB", meminfo)
    assert match
    status = os.statvfs(memory_folder())
    return Memory(int(match[1]) // 1024, status.f_bavail * status.f_frsize >> 20)


# User-Mode Linux

_guests_on = collections.Counter[int]()     # how many guests are pinned to each CPU
_guests_on_lock = threading.Lock()          # protects it


def take_cpu() -> int:
    """
    The CPU that a User-Mode Linux guest is to be pinned to. It is two processes, kernel
    and program, that run in turn; they switch twice as fast on one CPU as between two.
    """
    with _guests_on_lock:
        cpu = min(os.sched_getaffinity(0), key=lambda number: _guests_on[number])
        _guests_on[cpu] += 1
    return cpu


def give_cpu(cpu: int) -> None:
    """Return what take_cpu() returned."""
    with _guests_on_lock:
        _guests_on[cpu] -= 1


def memory_folder() -> str:
    """Where User-Mode Linux makes the file that is a guest's memory."""
    for name in ("TMPDIR", "TMP", "TEMP"):
        if os.environ.get(name):
            return os.environ[name]
    mounts = Path("/proc/mounts").read_text("utf-8")
    return "/dev/shm" if re.search(r" /dev/shm tmpfs ", mounts) else "/tmp"


@host.once
def require_memory_folder(need: int = MEMORY_MIB["um"]) -> None:
    """
    Raise LabError if the memory folder is too small for a guest or is mounted noexec. Where the
    folder is full, a guest dies of SIGBUS without any message.
    """
    folder = memory_folder()
    try:
        status = os.statvfs(folder)
    except OSError as error:
        raise host.LabError(f"User-Mode Linux has no folder for its memory: {error}; "
                            "set TMPDIR to one that exists") from error
    free = status.f_bavail * status.f_frsize >> 20
    if free < need or status.f_flag & os.ST_NOEXEC:
        raise host.LabError(
            f"User-Mode Linux keeps its memory in {folder}, which "
            + ("is mounted noexec" if status.f_flag & os.ST_NOEXEC else f"has {free} MiB free")
            + f": set TMPDIR to a folder that is not noexec, with {need} MiB for this guest "
              "and more for those that run at the same time, preferably a tmpfs")


# QEMU

def tcg(kernel: Kernel) -> list[str]:
    """
    QEMU's options for TCG. TCG of QEMU 7.2 takes no lock when it translates code that
    another CPU changes. Stock kernels often change their code, so one thread runs both
    CPUs in turn. The lab's own kernels hardly ever do. Their CPUs have a thread each,
    which finds races.
    """
    threads = "single" if kernel.name in kernels.STOCK else "multi"
    return ["-accel", f"tcg,thread={threads}", "-cpu", MACHINES[kernel.arch].cpu]


def qemu(kernel: Kernel, directory: Path, share: Path, memory: int, image: Path,
         plugin: str | None = None) -> list[str]:
    """QEMU's command line but for the kernel's command line, serial lines and network."""
    if kernel.arch == "s390x":
        packages.require_packages([{"12": "qemu-system-misc",
                                    "13": "qemu-system-s390x"}[host.debian()]])
    machine = ([*tcg(kernel), "-smp", "1", "-plugin", plugin] if plugin
               else [*((kernel.arch == "amd64" and kvm()) or tcg(kernel)),
                     "-smp", str(kernel.cpus or CPUS["qemu"])])
    return [*MACHINES[kernel.arch].command, *machine, "-m", f"{memory}M",
            "-display", "none", "-no-reboot", "-nodefaults", "-monitor", "none",
            "-kernel", str(kernel.image), "-initrd", str(root.initrd(kernel, directory)),
            # No locking: nothing writes to it, and User-Mode Linux locks what it reads.
            "-drive",
            f"file={image},if=virtio,format=raw,readonly=on,file.locking=off",
            "-fsdev", f"local,id=lab,path={share},security_model=none",
            "-device", "virtio-9p,fsdev=lab,mount_tag=lab", "-device", "virtio-rng"]


# What Debian's ovmf has for tests: a key, whose passphrase is "snakeoil", its certificate, and
# variables of the firmware that have this certificate in db.
KEY = Path("/usr/share/ovmf/PkKek-1-snakeoil.key")
CERT = KEY.with_suffix(".pem")
VARIABLES = Path("/usr/share/OVMF/OVMF_VARS_4M.snakeoil.fd")


def firmware(directory: Path) -> list[str]:
    """
    QEMU's options for UEFI with these variables: Debian's kernels take modules that are signed
    by a key in db. Secure Boot is off, or the firmware would not start a kernel that QEMU gives
    it: Debian's own key is not in db.
    """
    name = "SecureBootEnable\0".encode("utf-16-le")
    variables = directory / "variables.fd"
    variables.write_bytes(VARIABLES.read_bytes().replace(name + b"\1", name + b"\0"))
    code = VARIABLES.with_name("OVMF_CODE_4M.fd")
    return ["-drive", f"file={code},if=pflash,format=raw,unit=0,readonly=on",
            "-drive", f"file={variables},if=pflash,format=raw,unit=1"]


@host.once
def kvm() -> list[str] | None:
    """QEMU's options for KVM, or None if no guest boots with it."""
    why = why_not_kvm()
    if not why:
        host.say("# QEMU uses KVM")
        return ["-accel", "kvm", "-cpu", "host"]
    host.say(f"# QEMU uses TCG, which is slow: {why}")
    return None


def why_not_kvm() -> str | None:
    """
    Boot a stock kernel with KVM up to the first line of an init of its own. Returns
    None if that takes less than 10 s, else the reason why KVM is not used.
    """
    try:
        with open("/dev/kvm", "r+b", buffering=0):
            pass
    except OSError as error:        # such as: this user is not in the group kvm
        return str(error)
    kernel = kernels.kernel(kernels.of_host())
    with tempfile.TemporaryDirectory(dir=host.CACHE) as scratch:
        argv = ["qemu-system-x86_64", "-accel", "kvm", "-cpu", "host", "-smp", "2", "-m", "512M",
                "-display", "none", "-nodefaults", "-no-reboot", "-serial", "stdio",
                "-kernel", str(kernel.image), "-initrd", str(root.initrd(kernel, Path(scratch))),
                "-append", "console=ttyS0 quiet panic=-1 rdinit=/bin/busybox -- echo KVM BOOTS"]
        try:
            out = subprocess.run(argv, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                                 stderr=subprocess.DEVNULL, timeout=10, check=False,
                                 preexec_fn=host.die_with_parent).stdout
        except subprocess.TimeoutExpired as late:
            out = late.stdout or b""
    return None if b"KVM BOOTS" in out else "no guest boots with KVM on this machine"
