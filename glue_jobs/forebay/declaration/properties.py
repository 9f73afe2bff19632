"""The Delta properties that a table may declare: those that all writers here respect and every reader supports.

In: declared properties. Out: a line for each that is refused, with the reason. Custom names are allowed: the table's
metadata keeps them, and they have no effect.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping

CHANGE_FEED = "delta.enableChangeDataFeed"

ALLOWED = {
    CHANGE_FEED: (re.compile("true|false"), '"true" or "false"'),
    "delta.checkpointInterval": (re.compile("[1-9][0-9]{0,5}"), 'a number of commits, such as "10"'),
}
"""The valid values of each, and their description."""

REFUSED = {
    "delta.appendOnly": "would prevent replacing, replaying and erasing rows",
    "delta.deletedFileRetentionDuration": "follows from time_travel_days",
    "delta.logRetentionDuration": "follows from time_travel_days",
    "delta.setTransactionRetentionDuration": "would make the table forget its batches, and load them twice",
    "delta.enableTypeWidening": "is set by type_widening = true",
    "delta.columnMapping.mode": "is for writers that address columns by number; forebay appends by the columns' own names",
    "delta.enableDeletionVectors": "would lock out readers that support only version 1 of the protocol",
    "delta.enableRowTracking": "needs row numbers, which forebay does not write",
    "delta.enableIcebergCompatV2": "needs column mapping, and forebay appends by the columns' own names",
    "delta.universalFormat.enabledFormats": "needs column mapping, and forebay appends by the columns' own names",
}
OTHERS = "is not known to work with forebay's writers and all readers"

OF_OTHERS = ("delta.", "forebay.")
OWN_NAME = re.compile(r"[A-Za-z][A-Za-z0-9_.-]{0,126}")
LONGEST = 4096


def refusals(properties: Mapping[str, str]) -> Iterator[str]:
    for name, value in properties.items():
        if why := _why_not(name, value):
            yield f"properties: {name} {why}"


def _why_not(name: str, value: str) -> str | None:
    if name in ALLOWED:
        pattern, words = ALLOWED[name]
        return None if pattern.fullmatch(value) else f'must be {words}; got "{value}"'
    known = {key.lower(): key for key in ALLOWED}
    if spelled := known.get(name.lower()) or known.get(f"delta.{name.lower()}"):
        return f"is spelled {spelled}"
    if name.lower().startswith(OF_OTHERS):
        why = REFUSED.get(name, "is a name reserved for forebay" if name.lower().startswith("forebay.") else OTHERS)
        return f"{why}; allowed: {', '.join(ALLOWED)}, and your own names"
    if not OWN_NAME.fullmatch(name):
        return "must be letters, digits, _, - and dots, and begin with a letter"
    return None if len(value) <= LONGEST else f"has {len(value)} characters, and {LONGEST} is the limit"
