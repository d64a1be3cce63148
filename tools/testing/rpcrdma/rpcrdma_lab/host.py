# SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
"""The machine the lab runs on: its packages, its cache, its commands."""

import concurrent.futures
import contextlib
import ctypes
import fcntl
import functools
import json
import os
import pathlib
import platform
import re
import shlex
import shutil
import signal
import subprocess
import sys
import threading
import time

TOP = pathlib.Path(__file__).resolve().parents[4]
LAB = TOP / "tools/testing/rpcrdma"
BUILD = TOP / "build"
# A run that the lab's own tests start works beside the one that started it.
UNDER_TEST = "RPCRDMA_LAB_TEST" in os.environ
LOGS = BUILD / ("logs-test" if UNDER_TEST else "logs")
CACHE = pathlib.Path(os.environ.get("XDG_CACHE_HOME")
                     or pathlib.Path.home() / ".cache") / "rpcrdma"

# What `make check` and `make demo` use that a bare Debian does not have.
# A package is asked for by name, not by a program that it may ship, so that
# a machine with half of it is completed.
PACKAGES = """
    bc bison build-essential clang cpio flex gcc-12 git
    kmod libclang-rt-14-dev libelf-dev libibverbs-dev librdmacm-dev libssl-dev
    mmdebstrap pahole python3
    qemu-system-x86 sparse squashfs-tools tshark uidmap xz-utils
""".split()


class LabError(Exception):
    """Something a person can mend; the message is the one line that says how."""


def say(text=""):
    """In one write, since several threads print."""
    sys.stdout.write(f"{text}\n")
    sys.stdout.flush()


@contextlib.contextmanager
def step(what):
    """Say what is being done, and afterwards how long it took."""
    say(f"# {what} ...")
    start = time.monotonic()
    yield
    say(f"# {what}: {time.monotonic() - start:.0f} s")


# Not in the child: to load a library after fork() may wait for another thread's lock.
_LIBC = ctypes.CDLL(None)
_RUNNER = os.getpid()


def follow_parent(number=signal.SIGKILL):
    """
    In a new process: get a signal when the thread that made it ends, whatever
    ends that. So whoever starts a process this way has to wait for it.
    """
    pr_set_pdeathsig = 1
    _LIBC.prctl(pr_set_pdeathsig, number)
    if os.getppid() != _RUNNER:     # it was quicker
        os._exit(1)


def follow_gently():
    """The same for what has children of its own: make ends those if it may."""
    follow_parent(signal.SIGTERM)


def run(*argv, log=None, **kwargs):
    """Run a command that must succeed; its output is shown only if it does not."""
    argv = [str(arg) for arg in argv]
    done = subprocess.run(argv, stdin=kwargs.pop("stdin", subprocess.DEVNULL),
                          stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                          text=True, errors="replace", check=False,
                          preexec_fn=follow_gently, **kwargs)
    if log:
        log.parent.mkdir(parents=True, exist_ok=True)
        log.write_text(done.stdout)
    if done.returncode:
        tail = "\n".join("    " + line for line in done.stdout.splitlines()[-30:])
        where = f" (whole log: {log})" if log else ""
        raise LabError(f"{' '.join(argv[:6])}: exit status {done.returncode}{where}\n{tail}")
    return done.stdout


def require_debian():
    with contextlib.suppress(OSError):
        release = shlex.split(pathlib.Path("/etc/os-release").read_text("utf-8"), comments=True)
        if platform.machine() == "x86_64" and {"ID=debian", "VERSION_ID=12"} <= set(release):
            return
    raise LabError("the lab needs Debian 12 on amd64, of whose packages its guests are made")


def require_plain_paths():
    """Make splits a path with a blank, a kernel its command line, QEMU its options at commas."""
    for path in (TOP, CACHE):
        if not re.fullmatch(r"[\w./+~@-]+", str(path), re.ASCII):
            raise LabError(f"the lab needs a path of letters, digits and ./+~@_- alone: {path}")


def missing_packages():
    query = subprocess.run(["dpkg-query", "-W", "-f", "${Package} ${db:Status-Status}\n"],
                           stdout=subprocess.PIPE, text=True, check=True).stdout
    installed = {line.split()[0] for line in query.splitlines() if line.endswith(" installed")}
    return [name for name in PACKAGES if name not in installed]


def require_packages():
    """Install what the lab builds with, or name it in one line."""
    missing = missing_packages()
    if not missing:
        return
    if os.geteuid():
        raise LabError("these packages are needed, install them first: "
                       f"apt-get install {' '.join(missing)}")
    with step(f"installing {' '.join(missing)}"):
        env = dict(os.environ, DEBIAN_FRONTEND="noninteractive")
        run("apt-get", "update")
        run("apt-get", "install", "--yes", "--no-install-recommends", *missing, env=env)


