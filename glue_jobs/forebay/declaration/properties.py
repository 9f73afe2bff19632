"""Delta's properties that a table may be declared with: those that all writers here keep to, and no reader trips over.

In: declared properties. Out: a line for each that is refused, with the reason. Names of your own are allowed: they are kept in
the table's metadata, without an effect.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping

__all__ = ["CHANGE_FEED", "refusals"]

CHANGE_FEED = "delta.enableChangeDataFeed"

ALLOWED = {
    CHANGE_FEED: (re.compile("true|false"), '"true" or "false"'),
    "delta.checkpointInterval": (re.compile("[1-9][0-9]{0,5}"), 'a number of commits, such as "10"'),
}
"""The valid values of each, and their description."""

REFUSED = {
    "delta.appendOnly": "would forbid to replace, replay and erase rows",
    "delta.deletedFileRetentionDuration": "follows from time_travel_days",
    "delta.logRetentionDuration": "follows from time_travel_days",
    "delta.setTransactionRetentionDuration": "would make the table forget which batches it has, and take them twice",
    "delta.enableTypeWidening": "is what type_widening = true declares",
    "delta.columnMapping.mode": "is for writers that know columns by number; forebay appends by the columns' own names",
    "delta.enableDeletionVectors": "would keep out readers that know version 1 of the protocol only",
    "delta.enableRowTracking": "needs row numbers, which forebay does not write",
    "delta.enableIcebergCompatV2": "needs column mapping, and forebay appends by the columns' own names",
    "delta.universalFormat.enabledFormats": "needs column mapping, and forebay appends by the columns' own names",
}
OTHERS = "is none that both forebay's writers and all readers are known to keep to"

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
    if name.lower().startswith(OF_OTHERS):
        known = {key.lower(): key for key in ALLOWED}
        if name.lower() in known:
            return f"is written {known[name.lower()]}"
        why = REFUSED.get(name, "is a name of forebay's own" if name.lower().startswith("forebay.") else OTHERS)
        return f"{why}; allowed are {', '.join(ALLOWED)}, and names of your own"
    if not OWN_NAME.fullmatch(name):
        return "must be letters, digits, _, - and dots, and begin with a letter"
    return None if len(value) <= LONGEST else f"has {len(value)} characters, and {LONGEST} is the limit"
