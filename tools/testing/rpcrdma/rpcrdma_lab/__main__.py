# SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
"""
The lab's one command. `make help` names what people run; this is what those
targets call:

  lab check [PATTERN]   everything, or what matches: build, kunit, wire, scenarios
  lab run [PATTERN]     scenarios only
  lab list [PATTERN]    name them
                        These three take --all: on every guest where that makes
                        sense, and not only where there is time for it every day.
  lab demo              show a person that NFS over RDMA works
  lab shell             a shell in a guest with an NFS server
  lab bench [PATTERN]   measure ours beside the kernel's own
  lab fuzz [SECONDS]    fuzz the wire format
  lab setup [GUEST...]  build or fetch guests
"""

import argparse
import signal
import sys
import traceback

from . import bench, check, demo, host, kernels, ktap, results, scenario


def parse():
    parser = argparse.ArgumentParser(prog="lab", description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    commands = parser.add_subparsers(dest="command", required=True)
    for name, what in (("check", "run all checks, or those that match"),
                       ("run", "run scenarios only"), ("list", "name the scenarios")):
        some = commands.add_parser(name, help=what)
        some.add_argument("pattern", nargs="?", default="*")
        some.add_argument("--module", choices=("ours", "inbox"))
        some.add_argument("--all", action="store_true", help="scenarios on the guests that they "
                          "name by \"also\" too, which takes longer")
        if name != "check":
            some.add_argument("--guest", action="append",
                              choices=(*kernels.NAMES, kernels.COVERAGE))
            some.add_argument("--folder", default="scenarios", help=argparse.SUPPRESS)
    commands.add_parser("demo", help="mount over RDMA in a guest and show it")
    shell = commands.add_parser("shell", help="a shell in a guest")
    shell.add_argument("--guest", default="debian-6.12", choices=kernels.NAMES)
    shell.add_argument("--module", default=check.MODULE, choices=("ours", "inbox"))
    measure = commands.add_parser("bench", help="measure ours beside the kernel's own")
    measure.add_argument("pattern", nargs="?", default="*")
    measure.add_argument("--rounds", type=int, default=bench.ROUNDS)
    fuzz = commands.add_parser("fuzz", help="fuzz the wire format")
    fuzz.add_argument("seconds", type=int, nargs="?", default=600)
    setup = commands.add_parser("setup", help="build or fetch guests")
    setup.add_argument("guests", nargs="*", default=list(kernels.NAMES))
    return parser.parse_args()


def chosen(args):
    todo = scenario.jobs(scenario.load_all(args.folder), args.guest,
                         (args.module or check.MODULE,), args.pattern, args.all)
    if not todo:
        raise host.LabError(f"no scenario matches {args.pattern}" +
                            ("" if args.all else "; with --all there are more"))
    return todo


def run(args):
    report = ktap.Report()
    scenario.guarded(report, "scenarios", scenario.run_jobs, chosen(args),
                     scenario.Run(report, results.Times()))
    return report.close()


def show(args):
    for job in chosen(args):
        host.say(f"{job.name}: {job.scenario.shows}")
    return True


def main():
    # Ctrl-C ends the runner at once, as other signals do, whatever its lanes wait
    # for: the kernel then ends its guests and makes, see host.follow_parent().
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    args = parse()
    commands = {
        "check": lambda: check.check(args.pattern, args.module, args.all),
        "run": lambda: run(args),
        "list": lambda: show(args),
        "demo": demo.demo,
        "shell": lambda: demo.shell(args.guest, args.module),
        "bench": lambda: bench.bench(args.rounds, args.pattern),
        "fuzz": lambda: check.fuzz(args.seconds),
        "setup": lambda: all(kernels.kernel(name) for name in args.guests),
    }
    try:
        if args.command != "list":
            host.require_debian()
            host.require_plain_paths()
            host.require_packages()
        if args.command not in ("list", "setup"):
            host.take_build()
        good = commands[args.command]()
    except host.LabError as error:
        host.die(error)
    except Exception as error:      # pylint: disable=broad-exception-caught
        traceback.print_exc()
        host.die(repr(error))
    sys.exit(not good)


if __name__ == "__main__":
    main()
