"""Examines one table: which of its partitions are worth rewriting, in which way, and why the others are not.

In: a table's live files, the policy, the time. Out: a `Task` or a `Skipped` for each partition; budgets and other tables do
not matter here. Pure.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime

from forebay.lake.log.live_file import LiveFile, Partition
from forebay.upkeep.compaction.live_files import TableState, Unreadable
from forebay.upkeep.compaction.policy import Policy, Round, Thresholds, Way
from forebay.upkeep.compaction.rewrite import Rewrite, ordered, packed, spread
from forebay.upkeep.compaction.task import Skipped, Task


def candidates_of(table: TableState | Unreadable, policy: Policy, now: datetime) -> list[Task | Skipped]:
    """A task or a skip for each of its partitions; those that need nothing are summed up."""
    if isinstance(table, Unreadable):
        return [Skipped(table=table.name, reason=table.reason, detail=table.detail)]
    of = policy.group_of(table.name)
    group, thresholds = of.name, of.thresholds
    if of.invalid:
        problems = "; ".join(map(str, of.invalid))
        return [Skipped(table=table.name, reason="invalid-configuration", detail=problems, files=len(table.files))]
    partitions: defaultdict[Partition, list[LiveFile]] = defaultdict(list)
    for file in table.files:
        partitions[file.partition].append(file)
    size = sum(file.bytes for file in table.files)
    if reason := _not_at_all(table, partitions, policy, group, thresholds):
        word, detail = reason
        return [
            Skipped(
                table=table.name,
                reason=word,
                detail=detail,
                partitions=len(partitions),
                files=len(table.files),
                bytes=size,
            )
        ]
    of_table = _Look(table, group, thresholds, policy, now, size)
    return list(_summed(of_table.at(partition, files) for partition, files in partitions.items()))


def _not_at_all(
    table: TableState, partitions: Iterable[Partition], policy: Policy, group: str, thresholds: Thresholds
) -> tuple[str, str] | None:
    if policy.only not in (None, group):
        return "other-group", f"is in the group {group}, but this run is for {policy.only}"
    if table.clustered and policy.round == "first":
        return "clustered", "optimizing a clustered table also clusters it, which only the second round does"
    by = {column for partition in partitions for column, _ in partition}
    if policy.round == "second" and (both := by & set(thresholds.order_by)):
        return "cannot-order", f"is partitioned by {', '.join(sorted(both))}: order by columns within a partition"
    return None


def _summed(decisions: Iterable[Task | Skipped]) -> Iterator[Task | Skipped]:
    """Nobody wants to read of a thousand good partitions one by one: one line a table says how many."""
    quiet: dict[str, list[Skipped]] = {}
    for decided in decisions:
        if isinstance(decided, Skipped) and decided.reason in ("already-good", "below-thresholds"):
            quiet.setdefault(decided.reason, []).append(decided)
        else:
            yield decided
    for reason, skips in quiet.items():
        yield Skipped(
            table=skips[0].table,
            reason=reason,
            partitions=len(skips),
            files=sum(skip.files for skip in skips),
            bytes=sum(skip.bytes for skip in skips),
        )


# --- one partition ---


@dataclass(frozen=True)
class _Look:
    """All that is known of a table when one of its partitions is looked at."""

    table: TableState
    group: str
    thresholds: Thresholds
    policy: Policy
    now: datetime
    size: int

    def at(self, partition: Partition, files: Sequence[LiveFile]) -> Task | Skipped:
        round_ = self.policy.round
        reasons, way, outcome = self._judge(partition, files, round_)
        if not reasons:
            return self._skip(partition, files, "below-thresholds" if outcome.saved > 0 else "already-good")
        age = self.now - max(file.modified for file in files)
        if age < self.thresholds.quiet(round_):
            enough = self.thresholds.hot_small_files
            if round_ == "second" or enough is None or outcome.saved < 1 or self._small(files, round_) < enough:
                return self._skip(
                    partition, files, "too-hot", f"its newest file is {max(0, int(age.total_seconds()))} s old"
                )
            reasons = (*reasons, "hot")
        if round_ == "second" and not self.table.clustered:
            sooner, _, _ = self._judge(partition, files, "first")
            if sooner:
                return self._skip(partition, files, "first-round-first", ", ".join(sooner))
        return self._task(partition, files, reasons, way, outcome)

    def _judge(
        self, partition: Partition, files: Sequence[LiveFile], round_: Round
    ) -> tuple[tuple[str, ...], Way, Rewrite]:
        """Why it should be rewritten, how, and what comes of it. No reason: it should not."""
        thresholds, target = self.thresholds, self.thresholds.target(self.size, round_)
        deletions = self._deleted_share(files) > thresholds.max_deleted_share
        way, outcome = self._outcome(files, round_, target)
        if deletions and way == "optimize" and not self._ordering(round_):
            over = {f.path for f in files if f.deleted_share > thresholds.max_deleted_share}
            if over - {f.path for f in outcome.rewritten}:
                # OPTIMIZE leaves a file alone that is alone in its bin, and its deleted rows with it.
                way, outcome = "rewrite", spread(files, target=target)
        if outcome.saved < 0:
            return (), way, outcome
        reasons = [*self._small_reasons(files, round_, target, outcome)]
        if deletions:
            reasons.append("deletions")
        if self._ordering(round_) and self._unordered_share(partition, files) >= thresholds.min_unordered_share:
            reasons.append("unordered")
        return tuple(reasons), way, outcome

    def _outcome(self, files: Sequence[LiveFile], round_: Round, target: int) -> tuple[Way, Rewrite]:
        thresholds = self.thresholds
        if thresholds.way == "rewrite" and not self.table.clustered:
            return "rewrite", spread(files, target=target, into=thresholds.files)
        if self._ordering(round_):
            return "optimize", ordered(files, target=target)
        below = int(target * thresholds.small_share)
        return "optimize", packed(
            files, target=target, small_below=below, max_deleted_share=thresholds.max_deleted_share
        )

    def _small_reasons(self, files: Sequence[LiveFile], round_: Round, target: int, outcome: Rewrite) -> Iterator[str]:
        if outcome.saved < 1:
            return
        thresholds = self.thresholds
        small = self._small(files, round_)
        below = int(target * thresholds.small_share)
        filled = sum(size for size in outcome.written if size >= below)
        small_bytes = min(filled, sum(file.bytes for file in files if file.bytes < below))
        if small >= thresholds.min_small_files:
            yield "small-files"
        # A declared n says nothing of bytes: one more file than n, and the whole partition would be written again.
        if thresholds.files is None and small_bytes >= (thresholds.min_small_bytes or max(1, below)):
            yield "small-bytes"
        if small > 1 and self.now - max(file.modified for file in files) >= thresholds.settled_after:
            yield "settled"

    def _small(self, files: Sequence[LiveFile], round_: Round) -> int:
        """How many are small; with a declared n, how many there are beside it."""
        if self.thresholds.files is not None:
            return len(files) - self.thresholds.files + 1
        below = int(self.thresholds.target(self.size, round_) * self.thresholds.small_share)
        return sum(file.bytes < below for file in files)

    def _ordering(self, round_: Round) -> bool:
        return round_ == "second" and (self.table.clustered or bool(self.thresholds.order_by))

    def _unordered_share(self, partition: Partition, files: Sequence[LiveFile]) -> float:
        last = self.table.ordered.get(partition)
        size = sum(file.bytes for file in files)
        if last is None or not size:
            return 1.0 if last is None else 0.0
        return sum(file.bytes for file in files if file.modified > last) / size

    def _deleted_share(self, files: Sequence[LiveFile]) -> float:
        """The deleted share in bytes, which readers pay for."""
        deleted = sum(file.bytes * file.deleted_share for file in files if file.deleted_rows)
        return deleted / sum(file.bytes for file in files) if deleted else 0.0

    def _task(
        self, partition: Partition, files: Sequence[LiveFile], reasons: tuple[str, ...], way: Way, outcome: Rewrite
    ) -> Task:
        round_, thresholds = self.policy.round, self.thresholds
        read, written = sum(file.bytes for file in outcome.rewritten), sum(outcome.written)
        ordering = self._ordering(round_)
        cost = self.policy.rates.dpu_s(files=len(outcome.rewritten), read=read, written=written, ordering=ordering)
        return Task(
            table=self.table.name,
            version=self.table.version,
            group=self.group,
            partition=partition,
            reasons=reasons,
            way=way,
            files=tuple(sorted(file.path for file in outcome.rewritten)),
            files_before=len(files),
            files_after=len(files) - outcome.saved,
            bytes=read,
            bytes_after=written,
            dpu_s=cost,
            target_file_bytes=outcome.target,
            small_below_bytes=int(thresholds.target(self.size, round_) * thresholds.small_share),
            max_deleted_share=thresholds.max_deleted_share,
            order_by=thresholds.order_by if ordering and not self.table.clustered else (),
            ordering=ordering,
        )

    def _skip(self, partition: Partition, files: Sequence[LiveFile], reason: str, detail: str = "") -> Skipped:
        return Skipped(
            table=self.table.name,
            reason=reason,
            detail=detail,
            partition=partition,
            partitions=1,
            files=len(files),
            bytes=sum(file.bytes for file in files),
        )
