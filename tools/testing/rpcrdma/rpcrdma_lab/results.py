# SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
"""
What runs leave for later ones: how long each test takes on this machine, and
what passed on which tree, so that `make check ALL=1` can be continued.
"""

import dataclasses
import hashlib
import json
import os
import shutil
import subprocess
import tempfile
import threading
import time
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import TypedDict, cast

from . import cache
from .host import BUILD, CACHE, LEFT_BEHIND, TOP, LabError


def write(path: Path, data: Mapping[str, object]) -> None:
    """Write a JSON file completely or, if the runner is killed, not at all."""
    path.parent.mkdir(parents=True, exist_ok=True)
    scratch = path.with_suffix(f".{os.getpid()}")
    scratch.write_text(json.dumps(data, indent=1))
    scratch.rename(path)


def read(path: Path) -> dict[str, object]:
    """Read a JSON file; one that is missing or broken counts as empty."""
    try:
        data: dict[str, object] = json.loads(path.read_text())
        return data
    except (OSError, ValueError):
        return {}


class Times:
    """
    The seconds that each test took the last time on this machine, or the CPU time that its
    guests used. Runs may overlap.
    """

    def __init__(self, kind: str = "times") -> None:
        self.file = CACHE / f"{kind}.json"
        self.seconds = self.load()

    def load(self) -> dict[str, float]:
        """What the file has."""
        return cast(dict[str, float], read(self.file))

    def about(self, name: str, guess: float) -> float:
        """What a test will take, or a guess if it has not run on this machine."""
        return self.seconds.get(name, guess)

    def places(self, scenario: str) -> dict[str, float]:
        """Seconds that a scenario took in each place: guest, ends, device and module."""
        start = f"{scenario} ["
        return {name[len(start):-1]: seconds for name, seconds in self.seconds.items()
                if name.startswith(start)}

    def keep(self, took: Mapping[str, float]) -> None:
        """Add the times of some tests to the file."""
        with cache.locked("times", quiet=True):
            self.seconds = {**self.load(), **{name: round(seconds, 1)
                                              for name, seconds in took.items()}}
            write(self.file, self.seconds)


class Passes:
    """
    What passed, by a hash of all that it depends on: tests that read or build a few files need
    not run again as long as these stay as they are. All checkouts share it.
    """

    MOST = 1000     # older ones are forgotten

    def __init__(self, kind: str) -> None:
        self.kind, self.file = kind, CACHE / f"{kind}.json"
        self.known = read(self.file)

    def forget(self, key: str) -> None:
        """It has failed since."""
        with cache.locked(self.kind, quiet=True):
            write(self.file, {known: value for known, value in read(self.file).items()
                              if known != key})

    def keep(self, passed: Mapping[str, object]) -> None:
        """Add some."""
        with cache.locked(self.kind, quiet=True):
            kept = list({**read(self.file), **passed}.items())
            write(self.file, dict(kept[-self.MOST:]))


def hash_of(paths: Iterable[Path], *more: str) -> str:
    """A hash of the names and contents of files in the checkout, and of some texts."""
    sums = hashlib.sha256("\0".join(more).encode())
    for path in paths:
        sums.update(f"\0{path.relative_to(TOP)}\0".encode() + path.read_bytes())
    return sums.hexdigest()


# The tree that is tested

def git(*words: str, **variables: str) -> str:
    """The output of a git command."""
    done = subprocess.run(["git", "-c", "safe.directory=*", "-C", TOP, *words],
                          stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                          stderr=subprocess.DEVNULL, text=True, check=False,
                          env=dict(os.environ, **variables))
    if done.returncode:
        raise LabError(f"git {words[0]} failed")
    return done.stdout.strip()


def tree_by_git() -> tuple[str, str]:
    """The tree that a commit of all files here would have, and a name for HEAD."""
    if Path(git("rev-parse", "--show-toplevel")).resolve() != TOP:
        raise LabError("this is an unpacked archive inside another repository")
    with tempfile.TemporaryDirectory() as scratch:
        index = f"{scratch}/index"
        git("read-tree", "HEAD", GIT_INDEX_FILE=index)
        git("add", "--all", GIT_INDEX_FILE=index)
        found = git("write-tree", GIT_INDEX_FILE=index)
    commit = git("rev-parse", "--short=12", "HEAD")
    return found, commit if git("rev-parse", "HEAD^{tree}") == found else f"{commit}+changes"


