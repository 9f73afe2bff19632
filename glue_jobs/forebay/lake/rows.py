"""Rows of Arrow as Python objects; fast for timestamps, too.

In: a table. Out: its rows. For each timestamp with a zone Arrow tries to import pytz. If pytz is not installed, the search for
it takes most of a minute for a hundred thousand files. Delta's timestamps are all in UTC.
"""

from __future__ import annotations

from datetime import UTC
from typing import Any

import pyarrow as pa


def python_rows(table: pa.Table) -> list[dict[str, Any]]:
    """The rows, like those of `to_pylist`."""
    moments = [field.name for field in table.schema if _is_utc(field.type)]
    plain = [(f.name, pa.timestamp(f.type.unit) if f.name in moments else f.type) for f in table.schema]
    rows: list[dict[str, Any]] = table.cast(pa.schema(plain)).to_pylist()
    for row in rows:
        for name in moments:
            if row[name] is not None:
                row[name] = row[name].replace(tzinfo=UTC)
    return rows


def _is_utc(kind: pa.DataType) -> bool:
    return bool(pa.types.is_timestamp(kind) and kind.tz in ("UTC", "+00:00") and kind.unit != "ns")
