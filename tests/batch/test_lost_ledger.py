"""Somebody deletes the ledger while the job runs. The batch halts with the sentence of a start, and no empty ledger is begun.
Once the ledger is restored, the batch goes on, and every row stands once."""

from __future__ import annotations

import re
import shutil
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

from forebay.errors import Halt
from forebay.lake.layout import LEDGER
from tests.batch.paper import Record, Table
from tests.batch.test_paper_histories import TABLES, Play, plain_play, settled_plans
from tests.batch.world import World, records

SAID = r"has no ledger \(_forebay/ledger\), but .*restore the ledger, or load the landed files into another lake"


def loaded_once(play: Play) -> None:
    """A first batch, and another one that waits."""
    for key in play.keys:
        play.put(key)
    play.attempt()
    play.put("add/a")
    play.put("new/a")


def kept_on(driver: Any, play: Play) -> bool:
    try:
        driver.load(play.waiting, 1)
    except Halt as halted:
        assert re.search(SAID, str(halted))  # noqa: PT017 (a batch that ends before the effect is no failure)
        return False
    return True


@pytest.mark.parametrize("effect", range(14))
def test_a_ledger_that_goes_before_any_effect_of_a_batch_halts_it_and_comes_back_whole(
    effect: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    play = plain_play(2, monkeypatch, dedupe=False)
    loaded_once(play)
    kept: list[Table] = []
    play.lake.meanwhile = (effect, lambda: kept.append(play.lake.tables.pop(LEDGER)))
    driver = play.driver()
    if not kept_on(driver, play):
        assert not kept_on(driver, play), "it halts again"
    assert not kept or LEDGER not in play.lake.tables
    play.lake.meanwhile = None
    play.lake.tables |= dict.fromkeys([LEDGER], *kept) if kept else {}
    play.driver().load(play.waiting, 1)
    play.waiting = []
    play.end()
    play.check()


def test_a_plan_tells_that_a_ledger_was_there_when_its_batch_began(monkeypatch: pytest.MonkeyPatch) -> None:
    """Another driver takes the batch up: it has never seen the ledger."""
    play = plain_play(2, monkeypatch, dedupe=False)
    loaded_once(play)
    play.attempt(8)
    assert len(settled_plans(play)) == 1
    ledger = play.lake.tables.pop(LEDGER)
    with pytest.raises(Halt, match=SAID):
        play.driver().finish_earlier()
    assert LEDGER not in play.lake.tables
    play.lake.tables[LEDGER] = ledger
    play.end()
    play.check()


def test_a_lake_of_one_row_gets_its_first_ledger(monkeypatch: pytest.MonkeyPatch) -> None:
    play = plain_play(0, monkeypatch, dedupe=False)
    play.put("add/a")
    play.lake.answers[play.waiting[0].file_id] = [Record("alpha", "1")]
    play.attempt(4)
    play.attempt()
    assert Counter(row["id"] for name in TABLES for row in play.lake.rows(name)) == {"1": 1}


@pytest.mark.parametrize("key", ["new.json", "add.json"])
def test_a_deleted_ledger_stops_the_running_stream(
    key: str, spark: SparkSession, lake: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A file that is new, and one that is known and would be loaded a second time, each by the driver that ran on."""
    world = World(spark, lake, monkeypatch, answers={"add.json": records(alpha=1), "new.json": records(alpha=2)})
    ledger = Path(lake.removeprefix("file://")) / LEDGER
    batch = world.batch()
    try:
        batch.load([world.file("add.json")], 0)
        shutil.move(ledger, ledger.with_name("aside"))
        with pytest.raises(Halt, match=SAID):
            batch.load([world.file(key)], 1)
        assert not ledger.exists()
        shutil.move(ledger.with_name("aside"), ledger)
        batch.load([world.file(key)], 1)
    finally:
        batch.close()
    world.tables_agree_with_the_ledger("alpha")
    assert sum(world.rows_of("alpha").values()) == (3 if key == "new.json" else 1)
