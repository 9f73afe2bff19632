"""Delta's log through Delta Kernel: which version a table has, what it looks like, and the commit of files already written.

In: a Spark session, whose JVM has Kernel on its class path as a part of delta-spark, and whose settings name the log store;
tables by path. Out: `Seen` (a table at the version when it was looked at), and commits that are `Committed`, `Repeated` (that
transaction is in already) or `CommitConflict` (the table changed: look again). Everything else is `LogFailed`.

Kernel and not Spark commits, because Spark's commit costs a few jobs: 0.4 s a table against some hundredths. The visible
effects: `DESCRIBE HISTORY` shows engine `Kernel-.../forebay`, no operation metrics, and `isBlindAppend = false`, which
Kernel writes for all commits. For Delta's conflict checks that is the careful answer and costs nothing. Open-source Delta
knows only Serializable: there a concurrent UPDATE checks blind appends like others, and OPTIMIZE checks neither.

`TableLogs` remembers what the last commit left, so that the next one lists nothing. It reads one log file, whose absence says
that the table was replaced, and writes one. On S3 that is seven requests, with the data file. It is safe beside other writers.
A commit is refused if its version is taken, and Kernel then reads the winners' commits. An append follows other appends and
compactions. A table whose columns changed is `CommitConflict`.

Kernel does not write checkpoints on its own, so threads write them when they are due, with a checksum each. Without a
checksum, Kernel 4.2 reads all commits since the last checkpoint again at every commit.
"""

from __future__ import annotations

import json
import threading
from collections import OrderedDict
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from forebay.events import Emit
from forebay.lake.layout import DERIVED_FROM
from forebay.table.actions import metadata_action, protocol_action
from forebay.table.commit import CommitConflict, Committed, LogFailed, Repeated, Txn
from forebay.table.events import LogNotTidied
from forebay.table.java import hadoop_conf, items_of, java_of
from forebay.table.widening import ENABLED, FEATURE

if TYPE_CHECKING:
    from pyspark.sql import SparkSession
    from pyspark.sql.types import StructType

NO_VERSION = -1
CHECKPOINTS_AT_ONCE = 4
"""The checkpoints of different tables written at once. Twelve hundred tables with a commit a minute need two checkpoints a
second."""
REMEMBERED_TABLES = 10_000
REMEMBERED_COMMITS = 100
"""Commits of one table before its log is listed again: the memory for them grows with each commit."""

CHECKPOINT, CHECKSUM_IN_PASSING = "CHECKPOINT", "CHECKSUM_SIMPLE"
REPEATED = "ConcurrentTransactionException"
CONFLICTS = (
    *("MetadataChangedException", "ProtocolChangedException", "TableAlreadyExistsException"),
    *("MaxCommitRetryLimitReachedException", "ConcurrentWriteException"),
    # A failure, and then a conflict at the same version. That version is taken, so the log shows whether it is by us.
    "CommitStateUnknownException",
)


@dataclass(frozen=True)
class Seen:
    """A table at one version. `snapshot` is Kernel's; `listed` is the version at which its log was last listed."""

    path: str
    listed: int
    version: int
    schema: StructType
    partition_columns: tuple[str, ...]
    column_mapping: str
    derived_from: str
    """The tables that a merge or a rollup computes it from; empty for a table of records."""
    snapshot: Any = None


