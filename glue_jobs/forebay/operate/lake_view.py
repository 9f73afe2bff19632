"""Answers from the lake in a second, without a JVM, through delta-rs.

In: the lake's address; the standard AWS environment. Out: plain values. A table that does not exist yet is an ordinary answer.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, NamedTuple
from urllib.parse import unquote

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from deltalake import DeltaTable, QueryBuilder
from deltalake.exceptions import TableNotFoundError
from deltalake.schema import ArrayType, PrimitiveType

from forebay.address import is_s3, local_folder
from forebay.aws.delta_rs import storage_options
from forebay.errors import InvalidConfiguration, meant
from forebay.lake.layout import LEDGER, table_path
from forebay.lake.log.definition import origins_in
from forebay.lake.log.listing import has_log
from forebay.lake.log.tables import own_tables, tables_of
from forebay.lake.objects import open_objects
from forebay.lake.origin import table_lost
from forebay.lake.rows import python_rows
from forebay.ledger.entry import REPLAY
from forebay.record.moment import micros_of
from forebay.record.number import NUMBER
from forebay.threads import answers_by

MOST_MEANT = 3
ASKED_AT_ONCE = 5000
"""Values that one question names. The query engine's plan grows with them."""
READ_FOR_NEWEST = 8
"""Files of a table whose event times are looked at, where its log knows only of times to come."""


@dataclass(frozen=True)
class TableFacts:
    """The facts about a table that its log contains."""

    name: str
    rows: int
    files: int
    bytes: int
    version: int
    newest: datetime | None = None


class Counted(NamedTuple):
    """A table in the ledger: its rows, the files that they are of, and the rows of files whose replay is announced."""

    rows: int = 0
    files: int = 0
    replayed: int = 0


def quoted(text: str) -> str:
    """A text in SQL."""
    return "'" + text.replace("'", "''") + "'"


def like(pattern: str) -> str:
    """A text in SQL for LIKE. In it * stands for any text, and nothing else for another."""
    return quoted(pattern.replace("\\", "\\\\").replace("%", "\\%").replace("_", "\\_").replace("*", "%"))


def known_table(view: LakeView, name: str, *, or_own: bool = False) -> str:
    """The name, of a table that is there; else `InvalidConfiguration`, with those that were perhaps meant. `or_own`: of ours,
    too, such as the ledger."""
    there = [*view.tables(), *(own_tables(view.lake) if or_own else ())]
    if name not in there:
        if (lost := lost_table(view, name)) is not None:
            raise lost
        known = sorted({*there, *counted_in_ledger(view)})
        hint = meant(name, known, "`forebay tables` lists the existing ones", most=MOST_MEANT)
        raise InvalidConfiguration.one(f"table {name}", f"is not in {view.lake}", hint)
    return name


def known_service(view: LakeView, name: str) -> str:
    """The name, of a service that loaded files into this lake; else `InvalidConfiguration`."""
    there = [row["service"] for row in view.query(LEDGER, "select distinct service from t order by service")]
    if name not in there:
        hint = meant(name, there, f"known services: {', '.join(there) or 'none'}", most=MOST_MEANT)
        raise InvalidConfiguration.one(f"--of {name}", "never loaded files here", hint)
    return name


def known_column(view: LakeView, table: str, name: str, *, option: str = "column") -> Any:
    """The type of a column of a table that is there; else `InvalidConfiguration`, which names the option that has it."""
    kinds = columns_there(view, table)
    if name not in kinds:
        hint = meant(name, sorted(kinds), f"there are {', '.join(kinds)}", most=MOST_MEANT)
        raise InvalidConfiguration.one(f"{option} {name}", f"is not a column of table {table}", hint)
    return kinds[name]


