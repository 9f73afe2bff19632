"""A key that gets other bytes, under `replace`, while something fails: the newest version that can be read stands in every
table, and the ledger explains each version."""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

import pytest
from pyspark.sql import SparkSession

import forebay.batch.writing as writing
from forebay.address import local_folder
from forebay.batch.leftovers import remove_leftovers
from forebay.batch.reasons import TABLE_FAILED
from forebay.batch.retrying.plan import Choice
from forebay.batch.retrying.retry import Retry
from forebay.errors import TryAgain
from forebay.landed_file import LandedFile
from forebay.table.destination import AppendResult, Failed
from tests.batch.test_replay import TOMORROW
from tests.batch.world import SERVICE, Died, World, records, unread

FIRST, SECOND, THIRD = records(alpha=2, beta=2), records(alpha=1, beta=1), records(alpha=3, beta=3)
TORN = b"\x89PNG\r\n\x1a\n" + bytes(range(256)) * 4


@pytest.fixture
def world(spark: SparkSession, lake: str, monkeypatch: pytest.MonkeyPatch) -> World:
    return World(spark, lake, monkeypatch, service=f'overwritten = "replace"\n{SERVICE}')


@contextmanager
def failing(world: World, table: str) -> Iterator[None]:
    def failing(real: Any) -> Any:
        def fails(spark: SparkSession, destination: Any, *args: Any, **more: Any) -> AppendResult:
            if destination.name == table:
                return Failed(TryAgain("said the test"))
            outcome: AppendResult = real(spark, destination, *args, **more)
            return outcome

        return fails

    with world.monkeypatch.context() as patched:
        patched.setattr(writing, "replace", failing(writing.replace))
        patched.setattr(writing, "remove_then_append", failing(writing.remove_then_append))
        yield


def starts_again(world: World) -> None:
    """What a job does at its start."""
    batch = world.batch()
    tries = Retry(world.spark, batch.service, lake=world.lake, emit=world.events.append)
    tries.run(Choice("quarantine", reason=TABLE_FAILED))
    more: dict[str, Any] = {"paused": (), "logs": batch.logs, "emit": world.events.append, "now": datetime.now(UTC)}
    remove_leftovers(world.spark, batch.service, world.lake, **more)
    batch.close()


@pytest.mark.deep
def test_a_file_is_said_to_wait_for_a_table_as_long_as_one_of_its_records_does(world: World) -> None:
    """Its other records may be held for other reasons."""
    world.answers = {"a.json": records(alpha=1, beta=2, gamma=1, broken=1), "b.json": records(beta=1)}
    folders = [local_folder(world.lake) / name for name in ("beta", "gamma")]
    for folder in folders:
        (folder / "_delta_log").mkdir(parents=True)
        (folder / "_delta_log" / f"{0:020}.json").write_text("\n".join(map(json.dumps, TOMORROW)))
    world.try_batch(0, [world.file("a.json"), world.file("b.json")])
    assert {row["reason"] for row in world.entries()} == {"table-failed"}
    shutil.rmtree(folders[0])
    starts_again(world)
    assert {key: row["reason"] for key, row in world.ledger().items()} == {"a.json": "table-failed", "b.json": None}
    shutil.rmtree(folders[1])
    starts_again(world)
    assert [world.ledger()["a.json"][name] for name in ("reason", "quarantined")] == [None, 1]


def rows_of(world: World, table: str) -> dict[str, int]:
    """By etag."""
    etags = {row["file_id"]: row["etag"] for row in world.entries()}
    counts: dict[str, int] = {}
    for row in world._table(table):
        counts[etags[row["_file_id"]]] = counts.get(etags[row["_file_id"]], 0) + 1
    return counts


def outcomes(world: World) -> dict[str, str]:
    return {row["etag"]: row["outcome"] for row in world.entries()}


def versions(world: World, *contents: Any) -> list[LandedFile]:
    files = [world.file("a.json", n + 1) for n in range(len(contents))]
    world.answers = {file.etag: content for file, content in zip(files, contents, strict=True)}
    return files


@pytest.mark.deep
@pytest.mark.parametrize("newer", ["has rows for the table", "has none"])
def test_a_table_that_failed_while_a_key_was_replaced_ends_with_the_newer_version_alone(
    world: World, newer: str
) -> None:
    first, second = versions(world, FIRST, SECOND if newer == "has rows for the table" else records(alpha=1))
    world.try_batch(0, [first])
    with failing(world, "beta"):
        world.try_batch(1, [second])
    assert rows_of(world, "alpha") == {second.etag: 1}
    assert rows_of(world, "beta") == {first.etag: 2}
    world.tables_agree_with_the_ledger("alpha", "beta")
    starts_again(world)
    assert rows_of(world, "beta") == ({second.etag: 1} if newer == "has rows for the table" else {})
    assert outcomes(world) == {first.etag: "superseded", second.etag: "loaded"}
    world.tables_agree_with_the_ledger("alpha", "beta")


