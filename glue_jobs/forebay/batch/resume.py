"""A batch that an earlier try began: what it read then is held against what can be read now.

Pure. In: the plan, what its files gave this time, and which tables have the batch's commit. Out: the plan to go by, and the
files whose rows, as read now, may be used. `Halt` names a file of which a part stands while the rest cannot be had.

* The file reads as before: its rows go where they are still missing.
* It reads as before, but a record is no duplicate any more, since the file of the first copy is gone: the same.
* All its rows stand already: nothing more is needed of it, unless the vault is still to get what its personal fields were.
* None of its rows stand: it ends as it reads now, so it comes back another time, whole.
* None stand, the object is gone for good, and rows of an earlier version have made room for it already: these are gone, too,
  and the ledger says what was lost.
* It is a replay, the object is gone for good, and the plan has as many rows of it in each place as stood there before: where
  the earlier reading still stands it stays, and the ledger's row is as before.
* Some stand, and the object is gone for good: what stands stays and is counted, and the ledger says what was lost.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace

from forebay.batch.accounting import Fate
from forebay.batch.dedupe import DUPLICATE
from forebay.batch.plan import Plan, rows_by_file
from forebay.content.end import FileEnd
from forebay.errors import Halt
from forebay.lake.layout import PARKED, QUARANTINE
from forebay.landed_file import LandedFile
from forebay.ledger.claim import Claim
from forebay.ledger.entry import GONE_MIDWAY, REPLAY
from forebay.ledger.versions import NOT_DONE, Sorted, Superseded

__all__ = ["Resumed", "Turned", "as_planned", "resumed"]

GONE = ("missing", "changed")


@dataclass(frozen=True)
class Resumed:
    """`usable` and `staying` are ids of files. `lost` says how many records of which files nobody will read any more."""

    plan: Plan
    usable: frozenset[str]
    lost: Mapping[LandedFile, int] = field(default_factory=dict)
    staying: frozenset[str] = frozenset()

    @property
    def landed(self) -> frozenset[str]:
        """Those for which others leave."""
        return frozenset(end.file.file_id for end in self.plan.ends if end.lands) - self.staying

    @property
    def fates(self) -> list[Fate]:
        """Of rows that come in this batch, or did."""
        return [fate for fate in self.plan.fates if not fate.stood]


def as_planned(plan: Plan, claim: Claim) -> Sorted:
    """Which files are loaded, as the first try decided, whatever could be read or compared now."""
    fresh, split = tuple(end.file for end in plan.ends), claim.to_read()
    left_out = split.left_out if plan.left_out is None else plan.left_out
    hashes = {end.file.file_id: end.content_hash for end in plan.ends}
    begun = split.as_begun({file.file_id for file in fresh})
    return replace(begun, fresh=fresh, left_out=left_out, superseded=tuple(claim.superseded(fresh, hashes)))


def resumed(
    plan: Plan,
    ends: Sequence[FileEnd],
    fates: Sequence[Fate],
    done: frozenset[str],
    superseded: Sequence[Superseded] = (),
    *,
    vault_waits: bool = False,
) -> Resumed:
    """`done` are the tables, by name, that have the commit of this batch; with `QUARANTINE` and `PARKED`. `superseded` are the
    versions that leave in these commits. `vault_waits`: there is a vault, and it has not."""
    turned = Turned.of(plan, ends, done, superseded)
    now, then, today = {end.file.file_id: end for end in ends}, rows_by_file(plan.fates), rows_by_file(fates)
    usable: set[str] = set()
    changed_ends: list[FileEnd] = []
    changed_fates: list[Fate] = []
    for end in plan.ends:
        file_id = end.file.file_id
        his, found = list(then.get(file_id, ())), now.get(file_id)
        if end.lands and found is not None:
            if _same(end, found) and _alike(his, today.get(file_id, ())):
                his = _together(his, today.get(file_id, ()), done)
                usable.add(file_id)
            elif file_id in turned.staying:
                why = f"{found.outcome}: {found.detail or found.reason or ''}"
                end = replace(end, reason=NOT_DONE[REPLAY], detail=why)
                his = [
                    fate if fate.fate == "drop" or _stands(fate, done) else replace(fate, stood=True) for fate in his
                ]
            elif file_id in turned.anew:
                end, his = replace(found, lines_before={}), list(today.get(file_id, ())) if found.lands else []
                usable |= {file_id} if found.lands else set()
            else:
                end, his = _otherwise(end, his, found, done, vault_waits=vault_waits)
        changed_ends.append(end)
        changed_fates += his
    lost = {
        then.file: _records(then) - _records(end) or _rows(_kept(plan.fates, then.file.file_id))
        for then, end in zip(plan.ends, changed_ends, strict=True)
        if end.reason == GONE_MIDWAY != then.reason
    }
    changed = replace(plan, ends=tuple(changed_ends), fates=tuple(changed_fates))
    return Resumed(changed, frozenset(usable), lost, turned.staying - usable)


@dataclass(frozen=True)
class Turned:
    """Files of the plan, by id, should they read otherwise now. Nothing leaves for those of them that cannot be read."""

    anew: frozenset[str]
    """They end as they read now."""
    staying: frozenset[str]
    """What an earlier reading of them brought stays where the batch did not come before."""

    @classmethod
    def of(cls, plan: Plan, ends: Sequence[FileEnd], done: frozenset[str], superseded: Sequence[Superseded]) -> Turned:
        fates, planned = rows_by_file(plan.fates), {end.file.file_id for end in plan.ends if end.lands}
        made_room_for = {one.by.file_id for one in superseded if one.tables.keys() & done}
        others = {one.by.file_id for one in superseded if not one.is_replay}
        stood = {one.by.file_id: _places(one) for one in superseded if one.is_replay and one.by.file_id not in others}
        anew, staying = set(), set()
        for end in ends:
            file_id, his = end.file.file_id, list(fates.get(end.file.file_id, ()))
            stands, gone = any(_stands(fate, done) for fate in his), _is_gone(end)
            stays = any(fate.stood for fate in his) or (gone and _places_of(his) == stood.get(file_id))
            if file_id in planned and not stands and not (file_id in made_room_for and gone):
                anew.add(file_id)
            elif file_id in planned and stays:
                staying.add(file_id)
        return cls(frozenset(anew), frozenset(staying))


def _places(replayed: Superseded) -> Counter[str]:
    """Where its rows stand."""
    row = replayed.earlier.row
    return +Counter({**replayed.tables, QUARANTINE: row["quarantined"], PARKED: row["parked"]})


def _places_of(fates: Sequence[Fate]) -> Counter[str]:
    counted: Counter[str] = Counter()
    for fate in fates:
        place = fate.table if fate.fate == "write" else {"quarantine": QUARANTINE, "park": PARKED}.get(fate.fate)
        counted[place or ""] += 0 if place is None else fate.rows
    return +counted


def _same(then: FileEnd, now: FileEnd) -> bool:
    return now.lands and (then.documents, then.refused) == (now.documents, now.refused)


def _alike(then: Sequence[Fate], now: Sequence[Fate]) -> bool:
    """But for duplicates: where the file of a first copy is gone, another copy is the first one now."""
    return _but_for_duplicates(then) == _but_for_duplicates(now)


def _but_for_duplicates(fates: Sequence[Fate]) -> Counter[Fate]:
    counted: Counter[Fate] = Counter()
    for fate in fates:
        deduped = fate.fate == "write" or (fate.fate == "drop" and DUPLICATE in fate.violated)
        fate = replace(fate, stood=False)
        same = replace(fate, fate="write", violated=(), rows=0) if deduped else replace(fate, rows=0)
        counted[same] += fate.rows
    return counted


def _together(then: Sequence[Fate], now: Sequence[Fate], done: frozenset[str]) -> list[Fate]:
    """What a table has it has, and in the others the rows go by the fates of today."""
    return [*(fate for fate in then if _is_past(fate, done)), *(fate for fate in now if not _is_past(fate, done))]


def _is_past(fate: Fate, done: frozenset[str]) -> bool:
    return _stands(replace(fate, fate="write" if fate.fate == "drop" else fate.fate, stood=False), done)


def _kept(fates: Iterable[Fate], file_id: str) -> list[Fate]:
    return [fate for fate in fates if fate.file_id == file_id and fate.fate != "drop"]


def _otherwise(
    then: FileEnd, fates: Sequence[Fate], now: FileEnd, done: frozenset[str], *, vault_waits: bool
) -> tuple[FileEnd, list[Fate]]:
    """What becomes of a file of which rows stand, and that reads otherwise now."""
    stand = [fate for fate in fates if _stands(fate, done)]
    if all(_stands(fate, done) or fate.fate == "drop" for fate in fates):
        if not vault_waits:
            return then, list(fates)
        if _is_gone(now):
            detail = f"what its personal fields were is lost, if there was any: S3 no longer has it ({now.reason})"
            return replace(then, reason=GONE_MIDWAY, detail=detail), list(fates)
    lost = sum(fate.rows for fate in fates if fate not in stand and fate.fate != "drop")
    where = ", ".join(sorted({fate.table or fate.fate for fate in stand})[:5])
    if _is_gone(now):
        dropped = [fate for fate in fates if fate.fate == "drop"]
        only = f"and only {where} had its rows" if where else "and an earlier version had made room for it"
        detail = f"{lost} of its records were lost: S3 no longer has it ({now.reason}), {only}"
        left = [*stand, *dropped]
        return replace(then, reason=GONE_MIDWAY, detail=detail, documents=_rows(left), refused=0), left
    if now.lands:
        raise Halt(
            f"{then.file.uri} reads differently than in the first try of this batch ({_rows(fates)} records then, "
            f"{_records(now)} now), and rows of it are in the lake already: start the code and the limits "
            "that began the batch; nothing was marked as done"
        )
    what = f"its other {lost} records" if lost else "its values for the vault"
    raise Halt(
        f"rows of {then.file.uri} are in {where} already, but S3 does not give it now ({now.outcome}: "
        f"{now.detail}): mend that and start again, and {what} follow; nothing was marked as done"
    )


def _is_gone(end: FileEnd) -> bool:
    return end.outcome in GONE and end.reason != "no-such-bucket"


def _stands(fate: Fate, done: frozenset[str]) -> bool:
    """The quarantine is written after all tables: with it, rows of a table that failed are kept, too."""
    places: Mapping[str, bool] = {
        "write": fate.table in done or QUARANTINE in done,
        "quarantine": QUARANTINE in done,
        "park": PARKED in done,
    }
    return fate.stood or places.get(fate.fate, False)


def _records(end: FileEnd) -> int:
    return end.documents + end.refused


def _rows(fates: Sequence[Fate]) -> int:
    return sum(fate.rows for fate in fates)
