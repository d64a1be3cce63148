# SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
"""Tests of the benchmark with figures whose ratios and sums are known. They boot nothing."""

import collections
import json
import math
import re
import subprocess
import types
from pathlib import Path

import pytest

from .. import bench, chart, figures, instructions, parts, perf, ratio, report
from ..console import GuestFailure
from ..figures import (INBOX, JOBS, MEM, OURS, OURS_2, OURS_4096, PROGRAMS, SCALE, TCP, TUNED, Job,
                       Sample, Variant, scale_job)
from ..host import LAB

MEM_READ = Job(MEM, "read", 4)
MEM_READ_8 = Job(MEM, "read", 4, 8)
WIRE_READ, WIRE_BARE = (Job(MEM, direction, 1024, bandwidth=figures.WIRE)
                        for direction in ("read", "bare"))

Sampled = dict[tuple[Job, Variant], list[Sample]]


def test_ratios_are_those_of_the_same_round() -> None:
    samples: Sampled = {(MEM_READ, TUNED): [sample_of(iops, 100) for iops in (1000, 2000)],
                        (MEM_READ, OURS): [sample_of(iops, 100) for iops in (1100, 1800)]}
    assert figures.rounds(samples, MEM_READ, (OURS, TUNED), figures.IOPS) == [1.1, 0.9]
    # A figure that was not measured has no ratio.
    assert all(map(math.isnan, figures.rounds(samples, MEM_READ, (OURS, TUNED),
                                              figures.DEVICE[0])))


# fio 3.33, with what the tests need
FIO = "fio: a message before the output\n" + json.dumps({"jobs": [{"mixed": {
    "total_ios": 1200, "runtime": 1001, "clat_ns": {
        "percentile": {"50.000000": 24192, "99.000000": 47872, "99.900000": 119296}}}}]})


def test_output_of_fio() -> None:
    assert figures.parse_fio(FIO) == {
        "ops": 1200, "us": 1001000, "p50": 24192, "p99": 47872, "p999": 119296}


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


def test_events_and_switches_in_a_trace() -> None:
    done = subprocess.run(["bash", "-c", f". {LAB}/guest/bench.sh; count_events"], input=TRACE,
                          stdout=subprocess.PIPE, text=True, check=True)
    assert figures.parse(done.stdout.splitlines()) == {
        "interrupts": 0, "polls": 1, "completions": 3, "allocations": 0, "works": 3, "maps": 1,
        "nfsd_switches": 1, "cq_switches": 1, "own_switches": 2, "transport_switches": 4}


def test_instructions_in_places() -> None:
    code = bench.code_of({"text": 0x1010, "last_symbol": 0x2ff0,
                          "device_text": 0x8000, "device_end": 0x8fff})
    assert code == {"transport": range(0x1000, 0x3ff0), "device": range(0x8000, 0x8fff)}
    pages = "0x1000 10\n0x3000 5\n0x8000 100\n0x9000 1000\n"
    assert bench.outside(instructions.counts(pages, code)) == {
        "instructions": 1115, "transport": 15, "device": 100, "outside": 1015}


def test_instructions_of_functions_and_rpcs() -> None:
    names = instructions.symbols("1040 t second\t[one]\n1010 T first\n1050 d data\n1020 a constant")
    blocks = "0xf00 9\n0x1010 10\n0x1038 1\n0x1040 5\n"
    assert instructions.by_function(blocks, names) == {"first": 11, "second [one]": 5}
    assert bench.per_rpc([{"a": 5}, {"a": 25, "b": 10}], 10) == {"a": 200, "b": 100}


def sample_of(iops: int, cost: int, p99: int = 1000) -> Sample:
    """A sample of a job with 1,000 RPCs."""
    return {"ops": iops, "us": 10**6, "rpcs": 1000, "cpu_ns": 10**6 * cost, "p99": p99,
            "outside": 1000 * cost}


