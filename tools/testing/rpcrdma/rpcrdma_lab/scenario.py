# SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
"""Scenarios: what the files say, and in which places each one runs."""

import dataclasses
import fnmatch
import hashlib
import itertools
import re
import statistics
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

from . import kernels, root
from .device import MEM
from .host import LAB, LabError
from .results import Times

# About how much longer things take than on um. It is used to plan as long as their times
# on this machine are not known.
GUESS = {"um": 1, "um-debug": 4, "um-7": 1, "um-7-debug": 2, "um-7-smp": 2, kernels.COVERAGE: 1,
         "debian-6.1": 4, "debian-6.12": 4, "debian-13": 4, "debian-13-7": 4, "debian-13-rt": 6,
         "debian-13-7-rt": 6, "debian-13-arm64": 12, "debian-13-arm64-16k": 12, "arm64-64k": 12,
         "s390x": 12, "smp-debug": 12, "smp-kcsan": 8}

# Devices that take turns
TURNS = ("rxe", "siw")


KILL = "kill"       # a step that kills a guest and boots it again


class Step(NamedTuple):
    """A function of a scenario, and the end that runs it: 1 is the server's, 2 the client's."""
    function: str
    end: int


ONE_GUEST = (Step("server", 1), Step("client", 1), Step("client_done", 1), Step("server_done", 1))
TWO_GUESTS = (Step("server", 1), Step("client", 2), Step("client_done", 2), Step("server_done", 1))


class Skip(NamedTuple):
    """A "skip:" line: patterns of guest, device, ends and module, and the reason."""
    patterns: tuple[str, ...]
    why: str


@dataclasses.dataclass(frozen=True)
class Scenario:
    """
    A file in scenarios/. Its first comment has these lines:

      shows:    what it shows, in one line
      guests:   where it runs every day, if anywhere: guests, or SERVER+CLIENT for two different
                ones; or such a place with /DEVICE, /ENDS or /MODULES for these only
      also:     where else it runs with ALL=1, in the same form
      devices:  rxe, siw, mem, or none if it needs none   (none). Where there are others,
                mem runs only in places that name it, such as um/mem.
      ends:     1 or 2 or both: client and server in one guest, or in two (1)
      modules:  which rpcrdma it can run with: ours, inbox (both), kunit; or
                SERVER+CLIENT where there are two guests
      limit:    seconds that one of its functions may take on um (60); slower guests
                get more in proportion
      memory:   MiB that its guest has, if not as many as others
      loads:    modules of tests that it needs, see extra.py
      root:     a set of packages that its guest's root has besides, see root.MORE_PACKAGES
      steps:    its functions, if they are not the usual four, at each end or, as FUNCTION/END, at
                one; kill/END kills that guest and boots it again
      host:     a function that runs on the host after the guests' functions
      turns:    what it is about, if that is the same over rxe and siw. The daily check then runs
                it over one of them, in turns by commit, and so does um with ALL=1.
      faults:   what in it breaks connections, if anything does. Without this line each link has
                one connection, no Call is sent twice, and no work request fails.
      skip:     GUEST DEVICE ENDS MODULE: why; * matches anything. There may be
                several of these lines.
    """
    name: str
    path: Path
    shows: str
    guests: tuple[str, ...]
    also: tuple[str, ...]
    devices: tuple[str, ...]
    ends: tuple[int, ...]
    modules: tuple[str, ...]
    limit: int
    memory: int
    loads: tuple[str, ...]
    root: str
    steps: tuple[str, ...]
    host: str | None
    turns: str | None
    faults: str | None
    skips: tuple[Skip, ...]

    @staticmethod
    def load(path: Path) -> "Scenario":
        """Read a scenario's first comment. Raises LabError if something in it is wrong."""
        fields, skips = read_comment(path)
        guests, also = fields.get("guests", "").split(), fields.get("also", "").split()
        if "shows" not in fields or not guests + also:
            raise LabError(f"{path} does not say what it shows and on which guests it runs: "
                           "add \"# shows:\" and \"# guests:\" or \"# also:\"")
        devices, ends = fields.get("devices", "none").split(), fields.get("ends", "1").split()
        modules = fields.get("modules", "ours inbox").split()
        for place in guests + also:
            name, _, what = place.partition("/")
            if not is_place(name) or what and what not in devices + ends + modules:
                raise LabError(f"{path} names an unknown place: {place}: guests are "
                               f"{', '.join(kernels.NAMES)}, or two that a network can join")
        return Scenario(
            path.stem, path, fields["shows"], tuple(guests), tuple(also), tuple(devices),
            tuple(int(n) for n in ends), tuple(modules),
            int(fields.get("limit", "60")), int(fields.get("memory", "0")),
            tuple(fields.get("loads", "").split()), fields.get("root", ""),
            tuple(fields.get("steps", "").split()), fields.get("host"), fields.get("turns"),
            fields.get("faults"), skips)

    def runs_on(self, places: Sequence[str], guest: str, device: str, ends: int,
                module: str) -> bool:
        """Whether one of the places is this one."""
        if guest == kernels.COVERAGE:
            return any(self.runs_on(places, name, device, ends, module)
                       for name in kernels.COVERED)
        if is_pair(guest) and ends != 2:
            return False
        if device == MEM and ends == 2:     # it connects nothing but ends in one kernel
            return False
        if device == "siw" and set(guests_at(guest)) & set(kernels.STOCK):   # they have none
            return False
        if device == MEM and len(self.devices) > 1:
            return f"{guest}/{MEM}" in places
        return any(place in (guest, f"{guest}/{device}", f"{guest}/{ends}", f"{guest}/{module}")
                   for place in places)

    def pairs(self) -> list[str]:
        """The places with two different guests."""
        names = [place.partition("/")[0] for place in self.guests + self.also]
        return [name for name in dict.fromkeys(names) if is_pair(name)]

    def why_skipped(self, job: "Job") -> str | None:
        """The reason why a job is skipped, or None if it is not."""
        place = (kernels.kernel_of(job.guest), job.device, str(job.ends), job.module)
        for skip in self.skips:
            if all(fnmatch.fnmatch(have, want) for have, want in zip(place, skip.patterns)):
                return skip.why
        return None


