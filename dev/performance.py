"""Runs benches, keeps what they gave in docs/performance.json, and writes the tables and charts of docs/performance.md.

    python -m dev.performance pipeline latency     # runs these, three times each; the others keep their results
    python -m dev.performance                      # runs nothing: writes the page again

In: benches of tests/bench. Out: the page and its pictures. No figure of it is typed by hand: tests/test_docs.py fails if the
page differs from the results.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import re
import statistics
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from dev.bar_chart import Bar, chart

DOCS = Path(__file__).resolve().parent.parent / "docs"
PAGE, RESULTS = DOCS / "performance.md", DOCS / "performance.json"
PEERS = {
    "forebay": "forebay, one table a game",
    "one_table_by_hand": "Spark by hand, one partitioned table",
    "file_stream": "readStream.json with foreachBatch, one table a game",
    "functions": "a function per file with boto3 and deltalake",
    "duckdb": "DuckDB read_json and deltalake",
}
RATES = (10, 100, 1_000, 10_000)
FILE_KB, TABLES, FRESHNESS_S, BUSY, HOURS = 10, 11, 300, 0.7, 4
"""Of the cost model. `BUSY`: the share of its capacity that a job uses on average; `HOURS`: how long arrivals are simulated."""

Results = Mapping[str, Any]


def pages(results: Results, page: str) -> dict[str, str]:
    """By file name in docs/: the page with its parts written again, and its pictures."""
    parts = {"bars": _bars(results), "cost": _cost(results)}
    pictures = {"performance.svg": _bars_chart(results)}
    if "peers" in results:
        parts["peers"], pictures["peers.svg"] = _peers(results), _peers_chart(results)
    for name, text in parts.items():
        made = re.compile(rf"(<!-- made: {name} -->\n).*?(<!-- end -->)", re.S)
        assert made.search(page), name
        page = made.sub(lambda found, text=text: f"{found[1]}{text}\n{found[2]}", page)
    return {PAGE.name: page} | pictures


def keep(results: dict[str, Any], name: str, runs: Sequence[Mapping[str, Any]]) -> None:
    """`runs`: the figures and bars that a bench printed, once for each run."""
    results[name] = {"on": datetime.now(UTC).date().isoformat(), "machine": _machine(), "runs": list(runs)}


def _machine() -> str:
    memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 2**30
    return f"{os.cpu_count()} cores ({platform.machine()}), {memory:.0f} GiB, Python {platform.python_version()}"


# --- bars ---


@dataclass(frozen=True)
class Held:
    """A bar in all runs of a bench. `upwards`: more is better."""

    bench: str
    name: str
    values: Sequence[float]
    limit: float
    upwards: bool

    @property
    def middle(self) -> float:
        return statistics.median(self.values)

    @property
    def holds(self) -> bool:
        return self.middle >= self.limit if self.upwards else self.middle <= self.limit

    @property
    def of_limit(self) -> float:
        """How much of what is allowed was used: more than 1 is too much."""
        return self.limit / self.middle if self.upwards else self.middle / self.limit


def _held(results: Results) -> Iterator[Held]:
    for bench, result in results.items():
        for number, bar in enumerate(result["runs"][0]["bars"]):
            values = [run["bars"][number]["value"] for run in result["runs"]]
            upwards = "at_least" in bar
            yield Held(bench, bar["name"], values, bar["at_least" if upwards else "at_most"], upwards)


def _bars(results: Results) -> str:
    lines = ["| bench | what | median | all runs | limit | holds |", "| --- | --- | ---: | --- | ---: | --- |"]
    for bar in _held(results):
        every = ", ".join(f"{value:g}" for value in bar.values)
        limit = f"at {'least' if bar.upwards else 'most'} {bar.limit:g}"
        holds = "yes" if bar.holds else "**no**"
        lines.append(f"| `{bar.bench}` | {bar.name} | {bar.middle:g} | {every} | {limit} | {holds} |")
    dates = ", ".join(f"`{bench}` on {result['on']}" for bench, result in results.items())
    machines = "; ".join(sorted({result["machine"] for result in results.values()}))
    return "\n".join([*lines, "", f"Measured: {dates}.", "", f"Machine: {machines}."])


def _bars_chart(results: Results) -> str:
    bars = [
        Bar(bar.name, bar.of_limit, f"{bar.middle:g}; limit {bar.limit:g}", "good" if bar.holds else "bad")
        for bar in _held(results)
    ]
    return chart("Each figure against its limit", "Bars that end before the line hold their limit.", bars, 1)


# --- peers ---


def _seconds(results: Results) -> dict[str, list[float]]:
    runs = [run["figures"] for run in results["peers"]["runs"]]
    return {name: [second for run in runs for second in run[f"{name}_rounds_s"]] for name in PEERS}


def _peers(results: Results) -> str:
    figures = results["peers"]["runs"][0]["figures"]
    taken = _seconds(results)
    ours = statistics.median(taken["forebay"])
    lines = ["| way | seconds | least to most | forebay takes |", "| --- | ---: | --- | ---: |"]
    for name, seconds in taken.items():
        middle = statistics.median(seconds)
        spread = f"{min(seconds):.1f} to {max(seconds):.1f}"
        lines.append(f"| {PEERS[name]} | {middle:.1f} | {spread} | {ours / middle:.2f} times |")
    size = f"{figures['files']} files, {figures['records']:,} records, {figures['bytes'] / 1e6:.0f} MB"
    return "\n".join([f"{size}, {figures['games']} tables.", "", *lines])


def _peers_chart(results: Results) -> str:
    bars = [
        Bar(PEERS[name], middle, f"{middle:.1f} s", "plain" if name == "forebay" else "other")
        for name, middle in ((name, statistics.median(seconds)) for name, seconds in _seconds(results).items())
    ]
    return chart("Seconds for the same files", "Seconds of each way to load the same files; less is better.", bars)


# --- cost ---


def _cost(results: Results) -> str:
    from forebay.aws.prices import read_prices
    from forebay.capacity.rules import Rules
    from forebay.capacity.runs import Truth
    from forebay.capacity.simulation import simulate
    from infra.costs import Size, month, per_million
    from infra.settings import Settings

    small = [run["figures"] for run in results["small_files"]["runs"]]
    each = 1 / statistics.median(figures["files_a_second"] for figures in small)
    fixed = statistics.median(run["figures"]["batch_s"] for run in results["latency"]["runs"])
    lines = [
        "| files a second | workers | put to queryable, p50 | p99 | USD for a million files |",
        "| ---: | ---: | ---: | ---: | ---: |",
    ]
    for rate in RATES:
        workers = 1 + max(1, -(-round(rate * each * 1000) // round(BUSY * 1000)))
        truth = Truth(
            lambda files, at_once=workers - 1: fixed + files * each / at_once,
            batch_files=max(2_000, rate * Rules(FRESHNESS_S).batch_every_s),
        )
        done = simulate([(float(at), rate * 10) for at in range(0, HOURS * 3600, 10)], Rules(FRESHNESS_S), truth)
        on = min(24.0, done.billed_s / 3600 / HOURS * 24)
        size = Size(f"{rate}", rate * 86_400, FILE_KB, TABLES, workers, on, 0, 30, Settings(worker_type="G.1X"))
        usd = per_million(size, read_prices(parts=month(size).keys()))
        p50, p99 = (f"{done.percentile(share):.0f} s" for share in (0.5, 0.99))
        lines.append(f"| {rate:,} | {workers} | {p50} | {p99} | {usd:.2f} |")
    return "\n".join(lines)


def _run(name: str) -> dict[str, Any]:
    done = subprocess.run([sys.executable, "-m", f"tests.bench.{name}"], stdout=subprocess.PIPE, text=True, check=True)
    found: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    print(json.dumps(found["bars"]), flush=True)
    return found


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("bench", nargs="*")
    options.add_argument("--runs", type=int, default=3)
    asked = options.parse_args()
    results = json.loads(RESULTS.read_text()) if RESULTS.exists() else {}
    for name in asked.bench:
        keep(results, name, [_run(name) for _ in range(asked.runs)])
        RESULTS.write_text(json.dumps(results, indent=1) + "\n")
    for file, text in pages(results, PAGE.read_text()).items():
        (DOCS / file).write_text(text)


if __name__ == "__main__":
    main()
