"""The chosen records of a retry, and their fates by the declarations of today. They go through the pass of a batch
(`one_pass`), which reads them from where they are held. Records that are given up go nowhere.

In: rows of the table that holds them. Out: `Chosen`: how many have which fate, the data files of tables, and the places of the
records that leave.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.compute as pc

from forebay.batch.accounting import Fate
from forebay.batch.dedupe import Dedupe
from forebay.batch.one_pass.driver import OnePass
from forebay.batch.one_pass.gathering import unpacked
from forebay.batch.one_pass.landed import HeldFile
from forebay.batch.one_pass.outcome import Pass
from forebay.batch.one_pass.spec import Held, Known
from forebay.declaration.service import Service

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

OF_FILE = ("file_id", "bucket", "key", "version_id")


@dataclass(frozen=True)
class Chosen:
    """`gone` gives the places of the records that leave where they were held, by their `file_id` and `byte_offset`, given the
    tables that are written."""

    fates: Sequence[Fate]
    gone: Callable[[Collection[str]], DataFrame]
    made: Pass | None = None


def given_up(held: DataFrame) -> Chosen:
    """Nobody reads them."""
    counts = held.groupBy("file_id").count().collect()
    fates = [Fate(row["file_id"], "drop", row["count"]) for row in counts]
    return Chosen(fates, lambda _: held.select("file_id", "byte_offset"))


def held_files(held: DataFrame) -> dict[HeldFile, int]:
    """The files, with the number of their records. The records of one file were held by one batch, at one time."""
    from pyspark.sql import functions as F

    counts = held.groupBy(*OF_FILE).agg(F.min("at").alias("at"), F.count("*").alias("rows"))
    files = {}
    for row in counts.orderBy("file_id").toArrow().to_pylist():
        file = HeldFile(
            row["bucket"], row["key"], version_id=row["version_id"], event_time=row["at"], held_id=row["file_id"]
        )
        files[file] = row["rows"]
    return files


@dataclass(frozen=True)
class HeldRecords:
    """`files` are those of the held records. `other_in_force` are files with the tables that have rows of an earlier version or
    reading of them. If there is an `only` table, no other one takes any record."""

    spark: SparkSession
    held: DataFrame
    files: Mapping[HeldFile, int]
    service: Service
    only: str | None
    other_in_force: Collection[tuple[str, str]]

    def through(
        self,
        one_pass: OnePass,
        dedupe: Callable[[Pass], Dedupe],
        *,
        shared: Mapping[str, Any],
        known: Mapping[str, Known],
    ) -> Chosen:
        """`dedupe` gets the pass before its rows are compared."""
        numbers = {file.file_id: number for number, file in enumerate(self.files)}
        held = Held(self._staying(numbers), self.only)
        rows = self._rows(numbers)
        made = one_pass.of_held(rows, self.files, self.service, held, shared=shared, known=known)
        if self.service.drops_duplicates:
            made = one_pass.without_duplicates(made, dedupe(made))
        if self.only is not None:
            made = replace(made, fates=[fate for fate in made.fates if fate.table == self.only])
        return Chosen(made.fates, lambda tables: self._gone(made, tables), made)

    def _staying(self, numbers: Mapping[str, int]) -> dict[str, list[int]]:
        stay: dict[str, list[int]] = {}
        for file_id, table in self.other_in_force:
            if file_id in numbers:
                stay.setdefault(table, []).append(numbers[file_id])
        return stay

    def _rows(self, numbers: Mapping[str, int]) -> DataFrame:
        """The rows in the form of `content`, as `read_held` takes them; `line` and the rest are the original ones."""
        from pyspark.sql import functions as F

        choice = self.spark.createDataFrame(
            pa.table({"file_id": pa.array(numbers, pa.string()), "piece": pa.array(numbers.values(), pa.int32())})
        )
        rows = self.held.join(F.broadcast(choice), "file_id")
        return rows.select(
            *("piece", "line", "byte_offset"),
            F.col("record").alias("value"),
            F.col("reason").alias("problem"),
            F.lit(None).cast("string").alias("detail"),
            "metadata",
        )

    def _gone(self, made: Pass, tables: Collection[str]) -> DataFrame:
        pieces = made.files_by_piece
        numbers, names = pa.array(pieces.keys(), pa.int32()), pa.array(pieces.values(), pa.string())
        some = [] if made.duplicates is None else [made.duplicates()]
        for one in made.moved:
            if one.table is None or one.table in tables:
                rows = unpacked(one.rows).rows
                file_ids = names.take(pc.index_in(rows["piece"].combine_chunks(), value_set=numbers))
                some.append(pa.table({"file_id": file_ids, "byte_offset": rows["byte_offset"]}))
        schema = pa.schema([("file_id", pa.string()), ("byte_offset", pa.int64())])
        return self.spark.createDataFrame(pa.concat_tables([schema.empty_table(), *some]))
