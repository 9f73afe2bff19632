"""A batch that is tried again, while its files can be read otherwise than the first time: every row stands exactly once, or
not at all, and the ledger says which."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from deltalake import DeltaTable, write_deltalake
from pyspark.sql import SparkSession

from forebay.batch.events import BatchReadTwice, BatchRepeated
from forebay.batch.one_pass.answers import Answer
from forebay.batch.one_pass.jobs import Jobs
from forebay.batch.one_pass.spec import PassSpec
from forebay.content.outcome import ReadOutcome
from forebay.errors import Halt
from forebay.lake.layout import QUARANTINE
from forebay.operate.lake_view import LakeView
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


@pytest.mark.parametrize(("dies_after", "how"), [(0, "missing"), (1, "denied")])
def test_a_batch_with_a_plan_needs_no_file_any_more(world: World, dies_after: int, how: ReadOutcome) -> None:
    files = [world.file("a.json"), world.file("b.json")]
    world.answers = {"a.json": BOTH, "b.json": BOTH}
    with pytest.raises(Died):
        world.try_batch(0, files, dies_after=dies_after)
    world.answers = {"a.json": unread(how), "b.json": records(alpha=7)}
    world.try_batch(0, files)
    assert world.rows_of("alpha") == world.rows_of("beta") == {"a.json": 2, "b.json": 2}
    assert world.outcomes() == {"a.json": "loaded", "b.json": "loaded"}
    world.tables_agree_with_the_ledger("alpha", "beta")


TOMORROW = (
    {"protocol": {"minReaderVersion": 3, "minWriterVersion": 7, "readerFeatures": ["x"], "writerFeatures": ["x"]}},
    {
        "metaData": {
            "id": "t",
            "format": {"provider": "parquet", "options": {}},
            "schemaString": '{"type":"struct","fields":[]}',
            "partitionColumns": [],
            "configuration": {},
        }
    },
)


@pytest.mark.parametrize("dedupe", ["", 'dedupe = { by = ["event_id"] }\n'], ids=["all", "unique"])
def test_records_of_a_table_that_fails_only_when_the_batch_is_taken_up_are_read_for_the_quarantine(
    world: World, dedupe: str
) -> None:
    """Where they cannot be read any more, the batch waits until the table takes its rows again."""
    twice = BOTH * 2 if dedupe else BOTH
    world.service += dedupe
    world.answers = {"a.json": twice}
    with pytest.raises(Died):
        world.try_batch(0, [world.file("a.json")], dies_after=1)
    log = Path(f"{world.lake.removeprefix('file://')}/beta/_delta_log")
    log.mkdir(parents=True)
    (log / f"{0:020}.json").write_text("\n".join(map(json.dumps, TOMORROW)))
    world.answers["a.json"] = unread("missing")
    with pytest.raises(Halt, match="The rows are safe in data files"):
        world.try_batch(0, [world.file("a.json")])
    world.answers["a.json"] = twice
    world.try_batch(0, [world.file("a.json")])
    assert (world.rows_of("alpha"), world.kept("quarantine")) == ({"a.json": 2}, {"a.json": 2})
    quarantined = [(row["table"], row["reason"], bool(row["detail"])) for row in world._table(QUARANTINE)]
    assert quarantined == [("beta", "table-failed", True)] * 2
    world.tables_agree_with_the_ledger("alpha")


def test_a_table_that_got_other_columns_since_its_files_were_written_gets_their_rows_all_the_same(world: World) -> None:
    world.answers = {"a.json": b'{"game": "alpha", "n": 1}\n', "b.json": b'{"game": "alpha", "n": 2, "new": 1.5}\n'}
    world.try_batch(0, [world.file("a.json")])
    with pytest.raises(Died):
        world.try_batch(1, [world.file("b.json")], dies_after=0)
    place = f"{world.lake.removeprefix('file://')}/alpha"
    rows = DeltaTable(place).to_pyarrow_table()
    texts = rows.set_column(rows.column_names.index("n"), "n", rows["n"].cast("string"))
    write_deltalake(place, texts, mode="overwrite", schema_mode="overwrite")
    world.answers["b.json"] = unread("missing")
    world.try_batch(1, [world.file("b.json")])
    assert [(row["n"], row["new"]) for row in LakeView(world.lake).query("alpha", "select * from t order by n")] == [
        ("1", None),
        ("2", 1.5),
    ]


@pytest.mark.parametrize("times", [1, 3])
def test_a_pass_in_which_a_task_was_repeated_and_read_otherwise_is_repeated(world: World, times: int) -> None:
    """As where Spark loses an executor between the tasks that read and those that write."""
    world.answers = {"a.json": BOTH, "b.json": BOTH}
    real, lost_before, files = Jobs.of_pieces, list[int](), [world.file("a.json"), world.file("b.json")]

    def with_rows_lost(self: Jobs, spec: PassSpec) -> list[Answer]:
        answers = real(self, spec)
        if len(lost_before) < times:
            (lost, *_) = (one for one in answers[0].fates if one.table == "alpha")
            answers[0].fates[lost] -= 1
            lost_before.append(1)
        return answers

    with world.monkeypatch.context() as patched:
        patched.setattr(Jobs, "of_pieces", with_rows_lost)
        if times == 3:
            with pytest.raises(
                Halt, match=r"the files were read 3 times, and nothing was marked as done: .* gave different"
            ):
                world.try_batch(0, files)
            assert (world.plans(), LakeView(world.lake).table("alpha")) == ([], None)
        world.try_batch(0, files)
    whys = [event.why for event in world.events if isinstance(event, BatchReadTwice)]
    assert [why.endswith("gave different records when it was read again") for why in whys] == [True] * times
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
    with pytest.raises(Halt, match=r"batch 0 .* plan .* is gone: alpha has 2 rows of it, and its files bring 3 now"):
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


def test_a_plan_without_effect_is_carried_out_by_a_new_checkpoint(world: World) -> None:
    world.answers = {"a.json": BOTH}
    with pytest.raises(Died):
        world.try_batch(4, [world.file("a.json")], dies_after=0)
    assert len(world.plans()) == 1
    world.answers["a.json"] = unread("missing")
    world.start("second")
    assert (world.plans(), world.outcomes()) == ([], {"a.json": "loaded"})


def test_a_stream_that_counts_anew_is_not_taken_for_done(world: World) -> None:
    world.answers = {"a.json": BOTH, "b.json": BOTH}
    world.try_batch(0, [world.file("a.json")])
    with pytest.raises(Halt, match=r"but lacks 1 of its files, such as s3://landing/b.json: .* a new --checkpoint"):
        world.try_batch(0, [world.file("b.json")])
    world.try_batch(0, [world.file("a.json")])
    assert isinstance(world.events[-1], BatchRepeated)
