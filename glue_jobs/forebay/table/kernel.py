"""Delta's log through Delta Kernel: which version a table has, what it looks like, and the commit of files already written.

Enters: a Spark session, whose JVM has Kernel on its class path as a part of delta-spark, and whose settings name the log
store; tables by path. Leaves: `Seen` (a table as it was when looked at), and commits that are `Committed`, `Repeated`
(that transaction is in already) or `Outrun` (the table changed: look again). Everything else is `LogFailed`.

Kernel and not Spark commits, because Spark's commit costs a few jobs: 0.4 s a table against some hundredths. What one sees
of that: `DESCRIBE HISTORY` shows engine `Kernel-.../forebay`, no operation metrics, and `isBlindAppend = false`, which
Kernel writes for all commits. For Delta's conflict checks that is the careful answer and costs nothing: open-source Delta
knows only Serializable, where a concurrent UPDATE checks blind appends like others, and OPTIMIZE checks neither.

`TableLogs` remembers what the last commit left, so that the next one lists nothing: it reads one log file (whose absence
says that the table was replaced) and writes one. That is safe beside other writers: a commit is refused where its version
is taken, and Kernel then reads what the winners did; an append goes behind other appends and compactions, and a table
whose columns changed is `Outrun`. Kernel does not write checkpoints by itself, so a thread does when they are due.
"""

from __future__ import annotations

import json
import threading
from collections import OrderedDict
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from forebay.errors import ForebayError
from forebay.events import Emit
from forebay.table.events import CheckpointNotWritten

if TYPE_CHECKING:
    from pyspark.sql import SparkSession
    from pyspark.sql.types import StructType

__all__ = ["Committed", "LogFailed", "Outrun", "Repeated", "Seen", "TableLogs", "Txn"]

ENGINE = "forebay"
NO_VERSION = -1
RETRIES = 20
"""Conflicts and hiccups of one commit. Kernel's own number is 200, without a pause, also where writing is forbidden."""
REMEMBERED_TABLES = 10_000
LOG_STORE_SCHEMES = ("s3", "s3a", "s3n", "abfs", "abfss", "gs", "hdfs", "file")

NOT_THERE = "TableNotFoundException"
REPEATED = "ConcurrentTransactionException"
OUTRUN = ("MetadataChangedException", "ProtocolChangedException", "TableAlreadyExistsException")


@dataclass(frozen=True)
class Txn:
    """What makes a commit happen once: Delta keeps, for each application, the last version that is in."""

    app_id: str
    version: int


@dataclass(frozen=True)
class Seen:
    """A table as it was when looked at. `snapshot` is Kernel's."""

    path: str
    version: int
    schema: StructType
    partition_columns: tuple[str, ...]
    properties: Mapping[str, str]
    snapshot: Any


@dataclass(frozen=True)
class Committed:
    version: int


@dataclass(frozen=True)
class Repeated:
    """The transaction was in already; nothing was added."""


@dataclass(frozen=True)
class Outrun:
    """Another writer created the table or changed what it looks like; the files are not in it."""


class LogFailed(ForebayError):
    """The log could not be read or written. After a commit: whether it is in is not known until the log is read again."""

    def __init__(self, kind: str, message: str) -> None:
        self.kind, self.message = kind, message
        super().__init__(f"{kind}: {message}")