def having(view: LakeView, table: str, name: str, value: str, *, option: str = "column") -> str:
    """In SQL: whether a row has this value in a column, written as in the record or as `forebay query` shows it."""
    kind = known_column(view, table, name, option=option)
    if not _has_texts(kind):
        hint = "choose a column of texts, numbers or times"
        raise InvalidConfiguration.one(f"{option} {name}", "has values without a text", hint)
    column, plain = '"' + name.replace('"', '""') + '"', getattr(kind, "type", "")
    either = [f"cast({column} as string) = {quoted(value)}"]
    if plain == "timestamp" and (micros := micros_of(value)) is not None:
        either.append(f"cast({column} as bigint) = {micros}")
    elif plain in ("double", "float") and NUMBER.fullmatch(value):
        either.append(f"{column} = cast({quoted(value)} as double)")
    elif plain == "boolean":
        either.append(f"cast({column} as string) = {quoted(value.lower())}")
    return " or ".join(either)


def _has_texts(kind: Any) -> bool:
    while isinstance(kind, ArrayType):
        kind = kind.element_type
    return isinstance(kind, PrimitiveType) and kind.type != "binary"


def columns_there(view: LakeView, table: str) -> dict[str, Any]:
    """Those of a table that is there, with delta-rs's types."""
    there = view.table(known_table(view, table))
    if there is None:
        raise without_log(view, table)
    return {field.name: field.type for field in there.schema().fields}


def without_log(view: LakeView, table: str) -> InvalidConfiguration:
    """For a folder of the lake without a Delta log, because it was deleted or never was there."""
    problem = "its folder is there, but no Delta log"
    never = InvalidConfiguration.one(f"table {table}", problem, "was it deleted? See docs/disasters.md")
    return lost_table(view, table) or never


def lost_table(view: LakeView, table: str) -> InvalidConfiguration | None:
    """For a table whose rows the ledger counts, and whose log is gone."""
    counted = counted_in_ledger(view).get(table)
    if counted is None or not counted.rows or has_log(open_objects(table_path(view.lake, table))):
        return None
    return InvalidConfiguration.one(f"table {table}", table_lost(table, counted.rows, counted.replayed))


def lost_tables(view: LakeView, there: Collection[str] | None = None) -> dict[str, Counted]:
    """The tables whose rows the ledger counts, and whose log is gone. Once a job has created the table again, only an audit
    finds it."""
    there = {*(tables_there(view) if there is None else there)}
    return {name: found for name, found in counted_in_ledger(view).items() if found.rows and name not in there}


def tables_there(view: LakeView) -> list[str]:
    """The names of all tables but our own. A folder without a log, such as that of the declarations, is none."""

    def is_there(name: str) -> bool:
        return has_log(open_objects(table_path(view.lake, name)))

    return [name for name, there in answers_by(is_there, view.tables(), at_once=32).items() if there]


def counted_in_ledger(view: LakeView) -> dict[str, Counted]:
    """Each table that the ledger names. Counting a ledger of a million files takes 0.2 seconds."""
    by_table = "select unnest(map_keys(tables)) name, unnest(map_values(tables)) rows, outcome from t"
    replayed = f"coalesce(sum(rows) filter (where outcome = {quoted(REPLAY)}), 0) replayed"
    counts = f"select name, sum(rows) n, count(*) files, {replayed} from ({by_table}) x group by name order by name"
    found = view.query(LEDGER, counts)
    return {row["name"]: Counted(row["n"], row["files"], row["replayed"]) for row in found}


def rows_of(table: DeltaTable, sql: str) -> list[dict[str, Any]]:
    """Rows of `sql`, in which the table is called `t`, at the version that it was loaded."""
    return python_rows(arrow_of(table, sql))


def arrow_of(table: DeltaTable, sql: str) -> pa.Table:
    """The same as Arrow. A dataset of delta-rs leaves threads, which at times abort the process at its end."""
    return pa.table(QueryBuilder().register("t", table).execute(sql))


def rows_with(
    table: DeltaTable, columns: str, by: str, values: Iterable[str], *, where: str = "true"
) -> list[dict[str, Any]]:
    """Rows in which `by`, a column or an expression, has one of these values; however many there are, at one version. `where`
    says which of the table's files are read."""
    ordered, found = sorted(set(values)), list[dict[str, Any]]()
    for at in range(0, len(ordered), ASKED_AT_ONCE):
        some = ", ".join(map(quoted, ordered[at : at + ASKED_AT_ONCE]))
        found += rows_of(table, f"select {columns} from t where {where} and {by} in ({some})")
    return found


