"""A batch that is tried again, while its files can be read otherwise than the first time: every row stands exactly once, or
not at all, and the ledger says which."""

from __future__ import annotations

from collections.abc import Sequence

import pytest
from pyspark.sql import DataFrame, SparkSession

import forebay.batch.reading as reading
from forebay.batch.accounting import Fate
from forebay.batch.events import BatchRepeated
from forebay.content.end import FileEnd
from forebay.content.outcome import ReadOutcome
from forebay.content.piece import Piece
from forebay.errors import Halt
from tests.batch.world import Died, World, records, unread

BOTH = records(alpha=2, beta=2)


@pytest.fixture
def world(spark: SparkSession, lake: str, monkeypatch: pytest.MonkeyPatch) -> World:
    return World(spark, lake, monkeypatch)


def test_a_file_that_only_the_second_try_can_read_is_not_called_loaded_where_a_table_lacks_it(world: World) -> None:
    files = [world.file("a.json"), world.file("b.json")]
    world.answers = {"a.json": BOTH, "b.json": unread("unavailable")}
    with pytest.raises(Died):
        world.try_batch(0, files, dies_after=1)
    world.answers["b.json"] = BOTH
    world.try_batch(0, files)
    assert world.rows_of("alpha") == world.rows_of("beta") == {"a.json": 2}
    assert world.outcomes()["b.json"] != "loaded"
    world.tables_agree_with_the_ledger("alpha", "beta")


def test_a_file_that_is_gone_before_the_second_try_keeps_the_rows_that_stand_and_the_ledger_counts_them(
    world: World,
) -> None:
    files = [world.file("a.json"), world.file("b.json")]
    world.answers = {"a.json": BOTH, "b.json": BOTH}
    with pytest.raises(Died):
        world.try_batch(0, files, dies_after=1)
    world.answers["b.json"] = unread("missing")
    world.try_batch(0, files)
    assert world.rows_of("alpha") == {"a.json": 2, "b.json": 2}
    assert world.rows_of("beta") == {"a.json": 2}
    world.tables_agree_with_the_ledger("alpha", "beta")


@pytest.mark.parametrize("how", ["denied", "unavailable"])
def test_a_file_of_which_a_part_stands_and_that_s3_does_not_give_halts_until_it_does(
    world: World, how: ReadOutcome
) -> None:
    files = [world.file("a.json"), world.file("b.json")]
    world.answers = {"a.json": BOTH, "b.json": BOTH}
    with pytest.raises(Died):
        world.try_batch(0, files, dies_after=1)
    world.answers["b.json"] = unread(how)
    with pytest.raises(Halt, match=r"rows of s3://landing/b.json are in alpha already, but S3 does not give it now"):
        world.try_batch(0, files)
    world.answers["b.json"] = BOTH
    world.try_batch(0, files)
    assert world.rows_of("alpha") == world.rows_of("beta") == {"a.json": 2, "b.json": 2}
    world.tables_agree_with_the_ledger("alpha", "beta")


def test_rows_that_are_read_anew_and_otherwise_within_one_try_are_not_committed(world: World) -> None:
    """As where Spark loses an executor with its cached blocks: the files are read again, and one is gone by then."""
    files = [world.file("a.json"), world.file("b.json")]
    world.answers = {"a.json": BOTH, "b.json": BOTH}
    real = reading.ends_and_fates

    def count_then_lose(rows: DataFrame, pieces: Sequence[Piece]) -> tuple[list[FileEnd], list[Fate]]:
        counted = real(rows, pieces)
        world.losing = world.file("b.json").file_id
        return counted

    with world.monkeypatch.context() as patched:
        patched.setattr(reading, "ends_and_fates", count_then_lose)
        with pytest.raises(Halt, match=r"alpha: 4 rows were counted, but its data files hold 2"):
            world.try_batch(0, files)
    world.losing = ""
    world.try_batch(0, files)
    assert world.rows_of("alpha") == world.rows_of("beta") == {"a.json": 2, "b.json": 2}
    world.tables_agree_with_the_ledger("alpha", "beta")


