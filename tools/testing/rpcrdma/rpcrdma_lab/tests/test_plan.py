# SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
"""Kernels, root file systems and the cache, and the places in which scenarios run."""

import collections
import dataclasses
import io
import itertools
import random
import re
import tarfile
from pathlib import Path

import pytest

from .. import cache, check, host, kernels, packages, results, root, scenario


def test_newest_kernel_by_its_number() -> None:
    apt = packages.Apt("13")
    apt.answers = {"apt-cache pkgnames linux-image-": """
        linux-image-6.12.99+deb13-amd64
        linux-image-7.9.12+deb13-amd64
        linux-image-7.10.2+deb13-amd64
        linux-image-7.10.2+deb13-cloud-amd64
        linux-image-8.0.1+deb13-amd64"""}
    assert apt.newest(kernels.STOCK["debian-13-7"].image) == "linux-image-7.10.2+deb13-amd64"


def test_kernel_is_of_its_flavour() -> None:
    apt = packages.Apt("13")
    apt.answers = {"apt-cache pkgnames linux-image-": """
        linux-image-6.12.99+deb13-arm64
        linux-image-6.12.98+deb13-arm64-16k
        linux-image-6.12.99+deb13-rt-arm64
        linux-image-6.12.97+deb13-rt-amd64
        linux-image-6.12.99+deb13-amd64
        linux-image-6.12.99+deb13-rt-amd64-dbg
        linux-image-7.3.4+deb13-rt-amd64"""}
    found = {name: apt.newest(kernels.STOCK[name].image) for name in kernels.STOCK
             if name not in kernels.TESTED}
    assert found == {"debian-13-arm64": "linux-image-6.12.99+deb13-arm64",
                     "debian-13-arm64-16k": "linux-image-6.12.98+deb13-arm64-16k",
                     "debian-13-rt": "linux-image-6.12.97+deb13-rt-amd64",
                     "debian-13-7-rt": "linux-image-7.3.4+deb13-rt-amd64"}


def test_own_kernel_of_another_architecture() -> None:
    """Its compiler, and a root of that architecture."""
    assert kernels.target("s390") == ("ARCH=s390", "CROSS_COMPILE=s390x-linux-gnu-")
    assert kernels.target("um") == ("ARCH=um",)
    assert kernels.user_space("arm64-64k") == packages.release_of("arm64") == "13-arm64"
    assert kernels.user_space("s390x") == packages.release_of("s390x") == "12-s390x"
    assert kernels.user_space("um-gcov") == kernels.user_space("smp-debug") == host.debian()


def test_newer_entry_replaces_one_of_the_same_guest() -> None:
    assert not [pair for pair in itertools.permutations(kernels.NAMES, 2)
                if re.match(rf"{re.escape(kernels.kind(pair[0]))}-\d", kernels.kind(pair[1]))]


def test_fragment_takes_options_back() -> None:
    lines = kernels.fragment_text(kernels.FLAVOURS["um-7"]).splitlines()
    assert "# CONFIG_UML_NET is not set" in lines and "CONFIG_UML_NET=y" not in lines


def test_entry_with_mounts_is_not_removed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    entry, mounts = tmp_path / "root-1", tmp_path / "mountinfo"
    (entry / "dev/shm").mkdir(parents=True)
    monkeypatch.setattr(cache, "MOUNTS", mounts)
    mounts.write_text(f"30 20 0:22 / {entry}/dev/shm rw - tmpfs tmpfs rw\n")
    with pytest.raises(host.LabError, match=f"umount {entry}/dev/shm"):
        cache.remove(entry)
    assert (entry / "dev/shm").exists()
    mounts.write_text(f"30 20 0:22 / {tmp_path}/root-12 rw - tmpfs tmpfs rw\n")
    cache.remove(entry)
    assert not entry.exists()