class TableLogs:
    """The logs of all tables that this process writes. Methods may be called by several threads, for different tables."""

    def __init__(self, spark: SparkSession, *, emit: Emit = lambda event: None) -> None:
        session: Any = spark
        self._jvm = session._jvm
        self._kernel = self._jvm.io.delta.kernel
        self._engine = self._kernel.defaults.engine.DefaultEngine.create(_hadoop_conf(session))
        self._emit = emit
        self._seen: OrderedDict[str, Seen] = OrderedDict()
        self._lock = threading.Lock()
        self._checkpoints = ThreadPoolExecutor(1, "checkpoints")

    def look(self, path: str, *, again: bool = False) -> Seen | None:
        """The table, None where there is none. As it was after our last commit, unless `again` asks for its newest state."""
        with self._lock:
            if again:
                self._seen.pop(path, None)
            elif path in self._seen:
                self._seen.move_to_end(path)
                return self._seen[path]
        return self._load(path)

    def last_version(self, seen: Seen, app_id: str) -> int:
        """The last version of this application's transactions that is in; -1 for none."""
        with self._failures():
            found = seen.snapshot.getLatestTransactionVersion(self._engine, app_id)
            return int(found.get()) if found.isPresent() else NO_VERSION

    def create(
        self,
        path: str,
        schema: StructType,
        partition_columns: Sequence[str],
        properties: Mapping[str, str],
        actions: Sequence[str],
        txn: Txn,
    ) -> Committed | Repeated | Outrun:
        """Makes the table, with these files as its first commit."""

        def transaction() -> Any:
            table = self._kernel.Table.forPath(self._engine, path)
            builder = table.createTransactionBuilder(self._engine, ENGINE, self._kernel.Operation.CREATE_TABLE)
            kernel_schema = self._kernel.internal.types.DataTypeJsonSerDe.deserializeStructType(schema.json())
            return (
                builder.withSchema(self._engine, kernel_schema)
                .withPartitionColumns(self._engine, self._list(partition_columns))
                .withTableProperties(self._engine, self._map(properties))
                .withTransactionId(self._engine, txn.app_id, txn.version)
                .withMaxRetries(RETRIES)
                .build(self._engine)
            )

        return self._commit(path, transaction, actions)

    def append(self, seen: Seen, actions: Sequence[str], txn: Txn) -> Committed | Repeated | Outrun:
        """Adds these files to the table, behind whatever others have committed since it was seen."""

        def transaction() -> Any:
            update = seen.snapshot.buildUpdateTableTransaction(ENGINE, self._kernel.Operation.WRITE)
            return update.withTransactionId(txn.app_id, txn.version).withMaxRetries(RETRIES).build(self._engine)

        return self._commit(seen.path, transaction, actions)

    def close(self) -> None:
        """Waits for checkpoints that are being written."""
        self._checkpoints.shutdown()

    # --- inside ---

    def _load(self, path: str) -> Seen | None:
        try:
            with self._failures():
                return self._remember(
                    path, self._kernel.Table.forPath(self._engine, path).getLatestSnapshot(self._engine)
                )
        except LogFailed as failure:
            if failure.kind == NOT_THERE:
                return None
            raise

    def _remember(self, path: str, snapshot: Any) -> Seen:
        from pyspark.sql.types import StructType

        metadata = snapshot.getMetadata()
        seen = Seen(
            path,
            int(snapshot.getVersion()),
            StructType.fromJson(json.loads(metadata.getSchemaString())),
            tuple(snapshot.getPartitionColumnNames()),
            dict(snapshot.getTableProperties()),
            snapshot,
        )
        with self._lock:
            self._seen[path] = seen
            while len(self._seen) > REMEMBERED_TABLES:
                self._seen.popitem(last=False)
        return seen

    def _forget(self, path: str) -> None:
        with self._lock:
            self._seen.pop(path, None)

    def _commit(self, path: str, transaction: Any, actions: Sequence[str]) -> Committed | Repeated | Outrun:
        self._forget(path)
        try:
            with self._failures():
                result = transaction().commit(self._engine, self._rows(actions))
                self._after(path, result)
                return Committed(int(result.getVersion()))
        except LogFailed as failure:
            if failure.kind == REPEATED:
                return Repeated()
            if failure.kind in OUTRUN:
                return Outrun()
            raise

    def _rows(self, actions: Sequence[str]) -> Any:
        """The actions' text, as Kernel's rows."""
        internal = self._kernel.internal
        text = internal.util.VectorUtils.buildColumnVector(self._list(actions), self._kernel.types.StringType.STRING)
        nothing = self._jvm.java.util.Optional.empty()
        batch = self._engine.getJsonHandler().parseJson(text, internal.actions.SingleAction.FULL_SCHEMA, nothing)
        return self._kernel.utils.CloseableIterable.inMemoryIterable(batch.getRows())

    def _after(self, path: str, result: Any) -> None:
        """Remembers what the commit left, or, where a checkpoint is due, writes it and starts from it the next time: a
        remembered log only grows. There is nothing to remember after a conflict."""
        due = [hook for hook in result.getPostCommitHooks() if hook.getType().toString() == "CHECKPOINT"]
        for hook in due:
            self._checkpoints.submit(self._checkpoint, path, int(result.getVersion()), hook)
        snapshot = result.getPostCommitSnapshot()
        if not due and snapshot.isPresent():
            self._remember(path, snapshot.get())

    def _checkpoint(self, path: str, version: int, hook: Any) -> None:
        try:
            with self._failures():
                hook.threadSafeInvoke(self._engine)
        except LogFailed as failure:
            self._emit(CheckpointNotWritten(path=path, version=version, error=str(failure)))

    @contextmanager
    def _failures(self) -> Iterator[None]:
        """What the JVM throws, by the name of its class, which is what Kernel's users are meant to go by."""
        from py4j.protocol import Py4JJavaError

        try:
            yield
        except Py4JJavaError as failure:
            thrown = failure.java_exception
            raise LogFailed(str(thrown.getClass().getSimpleName()), str(thrown.getMessage())) from failure

    def _list(self, items: Sequence[str]) -> Any:
        made = self._jvm.java.util.ArrayList()
        for item in items:
            made.add(item)
        return made

    def _map(self, items: Mapping[str, str]) -> Any:
        made = self._jvm.java.util.HashMap()
        for key, value in items.items():
            made.put(key, value)
        return made


def _hadoop_conf(session: Any) -> Any:
    """The session's, with Spark's choice of log store said in Kernel's words: it does not read Delta's."""
    conf = session._jsparkSession.sessionState().newHadoopConf()
    for scheme in LOG_STORE_SCHEMES:
        chosen = session.conf.get(f"spark.delta.logStore.{scheme}.impl", None)
        if chosen:
            conf.set(f"io.delta.kernel.logStore.{scheme}.impl", chosen)
    return conf
