# SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
"""
What runs leave for later ones: how long each test takes on this machine, and
what passed on which tree, so that `make check ALL=1` can be taken up again.
"""

import dataclasses
import hashlib
import json
import os
import pathlib
import shutil
import subprocess
import tempfile
import threading
import time

from . import host
from .host import BUILD, CACHE, TOP, LabError


def write(path, data):
    """All of it or nothing, whenever the runner is ended."""
    path.parent.mkdir(parents=True, exist_ok=True)
    scratch = path.with_suffix(f".{os.getpid()}")
    scratch.write_text(json.dumps(data, indent=1, sort_keys=True))
    scratch.rename(path)


def read(path):
    try:
        return json.loads(path.read_text())
    except (OSError, ValueError):
        return {}


class Times:
    """Seconds that each test took the last time on this machine. Runs may overlap."""

    FILE = CACHE / "times.json"

    def __init__(self):
        self.seconds = read(self.FILE)

    def about(self, name, guess):
        return self.seconds.get(name, guess)

    def keep(self, took):
        with host.locked("times", quiet=True):
            self.seconds = {**read(self.FILE), **{name: round(seconds, 1)
                                                  for name, seconds in took.items()}}
            write(self.FILE, self.seconds)


def git(*words, **variables):
    done = subprocess.run(["git", "-c", "safe.directory=*", "-C", TOP, *words],
                          stdin=subprocess.DEVNULL, text=True, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, check=False,
                          env=dict(os.environ, **variables))
    if done.returncode:
        raise LabError(f"git {words[0]} failed")
    return done.stdout.strip()


def tree_by_git():
    """The tree that a commit of all that lies here would have, and what HEAD is called."""
    if pathlib.Path(git("rev-parse", "--show-toplevel")).resolve() != TOP:
        raise LabError("this is an unpacked archive in somebody else's repository")
    with tempfile.TemporaryDirectory() as scratch:
        variables = {"GIT_INDEX_FILE": f"{scratch}/index"}
        git("read-tree", "HEAD", **variables)
        git("add", "--all", **variables)
        tree = git("write-tree", **variables)
    commit = git("rev-parse", "--short=12", "HEAD")
    return tree, commit if git("rev-parse", "HEAD^{tree}") == tree else f"{commit}+changes"


def tree_by_hand():
    """The same of an unpacked archive, which has no commit."""
    sums = hashlib.sha256()
    for path in sorted(TOP.rglob("*")):
        parts = path.relative_to(TOP).parts
        if path.is_file() and parts[0] not in ("build", ".git") and "__pycache__" not in parts:
            sums.update(f"{path.relative_to(TOP)}\0".encode() + path.read_bytes())
    return sums.hexdigest(), "no commit"


def tree():
    try:
        return tree_by_git()
    except (LabError, OSError):
        return tree_by_hand()


@dataclasses.dataclass(frozen=True)
class Outcome:
    """What became of one test."""
    name: str
    passed: int
    failed: int
    skipped: int
    seconds: float


class Results:
    """
    The tests that passed on this tree, in a folder in build/results that has the
    commit's name. A test counts only with what it ran with (a guest's kernel, say),
    and with the tree that was there when it ended. The line counts of the latest tree
    lie beside them.
    """

    def __init__(self):
        self.tree, self.commit = tree()
        # Another commit may have the same tree, as when only a message was amended.
        known = list(BUILD.glob(f"results/*-{self.tree[:12]}"))
        self.folder = known[0] if known else (
            BUILD / "results" / f"{self.commit.replace(' ', '-')}-{self.tree[:12]}")
        if known and not self.commit.endswith("+changes") and "+changes" in known[0].name:
            self.folder = known[0].rename(BUILD / "results" / f"{self.commit}-{self.tree[:12]}")
        self.file = self.folder / "passed.json"
        self.counts = self.folder / "gcov"
        self.lock = threading.Lock()    # protects the file
        for old in BUILD.glob("results/*/gcov"):
            if old != self.counts:
                shutil.rmtree(old)
        self.changed = False    # the tree, since this run began
        self.passed = read(self.file).get("passed", {})

    def earlier(self, name, ran_with):
        """The outcome of a test that need not run again, or None."""
        found = self.passed.get(name)
        if (not found or found["ran_with"] != ran_with
                or found["counts"] and not (self.counts / found["counts"]).exists()):
            return None
        return Outcome(name, found["passed"], 0, found["skipped"], found["seconds"])

    def keep(self, outcomes, failed, ran_with, counts):
        """Of tests that ran together, one of which may have failed."""
        with self.lock:
            if tree()[0] != self.tree:      # then nobody knows what was tested
                self.changed = True
                return
            for outcome in outcomes:
                self.passed.pop(outcome.name, None)
                if not failed:
                    self.passed[outcome.name] = {
                        "passed": outcome.passed, "skipped": outcome.skipped,
                        "seconds": round(outcome.seconds, 1), "ran_with": ran_with,
                        "counts": counts,
                        "at": time.strftime("%Y-%m-%d %H:%M")}
            write(self.file, {"commit": self.commit, "tree": self.tree, "passed": self.passed})