def measured() -> report.Measured:
    """Ours has 1.5 times the IOPS of inbox; with eight jobs its costs are those of inbox."""
    samples: Sampled = {}
    for base in (INBOX, TUNED):
        samples[MEM_READ, base] = [sample_of(1000, 100)]
        samples[MEM_READ_8, base] = [sample_of(2000, 80)]
    for ours in (OURS, OURS_4096):
        samples[MEM_READ, ours] = [sample_of(1500, 50, 900)]
    samples[MEM_READ_8, OURS] = [sample_of(3000, 80, 1100)]
    samples[WIRE_READ, OURS] = [sample_of(900, 1)]
    samples[WIRE_BARE, OURS] = [{"ops": 1000, "us": 10**6, "rpcs": 0}]
    rested = {(MEM, OURS): {"connections": 1024, "used": 900000, "rested": 600000,
                            "rested_device": 200000}}
    return report.Measured({"commit": "1234567"}, 1, [MEM_READ, MEM_READ_8, WIRE_READ, WIRE_BARE],
                           samples, {}, samples, rested, {})


def test_tables_have_means_and_all_variants() -> None:
    tables = [table for _, table in report.tables(measured()) if table]
    last = [cell.strip() for cell in tables[0].splitlines()[-1].split("|")]
    assert last[1:8] == ["mem, geometric mean", "", "", "", "1.50", "0.71", "0.99"]
    assert any("ours at 4096" in line and "1,500" in line
               for table in tables for line in table.splitlines())


def test_goals_that_are_met_and_missed() -> None:
    goals = {goal.text.split(":")[0]: (goal.met, goal.told) for goal in report.goals(measured())}
    assert goals["geometric mean of IOPS"] == (True, ["it is 1.50"])
    assert goals["each row of IOPS"] == (True, [])
    assert goals["geometric mean of CPU time"] == (True, ["it is 0.71"])
    assert goals["each row of CPU time"] == (False, ["mem read 4k x8 1.00"])
    assert goals["geometric mean of p99"] == (False, ["it is 0.99"])
    assert goals["each row of p99"] == (False, ["mem read 4k x8 1.10"])
    # Reads are compared with the bare loop, and memory is that of one end without the device.
    assert goals["one job reads 1 MiB at 1000 MB/s"] == (False, ["it is 0.90"])
    assert goals["a connection that rests"] == (False, ["it is 195.31"])
    # A row without a figure is not left out.
    found = measured()
    found.rows.append(Job(MEM, "stat"))
    goals = {goal.text.split(":")[0]: (goal.met, goal.told) for goal in report.goals(found)}
    assert goals["each row of IOPS"] == (False, [f"mem stat {ratio.NOTHING}"])


def test_everything_as_json() -> None:
    text = json.dumps(report.as_json(measured()), allow_nan=False)
    assert '"mem read 4k x8"' in text and '"told": ["it is 0.90"]' in text


def test_rows_of_the_chart() -> None:
    rows = chart.rows_of(measured())
    assert [row.name for row in rows] == ["mem read 4k", "mem read 4k x8"]
    other = chart.Row("siw read 4k", "siw", rows[0].ratios)
    assert chart.places([*rows, other, other]) == [0, 1, 3, 4]
    commands = chart.script(rows, Path("out.svg"))
    assert "1.5000 1.5000 1.5000" in commands and '"mem read 4k x8" 1' in commands


def test_drawing_has_a_licence_and_no_version() -> None:
    tidy = chart.tidy('<?xml version="1.0"?>\n<svg>\n<title>Gnuplot</title>\n'
                      "<desc>Produced by GNUPLOT 5.4</desc>\n</svg>\n")
    assert "GNUPLOT" not in tidy and "SPDX-License-Identifier" in tidy[:200]


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
   uml-userspace     8   ffffffff81000000
    Web Content 1     9           60002110
