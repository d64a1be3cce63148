# SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
"""The machine that the lab runs on: its paths, processes and locks."""

import concurrent.futures
import contextlib
import ctypes
import fcntl
import functools
import os
import platform
import re
import shlex
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Hashable, Iterator, Mapping
from pathlib import Path
from typing import IO, NoReturn, ParamSpec, TypeVar

TOP = Path(__file__).resolve().parents[4]
LAB = TOP / "tools/testing/rpcrdma"
BUILD = TOP / "build"
# Folders in a checkout that are not the project's, but left by builds and tools
LEFT_BEHIND = frozenset({"build", "__pycache__", ".mypy_cache"})
# The lab's own tests, and the runs that they start, work while the first run has build/.
UNDER_TEST = "RPCRDMA_LAB_TEST" in os.environ
LOGS = BUILD / ("logs-test" if UNDER_TEST else "logs")
CACHE = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "rpcrdma"

P = ParamSpec("P")
T = TypeVar("T")


class LabError(Exception):
    """An error that the user can correct; the message says what happened and what to do."""


# Messages

def say(text: str = "") -> None:
    """Print a line with one write, because several threads print."""
    sys.stdout.write(f"{text}\n")
    sys.stdout.flush()


def clock(seconds: float) -> str:
    """A time as people write it."""
    minutes, rest = divmod(int(seconds), 60)
    return f"{minutes} min {rest:02} s"


@contextlib.contextmanager
def step(what: str) -> Iterator[None]:
    """Print what is being done, and afterwards how long it took."""
    say(f"# {what} ...")
    start = time.monotonic()
    yield
    say(f"# {what}: {time.monotonic() - start:.0f} s")


def die(message: object) -> NoReturn:
    """Print an error and exit with status 2."""
    print(f"rpcrdma lab: {message}", file=sys.stderr, flush=True)
    sys.exit(2)


# Processes

# Loaded here and not in the child: after fork(), loading a library may wait for a lock
# that another thread held.
_LIBC = ctypes.CDLL(None)
_RUNNER = os.getpid()


def die_with_parent(number: int = signal.SIGKILL) -> None:
    """
    In a new process: have the kernel send it a signal when the thread that started it
    ends, for whatever reason. So the thread that starts a process must wait for it.
    """
    pr_set_pdeathsig = 1
    _LIBC.prctl(pr_set_pdeathsig, number)
    if os.getppid() != _RUNNER:     # the parent ended before prctl()
        os._exit(1)


def terminate_with_parent() -> None:
    """The same with SIGTERM, for programs such as make that end their children on it."""
    die_with_parent(signal.SIGTERM)


def attempt(*argv: str | Path, stdin: int | IO[bytes] = subprocess.DEVNULL,
            cwd: Path | None = None, env: Mapping[str, str] | None = None,
            timeout: float | None = None) -> subprocess.CompletedProcess[str]:
    """Run a command that may fail. Its stdout has stderr's output as well."""
    return subprocess.run([str(arg) for arg in argv], stdin=stdin, stdout=subprocess.PIPE,
                          stderr=subprocess.STDOUT, text=True, errors="replace", check=False,
                          cwd=cwd, env=env, timeout=timeout, preexec_fn=terminate_with_parent)


def run(*argv: str | Path, log: Path | None = None, stdin: int | IO[bytes] = subprocess.DEVNULL,
        cwd: Path | None = None, env: Mapping[str, str] | None = None) -> str:
    """Run a command that must succeed. Returns its output; an error message has its end."""
    done = attempt(*argv, stdin=stdin, cwd=cwd, env=env)
    if log:
        log.parent.mkdir(parents=True, exist_ok=True)
        log.write_text(done.stdout)
    if done.returncode:
        tail = "\n".join("    " + line for line in done.stdout.splitlines()[-30:])
        where = f" (whole log: {log})" if log else ""
        raise LabError(f"{' '.join(str(arg) for arg in argv[:6])}: "
                       f"exit status {done.returncode}{where}\n{tail}")
    return done.stdout


def once(function: Callable[P, T]) -> Callable[P, T]:
    """
    Call a function once in a run for the same arguments, whichever thread is first.
    All callers get its result or its exception: what cannot be built is not tried again.
    """
    futures: dict[Hashable, concurrent.futures.Future[T]] = {}
    lock = threading.Lock()     # protects futures

    @functools.wraps(function)
    def call(*args: P.args, **kwargs: P.kwargs) -> T:
        key = (args, frozenset(kwargs.items()))
        with lock:
            is_first = key not in futures
            future = futures.setdefault(key, concurrent.futures.Future())
        if is_first:
            try:
                future.set_result(function(*args, **kwargs))
            except BaseException as error:      # pylint: disable=broad-exception-caught
                future.set_exception(error)
        return future.result()
    return call


# What the lab needs of the machine

@once
def debian() -> str:
    """The release of Debian that this is: 12 or 13."""
    with contextlib.suppress(OSError):
        release = shlex.split(Path("/etc/os-release").read_text("utf-8"), comments=True)
        for number in ("12", "13"):
            if platform.machine() == "x86_64" and {"ID=debian",
                                                   f"VERSION_ID={number}"} <= set(release):
                return number
    raise LabError("this is neither Debian 12 nor Debian 13 on amd64: the lab needs one of "
                   "them, because it makes the guests from its packages")


def built_on() -> str:
    """
    The end of the names of folders with what the host's compiler makes, where another
    release of Debian may find them: objects of two compilers do not go together. On
    Debian 12 it is empty.
    """
    return "" if debian() == "12" else f".debian{debian()}"


def require_plain_paths() -> None:
    """
    Raise LabError if a path has a character that is special to a program that gets it:
    make and kernels split their input at blanks, QEMU splits its options at commas.
    """
    for path in (TOP, CACHE):
        if not re.fullmatch(r"[\w./+~@-]+", str(path), re.ASCII):
            raise LabError(f"the path {path} has other characters than letters, digits and "
                           "./+~@_-: use another folder")


# Speed

def jobs() -> int:
    """How many CPUs this process may use."""
    return len(os.sched_getaffinity(0))


# Seconds that a quick machine needs to run a program that does nothing
QUICK_START = 0.0008


@once
def pace() -> float:
    """How many times slower than a quick machine this one is at the moment, at least 1."""
    start = time.monotonic()
    for _ in range(50):
        subprocess.run(["/bin/true"], check=True)
    return max(1, (time.monotonic() - start) / 50 / QUICK_START)


def machine() -> str:
    """Its CPU and its kernel, for who reads what was measured on it."""
    model = re.search(r"^model name\s*: (.*)", Path("/proc/cpuinfo").read_text("utf-8"), re.M)
    return (f"{model[1] if model else 'unknown CPU'}, {os.cpu_count()} CPUs, "
            f"Linux {os.uname().release}")


# Locks

_held: list[IO[str]] = []       # open files whose locks are held until this process ends


def hold(file: IO[str]) -> None:
    """Keep a file open, and with it its lock, until this process ends."""
    _held.append(file)


def lock_build() -> None:
    """
    Let only one run at a time work in a checkout's build/. The runs that the lab's
    own tests start need no lock: the run that starts them has it.
    """
    if UNDER_TEST:
        return
    try:
        BUILD.mkdir(exist_ok=True)
        lock = open(BUILD / ".lock", "w", encoding="ascii")  # pylint: disable=consider-using-with
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        raise LabError(f"another run works in {BUILD}: wait until it ends, "
                       "or use another checkout") from None
    except OSError as error:
        raise LabError(f"{error}: another user may have made it, such as root; "
                       "remove it, or use another checkout") from None
    hold(lock)
