"""The ids of a retry's records, in the table of ids before any other table has a row of them. So a retry and a batch that load
copies of one record at the same time cannot both write it.

In: the pass over the records. Out: the version of the table of ids with which they are compared. The retry writes its ids, then
waits for the batches that have a plan by then. A batch pins its plan, then looks for ids of a retry that it did not know, and
begins again. So at least one of the two sees the other. A batch never waits. Ids of records that no table got leave again.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Collection
from dataclasses import dataclass

from forebay.aws.retrying import attempts
from forebay.batch.dedupe import RETRY, Dedupe
from forebay.batch.one_pass.duplicates import every_id
from forebay.batch.one_pass.outcome import Pass
from forebay.batch.plan import Plans
from forebay.batch.writing import Writing
from forebay.errors import Halt
from forebay.lake.layout import IDS, writer_of
from forebay.lake.lease import holder
from forebay.lake.log.commit import rows_of_transaction
from forebay.lake.objects import open_objects
from forebay.table.commit import until_it_commits

LOOKS, FIRST_LOOK_S, LONGEST_S = 70, 0.5, 10
"""Ten minutes: a batch that commits what it planned takes less."""
SAME = ("id", "file_id")


@dataclass(frozen=True)
class ReservedIds:
    """`batches` are the plans of the service's batches. `lake` and `service` say where the lease of its job is."""

    lake: str
    service: str
    batches: Plans

    def compared_with(
        self, made: Pass, dedupe: Dedupe, writing: Writing, must_stand: Callable[[], int], keep: Callable[..., None]
    ) -> Dedupe:
        """The known ids, once those of the retry are among them. `must_stand` gives their version, and halts if somebody
        restored older ones, before it and after. `keep` makes the version durable: each attempt compares with the same ids."""
        if dedupe.as_of is not None or not made.identified:
            return dedupe
        try:
            must_stand()
            self.reserve(made, dedupe, writing)
            version = must_stand()
            keep(ids_version=version)
        except BaseException:
            made.undo()  # no plan names its files
            raise
        return dataclasses.replace(dedupe, as_of=version)

    def reserve(self, made: Pass, dedupe: Dedupe, writing: Writing) -> None:
        """Run again, it adds no id."""
        ids = writing.ids_of(dataclasses.replace(made, ids=every_id(made, dedupe)), replaces=False)
        writing.commit_beside(writing.own(IDS), ids, 0 if ids is None else ids.rows)
        self.wait_for_batches()

    def wait_for_batches(self) -> None:
        """Those with a plan may not have seen the ids. Later ones do."""
        open_ones = self.batches.names()
        for _ in attempts(LOOKS, first_s=FIRST_LOOK_S, longest_s=LONGEST_S):
            open_ones &= self.batches.names()
            if not open_ones:
                return
            if holder(writer_of(self.lake, self.service)) is None:
                raise Halt(
                    f"batch {min(open_ones)} is unfinished, and it may load copies of these records. No job is running that "
                    "could finish it. Start the job: it finishes the batch, then this retry"
                )
        raise Halt(
            f"batch {min(open_ones)} did not end, and it may load copies of these records. Repeat the command once it has ended"
        )

    def release(self, made: Pass, dedupe: Dedupe, writing: Writing, unwritten: Collection[str]) -> None:
        """The ids of records that came before, or whose table could not be written, leave. So do those of records that an
        attempt before a crash would have written, and this one does not. Run again, it changes nothing."""
        from delta.tables import DeltaTable

        if not writing.logs.has(dedupe.path, writing.txn, again=True):
            return
        stay_all = sum(writing.without_tables(rows, unwritten).num_rows for rows in made.ids)
        if rows_of_transaction(open_objects(dedupe.path), writing.txn.app_id, writing.txn.version) == stay_all:
            return
        spark = writing.spark
        written = spark.createDataFrame([], "id binary, file_id string")
        for rows in made.ids:
            stay = writing.without_tables(rows, unwritten).select(SAME)
            written = written.union(spark.createDataFrame(stay)) if stay.num_rows else written
        of_this = {"day": f"DATE'{dedupe.day}'", "generation": f"'{RETRY}'", "batch": str(writing.txn.version)}
        of_this["service"] = f"'{self.service}'"
        mine = " AND ".join(f"{name} = {value}" for name, value in of_this.items())
        same = [f"ids.{name} = {value}" for name, value in of_this.items()] + [
            f"ids.{one} = gone.{one}" for one in SAME
        ]
        reserved = spark.read.format("delta").load(dedupe.path).where(mine).select(*SAME).distinct()
        gone = reserved.join(written, [*SAME], "left_anti")

        def remove() -> None:
            ids = DeltaTable.forPath(spark, dedupe.path).alias("ids")
            ids.merge(gone.alias("gone"), " AND ".join(same)).whenMatchedDelete().execute()

        until_it_commits(remove, "ids of records that stay where they are could not be removed: run the command again")
