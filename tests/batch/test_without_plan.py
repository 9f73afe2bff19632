"""Somebody deletes the plan of a batch that some tables have already. If its files bring other rows now, the batch halts,
changes nothing, and asks for the plan. Otherwise it ends as begun."""

from __future__ import annotations

import re
from collections.abc import Callable
from copy import deepcopy
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession
from pyspark.sql import functions as F

from forebay.errors import Halt
from forebay.lake.layout import LEDGER
from tests.batch.paper import Record
from tests.batch.test_paper_histories import TABLES, Play, plain_play, two_files
from tests.batch.world import Died, World, records, unread

GONE = "had begun before, and its plan .* is gone: {}.*Restore that object"


@pytest.fixture
def play(monkeypatch: pytest.MonkeyPatch) -> Play:
    return plain_play(0, monkeypatch, dedupe=False)


def dies_after_change(play: Play, name: str) -> dict[str, bytes]:
    """The plan of a batch whose driver dies right after it has changed this table. Somebody deletes it."""
    lake, real = play.lake, play.lake.effect
    version = lake.tables[name].version if name in lake.tables else -1

    def effect(deed: Callable[[], None]) -> None:
        real(deed)
        if name in lake.tables and lake.tables[name].version > version:
            raise Died

    lake.effect = effect  # type: ignore[method-assign]
    play.attempt()
    lake.effect = real  # type: ignore[method-assign]
    plans = {name: told for name, told in lake.objects.items() if "/plans/" in name}
    lake.objects = {name: told for name, told in lake.objects.items() if name not in plans}
    assert len(plans) == 1
    return plans


def goes_on(play: Play) -> None:
    play.driver().load(play.taken, play.batch)


def state(play: Play) -> Any:
    return {name: table.version for name, table in play.lake.tables.items()}, {*play.lake.objects}


def rows(play: Play) -> list[tuple[str, str]]:
    return [(name, row["id"]) for name in TABLES for row in play.lake.rows(name)]


@pytest.mark.parametrize("others", [[], [Record("alpha", "3")], [Record("beta", "3")]])
@pytest.mark.parametrize("answer", ["denied", "unavailable", "missing"])
def test_a_file_whose_rows_a_table_has_must_be_readable(play: Play, answer: Any, others: list[Record]) -> None:
    first, _ = two_files(play, [Record("alpha", "1"), Record("beta", "2")], others)
    wanted = play.lake.answers[first]
    plans = dies_after_change(play, "alpha")
    before, play.lake.answers[first] = state(play), answer
    for _ in range(2):
        with pytest.raises(Halt, match=GONE.format("alpha has")):
            goes_on(play)
    assert state(play) == before
    if answer == "missing":
        play.lake.objects |= plans
    else:
        play.lake.answers[first] = wanted
    goes_on(play)
    assert sorted(row for _, row in rows(play)) == ["1", "2", *(record.id for record in others)]


def test_two_files_of_as_many_rows_are_not_taken_for_each_other(play: Play) -> None:
    first, second = two_files(play, [Record("alpha", "1")], "unavailable")  # type: ignore[arg-type]
    plans = dies_after_change(play, "alpha")
    play.lake.answers = {first: "unavailable", second: [Record("alpha", "2")]}
    with pytest.raises(Halt, match=GONE.format("alpha has 1 row of it, and its files bring 1 now")):
        goes_on(play)
    play.lake.objects |= plans
    goes_on(play)
    assert rows(play) == [("alpha", "1")]


@pytest.mark.parametrize("changed", TABLES)
def test_a_version_that_was_to_replace_rows_that_are_gone_must_be_readable(play: Play, changed: str) -> None:
    """Its own rows are not there yet, or it has none in that table."""
    play.put("new/a")
    play.lake.answers[play.waiting[0].file_id] = [Record("alpha", "1"), Record("beta", "2")]
    play.attempt()
    play.put("new/a")
    (coming,) = (file.file_id for file in play.waiting)
    play.lake.answers[coming] = [Record("beta", "3")]
    plans = dies_after_change(play, changed)
    left, play.lake.answers[coming] = rows(play), "unavailable"
    with pytest.raises(Halt, match=GONE.format(f"{changed} may have lost rows")):
        goes_on(play)
    assert rows(play) == left
    play.lake.objects |= plans
    goes_on(play)
    assert rows(play) == [("beta", "3")]


