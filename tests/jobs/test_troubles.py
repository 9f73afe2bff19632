"""An alarm has numbers of tables in trouble with each batch: mostly zeros."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import forebay.jobs.journal as journals
from forebay.batch.events import BatchCommitted, ExpectationFailed, ExpectationViolated, TableFailed
from forebay.events import Event
from forebay.jobs.troubles import Troubles, TroublesCounted
from forebay.settings import IngestSettings
from forebay.table.events import CatalogEntryForeign, ColumnsLeftOut


def batch() -> BatchCommitted:
    counts = dict.fromkeys(("files", "bytes", "records", "written", "quarantined", "parked", "tables"), 1)
    times = dict.fromkeys(("claim_seconds", "read_seconds", "write_seconds", "ledger_seconds", "seconds"), 1.0)
    return BatchCommitted(service="games", batch=3, **counts, **times)


def test_each_batch_tells_how_many_tables_were_in_trouble_since_the_last_one() -> None:
    told: list[Event] = []
    troubles = Troubles(told.append)
    failed = TableFailed(service="games", table="alpha", batch=3, rows=5, error="no")
    full = ColumnsLeftOut(table="beta", such_as="a", columns=9)
    foreign = CatalogEntryForeign(table="beta", database="games", entry="ICEBERG at s3://other/beta")
    for event in (batch(), failed, failed, full, foreign, batch(), batch()):
        troubles(event)
    counts = ((0, 0, 0), (1, 0, 0), (1, 0, 0), (0, 1, 1), (0, 0, 0))
    assert told == [TroublesCounted(service="games", failed=n, full=m, unlisted=k) for n, m, k in counts]


def test_a_table_that_failed_is_counted_even_if_the_batch_never_ends() -> None:
    told: list[Event] = []
    Troubles(told.append)(TableFailed(service="games", table="alpha", batch=3, rows=5, error="no"))
    assert told == [TroublesCounted(service="games", failed=1)]


def test_an_expectation_that_rings_is_counted_at_once_and_another_one_is_not() -> None:
    told: list[Event] = []
    troubles = Troubles(told.append)
    where = {"service": "games", "table": "alpha", "batch": 3, "expectation": "level", "rows": 2}
    for event in (ExpectationViolated(**where), ExpectationViolated(**where, rings=True), ExpectationFailed(**where)):
        troubles(event)
    assert told == [TroublesCounted(service="games", violated=1)] * 2


@pytest.mark.parametrize("metrics", ["cloudwatch", "cloudwatch:Studio"])
def test_a_job_that_publishes_metrics_sends_zeros_with_each_batch(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, metrics: str
) -> None:
    sent: list[dict[str, Any]] = []
    cloudwatch = type(
        "CloudWatchClient", (), {"put_metric_data": lambda self, **asked: sent.extend(asked["MetricData"])}
    )
    monkeypatch.setattr(journals, "client", lambda name: cloudwatch())
    with journals.journal(IngestSettings(lake=str(tmp_path), queue_url="https://sqs/q", metrics=metrics)) as emit:
        emit(batch())
    found = {one["MetricName"]: one["Values"] for one in sent if one["MetricName"].startswith("TroublesCounted")}
    assert found == {f"TroublesCounted{key}": [0.0] for key in ("Failed", "Full", "Unlisted", "Violated")}
