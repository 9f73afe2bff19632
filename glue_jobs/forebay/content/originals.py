"""The original personal values: a column beside the records, on its way into the vault. The column includes the encryption
key.

In: batches of rows, and the values of each record before it was treated. Out: the batches with `personal`. Their reader
encrypts the column before anything keeps a row (`batch.one_pass.vault`). Values without a subject are not kept: nobody
could request them, or have them erased.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import accumulate, chain

import pyarrow as pa

from forebay.declaration.form import Form
from forebay.privacy.together import Original
from forebay.privacy.wrapping import wrapping_key

COLUMN = "personal struct<subjects: array<string>, key_id: string, salt: binary, key: binary, values: string>"
NAME = COLUMN.partition(" ")[0]
_KIND = pa.struct(
    [
        ("subjects", pa.list_(pa.string())),
        ("key_id", pa.string()),
        ("salt", pa.binary()),
        ("key", pa.binary()),
        ("values", pa.string()),
    ]
)


def with_originals(batch: pa.RecordBatch, found: Sequence[Original | None], form: Form) -> pa.RecordBatch:
    """`found` has something for each row, or None."""
    kept = [one if one is not None and one[0] else None for one in found]
    if not any(kept):
        return without_originals(batch)
    mine = wrapping_key(form.vault, form.vault_key)
    subjects = [one[0] if one else () for one in kept]
    keys = [mine.data_key(of) if of else (None, None) for of in subjects]
    columns = (
        _lists(subjects, pa.array(chain.from_iterable(subjects), pa.string())),
        pa.repeat(mine.name, len(kept)),
        pa.array([salt for _, salt in keys], pa.binary()),
        pa.array([key for key, _ in keys], pa.binary()),
        pa.array([one[1] if one else None for one in kept], pa.string()),
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
