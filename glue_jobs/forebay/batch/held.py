"""The quarantine and the parked records, beside the tables. Both have the same columns.

The tasks of a batch write their records (`one_pass.held`), the driver whole files: rows of the quarantine without a line. In:
the ends of such files. Out: their rows.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any

from forebay.content.end import FileEnd
from forebay.table.data_files.in_arrow import arrow_rows

if TYPE_CHECKING:
    import pyarrow as pa

COLUMNS = (
    "day date, at timestamp, service string, generation string, batch long, file_id string, bucket string, key string, "
    "version_id string, line long, byte_offset long, table string, reason string, detail string, record string, "
    "metadata string"
)

MOST_DETAIL = 1_000
"""Characters of why a table could not be written: each of its rows has it."""


def whole_files(files: Iterable[FileEnd], shared: Mapping[str, Any]) -> pa.Table:
    """The rows of files that nobody can read. `shared` are the fields that all rows of a batch share."""
    return arrow_rows((_whole(end, {"day": shared["at"].date(), **shared}) for end in files), COLUMNS)


def _whole(end: FileEnd, shared: Mapping[str, Any]) -> dict[str, Any]:
    file = end.file
    named = {"file_id": file.file_id, "bucket": file.bucket, "key": file.key, "version_id": file.version_id}
    said = {"reason": end.reason, "detail": end.detail, "record": end.head or None}
    nothing = dict.fromkeys(("line", "byte_offset", "table", "metadata"))
    return {**shared, **named, **said, **nothing}
