"""Why a state stays behind is told by `tables health`, also where the state never came into being, until a merge ends well."""

from __future__ import annotations

import json
import threading
from pathlib import Path

import pytest

from forebay.declaration.loading import builtin_service
from forebay.errors import InvalidConfiguration
from forebay.merge import job
from forebay.merge.trouble import Troubles
from forebay.settings import MergeSettings
from tests.merge.test_leases import Merges, merges, service, state_of
from tests.operate import command

__all__ = ["merges"]


def fail() -> None:
    raise InvalidConfiguration.one("table player_changes", "has no column id", "the next batch brings it")


def health(merges: Merges, *more: str) -> str:
    return command.ran("tables", "health", "--lake", merges.lake, *more)


def test_health_says_why_a_merge_failed_until_one_ends_well(merges: Merges) -> None:
    merges.within = fail
    assert merges.run().reason == "failed"
    said = health(merges)
    assert "players: no merge of it has ended well since " in said
    assert "table player_changes: has no column id" in said
    rows = [json.loads(line) for line in health(merges, "--json").splitlines()]
    (row,) = (row for row in rows if row["table"] == "players")
    assert "has no column id" in row["trouble"]
    merges.within = lambda: None
    assert merges.run().reason == ""
    assert "no merge of it" not in health(merges)
    assert Troubles(merges.lake).all() == {}


def test_a_change_by_hand_does_not_hide_why_the_merge_fails(merges: Merges) -> None:
    state_of("player_changes", f"{merges.lake}/players")
    merges.within = fail
    assert merges.run().reason == "failed"
    said = health(merges)
    assert "table player_changes: has no column id" in said
    assert "changed its rows by hand; the next changes of player_changes compute it from scratch" in said


def test_a_trouble_is_written_once_and_goes_with_its_declaration(merges: Merges) -> None:
    merges.within = fail
    merges.run()
    note = Path(merges.lake) / "_forebay" / "not-merged" / "players.json"
    before = note.read_text()
    note.write_text("{")
    merges.run()
    assert note.read_text() == "{", "it is not written each minute"
    assert Troubles(merges.lake).all() == {}, "an object that nobody understands is passed over"
    note.write_text(before)
    others = builtin_service().model_copy(update={"name": "others"})
    merges.merger.run(others, (), threading.Event())
    assert note.exists(), "it is another service's"
    merges.merger.run(builtin_service().model_copy(update={"name": "studio"}), (), threading.Event())
    assert not note.exists()


@pytest.mark.parametrize("names", [("player_changes",), ("players",)])
def test_a_run_about_one_table_forgets_no_other_trouble(merges: Merges, names: tuple[str, ...]) -> None:
    merges.merger._troubles.note("daily", "studio", "its SQL is not understood")
    merges.merger.run(service(), names, threading.Event())
    assert [one.detail for one in Troubles(merges.lake).all().values()] == ["its SQL is not understood"]


def test_without_a_state_or_rollup_no_spark_starts_and_earlier_troubles_are_over(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(job, "session_for", lambda *_, **__: pytest.fail("Spark starts"))
    (tmp_path / "service.toml").write_text('name = "shop"\n[[tables]]\nname = "orders"\n')
    lake = tmp_path / "lake"
    (lake / "orders").mkdir(parents=True)
    Troubles(str(lake)).note("players", "shop", "was declared once")
    settings = MergeSettings(lake=str(lake), service=str(tmp_path))
    assert job.merge(settings, emit=pytest.fail).tables == ()
    assert Troubles(str(lake)).all() == {}
