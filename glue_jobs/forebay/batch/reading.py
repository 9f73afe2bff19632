"""The contents of a batch: its files become rows with fates, which are counted before anything is written.

In: the new files of a batch. Out: the rows, in Spark's cache while the batch lasts, so that each file is fetched and parsed
once; how many rows have which fate; and the end of each file.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from typing import TYPE_CHECKING

from forebay.batch.accounting import Fate
from forebay.batch.expectations import checked
from forebay.batch.fields import metadata_is_asked_for
from forebay.batch.routing import routed, with_final_fates
from forebay.content.end import FileEnd, PieceEnd, file_ends
from forebay.content.limits import Limits
from forebay.content.piece import Piece
from forebay.content.source import read_content
from forebay.declaration.service import Service
from forebay.landed_file import LandedFile

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, Row, SparkSession

__all__ = ["Read", "ends_and_fates", "ends_of", "landing_rows", "read_routed", "until"]

END = ("piece", "value", "problem", "detail")
FATE = ("_file_id", "_fate", "_table", "_declared", "_violated", "_reason")


@dataclass(frozen=True)
class Read:
    """What one try read: rows with fates, the end of each file, and the fates counted."""

    rows: DataFrame | None
    ends: Sequence[FileEnd]
    fates: Sequence[Fate]

    def landing(self, usable: Collection[str]) -> DataFrame | None:
        """The rows of the files that land, of those that may be used."""
        from pyspark.sql import functions as F

        if self.rows is None:
            return None
        rows = landing_rows(self.rows, self.ends)
        others = [end.file.file_id for end in self.ends if end.lands and end.file.file_id not in usable]
        return rows.where(~F.col("_file_id").isin(others)) if others else rows


def read_routed(
    spark: SparkSession,
    service: Service,
    limits: Limits,
    files: Sequence[LandedFile],
    pieces: Sequence[Piece],
    cached: ExitStack,
) -> DataFrame | None:
    """The rows of the files with their fates, so that each file is fetched and parsed once."""
    if not files:
        return None
    from pyspark.sql import functions as F

    metadata, inside = metadata_is_asked_for(service), service.envelope.inside
    content = read_content(spark, files, limits, metadata=metadata, inside=inside)
    columns = "_piece int, _file_id string, bucket string, key string, version_id string, _landed_at timestamp"
    known = [
        (p.number, p.file.file_id, p.file.bucket, p.file.key, p.file.version_id, p.file.event_time) for p in pieces
    ]
    of_piece = F.broadcast(spark.createDataFrame(known, columns))
    content = content.join(of_piece, F.col("piece") == F.col("_piece"), "left")
    return until(cached, with_final_fates(checked(routed(content, service), service)))


def until(cached: ExitStack, rows: DataFrame) -> DataFrame:
    """The same rows, in Spark's cache until that is closed. What nobody takes out stays there as long as the job runs."""
    from pyspark import StorageLevel

    cached.callback(rows.unpersist)
    return rows.persist(StorageLevel.MEMORY_AND_DISK)


def ends_of(rows: DataFrame, pieces: Sequence[Piece]) -> list[FileEnd]:
    return file_ends(pieces, map(_piece_end, rows.where("_fate = 'end'").select(*END).collect()))


def ends_and_fates(rows: DataFrame | None, pieces: Sequence[Piece]) -> tuple[list[FileEnd], list[Fate]]:
    """The end of each file, and how many of its rows have which fate: one query for both."""
    if rows is None:
        return [], []
    from pyspark.sql import functions as F

    of_end = [F.when(F.col("_fate") == "end", F.col(name)).alias(name) for name in END]
    counted = rows.groupBy(*FATE, *of_end).count().collect()
    ends = [_piece_end(row) for row in counted if row["_fate"] == "end" for _ in range(row["count"])]
    return file_ends(pieces, ends), [_fate(row) for row in counted if row["_fate"] != "end"]


def _piece_end(row: Row) -> PieceEnd:
    return PieceEnd.from_row(*(row[name] for name in END))


def _fate(row: Row) -> Fate:
    return Fate(
        row["_file_id"],
        row["_fate"],
        row["count"],
        row["_table"],
        row["_declared"],
        tuple(row["_violated"] or ()),
        row["_reason"],
    )


def landing_rows(rows: DataFrame, ends: Sequence[FileEnd]) -> DataFrame:
    """The rows of the files that land, with their line in the file rather than in the piece."""
    from pyspark.sql import functions as F

    left_out = [piece for end in ends if not end.lands for piece in end.lines_before]
    before = {piece: n for end in ends for piece, n in end.lines_before.items() if n}
    if left_out:
        rows = rows.where(~F.col("piece").isin(left_out))
    line = F.col("line")
    if before:
        offsets = F.create_map(*[F.lit(x) for pair in before.items() for x in pair])
        line = line + F.coalesce(offsets[F.col("piece")], F.lit(0))
    return rows.withColumn("_line", line)