@pytest.mark.deep
def test_the_version_after_the_next_takes_the_place_of_all_that_a_failed_table_has(world: World) -> None:
    first, second, third = versions(world, FIRST, SECOND, THIRD)
    world.try_batch(0, [first])
    with failing(world, "beta"):
        world.try_batch(1, [second])
    world.try_batch(2, [third])
    assert rows_of(world, "alpha") == rows_of(world, "beta") == {third.etag: 3}
    assert world.kept("quarantine") == {}
    world.tables_agree_with_the_ledger("alpha", "beta")


@pytest.mark.deep
def test_of_two_versions_in_one_batch_the_newest_that_can_be_read_is_loaded(world: World) -> None:
    first, second, third = versions(world, FIRST, SECOND, TORN)
    world.try_batch(0, [first])
    world.try_batch(1, [second, third])
    assert outcomes(world) == {first.etag: "superseded", second.etag: "loaded", third.etag: "unreadable"}
    assert rows_of(world, "alpha") == rows_of(world, "beta") == {second.etag: 1}
    world.tables_agree_with_the_ledger("alpha", "beta")


def test_the_choice_among_versions_is_kept_when_the_batch_is_tried_again(world: World) -> None:
    first, second, third = versions(world, FIRST, SECOND, unread("unavailable"))
    with pytest.raises(Died):
        world.try_batch(0, [first, second, third], dies_after=1)
    world.answers = {first.etag: unread("changed"), second.etag: SECOND, third.etag: FIRST}
    world.try_batch(0, [first, second, third])
    assert outcomes(world) == {first.etag: "superseded", second.etag: "loaded", third.etag: "unavailable"}
    assert rows_of(world, "alpha") == rows_of(world, "beta") == {second.etag: 1}
    world.tables_agree_with_the_ledger("alpha", "beta")


@pytest.mark.deep
def test_on_a_bucket_without_versions_a_key_that_gets_its_first_bytes_back_ends_with_them(world: World) -> None:
    first, second = versions(world, FIRST, SECOND)
    back = replace(world.file("a.json", 3), etag=first.etag)
    for number, file in enumerate([first, second, back]):
        world.try_batch(number, [file])
    assert outcomes(world) == {first.etag: "loaded", second.etag: "superseded"}
    assert rows_of(world, "alpha") == rows_of(world, "beta") == {first.etag: 2}
    world.tables_agree_with_the_ledger("alpha", "beta")


@pytest.mark.parametrize(("denied", "then", "at_last"), [(0, "superseded", "superseded"), (1, "denied", "duplicate")])
def test_equal_bytes_in_one_batch_land_once_whichever_of_them_can_be_read(
    world: World, denied: int, then: str, at_last: str
) -> None:
    files = [replace(world.file("a.json", n), etag="same", version_id=f"v{n}") for n in (1, 2)]

    def get(file: LandedFile, start: int = 0, stop: int | None = None) -> Any:
        return unread("denied") if file.version_id == files[denied].version_id else FIRST

    world.monkeypatch.setattr(world, "_get", get)
    world.try_batch(0, files)
    assert {row["outcome"] for row in world.entries()} == {then, "loaded"}
    assert rows_of(world, "alpha") == {"same": 2}
    world.monkeypatch.setattr(world, "_get", lambda file, start=0, stop=None: FIRST)
    world.try_batch(1, [replace(files[denied], sequencer=None)])
    assert {row["outcome"] for row in world.entries()} == {at_last, "loaded"}
    assert rows_of(world, "alpha") == {"same": 2}


@pytest.mark.deep
@pytest.mark.parametrize("rule", ["append", "replace"])
def test_a_producers_retry_under_another_etag_doubles_nothing_although_the_first_object_is_gone(
    world: World, rule: str
) -> None:
    world.service = f'overwritten = "{rule}"\n{SERVICE}'
    first, again = versions(world, FIRST, FIRST)
    world.try_batch(0, [first])
    world.answers[first.etag] = unread("changed")
    with pytest.raises(Died):
        world.try_batch(1, [again], dies_after=0)
    world.try_batch(1, [again])
    assert outcomes(world) == {first.etag: "loaded", again.etag: "duplicate"}
    assert rows_of(world, "alpha") == rows_of(world, "beta") == {first.etag: 2}
    world.tables_agree_with_the_ledger("alpha", "beta")
