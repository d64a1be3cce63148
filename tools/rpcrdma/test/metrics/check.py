#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
"""
check.py PROMTOOL

Whether Prometheus understands golden/metrics*.txt and Documentation/monitoring, and whether the
program prints the metrics that these and the manual page name. Prints KTAP. Without promtool its
tests are skipped.
"""

import itertools
import json
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TypeAlias

import yaml     # type: ignore

Json: TypeAlias = "dict[str, Json] | list[Json] | str | int | float | bool | None"

HERE = Path(__file__).resolve().parent
TOP = HERE.parents[3]
GOLDEN = HERE.parent / "golden"
RULES = TOP / "Documentation/monitoring/rpcrdma.rules.yml"
DASHBOARD = TOP / "Documentation/monitoring/rpcrdma.dashboard.json"
PAGE = TOP / "tools/rpcrdma/man/rpcrdma.8"

METRIC = re.compile(r"\brpcrdma_\w+")
COLUMNS = 24    # of Grafana


def families() -> dict[str, str]:
    """The types of the metrics that the program prints, by name."""
    return dict(re.findall(r"^# TYPE (\w+) (\w+)$", (GOLDEN / "metrics.txt").read_text(), re.M))


def series() -> set[str]:
    """The names that samples can have."""
    return {name + suffix for name, kind in families().items()
            for suffix in (("_bucket", "_count") if kind == "histogram" else ("",))}


def strings(value: Json, key: str) -> Iterator[str]:
    """All strings that are a member of that name, however deep."""
    if isinstance(value, dict):
        for name, member in value.items():
            if name == key and isinstance(member, str):
                yield member
            yield from strings(member, key)
    elif isinstance(value, list):
        for item in value:
            yield from strings(item, key)


def dashboard() -> dict[str, Json]:
    """The dashboard."""
    read: Json = json.loads(DASHBOARD.read_text())
    assert isinstance(read, dict)
    return read


def expressions() -> list[str]:
    """The expressions of the dashboard, for a host of any name."""
    return [text.replace("$instance", ".*") for text in strings(dashboard(), "expr")]


def metrics_text() -> list[str]:
    """What is wrong with the text itself, where promtool does not look."""
    wrong = []
    for path in sorted(GOLDEN.glob("metrics*.txt")):
        text = path.read_text()
        if "# TYPE" not in text:
            continue
        if not text.endswith("\n# EOF\n"):
            wrong.append(f"{path.name} does not end with # EOF")
        samples = re.findall(r"^rpcrdma_\w+(?:\{.*\})?(?= \d+$)", text, re.M)
        wrong += [f"{path.name}: {name} twice" for name in set(samples) if samples.count(name) > 1]
        if len(samples) != len(re.findall(r"^r", text, re.M)):
            wrong.append(f"{path.name}: a line is no sample")
        for name, unit in re.findall(r"^# UNIT (\w+) (\w+)$", text, re.M):
            if not re.search(rf"_{unit}(_total)?$", name):
                wrong.append(f"{name} does not end with its unit, {unit}")
    wrong += [f"{name} is a {kind}: its name is wrong" for name, kind in families().items()
              if name.endswith("_total") != (kind == "counter")]
    return wrong


def names() -> list[str]:
    """Metrics of the rules, the dashboard or the manual page that there are not."""
    rules: Json = yaml.safe_load(RULES.read_text())
    have = series()
    wrong = [f"{path.name}: there is no metric {name}"
             for path, texts in ((RULES, strings(rules, "expr")), (DASHBOARD, expressions()))
             for text in texts for name in METRIC.findall(text) if name not in have]
    told = set(re.findall(r"^\.It Li (rpcrdma_\w+)", PAGE.read_text(), re.M))
    return wrong + [f"{PAGE.name}: there is no metric {name}" for name in told
                    if not any(family.startswith(name) for family in families())]


def windows() -> list[str]:
    """Functions for counters that are used on gauges, or the other way round."""
    rules: Json = yaml.safe_load(RULES.read_text())
    return [f"{function}({name}): that is no {wanted}"
            for text in (*strings(rules, "expr"), *expressions())
            for function, name in re.findall(r"\b(rate|increase|delta|deriv)\((rpcrdma_\w+)", text)
            for wanted in ["counter" if function in ("rate", "increase") else "gauge"]
            if name.endswith(("_total", "_bucket")) != (wanted == "counter")]