class Look:
    """
    What apt says of a package, asked once a day: a guest keeps its version
    for that long, and the runs in between do not wait for apt.
    """
    FILE = CACHE / "packages.json"
    DAY = 24 * 3600

    def __init__(self):
        self.answers = None
        self.lock = threading.Lock()    # lanes ask at a time

    def load(self):
        if self.answers is None:
            fresh = self.FILE.exists() and time.time() - self.FILE.stat().st_mtime < self.DAY
            self.answers = json.loads(self.FILE.read_text()) if fresh else {}
            if not self.answers and not os.geteuid():
                run("apt-get", "update")
        return self.answers

    def up(self, *argv):
        with self.lock:
            return self.look(*argv)

    def look(self, *argv):
        answers = self.load()
        key = " ".join(argv)
        if key not in answers:
            answers[key] = run(*argv)
            age = self.FILE.stat().st_mtime if len(answers) > 1 and self.FILE.exists() else None
            CACHE.mkdir(parents=True, exist_ok=True)
            scratch = self.FILE.with_suffix(f".{os.getpid()}")
            scratch.write_text(json.dumps(answers, indent=1))
            if age:
                os.utime(scratch, (age, age))
            scratch.rename(self.FILE)
        return answers[key]


LOOK = Look()


def package_version(name):
    for line in LOOK.up("apt-cache", "policy", name).splitlines():
        if line.strip().startswith("Candidate:"):
            version = line.split()[1]
            if version != "(none)":
                return version
    raise LabError(f"apt knows no package {name}: the lab needs Debian 12 "
                   "with its security suite in apt's sources (as root: apt-get update)")


def package_depends(name):
    out = LOOK.up("apt-cache", "depends", "--no-recommends", "--no-suggests", name)
    return [line.split()[1] for line in out.splitlines() if line.strip().startswith("Depends:")]


def fetch_packages(directory, *names):
    """Download packages and unpack them under directory; nothing is installed."""
    downloads = directory / "download"
    downloads.mkdir(parents=True, exist_ok=True)
    # apt's own sandbox user cannot write below somebody's home directory.
    run("apt-get", "download", "-o", "APT::Sandbox::User=root", *names, cwd=downloads)
    for deb in downloads.glob("*.deb"):
        run("dpkg-deb", "-x", deb, directory)
    shutil.rmtree(downloads)


@contextlib.contextmanager
def locked(name, quiet=False):
    """Two runs may share the cache; only one of them builds an entry."""
    CACHE.mkdir(parents=True, exist_ok=True)
    with open(CACHE / f".{name}.lock", "w", encoding="ascii") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            if not quiet:
                say(f"# {name}: waiting for others who make it or look for it ...")
            fcntl.flock(lock, fcntl.LOCK_EX)
        yield


_in_use = []        # open files whose locks are held until this process ends


def take_build():
    """
    Only one run works in a checkout's build/. Those that the lab's own tests
    start do so on behalf of the one that has it.
    """
    if UNDER_TEST:
        return
    try:
        BUILD.mkdir(exist_ok=True)
        lock = open(BUILD / ".lock", "w", encoding="ascii")  # pylint: disable=consider-using-with
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        raise LabError(f"another run works in {BUILD}: wait for its end, "
                       "or use another checkout") from None
    except OSError as error:
        raise LabError(f"{error}: another user's, as root's run leaves it? "
                       "Remove it, or use another checkout") from None
    _in_use.append(lock)


def cached(kind, key, build, parent=CACHE):
    """
    The directory of one cache entry, built by build(directory) if it is not
    there yet. An entry is complete or absent. It stays as long as somebody
    uses it; otherwise the entry that takes its place removes it.
    """
    directory = parent / f"{kind}-{key}"
    with locked(kind):
        complete = directory / ".complete"
        if not complete.exists():
            shutil.rmtree(directory, ignore_errors=True)
            directory.mkdir(parents=True)
            with step(f"{kind} {key}"):
                build(directory)
            complete.touch()
        stamp = open(complete, encoding="ascii")   # pylint: disable=consider-using-with
        fcntl.flock(stamp, fcntl.LOCK_SH)
        _in_use.append(stamp)
        for old in unused_entries(kind, parent, but=directory):
            shutil.rmtree(old)
    return directory


def unused_entries(kind, parent, but):
    """Entries of a kind that no process uses, but one; under the kind's lock."""
    for path in parent.glob(f"{kind}-[0-9]*"):
        stamp = path / ".complete"
        if path == but:
            continue
        if not stamp.exists():      # a build that was interrupted
            yield path
            continue
        with open(stamp, encoding="ascii") as held:
            try:
                fcntl.flock(held, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                continue
            yield path


def once(function):
    """
    Call it once in a run for the same arguments, whichever lane asks first. All
    get what it returned, or raised: what cannot be built is not tried again.
    """
    futures = {}
    lock = threading.Lock()

    @functools.wraps(function)
    def call(*args):
        with lock:
            is_first = args not in futures
            future = futures.setdefault(args, concurrent.futures.Future())
        if is_first:
            try:
                future.set_result(function(*args))
            except BaseException as error:      # pylint: disable=broad-exception-caught
                future.set_exception(error)
        return future.result()
    return call


def jobs():
    return len(os.sched_getaffinity(0))


# Seconds that a quick machine takes to run a program that does nothing
QUICK_START = 0.0008


@once
def pace():
    """How much slower than a quick machine this one is just now, for what has no guest yet."""
    start = time.monotonic()
    for _ in range(50):
        subprocess.run(["/bin/true"], check=True)
    return max(1, (time.monotonic() - start) / 50 / QUICK_START)


def die(message):
    print(f"rpcrdma lab: {message}", file=sys.stderr, flush=True)
    sys.exit(2)
