"""One step of a rollup: the groups whose rows changed are computed again, and no others.

In: a rollup, and the tables whose rows it counts. Out: a `Step`, whose keys are groups, and commits that carry each table's
version as their transaction. The data files by which two versions of a table differ name the groups. A group is computed from
all its current rows. So deletes, late rows, minima and sketches need no special case, and computing it twice changes nothing.

If several tables changed, the first commit has the rows and the version of one of them, and empty commits have the versions of
the others. If the driver dies in between, the next step computes the same groups again. All groups are computed if a
difference is unknown.
"""

from __future__ import annotations

import hashlib
import time
from collections.abc import Iterable, Sequence
from dataclasses import replace
from functools import reduce
from typing import TYPE_CHECKING, Any

from forebay.declaration.rollup import Rollup
from forebay.declared_sql.attempt import attempt
from forebay.declared_sql.check_rollups import faults
from forebay.errors import Halt, InvalidConfiguration
from forebay.lake.layout import table_path
from forebay.lake.lease import Lease
from forebay.lake.log.listing import NoTable, list_log
from forebay.lake.objects import Objects, open_objects
from forebay.lake.origin import origin_gone
from forebay.merge.derived import Derived
from forebay.merge.difference import Difference, Unknown, difference
from forebay.merge.lag import ROLLUPS, last_merge, waited_s
from forebay.merge.literals import has_literals, literal, to_collect
from forebay.merge.log_rows import LogVersion
from forebay.merge.step import Step
from forebay.merge.winners import hash_of
from forebay.table.commit import Txn
from forebay.table.kernel import TableLogs

if TYPE_CHECKING:
    from pyspark.sql import Column as Expression
    from pyspark.sql import DataFrame, SparkSession

MOST_VALUES = 1000
"""If a column of the groups has more values, all files are read; otherwise only the files with these values."""


class Source:
    """A table whose rows are counted, at one version. `before` is the version that the rollup knows, -1 for none."""

    def __init__(self, session: SparkSession, name: str, path: str, commits: Objects, version: int) -> None:
        self.name, self.commits = name, commits
        self.at = LogVersion(session, path, version)
        self.before, self.txn = -1, Txn("", -1)

    def known(self, derived: Derived, rollup: Rollup, by: str) -> Source:
        self.txn = Txn(app_id_of(self.name, self.at.id, by), self.at.version)
        self.before = derived.version_of(self.txn.app_id)
        if self.before > self.at.version:
            raise Halt(
                f"rollup {rollup.name} has counted version {self.before} of {self.name}, which has only {self.at.version}: was "
                f"{self.name} restored from a copy? Delete the folder of {rollup.name}, and the next run recomputes it"
            )
        return self


def roll_up(session: SparkSession, lake: str, rollup: Rollup, *, logs: TableLogs, lease: Lease) -> Step | None:
    """The step; None if the rollup is up to date, or none of its tables exists yet. After a crash, a second call does the
    rest."""
    began = time.monotonic()
    derived = Derived(session, logs, table_path(lake, rollup.name), ",".join(rollup.tables))
    its_objects = open_objects(derived.path)
    derived.must_be_ours(its_objects, "give the rollup another name")
    found = _sources(session, lake, rollup)
    if not found:
        if derived.seen() is None:
            return None
        raise Halt(origin_gone(rollup.name, rollup.tables))
    lease.check()
    by = derived.transactions(way_of(rollup, [one.at.id for one in found]))
    sources = [one.known(derived, rollup, by) for one in found]
    derived.sources = [one.txn for one in sources]
    changed = [one for one in sources if one.before < one.at.version]
    if not changed:
        return None
    _check(rollup, sources)
    lag_s = max(waited_s(one.commits, one.before + 1) for one in changed)
    groups = _Groups(rollup, sources)
    since = [_since(one) for one in changed]
    unknown = next((one.reason for one in since if isinstance(one, Unknown)), None)
    if unknown is None and not _same_columns(derived, groups.all()):
        unknown = "its columns have other types than before"
    if unknown is None and (by_hand := last_merge(its_objects)[1]):
        unknown = f"{by_hand} changed its rows by hand"
    lease.check()
    if unknown is not None:
        done = _anew(derived, groups, changed, unknown, lease)
    else:
        known = [(one, its) for one, its in zip(changed, since, strict=True) if isinstance(its, Difference)]
        done = _forward(derived, groups, known, lease)
    return replace(done, lag_s=lag_s, seconds=round(time.monotonic() - began, 3))


