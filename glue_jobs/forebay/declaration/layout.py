"""How the files of a table are laid out: its partitions or clustering, and its compaction."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from itertools import accumulate
from typing import Literal

from pydantic import Field

from forebay.declaration.column import Column, Declared
from forebay.declaration.column_type import INEXACT, is_nested, width_of

MOST_CLUSTER_COLUMNS = 4
INDEXED_COLUMNS = 32
"""Delta's own limits: of clustering columns, and of those that have statistics."""


class Compaction(Declared):
    """The compaction of a table's small files into large ones. Only types are checked here. The compaction job reports a
    number that is out of range, so it does not stop the ingest job."""

    group: str = Field(
        "default", description="the set of tables that it is compacted with, which may have its own schedule"
    )
    way: Literal["optimize", "rewrite"] = Field(
        "optimize", description="optimize: pack the small files; rewrite: the whole partition, into `files` files"
    )
    files: int | None = Field(None, description="for rewrite: the number of files; default: computed from the bytes")
    target_file_mib: int | None = Field(
        None, description="the target size of files, in MiB; default: by the table's size"
    )
    min_small_files: int = Field(
        8, description="the number of small files in a partition that makes a compaction worthwhile"
    )
    cold_after_minutes: int = Field(60, description="a partition with a younger file is not compacted")
    hot_small_files: int = Field(
        200, description="but it is compacted if it has this many small files; 0: always, which suits merge tables"
    )
    order_by: tuple[str, ...] = Field((), description="columns by which the second, weekly round orders the rows")


def partition_problems(
    partitions: Sequence[str], patterns: Mapping[str, str], columns: Sequence[Column]
) -> Iterator[str]:
    """Mistakes in the columns by which a table is partitioned, and in the patterns of their values."""
    kinds = {column.name: column.type for column in columns}
    for name in partitions:
        if name not in kinds:
            yield f"partitions: {name} is not a declared column"
        elif kinds[name] in ("map", "binary", "json", *INEXACT) or is_nested(kinds[name]):
            yield f"partitions: {name} is {kinds[name]}, which cannot name a folder"
    for name, pattern in patterns.items():
        if name not in partitions:
            yield f"partition_values: {name} is not one of the partitions"
        try:
            re.compile(pattern)
        except re.error as problem:
            yield f"partition_values: {name} is not a regular expression: {problem}"
    if partitions and len(set(partitions)) < len(partitions):
        yield "partitions: names a column twice"


def cluster_problems(
    cluster_by: Sequence[str], partitions: Sequence[str], columns: Sequence[Column], compaction: Compaction
) -> Iterator[str]:
    """Mistakes in the columns by which OPTIMIZE groups rows, by the limits of Delta."""
    kinds = {column.name: column.type for column in columns}
    if cluster_by and partitions:
        yield "cluster_by: cannot be combined with partitions"
    if cluster_by and (compaction.order_by or compaction.way == "rewrite"):
        yield "cluster_by: OPTIMIZE orders the rows, so compaction cannot have order_by or rewrite"
    if len(set(cluster_by)) < len(cluster_by) or len(cluster_by) > MOST_CLUSTER_COLUMNS:
        yield f"cluster_by: must be at most {MOST_CLUSTER_COLUMNS} columns, each once"
    widths = accumulate(width_of(column.type) for column in columns)
    indexed = [column.name for column, end in zip(columns, widths, strict=True) if end <= INDEXED_COLUMNS]
    for name in cluster_by:
        if name not in kinds:
            yield f"cluster_by: {name} is not a declared column"
        elif kinds[name] in ("map", "binary", "boolean") or is_nested(kinds[name]):
            yield f"cluster_by: {name} is {kinds[name]}, for which Delta keeps no minimum and maximum"
        elif name not in indexed:
            yield f"cluster_by: {name} must be among the first {INDEXED_COLUMNS} columns (a struct counts as its fields)"
