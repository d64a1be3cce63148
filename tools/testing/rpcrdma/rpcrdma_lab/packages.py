# SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
"""Debian's packages: those that the lab needs installed, and those that guests are made from."""

import json
import os
import shutil
import subprocess
import threading
import time
from pathlib import Path

from .host import CACHE, LabError, run, step

# What `make check` and `make demo` use and a minimal Debian lacks. They are looked
# for as packages and not as programs, so that a machine with some of them gets the rest.
PACKAGES = """
    bc bison build-essential clang cpio flex gcc-12 git
    kmod libclang-rt-14-dev libelf-dev libibverbs-dev librdmacm-dev libssl-dev
    mmdebstrap mypy pahole python3
    qemu-system-x86 sparse squashfs-tools tshark uidmap xz-utils
""".split()


def missing_packages() -> list[str]:
    """Those of PACKAGES that are not installed."""
    query = subprocess.run(["dpkg-query", "-W", "-f", "${Package} ${db:Status-Status}\n"],
                           stdout=subprocess.PIPE, text=True, check=True).stdout
    installed = {line.split()[0] for line in query.splitlines() if line.endswith(" installed")}
    return [name for name in PACKAGES if name not in installed]


def require_packages() -> None:
    """Install missing packages as root. For other users raise LabError with the command."""
    missing = missing_packages()
    if not missing:
        return
    if os.geteuid():
        raise LabError("packages are missing: install them as root: "
                       f"apt-get install {' '.join(missing)}")
    with step(f"installing {' '.join(missing)}"):
        env = dict(os.environ, DEBIAN_FRONTEND="noninteractive")
        run("apt-get", "update")
        run("apt-get", "install", "--yes", "--no-install-recommends", *missing, env=env)


class AptCache:
    """
    What apt-cache says about packages, asked once a day. So a guest keeps its version
    for a day, and the runs of that day do not wait for apt.
    """
    FILE = CACHE / "packages.json"
    DAY = 24 * 3600

    def __init__(self) -> None:
        self.answers: dict[str, str] | None = None
        self.lock = threading.Lock()    # protects answers and the file: threads ask at once

    def load(self) -> dict[str, str]:
        """The answers of the last 24 hours. Runs apt-get update if there are none."""
        if self.answers is None:
            answers: dict[str, str] = {}
            if self.FILE.exists() and time.time() - self.FILE.stat().st_mtime < self.DAY:
                answers = json.loads(self.FILE.read_text())
            self.answers = answers
            if not self.answers and not os.geteuid():
                run("apt-get", "update")
        return self.answers

    def query(self, *argv: str) -> str:
        """The output of an apt-cache command."""
        with self.lock:
            answers = self.load()
            key = " ".join(argv)
            if key not in answers:
                answers[key] = run(*argv)
                self.save(answers)
            return answers[key]

    def save(self, answers: dict[str, str]) -> None:
        """Write the file; its time stays that of the first answer."""
        first = self.FILE.stat().st_mtime if len(answers) > 1 and self.FILE.exists() else None
        CACHE.mkdir(parents=True, exist_ok=True)
        scratch = self.FILE.with_suffix(f".{os.getpid()}")
        scratch.write_text(json.dumps(answers, indent=1))
        if first:
            os.utime(scratch, (first, first))
        scratch.rename(self.FILE)


APT_CACHE = AptCache()


def package_version(name: str) -> str:
    """The version that apt would install."""
    for line in APT_CACHE.query("apt-cache", "policy", name).splitlines():
        if line.strip().startswith("Candidate:"):
            version = line.split()[1]
            if version != "(none)":
                return version
    raise LabError(f"apt does not know the package {name}: add Debian 12 and its security "
                   "suite to apt's sources, then run apt-get update as root")


def package_depends(name: str) -> list[str]:
    """The packages that a package depends on."""
    out = APT_CACHE.query("apt-cache", "depends", "--no-recommends", "--no-suggests", name)
    return [line.split()[1] for line in out.splitlines() if line.strip().startswith("Depends:")]


def fetch_packages(directory: Path, *names: str) -> None:
    """Download packages and unpack them in a directory; nothing is installed."""
    downloads = directory / "download"
    downloads.mkdir(parents=True, exist_ok=True)
    # The user that apt downloads as cannot write below a home directory.
    run("apt-get", "download", "-o", "APT::Sandbox::User=root", *names, cwd=downloads)
    for deb in downloads.glob("*.deb"):
        run("dpkg-deb", "-x", deb, directory)
    shutil.rmtree(downloads)