def _sources(session: SparkSession, lake: str, rollup: Rollup) -> list[Source]:
    found = []
    for name in rollup.tables:
        path = table_path(lake, name)
        commits = open_objects(path)
        try:
            version = list_log(commits).version
        except NoTable:
            continue
        found.append(Source(session, name, path, commits, version))
    return found


def app_id_of(table: str, table_id: str, by: str) -> str:
    """The id of transactions that carry versions of a table. It includes the table's name: a copy of a table has the id of the
    original."""
    return f"{ROLLUPS}{table_id}:{table}:{by}"


def way_of(rollup: Rollup, ids: Sequence[str]) -> str:
    """Identifies the computation and its tables: if one of them is gone or replaced, the rollup is computed from scratch."""
    way = (rollup.model_dump_json(exclude_defaults=True), *ids)
    return hashlib.sha256("\n".join(way).encode()).hexdigest()[:16]


def _since(source: Source) -> Difference | Unknown:
    """The changes since the rollup's version of the table, up to the newest version, whose rows are read."""
    if source.before < 0:
        return Unknown("it is new, its declaration has changed, or one of its tables is new or deleted")
    found = difference(source.commits, source.before, source.at.version)
    if isinstance(found, Difference) and found.version < source.at.version:
        return Unknown(f"{source.name} got more commits than one step processes")
    return found


def _anew(derived: Derived, groups: _Groups, changed: Sequence[Source], why: str, lease: Lease) -> Step:
    rows = groups.named(groups.all()).persist()
    try:
        count = rows.count()
        lease.check()  # that took long, perhaps longer than the lease lasts
        derived.overwrite(rows, (), changed[0].txn)
    finally:
        rows.unpersist()
    for one in changed[1:]:
        derived.note(one.txn)
    return Step(version=changed[0].at.version, keys=count, recomputed=why)


def _forward(derived: Derived, groups: _Groups, changed: Sequence[tuple[Source, Difference]], lease: Lease) -> Step:
    touched = groups.touched(changed).persist()
    try:
        count = touched.count()
        lease.check()
        if count:
            derived.execute(groups.merged(derived, touched), changed[0][0].txn)
    finally:
        touched.unpersist()
    for one, _ in changed:
        derived.note(one.txn)
    return Step(version=changed[0][0].at.version, keys=count)


