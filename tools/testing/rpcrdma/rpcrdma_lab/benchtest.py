# SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
"""Tests of the benchmark with figures whose ratios and sums are known. They boot nothing."""

import json
import math
import subprocess
from pathlib import Path

from . import bench, chart, figures, instructions, parts, perf, report
from .figures import INBOX, MEM, OURS, OURS_2, Job, Sample, Variant
from .host import LAB
from .ktap import Test

SIW_READ = Job("siw", "read", 4)
MEM_READ = Job(MEM, "read", 4)
MEM_READ_8 = Job(MEM, "read", 4, 8)
WIRE_READ, WIRE_BARE = (Job(MEM, direction, 1024, bandwidth=figures.WIRE)
                        for direction in ("read", "bare"))

Sampled = dict[tuple[Job, Variant], list[Sample]]

# IOPS and instructions per RPC of one job in two rounds, with each variant
ROUNDS = {INBOX: [(1000, 500), (2000, 500)],
          OURS: [(1100, 400), (1800, 600)],
          OURS_2: [(1100, 420), (1800, 624)]}
CELLS = [("1,500 → 1,450 → 1,450", ["1.00 (0.90 to 1.10)", "1.00 (1.00 to 1.00)"]),
         ("500 → 500 → 522", ["1.00 (0.80 to 1.20)", "1.04 (1.04 to 1.05)"])]


def comparisons(test: Test) -> None:
    """Ours is compared with inbox, and version 2 with version 1."""
    samples: Sampled = {
        (SIW_READ, variant): [{"ops": iops, "us": 10**6, "instructions": 10 * count, "rpcs": 10}
                              for iops, count in rounds]
        for variant, rounds in ROUNDS.items()}
    cells = [figures.compare_one(SIW_READ, samples, figure)
             for figure in (figures.IOPS, figures.INSTRUCTIONS)]
    found = [(cell.arrows(), [*map(figures.spread_text, cell.ratios)]) for cell in cells]
    for text in found:
        test.line(f"# {text}")
    test.step(found == CELLS, "medians of each variant, and ratios of the rounds")
    test.step([[cell.worse(pair) for pair in (0, 1)] for cell in cells] ==
              [[None, None], [None, 1.04]], "what is worse, by half a percent or more")
    nothing = figures.compare_one(SIW_READ, samples, figures.DEVICE[1])
    test.step(nothing.arrows() == figures.NOTHING and nothing.worse(0) is None,
              "a figure that was not measured is no figure, and not worse")
    test.step(math.isclose(figures.geometric_mean([0.5, 2, math.nan, 8]), 2),
              "a geometric mean leaves out what was not measured")


# fio 3.33, with what the tests need
FIO = "fio: a message before the output\n" + json.dumps({"jobs": [{
    "read": {"total_ios": 1200, "runtime": 1001, "clat_ns": {
        "percentile": {"50.000000": 24192, "99.000000": 47872, "99.900000": 119296}}},
    "write": {"total_ios": 0, "runtime": 0, "clat_ns": {"min": 0}}}]})
DONE = {"ops": 1200, "us": 1001000, "p50": 24192, "p99": 47872, "p999": 119296}

