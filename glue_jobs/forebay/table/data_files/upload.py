"""Parquet files in memory, and their way into the tables' folders.

In: rows of one destination, as Arrow. Out: an answer for each file that arrived or did not (`data_file`).
"""

from __future__ import annotations

import json
import time
import uuid
from collections import deque
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from forebay.record.kind import Struct, json_of
from forebay.table.data_files.data_file import failure_of
from forebay.table.data_files.dictionaries import dictionaries
from forebay.table.data_files.partition import Values, folder
from forebay.table.data_files.statistics import Statistics
from forebay.table.data_files.storage import UploadFailed
from forebay.table.shaping import RESCUED

FILE_BYTES = 128 << 20
UPLOADS_AT_ONCE = 8
UPLOADING_BYTES = 64 << 20
CODEC = "zstd"


class OpenFile:
    """A Parquet file that is being written, in memory."""

    def __init__(
        self, key: str, table: str, table_path: str, values: Values, schema: pa.Schema, columns: Struct | None
    ) -> None:
        self.key, self.table, self.table_path, self.values, self.columns = key, table, table_path, values, columns
        self.name = f"{folder(values)}part-{uuid.uuid4()}.{CODEC}.parquet"
        self.rows = self.rescued = 0
        # Partition values live in the log, not in the file.
        self._columns = [name for name in schema.names if name not in dict(values)]
        self._arrives = schema
        self._schema = pa.schema([optional(schema.field(name)) for name in self._columns])
        self._statistics = Statistics()
        self._buffer = pa.BufferOutputStream()
        self._parquet: pq.ParquetWriter | None = None

    def takes(self, key: str, schema: pa.Schema) -> bool:
        return bool(self.key == key and self._arrives.equals(schema) and self._buffer.tell() < FILE_BYTES)

    def write(self, group: pa.Table) -> None:
        self.rows += group.num_rows
        if self.columns is not None:
            self.rescued += group.num_rows - group[RESCUED].null_count
        group = group.select(self._columns)
        if group.schema != self._schema:
            group = group.cast(self._schema)
        self._statistics.observe(group)
        if self._parquet is None:
            options = {"compression": CODEC, "store_schema": False, "use_dictionary": dictionaries(group)}
            self._parquet = pq.ParquetWriter(self._buffer, self._schema, **options)
        self._parquet.write_table(group, row_group_size=max(1, group.num_rows))

    def close(self) -> tuple[pa.Buffer, str]:
        """The bytes of the file, and its statistics."""
        assert self._parquet is not None, "a file has rows"
        self._parquet.close()
        return self._buffer.getvalue(), self._statistics.as_json()


def optional(field: pa.Field) -> pa.Field:
    """The field, which may be null, down to the innermost: Spark's "never null" is null inside of a null struct."""
    kind = field.type
    if pa.types.is_struct(kind):
        kind = pa.struct([optional(child) for child in kind])
    elif pa.types.is_map(kind):
        kind = pa.map_(kind.key_type, optional(kind.item_field))
    elif pa.types.is_list(kind):
        kind = pa.list_(optional(kind.value_field))
    return pa.field(field.name, kind)


class Uploads:
    """Finished files on their way out, a few at once: a thousand small tables must not wait for a thousand round trips.

    A file that does not arrive is an answer with an error, which fails its table and no other."""

    def __init__(self, put: Callable[[str, str, pa.Buffer], None]) -> None:
        self._put = put
        self._pool = ThreadPoolExecutor(UPLOADS_AT_ONCE)
        self._under_way: deque[tuple[int, Future[dict[str, Any]]]] = deque()
        self._bytes = 0

    def __enter__(self) -> Uploads:
        return self

    def __exit__(self, *_: object) -> None:
        self._pool.shutdown(cancel_futures=True)

    def add(self, file: OpenFile | None) -> list[dict[str, Any]]:
        """Sends it off, if there is one; answers of those that have arrived meanwhile."""
        if file is None:
            return []
        try:
            content, stats = file.close()
        except Exception as failure:
            return [failure_of(file.table, failure)]
        self._bytes += content.size
        self._under_way.append((content.size, self._pool.submit(self._send, file, content, stats)))
        answers = []
        while self._under_way and (self._bytes > UPLOADING_BYTES or self._under_way[0][1].done()):
            answers.append(self._oldest())
        return answers

    def finish(self) -> list[dict[str, Any]]:
        return [self._oldest() for _ in range(len(self._under_way))]

    def _oldest(self) -> dict[str, Any]:
        size, answer = self._under_way.popleft()
        self._bytes -= size
        return answer.result()

    def _send(self, file: OpenFile, content: pa.Buffer, stats: str) -> dict[str, Any]:
        try:
            self._put(file.table_path, file.name, content)
        except (OSError, UploadFailed) as failure:
            return failure_of(file.table, failure)
        return {
            "table": file.table,
            "path": file.name,
            "partitions": json.dumps(file.values),
            "size": content.size,
            "rows": file.rows,
            "modified_ms": int(time.time() * 1000),
            "stats": stats,
            "columns": None if file.columns is None else json.dumps(json_of(file.columns)),
            "rescued": file.rescued,
        }
