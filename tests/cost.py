"""What a test costs: the Spark jobs that it runs and the processes that it starts. Both are counted; time never fails a test.

`make test` leaves out the tests marked `deep`. Three rules keep the mark true, and break the run of whoever forgets it: a test
without the mark stays under `MOST_JOBS` and `MOST_PROCESSES`, a test with the mark needs it, and all tests without it together
stay under `TOTAL_JOBS`. A test that `tests/promises.py` names as a proof runs at least one Spark job.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from tests.promises import PROOFS

MOST_JOBS, MOST_PROCESSES, TOTAL_JOBS = 70, 8, 1_350
"""Of a test without the mark `deep`; and of all of them together."""
FEWEST_JOBS = 1
"""A batch of plain declarations runs one job. A `deep` test runs at least as many, starts a process, or has one of
`HEAVY_FIXTURES`. One that runs for many parameters is deep for all of them together, and a file whose tests build on each other
is deep as a whole."""
HEAVY_FIXTURES = {"start_driver", "shared_twin", "queue"}
"""Drivers of a test's own, and stacks that it deploys into a twin."""
HEAVY = ("python", "java", "spark", "forebay", "node", "cdk")


@dataclass(frozen=True)
class Cost:
    jobs: int = 0
    processes: int = 0

    def __sub__(self, before: Cost) -> Cost:
        return Cost(self.jobs - before.jobs, self.processes - before.processes)


class Meter:
    """Counts in this process. A session that was replaced begins at 0 again, so what it ran is added up."""

    def __init__(self) -> None:
        self.processes, self.earlier, self.last = 0, 0, 0
        self.context: Any = None
        self.scheduler: Any = None
        self.not_counted = Cost()
        sys.addaudithook(self.notice)

    def notice(self, event: str, args: tuple[Any, ...]) -> None:
        if event in ("subprocess.Popen", "os.posix_spawn") and Path(str(args[0])).name.startswith(HEAVY):
            self.processes += 1

    def now(self) -> Cost:
        return Cost(self.jobs(), self.processes) - self.not_counted

    def jobs(self) -> int:
        """Asks the JVM once: thousands of tests that need none run in a process that has one."""
        context = _context()
        if context is not None:
            if context is not self.context:
                self.context, self.scheduler = context, context._jsc.sc().dagScheduler()
                self.earlier, self.last = self.earlier + self.last, 0
            self.last = int(self.scheduler.numTotalJobs())
        return self.earlier + self.last


def _context() -> Any:
    """The running SparkContext, without importing PySpark for it."""
    pyspark = sys.modules.get("pyspark.core.context") or sys.modules.get("pyspark.context")
    context = pyspark.SparkContext._active_spark_context if pyspark else None
    return context if context is not None and context._jsc is not None else None


METER = Meter()
TOTAL = pytest.StashKey[int]()


@contextmanager
def uncounted() -> Iterator[None]:
    """What all tests of a worker share is charged to none of them."""
    before = METER.now()
    yield
    spent = METER.now() - before
    METER.not_counted = Cost(METER.not_counted.jobs + spent.jobs, METER.not_counted.processes + spent.processes)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_protocol(item: pytest.Item) -> Any:
    item.stash[BEFORE] = METER.now()
    return (yield)


BEFORE = pytest.StashKey[Cost]()


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item: pytest.Item, call: pytest.CallInfo[None]) -> Any:
    report = yield
    if report.when == "call":
        METER.now()  # the last test's teardown ends the session
    if report.when == "teardown":
        cost = METER.now() - item.stash[BEFORE]
        report.user_properties.append(("cost", (cost.jobs, cost.processes, is_deep(item))))
        if report.passed and (problem := problem_of(item, cost)):
            report.outcome, report.longrepr = "failed", problem
    return report


def problem_of(item: Any, cost: Cost) -> str | None:
    told = f"{item.nodeid} ran {cost.jobs} Spark jobs and started {cost.processes} processes"
    if not is_deep(item) and (cost.jobs > MOST_JOBS or cost.processes > MOST_PROCESSES):
        return f"{told}; mark it `deep`, or make it cheaper (at most {MOST_JOBS} and {MOST_PROCESSES}: tests/cost.py)"
    many = hasattr(item, "callspec") or HEAVY_FIXTURES & {*item.fixturenames}
    marked = any(mark.name == "deep" for mark in item.own_markers)
    if marked and cost.jobs < FEWEST_JOBS and not cost.processes and not many:
        return f"{told}; it is too cheap for the mark `deep` (tests/cost.py)"
    if item.nodeid.partition("[")[0] in PROVING and not cost.jobs and item.funcargs.keys() & {"spark", "told"}:
        return f"{told}; tests/promises.py names it as a proof, which needs a real Spark job"
    return None


PROVING = {test for tests in PROOFS.values() for test in tests}


def is_deep(item: pytest.Item) -> bool:
    return item.get_closest_marker("deep") is not None


def pytest_terminal_summary(terminalreporter: Any, config: pytest.Config) -> None:
    costs = [cost for reports in terminalreporter.stats.values() for cost in _costs(reports)]
    jobs = sum(cost[0] for cost in costs if not cost[2])
    config.stash[TOTAL] = jobs
    deep = sum(cost[0] for cost in costs if cost[2])
    terminalreporter.write_line(f"Spark jobs: {jobs} (at most {TOTAL_JOBS}), and {deep} of tests marked deep")
    if jobs > TOTAL_JOBS:
        terminalreporter.write_line("Too many: mark tests `deep`, or make them cheaper (tests/cost.py)", red=True)


def _costs(reports: list[Any]) -> Iterator[tuple[int, int, bool]]:
    for report in reports:
        if getattr(report, "when", None) == "teardown":
            yield from (value for name, value in report.user_properties if name == "cost")


@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_sessionfinish(session: pytest.Session) -> Any:
    result = yield
    if session.config.stash.get(TOTAL, 0) > TOTAL_JOBS and session.exitstatus == 0:
        session.exitstatus = pytest.ExitCode.TESTS_FAILED
    return result