class _Groups:
    """The groups of the rows of some tables. `_g0`, `_g1` and so on name a group; tables have no such columns."""

    def __init__(self, rollup: Rollup, sources: Sequence[Source]) -> None:
        self._rollup, self._sources = rollup, sources
        self._names = [f"_g{at}" for at in range(len(rollup.group_by))]

    def all(self) -> DataFrame:
        return self._aggregated(_together(self._grouped(one.at.rows(), one) for one in self._sources))

    def touched(self, changed: Sequence[tuple[Source, Difference]]) -> DataFrame:
        """The groups with rows that came or left. Rows that an overwrite only copied are in both, and cancel out. That is
        correct only if the rollup had exactly the rows from before: with one table, because its rows and its version are one
        commit, and not for files that came and left since."""
        if len(self._rollup.tables) > 1:
            rows = (self._grouped(one.at.rows_of((*its.came, *its.left)), one) for one, its in changed)
            return reduce(lambda a, b: a.unionByName(b), (one.select(*self._names) for one in rows)).distinct()
        ((source, found),) = changed
        stood = [file for file in found.left if file not in found.passing]
        passing = self._grouped(source.at.rows_of(found.passing), source).select(*self._names)
        return self._not_only_copied(source, found.came, stood).unionByName(passing).distinct()

    def merged(self, derived: Derived, touched: DataFrame) -> Any:
        """The MERGE that replaces these groups."""
        from pyspark.sql import functions as F

        renamed = touched.select(*(F.col(name).alias(f"t{name}") for name in self._names))
        near = _together(self._near(source, touched) for source in self._sources)
        rows = near.join(renamed, self._same("", "t"), "left_semi")
        now = self._aggregated(rows).withColumn("_is", F.lit(True))
        source = renamed.join(now, self._same("", "t"), "left")
        columns = dict(zip(self._rollup.group_by, (f"t{name}" for name in self._names), strict=True))
        columns |= {name: name for name in self._rollup.columns}
        here = [
            F.col(f"t.`{name}`").eqNullSafe(F.col(f"s.t{its}"))
            for name, its in zip(self._rollup.group_by, self._names, strict=True)
        ]
        values = {f"`{name}`": F.col(f"s.`{its}`") for name, its in columns.items()}
        merge = derived.merge(source, reduce(lambda a, b: a & b, here))
        merge = merge.whenMatchedDelete(F.col("s._is").isNull()).whenMatchedUpdate(set=values)
        return merge.whenNotMatchedInsert(F.col("s._is").isNotNull(), values)

    def named(self, rows: DataFrame) -> DataFrame:
        return rows.withColumnsRenamed(dict(zip(self._names, self._rollup.group_by, strict=True)))

    # --- inside ---

    def _not_only_copied(self, source: Source, came: Sequence[str], left: Sequence[str]) -> DataFrame:
        from pyspark.sql import functions as F

        def signed(files: Sequence[str], sign: int) -> DataFrame:
            rows = self._grouped(source.at.rows_of(files), source)
            content = hash_of(source.at.schema, lambda name: F.col(f"`{name}`")).cast("decimal(38,0)") * sign
            return rows.select(*self._names, F.lit(sign).alias("n"), content.alias("content"))

        both = signed(came, 1).unionByName(signed(left, -1))
        sums = both.groupBy(*self._names).agg(F.sum("n").alias("n"), F.sum("content").alias("content"))
        return sums.where("n != 0 or content != 0").select(*self._names)

    def _near(self, source: Source, touched: DataFrame) -> DataFrame:
        """Its rows without files that cannot contain any of these groups, if plain columns name the groups."""
        from pyspark.sql import functions as F

        rows, plain = source.at.rows(), {field.name: field.dataType for field in source.at.schema.fields}
        for name, sql in zip(self._names, self._rollup.group_by.values(), strict=True):
            kind = touched.schema[name].dataType
            if plain.get(sql) == kind and has_literals(kind):
                found = touched.select(to_collect(F.col(name), kind)).distinct().limit(MOST_VALUES + 1).collect()
                if len(found) <= MOST_VALUES and all(row[0] is not None for row in found):
                    rows = rows.where(F.col(f"`{sql}`").isin([literal(row[0], kind) for row in found]))
        return self._grouped(rows, source)

    def _grouped(self, rows: DataFrame, source: Source) -> DataFrame:
        """Rows that count, each with its group. A value that cannot be computed is null, as in other declared SQL."""
        from pyspark.sql import functions as F
        from pyspark.sql.types import StructType

        # `attempt` needs a condition that is not constant.
        always = hash_of(StructType(source.at.schema.fields[:1]), lambda name: F.col(f"`{name}`")) >= F.lit(-(2**63))
        if self._rollup.where is not None:
            rows = rows.where(F.coalesce(attempt(self._rollup.where, "boolean", always)["value"], F.lit(False)))
        kinds = {
            name: rows.select(F.expr(sql)).schema.fields[0].dataType for name, sql in self._rollup.group_by.items()
        }
        named = zip(self._names, self._rollup.group_by.items(), strict=True)
        return rows.withColumns(
            {its: attempt(sql, kinds[name].simpleString(), always)["value"] for its, (name, sql) in named}
        )

    def _aggregated(self, rows: DataFrame) -> DataFrame:
        from pyspark.sql import functions as F

        return rows.groupBy(*self._names).agg(*(F.expr(sql).alias(name) for name, sql in self._rollup.columns.items()))

    def _same(self, one: str, other: str) -> Expression:
        from pyspark.sql import functions as F

        return reduce(lambda a, b: a & b, (F.col(f"{one}{n}").eqNullSafe(F.col(f"{other}{n}")) for n in self._names))


def _together(tables: Iterable[DataFrame]) -> DataFrame:
    """The rows of all tables; a column that a table lacks is null in its rows."""
    return reduce(lambda a, b: a.unionByName(b, allowMissingColumns=True), tables)


def _same_columns(derived: Derived, rows: DataFrame) -> bool:
    seen = derived.seen()
    before = [] if seen is None else [field.dataType.simpleString() for field in seen.schema.fields]
    return before == [field.dataType.simpleString() for field in rows.schema.fields]


def _check(rollup: Rollup, sources: Sequence[Source]) -> None:
    """Refuses SQL that Spark cannot parse, or whose result differs when it is computed again."""
    for source in sources:
        rows = source.at.rows()
        for key, sql in rollup.sql.items():
            if why := faults(rows, key, sql):
                raise InvalidConfiguration.one(
                    f"rollup {rollup.name}: {key}", f"for table {source.name}: {why[0]}", sql
                )
