"""A batch that tables have, and whose plan somebody deleted.

In: the fates of its files now. Out: nothing where no table has the batch, or all of them have the very rows that the files
bring again. Otherwise `Halt`, before anything is changed. A file that cannot be read any more would be loaded a second time
later, and a version that was to replace others would leave nothing in their place. Only a batch that may have begun before
asks, because the answer takes a look at all tables of the lake.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass

from forebay.batch.accounting import Fate, arriving, by_table
from forebay.batch.plan import Staged
from forebay.batch.staging import Staging
from forebay.content.end import FileEnd
from forebay.counted import counted
from forebay.errors import Halt
from forebay.lake.layout import PARKED, QUARANTINE, is_own, table_path
from forebay.lake.log.tables import tables_of
from forebay.ledger.entry import HELD
from forebay.ledger.versions import Superseded, standing
from forebay.table.commit import LogFailed
from forebay.threads import answers_by


@dataclass(frozen=True)
class Brought:
    """The rows that the files bring now. `unwritten` are the tables that get none, and `may_leave` the earlier versions that
    leave if all files can be read; `superseded` are those that do."""

    ends: Sequence[FileEnd]
    fates: Sequence[Fate]
    unwritten: Mapping[str, str]
    may_leave: Iterable[Superseded]
    superseded: Sequence[Superseded]

    @property
    def tables(self) -> frozenset[str]:
        return frozenset(by_table(self.fates)) - self.unwritten.keys()

    def to(self, place: str, kept_before: Mapping[str, str]) -> Counter[str]:
        """Rows by file."""
        unwritten = {**self.unwritten, **kept_before}
        rows = Counter[str]()
        for fate in arriving(self.fates, unwritten, standing(self.superseded)):
            fails = fate.fate == "quarantine" or fate.table in unwritten
            goes_to = {"write": QUARANTINE if fails else fate.table, "quarantine": QUARANTINE, "park": PARKED}
            if goes_to.get(fate.fate) == place:
                rows[fate.file_id] += fate.rows
        if place == QUARANTINE:
            rows.update(end.file.file_id for end in self.ends if end.outcome == "unreadable")
        return rows

    def stays_in(self, place: str) -> bool:
        """Whether rows of an earlier version, which may have left this place already, have none that take their place."""
        leave = {one.earlier.file.file_id for one in self.superseded}
        stay = (one for one in self.may_leave if one.earlier.file.file_id not in leave)
        return any(one.earlier.row[HELD[place]] if place in HELD else place in one.tables for one in stay)


def must_bring_the_same(brought: Brought, writing: Staging, staged: Staged, plan: str) -> None:
    """`plan` is the address of the plan that the batch had, if it had one. No plan will name what is `staged` if it halts."""
    begun = begun_in(writing)
    if not begun:
        return
    kept_before = writing.unwritten_before()
    file_ids = {end.file.file_id for end in brought.ends}
    for place, has_batch in sorted(begun.items()):
        there = rows_of_batch(writing, place, file_ids) if has_batch else Counter[str]()
        coming = brought.to(place, kept_before) if has_batch else there
        loss = f"{place} has {counted(there.total(), 'row')} of it, and its files bring {coming.total():,} now"
        if brought.stays_in(place):
            loss = f"{place} may have lost rows that its files were to replace, and they cannot now"
        elif there == coming:
            continue
        unread = next((f" ({end.file.uri}: {end.outcome})" for end in brought.ends if not end.lands), "")
        writing.delete(staged.files)
        raise Halt(
            f"batch {writing.txn.version} of {writing.txn.app_id} had begun before, and its plan {plan} is gone: {loss}"
            f"{unread}. Nothing was changed. Restore that object from the versions of its bucket, then start again. See "
            "docs/disasters.md, A plan"
        )


def begun_in(writing: Staging) -> dict[str, bool]:
    """The tables that the batch has begun to change, and whether each has its rows. A table whose log cannot be read fails at
    its commit, and alone."""
    number, app_id = writing.txn.version, writing.txn.app_id

    def state(place: str) -> bool | None:
        path = table_path(writing.lake, place)
        try:
            last = writing.logs.last_version_at(path, app_id, again=True)
            removed = writing.logs.last_version_at(path, f"{app_id}/removal")
        except LogFailed:
            return None
        if last > number:
            raise Halt(
                f"{place} has batch {last} of {app_id}, and batch {number} comes now: somebody restored an older "
                "checkpoint. Nothing was changed. Restore the newest ledger and ids, then start again with a new checkpoint. "
                "See docs/disasters.md, The checkpoint"
            )
        return last == number or (False if removed == number else None)

    names = [*tables_of(writing.lake), *HELD]
    states = answers_by(state, names, writing.tables_at_once)
    return {name: has_batch for name, has_batch in states.items() if has_batch is not None}


def rows_of_batch(writing: Staging, place: str, file_ids: Collection[str]) -> Counter[str]:
    """Rows by file."""
    from pyspark.sql import functions as F

    path = table_path(writing.lake, place)
    if is_own(place):
        mine = writing.rows_beside(path)
    else:
        mine = writing.spark.read.format("delta").load(path).where(F.col("_batch") == writing.txn.version)
    counts = mine.groupBy("file_id" if is_own(place) else "_file_id").count().collect()
    return Counter({row[0]: row[1] for row in counts if row[0] in file_ids})
