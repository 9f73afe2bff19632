"""Rows leave this room without what is personal: documents are treated, and of what is no document no text is kept.

In: batches of one piece, of documents, of refused records or of its end; and the form of its file. Out: the same batches. Where
the personal fields of a text cannot be told, `NOT_KEPT` takes its place. That is no JSON, so it is refused as the text itself
would be. The file still has it, at the same byte. Of a record of an erased person nothing leaves but its place, with the
problem `ERASED`: it is counted, and dropped.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import lru_cache
from itertools import repeat

import pyarrow as pa
import pyarrow.compute as pc

from forebay.content.end import PieceEnd
from forebay.content.originals import Original, with_originals
from forebay.content.outcome import ERASED, FileReason
from forebay.content.rows import end_batch
from forebay.declaration.form import EXPLODED, PARENT, Form, Keys
from forebay.declaration.personal import PersonalField, of_elements, of_surrounded
from forebay.privacy.erased import erased_at
from forebay.privacy.secret import secret_at
from forebay.privacy.subject import may_be_of, subject_paths, subject_tokens, tokens_in
from forebay.privacy.swift import Swift, swift_of
from forebay.privacy.text import Originals, pattern_of, treated_text
from forebay.privacy.vault import packed

__all__ = ["NOT_KEPT", "treated_documents", "treated_records", "treated_rows"]

NOT_KEPT = "(not kept: what is personal in it cannot be told)"
QUOTING: tuple[FileReason, ...] = ("bad-header", "corrupt-file")
"""Reasons whose detail may quote the file."""
MARK = json.dumps(EXPLODED)


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
    """Rows with documents in `value`; those of erased persons have a problem instead. Where `originals` are wanted, they are
    added by row."""
    if (erased := _erased(batch.column("value"), form)) is not None:
        batch = _with(batch, "value", pc.if_else(erased, NOT_KEPT, batch.column("value")))
        batch = _with(batch, "problem", pc.if_else(erased, ERASED, batch.column("problem")))
    return _with(batch, "value", treated_documents(batch.column("value"), form, originals))


def _with(batch: pa.RecordBatch, name: str, values: pa.Array) -> pa.RecordBatch:
    at = batch.schema.get_field_index(name)
    return batch.set_column(at, batch.schema.field(at), values)


def _erased(texts: pa.StringArray, form: Form) -> pa.BooleanArray | None:
    """Which records are of erased persons; None where none is."""
    if not form.erased or not form.subject:
        return None
    paths = _subject_paths(form)
    pattern = pattern_of(tuple(PersonalField(path, "dropped") for path in paths))
    named = pc.fill_null(pc.match_substring_regex(texts, pattern), False).to_pylist()
    erased, secret = erased_at(form.erased), secret_at(form.secret)
    found = [
        names
        and may_be_of(text, form.subject, erased, secret)
        and not erased.isdisjoint(subject_tokens(text, paths, secret))
        for names, text in zip(named, texts.to_pylist(), strict=True)
    ]
    return pa.array(found, pa.bool_()) if any(found) else None


@lru_cache(maxsize=100)
def _subject_paths(form: Form) -> tuple[Keys, ...]:
    return subject_paths(form.subject, [one.path for one in form.exploded])


def treated_documents(
    texts: pa.StringArray, form: Form, originals: dict[int, Original] | None = None
) -> pa.StringArray:
    """Those that name no personal field are not read."""
    of_record, of_element = _fields_of(form)
    named = pc.fill_null(pc.match_substring_regex(texts, pattern_of((*of_record, *of_element))), False)
    if not pc.any(named).as_py():
        return texts
    found = pc.filter(texts, named).to_pylist()
    secret = secret_at(form.secret) if form.secret else b""
    paths = () if originals is None else _subject_paths(form)
    record, element = _Treating.of(of_record, paths), _Treating.of(of_element, paths)
    treating = [element if MARK in text else record for text in found] if element is not record else repeat(record)
    if originals is None:
        treated = [how.treated(text, secret) for how, text in zip(treating, found, strict=False)]
    else:
        treated, told = [], Originals()
        for row, how, text in zip(pc.indices_nonzero(named).to_pylist(), treating, found, strict=False):
            told.forget()
            treated.append(how.treated(text, secret, told))
            if told:
                values = told.subjects
                subjects = subject_tokens(text, paths, secret) if values is None else tokens_in(values, secret)
                originals[row] = (tuple(sorted(subjects)), packed(told))
    return pc.replace_with_mask(texts, named, pa.array(treated, pa.string()))


@dataclass(frozen=True)
class _Treating:
    """What many records have in common."""

    fields: tuple[PersonalField, ...]
    swift: Swift | None

    @classmethod
    @lru_cache(maxsize=100)
    def of(cls, fields: tuple[PersonalField, ...], subject: tuple[Keys, ...]) -> _Treating:
        return cls(fields, swift_of(fields, subject))

    def treated(self, text: str, secret: bytes, originals: Originals | None = None) -> str:
        try:
            swiftly = None if self.swift is None else self.swift.treated(text, secret, originals)
            return treated_text(text, self.fields, secret, originals) if swiftly is None else swiftly
        except ValueError:
            return NOT_KEPT


@lru_cache(maxsize=100)
def _fields_of(form: Form) -> tuple[tuple[PersonalField, ...], tuple[PersonalField, ...]]:
    """Of a record, and of what may be an element of an exploded array: any record can say that it is one."""
    of_record = of_surrounded(form.personal, PARENT)
    return of_record, (*of_record, *of_elements(form.personal, [one.path for one in form.exploded]))


def _treated_end(end: PieceEnd) -> PieceEnd:
    return replace(end, head="", detail=NOT_KEPT if end.reason in QUOTING else end.detail)
