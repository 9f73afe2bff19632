"""What personal values were: a column beside the records, on its way into the vault. It is plain, with the keys to encrypt it.

In: batches of rows, and what stood in each record before it was treated. Out: the batches with `personal`. Whoever reads them
encrypts the column before anything keeps a row (`batch.vaulted`). Values that tell nobody's name are not kept: nobody could ask
for them, or have them erased.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import accumulate, chain

import pyarrow as pa

from forebay.declaration.form import Form
from forebay.privacy.text import Originals
from forebay.privacy.wrapping import wrapping_key

__all__ = ["COLUMN", "Original", "with_originals", "without_originals"]

COLUMN = (
    "personal struct<subjects: array<string>, key_id: string, wrapping: binary, key: binary, "
    "fields: array<struct<path: string, value: string>>>"
)
NAME = COLUMN.partition(" ")[0]
_TEXTS = pa.list_(pa.string())
_FIELD = pa.struct([("path", pa.string()), ("value", pa.string())])
_KIND = pa.struct(
    [
        ("subjects", _TEXTS),
        ("key_id", pa.string()),
        ("wrapping", pa.binary()),
        ("key", pa.binary()),
        ("fields", pa.list_(_FIELD)),
    ]
)

Original = tuple[tuple[str, ...], Originals]
"""The subjects of a record, and what stood in it."""


def with_originals(batch: pa.RecordBatch, found: Sequence[Original | None], form: Form) -> pa.RecordBatch:
    """`found` has something for each row, or None."""
    kept = [one if one is not None and one[0] and one[1] else None for one in found]
    if not any(kept):
        return without_originals(batch)
    mine = wrapping_key(form.vault, form.vault_key)
    subjects = [one[0] if one else () for one in kept]
    fields = [one[1] if one else [] for one in kept]
    flat = list(chain.from_iterable(fields))
    columns = (
        _lists(subjects, pa.array(chain.from_iterable(subjects), pa.string())),
        pa.repeat(mine.name, len(kept)),
        pa.repeat(pa.scalar(mine.plain, pa.binary()), len(kept)),
        pa.array([mine.data_key(of) if of else None for of in subjects], pa.binary()),
        _lists(
            fields,
            pa.StructArray.from_arrays(
                [
                    pa.array((path for path, _ in flat), pa.string()),
                    pa.array((value for _, value in flat), pa.string()),
                ],
                fields=list(_FIELD),
            ),
        ),
    )
    is_null = pa.array([one is None for one in kept])
    return _with(batch, pa.StructArray.from_arrays(columns, fields=list(_KIND), mask=is_null))


def without_originals(batch: pa.RecordBatch) -> pa.RecordBatch:
    """All batches of a reading have the column."""
    return batch if NAME in batch.schema.names else _with(batch, pa.nulls(batch.num_rows, _KIND))


def _with(batch: pa.RecordBatch, column: pa.Array) -> pa.RecordBatch:
    return batch.append_column(pa.field(NAME, _KIND), column)


def _lists(of: Sequence[Sequence[object]], flat: pa.Array) -> pa.ListArray:
    return pa.ListArray.from_arrays(pa.array(accumulate(map(len, of), initial=0), pa.int32()), flat)
