# SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
"""Debian's packages: those that the lab needs installed, and those that guests are made from."""

import json
import os
import re
import shutil
import threading
import time
from collections.abc import Sequence
from pathlib import Path

from . import cache, host
from .host import CACHE, LabError, once, run, step

# What `make check` and `make demo` use and a minimal Debian lacks. They are looked
# for as packages and not as programs, so that a machine with some of them gets the rest.
PACKAGES = """
    bc bison build-essential clang cpio flex gcc-12 gcc-aarch64-linux-gnu git
    kmod libelf-dev libibverbs-dev librdmacm-dev libssl-dev
    mmdebstrap mypy pahole python3
    qemu-system-arm qemu-system-x86 sparse squashfs-tools tshark uidmap xz-utils
    groff-base libjansson-dev libkmod-dev libmnl-dev libmount-dev libsmartcols-dev
    pkgconf python3-pytest python3-yaml
""".split()

# The same for one release of Debian, whose clang needs its own libraries
RELEASE_PACKAGES = {"12": ["libclang-rt-14-dev"], "13": ["libclang-rt-19-dev"]}

CODENAMES = {"12": "bookworm", "13": "trixie", "13-arm64": "trixie", "12-s390x": "bookworm"}
KEYRING = "/usr/share/keyrings/debian-archive-keyring.gpg"
MIRROR = "http://deb.debian.org/debian"
SECURITY_MIRROR = "http://deb.debian.org/debian-security"


def installed() -> dict[str, str]:
    """The packages that are installed, with their versions."""
    out = run("dpkg-query", "-W", "-f", "${db:Status-Status} ${Package} ${Version}\n")
    lines = (line.split() for line in out.splitlines() if line.startswith("installed "))
    return {name: version for _, name, version in lines}


def missing_packages(more: Sequence[str] = ()) -> list[str]:
    """Those packages that are not installed, of the lab's and of some more."""
    have = installed()
    return [name for name in [*PACKAGES, *RELEASE_PACKAGES[host.debian()], *more]
            if name not in have]


def require_packages(more: Sequence[str] = ()) -> None:
    """Install missing packages as root. For other users raise LabError with the command."""
    missing = missing_packages(more)
    if not missing:
        return
    if os.geteuid():
        raise LabError("packages are missing: install them as root: "
                       f"apt-get install {' '.join(missing)}")
    with step(f"installing {' '.join(missing)}"):
        env = dict(os.environ, DEBIAN_FRONTEND="noninteractive")
        run("apt-get", "update")
        run("apt-get", "install", "--yes", "--no-install-recommends", *missing, env=env)


def mirrors() -> dict[bool, str]:
    """The mirrors of Debian (False) and of its security suites (True) that the host's apt uses."""
    found = {False: MIRROR, True: SECURITY_MIRROR}
    fields = "$(ORIGIN)|$(CODENAME)|$(COMPONENT)|$(RELEASE)|$(REPO_URI)"
    ours = rf"Debian\|{CODENAMES[host.debian()]}[\w-]*\|main\|([\w-]+)\|(.*)"
    for line in run("apt-get", "indextargets", "--format", fields,
                    "Identifier: Packages").splitlines():
        if match := re.fullmatch(ours, line):   # other lines: other sources, warnings of apt
            found[match[1].endswith("-security")] = match[2]
    return found


def sources(release: str) -> list[tuple[str, str]]:
    """Mirror and suite of each source of a release."""
    mirror = mirrors()
    codename = CODENAMES[release]
    suites = ["", "-updates", *([] if release == "12" else ["-backports"]), "-security"]
    if release == "12-s390x":       # of which mirrors were seen to lack newer packages
        suites = [""]
    return [(mirror[suite == "-security"], codename + suite) for suite in suites]


def architecture(release: str) -> str:
    """The architecture that the name of a release has at its end, as in 13-arm64."""
    return release.partition("-")[2] or "amd64"


def release_of(arch: str) -> str:
    """The release that guests of another architecture have."""
    return next(release for release in CODENAMES if release.endswith(f"-{arch}"))


def sources_list(release: str) -> str:
    """The sources of a release, as apt and mmdebstrap read them."""
    return "".join(f"deb [signed-by={KEYRING}] {uri} {suite} main\n"
                   for uri, suite in sources(release))


