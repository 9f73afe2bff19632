"""Files that wait because the driver cannot compare the ids of all rows of a batch at once.

In: the ends of a pass's files, and how many of their rows have ids. Out: ends of files that are left out of the next pass.
They are received again automatically, like files that S3 withheld. Only a file that has too many on its own is refused.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence

from forebay.batch.accounting import Fate
from forebay.content.end import FileEnd, unread_end
from forebay.counted import counted
from forebay.declaration.service import Service

TOO_MANY_IDS = "too-many-ids"


def rows_with_ids(fates: Iterable[Fate], service: Service) -> Counter[str]:
    """The rows of tables that leave out duplicates, by file."""
    rows: Counter[str] = Counter()
    for fate in fates:
        if fate.fate == "write" and fate.declared is not None and service.tables[fate.declared].dedupe:
            rows[fate.file_id] += fate.rows
    return rows


def too_many(ends: Sequence[FileEnd], rows: Counter[str], most: int) -> list[FileEnd]:
    """Nothing where all of them are few enough. The first files stay."""
    room, found = most, []
    for end in ends:
        mine = rows[end.file.file_id]
        if mine > most:
            why = f"{counted(mine, 'row', 'is')} in tables with `dedupe`, and {most:,} is the limit"
            found.append(unread_end(end.file, "unreadable", "too-many-records", why))
        elif mine > room:
            why = f"with its {counted(mine, 'row')} in tables with `dedupe`, the files of the batch have more than {most:,}"
            found.append(unread_end(end.file, "unavailable", TOO_MANY_IDS, f"{why}; it will be received again"))
        else:
            room -= mine
    return found
