"""Spark's part of maintenance, for one table: the properties that keep the promise, VACUUM, and a checkpoint of the log.

In: a session, the table, its retention. Out: `Cared`. Each step may be repeated and may be stopped anywhere. A VACUUM deletes
only what no version within the retention needs, in any order, and the next one deletes the rest.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

from forebay.lake.log.commit import info_of
from forebay.lake.log.listing import COMMIT, LOG, list_log
from forebay.lake.objects import open_objects
from forebay.upkeep.maintenance.orphans import unknown_files_of
from forebay.upkeep.maintenance.retention import Retention

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

LITE_NEEDS_THE_WHOLE_LOG = "DELTA_CANNOT_VACUUM_LITE"


@dataclass(frozen=True)
class Cared:
    """`vacuum` is the kind that ran; `checkpoint` the version of the one that was written; `unknown` are files that prevented
    a full VACUUM."""

    vacuum: str
    files_deleted: int
    checkpoint: int | None
    unknown: tuple[str, ...] = ()


def care_for(
    spark: SparkSession, path: str, retention: Retention, *, vacuum: str, checkpoint_after: int, version: int
) -> Cared:
    quoted = f"delta.`{path.replace('`', '``')}`"
    if retention.properties:
        properties = ", ".join(f"'{name}' = '{value}'" for name, value in retention.properties.items())
        spark.sql(f"ALTER TABLE {quoted} SET TBLPROPERTIES ({properties})")
    checkpoint = _checkpoint(spark, path, checkpoint_after)
    if vacuum == "none":
        return Cared("none", 0, checkpoint)
    unknown = tuple(unknown_files_of(open_objects(path))) if vacuum == "full" else ()
    kind, deleted = _vacuumed(spark, path, quoted, retention, "lite" if unknown else vacuum, version)
    return Cared(kind, deleted, checkpoint, unknown)


def write_checkpoint(spark: SparkSession, path: str, version: int) -> None:
    """Writes a checkpoint with Delta Kernel, which also deletes commits past the log's retention."""
    session: Any = spark
    kernel = session._jvm.io.delta.kernel
    engine = kernel.defaults.engine.DefaultEngine.create(session._jsparkSession.sessionState().newHadoopConf())
    kernel.Table.forPath(engine, path).checkpoint(engine, version)


def _vacuumed(
    spark: SparkSession, path: str, quoted: str, retention: Retention, kind: str, version: int
) -> tuple[str, int]:
    from py4j.protocol import Py4JJavaError
    from pyspark.errors import PySparkException

    began = datetime.now(UTC)
    try:
        spark.sql(f"VACUUM {quoted} {kind.upper()}")
    except (PySparkException, Py4JJavaError) as refused:
        # The log of the time before the last VACUUM is gone: only the files themselves can tell.
        if kind != "lite" or LITE_NEEDS_THE_WHOLE_LOG not in str(refused):
            raise
        if unknown_files_of(open_objects(path)):
            return "none", 0
        return _vacuumed(spark, path, quoted, retention, "full", version)
    if kind == "full" and retention.keep is not None:
        _let_lite_go_on_from_here(path, began - retention.keep)
    return kind, _deleted_since(path, version)


def _let_lite_go_on_from_here(path: str, before: datetime) -> None:
    """Delta's FULL forgets how far VACUUM has come, which makes every LITE of a table whose log does not begin with version 0
    impossible from then on. Files that versions up to this one removed are gone, which LITE itself would have noted."""
    table = open_objects(path)
    commits = ((COMMIT.fullmatch(found.name), found.modified) for found in table.found(LOG))
    past = [int(match[1]) for match, modified in commits if match and modified < before]
    if past:
        table.write(
            f"{LOG}_last_vacuum_info", json.dumps({"latestCommitVersionOutsideOfRetentionWindow": max(past)}).encode()
        )


def _deleted_since(path: str, version: int) -> int:
    """The files deleted since then, as counted in the table's own log by every VACUUM."""
    table = open_objects(path)
    for number in range(list_log(table).version, version, -1):
        info = info_of(table, number)
        if info.get("operation") == "VACUUM END":
            return int(info.get("operationMetrics", {}).get("numDeletedFiles", 0))
    return 0


def _checkpoint(spark: SparkSession, path: str, after: int) -> int | None:
    listing = list_log(open_objects(path))
    if listing.version - listing.checkpoint_version <= after:
        return None
    write_checkpoint(spark, path, listing.version)
    return listing.version