def read_comment(path: Path) -> tuple[dict[str, str], tuple[Skip, ...]]:
    """The fields of a scenario's first comment, each on one line or more; its "skip:" lines."""
    fields: dict[str, str] = {}
    skips = []
    for line in path.read_text().splitlines():
        if not line.startswith("#"):
            break
        match = re.match(r"# (\w+): +(.*)", line)
        if match and match[1] == "skip":
            what, _, why = match[2].partition(": ")
            skips.append(Skip(tuple(what.split()), why))
        elif match:
            fields[match[1]] = f"{fields.get(match[1], '')} {match[2]}".lstrip()
    return fields, tuple(skips)


def guests_at(guest: str) -> list[str]:
    """The guests of a place: one, or the server's and the client's, as in um+um-7."""
    return guest.split("+")


def guest_at(guest: str, end: int) -> str:
    """The guest of one end."""
    return guests_at(guest)[-1 if end == 2 else 0]


def is_pair(guest: str) -> bool:
    """Whether a place has two different guests."""
    return "+" in guest


def is_place(guest: str) -> bool:
    """Whether there are such guests; a network joins two of User-Mode Linux or two of QEMU."""
    names = guests_at(guest)
    return (set(names) <= {*kernels.NAMES, kernels.COVERAGE} and len(names) <= 2
            and len({name.startswith("um") for name in names}) == 1)


def guess(guest: str) -> float:
    """About how much longer things take there than on um."""
    return max(GUESS[name] for name in guests_at(guest))


def guest_of(place: str) -> str:
    """The guest in a job's place, as in "um rxe ours"."""
    return place.split()[0]


def module_of(modules: str, end: int) -> str:
    """The module of one end: ours+inbox is the server's and the client's."""
    return modules.split("+")[-1 if end == 2 else 0]


class SessionKey(NamedTuple):
    """Jobs with the same key can run in one boot."""
    guest: str
    ends: int
    module: str
    rdma: str       # mem: the test device is in the guest, which checks DMA if it can
    extra: bool     # runs with ALL=1 only, where lines are counted
    memory: int     # MiB of a guest; 0: as many as others
    root: str       # one of root.MORE_PACKAGES


