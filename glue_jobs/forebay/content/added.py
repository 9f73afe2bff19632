"""Fields that a record's text gets: its surroundings, the array and position of an element, the member of an archive.

In: the original record, and such fields. Out: its text with them. If the record already has a field of that name, that field
gets a second `@`, so neither is lost, and no record can forge such a field. No other byte changes.
"""

from __future__ import annotations

from collections.abc import Sequence

from forebay.content.elements import members_of, names
from forebay.content.formats.json_text import spelt
from forebay.content.splitting.structure import WHITE


def with_fields(record: bytes, keys: Sequence[str], fields: bytes) -> bytes:
    """The record with these fields before its own fields. `fields` are members of an object, with these keys."""
    rest = own_renamed(record, keys)[1:].lstrip(WHITE)
    return b"{" + fields + (b"" if rest == b"}" else b",") + rest


def own_renamed(record: bytes, keys: Sequence[str]) -> bytes:
    """Renames the record's own fields with these keys. Keys of inner objects stay."""
    # Of an ordinary record this is one search.
    if (b'"@' not in record and b'"\\u0040' not in record) or not any(names(record, key) for key in keys):
        return record
    for (first, _), key, value in reversed(members_of(record, 0, len(record))):
        if key in keys:
            record = record[:first] + spelt(f"@{key}") + b":" + record[value:]
    return record
