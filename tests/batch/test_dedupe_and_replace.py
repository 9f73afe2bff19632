"""A record is a duplicate of one that stands: never of one whose file was replaced, or could not be read."""

from __future__ import annotations

import json
from collections import Counter

import pytest
from pyspark.sql import SparkSession

from forebay.batch.retrying.moving import Moving, Retried
from forebay.batch.retrying.plan import Choice
from forebay.batch.retrying.reserved import ReservedIds
from forebay.batch.retrying.retry import Retry
from forebay.declaration.loading import parse_service
from forebay.operate.changing.replay import mark, replay_of
from forebay.operate.looking.files import FileChoice
from forebay.operate.named_lake import view_of
from tests.batch.test_overwritten import failing
from tests.batch.world import AT, Died, World, unread

SERVICE = """
name = "studio"
overwritten = "replace"
[[tables]]
name = "{game}"
columns = [{ name = "event_id" }]
dedupe = { by = ["event_id"], days = 3 }
"""


@pytest.fixture
def world(spark: SparkSession, lake: str, monkeypatch: pytest.MonkeyPatch) -> World:
    return World(spark, lake, monkeypatch, service=SERVICE)


def events(*ids: str, game: str = "alpha") -> bytes:
    return "".join(json.dumps({"game": game, "event_id": one}) + "\n" for one in ids).encode()


def put(world: World, key: str, version: int, *ids: str) -> None:
    world.answers[key] = events(*ids)
    world.etags[key] = f"{key}-{version}"


def standing(world: World) -> list[tuple[str, str]]:
    """Which file each record of the table is of."""
    keys = {row["file_id"]: row["etag"] for row in world.entries()}
    return sorted((keys[row["_file_id"]], row["event_id"]) for row in world._table("alpha"))


@pytest.mark.deep
def test_the_records_of_replaced_versions_are_known_no_more(world: World) -> None:
    for version, ids in enumerate((["x", "y"], ["x", "y"], ["x"]), 1):
        put(world, "a.json", version, *ids)
        world.try_batch(version, [world.file("a.json", version)])
    assert standing(world) == [("a.json-3", "x")]
    put(world, "b.json", 4, "x", "y")
    with pytest.raises(Died):
        world.try_batch(4, [world.file("b.json", 4)], dies_after=2)
    world.try_batch(4, [world.file("b.json", 4)])
    assert standing(world) == [("a.json-3", "x"), ("b.json-4", "y")]
    world.tables_agree_with_the_ledger("alpha")


@pytest.mark.deep
def test_a_version_that_cannot_be_read_frees_none_of_the_records_that_stay(world: World) -> None:
    put(world, "a.json", 1, "x")
    world.try_batch(0, [world.file("a.json", 1)])
    put(world, "a.json", 2, "x")
    world.answers["a.json"] = unread("denied")
    put(world, "b.json", 1, "x", "y")
    world.try_batch(1, [world.file("a.json", 2), world.file("b.json", 1)])
    assert standing(world) == [("a.json-1", "x"), ("b.json-1", "y")]


@pytest.mark.deep
def test_a_duplicate_whose_first_copy_is_gone_before_the_second_try_does_not_stop_the_batch(world: World) -> None:
    both = events("x") + events("x", game="beta")
    world.answers = {"a.json": both, "b.json": both}
    files = [world.file("a.json"), world.file("b.json")]
    first = min(files, key=lambda file: file.file_id)
    with pytest.raises(Died):
        world.try_batch(0, files, dies_after=1)
    world.answers[first.key] = unread("missing")
    world.try_batch(0, files)
    assert world.rows_of("alpha") == world.rows_of("beta") == {first.key: 1}
    world.tables_agree_with_the_ledger("alpha", "beta")


@pytest.mark.deep
def test_the_records_of_a_file_that_only_the_first_try_could_read_are_known_all_the_same(world: World) -> None:
    put(world, "a.json", 1, "x", "y")
    with pytest.raises(Died):
        world.try_batch(0, [world.file("a.json")], dies_after=1)
    world.answers["a.json"] = unread("missing")
    world.try_batch(0, [world.file("a.json")])
    put(world, "b.json", 1, "x", "z")
    world.try_batch(1, [world.file("b.json")])
    assert standing(world) == [("a.json-1", "x"), ("a.json-1", "y"), ("b.json-1", "z")]


@pytest.mark.deep
def test_a_replay_that_one_table_refuses_leaves_its_records_known_there(world: World) -> None:
    world.answers = {key: events("x") + events("y", game="beta") for key in ("a.json", "b.json")}
    world.try_batch(0, [world.file("a.json")])
    view = view_of(world.lake)
    mark(view, replay_of(view, FileChoice()))
    with failing(world, "alpha"):
        world.try_batch(1, [world.file("a.json")])
    world.try_batch(2, [world.file("b.json")])
    assert (world.rows_of("alpha"), world.rows_of("beta")) == ({"a.json": 1}, {"a.json": 1})
    world.tables_agree_with_the_ledger("alpha", "beta")


