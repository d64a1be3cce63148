# SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
"""The plan of `make soak`, what its faults explain, and its workers."""

import itertools
import re
import runpy
import subprocess
import sys
import time
from collections.abc import Callable, Mapping
from pathlib import Path

import pytest

from .. import soak
from ..host import LAB

WORKER = LAB / "guest/soak-worker"


def test_the_same_seed_gives_the_same_faults() -> None:
    kinds = soak.kinds_in("um-7-debug", "mem")

    def first(seed: int) -> list[soak.Fault]:
        return list(itertools.islice(soak.faults(seed, kinds), 200))

    assert first(17) == first(17) != first(18)
    assert {fault.kind for fault in first(17)} == set(soak.KINDS)
    assert [fault.kind for fault in soak.warm_up(kinds)] == kinds
    for before, after in itertools.pairwise(first(17)):
        assert after.settle or "server" not in (before.kind, after.kind)
    assert not {"container", "link", "operation", "memory"} & set(soak.kinds_in("um-7-smp", "rxe"))


def test_each_worker_and_flavour_has_a_mount() -> None:
    for seed in range(50):
        mounts = [mount.split("/") for mount in soak.mounts(seed).split(",")]
        assert [mount[0] for mount in mounts] == list(soak.VERSIONS)
        assert {mount[2] for mount in mounts} == set(soak.FLAVOURS)
        assert {kind for mount in mounts for kind in mount[3:]} == set(soak.WORKERS)
        assert all(mount[3] != mount[4] for mount in mounts if mount[0] != "4.0")
        assert all(mount[3:] == ["renames"] for mount in mounts if mount[0] == "4.0")


def test_the_guest_has_all_kinds() -> None:
    library = (LAB / "guest/soak.sh").read_text()
    assert {f"inject_{kind}" for kind in soak.KINDS} == set(
        re.findall(r"^(inject_\w+)\(\)", library, re.M))


@pytest.mark.parametrize("line, kinds, bad", [
    ("[    1.7] rpcrdma: 10.17.0.1:20049: connected on mem0 port 1: inline 16384/16384", [], False),
    ("[    1.7] rpcrdma: 10.17.0.1:20049: closed: -ECONNRESET", ["kill"], False),
    ("[    1.7] rpcrdma: 10.17.0.1:20049: closed: -EIO", ["kill"], True),
    ("[    1.7] rpcrdma: 10.17.0.1:20049: closed: -EIO", ["kill", "operation"], False),
    ("[    1.7] rpcrdma: 10.17.0.1:20049: no answer in version 2: version 1 for an hour",
     ["link"], True),
    ("[    1.7] rpcrdma: mem0: not usable: no memory; load the module again", ["memory"], True),
    ("[    1.7] nfs: server 10.17.0.1 not responding, still trying", [], False)])
def test_lines_that_faults_explain(line: str, kinds: list[str], bad: bool) -> None:
    assert soak.unexplained(line, kinds) == bad


@pytest.mark.parametrize("kind", [kind for kind in soak.WORKERS if kind != "fio"])
def test_worker(kind: str, tmp_path: Path) -> None:
    """Its rounds succeed, and it ends when it is to."""
    (tmp_path / "restarts").touch()
    # File systems of the host want aligned buffers.
    script = f"import os, runpy; os.O_DIRECT = 0; runpy.run_path('{WORKER}', run_name='__main__')"
    with subprocess.Popen([sys.executable, "-B", "-c", script, tmp_path, kind, tmp_path / "state"],
                          stderr=subprocess.PIPE, text=True) as worker:
        deadline = time.monotonic() + 20
        while not (tmp_path / "state.rounds").exists() and time.monotonic() < deadline:
            time.sleep(0.05)
        (tmp_path / "stop").touch()
        assert worker.wait(20) == 0, worker.stderr and worker.stderr.read()
    assert re.match(r"\d+ \d+ \d+\.\d+$", (tmp_path / "state.rounds").read_text().splitlines()[0])


@pytest.mark.parametrize("sizes, error, fails", [
    ((0, 0), FileExistsError(17, "it was made before"), True),
    ((0, 2), FileExistsError(17, "it was made before"), False),
    ((1, 1), FileNotFoundError(2, "it was removed before"), False),
    ((0, 2), OSError(5, "I/O error"), True),
    ((0, 2), AssertionError("the data differ"), True)])
def test_round_that_a_restart_excuses(sizes: tuple[int, int], error: Exception, fails: bool,
                                      tmp_path: Path) -> None:
    """sizes are those of "restarts" before and after the error."""
    worker = runpy.run_path(str(WORKER))
    restarts = tmp_path / "restarts"
    restarts.write_text("." * sizes[0])

    def broken(where: Path) -> None:
        restarts.write_text("." * sizes[1])
        raise error

    worker["KINDS"]["fsx"] = broken
    raised = None
    try:
        worker["do_round"]("fsx", tmp_path / "round", tmp_path / "state")
    except (OSError, AssertionError) as found:
        raised = found
    assert raised is (error if fails else None)
    assert (tmp_path / "state.rounds").exists() == (not fails)


class FakeGuest:
    """A guest in which all goes well, but for one step."""
    name = "um-7-debug"

    def __init__(self, directory: Path, fails: str) -> None:
        self.directory, self.console, self.fails = directory, directory / "console.log", fails
        self.console.touch()
        self.checked = 0
        self.steps: list[str] = []

    def boot(self) -> None:
        """It takes no time."""

    def kill(self) -> None:
        """Nothing is left of it."""

    def run(self, variables: Mapping[str, str | int], scenario: str, function: str, limit: int,
            on_line: Callable[[str], object]) -> int:
        """Do a step."""
        self.steps.append(function if function != "inject" else str(variables["KIND"]))
        on_line("# sample 170 0.5 204800" if function == "sample" else f"ok 1 - {function}")
        if function == self.fails:
            on_line("not ok 2 - it failed")
        return int(function == self.fails)


@pytest.mark.parametrize("fails", ["", "stop", "inject", "leaks"])
def test_run(fails: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch,
             capsys: pytest.CaptureFixture[str]) -> None:
    guest = FakeGuest(tmp_path, fails)
    monkeypatch.setattr(time, "sleep", lambda seconds: None)
    monkeypatch.setattr(soak, "Guest", lambda *args, **kwargs: guest)
    monkeypatch.setattr(soak, "BUILD", tmp_path)
    monkeypatch.setattr(soak.Soak, "draw", lambda run: None)
    assert soak.soak(0.0001, 17, guest.name, "mem") == (not fails)
    printed = capsys.readouterr().out
    if fails:
        assert guest.steps[-1] == "leave" and "not ok 2 - it failed" in printed
        assert "make soak SEED=17 HOURS=0.25 GUEST=um-7-debug DEVICE=mem" in printed
    else:
        assert guest.steps[0] == "up" and guest.steps[-2:] == ["down", "leaks"]
        assert guest.steps.count("start") == guest.steps.count("stop") == 2
        assert set(soak.KINDS) < set(guest.steps) and "340 operations" in printed
