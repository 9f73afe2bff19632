"""Does the work of `text` for thousands of records at once, in a quarter of the time.

In: records as one Arrow array of text, and their personal fields. Out: the texts, treated, and the original values for the
vault. `text` treats the rows that `members` leaves unread. It is also the definition: a test compares both.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from forebay.declaration.form import Keys
from forebay.declaration.personal import PersonalField
from forebay.privacy.members import COMMA, Members, Texts, blocks
from forebay.privacy.subject import subject_tokens
from forebay.privacy.text import Level, Originals, level_of, treated_text
from forebay.privacy.token import remembered_token
from forebay.privacy.vault import labelled, packed
from forebay.texts import listed, pieces

NOT_KEPT = "(not kept: its personal fields are unknown)"
NULL, ANY_TEXT = "null", '""'
Original = tuple[tuple[str, ...], str]
"""The subjects of a record, and its original values, packed as in the vault."""


def treated_texts(
    texts: pa.StringArray,
    fields: tuple[PersonalField, ...],
    secret: bytes,
    *,
    subject: Sequence[Keys] = (),
    originals: dict[int, Original] | None = None,
) -> pa.StringArray:
    """`secret` is for fields that become tokens. If given, `originals` gets the original values by row, with the tokens of the
    values at the paths of the `subject`."""
    treated = []
    for at, some in blocks(texts):
        found = None if originals is None else dict[int, Original]()
        treated.append(_treated(some, fields, secret, subject, found))
        if originals is not None:
            originals |= {at + row: one for row, one in (found or {}).items()}
    return pa.concat_arrays(treated) if treated else texts


def records_of(tokens: frozenset[str], texts: pa.StringArray, paths: Sequence[Keys], secret: bytes) -> Any:
    """Whether one of these tokens is the subject at one of the paths, for each record."""
    found = [_records_of(tokens, some, paths, secret) for _, some in blocks(texts)]
    return np.concatenate(found) if found else np.zeros(0, bool)


def _records_of(tokens: frozenset[str], texts: pa.StringArray, paths: Sequence[Keys], secret: bytes) -> Any:
    seen = Texts(texts)
    owners = seen.members(_level_of_subject(paths))
    found = np.zeros(len(texts), bool)
    found[[row for row, his in _subjects(seen, owners, secret).items() if not tokens.isdisjoint(his)]] = True
    for row, text in _at(owners.unread, texts):
        found[row] = not tokens.isdisjoint(subject_tokens(text, paths, secret))
    return found


def _at(which: Any, texts: pa.StringArray) -> Iterator[tuple[int, str]]:
    """The rows, and their texts."""
    rows = np.flatnonzero(which)
    return zip(rows.tolist(), texts.take(pa.array(rows)).to_pylist(), strict=True)


def _level_of_subject(paths: Sequence[Keys]) -> Level:
    return level_of(tuple(PersonalField(path, "token") for path in paths))


def _treated(
    texts: pa.StringArray,
    fields: tuple[PersonalField, ...],
    secret: bytes,
    subject: Sequence[Keys],
    originals: dict[int, Original] | None,
) -> pa.StringArray:
    seen = Texts(texts)
    members = seen.members(level_of(fields, secret))
    unread = members.unread
    if originals is not None:
        owners = seen.members(_level_of_subject(subject))
        unread = unread | owners.unread
        members, owners = (one.where(~unread[one.rows]) for one in (members, owners))
        originals |= _originals(seen, members, owners, secret)
    treated = _written(seen, members)
    if not unread.any():
        return treated
    walked = []
    for row, text in _at(unread, texts):
        values: Originals = []
        walked.append(_walked(text, fields, secret, None if originals is None else values))
        if originals is not None and values:
            originals[row] = (tuple(sorted(subject_tokens(text, subject, secret))), packed(values))
    return pc.replace_with_mask(treated, pa.array(unread), pa.array(walked, pa.string()))


def _walked(text: str, fields: tuple[PersonalField, ...], secret: bytes, originals: Originals | None) -> str:
    try:
        return treated_text(text, fields, secret, originals)
    except ValueError:
        return NOT_KEPT


def _written(seen: Texts, members: Members) -> pa.StringArray:
    """The texts, with what the members become in the place of what they were."""
    starts, ends = _dropped_with_their_commas(seen, members)
    become = _become(pieces(seen.raw, members.starts, members.ends), members)
    kept = pieces(seen.raw, np.concatenate(([0], ends)), np.concatenate((starts, [len(seen.raw)])))
    order = np.arange(2 * len(starts) + 1) // 2
    order[1::2] += len(kept)
    text = pa.concat_arrays([kept, become]).take(pa.array(order))
    grown = np.concatenate(([0], np.cumsum(np.asarray(pc.binary_length(become), np.int64) - (ends - starts))))
    new_ends = seen.ends + grown[np.searchsorted(starts, seen.ends)]
    offsets = pa.py_buffer(np.concatenate(([0], new_ends)).astype(np.int32))
    return pa.StringArray.from_buffers(len(seen.ends), offsets, text.buffers()[2])


def _become(values: pa.StringArray, members: Members) -> pa.StringArray:
    order, made = [np.empty(0, np.int64)], [pa.array([], pa.string())]
    for at in np.unique(members.level).tolist():
        of_level = np.flatnonzero(members.level == at)
        made.append(_treated_values(members.levels[at], values.take(pa.array(of_level))))
        order.append(of_level)
    return pa.concat_arrays(made).take(pa.array(np.argsort(np.concatenate(order))))


def _treated_values(level: Level, values: pa.StringArray) -> pa.StringArray:
    """Each value that stands often is treated once."""
    if level.whole == "dropped":
        return pa.repeat(pa.scalar("", pa.string()), len(values))
    if level.whole == "masked":
        return pc.if_else(pc.equal(values, NULL), NULL, level.treated(ANY_TEXT))
    named = values.dictionary_encode()
    treated = [level.treated(value) for value in listed(named.dictionary)]
    return pa.array(treated, pa.string()).take(named.indices)


def _dropped_with_their_commas(seen: Texts, members: Members) -> tuple[Any, Any]:
    """The ranges to replace. For a dropped member they include its key, the comma after it, and the blanks around; for the last
    member of an object the comma before it. Adjacent dropped members are a run, and the last one decides for all of it."""
    starts, ends = members.starts.copy(), members.ends.copy()
    dropped = np.flatnonzero(np.array([one.whole == "dropped" for one in members.levels], bool)[members.level])
    if not len(dropped):
        return starts, ends
    keys, behind = members.keys[dropped], seen.past_blanks(ends[dropped])
    before, is_last = seen.before_blanks(keys), seen.text[behind] != COMMA
    next_key = np.full(len(keys), -1)
    next_key[~is_last] = seen.past_blanks(behind[~is_last] + 1)
    run_ends = np.flatnonzero(next_key != np.append(keys[1:], -2))
    is_last = is_last[run_ends[np.searchsorted(run_ends, np.arange(len(keys)))]]
    ends[dropped] = np.where(is_last, behind, next_key)
    starts[dropped] = before + ~(is_last & (seen.text[before] == COMMA))
    starts[1:] = np.maximum(starts[1:], ends[:-1])
    return starts, ends


def _originals(seen: Texts, members: Members, owners: Members, secret: bytes) -> dict[int, Original]:
    """By row; the subjects are the values of `owners`."""
    vault = np.array([one.field is not None and one.field.vault for one in members.levels], bool)
    kept = members.where(vault[members.level])
    values = pieces(seen.raw, kept.starts, kept.ends)
    given = np.asarray(pc.not_equal(values, NULL))
    kept, values = kept.where(given), values.filter(pa.array(given))
    labels = pa.array([labelled(one.field.label) if one.field else "" for one in kept.levels], pa.string())
    packed_values = pc.binary_join_element_wise(labels.take(pa.array(kept.level)), values, "]", "")
    rows, begins = np.unique(kept.rows, return_index=True)
    lists = pa.ListArray.from_arrays(pa.array(np.append(begins, len(packed_values)), pa.int32()), packed_values)
    texts = pc.binary_join_element_wise("[", pc.binary_join(lists, ","), "]", "").to_pylist()
    subjects = _subjects(seen, owners, secret)
    return {row: (subjects.get(row, ()), text) for row, text in zip(rows.tolist(), texts, strict=True)}


def _subjects(seen: Texts, owners: Members, secret: bytes) -> dict[int, tuple[str, ...]]:
    named = pieces(seen.raw, owners.starts, owners.ends).dictionary_encode()
    tokens = [None if one == NULL else remembered_token(one.strip('"'), secret) for one in listed(named.dictionary)]
    found: dict[int, list[str]] = {}
    for row, at in zip(owners.rows.tolist(), listed(named.indices), strict=True):
        if (token := tokens[at]) is not None:
            found.setdefault(row, []).append(token)
    return {row: (his[0],) if len(his) == 1 else tuple(sorted({*his})) for row, his in found.items()}
