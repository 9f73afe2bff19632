"""Services of one lake know their own files: each has ids, rows of the ledger and an index of its own."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from forebay.lake.layout import LEDGER, services_of
from forebay.lake.objects import open_objects
from forebay.landed_file import LandedFile
from forebay.ledger.entry import file_hash, key_hash
from forebay.ledger.index import load_index
from forebay.ledger.services import first_service, services_of_ledger, tables_of_others
from forebay.ledger.withheld import withheld_in
from forebay.upkeep.reconcile.known import known_since, unknown
from tests.operate.ledger import entry, write_ledger

FILE = LandedFile("landing", "in/a.json", etag="e1")
SINCE = datetime(2026, 1, 1, tzinfo=UTC)


def of(service: str, key: str = "in/a.json", **more: Any) -> dict[str, Any]:
    """A row of a service that was not the lake's first."""
    row, file = entry(key, service=service, **more), LandedFile("landing", key, etag="e1", service=service)
    return {**row, "file_id": file.file_id, "file_hash": file_hash(file)}


def test_the_same_object_has_another_id_in_each_service_but_one(tmp_path: Path) -> None:
    ids = {replace(FILE, service=name).file_id for name in ("", "studio", "games")}
    assert len(ids) == 3
    assert key_hash(FILE) == key_hash(replace(FILE, service="studio"))


def test_the_first_service_of_a_lake_stays_the_first(tmp_path: Path) -> None:
    services, ledger = open_objects(services_of(str(tmp_path))), open_objects(str(tmp_path / LEDGER))
    assert first_service(services, ledger, "studio") == "studio"
    write_ledger(tmp_path, entry("in/a.json"))
    assert first_service(services, ledger, "games") == "studio"


def test_of_services_that_wrote_a_lake_together_each_may_be_the_first_but_none_that_comes_later(tmp_path: Path) -> None:
    write_ledger(tmp_path, entry("in/a.json"), entry("in/b.json", service="more"))
    ledger = open_objects(str(tmp_path / LEDGER))
    assert services_of_ledger(ledger) == {"games", "more"}
    answers = {
        name: first_service(open_objects(services_of(str(tmp_path / name))), ledger, name) for name in ("more", "new")
    }
    assert answers == {"more": "more", "new": "games"}


def test_the_tables_of_other_services_are_found_in_the_ledger(tmp_path: Path) -> None:
    write_ledger(tmp_path, entry("in/a.json", tables={"alpha": 1}), entry("in/c.json", service=None, tables={"x": 1}))
    write_ledger(
        tmp_path, of("more", tables={"beta": 1, "gamma": 2}), of("more", "in/b.json"), of("third", tables={"d": 1})
    )
    ledger = open_objects(str(tmp_path / LEDGER))
    assert tables_of_others(ledger, ["games", "third"]) == {"more": {"beta", "gamma"}}
    assert tables_of_others(ledger, ["more"]) == {"games": {"alpha"}, "third": {"d"}}


def test_a_services_index_has_its_own_keys_alone_and_those_of_nobody(tmp_path: Path) -> None:
    write_ledger(tmp_path, entry("in/a.json"), of("more", "in/b.json"), entry("in/c.json", service=None))
    write_ledger(tmp_path, of("more", "in/d.json"))
    ledger = open_objects(str(tmp_path / LEDGER))
    assert [len(load_index(ledger, names)) for names in (["games"], ["more"], ["games", "more"], ["new"])] == [
        2,
        3,
        4,
        1,
    ]


def test_what_another_service_took_in_was_missed_by_this_one(tmp_path: Path) -> None:
    write_ledger(tmp_path, entry("in/a.json"), of("more", "in/b.json"))
    ledger = open_objects(str(tmp_path / LEDGER))
    files = [replace(FILE, key=key) for key in ("in/a.json", "in/b.json", "in/c.json")]

    def missed(*names: str) -> list[str]:
        return [file.key[3] for file in unknown(files, known_since(ledger, SINCE, names), names)]

    assert missed("games") == ["b", "c"]
    assert missed("more") == ["a", "c"]
    assert missed("new", "games", "more") == ["c"]


def test_what_is_withheld_from_a_service_keeps_its_id(tmp_path: Path) -> None:
    row = of("more", outcome="denied")
    write_ledger(tmp_path, row)
    (waiting,) = withheld_in(open_objects(str(tmp_path / LEDGER)), "more")
    assert waiting.file.file_id == row["file_id"]
