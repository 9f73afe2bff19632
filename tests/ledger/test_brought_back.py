"""An older version of the quarantine has records again that a retry has moved: the ledger counts fewer."""

from __future__ import annotations

from collections.abc import Callable, Collection
from pathlib import Path

import pyarrow as pa
import pytest
from deltalake import DeltaTable, write_deltalake

from forebay.lake.objects import open_objects
from forebay.ledger.brought_back import BroughtBack, brought_back_of
from forebay.ledger.claim import Key
from tests.operate.ledger import entry, write_ledger


@pytest.fixture
def lake(tmp_path: Path) -> Path:
    """Two records and a whole file are held. Nobody knows the file of a batch that has not ended."""
    write_ledger(tmp_path, entry("in/a.json", file_id="a", quarantined=2), entry("in/b.json", file_id="b"))
    write_ledger(tmp_path, entry("in/c.json", file_id="c", service="others"))
    held(tmp_path, ("a", 1), ("a", 2), ("b", None))
    held(tmp_path, ("of a batch", 1))
    return tmp_path


def held(lake: Path, *rows: tuple[str, int | None], service: str = "games") -> None:
    told = {"file_id": [one for one, _ in rows], "line": pa.array([line for _, line in rows], pa.int64())}
    told = pa.table({**told, "service": [service] * len(rows)})
    write_deltalake(lake / "_forebay" / "quarantine", told, mode="append")


def found(lake: Path, in_batches: Callable[[], Collection[Key]] = tuple) -> BroughtBack | None:
    own = open_objects(str(lake / "_forebay"))
    quarantine, ledger = (open_objects(f"{own.place}/{name}") for name in ("quarantine", "ledger"))
    return brought_back_of(quarantine, ledger, "quarantined", "games", in_batches)


def test_records_that_the_ledger_counts_are_where_they_should_be(lake: Path) -> None:
    assert found(lake) is None


@pytest.mark.parametrize(("file_id", "says"), [("a", ("in/a.json", 3, 2)), ("b", ("in/b.json", 1, 0))])
def test_a_record_more_than_the_ledger_counts_has_left_before(
    lake: Path, file_id: str, says: tuple[str, int, int]
) -> None:
    held(lake, (file_id, 3))
    assert found(lake) == says
    assert found(lake, lambda: {("landing", says[0])}) is None, "a batch may be at it"


def test_records_of_another_service_are_its_own_affair(lake: Path) -> None:
    """Its retry may have died before it let them go."""
    held(lake, ("c", 1), service="others")
    assert found(lake) is None


def test_a_batch_that_ends_meanwhile_has_counted_its_records(lake: Path) -> None:
    """It replays a file that had none before. Its plan is gone once the ledger has it."""
    held(lake, ("b", 1))

    def in_batches() -> Collection[Key]:
        DeltaTable(lake / "_forebay" / "ledger").update({"quarantined": "1"}, predicate="file_id = 'b'")
        return ()

    assert found(lake, in_batches) is None
