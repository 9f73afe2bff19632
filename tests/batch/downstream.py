"""Who reads a table as a stream: one who wants every new row, one who wants the table as it is, and one who copies it with the
block of docs/query.md.

In: the path of a table. Out: how often each row came, how often each stands, and the copy. A row is told by its file, its line,
and the batch that wrote it.
"""

from __future__ import annotations

import re
from collections import Counter
from contextlib import suppress
from pathlib import Path
from typing import Any

from deltalake import DeltaTable
from deltalake.exceptions import TableNotFoundError
from pyspark.errors import StreamingQueryException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from infra.bundle import ROOT

IDENTITY = ("_file_id", "_line", "_batch", "_ingested_at")
SIGNS = {"insert": 1, "update_postimage": 1, "delete": -1, "update_preimage": -1}

Rows = Counter[tuple[Any, ...]]

(BLOCK,) = re.findall(r"```python\n((?:(?!```).)*?foreachBatch.*?)```", (ROOT / "docs" / "query.md").read_text(), re.S)
PLACES = ("s3://studio-lake/orders", "s3://studio-copy/orders")
"""Of the table and of its copy, in the block."""
KEY = ("_file_id",)
"""The columns in the block by which rows of the copy are replaced."""


class Downstream:
    """All begin with the table's first version, and remember in a folder how far they are."""

    def __init__(self, spark: SparkSession, path: str, folder: Path) -> None:
        self.spark, self.path, self.folder = spark, path, folder
        self.copies, self.copy = True, f"{folder}/copy"
        self.came: Rows = Counter()
        self.stands: Rows = Counter()

    def read(self) -> None:
        """What came since; nothing where there is no table yet."""
        if DeltaTable.is_deltatable(self.path.removeprefix("file://")):
            self.follow()

    def follow(self) -> None:
        self._drain("came", {"skipChangeCommits": "true"}, self._take)
        self._drain("stands", {"readChangeFeed": "true"}, self._apply)
        if self.copies:
            self._copy()

    def _copy(self) -> None:
        """As the page says, a stream that a new column stopped is started again."""
        with suppress(StreamingQueryException):
            self._read_block()
            return
        self._read_block()

    def _read_block(self) -> None:
        read_block(self.spark, self.path, self.copy)

    def _drain(self, name: str, options: dict[str, str], each: Any) -> None:
        rows = self.spark.readStream.format("delta").options(startingVersion="0", **options).load(self.path)
        stream = rows.writeStream.trigger(availableNow=True).option("checkpointLocation", f"{self.folder}/{name}")
        stream.foreachBatch(each).start().awaitTermination()

    def _take(self, rows: DataFrame, number: int) -> None:
        self.came.update(tuple(row) for row in _identities(rows).collect())

    def _apply(self, rows: DataFrame, number: int) -> None:
        for kind, *row in _identities(rows, "_change_type").collect():
            self.stands[tuple(row)] += SIGNS[kind]


def read_block(spark: SparkSession, path: str, copy: str, key: tuple[str, ...] = KEY) -> None:
    """Brings the copy of a table up to date, with the block of the page."""
    text = BLOCK.replace(PLACES[0], path).replace(PLACES[1], copy).replace(str([*KEY]).replace("'", '"'), str([*key]))
    names: dict[str, Any] = {"spark": spark}
    exec(compile(text, "docs/query.md", "exec"), names)
    try:
        names["copying"].processAllAvailable()
    finally:
        names["copying"].stop()


def values_of(place: str) -> list[str]:
    """All values of a table's rows, in the order of their text."""
    table = DeltaTable(place.removeprefix("file://")).to_pyarrow_table()
    return sorted(str(sorted(row.items())) for row in table.to_pylist())


def versions_of(path: str) -> list[Rows]:
    """The rows of each version of the table; none where there is no table."""
    place = path.removeprefix("file://")
    try:
        newest = DeltaTable(place).version()
    except TableNotFoundError:
        return []
    return [_rows(DeltaTable(place, version=version)) for version in range(newest + 1)]


def _rows(table: DeltaTable) -> Rows:
    found = table.to_pyarrow_table(columns=list(IDENTITY))
    found = found.set_column(3, "_ingested_at", found["_ingested_at"].cast("int64"))
    return Counter(zip(*(found[name].to_pylist() for name in IDENTITY), strict=True))


def _identities(rows: DataFrame, *before: str) -> DataFrame:
    return rows.select(*before, *IDENTITY[:3], F.unix_micros("_ingested_at").alias("_ingested_at"))
