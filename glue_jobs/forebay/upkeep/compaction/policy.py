"""A person's policy for when a partition is worth rewriting: thresholds for sets of tables, a budget, and the cost of work.

In: numbers from a declaration. Out: frozen values, and what makes no sense in them.

The target size of files grows with the table: a ten-thousandth of it, not less than 256 MiB and not more than 1 GiB.
Databricks' autotune of file sizes publishes the same line.

    table      up to 2.56 TB   3 TB     5 TB     7 TB     10 TB and more
    file       256 MB          307 MB   512 MB   716 MB   1 GB

So a table of up to 10 TB has about ten thousand files at most, and its log can be read and planned in seconds. Small tables
keep small files, because a merge rewrites whole files and a query that skips files reads fewer bytes when they are small. The
first round makes files of half that size: they are written soon and cheaply, and two of them are one of the second round.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from datetime import timedelta
from fnmatch import fnmatchcase
from typing import Literal

from forebay.errors import InvalidConfiguration, Problem

MIB, GIB = 1 << 20, 1 << 30

Way = Literal["optimize", "rewrite"]
Round = Literal["first", "second"]

MOST_FILES = 10_000
LARGEST_TARGET = 4 * GIB


def target_file_bytes(table_bytes: int, round_: Round = "second") -> int:
    """How large the files of a table should be; the module's docstring has the table and the reason."""
    full = min(max(table_bytes // MOST_FILES, 256 * MIB), GIB)
    return full if round_ == "second" else full // 2


@dataclass(frozen=True, kw_only=True)
class Thresholds:
    """The thresholds of one set of tables."""

    way: Way = "optimize"
    """`optimize`: Delta's bin-packing, which reads only the small files. `rewrite`: the whole partition, into n files."""
    files: int | None = None
    """For `rewrite`: the n. None computes it from the bytes."""
    target_file_bytes: int | None = None
    """The file size of the second round; None takes it from the table's size. The first round makes half of it."""
    small_share: float = 0.75
    """A file smaller than this share of the target is small."""
    min_small_files: int = 8
    """The number of small files with which a partition is rewritten."""
    min_small_bytes: int | None = None
    """Also with this number of bytes in small files that would move to full ones; None: the size of one full file."""
    max_deleted_share: float = 0.05
    """Also with a larger share of deleted rows, which every reader reads to throw them away."""
    settled_after: timedelta = timedelta(days=7)
    """A partition to which nothing came for so long is done with: then one file less is reason enough, for it is the last
    time."""
    cold_after: timedelta = timedelta(hours=1)
    """A partition with a younger file is hot: more is likely to come, and a merge would meet us."""
    second_cold_after: timedelta = timedelta(days=1)
    """The same for the second round."""
    hot_small_files: int | None = 200
    """The first round still takes a hot partition with this many small files, after all cold ones. A stream into a table
    without partitions never lets it grow cold. None: never, as fits tables that are merged into."""
    order_by: tuple[str, ...] = ()
    """The columns by which the second round orders the rows."""
    min_unordered_share: float = 0.25
    """The share of bytes added after the last ordering from which a partition is ordered again, as a whole."""

    def target(self, table_bytes: int, round_: Round) -> int:
        if self.target_file_bytes is None:
            return target_file_bytes(table_bytes, round_)
        return self.target_file_bytes if round_ == "second" else max(MIB, self.target_file_bytes // 2)

    def quiet(self, round_: Round) -> timedelta:
        return self.cold_after if round_ == "first" else self.second_cold_after

    def heatless(self) -> Thresholds:
        at_once = timedelta(0)
        return replace(self, cold_after=at_once, second_cold_after=at_once)

    def eager(self) -> Thresholds:
        few = self.hot_small_files and 2
        return replace(self.heatless(), min_small_files=2, hot_small_files=few, settled_after=timedelta(0))

    def problems(self, where: str) -> Iterator[Problem]:
        """Everything declared that makes no sense; `where` is the set's name in the declaration."""
        yield from self._problems_of_the_way(where)
        if self.min_small_files < 2:
            yield Problem(
                f"{where}.min_small_files", f"{self.min_small_files} is less than 2", "a single file is not rewritten"
            )
        if self.hot_small_files is not None and self.hot_small_files < self.min_small_files:
            yield Problem(
                f"{where}.hot_small_files",
                f"{self.hot_small_files} is below min_small_files, {self.min_small_files}",
                "a hot partition must wait longer than a cold one",
            )
        if self.cold_after < timedelta(0):
            yield Problem(f"{where}.cold_after", f"{self.cold_after} is negative")
        if "" in self.order_by or len(set(self.order_by)) < len(self.order_by):
            yield Problem(f"{where}.order_by", f"{list(self.order_by)} has an empty name, or one twice")

    def _problems_of_the_way(self, where: str) -> Iterator[Problem]:
        if self.files is not None and not 1 <= self.files <= MOST_FILES:
            yield Problem(f"{where}.files", f"{self.files} is not from 1 to {MOST_FILES:,}")
        if self.files is not None and self.way != "rewrite":
            yield Problem(
                f"{where}.files", "a number of files is only for the way rewrite", "set way to rewrite, or leave it out"
            )
        target = self.target_file_bytes
        if target is not None and not MIB <= target <= LARGEST_TARGET:
            yield Problem(
                f"{where}.target_file_bytes",
                f"{target:,} is not from 1 MiB to 4 GiB",
                "leave it out: by the table's size",
            )


@dataclass(frozen=True)
class Group:
    """Tables with thresholds of their own. `tables` are names or patterns (`*`). Groups of one name are a set of tables that a
    run may be for, with a schedule of its own."""

    name: str
    tables: tuple[str, ...]
    thresholds: Thresholds
    invalid: tuple[Problem, ...] = ()
    """Declarations that make no sense: their tables are left alone, and the run continues with the others."""

    def holds(self, table: str) -> bool:
        return any(fnmatchcase(table, pattern) for pattern in self.tables)


@dataclass(frozen=True)
class Rates:
    """The cost of rewriting, in DPU-seconds (a DPU is 4 cores). Assumed, on the careful side; set rates of measured runs."""

    per_task_s: float = 2.0
    per_file_s: float = 0.05
    bytes_per_dpu_s: float = 32 * MIB
    ordering_factor: float = 2.0

    FORMULA = "per_task_s + per_file_s * files_rewritten + (bytes + bytes_after) / bytes_per_dpu_s * ordering_factor"
    """The factor is 1 for a task that does not order."""

    def dpu_s(self, *, files: int, read: int, written: int, ordering: bool) -> float:
        factor = self.ordering_factor if ordering else 1.0
        return self.per_task_s + self.per_file_s * files + (read + written) / self.bytes_per_dpu_s * factor


@dataclass(frozen=True)
class Budget:
    """The maximum cost of one run: bytes read, DPU-seconds, or both; None means unlimited."""

    bytes: int | None = None
    dpu_s: float | None = None

    def allows(self, read: int, dpu_s: float) -> bool:
        return (self.bytes is None or read <= self.bytes) and (self.dpu_s is None or dpu_s <= self.dpu_s)


@dataclass(frozen=True, kw_only=True)
class Policy:
    """All of it, for one run. The first group that holds a table counts; `only` limits the run to one group."""

    round: Round = "first"
    default: Thresholds = field(default_factory=Thresholds)
    groups: tuple[Group, ...] = ()
    only: str | None = None
    rates: Rates = field(default_factory=Rates)

    DEFAULT = "default"
    """The group of the tables that no group holds."""

    def __post_init__(self) -> None:
        names = sorted({self.DEFAULT, *(group.name for group in self.groups)})
        if self.only is not None and self.only not in names:
            raise InvalidConfiguration.one("--group", f"{self.only!r} is not a group", f"there are {', '.join(names)}")

    def group_of(self, table: str) -> Group:
        for group in self.groups:
            if group.holds(table):
                return group
        return Group(self.DEFAULT, ("*",), self.default)

    def eager(self) -> Policy:
        """The same, for tables that a person names: whatever can be made fewer is worth it, and now."""
        return self._with(Thresholds.eager)

    def heatless(self) -> Policy:
        """The same, where nobody else is at work: no partition is too hot."""
        return self._with(Thresholds.heatless)

    def _with(self, change: Callable[[Thresholds], Thresholds]) -> Policy:
        groups = tuple(replace(group, thresholds=change(group.thresholds)) for group in self.groups)
        return replace(self, default=change(self.default), groups=groups)