"""


def test_where_parts_of_a_kernel_begin() -> None:
    assert parts.layout(parts.symbols(NM), PART_OF) == LAYOUT


def test_cpu_time_belongs_to_parts() -> None:
    taken = perf.parse(SCRIPT)
    assert taken[0] == ("linux", 7, 0x60001004)
    assert taken[-1] == ("Web Content 1", 9, 0x60002110)
    code = {"transport": range(0x602000000, 0x602001000), "nfsv3": range(0x60001000, 0x60002000)}
    found = parts.cpu_time(taken, 7, LAYOUT, code)
    assert {key: value // perf.PERIOD for key, value in found.items() if value} == {
        "kernel_ns": 1, "transport_ns": 1, "switching_ns": 2, "libraries_ns": 1, "host_ns": 2,
        "programs_ns": 1}


def test_starting_fio_does_not_count() -> None:
    assert bench.without_start({"us": 9, "ops": 5, "cpu_ns": 100, "host_ns": 40},
                               {"us": 1, "ops": 1, "cpu_ns": 10, "host_ns": 5}) == {
        "us": 9, "ops": 5, "cpu_ns": 90, "host_ns": 35}


def test_names_and_variants_of_jobs() -> None:
    found = {job.name: job for job in JOBS}
    assert len(found) == len(JOBS) and JOBS[0].name == "mem read 4k"
    assert {"mem create", "mem bare write 1m at 1000 MB/s",
            "mem mix 8k x8", "mem buffered read 64k", "siw buffered write 64k",
            "rxe stat"} <= set(found)
    assert found["mem write 8k"].variants == (INBOX, TUNED, OURS, OURS_4096)
    assert found["siw read 4k"].variants == (INBOX, TUNED, OURS, OURS_2)
    assert found["mem read 16k"].variants == found["rxe stat"].variants == (INBOX, TUNED, OURS)


def test_jobs_that_are_chosen() -> None:
    assert [job.name for job in bench.chosen("memory")] == ["mem memory"]
    assert [job.name for job in bench.chosen("mem read 4k")] == ["mem read 4k", "mem read 4k x8"]
    assert [job.direction for job in bench.chosen("program")] == [*PROGRAMS]
    assert [job.name for job in bench.chosen("*program git-*")] == [
        "mem program git-clone", "mem program git-status"]
    assert len(bench.chosen("*")) == len(JOBS) - 1 - len(PROGRAMS) - len(SCALE)


def test_programs_have_elapsed_time() -> None:
    known = re.findall(r"^\t([\w-]+)\) ", (LAB / "guest/programs.sh").read_text(), re.M)
    assert {*PROGRAMS} <= {*known}
    samples: Sampled = {(Job(MEM, name), variant): [
        {"elapsed_us": seconds * 10**6, "rpcs": 1000, "switches": 2000}]
        for name in PROGRAMS for variant, seconds in (
            (INBOX, 3), (TUNED, 2), (OURS, 3 if name == "sqlite" else 1), (TCP, 4))}
    found = report.Measured({}, 1, bench.chosen("program"), samples, {}, {}, {}, {})
    tables = {title: table for title, table in report.tables(found) if table}
    cells = [cell.strip() for cell in tables["Programs over NFSv4.2"].splitlines()[2].split("|")]
    assert cells[1:-1] == ["mem program tar-x", "3.00", "2.00", "1.00", "4.00", "0.50", "0.33",
                           "0.25"]
    assert "1,000" in tables["Seconds and RPCs of programs"]
    assert [*report.goal_lines(found)] == [
        "Goal met: geometric mean of seconds: at most 0.95: it is 0.56",
        "Goal missed: each row of seconds: not above 1.00: mem program sqlite 1.50"]
    assert [*report.worse_rows(found)] == [
        "Ours is worse than inbox tuned: mem program sqlite: seconds 1.50"]


def scaled(variant: Variant, connections: int) -> Sample:
    """A sample of a row with many connections. With 10,000 ours takes too much CPU time."""
    inbox = variant == INBOX
    return sample_of(1000, 200 if inbox else 106 if connections == 10000 else 100) | {
        "connections": connections, "resting": connections,
        "used": connections * (6000 if inbox else 150), "used_device": 50 * connections,
        "up_us": 2000 * connections, "again_us": 1000 * connections,
        **({} if inbox else {"show_us": 50 * connections})}


def measured_scale() -> report.Measured:
    """The kernel's own module gets to 1,024 connections."""
    jobs = bench.chosen("scale*")
    samples: Sampled = {
        (job, variant): [scaled(variant, job.connections)] for job in jobs
        for variant in job.variants if variant == OURS or job.connections <= 1024}
    return report.Measured({}, 1, jobs, samples, {}, {}, {}, {})