def tree_by_hash() -> tuple[str, str]:
    """The same for an unpacked archive, which has no commit."""
    files = [path for path in sorted(TOP.rglob("*")) if path.is_file()
             and not (LEFT_BEHIND | {".git"}) & set(path.relative_to(TOP).parts)]
    return hash_of(files), "no commit"


def tree() -> tuple[str, str]:
    """A hash of all files here, and the name of the commit."""
    try:
        return tree_by_git()
    except (LabError, OSError):
        return tree_by_hash()


# Results

@dataclasses.dataclass(frozen=True)
class Outcome:
    """The result of one test: how many of its steps passed, failed and were skipped."""
    name: str
    passed: int
    failed: int
    skipped: int
    seconds: float
    cpu: float = 0      # seconds that the guests used
    waited: float = 0   # seconds that they waited for a CPU of the host

    @property
    def wanted_cpu(self) -> float:
        """
        What they would have used in as much time without waiting, on two CPUs at most. From what
        they use while too many run, the next run would have even more at once.
        """
        return self.cpu * self.seconds / max(self.seconds - self.waited, self.cpu / 2, 0.1)


class Passed(TypedDict):
    """A test that passed, as it is written to the file."""
    passed: int
    skipped: int
    seconds: float
    ran_with: str       # see Results
    counts: str         # the folder of its line counts, if it has any
    at: str             # when


class Results:
    """
    The tests that passed on this tree, in a folder in build/results with the commit's
    name. A test counts only together with what it ran with, such as a guest's kernel,
    and only if the tree has not changed before it ended. The line counts of the latest
    tree are kept there as well.
    """

    def __init__(self) -> None:
        self.tree, self.commit = tree()
        self.folder = self.find_folder()
        self.file = self.folder / "passed.json"
        self.counts = self.folder / "gcov"
        self.lock = threading.Lock()    # protects the file
        for old in BUILD.glob("results/*/gcov"):
            if old != self.counts:
                shutil.rmtree(old)
        self.changed = False    # the tree, since this run began
        self.passed = cast(dict[str, Passed], read(self.file).get("passed", {}))

    def find_folder(self) -> Path:
        """
        The folder of this tree. It may have been made for another commit with the same
        tree, such as one whose message was amended since; a clean commit gives its name.
        """
        name = f"{self.commit.replace(' ', '-')}-{self.tree[:12]}"
        known = list(BUILD.glob(f"results/*-{self.tree[:12]}"))
        if not known:
            return BUILD / "results" / name
        if not self.commit.endswith("+changes") and "+changes" in known[0].name:
            return known[0].rename(BUILD / "results" / f"{self.commit}-{self.tree[:12]}")
        return known[0]

    def earlier(self, name: str, ran_with: str) -> Outcome | None:
        """The outcome of a test that need not run again."""
        found = self.passed.get(name)
        if (not found or found["ran_with"] != ran_with
                or found["counts"] and not (self.counts / found["counts"]).exists()):
            return None
        return Outcome(name, found["passed"], 0, found["skipped"], found["seconds"])

    def keep(self, outcomes: Sequence[Outcome], failed: bool, ran_with: str, counts: str) -> None:
        """Keep results of tests that ran together. If one failed, remove earlier ones of all."""
        with self.lock:
            if tree()[0] != self.tree:      # it is not known which tree was tested
                self.changed = True
                return
            for outcome in outcomes:
                self.passed.pop(outcome.name, None)
                if not failed:
                    self.passed[outcome.name] = {
                        "passed": outcome.passed, "skipped": outcome.skipped,
                        "seconds": round(outcome.seconds, 1), "ran_with": ran_with,
                        "counts": counts, "at": time.strftime("%Y-%m-%d %H:%M")}
            write(self.file, {"commit": self.commit, "tree": self.tree, "passed": self.passed})