@dataclasses.dataclass(frozen=True)
class Job:
    """One scenario in one place."""
    scenario: Scenario
    guest: str
    device: str
    ends: int
    module: str

    @property
    def name(self) -> str:
        """The name of the job's test."""
        place = [self.guest] + (["2 guests"] if self.ends == 2 else [])
        place += [self.device] if self.device != "none" else []
        return f"{self.scenario.name} [{' '.join(place + [self.module])}]"

    @property
    def daily(self) -> bool:
        """Whether it runs every day, and not with ALL=1 only."""
        return self.scenario.runs_on(self.scenario.guests, self.guest, self.device, self.ends,
                                     self.module)

    def has_turn(self, tree: str) -> bool:
        """Whether the daily check of a tree runs it. A place with one device has no turns."""
        rivals = [device for device in TURNS
                  if dataclasses.replace(self, device=device).daily]
        if not self.scenario.turns or self.device not in rivals:
            return True
        number = int(hashlib.sha256(f"{tree} {self.scenario.name}".encode()).hexdigest(), 16)
        return self.device == rivals[number % len(rivals)]

    @property
    def session(self) -> SessionKey:
        """
        Which jobs it can share a boot with. The lines that run every day are counted
        apart from those that run with ALL=1 only.
        """
        return SessionKey(self.guest, self.ends, self.module, MEM if self.device == MEM else "",
                          self.guest == kernels.COVERAGE and not self.daily,
                          self.scenario.memory, self.scenario.root)

    def steps(self) -> Sequence[Step]:
        """The functions to run, in order."""
        if self.scenario.steps:
            return [Step(function, end) for words in self.scenario.steps
                    for function, _, only in [words.partition("/")]
                    for end in ([int(only)] if only else range(1, self.ends + 1))]
        return ONE_GUEST if self.ends == 1 else TWO_GUESTS

    @property
    def ran_with(self) -> str:
        """What a result of the job is valid for."""
        names = guests_at(self.guest)
        roots = dict.fromkeys(kernels.user_space(name) for name in names)
        return " ".join([*(kernels.version(name) for name in names),
                         *(root.version(release, self.scenario.root) for release in roots)])

    def about(self, times: Times) -> float:
        """Seconds that it takes after the boot: measured here, or estimated from other guests."""
        on_um = [seconds / GUESS[guest_of(place)]
                 for place, seconds in times.places(self.scenario.name).items()
                 if guest_of(place) in GUESS] or [self.scenario.limit / 3]
        return times.about(self.name, statistics.median(on_um) * guess(self.guest))


def load_all(folder: str = "scenarios") -> list[Scenario]:
    """All scenarios of a folder."""
    return [Scenario.load(path) for path in sorted((LAB / folder).glob("*.sh"))]


def jobs(scenarios: Sequence[Scenario], guests: Sequence[str] | None = None,
         modules: Sequence[str] = ("inbox",), pattern: str = "*",
         everywhere: bool = False) -> list[Job]:
    """
    The scenarios in all of their places that match the arguments, in the order in
    which they run. Without guests the one that counts lines is left out.
    """
    found = []
    names = [*kernels.NAMES, kernels.COVERAGE]
    for scenario in scenarios:
        places = scenario.guests + (scenario.also if everywhere else ())
        pairs = [pair for pair in scenario.pairs()
                 if not guests or set(guests_at(pair)) <= set(guests)]
        for guest, device, ends, module in itertools.product(
                [*(guests or kernels.NAMES), *pairs], scenario.devices, scenario.ends,
                scenario.modules):
            job = Job(scenario, guest, device, ends, module)
            if (scenario.runs_on(places, guest, device, ends, module)
                    and (set(module.split("+")) & set(modules) or module == "kunit")
                    and fnmatch.fnmatch(job.name, pattern_for(pattern))):
                found.append(job)
    return sorted(found, key=lambda job: ([names.index(name) for name in guests_at(job.guest)],
                                          job.module, job.ends))


def pattern_for(text: str) -> str:
    """A pattern for fnmatch: [ is not special, and text without * and ? may be anywhere."""
    text = text.replace("[", "[[]")
    return text if any(c in text for c in "*?") else f"*{text}*"
