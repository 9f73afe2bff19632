"""The text of a freshness: the longest time from a file's arrival to its rows. Pure.

In: `5 min`, `90 s` or `1 h`. Out: seconds; `ValueError` says what is allowed.
"""

from __future__ import annotations

import re

UNITS = {"s": 1, "min": 60, "h": 3600}
LEAST_S, MOST_S = 30, 24 * 3600
EXPECTED = "must be a duration from 30 s to 24 h, such as 5 min, 90 s or 1 h"


def seconds_of(text: str) -> int:
    found = re.fullmatch(r"(\d+) ?(s|min|h)", text.strip())
    seconds = int(found[1]) * UNITS[found[2]] if found else 0
    if not LEAST_S <= seconds <= MOST_S:
        raise ValueError(EXPECTED)
    return seconds


def checked(text: object) -> str:
    """The text of a setting, unchanged."""
    seconds_of(str(text))
    return str(text)


def in_words(seconds: float) -> str:
    """The text of a setting: the largest unit without a remainder."""
    unit = next(unit for unit in ("h", "min", "s") if not round(seconds) % UNITS[unit])
    return f"{round(seconds) // UNITS[unit]} {unit}"
