"""The Delta table `<lake>/_forebay/ledger`, and what the driver asks of it.

In: the files of a batch; later, the entry of each. Out: the files that are new, and a commit that completes the batch. The
ledger is written last, in one commit that carries the batch's transaction id: if the ledger has that id, the whole batch is
done.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import replace
from datetime import UTC, date, datetime
from functools import cached_property, partial
from typing import TYPE_CHECKING, Any

import numpy as np

from forebay.declaration.service import Service
from forebay.errors import Halt
from forebay.lake.layout import AFTER_LOAD, LEDGER, last_versions_of, services_of, table_path
from forebay.lake.log.listing import NoTable
from forebay.lake.log.snapshot import read_snapshot
from forebay.lake.objects import open_objects
from forebay.landed_file import LandedFile
from forebay.ledger.claim import Claim, Key
from forebay.ledger.cleared import deletions_of_ours
from forebay.ledger.data_files import rows_of_keys
from forebay.ledger.deletions import as_written_last, put_again
from forebay.ledger.entry import COLUMNS, Entry, key_hash
from forebay.ledger.ignored import why_ignored
from forebay.ledger.index import Index, load_index, packed, rows_in
from forebay.ledger.last_versions import KeptVersions, Versions
from forebay.ledger.lost import lost_ledger
from forebay.ledger.services import as_services_know, first_service
from forebay.ledger.versions import Earlier
from forebay.ledger.withheld import Withheld

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

NAMES = tuple(re.findall(r"(\w+) \w", COLUMNS))
MOMENTS = tuple(re.findall(r"(\w+) timestamp", COLUMNS))
FEW_VALUES = 100


class Ledger:
    """One driver's view of the ledger: the rows of its service, and of those that it shares files with. It is loaded once, and
    does not see later rows of other drivers; the lease keeps them out."""

    def __init__(self, spark: SparkSession, lake: str, service: str, shares_with: Iterable[str] = ()) -> None:
        self.path, self.names = table_path(lake, LEDGER), (service, *shares_with)
        self._services = open_objects(services_of(lake))
        self._notes = open_objects(table_path(lake, AFTER_LOAD))
        self._spark, self.lost = spark, str(lost_ledger(lake, "this service has loaded files into it"))
        self._index: Index | None = None
        self._added = 0
        self.last_versions = KeptVersions(open_objects(last_versions_of(lake)), service)
        self.withheld = Withheld()

    @property
    def index(self) -> Index:
        if self._index is None:
            self._index = load_index(open_objects(self.path), self.names)
        return self._index

    @property
    def rows(self) -> int | None:
        """The number of rows of all services when it was loaded, and of those that came here since."""
        before = self.index.table_rows
        return None if before is None else before + self._added

    @cached_property
    def first(self) -> str:
        """The lake's first service."""
        return first_service(self._services, open_objects(self.path), self.names[0])

    def own(self, files: Sequence[LandedFile]) -> list[LandedFile]:
        """The files with the ids by which this service knows them. A second call returns the same."""
        if self.names == (self.first,):
            return list(files)
        rows = self._versions_of(files)
        known = {seen.file.file_id for earlier in rows.values() for seen in earlier}
        return [self._own(file, known) for file in files]

    def _own(self, file: LandedFile, known: Collection[str]) -> LandedFile:
        new = file if self.names[0] == self.first else replace(file, service=self.names[0])
        return next((one for one in as_services_know(file, self.names) if one.file_id in known), new)

    def claim(
        self,
        files: Sequence[LandedFile],
        service: Service,
        skipped: Collection[str] = (),
        cleared: Collection[str] | None = None,
    ) -> Claim:
        """The ledger's rows of these files and the service's rules: they decide which files are new. Files with an id among
        `skipped` are left out, and so are deletions by forebay: those `cleared`, if they are known from before. A second call
        gives the same, until `remember` adds rows."""
        earlier = self._versions_of(files)
        files = as_written_last(files, earlier)
        if service.on_delete == "forget":
            earlier = put_again(files, earlier)
            cleared = self.deletions_of_ours(files, earlier) if cleared is None else cleared
        ignored = partial(why_ignored, service, cleared=cleared or ())
        return Claim(files, earlier, service.rule_of, skipped, ignored, service.drops_duplicates)

    def deletions_of_ours(
        self, files: Sequence[LandedFile], earlier: Mapping[Key, Sequence[Earlier]]
    ) -> frozenset[str]:
        """The ids of the deletions that `after_load` made."""
        known = {key: [seen.file for seen in versions] for key, versions in earlier.items()}
        return deletions_of_ours(files, self._notes, known)

    def frame(self, entries: Iterable[Entry], changed: Iterable[dict[str, Any]], **of_the_batch: object) -> DataFrame:
        """The entries as rows for the commit, with the changed rows of earlier files."""
        rows = [entry.row(**of_the_batch) for entry in entries]
        return self._spark.createDataFrame([*rows, *changed], COLUMNS)

    def remember(self, entries: Sequence[Entry], at: datetime, *, more: int) -> None:
        """Must be called after the batch's commit, which added `more` rows: from now on these files are known."""
        self._added += more
        self.index.add(packed(np.array([key_hash(entry.file) for entry in entries], np.int64), at.date()))
        self.withheld.note(entries, at)

    def unknown(self, files: Sequence[LandedFile]) -> list[LandedFile]:
        """The files without a row in the ledger."""
        versions = self._versions_of(files).values()
        known = {seen.file.file_id for earlier in versions for seen in earlier}
        return [file for file in files if file.file_id not in known]

    def _versions_of(self, files: Sequence[LandedFile]) -> dict[Key, list[Earlier]]:
        """Exactly what the ledger has of these keys. The index only hints; it says which days to read."""
        hints = self.index.days_of([*map(key_hash, files)])
        found: dict[Key, list[Earlier]] = {}
        for row in self._rows_of(hints) if hints else ():
            seen = Earlier.of({**dict.fromkeys(NAMES), **row})
            found.setdefault((seen.file.bucket, seen.file.key), []).append(seen)
        return found

    def _rows_of(self, hints: Mapping[int, Collection[date]]) -> list[dict[str, Any]]:
        """The rows of these keys on these days. A job of Spark costs more than reading few data files here."""
        days, objects = set[date]().union(*hints.values()), open_objects(self.path)
        try:
            now = read_snapshot(objects)
        except NoTable as gone:
            raise Halt(self.lost) from gone
        self.last_versions.must_not_be_older(lambda: Versions(now.listing.version, None, rows_in(now.files)))
        rows = rows_of_keys(objects, now.files, days, hints, self.names)
        return self._rows_by_spark(days, hints) if rows is None else rows

    def _rows_by_spark(self, days: Collection[date], hashes: Collection[int]) -> list[dict[str, Any]]:
        rows = self._spark.read.format("delta").load(self.path)
        ours = rows["service"].isNull() | rows["service"].isin(list(self.names))
        found = rows_with(rows.where(ours & rows["day"].isin(sorted(days))), "key_hash", "long", hashes).collect()
        return [{**row.asDict(), **{name: utc(row[name]) for name in MOMENTS if name in row}} for row in found]


def rows_with(rows: DataFrame, column: str, kind: str, values: Collection[Any]) -> DataFrame:
    """The rows with one of these values. Many values travel as a table: as constants, they would make the plan as large."""
    from pyspark.sql import functions as F

    if len(values) <= FEW_VALUES:
        return rows.where(F.col(column).isin(list(values)))
    wanted = rows.sparkSession.createDataFrame([(value,) for value in sorted(values)], f"{column} {kind}")
    return rows.join(F.broadcast(wanted), column, "left_semi")


def utc(moment: datetime | None) -> datetime | None:
    """Spark hands timestamps over as local time without a zone."""
    return moment.astimezone(UTC) if moment else None