class Apt:
    """
    Debian's packages of one release, by an apt with a configuration, lists and answers of
    its own in the cache. It reads and changes nothing of the host's apt but its
    configuration, such as proxies.

    What apt-cache says is asked once a day. So a guest keeps its version for a day, and
    the runs of that day do not wait for apt.
    """
    DAY = 24 * 3600

    def __init__(self, release: str) -> None:
        self.release = release
        self.folder = CACHE / f"apt-{release}"
        self.file = self.folder / "answers.json"
        self.answers: dict[str, str] | None = None
        self.lock = threading.Lock()    # protects answers and the file: threads ask at once

    def configure(self) -> None:
        """Write the configuration."""
        for name in ("parts", "lists/partial", "archives/partial"):
            (self.folder / name).mkdir(parents=True, exist_ok=True)
        (self.folder / "sources.list").write_text(sources_list(self.release))
        (self.folder / "status").write_text("")     # so that no package is installed
        (self.folder / "apt.conf").write_text(
            f'Dir::Etc::sourcelist "{self.folder}/sources.list";\n'
            f'Dir::Etc::sourceparts "{self.folder}/parts";\n'
            'Dir::Etc::preferences "/dev/null";\n'
            f'Dir::Etc::preferencesparts "{self.folder}/parts";\n'
            f'Dir::State::status "{self.folder}/status";\n'
            f'Dir::State::lists "{self.folder}/lists";\n'
            f'Dir::Cache::archives "{self.folder}/archives";\n'
            f'Dir::Cache::pkgcache "{self.folder}/pkgcache.bin";\n'
            f'Dir::Cache::srcpkgcache "{self.folder}/srcpkgcache.bin";\n'
            'APT::Default-Release "";\n'
            f'APT::Architecture "{architecture(self.release)}";\n'
            f'APT::Architectures {{ "{architecture(self.release)}"; }};\n'
            # Commands of the host's configuration, which are for the host's packages
            '#clear APT::Update::Post-Invoke;\n'
            '#clear APT::Update::Post-Invoke-Success;\n'
            # The user that apt downloads as cannot write below a home directory.
            'APT::Sandbox::User "root";\n')

    def run(self, program: str, *words: str, cwd: Path | None = None) -> str:
        """Run apt-get or apt-cache. The configuration is read after the host's."""
        return run(program, f"-c={self.folder}/apt.conf", *words, cwd=cwd)

    def load(self) -> dict[str, str]:
        """The answers of the last 24 hours. Runs apt-get update if there are none."""
        if self.answers is None:
            answers: dict[str, str] = {}
            if self.file.exists() and time.time() - self.file.stat().st_mtime < self.DAY:
                answers = json.loads(self.file.read_text())
            else:
                with cache.locked(self.folder.name):
                    self.configure()
                    self.run("apt-get", "update")
            self.answers = answers
        return self.answers

    def query(self, *argv: str) -> str:
        """The output of an apt-cache command."""
        with self.lock:
            answers = self.load()
            key = " ".join(argv)
            if key not in answers:
                answers[key] = self.run(*argv)
                self.save(answers)
            return answers[key]

    def save(self, answers: dict[str, str]) -> None:
        """Write the file; its time stays that of the first answer."""
        first = self.file.stat().st_mtime if len(answers) > 1 and self.file.exists() else None
        scratch = self.file.with_suffix(f".{os.getpid()}")
        scratch.write_text(json.dumps(answers, indent=1))
        if first:
            os.utime(scratch, (first, first))
        scratch.rename(self.file)

    def version(self, name: str) -> str:
        """
        The version of a package that apt would install. A name with a suite, such as
        linux-base/trixie-backports, is the package of that suite, as in apt-get.
        """
        package, _, suite = name.partition("/")
        target = ["-t", suite] if suite else []
        for line in self.query("apt-cache", "policy", *target, package).splitlines():
            if line.strip().startswith("Candidate:"):
                version = line.split()[1]
                if version != "(none)":
                    return version
        raise LabError(f"Debian {self.release} has no package {name}: remove {self.folder} and "
                       "run the lab again")

    def depends(self, name: str) -> list[str]:
        """
        The packages that a package depends on, without virtual ones; of alternatives the
        last one.
        """
        out = self.query("apt-cache", "depends", "--no-recommends", "--no-suggests", name)
        return [line.split()[1] for line in out.splitlines()
                if re.match(r" *Depends: [^<]", line)]

    def newest(self, pattern: str) -> str:
        """
        The package with the highest version in its name. The pattern's group is that
        version, such as 7.3.4; what is before it is text that all names have.
        """
        prefix = re.match(r"[\w-]*", pattern)
        assert prefix
        names = self.query("apt-cache", "pkgnames", prefix[0]).split()
        found = [(numbers(match[1]), name) for name in names
                 if (match := re.fullmatch(pattern, name))]
        if not found:
            raise LabError(f"Debian {self.release} has no package {pattern}: remove "
                           f"{self.folder} and run the lab again")
        return max(found)[1]

    def fetch(self, directory: Path, *names: str) -> None:
        """Download packages and unpack them in a directory; nothing is installed."""
        downloads = directory / "download"
        downloads.mkdir(parents=True, exist_ok=True)
        self.run("apt-get", "download", *names, cwd=downloads)
        for deb in downloads.glob("*.deb"):
            run("dpkg-deb", "-x", deb, directory)
        shutil.rmtree(downloads)


def numbers(version: str) -> tuple[int, ...]:
    """A version as numbers, which can be compared."""
    return tuple(int(number) for number in version.split("."))


@once
def apt(release: str) -> Apt:
    """What has the packages of a release."""
    return Apt(release)