class LakeView:
    """Looks at the tables of one lake."""

    def __init__(self, lake: str) -> None:
        self.lake = lake.replace("s3a://", "s3://")
        # delta-rs reads `file:` as a URL, and would cut off what follows `#` or `?`.
        self._root = self.lake if is_s3(self.lake) else str(local_folder(self.lake))
        self._options = storage_options() if is_s3(self.lake) else None

    def table(self, name: str) -> DeltaTable | None:
        try:
            return DeltaTable(f"{self._root}/{name}", storage_options=self._options)
        except TableNotFoundError:
            return None

    def has_batch(self, app_id: str, batch: int) -> bool:
        """Whether the ledger has this transaction, or a later one."""
        ledger = self.table(LEDGER)
        newest = None if ledger is None else ledger.transaction_version(app_id)
        return newest is not None and newest >= batch

    def origins(self, names: Iterable[str]) -> dict[str, tuple[str, ...]]:
        """For each of these tables, those from which it is computed."""
        return answers_by(lambda name: origins_in(open_objects(table_path(self.lake, name))), names)

    def query(self, name: str, sql: str) -> list[dict[str, Any]]:
        """Rows of `sql`, in which the table is called `t`; none where there is no such table."""
        table = self.table(name)
        if table is None:
            return []
        return rows_of(table, sql)

    def rows_with(
        self, name: str, columns: str, by: str, values: Iterable[str], *, where: str = "true"
    ) -> list[dict[str, Any]]:
        """The same of a table by its name; none where there is no such table."""
        table = self.table(name)
        return [] if table is None else rows_with(table, columns, by, values, where=where)

    def facts(self, name: str, *, newest_by: str | None = None) -> TableFacts | None:
        """From the log alone: no data file is opened, unless some event claims to be from the future."""
        table = self.table(name)
        if table is None:
            return None
        added = pa.table(table.get_add_actions(flatten=True))
        rows, size = (pc.sum(added[column]).as_py() or 0 for column in ("num_records", "size_bytes"))
        newest = self._newest(name, added, newest_by) if newest_by else None
        return TableFacts(name, rows, added.num_rows, size, table.version(), newest)

    def columns(self, name: str, path: str, columns: Sequence[str]) -> pa.Table:
        """Some columns of one data file of a table; without values where the file lacks one. `FileNotFoundError` where the file
        is gone. A dataset of delta-rs leaves threads, which at times abort the process at its end."""
        content = open_objects(table_path(self.lake, name)).open(path)
        if content is None:
            raise FileNotFoundError(path)
        # In nanoseconds, which pyarrow makes of INT96 otherwise, the year 9999 would be another one.
        with content, pq.ParquetFile(content, coerce_int96_timestamp_unit="us") as parquet:
            there = parquet.read([one for one in columns if one in parquet.schema_arrow.names], use_threads=False)
            nothing = pa.nulls(parquet.metadata.num_rows)
        found = {one: there[one] if one in there.column_names else nothing for one in columns}
        return pa.table(found)

    def tables(self) -> list[str]:
        """The names of all folders that may be tables, but our own."""
        return tables_of(self.lake)

    def _newest(self, name: str, added: pa.Table, column: str) -> datetime | None:
        """The newest time that is not in the future. A wrong clock makes a file's greatest value useless: then the
        files that were added last are read, in this column."""
        known = f"max.{column}"
        if known not in added.column_names or not pa.types.is_timestamp(added[known].type):
            return None
        now = datetime.now(UTC)
        newest: datetime | None = pc.max(added[known]).as_py()
        if newest is None or _utc(newest) <= now:
            return newest and _utc(newest)
        last = added.sort_by([("modification_time", "descending")])["path"].slice(0, READ_FOR_NEWEST).to_pylist()
        read = (self.columns(name, unquote(path), [column])[column] for path in last)
        columns = [one.cast(added[known].type, safe=False) for one in read]
        found = [pc.max(one.filter(pc.less_equal(one, pa.scalar(now, one.type)))).as_py() for one in columns]
        return max((_utc(one) for one in found if one is not None), default=None)


def _utc(moment: datetime) -> datetime:
    """A timestamp without a zone is taken for UTC."""
    return moment if moment.tzinfo else moment.replace(tzinfo=UTC)