# What the kernel prints: a kworker polls a CQ; nfsd runs, and the module's own work, which
# waits once; rpciod's work is sunrpc's own.
TRACE = """\
          <idle>-0   [000] d..2. 1.000001: sched_switch: prev_comm=fio prev_pid=9 prev_prio=120 \
prev_state=S ==> next_comm=kworker/0:1H next_pid=20 next_prio=100
    kworker/0:1H-20  [000] ..... 1.000002: workqueue_execute_start: work struct 1: function \
ib_cq_poll_work
    kworker/0:1H-20  [000] ..... 1.000003: cq_poll: dev=mem0 cq.id=1 requested 16, returned 3
    kworker/0:1H-20  [000] ..... 1.000004: workqueue_execute_end: work struct 1: function \
ib_cq_poll_work
    kworker/0:1H-20  [000] d..2. 1.000005: sched_switch: prev_comm=kworker/0:1H prev_pid=20 \
prev_prio=100 prev_state=I ==> next_comm=nfsd next_pid=30 next_prio=120
            nfsd-30  [000] ..... 1.000006: dma_map_page: mem0 dir=TO_DEVICE dma_addr=1000 size=4096
            nfsd-30  [000] d..2. 1.000007: sched_switch: prev_comm=nfsd prev_pid=30 prev_prio=120 \
prev_state=S ==> next_comm=kworker/u2:1 next_pid=40 next_prio=120
    kworker/u2:1-40  [000] ..... 1.000008: workqueue_execute_start: work struct 2: function \
rpc_async_schedule
    kworker/u2:1-40  [000] ..... 1.000009: workqueue_execute_end: work struct 2: function \
rpc_async_schedule
    kworker/u2:1-40  [000] ..... 1.000010: workqueue_execute_start: work struct 3: function \
some_work [rpcrdma]
    kworker/u2:1-40  [000] d..2. 1.000011: sched_switch: prev_comm=kworker/u2:1 prev_pid=40 \
prev_prio=120 prev_state=D ==> next_comm=fio next_pid=9 next_prio=120
             fio-9   [000] d..2. 1.000012: sched_switch: prev_comm=fio prev_pid=9 prev_prio=120 \
prev_state=S ==> next_comm=kworker/u2:1 next_pid=40 next_prio=120
    kworker/u2:1-40  [000] ..... 1.000013: workqueue_execute_end: work struct 3: function \
some_work [rpcrdma]
"""
EVENTS = {"interrupts": 0, "polls": 1, "completions": 3, "allocations": 0, "works": 3, "maps": 1,
          "nfsd_switches": 1, "cq_switches": 1, "own_switches": 2, "transport_switches": 4}


def count_events(trace: str) -> Sample:
    """What the guest's script counts in a trace."""
    done = subprocess.run(["bash", "-c", f". {LAB}/guest/bench.sh; count_events"], input=trace,
                          stdout=subprocess.PIPE, text=True, check=True)
    return figures.parse(done.stdout.splitlines())


def readings(test: Test) -> None:
    """What fio, the trace and the plugin print is read correctly."""
    test.step(figures.parse_fio(FIO, "read") == DONE, "I/Os, time and latencies of fio")
    test.step(figures.parse_fio(FIO, "write") == {"ops": 0, "us": 0},
              "a direction in which fio did nothing")
    found = count_events(TRACE)
    test.line(f"# {found}")
    test.step(found == EVENTS, "events, and the switches that the transport causes")
    facts = {"text": 0x1010, "last_symbol": 0x2ff0, "device_text": 0x8000, "device_end": 0x8fff}
    code = bench.code_of(facts)
    test.step(code == {"transport": range(0x1000, 0x3ff0), "device": range(0x8000, 0x8fff)},
              "the addresses of the module's and of the device's code")
    pages = "0x1000 10\n0x3000 5\n0x8000 100\n0x9000 1000\n"
    test.step(bench.outside(instructions.counts(pages, code)) ==
              {"instructions": 1115, "transport": 15, "device": 100, "outside": 1015},
              "instructions of places")
    names = [(0x10, "first"), (0x40, "second"), (0x80, "last")]
    blocks = "0xf00 9\n0x1010 10\n0x1038 1\n0x1040 5\n0x1090 7\n"
    test.step(instructions.by_function(blocks, names, 0x1010) == {"first": 11, "second": 5},
              "instructions of functions")
    test.step(bench.per_rpc([{"a": 5}, {"a": 25, "b": 10}], 10) == {"a": 200, "b": 100},
              "instructions of functions per RPC")


def sample_of(iops: int, cost: int, switches: int) -> Sample:
    """A sample of a job with 1,000 RPCs."""
    return {"ops": iops, "us": 10**6, "rpcs": 1000, "cpu_ns": 10**6 * cost,
            "outside": 1000 * cost, "transport": 1000 * cost, "transport_switches": switches}


def measured() -> report.Measured:
    """Ours has 1.5 times the IOPS of inbox; with eight jobs its costs are those of inbox."""
    samples: Sampled = {
        (MEM_READ, INBOX): [sample_of(1000, 100, 7000)],
        (MEM_READ, OURS): [sample_of(1500, 50, 2900)],
        (MEM_READ_8, INBOX): [sample_of(2000, 80, 3000)],
        (MEM_READ_8, OURS): [sample_of(3000, 80, 1800)]}
    for variant in (INBOX, OURS):
        samples[WIRE_READ, variant] = [sample_of(900, 1, 0)]
        samples[WIRE_BARE, variant] = [{"ops": 1000, "us": 10**6, "rpcs": 0}]
    rested = {(MEM, OURS): {"connections": 1024, "used": 900000, "rested": 600000,
                            "rested_device": 200000}}
    return report.Measured(1, [MEM_READ, MEM_READ_8, WIRE_READ, WIRE_BARE], False, samples,
                           samples, samples, {}, rested, {})


