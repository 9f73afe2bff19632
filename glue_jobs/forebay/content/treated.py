"""Rows leave this room without personal values: documents are treated, and no other text is kept.

In: batches of one piece, of documents, of refused records or of its end; and the form of its file. Out: the same batches. If
the personal fields of a text cannot be found, `NOT_KEPT` replaces it. It is not JSON, so it is refused as the text itself
would be. The file still has the text, at the same byte. A record of an erased person yields only its position, with the
problem `ERASED`: it is counted, and dropped.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import replace
from functools import lru_cache
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from forebay.content.elements import members_of
from forebay.content.end import PieceEnd
from forebay.content.originals import with_originals
from forebay.content.outcome import ERASED, FileReason
from forebay.content.rows import end_batch
from forebay.declaration.form import EXPLODED, PARENT, Form, Keys
from forebay.declaration.personal import PersonalField, of_elements, of_surrounded, of_whole_documents
from forebay.privacy.erased import erased_at
from forebay.privacy.secret import secret_at
from forebay.privacy.subject import subject_paths
from forebay.privacy.text import pattern_of
from forebay.privacy.together import NOT_KEPT, Original, records_of, treated_texts

QUOTING: tuple[FileReason, ...] = ("bad-header", "corrupt-file")
"""Reasons whose detail may quote the file."""
MARK = json.dumps(EXPLODED)
MAY_BE_MARK = rf"{MARK}|\\u00[4-7]"
"""Matches a text that may have the key `EXPLODED`, plain or with escapes."""


def treated_rows(batches: Iterator[pa.RecordBatch], form: Form) -> Iterator[pa.RecordBatch]:
    for batch in batches:
        if batch.column("line").null_count:
            (row,) = batch.to_pylist()
            yield end_batch(_treated_end(PieceEnd.from_row(row["piece"], row["value"], row["problem"], row["detail"])))
            continue
        is_refused = batch.column("problem").null_count < batch.num_rows
        if is_refused:
            yield _with(batch, "value", pa.repeat(NOT_KEPT, batch.num_rows))
        elif form.vault:
            found = dict[int, Original]()
            treated = treated_records(batch, form, found)
            yield with_originals(treated, [found.get(row) for row in range(batch.num_rows)], form)
        else:
            yield treated_records(batch, form)


def treated_records(batch: pa.RecordBatch, form: Form, originals: dict[int, Original] | None = None) -> pa.RecordBatch:
    """Rows with documents in `value`; those of erased people have a problem instead. Where `originals` are wanted, they are
    added by row."""
    if (erased := _erased(batch.column("value"), form)) is not None:
        batch = _with(batch, "value", pc.if_else(erased, NOT_KEPT, batch.column("value")))
        batch = _with(batch, "problem", pc.if_else(erased, ERASED, batch.column("problem")))
    return _with(batch, "value", treated_documents(batch.column("value"), form, originals))


def _with(batch: pa.RecordBatch, name: str, values: pa.Array) -> pa.RecordBatch:
    at = batch.schema.get_field_index(name)
    return batch.set_column(at, batch.schema.field(at), values)


def _erased(texts: pa.StringArray, form: Form) -> pa.BooleanArray | None:
    """Marks the records of erased people; None where there are none."""
    if not form.erased or not form.subject:
        return None
    paths = _subject_paths(form)
    named = _naming(texts, tuple(PersonalField(path, "dropped") for path in paths))
    found = np.zeros(len(texts), bool)
    found[named] = records_of(erased_at(form.erased), texts.filter(pa.array(named)), paths, secret_at(form.secret))
    return pa.array(found) if found.any() else None


def _naming(texts: pa.StringArray, fields: tuple[PersonalField, ...]) -> Any:
    """The texts that may have one of the fields. The others need not be parsed."""
    return np.asarray(pc.fill_null(pc.match_substring_regex(texts, pattern_of(fields)), False))


@lru_cache(maxsize=100)
def _subject_paths(form: Form) -> tuple[Keys, ...]:
    return subject_paths(form.subject, [one.path for one in form.exploded], form.joints, form.inside)


def treated_documents(
    texts: pa.StringArray, form: Form, originals: dict[int, Original] | None = None
) -> pa.StringArray:
    """Treats the documents. Documents without the name of a personal field are not parsed."""
    of_record, of_element = _fields_of(form)
    named = _naming(texts, (*of_record, *of_element))
    marked = _marked(texts) if of_element != of_record else named
    of_marked = named & marked
    texts = _treated(texts, of_marked, of_element, form, originals)
    return texts if of_element == of_record else _treated(texts, named & ~marked, of_record, form, originals)


def _marked(texts: pa.StringArray) -> Any:
    """The records that are marked as elements of an exploded array."""
    may = np.asarray(pc.fill_null(pc.match_substring_regex(texts, MAY_BE_MARK), False))
    found = np.asarray(pc.fill_null(pc.match_substring(texts, MARK), False))
    for row in np.flatnonzero(may & ~found).tolist():
        record = texts[row].as_py().encode()
        found[row] = any(key == EXPLODED for _, key, _ in members_of(record, 0, len(record)))
    return found


def _treated(
    texts: pa.StringArray,
    which: Any,
    fields: tuple[PersonalField, ...],
    form: Form,
    originals: dict[int, Original] | None,
) -> pa.StringArray:
    if not which.any():
        return texts
    secret = secret_at(form.secret) if form.secret else b""
    kept = None if originals is None else dict[int, Original]()
    mask = pa.array(which)
    treated = treated_texts(texts.filter(mask), fields, secret, subject=_subject_paths(form), originals=kept)
    if originals is not None and kept:
        rows = np.flatnonzero(which).tolist()
        originals |= {rows[at]: one for at, one in kept.items()}
    return pc.replace_with_mask(texts, mask, treated)


@lru_cache(maxsize=100)
def _fields_of(form: Form) -> tuple[tuple[PersonalField, ...], tuple[PersonalField, ...]]:
    """The fields of a record, or of a possible element of an exploded array: any record can claim to be one."""
    of_record = of_surrounded((*form.personal, *of_whole_documents(form.personal, form.inside)), PARENT)
    return of_record, (*of_record, *of_elements(form.personal, [one.path for one in form.exploded]))


def _treated_end(end: PieceEnd) -> PieceEnd:
    return replace(end, head="", detail=NOT_KEPT if end.reason in QUOTING else end.detail)
