"""Declarations change between two batches, never within one, and never into something that makes no sense."""

from __future__ import annotations

from pathlib import Path

import pytest

from forebay.batch.declarations import Declarations
from forebay.batch.events import DeclarationsChanged, DeclarationsRefused
from forebay.declaration.service import Service, load_service
from forebay.errors import InvalidConfiguration
from forebay.events import Event
from forebay.lake.objects import Objects, open_objects
from forebay.lake.paused import ALL

TEXT = 'name = "studio"\n[[tables]]\nname = "{game}"\n'
OTHER = TEXT + '[[tables]]\nname = "other"\nwhere = { x = "1" }\n'


@pytest.fixture
def place(tmp_path: Path) -> Path:
    (tmp_path / "service").mkdir()
    (tmp_path / "service" / "service.toml").write_text(TEXT)
    return tmp_path / "service"


@pytest.fixture
def store(tmp_path: Path) -> Objects:
    return open_objects(str(tmp_path / "checkpoint"))


def declarations(place: Path, store: Objects, told: list[Event] | None = None, **more: object) -> Declarations:
    emit = told.append if told is not None else lambda event: None
    return Declarations(load_service(str(place)), str(place), store, emit=emit, **more)  # type: ignore[arg-type]


def names(service: Service) -> list[str]:
    return [table.name for table in service.tables]


def test_what_is_changed_is_in_force_from_the_next_batch_on(place: Path, store: Objects) -> None:
    told: list[Event] = []
    known = declarations(place, store, told)
    assert names(known.of_batch("g", 0)) == ["{game}"]
    (place / "service.toml").write_text(OTHER)
    assert names(known.of_batch("g", 1)) == ["{game}", "other"]
    assert [type(event) for event in told] == [DeclarationsChanged]


def test_a_replayed_batch_works_by_those_of_its_first_try(place: Path, store: Objects) -> None:
    first = declarations(place, store).of_batch("g", 7)
    (place / "service.toml").write_text(OTHER)
    after_a_restart = declarations(place, store)
    assert after_a_restart.of_batch("g", 7) == first
    assert names(after_a_restart.of_batch("g", 8)) == ["{game}", "other"]


def test_a_new_stream_in_the_same_checkpoint_does_not_go_by_those_of_the_old_one(place: Path, store: Objects) -> None:
    """Its batches are counted from 0 again."""
    declarations(place, store).of_batch("old", 0)
    (place / "service.toml").write_text(OTHER)
    assert names(declarations(place, store).of_batch("new", 0)) == ["{game}", "other"]


def test_a_replayed_batch_goes_by_the_tables_that_were_paused_in_its_first_try(place: Path, store: Objects) -> None:
    now = {"alpha"}
    known = declarations(place, store, paused=lambda: frozenset(now))
    first = known.of_batch("g", 7)
    assert (first.is_paused("alpha"), first.is_paused("beta")) == (True, False)
    now.clear()
    assert declarations(place, store, paused=lambda: frozenset(now)).of_batch("g", 7).is_paused("alpha")
    assert not known.of_batch("g", 8).is_paused("alpha")
    now.add(ALL)
    assert known.of_batch("g", 9).is_paused("whatever")


@pytest.mark.parametrize("text", ["name =", TEXT.replace("studio", "renamed"), 'name = "studio"', "\udcff"])
def test_what_makes_no_sense_is_refused_once_and_the_old_stay_in_force(place: Path, store: Objects, text: str) -> None:
    told: list[Event] = []
    known = declarations(place, store, told)
    before = known.of_batch("g", 0)
    (place / "service.toml").write_bytes(text.encode("utf-8", "surrogateescape"))
    assert [known.of_batch("g", batch) for batch in (1, 2, 3)] == [before] * 3
    assert [(type(event), event.level) for event in told] == [(DeclarationsRefused, "error")]
    (place / "service.toml").write_text(OTHER)
    assert names(known.of_batch("g", 4)) == ["{game}", "other"]


def test_so_is_what_spark_does_not_take(place: Path, store: Objects) -> None:
    def check(service: Service) -> None:
        raise InvalidConfiguration.one("table a: expectations.x", "is not understood")

    told: list[Event] = []
    known = declarations(place, store, told, check=check)
    before = known.of_batch("g", 0)
    (place / "service.toml").write_text(OTHER)
    assert known.of_batch("g", 1) == before
    assert "is not understood" in told[0].problems  # type: ignore[attr-defined]


def test_declarations_that_are_gone_stay_in_force(place: Path, store: Objects) -> None:
    told: list[Event] = []
    known = declarations(place, store, told)
    before = known.of_batch("g", 0)
    (place / "service.toml").unlink()
    assert known.of_batch("g", 1) == before
    assert len(told) == 1


def test_those_of_batches_that_are_over_are_tidied_away(place: Path, store: Objects) -> None:
    known = declarations(place, store)
    for batch in range(5):
        known.of_batch("g", batch)
    assert store.names("declarations") == ["g-3.json", "g-4.json"]


def test_they_are_read_only_where_they_changed(place: Path, store: Objects) -> None:
    reads: list[str] = []

    def load(where: str) -> Service:
        reads.append(where)
        return load_service(where)

    known = declarations(place, store, load=load)
    for batch in range(5):
        known.of_batch("g", batch)
    assert len(reads) == 1