def test_many_connections_are_told() -> None:
    assert [job.name for job in bench.chosen("scale*")] == [f"scale {number}" for number in SCALE]
    found = measured_scale()
    text = next(table for title, table in report.tables(found) if title.startswith("Many conn"))
    cells = [[cell.strip() for cell in line.split("|")[1:-1]] for line in text.splitlines()[2:]]
    assert cells[0] == ["scale 1", "inbox", "1,000", "200.0", ratio.NOTHING, ratio.NOTHING, "0.00",
                        "0.00", ratio.NOTHING]
    assert cells[-1] == ["scale 10000", "ours", "1,000", "106.0", "150", "100", "20.00", "10.00",
                         "0.50"]
    assert [*report.goal_lines(found)] == [
        "Goal missed: CPU time with many connections: at most 1.05 of that with one: "
        "scale 10000 1.06",
        "Goal met: s until all are up, with 10,000 connections: at most 30: it is 20.00",
        "Goal met: s after a restart, with 10,000 connections: at most 15: it is 10.00",
        "Goal met: s for rpcrdma show, with 10,000 connections: at most 1: it is 0.50"]
    assert '"KiB without the device"' in json.dumps(report.as_json(found), allow_nan=False)


def test_chart_of_many_connections() -> None:
    assert not chart.scale_panels(measured())
    panels = chart.scale_panels(measured_scale())
    assert len(panels) == len(chart.PANELS)
    assert "10000 100.0000" in panels[0] and "1024 5950.0000" in panels[0]
    assert "set multiplot" in chart.scale_script(panels, Path("out.svg"))


def test_more_connections_than_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    """Those are left out. If the kernel's own module fails, a new guest goes on with ours."""
    done: list[tuple[str, int]] = []
    fails: list[tuple[str, int]] = []

    def session(run: bench.Bench, _what: str, _measure: bench.Measure, variant: Variant,
                jobs: list[Job]) -> None:
        done.append((variant.name, jobs[0].connections))
        if done[-1] in fails:
            raise GuestFailure("planted")
        run.timed[jobs[0], variant] = [scaled(variant, jobs[0].connections)]

    monkeypatch.setattr(bench.Bench, "session", session)
    monkeypatch.setattr(bench.Bench, "begin", lambda _self, device: done.append((device, 0)))
    run = bench.Bench.__new__(bench.Bench)
    run.rounds, run.timed = 1, collections.defaultdict(list)
    run.jobs, run.scales, run.programs = bench.chosen("scale*"), True, False
    run.guest = types.SimpleNamespace(memory=bench.SCALE_MIB,   # type: ignore[assignment]
                                      last_lines=lambda: [])
    run.all()
    assert done == [("mem", 0), *(("inbox", number) for number in SCALE[:-1]),
                    *(("ours", number) for number in SCALE)]
    done.clear()
    fails.append(("inbox", 256))
    run.all()
    assert done[:5] == [("mem", 0), ("inbox", 1), ("inbox", 16), ("inbox", 256), ("mem", 0)]
    assert done[5:] == [("ours", number) for number in SCALE]
    fails.append(("ours", 256))
    with pytest.raises(GuestFailure):
        run.all()
    done.clear()
    run.rounds = 0
    run.all()
    assert done == [("mem", 0), ("inbox", 1), ("ours", 1), ("ours", 1024)]


def test_variants_take_turns(monkeypatch: pytest.MonkeyPatch) -> None:
    done: list[tuple[Variant, int]] = []
    monkeypatch.setattr(bench.Bench, "session", lambda _self, _what, _measure, variant, jobs:
                        done.append((variant, len(jobs))))
    run = bench.Bench.__new__(bench.Bench)
    run.rounds = 2
    run.time([Job(MEM, "read", 1024, number) for number in range(bench.IN_TURN + 2)])
    turns = [(variant, count) for count in (bench.IN_TURN, 2) for variant in (INBOX, TUNED, OURS)]
    assert done == turns + [turns[at] for at in (2, 1, 0, 5, 4, 3)]
    done.clear()
    run.rounds = 1
    run.time([Job(MEM, name) for name in PROGRAMS])
    assert done == [(variant, 1) for variant in (INBOX, TUNED, OURS, TCP)] * len(PROGRAMS)