def test_a_batch_that_has_not_begun_before_asks_no_table(play: Play, monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[object] = []
    monkeypatch.setattr("forebay.batch.attempt.beginning.must_bring_the_same", lambda *given: asked.append(given))
    play.put("add/a")
    driver = play.driver()
    driver.may_have_begun = lambda batch: False
    driver.load(play.waiting, 0)
    assert asked == []


def test_a_checkpoint_that_somebody_made_older_halts_where_its_numbers_come_again(play: Play) -> None:
    """And the ledger with it. The files of its next batch are others, perhaps with as many rows."""
    for number, key in enumerate(("add/a", "add/b")):
        play.put(key)
        play.lake.answers[play.waiting[0].file_id] = [Record("alpha", str(number))]
        if number == 1:
            ledger = deepcopy(play.lake.tables["_forebay/ledger"])
        play.attempt()
    play.lake.tables["_forebay/ledger"] = ledger
    play.lake.objects = {name: told for name, told in play.lake.objects.items() if "/last-versions/" not in name}
    play.put("new/a")
    play.lake.answers[play.waiting[0].file_id] = [Record("alpha", "2")]
    play.batch, before = 0, state(play)
    del ledger.txns["forebay/s/g0"]
    with pytest.raises(Halt, match=r"alpha has batch 1 of forebay/s/g0, and batch 0 comes now: .* older checkpoint"):
        play.driver().load(play.waiting, play.batch)
    assert state(play) == before


@pytest.mark.parametrize("dies_after", [None, *range(12)])
def test_a_lake_goes_on_with_an_older_ledger_after_the_steps_of_the_page_on_disasters(
    play: Play, dies_after: int | None
) -> None:
    """It came from a backup. The last batch has ended since, or its driver died: then its plan goes, and the checkpoint."""
    play.operator_acts = False
    for key in ("add/a", "add/b", "new/a"):
        play.put(key)
        play.attempt(dies_after if key == "new/a" else None)
        if key == "add/a":
            older = deepcopy(play.lake.tables[LEDGER])
    play.lake.tables[LEDGER] = older
    play.put("new/b")
    before = state(play)
    with pytest.raises(Halt, match=r"ledger is at version 0, and was at .* To continue with the present one, delete"):
        play.driver().load(play.taken or play.waiting, play.batch)
    assert state(play) == before
    follow_the_page(play)
    play.end()
    play.check()
    assert {row["outcome"] for row in play.ledger()} == {"loaded"}


def follow_the_page(play: Play) -> None:
    objects, known = play.lake.objects, {row["file_id"] for row in play.lake.rows(LEDGER)}
    plans = {name for name in objects if "/plans/" in name}
    if plans:
        play.generation, play.batch, play.taken = "g1", 0, []
    for name, table in play.lake.tables.items():
        if name != LEDGER:
            table.change([row for row in table.rows if row["_file_id"] in known])
    last = {name for name in objects if "/last-versions/" in name}
    play.lake.objects = {name: told for name, told in objects.items() if name not in plans | last}
    play.waiting = [put.file for put in play.model.puts.values() if put.file.file_id not in known]


@pytest.mark.deep
def test_a_deleted_plan_and_an_unreadable_file_halt_the_stream_until_the_file_is_back(
    spark: SparkSession, lake: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    answers: Any = {"a.json": records(alpha=2, broken=1), "b.json": records(alpha=1, beta=1)}
    world = World(spark, lake, monkeypatch, answers={**answers})
    files = [world.file(key) for key in answers]
    with pytest.raises(Died):
        world.try_batch(0, files, dies_after=3)  # the last one is that of the quarantine
    (plan,) = world.plans()
    plan.unlink()
    world.answers["b.json"] = unread("unavailable")
    with pytest.raises(
        Halt, match=GONE.format("alpha has 3 rows of it, and its files bring 2 now .*b.json: unavailable")
    ):
        world.try_batch(0, files)
    world.answers |= answers
    world.try_batch(0, files)
    world.tables_agree_with_the_ledger("alpha", "beta")
    assert world.rows_of("alpha") == {"a.json": 2, "b.json": 1}


@pytest.mark.deep
def test_the_statement_of_the_page_on_disasters_deletes_the_rows_that_no_plan_and_no_ledger_knows(
    spark: SparkSession, lake: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """And neither known rows nor those of others."""
    page = (Path(__file__).resolve().parents[2] / "docs" / "disasters.md").read_text()
    (statement,) = re.findall(r"```sql\n(.*?)```", page, re.DOTALL)
    world = World(spark, lake, monkeypatch, answers={"a.json": records(alpha=2), "b.json": records(alpha=1)})
    world.try_batch(0, [world.file("a.json")])
    with pytest.raises(Died):
        world.try_batch(1, [world.file("b.json")], dies_after=1)
    (plan,) = world.plans()
    plan.unlink()
    alpha = f"{lake}/alpha"
    one = spark.read.format("delta").load(alpha).limit(1)
    of_others = one.withColumn("_file_id", F.lit(None).cast("string"))
    of_others.write.format("delta").mode("append").save(alpha)

    def there() -> list[str | None]:
        return [row[0] for row in spark.read.format("delta").load(alpha).select("_file_id").collect()]

    known = world.file("a.json").file_id
    assert len(there()) == 4
    spark.sql(statement.replace("s3://LAKE/orders", alpha).replace("s3://LAKE", lake))
    assert sorted(there(), key=str) == sorted([known, known, None], key=str)
