"""Carries out the tasks of one table with Spark, commit after commit.

In: a session, the table's path, its works. Out: a `Commit` for each work that the engine still found to do. `NotCompacted`
says why it cannot continue. No row changes: each commit says `dataChange=false`, and its rows are counted from the log
before the next one begins. A difference is a `Halt`.

A commit carries our token, so that it is found again even if its answer was lost. After an interruption, the table is either
in its old or in its new state; the next VACUUM deletes files that no commit names. After a commit conflict we wait a little,
and retry on the new version.

The rewrite reads and removes the same files even if other writers append in the meantime. Delta reads a table that it is
writing in the version at which the write began, and a test checks that.
"""

from __future__ import annotations

import random
import re
import time
import uuid
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

from forebay.counted import counted
from forebay.errors import ForebayError, Halt
from forebay.lake.log.commit import CommitEffect, effect_of
from forebay.lake.log.listing import BrokenLog, NoTable, commit_name, list_log
from forebay.lake.objects import Objects
from forebay.upkeep.compaction.work import Work, predicate

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

ATTEMPTS = 6
FIRST_PAUSE_S = 0.5


@dataclass(frozen=True)
class Commit:
    """One work that is in the table."""

    work: Work
    version: int
    effect: CommitEffect
    seconds: float
    conflicts: int


class NotCompacted(ForebayError):
    """This table cannot be compacted now. `reason`: not-found, unsupported, conflict or failed."""

    def __init__(self, reason: str, detail: str, conflicts: int = 0) -> None:
        self.reason, self.detail, self.conflicts = reason, detail, conflicts
        super().__init__(f"{reason}: {detail}")


