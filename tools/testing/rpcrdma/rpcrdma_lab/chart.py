# SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
"""The charts of the benchmark, of its ratios or of many connections, drawn by gnuplot."""

import dataclasses
import re
from collections.abc import Sequence
from pathlib import Path

from .figures import AGAIN, CPU_TIME, INBOX, IOPS, KIB_ALONE, OURS, P99, SCALE, UP, median
from .host import run
from .report import Measured
from .ratio import Ratio

# Packages that it needs, and the other parts of the lab do not
PACKAGES = ("gnuplot-nox",)

# What it shows: figure, words of the legend, colour and shape of its points. The colours
# differ for those who see few, too.
SERIES = ((IOPS, "IOPS (right is better)", "#0072b2", 9),
          (CPU_TIME, "CPU time (left is better)", "#d55e00", 7),
          (P99, "p99 of latency (left is better)", "#009e73", 5))
TICS = (0.125, 0.25, 0.5, 0.75, 1, 1.25, 1.5, 2, 3, 4, 6, 8)

# The chart of many connections: its panels; which of them begin at 0; the variants
PANELS = ((KIB_ALONE, False), (CPU_TIME, True), (UP, False), (AGAIN, False))
MODULES = ((INBOX, "kernel's own", "#d55e00", 7), (OURS, "ours", "#0072b2", 9))

WIDTH, ROW, MARGIN = 900, 22, 120       # pixels
LICENCE = "<!-- SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause -->"


@dataclasses.dataclass(frozen=True)
class Row:
    """One line of the chart: its name, and for each of SERIES the ratio."""
    name: str
    device: str
    ratios: tuple[Ratio, ...]


def rows_of(found: Measured) -> list[Row]:
    """The rows in which variants are compared."""
    return [Row(job.name, job.device, tuple(found.ratio(job, figure) for figure, *_ in SERIES))
            for job in found.rows if job.compares]


def places(rows: Sequence[Row]) -> list[int]:
    """How far down each row is. Before each device but the first there is an empty line."""
    devices = list(dict.fromkeys(row.device for row in rows))
    return [number + devices.index(row.device) for number, row in enumerate(rows)]


def limits(rows: Sequence[Row]) -> tuple[float, float]:
    """The least and the greatest ratio that the chart has room for."""
    values = [value for row in rows for ratio in row.ratios if ratio.measured
              for value in ratio.ends]
    return min([0.7, *values]) / 1.05, max([1.4, *values]) * 1.05


def script(rows: Sequence[Row], output: Path) -> str:
    """gnuplot's commands."""
    down = places(rows)
    least, most = limits(rows)
    labels = ", ".join(f'"{row.name}" {place}' for row, place in zip(rows, down))
    tics = ", ".join(f'"{tic:g}" {tic}' for tic in TICS if least <= tic <= most)
    data: list[str] = []
    plots: list[str] = []
    for number, (_, words, colour, shape) in enumerate(SERIES):
        # Side by side, so that no point hides another
        shift = 0.16 * (number - (len(SERIES) - 1) / 2)
        lines = [f"{place + shift:.2f} {ratio.middle:.4f} {ratio.ends[0]:.4f} {ratio.ends[1]:.4f}"
                 for row, place in zip(rows, down) if (ratio := row.ratios[number]).measured]
        if lines:
            data.append("\n".join([f"$series{number} << END", *lines, "END"]))
            plots.append(f"$series{number} using 2:1:3:4 with xerrorbars pt {shape} ps 0.7 lw 1.2 "
                         f'lc rgb "{colour}" title "{words}"')
    height = MARGIN + ROW * (down[-1] + 1)
    return "\n".join([
        f'set terminal svg size {WIDTH},{height} fixed background "white" '
        'font "sans-serif,12" noenhanced',
        f'set output "{output}"',
        "set encoding utf8",
        "set logscale x 2",
        f"set xrange [{least:.4f}:{most:.4f}]",
        f"set yrange [{down[-1] + 0.7}:-0.7]",
        f"set xtics ({tics})",
        f"set ytics scale 0 ({labels})",
        'set grid xtics ytics lt 1 lw 0.5 lc rgb "#d0d0d0"',
        'set arrow from 1, graph 0 to 1, graph 1 nohead lw 1.5 lc rgb "black"',
        'set xlabel "ours divided by the kernel\'s own module with the same inline sizes"',
        "set key outside top center horizontal maxcols 2",
        "set errorbars small",
        *data,
        "plot " + ", ".join(plots), ""])


def scale_panels(found: Measured) -> list[str]:
    """gnuplot's commands for the figures of many connections, each in a panel of its own."""
    panels = []
    for figure, from_0 in PANELS:
        data: list[str] = []
        plots: list[str] = []
        for variant, words, colour, shape in MODULES:
            lines = [f"{job.connections} {value:.4f}" for job in found.rows if job.connections
                     if (value := median(found.values(job, variant, figure))) > 0]
            if lines:
                data += [f"${variant.module} << END", *lines, "END"]
                plots.append(f"${variant.module} with linespoints pt {shape} ps 0.7 lw 1.5 "
                             f'lc rgb "{colour}" title "{words}"')
        if plots:
            panels.append("\n".join([
                *data, f'set title "{figure.title}"',
                *(["unset logscale y", "set yrange [0:*]"] if from_0
                  else ["set logscale y", "set yrange [*:*]"]),
                "plot " + ", ".join(plots)]))
    return panels


def scale_script(panels: Sequence[str], output: Path) -> str:
    """gnuplot's commands."""
    tics = ", ".join(f'"{number:,}" {number}' for number in SCALE)
    return "\n".join([
        f'set terminal svg size {WIDTH},600 fixed background "white" '
        'font "sans-serif,12" noenhanced',
        f'set output "{output}"',
        "set encoding utf8",
        "set logscale x",
        f"set xrange [0.7:{1.5 * SCALE[-1]}]",
        f"set xtics ({tics})",
        'set grid xtics ytics lt 1 lw 0.5 lc rgb "#d0d0d0"',
        'set xlabel "connections"',
        "set key top left",
        # Room for the key
        "set offsets 0, 0, graph 0.35, 0",
        "set multiplot layout 2,2",
        *panels, "unset multiplot", ""])


def tidy(svg: str) -> str:
    """Add the licence and a title; leave out gnuplot's version, which differs on each Debian."""
    svg = re.sub(r"<desc>.*?</desc>\s*", "", svg, flags=re.S)
    svg = re.sub(r"<title>Gnuplot</title>", "<title>figures of the benchmark</title>", svg)
    head, rest = svg.split("\n", 1)
    return f"{head}\n{LICENCE}\n<!-- Made by make bench -->\n{rest}"


def draw(found: Measured, file: Path, scratch: Path) -> bool:
    """Draw the chart. Returns whether there was something to draw."""
    rows = rows_of(found)
    commands = scratch / "chart.gnuplot"
    drawn = scratch / "chart.svg"
    if any(ratio.measured for row in rows for ratio in row.ratios):
        commands.write_text(script(rows, drawn))
    elif panels := scale_panels(found):
        commands.write_text(scale_script(panels, drawn))
    else:
        return False
    run("gnuplot", commands)
    file.write_text(tidy(drawn.read_text()))
    return True
