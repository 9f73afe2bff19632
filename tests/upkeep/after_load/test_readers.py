"""Which service of a lake would load an object, and which file waits for another one."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from forebay.declaration.loading import parse_service
from forebay.declaration.service import Service
from forebay.upkeep.after_load.readers import WAITS_DAYS, Readers

NOW = datetime(2026, 5, 9, tzinfo=UTC)
DELETES = 'after_load = { delete = true, only = ["loaded"] }'


def named(name: str, more: str = "") -> Service:
    tables = '[[tables]]\nname = "{game}"\n'
    return parse_service({"service.toml": f'name = "{name}"\n{more}\n{tables}'})


def row(age: timedelta = timedelta(days=8), **more: Any) -> dict[str, Any]:
    of_file = {"bucket": "landing", "key": "in/a.json", "etag": "e1", "version_id": None, "size": 1}
    return {**of_file, "outcome": "loaded", "committed_at": NOW - age, **more}


@pytest.mark.parametrize(
    ("feed", "loaded_from", "reads"),
    [
        ('[[feeds]]\nname = "f"\nbucket = "landing"\nprefix = "in/"\n', set(), True),
        ('[[feeds]]\nname = "f"\nprefix = "in/"\n', {"landing"}, True),
        ('[[feeds]]\nname = "f"\nprefix = "in/"\n', {"elsewhere"}, False),
        ('[[feeds]]\nname = "f"\nbucket = "elsewhere"\nprefix = "in/"\n', {"landing"}, False),
    ],
)
def test_a_service_reads_the_bucket_of_its_feed_or_one_that_it_loaded_from(
    feed: str, loaded_from: set[str], reads: bool
) -> None:
    readers = Readers(named("s"), (named("o", f'on_delete = "forget"\n{feed}'),))
    readers.buckets["o"] = loaded_from
    for told in (readers.loads("landing", "in/a.json"), readers.forgets("landing", "in/a.json")):
        assert told == ("o" if reads else "")
    assert readers.loads("landing", "out/a.json") == ""


@pytest.mark.parametrize(
    ("age", "waits"), [(timedelta(days=8), True), (timedelta(days=WAITS_DAYS), True), (timedelta(days=31), False)]
)
def test_a_file_waits_for_another_service_as_long_as_its_queue_may_have_the_message(
    age: timedelta, waits: bool
) -> None:
    readers = Readers(named("s"), (named("o"),))
    readers.buckets["o"] = {"landing"}
    assert readers.wait_for(row(age), NOW) is waits


@pytest.mark.parametrize("declares", ["", DELETES, 'after_load = { move = "s3://archive/" }'])
def test_only_a_file_that_would_be_deleted_waits_for_its_lost_rows(declares: str) -> None:
    service = named("s", declares)
    assert Readers(service, are_lost=lambda row: True).wait_for(row(), NOW) is (declares == DELETES)
    assert not Readers(service).wait_for(row(), NOW)
