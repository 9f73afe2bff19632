"""Declarations change between two batches, never within one, and never into something that makes no sense."""

from __future__ import annotations

from pathlib import Path

import pytest

from forebay.declaration.kept.newest import Declarations, DeclarationsChanged, DeclarationsRefused
from forebay.declaration.loading import load_service
from forebay.declaration.service import Service
from forebay.errors import InvalidConfiguration
from forebay.events import Event
from forebay.lake.paused import ALL

TEXT = 'name = "studio"\n[[tables]]\nname = "{game}"\n'
OTHER = TEXT + '[[tables]]\nname = "other"\nwhere = { x = "1" }\n'


@pytest.fixture
def place(tmp_path: Path) -> Path:
    (tmp_path / "service").mkdir()
    (tmp_path / "service" / "service.toml").write_text(TEXT)
    return tmp_path / "service"


def declarations(place: Path, told: list[Event] | None = None, **more: object) -> Declarations:
    emit = told.append if told is not None else lambda event: None
    return Declarations(load_service(str(place)), str(place), emit=emit, **more)  # type: ignore[arg-type]


def names(service: Service) -> list[str]:
    return [table.name for table in service.tables]


def test_what_is_changed_is_in_force_from_the_next_batch_on(place: Path) -> None:
    told: list[Event] = []
    known = declarations(place, told)
    assert names(known.in_force()) == ["{game}"]
    (place / "service.toml").write_text(OTHER)
    assert names(known.in_force()) == ["other", "{game}"]
    assert [type(event) for event in told] == [DeclarationsChanged]


def test_a_batch_that_begins_knows_the_tables_that_are_paused_now(place: Path) -> None:
    now = {"alpha"}
    known = declarations(place, paused=lambda: frozenset(now))
    first = known.in_force()
    assert (first.is_paused("alpha"), first.is_paused("beta")) == (True, False)
    now.clear()
    assert not known.in_force().is_paused("alpha")
    now.add(ALL)
    assert known.in_force().is_paused("whatever")


@pytest.mark.parametrize("text", ["name =", TEXT.replace("studio", "renamed"), 'name = "studio"', "\udcff"])
def test_what_makes_no_sense_is_refused_once_and_the_old_stay_in_force(place: Path, text: str) -> None:
    told: list[Event] = []
    known = declarations(place, told)
    before = known.in_force()
    (place / "service.toml").write_bytes(text.encode("utf-8", "surrogateescape"))
    assert [known.in_force() for _ in range(3)] == [before] * 3
    assert [(type(event), event.level) for event in told] == [(DeclarationsRefused, "error")]
    (place / "service.toml").write_text(OTHER)
    assert names(known.in_force()) == ["other", "{game}"]


def test_so_is_what_spark_does_not_take(place: Path) -> None:
    def check(service: Service) -> None:
        raise InvalidConfiguration.one("table a: expectations.x", "is not understood")

    told: list[Event] = []
    known = declarations(place, told, check=check)
    before = known.in_force()
    (place / "service.toml").write_text(OTHER)
    assert known.in_force() == before
    assert "is not understood" in told[0].problems  # type: ignore[attr-defined]


def test_declarations_that_are_gone_stay_in_force(place: Path) -> None:
    told: list[Event] = []
    known = declarations(place, told)
    before = known.in_force()
    (place / "service.toml").unlink()
    assert known.in_force() == before
    assert len(told) == 1


def test_they_are_read_only_where_they_changed(place: Path) -> None:
    reads: list[str] = []

    def load(where: str) -> Service:
        reads.append(where)
        return load_service(where)

    known = declarations(place, load=load)
    for _ in range(5):
        known.in_force()
    assert len(reads) == 1
