"""The ids of a retry's records that have none, and those that it takes back. `test_dedupe_beside_a_retry` has the histories."""

from __future__ import annotations

from dataclasses import replace
from datetime import date
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pyarrow as pa
import pytest
from deltalake import CommitProperties, Transaction, write_deltalake

from forebay.batch.dedupe import Dedupe
from forebay.batch.one_pass.outcome import Pass
from forebay.batch.retrying.reserved import ReservedIds
from forebay.errors import Halt
from forebay.table.commit import Txn
from forebay.table.data_files.data_file import Written
from forebay.table.kernel import NO_VERSION
from tests.batch.world import Died

TXN = Txn("forebay/s/retry", 3)


class Unasked:
    """Spark, of which nothing should be asked."""

    def __getattr__(self, name: str) -> Any:
        raise Died


def reserved(place: str = "nowhere") -> ReservedIds:
    batches: Any = SimpleNamespace(names=frozenset)
    return ReservedIds(place, "s", batches)


def pass_with(ids: int) -> Pass:
    rows = pa.table({"id": [bytes([n]) for n in range(ids)], "file_id": ["f"] * ids, "table": ["alpha"] * ids})
    identified: Any = ["a data file"]
    return Pass([], [], Written({}, {}), "nowhere", identified, [rows])


def test_records_without_ids_are_retried_where_no_record_ever_had_one(monkeypatch: pytest.MonkeyPatch) -> None:
    """So there is no table of ids, and none comes to be."""
    dedupe, kept = Dedupe(writing=Unasked(), day=date(2026, 5, 5)), dict[str, int]()  # type: ignore[arg-type]
    monkeypatch.setattr("forebay.batch.retrying.reserved.every_id", lambda made, dedupe: [])
    compared = reserved().compared_with(pass_with(0), dedupe, writing_of([]), lambda: NO_VERSION, kept.update)
    assert (compared.as_of, kept) == (NO_VERSION, {"ids_version": NO_VERSION})


@pytest.mark.parametrize("steps", [[], ["looked", "added"]])
def test_no_id_is_added_to_ids_that_somebody_restored_and_their_version_is_not_kept(
    steps: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The newest ids, once they are restored, would not have it, but its transaction would be known."""
    dedupe, said = Dedupe(writing=Unasked(), day=date(2026, 5, 5)), list[str]()  # type: ignore[arg-type]
    monkeypatch.setattr("forebay.batch.retrying.reserved.every_id", lambda made, dedupe: [])

    def must_stand() -> int:
        if said == steps:
            raise Halt("restored")
        said.append("looked")
        return 0

    with pytest.raises(Halt, match="restored"):
        reserved().compared_with(pass_with(0), dedupe, writing_of(said), must_stand, pytest.fail)
    assert said == steps


def writing_of(said: list[str]) -> Any:
    def commit(*_: object) -> None:
        said.append("added")

    return SimpleNamespace(ids_of=lambda made, replaces: None, own=lambda name: name, commit_beside=commit)


@pytest.mark.parametrize(("as_of", "identified"), [(7, ["a data file"]), (None, [])])
def test_a_retry_that_goes_on_compares_with_the_ids_of_its_plan_and_one_without_ids_adds_none(
    as_of: int | None, identified: Any
) -> None:
    """Later ids may have come once a window had passed: rows that are in a table already would count as duplicates."""
    dedupe: Any = SimpleNamespace(as_of=as_of)
    nobody: Any = Unasked()
    made = replace(pass_with(1), identified=identified)
    assert reserved().compared_with(made, dedupe, nobody, nobody, nobody) is dedupe


@pytest.mark.parametrize(("written", "takes_back"), [(2, False), (1, True), (0, True)])
def test_ids_of_records_that_are_written_no_more_are_taken_back(tmp_path: Path, written: int, takes_back: bool) -> None:
    """The attempt that wrote the ids died, and a function refuses records today that it took then."""
    rows = pa.table({"id": [b"\0", b"\1"], "file_id": ["f", "f"]})
    app = CommitProperties(app_transactions=[Transaction(TXN.app_id, TXN.version)])
    write_deltalake(str(tmp_path), rows, commit_properties=app)
    logs = SimpleNamespace(has=lambda path, txn, again: again)
    dedupe: Any = SimpleNamespace(path=str(tmp_path), day=date(2026, 5, 5))
    writing: Any = SimpleNamespace(spark=Unasked(), logs=logs, txn=TXN, without_tables=lambda rows, names: rows)
    if takes_back:
        with pytest.raises(Died):
            reserved().release(pass_with(written), dedupe, writing, ())
    else:
        reserved().release(pass_with(written), dedupe, writing, ())
