"""Rows of superseded files leave the tables that could not be written, and no table that is paused."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any
from unittest.mock import MagicMock

import pyarrow as pa
import pytest
from deltalake import write_deltalake
from pyspark.sql import SparkSession

from forebay.batch import leftovers
from forebay.batch.leftovers import Leftover, remove_leftovers
from forebay.declaration.loading import parse_service
from forebay.lake.objects import open_objects
from forebay.lake.paused import ALL
from forebay.table.commit import LogFailed
from forebay.table.kernel import NO_VERSION
from tests.operate.ledger import entry, write_ledger

ANY_LEFT = leftovers.any_left
SERVICE = 'name = "s"\noverwritten = "replace"\n[[tables]]\nname = "{game}"\n'


@pytest.fixture(autouse=True)
def some_are_left(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(leftovers, "any_left", lambda ledger: True)


@pytest.mark.parametrize(
    ("paused", "removed"), [(set(), ["alpha", "beta"]), ({"alpha"}, ["beta"]), ({ALL}, []), ({ALL, "alpha"}, [])]
)
def test_rows_in_a_paused_table_stay_also_where_all_are_paused(
    paused: set[str], removed: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[str] = []

    def refuse(spark: object, lake: str, table: str, *_: object) -> bool:
        asked.append(table)
        return False

    row = {"file_id": "f", "tables": {"alpha": 1, "beta": 1}, "superseded_by": "g"}
    monkeypatch.setattr(leftovers, "left_behind", lambda *_: [Leftover(row)])
    monkeypatch.setattr(leftovers, "_waiting_in_quarantine", lambda *_: set())
    monkeypatch.setattr(leftovers, "_removed", refuse)
    service, spark = parse_service({"service.toml": SERVICE}), MagicMock()
    logs = MagicMock(**{"last_version_at.return_value": NO_VERSION})
    told: dict[str, Any] = {"logs": logs, "emit": MagicMock(), "now": datetime.now(UTC)}
    remove_leftovers(spark, service, "lake", paused=paused, **told)
    assert asked == removed


@pytest.mark.parametrize("ahead", ["lake/_forebay/ledger", "lake/alpha"])
def test_a_removal_after_one_by_a_clock_that_was_ahead_has_a_later_number(
    ahead: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Or the ledger would take its change for done, and count rows that are gone."""
    now, numbers = datetime.now(UTC), list[int]()
    earlier = int((now + timedelta(hours=1)).timestamp() * 1000)
    row = {"file_id": "f", "tables": {"alpha": 1}, "superseded_by": "g"}
    monkeypatch.setattr(leftovers, "left_behind", lambda *_: [Leftover(row)])
    monkeypatch.setattr(leftovers, "_waiting_in_quarantine", lambda *_: set())
    monkeypatch.setattr(leftovers, "_removed", lambda *given: numbers.append(given[4].version))
    logs = MagicMock()
    logs.last_version_at = lambda path, app_id, again: earlier if path == ahead else NO_VERSION
    service, told = parse_service({"service.toml": SERVICE}), {"logs": logs, "emit": MagicMock(), "now": now}
    remove_leftovers(MagicMock(), service, "lake", paused=(), **told)  # type: ignore[arg-type]
    assert numbers == [earlier + 1]


