"""One step: updates a state from its merged version of the log to a newer one.

In: a table of changes (the log) and the state that it is merged into. Out: `Step`. The state is a function of the log at one
version. So whatever happens to the log, such as a replay or a rollback, happens to the state. Only the files by which the two
versions differ are read. If rows were removed from the log, the winners of their keys are searched for in all of it.

The whole log is read if the difference is unknown or insufficient: a new state, another declaration, columns of another type,
commits or files that maintenance deleted.
"""

from __future__ import annotations

import time
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING

from forebay.declaration.merge import Merge
from forebay.errors import Halt, InvalidConfiguration
from forebay.lake.layout import table_path
from forebay.lake.lease import Lease
from forebay.lake.log.commit import info_of
from forebay.lake.log.listing import NoTable, list_log
from forebay.lake.objects import Objects, open_objects
from forebay.lake.origin import origin_gone, origin_replaced
from forebay.merge.difference import Difference, Unknown, difference
from forebay.merge.history import History
from forebay.merge.lag import last_merge, waited_s
from forebay.merge.log_rows import LogVersion
from forebay.merge.partial import Partial
from forebay.merge.snapshot import Snapshot
from forebay.merge.state import State, way_of
from forebay.merge.winners import RANK, Ranking
from forebay.table.kernel import TableLogs

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.types import StructType


@dataclass(frozen=True, kw_only=True)
class Step:
    """The result, in rows of the state; `keys` are those with a change that did not come too late, or a rollup's groups, and
    `tombstones` are deletes that won. `recomputed`: why it was computed from scratch. `lag_s`: how long the oldest change had
    waited. `behind`: more commits are waiting than one step takes."""

    version: int
    keys: int = 0
    inserted: int = 0
    updated: int = 0
    deleted: int = 0
    tombstones: int = 0
    recomputed: str | None = None
    lag_s: float = 0
    seconds: float = 0
    behind: bool = False


def step(
    session: SparkSession,
    lake: str,
    log: str,
    state: str,
    merge: Merge,
    *,
    logs: TableLogs,
    lease: Lease,
) -> Step | None:
    """The step; None if the state is up to date. After a crash, a second call does the rest."""
    began, path = time.monotonic(), table_path(lake, log)
    commits, of_state = open_objects(path), open_objects(table_path(lake, state))
    now = _newest(commits, log, state)
    changes = LogVersion(session, path, now, taken=merge.own_columns)
    if changes.is_derived:
        _must_have_no(state, of_state, log)
        return None
    _must_have_columns(log, changes.schema, merge)
    ranking = Ranking(merge, changes.schema)
    there = kind_of(merge)(session, lake, log, state, ranking, logs)
    there.must_be_ours(of_state)
    there.must_be_of(changes.id)
    lease.check()
    before = there.version(way_of(merge, changes.id))
    if before == now:
        return None
    if before > now:
        raise Halt(
            f"table {state} has merged version {before} of {log}, which has only {now}: was {log} restored from a copy? "
            f"Delete the folders of {state} and of its tombstones, and the next run recomputes it"
        )
    found = _difference(there, changes.schema, commits, of_state, before, now)
    lease.check()
    there.table.begin_feed()
    if isinstance(found, Unknown):
        done = _anew(there, changes, ranking, found.reason, lease)
    else:
        done = _forward(there, changes, ranking, found, of_state, lease)
    if done.tombstones:
        there.forget(datetime.now(UTC) - timedelta(days=merge.tombstone_days))
    lag_s = waited_s(commits, before + 1)
    return replace(done, lag_s=lag_s, seconds=round(time.monotonic() - began, 3))


def _must_have_no(state: str, of_state: Objects, log: str) -> None:
    """A state of the family took the name of this log, whose records are in the quarantine: there is nothing to merge."""
    try:
        list_log(of_state)
    except NoTable:
        return
    raise Halt(origin_replaced(state, log))


def _newest(commits: Objects, log: str, state: str) -> int:
    try:
        return list_log(commits).version
    except NoTable as gone:
        raise Halt(origin_gone(state, (log,))) from gone


def kind_of(merge: Merge) -> type[State]:
    if merge.history is not None:
        return History
    if merge.snapshot:
        return Snapshot
    return Partial if merge.ignore_null_updates else State


