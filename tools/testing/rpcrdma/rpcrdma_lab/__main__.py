# SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
"""
The lab's one command. `make help` lists the targets for users; they call this:

  lab check [PATTERN]   everything, or what matches: build, kunit, wire, scenarios
  lab run [PATTERN]     scenarios only
  lab list [PATTERN]    list the scenarios
                        These three take --all: also on the guests where a scenario
                        does not run every day.
  lab demo              show that NFS over RDMA works
  lab shell             a shell in a guest with an NFS server
  lab bench [PATTERN]   compare our module with the kernel's own
  lab soak              I/O of many kinds for hours, while faults happen at random
  lab xfstests DIR [TESTS]   a checkout of xfstests on NFS
  lab fuzz [SECONDS]    fuzz the wire format
  lab jobs NAME...      scenarios by the whole names of their tests, until one fails
  lab mutate [COUNT]    plant defects in net/, and say which of them are found
  lab setup [GUEST...]  build or fetch guests
"""

import argparse
import dataclasses
import signal
import sys
import traceback
from collections.abc import Callable, Mapping

from . import (bench, check, debs, demo, host, kernels, ktap, mutate, packages, results,
               scenario, session, soak, wire, xfstests)


@dataclasses.dataclass
class Arguments(argparse.Namespace):
    """The command line. A command sets those that it has."""
    command: str = ""
    pattern: str = "*"
    module: str | None = None
    all: bool = False
    guest: list[str] | None = None
    shell_guest: str | None = None
    device: str = "rxe"
    folder: str = "scenarios"
    rounds: int = bench.ROUNDS
    hours: float = soak.HOURS
    seconds: int = 0
    count: int = mutate.COUNT
    seed: int = 0
    soak_seed: int | None = None
    checkout: str = ""
    tests: str = xfstests.TESTS
    names: list[str] = dataclasses.field(default_factory=list)
    guests: list[str] = dataclasses.field(default_factory=list)


def parser() -> argparse.ArgumentParser:
    """The grammar of the command line."""
    top = argparse.ArgumentParser(prog="lab", description=__doc__,
                                  formatter_class=argparse.RawDescriptionHelpFormatter)
    commands = top.add_subparsers(dest="command", required=True)
    for name, what in (("check", "run all checks, or those that match"),
                       ("run", "run scenarios only"), ("list", "list the scenarios")):
        some = commands.add_parser(name, help=what)
        some.add_argument("pattern", nargs="?", default="*")
        some.add_argument("--module", choices=("ours", "inbox"))
        some.add_argument("--all", action="store_true", help="scenarios also on the guests of "
                          "their \"also:\" line, which takes longer")
        if name != "check":
            some.add_argument("--guest", action="append",
                              choices=(*kernels.NAMES, kernels.COVERAGE))
            some.add_argument("--folder", default="scenarios", help=argparse.SUPPRESS)
    commands.add_parser("demo", help="mount over RDMA in a guest and show it")
    shell = commands.add_parser("shell", help="a shell in a guest")
    shell.add_argument("--guest", dest="shell_guest", choices=kernels.NAMES)
    shell.add_argument("--module", default=check.MODULE, choices=("ours", "inbox"))
    shell.add_argument("--device", default="rxe", choices=("rxe", "siw", "mem"))
    measure = commands.add_parser("bench", help="compare our module with the kernel's own")
    measure.add_argument("pattern", nargs="?", default="*")
    measure.add_argument("--rounds", type=int, default=bench.ROUNDS)
    long = commands.add_parser("soak", help="I/O for hours, while faults happen at random")
    long.add_argument("--hours", type=float, default=soak.HOURS)
    long.add_argument("--seed", dest="soak_seed", type=int)
    long.add_argument("--guest", dest="shell_guest", default=soak.GUEST, choices=kernels.NAMES)
    long.add_argument("--device", default=soak.DEVICE, choices=("rxe", "mem"))
    strangers = commands.add_parser("xfstests", help="run a checkout of xfstests on NFS")
    strangers.add_argument("checkout")
    strangers.add_argument("tests", nargs="?", default=xfstests.TESTS)
    fuzz = commands.add_parser("fuzz", help="fuzz the wire format")
    fuzz.add_argument("seconds", type=int, nargs="?", default=600)
    plant = commands.add_parser("mutate", help="plant defects in net/, see which are found")
    plant.add_argument("count", type=int, nargs="?", default=mutate.COUNT)
    plant.add_argument("--seed", type=int, default=0)
    jobs = commands.add_parser("jobs", help="scenarios by their whole names, until one fails")
    jobs.add_argument("names", nargs="+")
    setup = commands.add_parser("setup", help="build or fetch guests")
    setup.add_argument("guests", nargs="*", default=list(kernels.NAMES))
    return top


def chosen(args: Arguments) -> list[scenario.Job]:
    """The jobs that the arguments select. Raises LabError if there are none."""
    todo = scenario.jobs(scenario.load_all(args.folder), args.guest,
                         (args.module or check.MODULE,), args.pattern, args.all)
    if not todo:
        raise host.LabError(f"no scenario matches {args.pattern}: see `lab list --all`"
                            + ("" if args.all else ", and add --all if it is there"))
    return todo


def run(args: Arguments) -> bool:
    """Run scenarios. Returns whether they passed."""
    report = ktap.Report()
    session.guarded(report, "scenarios", session.run_jobs, chosen(args),
                    session.Run(report, results.Times()))
    return report.close()


def show(args: Arguments) -> bool:
    """List scenarios."""
    for job in chosen(args):
        host.say(f"{job.name}: {job.scenario.shows}")
    return True


def setup_guests(args: Arguments) -> bool:
    """Build or fetch guests."""
    return all(kernels.kernel(name) for name in args.guests)


# Packages of Debian that a command needs besides those of all
MORE_PACKAGES = {"bench": bench.PACKAGES, "check": debs.PACKAGES, "soak": soak.PACKAGES,
                 "xfstests": xfstests.PACKAGES}

COMMANDS: Mapping[str, Callable[[Arguments], bool]] = {
    "check": lambda args: check.check(args.pattern, args.module, args.all),
    "run": run,
    "list": show,
    "demo": lambda args: demo.demo(),
    "shell": lambda args: demo.shell(args.shell_guest, args.module or check.MODULE, args.device),
    "bench": lambda args: bench.bench(args.rounds, args.pattern),
    "soak": lambda args: soak.soak(args.hours, args.soak_seed, args.shell_guest or soak.GUEST,
                                   args.device),
    "xfstests": lambda args: xfstests.xfstests(args.checkout, args.tests),
    "fuzz": lambda args: wire.fuzz(args.seconds),
    "mutate": lambda args: mutate.mutate(args.count, args.seed),
    "jobs": lambda args: mutate.run_jobs(args.names),
    "setup": setup_guests,
}


def main() -> None:
    """Run a command and exit: 0 if it succeeded, 1 if a test failed, 2 if it could not run."""
    # Ctrl-C ends the runner at once, as other signals do, and does not wait for its
    # threads. The kernel then ends the guests and makes, see host.die_with_parent().
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    args = parser().parse_args(namespace=Arguments())
    try:
        if args.command != "list":
            host.debian()
            host.require_plain_paths()
            packages.require_packages(MORE_PACKAGES.get(args.command, ()))
        if args.command not in ("list", "setup"):
            host.lock_build()
        good = COMMANDS[args.command](args)
    except host.LabError as error:
        host.die(error)
    except Exception as error:      # pylint: disable=broad-exception-caught
        traceback.print_exc()
        host.die(repr(error))
    sys.exit(not good)


if __name__ == "__main__":
    main()
