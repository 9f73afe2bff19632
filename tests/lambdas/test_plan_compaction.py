"""When the compaction job is started, and for which tables."""

from __future__ import annotations

import io
import json
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from forebay.lake.health import Health
from lambdas.plan_compaction.handler import MOST_NAMES, Settings, start
from lambdas.plan_compaction.why import why

NOW = datetime(2026, 5, 1, 12, tzinfo=UTC)
SETTINGS = Settings(job="compact", lake="s3://lake")


def health(table: str = "alpha", *, quiet_minutes: float = 90, **more: Any) -> Health:
    given = {"measured_at": NOW - timedelta(hours=5), "newest_at": NOW - timedelta(minutes=quiet_minutes), **more}
    return Health(table=table, **given)


class S3:
    class exceptions:  # noqa: N801
        class NoSuchKey(Exception):
            pass

    def __init__(self, *tables: Health, **other: str | None) -> None:
        self.objects: dict[str, str | None] = {f"_forebay/health/{h.table}.json": h.as_json() for h in tables}
        self.objects |= {f"_forebay/health/{name}.json": text for name, text in other.items()}

    def get_paginator(self, name: str) -> S3:
        assert name == "list_objects_v2"
        return self

    def paginate(self, **asked: Any) -> Any:
        assert asked == {"Bucket": "lake", "Prefix": "_forebay/health/"}
        yield {}
        yield {"Contents": [{"Key": key} for key in self.objects]}

    def get_object(self, **asked: Any) -> dict[str, Any]:
        text = self.objects[asked["Key"]]
        if text is None:
            raise self.exceptions.NoSuchKey
        return {"Body": io.BytesIO(text.encode())}


class Glue:
    class exceptions:  # noqa: N801
        class ConcurrentRunsExceededException(Exception):
            pass

    def __init__(self, *, full: bool = False) -> None:
        self.full, self.started = full, []

    def start_job_run(self, **asked: Any) -> None:
        if self.full:
            raise self.exceptions.ConcurrentRunsExceededException
        self.started.append(asked)


def test_the_job_is_started_with_the_names_of_the_tables_in_need() -> None:
    s3, glue = S3(health("beta", waiting=30), health("fine"), health("_forebay/ledger", waiting=300)), Glue()
    assert start(SETTINGS, s3=s3, glue=glue, now=NOW) == "started for 2 tables"
    assert glue.started == [{"JobName": "compact", "Arguments": {"--tables": "_forebay/ledger,beta"}}]


def test_where_nothing_is_to_be_done_no_job_is_started() -> None:
    glue = Glue()
    assert start(SETTINGS, s3=S3(health("fine", waiting=7)), glue=glue, now=NOW) == "no table needs compaction"
    assert start(SETTINGS, s3=S3(), glue=glue, now=NOW) == "no table needs compaction"
    assert glue.started == []


def test_an_object_that_is_gone_or_not_ours_holds_nobody_up() -> None:
    of_before = '{"table": "alpha", "waiting": 30}'
    s3 = S3(health("beta", waiting=30), gone=None, torn="{", other='["x"]', empty="{}", of_before=of_before)
    glue = Glue()
    assert start(SETTINGS, s3=s3, glue=glue, now=NOW) == "started for 1 table"


def test_a_job_that_runs_already_gets_no_companion() -> None:
    assert start(SETTINGS, s3=S3(health(waiting=30)), glue=Glue(full=True), now=NOW) == "it is already running"


def test_very_many_tables_are_not_named_one_by_one() -> None:
    glue = Glue()
    many = (health(f"t{n}", waiting=30) for n in range(MOST_NAMES + 1))
    start(SETTINGS, s3=S3(*many), glue=glue, now=NOW)
    assert glue.started == [{"JobName": "compact", "Arguments": {}}]


WEEK = timedelta(days=8)


@pytest.mark.parametrize(
    ("one", "reason"),
    [
        (health(waiting=8), "8 small files wait, and no data arrived recently"),
        (health(waiting=8, quiet_minutes=30), ""),
        (health(waiting=199, quiet_minutes=0), ""),
        (health(waiting=200, quiet_minutes=0), "200 small files wait"),
        (health(waiting=5000, quiet_minutes=0, hot_wakes_at=None), ""),
        (health(waiting=3, wakes_at=3), "3 small files wait, and no data arrived recently"),
        (health(waiting=1, wakes_at=1), "1 small file waits, and no data arrived recently"),
        (health(small_files=2, measured_at=NOW - WEEK), "not checked for a week"),
        (health(small_files=1, measured_at=NOW - WEEK), ""),
        (health(small_files=2, measured_at=NOW - WEEK, quiet_minutes=5), ""),
        (health(small_files=2, measured_at=None, newest_at=None), "not checked for a week"),
    ],
)
def test_a_table_needs_it_for_a_reason(one: Health, reason: str) -> None:
    assert why(json.loads(one.as_json()), NOW) == reason