def _difference(
    there: State, schema: StructType, commits: Objects, of_state: Objects, before: int, now: int
) -> Difference | Unknown:
    if before < 0:
        return Unknown("the state is new, or its declaration has changed")
    if by_hand := last_merge(of_state)[1]:
        return Unknown(f"{by_hand} changed the rows of the state by hand")
    if not there.grows_into(schema):
        return Unknown("a column of the changes has another type than before, or was removed")
    if isinstance(there, Snapshot):
        return Unknown("a snapshot is the whole state")
    return difference(commits, before, now)


def _anew(there: State, changes: LogVersion, ranking: Ranking, why: str, lease: Lease) -> Step:
    from pyspark.sql import functions as F

    winners = there.winners(ranking.changes(changes.rows())).withColumn("final", F.lit(True)).persist()
    try:
        counted = _counted(winners)
        lease.check()  # that took long, perhaps longer than the lease lasts
        there.compute(winners, changes.schema, changes.version)
    finally:
        winners.unpersist()
    keys, deletes = counted["keys"], counted["deletes"]
    return Step(version=changes.version, keys=keys, tombstones=deletes, inserted=keys - deletes, recomputed=why)


def _forward(
    there: State, changes: LogVersion, ranking: Ranking, found: Difference, of_state: Objects, lease: Lease
) -> Step:
    """Moves the state to the version of the difference, which may be older than the newest. The newest columns fit it, too."""
    there.grow(changes.schema)
    if not found.came and not found.left:  # a compaction, or other columns
        there.table.note(there.txn(found.version))
        return Step(version=found.version, behind=found.version < changes.version)
    came = changes.rows_of(found.came)
    left = changes.rows_of(found.left) if found.left else None
    differing = ranking.difference(changes.rows(), came, left)
    winners = there.to_merge(differing, changes.schema)
    if there.only_grows and left is None:
        there.add(winners, changes.schema, found.version)
        metrics = _metrics(of_state)
        # Where Delta made no commit of it, all changes came too late.
        keys, deletes = metrics.get("numSourceRows", 0), 0
    else:
        keys, deletes = _changed(there, winners, changes.schema, found.version, lease)
        metrics = _metrics(of_state)
    return Step(
        version=found.version,
        keys=keys,
        tombstones=deletes,
        behind=found.version < changes.version,
        inserted=metrics.get("numTargetRowsInserted", 0),
        updated=metrics.get("numTargetRowsUpdated", 0),
        deleted=metrics.get("numTargetRowsDeleted", 0),
    )


def _changed(there: State, winners: DataFrame, schema: StructType, version: int, lease: Lease) -> tuple[int, int]:
    """The number of changed keys, and of deletes that won."""
    winners = winners.persist()
    try:
        counted = _counted(winners)
        lease.check()  # that took long, perhaps longer than the lease lasts
        deletes, final = bool(counted["deletes"]), bool(counted["final"])
        there.change(winners, schema, version, deletes=deletes, final=final)
    finally:
        winners.unpersist()
        there.let_go()
    return counted["keys"], counted["deletes"]


def _counted(winners: DataFrame) -> dict[str, int]:
    from pyspark.sql import functions as F

    asked = winners.select(F.count("*").alias("keys"), *(F.count_if(name).alias(name) for name in ("deletes", "final")))
    row = asked.first()
    assert row is not None
    return {name: int(row[name]) for name in ("keys", "deletes", "final")}


def _metrics(state: Objects) -> dict[str, int]:
    """The operation metrics of the state's last commit: only this run commits data to it."""
    metrics = info_of(state, list_log(state).version).get("operationMetrics", {})
    return {name: int(number) for name, number in metrics.items() if str(number).isdigit()}


def _must_have_columns(log: str, schema: StructType, merge: Merge) -> None:
    lacking = [name for name in (*merge.keys, *merge.sequence_by, *RANK, "_ingested_at") if name not in schema.names]
    if lacking:
        raise InvalidConfiguration.one(
            f"table {log}",
            f"has no column {', '.join(lacking)} to merge it by",
            "its next batch adds the declared columns; run the merge after that batch",
        )