class TableLogs:
    """The logs of all tables that this process writes. Methods may be called by several threads, for different tables."""

    def __init__(self, spark: SparkSession, *, emit: Emit = lambda event: None) -> None:
        session: Any = spark
        self._java = java_of(session._jvm)
        self._log = self._java.log(hadoop_conf(session))
        self._emit = emit
        self._seen: OrderedDict[str, Seen] = OrderedDict()
        self._lock = threading.Lock()
        self._background = ThreadPoolExecutor(CHECKPOINTS_AT_ONCE, "checkpoints")
        self._being_tidied: set[str] = set()

    def look(self, path: str, *, again: bool = False) -> Seen | None:
        """The table, None where there is none. In the state after our last commit, unless `again` asks for its newest state."""
        with self._lock:
            if again:
                self._seen.pop(path, None)
            elif path in self._seen:
                self._seen.move_to_end(path)
                return self._seen[path]
        return self._load(path)

    def remembered(self) -> list[Seen]:
        """The tables that a look would not read."""
        with self._lock:
            return list(self._seen.values())

    def last_version(self, seen: Seen, app_id: str) -> int:
        """The last version of this application's transactions that is in; -1 for none."""
        with self._failures():
            return int(self._log.lastVersion(seen.snapshot, app_id))

    def version_at(self, path: str, *, again: bool = False) -> int:
        """The version of the table at a path; -1 where there is none."""
        seen = self.look(path, again=again)
        return NO_VERSION if seen is None else seen.version

    def last_version_at(self, path: str, app_id: str, *, again: bool = False) -> int:
        """The same of the table at a path; -1 also where there is no table."""
        return self.look_for(path, app_id, again=again)[1]

    def look_for(self, path: str, app_id: str, *, again: bool = False) -> tuple[Seen | None, int]:
        """The table at a path, and the last version of this application's transactions that is in. The remembered state of a
        table may be out of date: if its log has changed, or it was deleted and created again, it is read again."""
        try:
            seen = self.look(path, again=again)
            return seen, NO_VERSION if seen is None else self.last_version(seen, app_id)
        except LogFailed:
            if again:
                raise
            return self.look_for(path, app_id, again=True)

    def has(self, path: str, txn: Txn, *, again: bool = False) -> bool:
        """Whether the table at a path has this transaction, or a later one of its application."""
        return self.last_version_at(path, txn.app_id, again=again) >= txn.version

    def cluster_columns(self, seen: Seen) -> tuple[str, ...]:
        """The columns by which OPTIMIZE groups the table's rows; an ordinary table has none."""
        with self._failures():
            found = seen.snapshot.getDomainMetadata("delta.clustering")
        columns = json.loads(found.get())["clusteringColumns"] if found.isPresent() else []
        return tuple(".".join(column) for column in columns)

    def create(
        self,
        path: str,
        schema: StructType,
        partition_columns: Sequence[str],
        properties: Mapping[str, str],
        actions: Sequence[str],
        txn: Txn,
        *,
        cluster_columns: Sequence[str] = (),
    ) -> Committed | Repeated | CommitConflict:
        """Makes the table, with these files as its first commit. Clustering is a feature for writers, and raises what they must
        know to version 7; readers need no more than before."""
        more = self._java.map_of(properties)
        columns = schema.json(), "\n".join(partition_columns), "\n".join(cluster_columns)

        def send(lines: str) -> Any:
            return self._log.create(path, *columns, more, txn.app_id, txn.version, lines)

        like = Seen(path, 0, 0, schema, tuple(partition_columns), *_told_by(properties))
        return self._commit(path, send, actions, like=like)

    def append(
        self,
        seen: Seen,
        actions: Sequence[str],
        txn: Txn,
        *,
        schema: StructType | None = None,
        widening: bool = False,
    ) -> Committed | Repeated | CommitConflict:
        """Adds these files to the table, behind whatever others have committed since it was seen. With a schema, the table
        gets its columns in the same commit, and with `widening` the feature that lets its types be wider than before. Kernel
        changes no columns without column mapping, which other readers cannot read. But it commits what it is handed, and
        refuses the commit if another writer changed the table meanwhile."""
        if schema is not None:
            more = {ENABLED: "true"} if widening else {}
            actions = [metadata_action(seen.snapshot.getMetadata(), schema, properties=more), *actions]
        if widening:
            actions = [protocol_action(seen.snapshot.getProtocol(), FEATURE), *actions]

        def send(lines: str) -> Any:
            return self._log.append(seen.snapshot, txn.app_id, txn.version, lines)

        return self._commit(seen.path, send, actions, like=seen if schema is None else None)

    def rewrite(
        self, seen: Seen, actions: Sequence[str], *, schema: StructType, partition_columns: Sequence[str]
    ) -> Committed | Repeated | CommitConflict:
        """Commits actions that remove all files and add others. It succeeds only if nobody has committed since the table was
        seen, because Kernel can go behind other commits only with appends."""
        actions = [metadata_action(seen.snapshot.getMetadata(), schema, partition_columns), *actions]
        return self._change(seen, {}, actions)

    def set_properties(self, seen: Seen, properties: Mapping[str, str]) -> bool:
        """Gives the table those that it lacks, in a commit of its own, and says whether there were any: then look again. Kernel
        raises what writers must know, if a property asks for more."""
        if not properties:
            return False
        has = dict(seen.snapshot.getTableProperties())
        lacking = {name: value for name, value in properties.items() if has.get(name) != value}
        if lacking:
            self._change(seen, lacking, ())
        return bool(lacking)

    def close(self) -> None:
        """Waits for checkpoints that are being written."""
        self._background.shutdown()

    # --- inside ---

    def _load(self, path: str) -> Seen | None:
        with self._failures():
            snapshot = self._log.newest(path)
            return None if snapshot is None else self._remember(_seen(path, snapshot))

    def _remember(self, seen: Seen) -> Seen:
        with self._lock:
            self._seen[seen.path] = seen
            while len(self._seen) > REMEMBERED_TABLES:
                self._seen.popitem(last=False)
        return seen

    def _forget(self, path: str) -> None:
        with self._lock:
            self._seen.pop(path, None)

    def _change(
        self, seen: Seen, properties: Mapping[str, str], actions: Sequence[str]
    ) -> Committed | Repeated | CommitConflict:
        """Only if nobody has committed since the table was seen."""
        more = self._java.map_of(properties)

        def send(lines: str) -> Any:
            return self._log.change(seen.snapshot, more, lines)

        return self._commit(seen.path, send, actions)

    def _commit(
        self,
        path: str,
        send: Callable[[str], Any],
        actions: Sequence[str],
        *,
        like: Seen | None = None,
    ) -> Committed | Repeated | CommitConflict:
        """`like`: the table with the columns and properties that it has after the commit. Without it, nothing is
        remembered."""
        self._forget(path)
        try:
            with self._failures():
                made = send("\n".join(actions))
                version, *hooks = str(made.told()).split()
        except LogFailed as failure:
            if failure.kind == REPEATED:
                return Repeated()
            if failure.kind in CONFLICTS:
                return CommitConflict()
            raise
        if like is not None:
            self._after(replace(like, version=int(version)), made, hooks)
        return Committed(int(version))

    def _after(self, now: Seen, made: Any, hooks: Sequence[str]) -> None:
        """Remembers what the commit left, and has a thread do what Kernel leaves to its users. A remembered table whose
        checksum is not known in passing (it was just read, or there was a conflict) is slow: it is counted out and read
        again. Nothing here may fail, for the commit is in."""
        if CHECKPOINT in hooks or CHECKSUM_IN_PASSING not in hooks:
            self._in_background(now.path, now.version, made, hooks)
        may_be_remembered = CHECKSUM_IN_PASSING in hooks and now.version - now.listed < REMEMBERED_COMMITS
        if may_be_remembered and (snapshot := made.snapshot()) is not None:
            self._remember(replace(now, snapshot=snapshot))

    def _in_background(self, path: str, version: int, made: Any, hooks: Sequence[str]) -> None:
        with self._lock:
            if path in self._being_tidied and CHECKPOINT not in hooks:
                return
            self._being_tidied.add(path)
        self._background.submit(self._tidy, path, version, made, hooks)

    def _tidy(self, path: str, version: int, made: Any, hooks: Sequence[str]) -> None:
        for name in hooks:
            try:
                with self._failures():
                    made.tidy(name)
            except LogFailed as failure:
                self._emit(LogNotTidied(path=path, version=version, what=name.lower(), error=str(failure)))
        with self._lock:
            self._being_tidied.discard(path)

    @contextmanager
    def _failures(self) -> Iterator[None]:
        """The errors of the JVM, by the name of their class, as Kernel's documentation expects."""
        from py4j.protocol import Py4JJavaError

        try:
            yield
        except Py4JJavaError as failure:
            raise LogFailed.of(failure.java_exception) from failure


def _seen(path: str, snapshot: Any) -> Seen:
    from pyspark.sql.types import StructType

    version = int(snapshot.getVersion())
    schema = StructType.fromJson(json.loads(snapshot.getMetadata().getSchemaString()))
    partition_columns = tuple(items_of(snapshot.getPartitionColumnNames()))
    return Seen(path, version, version, schema, partition_columns, *_told_by(snapshot.getTableProperties()), snapshot)


def _told_by(properties: Mapping[str, str]) -> tuple[str, str]:
    """The column mapping, and the tables that the table is computed from."""
    return properties.get("delta.columnMapping.mode") or "none", properties.get(DERIVED_FROM) or ""