def reports(test: Test) -> None:
    """Tables, goals, JSON and the chart say what was measured."""
    found = measured()
    lines = report.first_table(found).splitlines()
    for line in lines:
        test.line(f"# {line}")
    last = [cell.strip() for cell in lines[-1].split("|")]
    test.step(last[1:5] == ["mem, geometric mean", "", "", "1.50"],
              "a table with a mean for the device")
    missed = {goal.text.split(":")[0]: goal.missed for goal in report.goals(found)}
    test.line(f"# {missed}")
    test.step(missed["one job"] == [] and missed["several jobs"] == ["mem read 4k x8 0.60"],
              "goals that are met and missed")
    test.step(missed["geometric mean of CPU time"] == [] and
              missed["each row of CPU time"] == ["mem read 4k x8 1.00"], "means and single rows")
    test.step(missed["reads of 1 MiB at 1000 MB/s"] == ["it is 0.90"],
              "reads are compared with the bare loop")
    test.step(missed["a connection that rests"] == ["it is 195.31"],
              "memory of one end without the device")
    text = json.dumps(report.as_json(found, "6.12"), allow_nan=False)
    test.step('"mem read 4k x8"' in text and '"missed": ["it is 0.90"]' in text,
              "all of it can be written as JSON")
    charts(test, found)


def charts(test: Test, found: report.Measured) -> None:
    """The chart's rows, and what is changed in the drawing."""
    rows = chart.rows_of(found)
    test.step([row.name for row in rows] == ["mem read 4k", "mem read 4k x8"],
              "the chart has the rows that compare variants")
    other = chart.Row("siw read 4k", "siw", rows[0].ratios)
    test.step(chart.places([*rows, other, other]) == [0, 1, 3, 4],
              "there is a gap between two devices")
    commands = chart.script(rows, Path("out.svg"))
    test.step("1.5000 1.5000 1.5000" in commands and '"mem read 4k x8" 1' in commands,
              "gnuplot gets the ratios and the names of the rows")
    drawing = ('<?xml version="1.0"?>\n<svg>\n<title>Gnuplot</title>\n'
               "<desc>Produced by GNUPLOT 5.4</desc>\n</svg>\n")
    tidy = chart.tidy(drawing)
    test.step("GNUPLOT" not in tidy and "SPDX-License-Identifier" in tidy[:200],
              "a drawing has a licence, and no version of gnuplot")


# What nm prints of a kernel, and the parts of those functions whose object files are known.
# There are two functions of one name.
NM = """\
0000000060004000 T _etext
0000000060002000 t work
0000000060001000 T first
                 U outside
0000000060002100 T schedule
0000000060002200 t init
0000000060003000 T rpc_run
0000000060003100 t init
0000000060005000 B data
"""
PART_OF = {"schedule": "switching", "init": "switching", "rpc_run": "sunrpc"}
LAYOUT = [(0x60001000, "kernel"), (0x60002000, "kernel"), (0x60002100, "switching"),
          (0x60002200, "switching"), (0x60003000, "sunrpc"), (0x60003100, "sunrpc"),
          (0x60004000, "kernel")]
# What perf prints. The guest's process is 7.
SCRIPT = """\
           linux     7           60001004
           linux     7         602000010
           linux     7           60002100
           linux     7           60002fff
           linux     7       7f0000001000
           linux     7   ffffffff81000000
           linux     7   ffffffff81000000
           linux     8   ffffffff81000000
    Web Content 1     9           60002110
"""
FOUND = {"kernel": 1, "transport": 1, "switching": 2, "libraries": 1, "host": 2,
         "sampled": 7, "programs": 1, "others": 1}


