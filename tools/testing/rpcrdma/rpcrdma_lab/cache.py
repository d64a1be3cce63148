# SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
"""The cache of guests in the home directory, which all checkouts share."""

import contextlib
import fcntl
import os
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path

from .host import CACHE, LabError, hold, say, step


MOUNTS = Path("/proc/self/mountinfo")


@contextlib.contextmanager
def locked(name: str, quiet: bool = False) -> Iterator[None]:
    """Hold the lock of one kind of entry. Other runs may use the cache at the same time."""
    CACHE.mkdir(parents=True, exist_ok=True)
    with open(CACHE / f".{name}.lock", "w", encoding="ascii") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            if not quiet:
                say(f"# {name}: waiting for another run that builds it ...")
            fcntl.flock(lock, fcntl.LOCK_EX)
        yield


def cached(kind: str, key: str, build: Callable[[Path], None], parent: Path = CACHE) -> Path:
    """
    The directory of a cache entry; build(directory) makes it if it does not exist.
    An entry is complete or absent. Other entries of its kind are removed, unless a
    process uses them.
    """
    directory = parent / f"{kind}-{key}"
    with locked(kind):
        complete = directory / ".complete"
        if not complete.exists():
            remove(directory)
            directory.mkdir(parents=True)
            older = [path.name.removeprefix(f"{kind}-") for path in parent.glob(f"{kind}-[0-9]*")
                     if (path / ".complete").exists()]
            with step(f"{kind} {key}" + (f", in place of {', '.join(older)}" if older else "")):
                build(directory)
            complete.touch()
        stamp = open(complete, encoding="ascii")   # pylint: disable=consider-using-with
        fcntl.flock(stamp, fcntl.LOCK_SH)
        hold(stamp)
        for old in unused_entries(kind, parent, but=directory):
            remove(old)
    return directory


def remove(directory: Path) -> None:
    """
    Remove a directory, if it is there. A build that was killed may have left mounts in it:
    by these root would remove files of the host.
    """
    mounts = [fields[4] for line in MOUNTS.read_text(encoding="utf-8").splitlines()
              if Path((fields := line.split())[4]).is_relative_to(directory)]
    if mounts:
        raise LabError(f"a run that was killed has left mounts; run: umount {' '.join(mounts)}")
    if directory.exists():
        shutil.rmtree(directory)


def unused_entries(kind: str, parent: Path, but: Path) -> Iterator[Path]:
    """The entries of a kind that no process uses, except one. The caller has the kind's lock."""
    for path in parent.glob(f"{kind}-[0-9]*"):
        stamp = path / ".complete"
        if path == but:
            continue
        if not stamp.exists():      # its build was interrupted
            yield path
            continue
        with open(stamp, encoding="ascii") as held:
            try:
                fcntl.flock(held, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                continue
            yield path


def size() -> int:
    """Disk space that the cache uses, in MB; hard links to one file count once."""
    blocks = {}
    for folder, _, files in os.walk(CACHE):
        for name in files:
            with contextlib.suppress(FileNotFoundError):    # another run has removed it
                status = os.lstat(Path(folder) / name)
                blocks[status.st_ino] = status.st_blocks
    return sum(blocks.values()) * 512 // 10**6
