"""The names of a batch's files, as rows: from the source, or from files that are known in another way.

In: files, or rows of the source. Out: the other. A batch ignores the source's other columns.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from forebay.landed_file import LandedFile
from forebay.ledger.ledger import utc
from forebay.notification.order import written_later

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

COLUMNS = "bucket string, key string, size long, etag string, version_id string, sequencer string, event_time timestamp"


def names_of(spark: SparkSession, files: Iterable[LandedFile]) -> DataFrame:
    rows = [(f.bucket, f.key, f.size, f.etag, f.version_id, f.sequencer, f.event_time) for f in files]
    return spark.createDataFrame(rows, COLUMNS)


def files_of(names: DataFrame) -> list[LandedFile]:
    """In a bucket without versions, a key that gets its first bytes back is announced as the same file again. The latest
    announcement of a file counts: an earlier one would make it older than the versions in between."""
    files = [
        LandedFile(row.bucket, row.key, row.size, row.etag or "", row.version_id, row.sequencer, utc(row.event_time))
        for row in names.collect()
    ]
    latest: dict[str, LandedFile] = {}
    for file in files:
        before = latest.setdefault(file.file_id, file)
        latest[file.file_id] = file if written_later(file, before) else before
    return [latest[file.file_id] for file in files]
