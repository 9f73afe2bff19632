"""The contents of a batch: its files become rows with fates, which are counted before anything is written.

In: the new files of a batch. Out: the rows, how many of them have which fate, and the end of each file. The rows stay in
Spark's cache during the batch, so each file is fetched and parsed once.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from forebay.batch.accounting import Fate
from forebay.batch.expectations import checked
from forebay.batch.fields import metadata_is_asked_for
from forebay.batch.poison import poison_end, read_apart
from forebay.batch.routing import routed, with_final_fates
from forebay.batch.vaulted import KEPT, SEALED, sealed
from forebay.content.end import FileEnd, PieceEnd, file_ends
from forebay.content.limits import Limits
from forebay.content.piece import Piece, cut
from forebay.content.source import read_content
from forebay.declaration.service import Service
from forebay.landed_file import LandedFile

if TYPE_CHECKING:
    from pyspark.sql import Column as Expression
    from pyspark.sql import DataFrame, Row, SparkSession

__all__ = ["Read", "ends_and_fates", "fates_of", "landing_rows", "read_contents", "read_routed", "until"]

END = ("piece", "value", "problem", "detail")
FATE = ("_file_id", "_fate", "_table", "_declared", "_violated", "_reason")


@dataclass(frozen=True)
class Read:
    """The result of one try: rows with fates, the end of each file, and the fates counted."""

    rows: DataFrame | None
    ends: Sequence[FileEnd]
    fates: Sequence[Fate]

    @property
    def landed(self) -> Mapping[str, str]:
        """The ids of the files that could be read, with the hash of what was read."""
        return {end.file.file_id: end.content_hash for end in self.ends if end.lands}

    def only(self, file_ids: Collection[str]) -> Read:
        """Without the other files."""
        others = [end.file.file_id for end in self.ends if end.file.file_id not in file_ids]
        ends = [end for end in self.ends if end.file.file_id in file_ids]
        fates = [fate for fate in self.fates if fate.file_id in file_ids]
        return Read(_without(self.rows, others), ends, fates)

    def landing(self, usable: Collection[str]) -> DataFrame | None:
        """The rows of the files that land, of those that may be used."""
        if self.rows is None:
            return None
        others = [end.file.file_id for end in self.ends if end.lands and end.file.file_id not in usable]
        return _without(landing_rows(self.rows, self.ends), others)

    def vaulted(self, usable: Collection[str]) -> int:
        """Of the rows that are `landing`, how many go into the vault."""
        return sum(fate.vaulted for fate in self.fates if fate.file_id in usable and fate.fate in KEPT)


def _without(rows: DataFrame | None, file_ids: Sequence[str]) -> DataFrame | None:
    if rows is None or not file_ids:
        return rows
    from pyspark.sql import functions as F

    return rows.where(~F.col("_file_id").isin(list(file_ids)))


def read_contents(
    spark: SparkSession, service: Service, limits: Limits, files: Sequence[LandedFile], cached: ExitStack
) -> Read:
    """The rows of the files. Files that end every worker are `unreadable`."""
    if not files:
        return Read(None, [], [])

    def read(some: Sequence[LandedFile]) -> Read:
        pieces = cut(some, limits)
        with ExitStack() as mine:  # rows that could not be read leave the cache at once
            rows = read_routed(spark, service, limits, some, pieces, mine)
            ends, fates = ends_and_fates(rows, pieces)
            cached.enter_context(mine.pop_all())
        return Read(rows, ends, fates)

    apart = read_apart(files, read)
    together = _together(apart.parts)
    private = service.privacy is not None
    ends = [*together.ends, *(poison_end(one, failure, private=private) for one, failure in apart.poison.items())]
    return replace(together, ends=ends)


def _together(parts: Sequence[Read]) -> Read:
    """The parts as one. Each numbers its pieces from 0, so those of later parts move up."""
    from pyspark.sql import functions as F

    rows, ends, before = None, list[FileEnd](), 0
    for part in parts:
        assert part.rows is not None
        moved = part.rows.withColumn("piece", F.col("piece") + F.lit(before)) if before else part.rows
        rows = moved if rows is None else rows.unionByName(moved)
        ends += [replace(e, lines_before={n + before: lines for n, lines in e.lines_before.items()}) for e in part.ends]
        before += sum(len(end.lines_before) for end in part.ends)
    return Read(rows, ends, [fate for part in parts for fate in part.fates])


def read_routed(
    spark: SparkSession,
    service: Service,
    limits: Limits,
    files: Sequence[LandedFile],
    pieces: Sequence[Piece],
    cached: ExitStack,
) -> DataFrame:
    """The rows of the files with their fates, so that each file is fetched and parsed once."""
    from pyspark.sql import functions as F

    metadata = metadata_is_asked_for(service)
    content = read_content(spark, files, limits, metadata=metadata, forms=service.forms)
    content = sealed(content, service.name)
    columns = "_piece int, _file_id string, bucket string, key string, version_id string, _landed_at timestamp"
    known = [
        (p.number, p.file.file_id, p.file.bucket, p.file.key, p.file.version_id, p.file.event_time) for p in pieces
    ]
    of_piece = F.broadcast(spark.createDataFrame(known, columns))
    content = content.join(of_piece, F.col("piece") == F.col("_piece"), "left")
    return until(cached, with_final_fates(checked(routed(content, service), service)))


def until(cached: ExitStack, rows: DataFrame) -> DataFrame:
    """The same rows, in Spark's cache until that is closed. A row that stays in the cache stays as long as the job runs."""
    from pyspark import StorageLevel

    cached.callback(rows.unpersist)
    return rows.persist(StorageLevel.MEMORY_AND_DISK)


def ends_and_fates(rows: DataFrame, pieces: Sequence[Piece]) -> tuple[list[FileEnd], list[Fate]]:
    """The end of each file, and how many of its rows have which fate: one query for both."""
    from pyspark.sql import functions as F

    of_end = [F.when(F.col("_fate") == "end", F.col(name)).alias(name) for name in END]
    counted = rows.groupBy(*FATE, *of_end).agg(*_counts(rows)).collect()
    ends = [_piece_end(row) for row in counted if row["_fate"] == "end" for _ in range(row["count"])]
    return file_ends(pieces, ends), [_fate(row) for row in counted if row["_fate"] != "end"]


def fates_of(rows: DataFrame) -> list[Fate]:
    counted = rows.where("_fate <> 'end'").groupBy(*FATE).agg(*_counts(rows))
    return [_fate(row) for row in counted.collect()]


def _counts(rows: DataFrame) -> list[Expression]:
    from pyspark.sql import functions as F

    vaulted = F.count(SEALED) if SEALED in rows.columns else F.lit(0)
    return [F.count("*").alias("count"), vaulted.alias("vaulted")]


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
        vaulted=row["vaulted"],
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