@dataclass(frozen=True)
class Engine:
    """Spark at work on one table. `types` are the types of its partition columns; `still_ours` is asked before each commit."""

    spark: SparkSession
    table: Objects
    path: str
    types: Mapping[str, str]
    still_ours: Callable[[], None] = lambda: None
    sleep: Callable[[float], None] = time.sleep

    def carry_out(self, works: Iterable[Work]) -> Iterator[Commit]:
        for work in works:
            done = self._with_patience(work)
            if done is not None:
                yield done

    def _with_patience(self, work: Work) -> Commit | None:
        began = time.monotonic()
        for conflicts in range(ATTEMPTS):
            self.still_ours()
            try:
                found = self._attempt(work)
            except NotCompacted as stuck:
                if stuck.reason != "conflict" or conflicts == ATTEMPTS - 1:
                    raise NotCompacted(stuck.reason, stuck.detail, conflicts + (stuck.reason == "conflict")) from stuck
                self.sleep(FIRST_PAUSE_S * 2**conflicts * random.uniform(0.5, 1.5))
                continue
            if found is None:
                return None
            version, effect = found
            return Commit(work, version, effect, round(time.monotonic() - began, 3), conflicts)
        raise AssertionError("the last attempt returns or raises")

    def _attempt(self, work: Work) -> tuple[int, CommitEffect] | None:
        from py4j.protocol import Py4JError
        from pyspark.errors import PySparkException

        word = f"forebay compaction {uuid.uuid4().hex}"
        before = self._version()
        failure: Exception | None = None
        try:
            self._ask(work, word)
        except (PySparkException, Py4JError) as error:
            failure = error
        found = self._found(word, before)
        if found is None and failure is not None:
            raise self._not_compacted(failure) from failure
        return found

    def _ask(self, work: Work, word: str) -> None:
        session = self._session(work, word)
        where = predicate((task.partition for task in work.tasks), self.types)
        if work.like.way == "rewrite":
            self._rewrite(session, work, where)
        else:
            self._optimize(session, work, where)

    def _optimize(self, session: SparkSession, work: Work, where: str) -> None:
        from delta.tables import DeltaTable

        builder = DeltaTable.forPath(session, self.path).optimize()
        if where:
            builder = builder.where(where)
        if work.like.order_by:
            builder.executeZOrderBy(*work.like.order_by)
        else:
            builder.executeCompaction()

    def _rewrite(self, session: SparkSession, work: Work, where: str) -> None:
        rows = session.read.format("delta").load(self.path)
        if where:
            rows = rows.where(where)
        writer = rows.repartition(work.like.into).write.format("delta").mode("overwrite").option("dataChange", "false")
        if where:
            writer = writer.option("replaceWhere", where)
        # The table's own property for optimized writes would undo the number of files.
        writer.option("optimizeWrite", "false").save(self.path)

    def _session(self, work: Work, word: str) -> SparkSession:
        """Settings of its own: several tables are at work at once."""
        task, delta = work.like, "spark.databricks.delta"
        session = self.spark.newSession()
        settings = {
            f"{delta}.commitInfo.userMetadata": word,
            f"{delta}.optimize.minFileSize": task.small_below_bytes,
            f"{delta}.optimize.maxFileSize": task.target_file_bytes,
            f"{delta}.optimize.maxDeletedRowsRatio": task.max_deleted_share,
            # A file that cannot be read must stop us: passed over, its rows would be gone.
            "spark.sql.files.ignoreMissingFiles": "false",
            "spark.sql.files.ignoreCorruptFiles": "false",
        }
        for name, value in settings.items():
            session.conf.set(name, str(value))
        return session

    # --- afterwards ---

    def _version(self) -> int:
        try:
            return list_log(self.table).version
        except NoTable as gone:
            raise NotCompacted("not-found", str(gone)) from gone
        except BrokenLog as broken:
            raise NotCompacted("failed", str(broken)) from broken

    def _found(self, word: str, before: int) -> tuple[int, CommitEffect] | None:
        """Our commit, among those that came since."""
        try:
            last = list_log(self.table).version
        except NoTable:
            return None
        for version in range(last, before, -1):
            content = self.table.read(commit_name(version))
            if content is not None and word.encode() in content:
                effect = effect_of(content)
                self._must_hold_as_many_rows(version, effect)
                return version, effect
        return None

    def _must_hold_as_many_rows(self, version: int, effect: CommitEffect) -> None:
        rows = (effect.rows_added, effect.rows_removed)
        if effect.data_change or (None not in rows and rows[0] != rows[1]):
            raise Halt(
                f"{self.path}: commit {version} of compaction put {counted(effect.rows_added or 0, 'row')} in place of "
                f"{effect.rows_removed}; {self._way_back(version)}"
            )

    def _way_back(self, version: int) -> str:
        """RESTORE takes back all that came after a version, also rows that others appended since."""
        return (
            f"stop all writers and VACUUM, and look at DESCRIBE HISTORY delta.`{self.path}`. If nothing came after version "
            f"{version}, RESTORE TABLE delta.`{self.path}` TO VERSION AS OF {version - 1} takes it back. If others committed "
            f"since, RESTORE would take their rows, too: copy what they added since VERSION AS OF {version} first, and append "
            "it after the RESTORE"
        )

    def _not_compacted(self, failure: Exception) -> NotCompacted:
        self._version()  # where the table has gone, that is the reason
        return NotCompacted(reason_of(failure), sentence_of(failure))


def reason_of(failure: Exception) -> str:
    """`conflict`, `unsupported` or `failed`."""
    condition = getattr(failure, "getCondition", lambda: None)()
    text = f"{type(failure).__name__} {condition} {failure}"
    return next((reason for reason, pattern in REASONS if pattern.search(text)), "failed")


def sentence_of(failure: Exception) -> str:
    """The first line that says something; py4j's own says only which of its objects was called."""
    lines = [line.strip().removeprefix(": ") for line in str(failure).strip().splitlines() if line.strip()]
    telling = [line for line in lines if not line.startswith("An error occurred while calling")]
    return (telling or lines or [type(failure).__name__])[0]


REASONS = (
    (
        "conflict",
        re.compile(
            r"DELTA_CONCURRENT|Concurrent\w+Exception|DELTA_(METADATA|PROTOCOL)_CHANGED|(Metadata|Protocol)Changed"
        ),
    ),
    ("unsupported", re.compile(r"UNSUPPORTED_FEATURE|UnsupportedTableFeature|InvalidProtocolVersion")),
)
"""Spark's errors, by what happens next. Names and conditions: Python has no class for some, and Delta none for others."""
