"""The rows of a Parquet file become records.

In: the file's bytes. Out: parts, a batch of rows at a time; the place of a row is its number, from 0. A truncated file, or one
with unsupported values, is `NotTaken`.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

import numpy as np
import pyarrow as pa

from forebay.content.formats.json_text import Wordless, documents, json_of, spelt
from forebay.content.formats.part import Part, part_of_rows, refuse_twins
from forebay.content.limits import Limits
from forebay.content.outcome import FileReason, NotTaken, TooMany
from forebay.counted import counted

BATCH_BYTES, BATCH_ROWS = 8 << 20, 20_000


def parquet_parts(data: bytes, limits: Limits) -> Iterator[Part]:
    try:
        yield from _parts(data, limits)
    except MemoryError:  # Arrow's is one of its own errors, too
        raise
    except Wordless as wordless:
        raise NotTaken("wrong-format", str(wordless)) from wordless
    except RecursionError as deep:
        raise NotTaken("wrong-format", "its columns are nested too deep") from deep
    except (pa.ArrowException, OSError, ValueError) as error:
        # Of a file whose columns are encrypted, and whose footer is not.
        reason: FileReason = "encrypted" if "decrypt" in str(error) else "corrupt-file"
        raise NotTaken(reason, f"a Parquet file that cannot be read: {error}") from error


def _parts(data: bytes, limits: Limits) -> Iterator[Part]:
    import pyarrow.parquet as pq

    # In nanoseconds, which pyarrow makes of INT96 otherwise, the year 9999 would be another one, in silence.
    file = pq.ParquetFile(pa.BufferReader(data), page_checksum_verification=True, coerce_int96_timestamp_unit="us")
    if file.metadata.num_rows > limits.max_records:
        raise TooMany(
            "too-many-records", f"{counted(file.metadata.num_rows, 'row')}, and {limits.max_records:,} is the limit"
        )
    _refuse_twins_in(file.schema_arrow)
    keys = [spelt(name) for name in file.schema_arrow.names]
    row = 0
    for batch in file.iter_batches(_rows_at_once(file.metadata, keys), use_threads=False):
        places = np.arange(row, row + batch.num_rows)
        texts = documents(keys, [json_of(column) for column in batch.columns], batch.num_rows)
        yield part_of_rows([texts], places + 1, places, limits, batch.num_rows, counts="row")
        row += batch.num_rows


def _rows_at_once(metadata: Any, keys: list[bytes]) -> int:
    groups = [metadata.row_group(n) for n in range(metadata.num_row_groups)]
    largest = max((group.total_byte_size // max(1, group.num_rows) for group in groups), default=0)
    return max(1, min(BATCH_ROWS, BATCH_BYTES // (1 + largest + sum(map(len, keys)))))


def _refuse_twins_in(schema: Iterable[Any]) -> None:
    """Refuses two fields of one name on any level, because JSON would keep one of them."""
    fields = list(schema)
    refuse_twins([field.name for field in fields])
    for field in fields:
        _refuse_twins_in(field.type.field(n) for n in range(field.type.num_fields))
