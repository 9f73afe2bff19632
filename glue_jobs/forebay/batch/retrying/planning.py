"""The planning of a retry: which held records it moves, durable before anything happens.

In: a choice. Out: a `RetryPlan`. First the intent is durable, then batches and erasures are looked for, then the plan is
written over the intent. So a batch either sees the retry, or has a plan of its own that the retry sees.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import replace
from datetime import datetime
from functools import partial
from typing import TYPE_CHECKING, Any

from forebay.batch.dedupe import RETRY
from forebay.batch.plan import Plans
from forebay.batch.retrying.plan import PLAN, Choice, RetryPlan
from forebay.counted import counted
from forebay.declaration.kept.pinned import pinned
from forebay.declaration.service import Service
from forebay.errors import Halt
from forebay.lake.layout import IDS, LEDGER, application, table_path
from forebay.lake.log.snapshot import read_snapshot
from forebay.lake.objects import Objects, open_objects
from forebay.lake.paused import paused_tables
from forebay.lake.rollback_plan import must_not_be_half_rolled_back
from forebay.landed_file import LandedFile
from forebay.ledger.brought_back import BroughtBack, brought_back_of
from forebay.ledger.claim import Key
from forebay.ledger.entry import HELD
from forebay.privacy.erased import without_erased
from forebay.table.kernel import NO_VERSION, TableLogs

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

FILES_AT_ONCE, RECORDS_AT_ONCE = 50_000, 5_000_000
"""The limits of one plan. The tasks know all files, and the driver gets the position of each record."""
ANOTHER = "another retry is running; start this one when it has ended"


class Planning:
    """The plans of one service's retries. There is at most one."""

    def __init__(
        self,
        spark: SparkSession,
        service: Service,
        lake: str,
        *,
        plans: Objects,
        batches: Plans,
        logs: TableLogs,
        clock: Callable[[], datetime],
    ) -> None:
        self.spark, self.service, self.lake = spark, service, lake
        self.plans, self.batches, self.logs, self.clock = plans, batches, logs, clock

    def left(self) -> RetryPlan | None:
        found = self.plans.read(PLAN)
        return None if found is None else RetryPlan.of_json(found)

    def planned(self, choice: Choice, after: str) -> RetryPlan:
        """The plan for records of files after that one."""
        number, at = self._last_number() + 1, self.clock().isoformat()
        intent = RetryPlan(number, NO_VERSION, at, choice, pinned(self.service), intent=True, after=after)
        earlier = self.plans.read_tagged(PLAN)
        self._write_over(intent, earlier and earlier[1])
        tagged = self.plans.read_tagged(PLAN)
        try:
            must_not_be_half_rolled_back(self.lake)
        except Halt:
            self.plans.delete([PLAN])  # or the rollback would wait for this retry
            raise
        in_batches = self._in_batches()
        held = self.logs.look(self._path(choice.place), again=True)
        assert held is not None
        service = without_erased(self.service.with_paused(paused_tables(self.lake)), self.lake)
        plan = replace(intent, version=held.version, service=pinned(service), intent=False)
        plan = replace(plan, without=tuple(self._held_of(plan, in_batches)))
        self._must_be_counted(plan, in_batches)
        plan = replace(plan, until=self._until(plan))
        if tagged is None or tagged[0] != intent.as_json():
            raise Halt(ANOTHER)
        self._write_over(plan, tagged[1])
        return plan

    def keep(self, plan: RetryPlan, **more: Any) -> None:
        tagged = self.plans.read_tagged(PLAN)
        if tagged is None or not (there := RetryPlan.of_json(tagged[0])).is_of(plan):
            raise Halt(ANOTHER)
        kept = replace(there, **more)
        if tagged[0] != kept.as_json():
            self._write_over(kept, tagged[1])

    def forget(self, plan: RetryPlan) -> None:
        """And no other one: somebody else may have finished this one, too."""
        if (left := self.left()) is not None and left.is_of(plan):
            self.plans.delete([PLAN])

    def held(self, plan: RetryPlan) -> DataFrame:
        held = self.spark.read.format("delta").option("versionAsOf", plan.version).load(self._path(plan.choice.place))
        chosen = self.chosen(held, plan.choice)
        if plan.without:
            chosen = chosen.where(~chosen["file_id"].isin(list(plan.without)))
        if plan.after:
            chosen = chosen.where(chosen["file_id"] > plan.after)
        return chosen.where(chosen["file_id"] <= plan.until) if plan.until else chosen

    def chosen(self, held: DataFrame, choice: Choice) -> DataFrame:
        """But for parked ones, which are chosen by the table that takes them now."""
        from pyspark.sql import functions as F

        held = held.where((F.col("service") == self.service.name) & F.col("line").isNotNull())
        if choice.held == "quarantine" and choice.table is not None:
            held = held.where(F.col("table") == choice.table)
        if choice.reason is not None:
            held = held.where(F.col("reason") == choice.reason)
        return held

    def _must_be_counted(self, plan: RetryPlan, in_batches: Iterable[LandedFile]) -> None:
        """Records that have left come back with an older version of the table that held them, and would land again."""
        if (found := self._brought_back(plan, partial(self._changing, in_batches))) is not None:
            self.plans.delete([PLAN])
            raise Halt(
                f"{plan.choice.place} has {counted(found.rows, 'record')} of {found.key}, and the ledger counts "
                f"{found.known:,}. "
                "Somebody restored an older version of it. Nothing was changed. Restore the newest version, and start again. "
                "See docs/disasters.md, An older ledger"
            )

    def _brought_back(self, plan: RetryPlan, changing: Callable[[], Collection[Key]]) -> BroughtBack | None:
        held, ledger = (open_objects(self._path(name)) for name in (plan.choice.place, LEDGER))
        return brought_back_of(held, ledger, HELD[plan.choice.place], self.service.name, changing)

    def _changing(self, before: Iterable[LandedFile]) -> set[Key]:
        """The keys of the files of batches that have not ended. A batch that was open `before`, and has ended meanwhile, may
        have removed records that were still read."""
        return {(file.bucket, file.key) for file in [*before, *self._in_batches()]}

    def _in_batches(self) -> list[LandedFile]:
        return [file for plan in self.batches.left() for file in plan.files]

    def _write_over(self, plan: RetryPlan, tag: str | None) -> None:
        if not self.plans.write_over(PLAN, plan.as_json(), tag):
            raise Halt(ANOTHER)

    def _held_of(self, plan: RetryPlan, files: Collection[LandedFile]) -> list[str]:
        """The ids of files with chosen records whose keys are those of these files."""
        if not files:
            return []
        from pyspark.sql import functions as F

        keys = sorted({(file.bucket, file.key) for file in files})
        wanted = F.broadcast(self.spark.createDataFrame(keys, "bucket string, key string"))
        found = self.held(plan).join(wanted, ["bucket", "key"], "left_semi")
        return sorted(row.file_id for row in found.select("file_id").distinct().collect())

    def _until(self, plan: RetryPlan) -> str:
        """The last file of this plan; empty where all files are few enough. Each plan has one more."""
        snapshot = read_snapshot(open_objects(self._path(plan.choice.place)), up_to=plan.version)
        if sum(file.rows or 0 for file in snapshot.files) <= FILES_AT_ONCE:
            return ""
        counts = self.held(plan).groupBy("file_id").count().orderBy("file_id").toArrow()
        return last_of(counts["file_id"].to_pylist(), counts["count"].to_pylist())

    def _last_number(self) -> int:
        """A retry that moved no record is not in the ledger, but it may have had ids."""
        of = app_id(self.service)
        return max(self.logs.last_version_at(self._path(name), of, again=True) for name in (LEDGER, IDS))

    def _path(self, name: str) -> str:
        return table_path(self.lake, name)


def last_of(file_ids: Sequence[str], records: Sequence[int]) -> str:
    """The last of these files that one plan takes; empty where it takes all of them. A file is not divided."""
    total = 0
    for number, (count, before) in enumerate(zip(records, ["", *file_ids], strict=False)):
        total += count
        if number and (number == FILES_AT_ONCE or total > RECORDS_AT_ONCE):
            return before
    return ""


def app_id(service: Service) -> str:
    return application(service.name, RETRY)
