"""A new stream does not begin beside rows of a batch that only a deleted plan knew."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime
from pathlib import Path
from types import MappingProxyType

import pyarrow as pa
import pytest
from deltalake import CommitProperties, DeltaTable, Transaction, write_deltalake

from forebay.batch.plan import Plan, Plans
from forebay.errors import InvalidConfiguration
from forebay.jobs.lost_plan import must_have_its_plans
from forebay.lake.objects import open_objects
from tests.operate.ledger import entry, write_ledger

REFUSED = (
    r"table alpha.*rows of batch 7 of forebay/games/g, .*restore .*/_forebay/plans/games/g-7.json.gz from the versions"
)


def commits(
    table: Path, file_id: str | None, app_id: str = "forebay/games/g", number: int = 7, column: str = "_file_id"
) -> None:
    rows = pa.table({column: pa.array([file_id], pa.string())})
    properties = CommitProperties(app_transactions=[Transaction(app_id, number)])
    write_deltalake(table, rows, mode="append", commit_properties=properties)


def begins(lake: Path, more: Mapping[str, bytes] = MappingProxyType({})) -> None:
    checkpoint = open_objects(str(lake / "checkpoint"))
    for name, content in more.items():
        checkpoint.write(name, content)
    must_have_its_plans(str(lake), "games", checkpoint)


@pytest.fixture
def lake(tmp_path: Path) -> Path:
    """Batch 6 is in the ledger. Batch 7 has rows in a table, and not there."""
    write_ledger(tmp_path, known := entry("in/a.json"))
    commits(tmp_path / "alpha", known["file_id"], number=6)
    commits(tmp_path / "alpha", "unknown")
    return tmp_path


def test_rows_of_files_that_nobody_knows_are_refused(lake: Path) -> None:
    for _ in range(2):
        with pytest.raises(InvalidConfiguration, match=REFUSED):
            begins(lake)


@pytest.mark.parametrize("name", ["_forebay/quarantine", "_forebay/parked"])
def test_records_that_are_held_for_files_that_nobody_knows_are_refused(tmp_path: Path, name: str) -> None:
    """The batch had no other ones."""
    write_ledger(tmp_path, known := entry("in/a.json"))
    commits(tmp_path / name, known["file_id"], number=6, column="file_id")
    begins(tmp_path)
    commits(tmp_path / name, "unknown", column="file_id")
    with pytest.raises(InvalidConfiguration, match=REFUSED.replace("alpha", name)):
        begins(tmp_path)


def test_a_stream_that_goes_on_asks_no_table(lake: Path) -> None:
    """It has a name once its first batch has begun."""
    metadata = {"stream/metadata": b'{"id": "of the stream"}'}
    with pytest.raises(InvalidConfiguration, match=REFUSED):
        begins(lake, metadata)
    begins(lake, {**metadata, "generation": b'{"generation": "g", "stream": "of the stream"}'})


def test_a_plan_that_is_there_is_finished_by_the_new_stream(lake: Path) -> None:
    told = {"began_at": datetime(2026, 11, 21, tzinfo=UTC), "service": {}, "files": (), "ends": (), "fates": ()}
    Plans(open_objects(str(lake / "_forebay" / "plans")), "games").pin(Plan(generation="g", batch=7, **told))  # type: ignore[arg-type]
    begins(lake)


def test_rows_that_somebody_deleted_are_in_nobodys_way(lake: Path) -> None:
    DeltaTable(lake / "alpha").delete("_file_id = 'unknown'")
    begins(lake)


def test_a_batch_of_known_files_brings_nothing_twice(lake: Path) -> None:
    DeltaTable(lake / "alpha").update({"_file_id": f"'{entry('in/a.json')['file_id']}'"}, predicate="true")
    begins(lake)


@pytest.mark.parametrize(
    "app_id",
    ["forebay/others/g", "forebay/games/retry", "forebay/games/erase", "forebay/games/expiry/alpha", "another-tool"],
)
def test_other_applications_began_no_batch_of_the_service(tmp_path: Path, app_id: str) -> None:
    write_ledger(tmp_path, entry("in/a.json"))
    commits(tmp_path / "alpha", "unknown", app_id)
    begins(tmp_path)


def test_a_new_lake_has_nothing_to_ask(tmp_path: Path) -> None:
    begins(tmp_path)
