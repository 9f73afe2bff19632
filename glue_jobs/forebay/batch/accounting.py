"""Accounts for a batch: each file's end and the fates of its records become ledger entries whose counts add up.

Pure. In: the ends of the files, and how many rows of each file have which fate. Out: one entry per file; an entry
with a sum that does not hold halts (`forebay.ledger.entry`).
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

from forebay.content.end import FileEnd
from forebay.ledger.entry import PARTLY_REPLAYED, Entry, Outcome
from forebay.ledger.versions import Sorted

_OUTCOMES: dict[str, Outcome] = {
    "loaded": "loaded",
    "empty": "empty",
    "missing": "missing",
    "changed": "missing",
    "denied": "denied",
    "unavailable": "unavailable",
    "unreadable": "unreadable",
    "deleted": "deleted",
}


@dataclass(frozen=True)
class Fate:
    """The rows of one file with one fate; `table`, and the declaration that made it, where they were meant for one;
    `violated` names the expectations that they did not fulfil, `reason` says why they are quarantined."""

    file_id: str
    fate: str
    rows: int
    table: str | None = None
    declared: int | None = None
    violated: tuple[str, ...] = ()
    reason: str | None = None


Standing = Mapping[str, Mapping[str, int]]
"""Rows by table of files that are replayed, by the file's id."""


def without_failed_replays(ends: Sequence[FileEnd], split: Sorted) -> tuple[FileEnd, ...]:
    """The ends of the files that get their own entry. The earlier entry of a replay that could not be read stays."""
    replays = split.replays
    return tuple(end for end in ends if end.lands or end.file.file_id not in replays)


def arriving(fates: Iterable[Fate], unwritten: Mapping[str, str], standing: Standing) -> list[Fate]:
    """The fates without new rows of a replayed file whose earlier rows stay, because the table is not written. Rows that are
    dropped remain, and so do those that violate an expectation: their earlier ones leave the quarantine."""

    def stands(fate: Fate) -> bool:
        return fate.table in unwritten and fate.table in standing.get(fate.file_id, {})

    return [fate for fate in fates if fate.fate != "write" or not stands(fate)]


def entries_of(
    ends: Iterable[FileEnd],
    fates: Iterable[Fate],
    unwritten: Mapping[str, str] | None = None,
    standing: Standing | None = None,
    tries: Mapping[str, int] | None = None,
) -> list[Entry]:
    """One entry per file. Rows of a table that was not written are in the quarantine, and counted there; `unwritten`
    says why, by table. Earlier rows of a replayed file in such a table are counted instead. `tries` says how
    often a file was tried before, by its id."""
    of_file: dict[str, list[Fate]] = defaultdict(list)
    for fate in fates:
        of_file[fate.file_id].append(fate)
    before, stand = tries or {}, standing or {}
    entries = [_entry(end, of_file[end.file.file_id], unwritten or {}, stand.get(end.file.file_id, {})) for end in ends]
    return [replace(entry, tries=before.get(entry.file.file_id, 0) + 1) for entry in entries]


def _entry(end: FileEnd, fates: Sequence[Fate], unwritten: Mapping[str, str], standing: Mapping[str, int]) -> Entry:
    if not end.lands:
        return Entry(file=end.file, outcome=_OUTCOMES[end.outcome], reason=end.reason, detail=end.detail)
    before = {table: rows for table, rows in standing.items() if table in unwritten}
    tables = Counter(before)
    rows: Counter[str] = Counter()
    coming = arriving(fates, unwritten, {end.file.file_id: standing})
    changed = tables.total() - sum(fate.rows for fate in fates) + sum(fate.rows for fate in coming)
    for fate in coming:
        if fate.fate == "write" and fate.table is not None and fate.table not in unwritten:
            tables[fate.table] += fate.rows
        elif fate.fate == "write":
            rows["quarantine"] += fate.rows
        else:
            rows[fate.fate] += fate.rows
    whys = (why for table, why in unwritten.items() if table in {fate.table for fate in fates})
    more = sum(_more_dropped(fates, table, rows_before) for table, rows_before in before.items())
    return Entry(
        file=end.file,
        outcome=_OUTCOMES[end.outcome],
        reason=PARTLY_REPLAYED if before else end.reason or next(whys, None),
        detail=", ".join(before) or end.detail,
        records=end.documents + end.refused + changed + more,
        quarantined=rows["quarantine"],
        parked=rows["park"],
        dropped=rows["drop"] + more,
        tables=dict(sorted(tables.items())),
        content_hash=end.content_hash,
    )


def _more_dropped(fates: Sequence[Fate], table: str, standing: int) -> int:
    """The records beyond those that this reading drops itself, where a table keeps the rows of an earlier reading. Each record
    has a row there, or is dropped. Fewer are dropped where a copy came since then, and more where a record has no row."""
    mine = [fate for fate in fates if fate.table == table and fate.fate in ("write", "drop")]
    return max(0, sum(fate.rows for fate in mine) - standing) - rows_of(mine, "drop")


def quarantined_by_reason(
    ends: Iterable[FileEnd], fates: Iterable[Fate], unwritten: Mapping[str, str]
) -> dict[str, int]:
    """Records by reason; whole files are not among them."""
    lands = {end.file.file_id for end in ends if end.lands}
    counts: Counter[str] = Counter()
    for fate in fates:
        if fate.file_id not in lands:
            continue
        if fate.fate == "quarantine":
            counts[fate.reason or "other"] += fate.rows
        elif fate.fate == "write" and fate.table is not None and fate.table in unwritten:
            counts[unwritten[fate.table]] += fate.rows
    return dict(sorted(counts.items()))


def quarantined_rows(fates: Iterable[Fate], unwritten: Collection[str]) -> int:
    """The quarantined rows, including those of tables that are not written."""
    return sum(f.rows for f in fates if f.fate == "quarantine" or (f.fate == "write" and f.table in unwritten))


def rows_of(fates: Iterable[Fate], fate: str) -> int:
    return sum(one.rows for one in fates if one.fate == fate)


def by_declaration(fates: Iterable[Fate]) -> dict[int, dict[str, int]]:
    """Rows per table, grouped by declaration: the tables of one share their columns, so one job writes them all. One
    declaration owns each table (`record.route`)."""
    grouped: dict[int, dict[str, int]] = {}
    for fate in sorted(fates, key=lambda fate: fate.table or ""):
        if fate.fate == "write" and fate.table is not None and fate.declared is not None:
            rows = grouped.setdefault(fate.declared, {})
            rows[fate.table] = rows.get(fate.table, 0) + fate.rows
    return grouped


def by_table(fates: Iterable[Fate], fate: str = "write") -> dict[str, int]:
    """The rows with this fate that were meant for each table."""
    rows = Counter[str]()
    for one in fates:
        if one.fate == fate and one.table is not None:
            rows[one.table] += one.rows
    return dict(sorted(rows.items()))


def percentile(values: Sequence[float], share: float) -> float | None:
    """The smallest value that at least `share` of the values do not exceed; None of none."""
    ranked = sorted(values)
    return ranked[max(0, -(-int(share * 1000) * len(ranked) // 1000) - 1)] if ranked else None