@pytest.mark.parametrize("waits", [{("g", "alpha")}, set()])
def test_a_table_whose_log_cannot_be_read_keeps_no_rows_in_the_others(
    waits: set[tuple[str, str]], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Such a table is why there are leftovers: its later rows often wait in the quarantine."""
    asked: list[str] = []
    row = {"file_id": "f", "tables": {"alpha": 1, "beta": 1}, "superseded_by": "g"}
    monkeypatch.setattr(leftovers, "left_behind", lambda *_: [Leftover(row)])
    monkeypatch.setattr(leftovers, "_waiting_in_quarantine", lambda *_: waits)
    monkeypatch.setattr(leftovers, "_removed", lambda *given: asked.append(given[2]))

    def last_version_at(path: str, app_id: str, again: bool) -> int:
        if path == "lake/alpha":
            raise LogFailed("KernelException", "its log cannot be read")
        return NO_VERSION

    logs, service = MagicMock(last_version_at=last_version_at), parse_service({"service.toml": SERVICE})
    told: dict[str, Any] = {"logs": logs, "emit": MagicMock(), "now": datetime.now(UTC)}
    remove_leftovers(MagicMock(), service, "lake", paused=(), **told)
    assert asked == ["beta"]


def leftover(file_id: str, by: str, **tables: int) -> Leftover:
    counts = {"written": sum(tables.values()), "dropped": 1, "records": 1 + sum(tables.values())}
    return Leftover({"file_id": file_id, "superseded_by": by, "tables": tables, **counts})


def removed_of(
    found: list[Leftover], monkeypatch: pytest.MonkeyPatch, *, waiting: Any = (), **logs: Any
) -> tuple[dict[str, set[str]], list[dict[str, Any]]]:
    """The files whose rows leave each table, and the rows of the ledger afterwards."""
    asked, rows = dict[str, set[str]](), list[dict[str, Any]]()

    def remove(spark: object, lake: str, table: str, file_ids: Any, *_: object) -> bool:
        asked[table] = {*file_ids}
        return True

    def change(spark: object, ledger: str, changes: Any, **_: object) -> None:
        rows.extend(now for _, now in changes())

    monkeypatch.setattr(leftovers, "left_behind", lambda *_: found)
    monkeypatch.setattr(leftovers, "_waiting_in_quarantine", lambda *_: {*waiting})
    monkeypatch.setattr(leftovers, "_removed", remove)
    monkeypatch.setattr(leftovers, "change_counts", change)
    service = parse_service({"service.toml": SERVICE})
    told: dict[str, Any] = {"emit": MagicMock(), "now": datetime.now(UTC), "paused": ()}
    log = MagicMock(**{"last_version_at.return_value": NO_VERSION, **logs})
    remove_leftovers(MagicMock(), service, "lake", logs=log, **told)
    return asked, rows


def test_each_table_loses_its_own_leftovers_but_not_those_whose_newer_rows_wait(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A retry swaps those. The ledger's row of each file loses the same tables."""
    found = [leftover("f", "g", alpha=2, beta=3), leftover("h", "i", alpha=1), leftover("j", "k", beta=1, gamma=1)]
    asked, rows = removed_of(found, monkeypatch, waiting={("g", "alpha"), ("k", "gamma"), ("i", "beta"), ("k", "beta")})
    assert asked == {"alpha": {"h"}, "beta": {"f"}}
    counts = {row["file_id"]: (row["tables"], row["written"], row["dropped"], row["records"]) for row in rows}
    assert counts == {"f": ({"alpha": 2}, 2, 4, 6), "h": ({}, 0, 2, 2)}


def test_where_no_ledger_is_nothing_leaves(monkeypatch: pytest.MonkeyPatch) -> None:
    assert removed_of([leftover("f", "g", alpha=2)], monkeypatch, **{"look.return_value": None}) == ({}, [])


@pytest.mark.parametrize(
    ("more", "is_left"),
    [
        ({"outcome": "superseded", "tables": {"alpha": 1}}, True),
        ({"outcome": "forget", "tables": {"alpha": 1}}, True),
        ({"outcome": "superseded", "dropped": 1}, False),
        ({"outcome": "loaded", "tables": {"alpha": 1}}, False),
    ],
    ids=["superseded", "half forgotten", "none in a table", "loaded"],
)
def test_whether_any_rows_are_left_is_known_without_spark(more: dict[str, Any], is_left: bool, tmp_path: Path) -> None:
    """In one of several data files, beside others."""
    write_ledger(tmp_path, entry("in/a.json", tables={"alpha": 1}))
    write_ledger(tmp_path, entry("in/b.json", tables={"alpha": 1}), entry("in/c.json", **more))
    assert ANY_LEFT(open_objects(f"{tmp_path}/_forebay/ledger")) == is_left


def test_a_row_without_tables_has_no_leftovers() -> None:
    assert leftovers.leftovers_by_table([Leftover({"file_id": "f", "tables": None, "superseded_by": "g"})]) == {}


def test_rows_of_a_superseded_file_do_not_wait_for_refused_records_of_the_newer_one(
    spark: SparkSession, tmp_path: Path
) -> None:
    """A record that violates an expectation may stay in the quarantine for ever. Rows of whole tables land with a retry."""
    reasons = {"alpha": "expectation", "beta": "paused", "gamma": "table-failed"}
    held = [{"file_id": "g", "table": table, "reason": reason} for table, reason in reasons.items()]
    held += [
        {"file_id": "g", "table": None, "reason": "not-json"},
        {"file_id": "h", "table": "alpha", "reason": "paused"},
    ]
    write_deltalake(f"{tmp_path}/_forebay/quarantine", pa.Table.from_pylist(held))
    row = {"file_id": "f", "tables": {"alpha": 1}, "superseded_by": "g"}
    waits = leftovers._waiting_in_quarantine(spark, str(tmp_path), MagicMock(), [Leftover(row)])
    assert waits == {("g", "beta"), ("g", "gamma")}
