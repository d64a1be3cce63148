# SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
"""A scenario says how much memory its guest has, and guests that run at once fit into the host."""

import dataclasses
import functools
import threading
import time
from pathlib import Path

import pytest

from .. import emulator, guest, kernels, root, scenario, session
from ..emulator import MEMORY_MIB, Memory
from ..tasks import Scheduler, Task

LARGE = """# SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
# shows:   nothing
# guests:  um
# memory:  5000
"""


def load(directory: Path, text: str = LARGE) -> scenario.Scenario:
    """A scenario of this text."""
    (directory / "large.sh").write_text(text)
    return scenario.Scenario.load(directory / "large.sh")


def test_memory_has_a_boot_of_its_own(tmp_path: Path) -> None:
    large = scenario.jobs([load(tmp_path)], ["um"], ("ours",))[0]
    others = dataclasses.replace(large, scenario=dataclasses.replace(large.scenario, memory=0))
    assert large.session != others.session
    assert session.memory_of(large.session) == Memory(5000, 5000)
    assert session.memory_of(others.session) == Memory(MEMORY_MIB["um"], MEMORY_MIB["um"])


def test_guest_has_what_its_scenarios_load(tmp_path: Path) -> None:
    plain = scenario.jobs([load(tmp_path)], ["um"], ("ours",))[0]
    crowded = scenario.jobs([load(tmp_path, LARGE + "# loads: crowd\n")], ["um"], ("ours",))[0]
    assert session.Session(plain.session, [plain]).extras == []
    assert session.Session(plain.session, [plain, crowded, crowded]).extras == ["crowd"]


def test_two_guests_take_twice_as_much(tmp_path: Path) -> None:
    two = scenario.jobs([load(tmp_path, LARGE + "# ends: 2\n")], ["um"], ("ours",))[0]
    assert session.memory_of(two.session) == Memory(10000, 10000)


def test_qemu_takes_nothing_of_the_folder() -> None:
    assert emulator.memory_of("debian-6.1") == Memory(MEMORY_MIB["qemu"], 0)


@pytest.mark.parametrize("wanted, mib", [(0, MEMORY_MIB["um"]), (5000, 5000)])
def test_guest_has_it(wanted: int, mib: int, tmp_path: Path,
                      monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[int] = []
    monkeypatch.setattr(kernels, "kernel", lambda name: kernels.Kernel(
        name, tmp_path, "6.12", tmp_path, tmp_path))
    monkeypatch.setattr(guest.Guest, "_fill", lambda self: None)
    monkeypatch.setattr(emulator, "require_memory_folder", asked.append)
    for name in ("image", "initrd"):
        monkeypatch.setattr(root, name, lambda *words: tmp_path)
    monkeypatch.setattr(emulator, "kvm", lambda: None)
    in_um = guest.Guest("um", tmp_path, memory=wanted)
    assert f"mem={mib}M" in in_um._uml(0, "ttyS0")      # pylint: disable=protected-access
    assert asked == [mib]
    in_qemu = guest.Guest("debian-6.1", tmp_path, memory=wanted)
    argv = in_qemu._qemu(0, "ttyS1")                    # pylint: disable=protected-access
    assert argv[argv.index("-m") + 1] == f"{wanted or MEMORY_MIB['qemu']}M"


def most_at_once(needs: list[Memory], free: Memory) -> int:
    """How many tasks with these needs run at once."""
    lock = threading.Lock()
    counts = [0]

    def work() -> None:
        with lock:
            counts.append(counts[-1] + 1)
        time.sleep(0.1)
        with lock:
            counts.append(counts[-1] - 1)

    Scheduler([Task("group", work, 1, cpus=0, memory=need) for need in needs], free,
              lambda line: None).run()
    return max(counts)


@pytest.mark.parametrize("needs, free, most", [
    ([Memory(100, 100)] * 4, Memory(250, 1000), 2),
    ([Memory(100, 100)] * 4, Memory(1000, 350), 3),
    ([Memory(100, 0)] * 4, Memory(1000, 50), 4),
    ([Memory(800, 800), Memory(100, 100), Memory(100, 100)], Memory(900, 900), 2),
    ([Memory(500, 500)] * 2, Memory(100, 100), 1),      # each alone, and then it may say why not
])
def test_guests_at_once_fit_into_the_host(needs: list[Memory], free: Memory, most: int) -> None:
    assert most_at_once(needs, free) == most


def test_large_guest_is_not_passed_for_ever() -> None:
    """Those that are less urgent do not keep one that needs more than is left waiting."""
    order: list[int] = []

    def work(number: int) -> None:
        order.append(number)
        time.sleep(0.05)

    small = [Task("group", functools.partial(work, number), 100 - number, cpus=0,
                  memory=Memory(60, 0)) for number in range(20)]
    large = Task("group", functools.partial(work, -1), 99.5, cpus=0, memory=Memory(100, 0))
    Scheduler([*small, large], Memory(120, 0), lambda line: None).run()
    assert order.index(-1) < 10