def test_squashfs_is_whole(tmp_path: Path) -> None:
    """
    What is read from a squashfs is what was in the tar file, also where many files begin
    alike and end differently.
    """
    numbers = random.Random(1)
    ends = " ".join(str(numbers.randrange(9999)) for _ in range(400_000)).encode()
    files = {}
    for number in range(400):
        start = numbers.randrange(len(ends) - 100_000)
        files[str(number)] = (bytes([number // 2 % 256]) * 131072 +
                              ends[start:start + numbers.randrange(60_000, 100_000)])
    with tarfile.open(tmp_path / "tar", "w") as tar:
        for name, content in files.items():
            info = tarfile.TarInfo(name)
            info.size = len(content)
            tar.addfile(info, io.BytesIO(content))
    root.squash(tmp_path / "tar", tmp_path / "squashfs")
    host.run("unsquashfs", "-quiet", "-no-progress", "-dest", tmp_path / "out",
             tmp_path / "squashfs")
    assert not [name for name, content in files.items()
                if (tmp_path / "out" / name).read_bytes() != content]


def names(some: scenario.Scenario, everywhere: bool = False) -> list[str]:
    """The names of a scenario's jobs with our module."""
    return [job.name for job in scenario.jobs([some], modules=("ours",), everywhere=everywhere)]


PAIR = dataclasses.replace(
    scenario.load_all()[0], name="pair", guests=("um-7+um/ours+inbox",), also=("um+um-7",),
    devices=("rxe",), ends=(1, 2), modules=("ours+inbox", "inbox+ours"), skips=())


def test_pair_has_two_kernels_and_modules() -> None:
    assert names(PAIR) == ["pair [um-7+um 2 guests rxe ours+inbox]"]
    more = scenario.jobs([PAIR], modules=("ours",), everywhere=True)
    assert len(more) == 3 and scenario.guest_at(more[0].guest, 2) == "um-7"


def test_pair_needs_both_guests() -> None:
    assert not scenario.jobs([PAIR], ["um"], ("ours",), everywhere=True)


@pytest.mark.parametrize("place", ["um+debian-6.1", "um-8"])
def test_no_place(place: str) -> None:
    """Guests that no network joins, and those that do not exist, are no place."""
    assert not scenario.is_place(place)


BOTH = dataclasses.replace(
    scenario.load_all()[0], name="both", guests=("um",), also=("um/mem", "um-debug"),
    devices=("rxe", "mem"), ends=(1, 2), modules=("ours",), skips=())


def test_device_beside_another() -> None:
    """The test device runs in one guest, where it is named, in boots of its own."""
    assert sorted(names(BOTH, everywhere=True)) == [
        "both [um 2 guests rxe ours]", "both [um mem ours]", "both [um rxe ours]",
        "both [um-debug 2 guests rxe ours]", "both [um-debug rxe ours]"]
    boots = {job.name: job.session for job in scenario.jobs([BOTH], modules=("ours",),
                                                            everywhere=True)}
    assert boots["both [um mem ours]"] != boots["both [um rxe ours]"]


def test_stock_kernels_have_no_siw() -> None:
    stock = dataclasses.replace(BOTH, guests=("um", "debian-6.1"), devices=("rxe", "siw"),
                                ends=(1,))
    assert names(stock) == ["both [um rxe ours]", "both [um siw ours]",
                            "both [debian-6.1 rxe ours]"]


def test_device_alone() -> None:
    """A scenario over it alone runs wherever it says, and with ALL=1 only if it says so."""
    alone = dataclasses.replace(BOTH, guests=(), devices=("mem",))
    assert names(alone, everywhere=True) == ["both [um mem ours]", "both [um-debug mem ours]"]
    assert not names(alone)


@pytest.mark.parametrize(("waited", "wanted"), [(0, 30), (50, 60), (99, 200)])
def test_cpu_time_that_guests_want(waited: float, wanted: float) -> None:
    outcome = results.Outcome("many at once", 1, 0, 0, 100, 30, waited)
    assert outcome.wanted_cpu == wanted


TURNS = dataclasses.replace(BOTH, name="turns", also=("um-7-debug",), devices=("rxe", "siw"),
                            turns="the same over each")


@pytest.mark.parametrize("everywhere", [False, True])
def test_turns_in_a_check(everywhere: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    """
    um runs one device in one guest. With ALL=1 um-gcov runs both, and other places have no turns.
    """
    monkeypatch.setattr(scenario, "load_all", lambda: [TURNS])
    wanted = [(job.guest, job.ends) for job in check.wanted_jobs("*", "ours", everywhere, True)]
    daily = {("um-gcov", 1): 1, ("um", 2): 1}
    all_of_them = {("um-gcov", 1): 2, ("um", 1): 1, ("um", 2): 2, ("um-7-debug", 1): 2,
                   ("um-7-debug", 2): 2}
    assert collections.Counter(wanted) == (all_of_them if everywhere else daily)