def structure() -> list[str]:
    """What Grafana would not like about the dashboard."""
    board = dashboard()
    panels = board["panels"]
    assert isinstance(panels, list)
    wrong = [f"the dashboard has no {name}" for name in
             ("title", "uid", "schemaVersion", "time", "templating") if not board.get(name)]
    taken: set[tuple[int, int]] = set()
    seen = set()
    for panel in panels:
        assert isinstance(panel, dict)
        seen.add(panel["id"])
        grid = panel["gridPos"]
        assert isinstance(grid, dict)
        x, y, w, h = (int(str(grid[name])) for name in "xywh")
        cells = set(itertools.product(range(x, x + w), range(y, y + h)))
        if x + w > COLUMNS or cells & taken:
            wrong.append(f"{panel['title']} has no place")
        taken |= cells
        targets = panel["targets"]
        assert isinstance(targets, list)
        letters = list(strings(targets, "refId"))
        if len(set(letters)) != len(targets) or not all(strings(targets, "expr")):
            wrong.append(f"{panel['title']}: a target has no refId or expression of its own")
        if set(strings(panel, "uid")) != {"${datasource}"}:
            wrong.append(f"{panel['title']} has a data source of its own")
    return wrong + ["panels have the same id"] * (len(seen) != len(panels))


def promtool(program: str, *words: str, text: str = "") -> list[str]:
    """What promtool says; nothing if all is well."""
    done = subprocess.run([program, *words], input=text, text=True, stdout=subprocess.PIPE,
                          stderr=subprocess.STDOUT, timeout=60, check=False)
    return done.stdout.splitlines() or ["promtool failed"] if done.returncode else []


def lint(program: str) -> list[str]:
    """What promtool says about the text."""
    wrong = []
    for path in sorted(GOLDEN.glob("metrics*.txt")):
        text = path.read_text()
        if text.startswith("# HELP"):
            wrong += promtool(program, "check", "metrics", text=text)
    return wrong


def dashboard_rules(program: str) -> list[str]:
    """What promtool says about the dashboard's expressions, as those of rules."""
    rules = [{"record": "dashboard:panel:expression", "expr": text, "labels": {"n": str(number)}}
             for number, text in enumerate(expressions())]
    with tempfile.NamedTemporaryFile("w", suffix=".yml") as file:
        yaml.safe_dump({"groups": [{"name": "dashboard", "rules": rules}]}, file)
        file.flush()
        return promtool(program, "check", "rules", file.name)


def main() -> int:
    """Returns the exit status."""
    program = shutil.which(sys.argv[1])
    tests: list[tuple[str, Callable[[], list[str]]]] = [
        ("the text ends, and has each sample once", metrics_text),
        ("rules, dashboard and manual page name the metrics that there are", names),
        ("counters and gauges are used as such", windows),
        ("the dashboard is one of Grafana's", structure)]
    tools: list[tuple[str, Callable[[str], list[str]]]] = [
        ("promtool check metrics", lint),
        ("promtool check rules", lambda tool: promtool(tool, "check", "rules", str(RULES))),
        ("promtool check rules, of the dashboard", dashboard_rules),
        ("promtool test rules",
         lambda tool: promtool(tool, "test", "rules", str(HERE / "rules_test.yml")))]
    failed = 0
    print(f"KTAP version 1\n1..{len(tests) + len(tools)}")
    for number, (name, test) in enumerate(tests, 1):
        failed += report(number, name, test())
    for number, (name, check) in enumerate(tools, len(tests) + 1):
        if program:
            failed += report(number, name, check(program))
        else:
            print(f"ok {number} - {name} # SKIP there is no {sys.argv[1]}")
    return int(failed > 0)


def report(number: int, name: str, wrong: list[str]) -> bool:
    """Print the result of a test. Returns whether it failed."""
    for line in wrong:
        print(f"# {line}")
    print(f"{'not ok' if wrong else 'ok'} {number} - {name}")
    return bool(wrong)


if __name__ == "__main__":
    sys.exit(main())
