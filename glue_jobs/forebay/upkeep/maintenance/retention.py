"""How long files that the newest version does not need are kept: as long as somebody may read them.

In: the declared time, the duration of the longest reader, and the table's own property. Out: `Retention`. Pure. It is the
longest of the three, and an hour more, because writers' clocks may be wrong by that much.

The table's own property decides, not an argument: Delta 4.2 ignores VACUUM's RETAIN. So a VACUUM by another tool keeps our
promise, too, and Delta itself refuses to travel further back, with a clear error.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import timedelta

FILES, LOG = "delta.deletedFileRetentionDuration", "delta.logRetentionDuration"
USUAL_FILES, USUAL_LOG = timedelta(days=7), timedelta(days=30)
WRONG_CLOCKS, LOG_MORE = timedelta(hours=1), timedelta(days=1)

INTERVAL = re.compile(r"\s*(?:interval\s+)?(\d+)\s+(hour|day|week)s?\s*", re.IGNORECASE)


@dataclass(frozen=True)
class Retention:
    """`keep` is how long; None where the table says it in words that are not understood here: then they hold. `properties` are
    those that the table must get first, so that neither a VACUUM nor a clean-up of its log takes what is promised."""

    keep: timedelta | None
    properties: Mapping[str, str]

    @property
    def keep_hours(self) -> int | None:
        return None if self.keep is None else int(self.keep.total_seconds() // 3600)


def retention_of(
    configuration: Mapping[str, str], *, time_travel: timedelta, longest_reader: timedelta = timedelta()
) -> Retention:
    promised = max(time_travel, longest_reader) + WRONG_CLOCKS
    properties: dict[str, str] = {}
    files, log = (_set_in(configuration, *pair) for pair in ((FILES, USUAL_FILES), (LOG, USUAL_LOG)))
    if files is not None and files < promised:
        properties[FILES] = _interval(promised)
    # A version can be read while its commit is there, and a checkpoint before it.
    if log is not None and log < promised + LOG_MORE:
        properties[LOG] = _interval(promised + LOG_MORE)
    return Retention(None if files is None else max(files, promised), properties)


def _set_in(configuration: Mapping[str, str], name: str, usual: timedelta) -> timedelta | None:
    if name not in configuration:
        return usual
    match = INTERVAL.fullmatch(configuration[name])
    return timedelta(**{f"{match[2].lower()}s": int(match[1])}) if match else None


def _interval(length: timedelta) -> str:
    return f"interval {-(-int(length.total_seconds()) // 3600)} hours"
