"""Audits the numbers: compares the ledger's counts of each file with its rows in the tables.

In: the place of a lake. Out: `Accounts`, with a list of what does not add up; it is empty when all is well. No JVM, no
delta-rs: it runs on Glue as on a laptop. Memory grows with the tables, and by eight bytes for each file, not with rows.

A batch in flight has rows in tables, but not yet in the ledger. Its files, and earlier versions of them, are left out on both
sides until it ends. `lasting` tells other differences that pass from those that stay.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from forebay.counted import counted
from forebay.lake.health import HealthRecords
from forebay.lake.layout import LEDGER, QUARANTINE, table_path
from forebay.lake.log.listing import BrokenLog, NoTable, UnsupportedTable
from forebay.lake.log.tables import tables_of
from forebay.lake.objects import open_objects
from forebay.lake.origin import origin_gone, table_lost
from forebay.ledger.entry import HELD, REPLAY
from forebay.threads import in_threads
from forebay.upkeep.accounts.in_ledger import COUNTS, LedgerRows, ledger_rows
from forebay.upkeep.accounts.in_tables import DataFileGone, DerivedTable, RowsByFile, rows_by_file
from forebay.upkeep.accounts.open_batches import Ended, OpenBatch, open_batches
from forebay.upkeep.accounts.tally import BUCKETS, Tally, bucket_of, hash_of

TABLES_AT_ONCE = 4
SAMPLED = 64
"""Pairs of table and bucket in which files are looked for by name."""
SUCH_AS = 3

Where = tuple[str, int]
Names = tuple[tuple[str, ...], tuple[str, ...]]


@dataclass(frozen=True, order=True)
class Apart:
    """A file whose number of rows in the ledger differs from that in the table."""

    table: str
    file: str
    ledger: int
    rows: int

    def __str__(self) -> str:
        return f"{self.file} ({self.ledger} in the ledger, {self.rows} in the table)"


@dataclass(frozen=True)
class Accounts:
    """The sums of the ledger, and the rows that are there."""

    files: Mapping[str, int] = field(default_factory=dict)
    """Files by outcome."""
    records: int = 0
    written: int = 0
    quarantined: int = 0
    parked: int = 0
    dropped: int = 0
    expected: Mapping[str, int] = field(default_factory=dict)
    """Rows by table, as the ledger counted them, without those that maintenance deletes."""
    replayed: Mapping[str, int] = field(default_factory=dict)
    """Those of them whose files are announced to be read again."""
    rows: Mapping[str, int] = field(default_factory=dict)
    """Rows by table, counted in the tables; of the quarantine, records only."""
    apart: tuple[Apart, ...] = ()
    """Files that do not agree; a sample where they are many."""
    pairs: frozenset[Where] = frozenset()
    """Tables and buckets that do not agree."""
    sampled: frozenset[Where] = frozenset()
    """Those of them in which files were looked for by name."""
    tables_apart: frozenset[str] = frozenset()
    uncounted: Mapping[str, str] = field(default_factory=dict)
    """Tables that could not be counted, and why."""
    uneven: tuple[str, ...] = ()
    """Files whose numbers in the ledger do not add up; a sample where they are many."""
    twice: tuple[str, ...] = ()
    """Files that have more than one row in the ledger; a sample where they are many."""
    open: tuple[OpenBatch, ...] = ()
    """Batches that have not ended. Rows of their files are not in `expected` and `rows`."""

    @property
    def all_files(self) -> int:
        return sum(self.files.values())

    def differences(self) -> list[str]:
        """Every sum that does not hold, in a sentence."""
        found = [f"{file}: its records in the ledger do not equal the sum of their fates" for file in self.uneven]
        found += [
            f"{file}: has more than one row in the ledger, so it may have been loaded twice" for file in self.twice
        ]
        found += [f"{name}: cannot be counted: {why}" for name, why in sorted(self.uncounted.items())]
        return found + [self._sentence(name) for name in sorted(self.tables_apart)]

    def _sentence(self, name: str) -> str:
        ledger, rows = self.expected.get(name, 0), self.rows.get(name, 0)
        if name not in self.rows:
            return f"{name}: {table_lost(name, ledger, self.replayed.get(name, 0))}"
        such_as = [str(one) for one in self.apart if one.table == name][:SUCH_AS]
        of_files = f"; such as {', '.join(such_as)}" if such_as else ""
        if ledger == rows:
            return f"{name}: {counted(rows, 'row')} as the ledger says, but from other files{of_files}"
        return f"{name}: the ledger says {counted(ledger, 'row')}, the table has {rows}{of_files}"


def accounts(lake: str, *, among: frozenset[Where] | None = None, ended: Ended | None = None) -> Accounts:
    """One look. Files are looked for by name where something differs; with `among`, only in these places. Where something
    differs and a batch began meanwhile, it looks once more."""
    before = open_batches(lake, ended)
    found = _Count(lake, before).accounts(among)
    if found.differences() and (begun := [one for one in open_batches(lake, ended) if one not in before]):
        return _Count(lake, [*before, *begun]).accounts(among)
    return found


def lasting(first: Accounts, second: Accounts) -> list[str]:
    """The differences of the second look that the first one had as well, file by file."""
    stay = set(first.apart) & set(second.apart)
    whole = set(first.differences()) & set(second.differences())
    named = {one.table for one in stay}
    return [line for line in second.differences() if line in whole or line.partition(": ")[0] in named]


class _Count:
    def __init__(self, lake: str, open_: Sequence[OpenBatch]) -> None:
        self._lake, self._open = lake.rstrip("/"), tuple(open_)
        self._without = self._of_open_batches()
        records = HealthRecords(self._lake)
        self._expired = {name: records.of(name).expired_before for name in HELD}

    def accounts(self, among: frozenset[Where] | None) -> Accounts:
        names = [*tables_of(self._lake), *HELD]
        held, uncounted = self._tables(names)
        expected, replayed, sums, files, (uneven, twice) = self._ledger()
        apart = {
            name: buckets
            for name in sorted({*held, *expected} - uncounted.keys())
            if (buckets := expected.get(name, Tally()).buckets_apart(held.get(name, Tally())))
        }
        pairs = frozenset((name, bucket) for name, buckets in apart.items() for bucket in buckets)
        sampled = sorted(pairs if among is None else pairs & among)[:SAMPLED]
        return Accounts(
            files,
            **sums,
            expected={name: tally.rows for name, tally in expected.items()},
            replayed=replayed,
            rows={name: tally.rows for name, tally in held.items()},
            apart=tuple(sorted(self._named(sampled))),
            pairs=pairs,
            sampled=frozenset(sampled),
            tables_apart=frozenset(apart),
            uncounted=uncounted,
            uneven=uneven,
            twice=twice,
            open=self._open,
        )

    # --- sums ---

    def _tables(self, names: Iterable[str]) -> tuple[dict[str, Tally], dict[str, str]]:
        held: dict[str, Tally] = {}
        uncounted: dict[str, str] = {}
        derived: dict[str, tuple[str, ...]] = {}

        def count(name: str) -> None:
            tally = Tally()
            try:
                for found in self._rows_of(name):
                    tally.add(_hashes(found), np.fromiter(found.values(), dtype=np.int64, count=len(found)))
                held[name] = tally
            except NoTable:
                if name in HELD:
                    held[name] = tally
            except DerivedTable as found:
                derived[name] = found.origins  # which are counted
            except (BrokenLog, UnsupportedTable, DataFileGone) as why:
                uncounted[name] = str(why)

        in_threads(count, names, TABLES_AT_ONCE)
        there = {*held, *uncounted, *derived}
        orphans = {name: its for name, its in derived.items() if there.isdisjoint(its)}
        return held, uncounted | {name: origin_gone(name, its) for name, its in orphans.items()}

    def _of_open_batches(self) -> Any:
        """Hashes of files that are left out."""
        ids = {file_id for one in self._open for file_id in one.file_ids}
        keys = sorted({key for one in self._open for key in one.keys})
        earlier = [rows.hashes_of(keys) for rows in self._ledger_rows()] if keys else []
        return np.unique(np.concatenate([np.asarray([*map(hash_of, ids)], dtype=np.int64), *earlier]))

    def _rows_of(self, name: str) -> Iterator[RowsByFile]:
        without = frozenset(self._without.tolist())
        for found in self._all_rows_of(name):
            yield {file_id: rows for file_id, rows in found.items() if hash_of(file_id) not in without}

    def _all_rows_of(self, name: str) -> Iterator[RowsByFile]:
        table = open_objects(table_path(self._lake, name))
        if name not in HELD:
            return rows_by_file(table)
        must_have = "line" if name == QUARANTINE else None
        return rows_by_file(table, column="file_id", must_have=must_have, expired=self._expired[name])

    def _ledger(self) -> tuple[dict[str, Tally], dict[str, int], dict[str, int], dict[str, int], Names]:
        """The ledger's rows by table, those of announced replays, in total and by outcome; and files with wrong entries."""
        expected: dict[str, Tally] = {}
        replayed = Counter[str]()
        sums, files, uneven = dict.fromkeys(COUNTS, 0), Counter[str](), list[str]()
        all_hashes: list[Any] = []
        for rows in self._ledger_rows():
            all_hashes.append(rows.hashes)
            files.update(rows.outcomes())
            uneven += [rows.uri(int(at)) for at in np.flatnonzero(rows.uneven())[: SAMPLED - len(uneven)]]
            for name in COUNTS:
                sums[name] += int(rows.counts(name).sum())
            again = rows.hashes_with(REPLAY)
            for name, hashes, counts in self._by_table(rows):
                expected.setdefault(name, Tally()).add(hashes, counts)
                replayed[name] += int(counts[np.isin(hashes, again)].sum())
        twice = self._uris(_repeated(all_hashes)[:SAMPLED])
        return expected, dict(replayed), sums, dict(files), (tuple(sorted(uneven)), twice)

    def _uris(self, hashes: Any) -> tuple[str, ...]:
        """A file that was loaded twice has rows for both in the table, and both in the ledger: no sum shows it."""
        found: set[str] = set()
        for rows in self._ledger_rows() if len(hashes) else ():
            found |= {rows.uri(int(at)) for at in np.flatnonzero(np.isin(rows.hashes, hashes))}
        return tuple(sorted(found))

    def _ledger_rows(self) -> Iterator[LedgerRows]:
        return ledger_rows(open_objects(table_path(self._lake, LEDGER)))

    def _by_table(self, rows: LedgerRows) -> Iterator[tuple[str, Any, Any]]:
        for name, hashes, counts in self._all_by_table(rows):
            stays = ~np.isin(hashes, self._without)
            yield name, hashes[stays], counts[stays]

    def _all_by_table(self, rows: LedgerRows) -> Iterator[tuple[str, Any, Any]]:
        yield from rows.by_table()
        for name, column in HELD.items():
            stays = rows.younger_than(self._expired[name])
            yield name, rows.hashes[stays], rows.counts(column)[stays]

    # --- files by name ---

    def _named(self, where: Iterable[Where]) -> Iterator[Apart]:
        wanted: dict[str, set[int]] = {}
        for name, bucket in where:
            wanted.setdefault(name, set()).add(bucket)
        if not wanted:
            return
        names: dict[int, str] = {}
        held = self._held(wanted, names)
        ledger = self._expected(wanted, names, {one for _, one in held})
        for name, one in sorted({*ledger, *held}):
            expected, rows_there = ledger.get((name, one), 0), held.get((name, one), 0)
            if expected != rows_there:
                yield Apart(name, names[one], expected, rows_there)

    def _held(self, wanted: Mapping[str, set[int]], names: dict[int, str]) -> Counter[tuple[str, int]]:
        held = Counter[tuple[str, int]]()
        for name, buckets in wanted.items():
            with suppress(NoTable, DerivedTable):
                for file_id, count in (one for found in self._rows_of(name) for one in found.items()):
                    one = hash_of(file_id)
                    if one % BUCKETS in buckets:
                        held[name, one] += count
                        names[one] = f"file {file_id}" if file_id else "rows that name no file"
        return held

    def _expected(
        self, wanted: Mapping[str, set[int]], names: dict[int, str], held: set[int]
    ) -> Counter[tuple[str, int]]:
        expected = Counter[tuple[str, int]]()
        for rows in self._ledger_rows():
            of_interest = np.isin(rows.hashes, list(held))
            for name, hashes, counts in self._by_table(rows):
                inside = np.isin(bucket_of(hashes), list(wanted.get(name, ())))
                for one, count in zip(hashes[inside].tolist(), counts[inside].tolist(), strict=True):
                    expected[name, one] += count
                of_interest |= np.isin(rows.hashes, hashes[inside])
            names |= {int(rows.hashes[at]): rows.uri(int(at)) for at in np.flatnonzero(of_interest)}
        return expected


def _repeated(hashes: list[Any]) -> Any:
    """Those that are there more than once."""
    if not hashes:
        return np.zeros(0, np.int64)
    ordered = np.sort(np.concatenate(hashes))
    return np.unique(ordered[1:][ordered[1:] == ordered[:-1]])


def _hashes(found: RowsByFile) -> Any:
    return np.fromiter(map(hash_of, found), dtype=np.int64, count=len(found))
