"""A ledger as batches leave it, written without Spark: rows by what is special about them."""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pyarrow as pa
from deltalake import write_deltalake

from forebay.landed_file import LandedFile
from forebay.ledger.entry import COLUMNS, file_hash, key_hash

AT = datetime(2026, 11, 21, 10, tzinfo=UTC)
"""When the files of these tests landed; their batches end a minute later."""

TYPES = {
    "date": pa.date32(),
    "string": pa.string(),
    "long": pa.int64(),
    "timestamp": pa.timestamp("us", "UTC"),
    "map<string, long>": pa.map_(pa.string(), pa.int64()),
}


def schema_of(columns: str) -> pa.Schema:
    """Arrow's of a table whose columns are given in Spark's words."""
    pairs = re.findall(r"(\w+) (map<[^>]*>|\w+)", columns)
    return pa.schema([(name, TYPES[kind]) for name, kind in pairs])


def entry(key: str, *, at: datetime = AT, bucket: str = "landing", **more: Any) -> dict[str, Any]:
    """A row of the ledger: a file that was loaded whole, with nothing in it, unless `more` says otherwise."""
    file = LandedFile(
        bucket, key, size=100, etag=more.get("etag", "e1"), version_id=more.get("version_id"), event_time=at
    )
    done = at + timedelta(minutes=1)
    tables = more.get("tables", {})
    written = sum(tables.values())
    counts = {"records": written, "written": written, "quarantined": 0, "parked": 0, "dropped": 0}
    row = {
        **dict.fromkeys(schema_of(COLUMNS).names),
        "day": done.date(),
        "file_id": file.file_id,
        "file_hash": file_hash(file),
        "key_hash": key_hash(file),
        "bucket": bucket,
        "key": key,
        "etag": file.etag,
        "size": 100,
        "event_time": at,
        "claimed_at": done - timedelta(seconds=10),
        "committed_at": done,
        "service": "games",
        "service_version": "v1",
        "generation": "g1",
        "batch": 1,
        "outcome": "loaded",
        **counts,
        **more,
    }
    return {**row, "tables": list(tables.items())}


def write_ledger(lake: Path | str, *rows: dict[str, Any], storage_options: dict[str, str] | None = None) -> None:
    """Adds rows; without any, an empty ledger."""
    table = pa.Table.from_pylist(list(rows), schema_of(COLUMNS))
    place = f"{lake}/_forebay/ledger"
    write_deltalake(place, table, partition_by=["day"], mode="append", storage_options=storage_options)


def write_tables(lake: Path | str, *names: str) -> None:
    """Tables that are there; nobody counts their rows."""
    for name in names:
        write_deltalake(f"{lake}/{name}", pa.table({"v": [1]}))