@pytest.mark.deep
def test_a_retry_leaves_the_ids_of_what_it_wrote_and_no_others(world: World, spark: SparkSession) -> None:
    """It writes the ids of all its records first. One of them came in another file since, and one is there twice."""
    put(world, "a.json", 1, "x", "y", "y", "z")
    put(world, "b.json", 2, "x")
    world.paused = ("alpha",)
    world.try_batch(1, [world.file("a.json", 1)])
    world.paused = ()
    world.try_batch(2, [world.file("b.json", 2)])
    service = parse_service({"service.toml": SERVICE})
    tries = Retry(spark, service, lake=world.lake, emit=world.events.append, clock=lambda: AT)
    try:
        with world.monkeypatch.context() as patched:
            patched.setattr(ReservedIds, "release", _die)
            with pytest.raises(Died):
                tries.run(Choice("quarantine"))
        assert len(world._table("_forebay/ids")) == 4
        assert tries.run(Choice("quarantine")) == Retried()
    finally:
        tries.logs.close()
    assert standing(world) == [("a.json-1", "y"), ("a.json-1", "z"), ("b.json-2", "x")]
    ids = {(bytes(row["id"]), row["file_id"]) for row in world._table("_forebay/ids")}
    assert Counter(file_id for _, file_id in ids) == Counter(row["_file_id"] for row in world._table("alpha"))
    world.tables_agree_with_the_ledger("alpha")


def _die(*_: object) -> None:
    raise Died


CHECKED = """
[tables.expectations]
level = { check = "level > 0", on_violation = "quarantine" }
"""


def levels(*told: tuple[str, int]) -> bytes:
    return "".join(
        json.dumps({"game": "alpha", "event_id": one, "level": level}) + "\n" for one, level in told
    ).encode()


@pytest.mark.deep
@pytest.mark.parametrize("dies", ["release", "let_go", ""])
def test_a_retry_leaves_records_that_an_expectation_refuses_and_no_ids_of_theirs(
    dies: str, world: World, spark: SparkSession
) -> None:
    """A refused record is no first copy: it keeps no other one out, wherever it stands. Once the expectation is gone, a retry
    drops it as a duplicate, or brings it."""
    world.service = SERVICE.replace("[{ name", '[{ name = "level", type = "int" }, { name') + CHECKED
    world.answers = {
        "a.json": levels(("x", 1), ("x", -1), ("y", -2), ("y", 2), ("z", -3)),
        "b.json": levels(("y", 4), ("w", -4), ("v", 5)),
    }
    world.paused = ("alpha",)
    for number, key in enumerate(world.answers, 1):
        world.try_batch(number, [world.file(key)])
    world.paused = ()

    def retry(service: str, dies: str = "") -> Retried:
        told = {"lake": world.lake, "emit": world.events.append, "clock": lambda: AT}
        tries = Retry(spark, parse_service({"service.toml": service}), **told)  # type: ignore[arg-type]
        try:
            with world.monkeypatch.context() as patched:
                if dies:
                    patched.setattr(ReservedIds if dies == "release" else Moving, dies, _die)
                return tries.run(Choice("quarantine"))
        finally:
            tries.logs.close()

    if dies:
        with pytest.raises(Died):
            retry(world.service, dies)
    retry(world.service)
    stand = [(row["event_id"], row["level"]) for row in world._table("alpha")]
    first, second = ({"a.json": 2, "b.json": 1}, {"a.json": 1, "b.json": 2})
    assert sorted(stand) in ([("v", 5), ("x", 1), ("y", 2)], [("v", 5), ("x", 1), ("y", 4)])
    assert world.rows_of("alpha") in (first, second)
    assert world.kept("quarantine") == {"a.json": 3, "b.json": 1}
    world.tables_agree_with_the_ledger("alpha")
    assert ids_of(world) == Counter(row["_file_id"] for row in world._table("alpha"))
    retry(world.service.replace(CHECKED, ""))
    assert sorted(row["event_id"] for row in world._table("alpha")) == ["v", "w", "x", "y", "z"]
    assert world._table("_forebay/quarantine") == []
    world.tables_agree_with_the_ledger("alpha")
    assert ids_of(world) == Counter(row["_file_id"] for row in world._table("alpha"))


def ids_of(world: World) -> Counter[str]:
    return Counter(row["file_id"] for row in world._table("_forebay/ids"))