def test_a_table_that_has_the_batch_with_other_rows_than_planned_halts(world: World) -> None:
    files = [world.file("a.json")]
    world.answers = {"a.json": BOTH}
    with pytest.raises(Died):
        world.try_batch(0, files, dies_after=1)
    (place,) = world.plans()
    place.unlink()
    world.answers["a.json"] = records(alpha=3, beta=2)
    with pytest.raises(Halt, match=r"alpha has batch 0 .* 3 rows should have come with it, but its commit brought 2"):
        world.try_batch(0, files)


@pytest.mark.deep
@pytest.mark.parametrize("how", ["denied", "unavailable", "missing"])
def test_a_file_that_s3_did_not_give_lands_when_it_is_announced_again(world: World, how: ReadOutcome) -> None:
    files = [world.file("a.json"), world.file("b.json")]
    world.answers = {"a.json": BOTH, "b.json": unread(how)}
    world.try_batch(0, files)
    assert world.outcomes() == {"a.json": "loaded", "b.json": how}
    assert world.kept("quarantine") == {}
    world.answers["b.json"] = BOTH
    world.try_batch(1, [world.file("b.json"), world.file("a.json")])
    assert {key: row["tries"] for key, row in world.ledger().items()} == {"a.json": 1, "b.json": 2}
    assert world.outcomes() == {"a.json": "loaded", "b.json": "loaded"}
    assert world.rows_of("alpha") == {"a.json": 2, "b.json": 2}
    world.tables_agree_with_the_ledger("alpha", "beta")


def test_a_batch_that_is_tried_again_goes_by_the_declarations_of_its_first_commit(world: World) -> None:
    files = [world.file("a.json")]
    world.answers = {"a.json": BOTH}
    with pytest.raises(Died):
        world.try_batch(0, files, dies_after=1)
    world.service = 'name = "studio"\n[[tables]]\nname = "other"\n'
    world.try_batch(0, files)
    assert world.rows_of("alpha") == world.rows_of("beta") == {"a.json": 2}
    assert world.rows_of("other") == {}
    world.answers["b.json"] = BOTH
    world.try_batch(1, [world.file("b.json")])
    assert world.rows_of("other") == {"b.json": 4}


def test_a_new_checkpoint_after_a_crash_between_table_and_ledger_doubles_nothing(world: World) -> None:
    files = [world.file("a.json"), world.file("b.json")]
    world.answers = {"a.json": BOTH, "b.json": unread("unavailable")}
    with pytest.raises(Died):
        world.try_batch(4, files, dies_after=1)
    world.answers["b.json"] = BOTH
    world.start("second")
    assert world.plans() == []
    world.try_batch(0, files)
    assert world.rows_of("alpha") == world.rows_of("beta") == {"a.json": 2, "b.json": 2}
    assert world.outcomes() == {"a.json": "loaded", "b.json": "loaded"}
    world.tables_agree_with_the_ledger("alpha", "beta")


def test_a_plan_without_effect_is_forgotten_by_a_new_checkpoint(world: World) -> None:
    world.answers = {"a.json": BOTH}
    with pytest.raises(Died):
        world.try_batch(4, [world.file("a.json")], dies_after=0)
    assert len(world.plans()) == 1
    world.start("second")
    assert (world.plans(), world.outcomes()) == ([], {})


def test_a_stream_that_counts_anew_is_not_taken_for_done(world: World) -> None:
    world.answers = {"a.json": BOTH, "b.json": BOTH}
    world.try_batch(0, [world.file("a.json")])
    with pytest.raises(Halt, match=r"but not 1 of its files, such as s3://landing/b.json: .* a new --checkpoint"):
        world.try_batch(0, [world.file("b.json")])
    world.try_batch(0, [world.file("a.json")])
    assert isinstance(world.events[-1], BatchRepeated)
