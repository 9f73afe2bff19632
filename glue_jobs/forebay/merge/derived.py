"""A table that is computed from others, and commits to it that count once.

In: rows, or a MERGE, with a transaction. Out: commits that carry it. The property `forebay.derivedFrom` names the tables from
which the table is computed. Tables that others created are never written.

Leases expire by the clock, and a paused driver does not know it. So each commit checks whether another driver computes the
table now: in another way, or from later versions. A driver that intervened between the check and the commit is detected
afterwards.
"""

from __future__ import annotations

import uuid
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from forebay.declaration.properties import CHANGE_FEED
from forebay.errors import Halt, InvalidConfiguration
from forebay.lake.layout import DERIVED_BY, DERIVED_FROM
from forebay.lake.log.definition import definition_of
from forebay.lake.objects import Objects
from forebay.table.commit import Txn
from forebay.table.exchange import of_session
from forebay.table.kernel import Seen, TableLogs
from forebay.table.schema import nullable

if TYPE_CHECKING:
    from pyspark.sql import Column as Expression
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.types import StructType

PROPERTIES = {"delta.enableDeletionVectors": "false"}
"""Every reader must be able to read it, whatever the cluster's defaults are."""


class Derived:
    """`origin` names the tables that it is computed from. `beside` is a table that is computed with it, and has its name."""

    def __init__(
        self,
        session: SparkSession,
        logs: TableLogs,
        path: str,
        origin: str,
        *,
        change_feed: bool = False,
        beside: Derived | None = None,
    ) -> None:
        self._session, self._logs, self.path, self._origin = session, logs, path, origin
        self._change_feed, self._by, self._named = change_feed, "", beside or self
        self.sources: Sequence[Txn] = ()
        """The versions that it is computed from now. If the log has a later one, another driver has taken over."""

    def seen(self) -> Seen | None:
        return self._logs.look(self.path, again=True)

    def version_of(self, app_id: str) -> int:
        """The last version of these transactions; -1 for none."""
        return self._logs.last_version_at(self.path, app_id, again=True)

    def must_be_ours(self, objects: Objects, hint: str) -> None:
        """Refuses another table at its place, where `objects` are."""
        if self.seen() is None:
            return
        found = definition_of(objects).configuration.get(DERIVED_FROM)
        if found != self._origin:
            problem = f"is computed from {found}" if found else "is another table, which forebay did not compute"
            raise InvalidConfiguration.one(f"table {self.path.rpartition('/')[2]}", problem, hint)

    def computed_by(self) -> str:
        """The name of its transactions so far; empty for a table that is not there, or has none."""
        return _name(self._logs.look(self.path))

    def transactions(self, way: str) -> str:
        """The name of the transactions that compute the table in this way. A way that returns after another one gets a new
        name, and so does one whose table was deleted: a log may have transactions of the old name, which say nothing about the
        current rows. The table gets the name before any row. If the driver dies in between, no transaction has it, and the
        table is computed from scratch."""
        seen, before = self._logs.look(self.path), self.computed_by()
        self._by = before if before.rpartition("#")[0] == way else _new_name(way)
        if seen is not None and self._by != before:
            self._set(DERIVED_BY, self._by)
        return self._by

    def begin_feed(self) -> None:
        """Where one is declared, and the table that is there has none yet."""
        seen = self._logs.look(self.path)
        if seen is None or not self._change_feed or seen.snapshot.getTableProperties().get(CHANGE_FEED) == "true":
            return
        self._set(CHANGE_FEED, "true")

    def rows(self) -> DataFrame:
        return self._session.read.format("delta").load(self.path)

    def overwrite(self, rows: DataFrame, partitions: tuple[str, ...], txn: Txn) -> None:
        """Readers see the old rows until the commit. Delta would leave out one whose transaction is in already."""
        self.create(nullable(rows.schema), partitions)
        with self._committing(txn):
            writer = rows.write.format("delta").mode("overwrite").option("overwriteSchema", "true")
            writer.partitionBy(*partitions).save(self.path)
        if not self._logs.has(self.path, txn, again=True):
            raise Halt(
                f"{self.path} was computed from scratch, but its log has no transaction {txn.version}; run the merge again"
            )

    def merge(self, source: DataFrame, condition: Expression) -> Any:
        """A MERGE builder: `t` are the table's rows, `s` those of the source."""
        from delta.tables import DeltaTable

        return DeltaTable.forPath(self._session, self.path).alias("t").merge(source.alias("s"), condition)

    def execute(self, merge: Any, txn: Txn) -> None:
        with self._committing(txn):
            merge.execute()

    def note(self, txn: Txn) -> None:
        """A commit without rows, where the transaction is not in. Delta leaves out a MERGE that changes no row, and without it
        the same changes would be looked at for ever."""
        if self._logs.has(self.path, txn, again=True):
            return
        seen = self.seen()
        if seen is None:
            raise Halt(f"{self.path} was deleted while it was merged; the next run computes it from scratch")
        with self._committing(txn):
            self.nothing(seen.schema).write.format("delta").mode("append").save(self.path)

    @contextmanager
    def _committing(self, txn: Txn) -> Iterator[None]:
        taken_over = Halt(
            f"another run took over {self.path}, so this run commits nothing more; the next run continues"
        )
        if self._is_taken_over():
            raise taken_over
        with of_session(self._session, txn):
            yield
        if self._is_taken_over():
            # Perhaps before our commit, so nobody knows what the rows are. No transaction has this name.
            self._named._set(DERIVED_BY, _new_name(self._named._by.rpartition("#")[0]))
            raise taken_over

    def _is_taken_over(self) -> bool:
        seen = self._named.seen()
        later = seen is not None and any(self._logs.last_version(seen, s.app_id) > s.version for s in self.sources)
        return later or _name(seen) != self._named._by

    def _set(self, name: str, value: str) -> None:
        self._session.sql(f"ALTER TABLE delta.`{self.path}` SET TBLPROPERTIES ('{name}' = '{value}')")

    def nothing(self, schema: StructType) -> DataFrame:
        return self._session.createDataFrame([], schema)

    def create(self, schema: StructType, partitions: tuple[str, ...]) -> None:
        """Without rows, and with its name, where it is not there."""
        from delta.tables import DeltaTable

        if self.seen() is not None:
            return
        maker = DeltaTable.createIfNotExists(self._session).location(self.path).addColumns(schema)
        maker = maker.partitionedBy(*partitions)
        feed: Mapping[str, str] = {CHANGE_FEED: "true"} if self._change_feed else {}
        by = {DERIVED_BY: self._by} if self._by else {}
        for name, value in {**PROPERTIES, DERIVED_FROM: self._origin, **by, **feed}.items():
            maker = maker.property(name, value)
        maker.execute()


def _name(seen: Seen | None) -> str:
    return "" if seen is None else seen.snapshot.getTableProperties().get(DERIVED_BY) or ""


def _new_name(way: str) -> str:
    return f"{way}#{uuid.uuid4().hex[:8]}"
