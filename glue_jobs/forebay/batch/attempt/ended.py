"""The ledger, as the list of batches that have ended.

In: the transaction of a batch, or its ending. Out: whether it has ended; its rows, with its transaction. A ledger that was
lost, or that is older than the last batch left it, halts: files would be loaded a second time.
"""

from __future__ import annotations

from dataclasses import replace
from datetime import datetime
from typing import TYPE_CHECKING

from forebay.batch.attempt.ending import Ending
from forebay.batch.plan import Plan
from forebay.batch.writing import Writing
from forebay.declaration.service import Service
from forebay.errors import Halt
from forebay.lake.layout import LEDGER, table_path
from forebay.ledger.entry import COLUMNS
from forebay.ledger.last_versions import Versions
from forebay.ledger.ledger import Ledger
from forebay.table.commit import Txn
from forebay.table.data_files.in_arrow import arrow_rows
from forebay.table.destination import Skipped
from forebay.table.kernel import TableLogs
from forebay.table.staging import look

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql import DataFrame


class EndedBatches:
    """Those of one lake, as one driver sees them."""

    def __init__(self, lake: str, ledger: Ledger, logs: TableLogs) -> None:
        self.lake, self.ledger, self.logs = lake, ledger, logs
        self.had_ledger = False
        """Whether the lake was ever seen with one."""
        self._is_newest = False
        """Whether that one was compared with what the last batch left."""

    def has(self, txn: Txn, plan: Plan | None, *, has_ids: bool) -> bool:
        """Whether the batch has ended. `Halt` if the ledger was lost. A look at a ledger that was seen before costs no request:
        the batch's last commit notices one that is lost later."""
        self.had_ledger |= plan is not None and plan.had_ledger
        seen = look(self.logs, self.ledger.path, txn)
        if seen is None and self.had_ledger:
            raise Halt(self.ledger.lost)
        if seen is not None and not self._is_newest:
            self.ledger.last_versions.must_not_be_older(lambda: self._versions(has_ids=has_ids))
            self._is_newest = True
        self.had_ledger = seen is not None
        return isinstance(seen, Skipped)

    def add(self, ending: Ending, writing: Writing, at: datetime) -> bool:
        """The new results of files that are tried again replace their earlier rows. Says whether there are any rows."""
        new, changed, leaving = ending.new, ending.changed, ending.leaving
        if new or changed:
            service = writing.service
            when = {"claimed_at": writing.began_at, "committed_at": at, "service_version": service.version}
            shared = {**writing.shared, **when}
            rows: DataFrame | pa.Table
            if leaving:
                rows = self.ledger.frame(new, changed, **shared)
            else:
                rows = arrow_rows((entry.row(**shared) for entry in new), COLUMNS)
            table = replace(writing.own(LEDGER), if_lost=self.ledger.lost if self.had_ledger else "")
            writing.write_beside(table, rows, len(new) + len(changed), leaving)
            self.had_ledger = True
            self.ledger.remember(new, at, more=len(new) + len(changed) - len(leaving))
        return bool(new or changed)

    def keep_versions(self, service: Service) -> None:
        """Those that the tables have now, for the next driver."""
        self.ledger.last_versions.keep(self._versions(has_ids=service.drops_duplicates))

    def _versions(self, *, has_ids: bool) -> Versions:
        """Those of the ledger, and of the ids."""

        def version_of(name: str) -> int:
            return self.logs.version_at(table_path(self.lake, name))

        return Versions.of(version_of, self.ledger.rows, has_ids=has_ids)