def sampled_parts(test: Test) -> None:
    """Samples of CPU time belong to the part that has their address."""
    layout = parts.layout(parts.symbols(NM), PART_OF)
    test.line(f"# {layout}")
    test.step(layout == LAYOUT, "where a kernel's parts begin, also where a name is there twice")
    taken = perf.parse(SCRIPT)
    test.step(taken[0] == ("linux", 7, 0x60001004) and
              taken[-1] == ("Web Content 1", 9, 0x60002110), "samples of processes")
    code = {"transport": range(0x602000000, 0x602001000), "nfsv3": range(0x60001000, 0x60002000)}
    found = parts.cpu_time(taken, 7, layout, code)
    test.line(f"# {found}")
    test.step({key: value // perf.CPU_TIME.period for key, value in found.items() if value} ==
              {f"{name}_ns": count for name, count in FOUND.items()},
              "CPU time of the guest's parts, of its programs, and of others")
    test.step(bench.without_start({"us": 9, "ops": 5, "cpu_ns": 100, "host_ns": 40},
                                  {"us": 1, "ops": 1, "cpu_ns": 10, "host_ns": 5}) ==
              {"us": 9, "ops": 5, "cpu_ns": 90, "host_ns": 35},
              "what starting fio takes does not count")


# Half a second of CPU time in each of two rounds. A tenth of it is the transport's and a fifth
# is for switching; half of the switches are the transport's. The kernel has half of the time
# that other processes leave it, its programs 0.3 of it.
SPENT = {"sampled_ns": 5 * 10**8, "transport_ns": 5 * 10**7, "switching_ns": 10**8,
         "clock_ns": 11 * 10**8, "others_ns": 10**8, "programs_ns": 3 * 10**8, "switches": 5000,
         "transport_switches": 2500}
IDEALS = [(0.72, 1.25 / 0.95), (0.64, 1.25 / 0.9), (0.56, 1.25 / 0.85)]


def ideals(test: Test) -> None:
    """What ours would reach without some of its CPU time."""
    test.step(not report.all_bounds(measured()), "no bounds if CPU time was not sampled")
    samples: Sampled = {
        (job, variant): 2 * [sample_of(iops, cost, 0) | SPENT]
        for job in (MEM_READ, MEM_READ_8)
        for variant, iops, cost in ((INBOX, 1000, 100), (OURS, 1250, 80))}
    found = report.Measured(2, [MEM_READ, MEM_READ_8], False, samples, samples, samples, {}, {}, {})
    rows = report.all_bounds(found)
    test.line(f"# {rows}")
    test.step([*rows] == ["mem read 4k", "mem read 4k x8", "mem, geometric mean"],
              "bounds of each job, and their means")
    test.step(all(math.isclose(ideal.cpu_time, cpu_time) and math.isclose(ideal.iops, iops)
                  for row in rows.values()
                  for ideal, (cpu_time, iops) in zip(row, IDEALS, strict=True)),
              "CPU time and IOPS without the transport, its switches, and all switching")
    # Of 10,000 samples 1,000: the standard error is 30.
    test.step(report.share_text(found.cpu_samples(MEM_READ, OURS), "transport") == "10.0 ± 0.3",
              "a share of both rounds, with its error")
    test.step([round(found.cell(MEM_READ, figure).medians[1]) for figure in
               (*figures.CPU, figures.OTHER_PROCESSES)] == [50, 30, 20, 9], "what a CPU does")
    cells = [cell.strip() for cell in report.bounds_table(found).splitlines()[2].split("|")]
    test.step(cells[1:-1] == ["mem read 4k", "0.80", "0.72", "0.64", "0.56", "1.25", "1.32",
                              "1.39", "1.47"], "a table of bounds")
    text = json.dumps(report.as_json(found, "6.12"), allow_nan=False)
    test.step('"nor its switches": {"CPU time": 0.64' in text, "bounds can be written as JSON")


def names(test: Test) -> None:
    """Each job has a name of its own, by which it can be selected."""
    found = [job.name for job in figures.JOBS]
    test.step(len(set(found)) == len(found) and found[0] == "mem read 4k" and
              {"mem memory", "mem create", "mem read 4k x8 nconnect=16", "mem bare write 1m",
               "mem bare write 1m at 1000 MB/s", "siw read 4k", "rxe write 4k x8"} <= set(found),
              "names of jobs")


def run(test: Test) -> None:
    """All of them."""
    comparisons(test)
    readings(test)
    reports(test)
    sampled_parts(test)
    ideals(test)
    names(test)
