"""The record that a row came from: its text as S3 has it now, the declaration that takes it, and what is computed from it.

In: a view of the lake, and a value in a column of a table. Out: `Traced` rows, by file. A file is read as the job reads it, one
piece at a time, and its personal fields are treated. Nothing is written.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from forebay.content.ceiling import ceiling
from forebay.content.end import PieceEnd
from forebay.content.fetch import Get, Metadata, OrCopy, Retrying, s3_client
from forebay.content.limits import Limits
from forebay.content.piece import cut
from forebay.content.reading import read_pieces
from forebay.declaration.kept.in_force import kept_service
from forebay.declaration.service import Service
from forebay.declaration.table import Table
from forebay.errors import InvalidConfiguration
from forebay.operate.lake_view import LakeView, having, known_column
from forebay.operate.looking.files import LedgerFile
from forebay.privacy.erased import without_erased
from forebay.record.number import read_json
from forebay.record.route import Origin, route_of, text_of

MOST_ROWS = 5
MOST_OF_A_LINE = 5
"""Records of one line that are shown, where several of them may be the row."""
LIMITS = Limits(attempts=2)
FIELD = re.compile(r"[A-Za-z_]\w*")
"""Names of columns that are also paths of their fields."""


@dataclass(frozen=True)
class Record:
    """`byte_offset` is where it begins in the file's expanded bytes; of Parquet and Avro it is its number. `table` is where the
    declarations in force send it: to the table of the row, or to another one, or nowhere."""

    line: int
    byte_offset: int
    text: str
    table: str | None


@dataclass(frozen=True)
class NotRead:
    """Why S3 or the reader did not give the records of a file."""

    outcome: str
    reason: str | None
    detail: str | None


@dataclass(frozen=True)
class Rule:
    """The declaration of a table, in the version that is in force: its name with its {fields}, None where no declaration makes
    the table; and its conditions. `feeds` are the states and rollups that are computed from the table."""

    version: str
    name: str | None
    where: dict[str, Any]
    where_sql: str | None
    feeds: tuple[str, ...]


@dataclass(frozen=True)
class Traced:
    """Rows of one file, by their lines. Each line has one record, or several that may be the row."""

    lines: tuple[int, ...]
    records: tuple[Record, ...]
    not_read: NotRead | None
    rule: Rule

    @property
    def missing(self) -> tuple[int, ...]:
        """Lines without a record."""
        return tuple(sorted({*self.lines} - {record.line for record in self.records}))


def rows_traced(
    view: LakeView, table: str, column: str, value: str, files: Iterable[LedgerFile], *, s3: Any = None
) -> tuple[dict[str, Traced], bool]:
    """The first rows with this value, by the ids of their files; and whether there are more."""
    where = having(view, table, column, value)
    known_column(view, table, "_line")
    sql = f"select distinct _file_id, _line from t where {where} order by _file_id, _line limit {MOST_ROWS + 1}"
    rows = view.query(table, sql)
    lines: dict[str, set[int]] = {}
    for row in rows[:MOST_ROWS]:
        lines.setdefault(row["_file_id"], set()).add(row["_line"])
    found = {
        file.file_id: _traced(view.lake, file, lines[file.file_id], (table, column, value), s3)
        for file in files
        if file.file_id in lines
    }
    return found, len(rows) > MOST_ROWS


def _traced(lake: str, file: LedgerFile, lines: set[int], asked: tuple[str, str, str], s3: Any) -> Traced:
    service = kept_service(lake, file.service or "")
    if service is None:
        problem = f"has no declarations in {lake}, so it is unknown which fields of {file.uri} are personal"
        raise InvalidConfiguration.one(f"service {file.service}", problem, "start its ingest job once")
    service = without_erased(service, lake).without_vault
    table, column, value = asked
    maker = next((one for one in service.tables if one.may_merge_into(table)), None) or service.maker_of(table)
    metadata: Metadata = {}
    get = OrCopy.over(Retrying.over_s3(s3 or s3_client(1), LIMITS, metadata), service, metadata)
    may_change = (
        maker is not None and column in {one.name for one in service.transformed(maker)} and bool(maker.transform)
    )
    choice = _Choice(service, maker, table, _source(maker, column), value, may_change)
    not_read = None
    for row in _rows(file, lines, service, get):
        if isinstance(row, NotRead):
            not_read = row
        else:
            choice.add(*row, Origin(file.key, file.bucket, metadata.get(file.landed, {})))
    records = () if not_read else tuple(one for _, (_, some) in sorted(choice.of_line.items()) for one in some)
    return Traced(tuple(sorted(lines)), records, not_read, _rule(service, maker, table))


def _rows(file: LedgerFile, lines: set[int], service: Service, get: Get) -> Iterator[tuple[int, int, str] | NotRead]:
    """Line, offset and text of the records of these lines. The end of a piece says with which line the next one begins."""
    before = 0
    with ceiling(LIMITS.task_memory_bytes):
        for piece in cut([file.landed], LIMITS):
            wanted = pa.array([line - before for line in lines if line > before], pa.int64())
            if not len(wanted):
                return
            passed = 0
            for batch in read_pieces([piece], get, LIMITS, forms=service.forms):
                line = batch.column("line")
                is_record = pc.and_(pc.is_in(line, wanted), pc.is_null(batch.column("problem")))
                for row in batch.filter(is_record).to_pylist():
                    yield row["line"] + before, row["byte_offset"], row["value"].rstrip()
                for row in batch.filter(pc.is_null(line)).to_pylist():
                    end = PieceEnd.from_row(row["piece"], row["value"], row["problem"], row["detail"])
                    if end.outcome not in ("loaded", "empty"):
                        yield NotRead(end.outcome, end.reason, end.detail)
                        return
                    passed = end.lines
            before += passed


@dataclass
class _Choice:
    """Chooses the records of a line that may be the row: those with its value, else those that its table takes, else all.
    If a function of the table `may_change` the value, those with it only come first."""

    service: Service
    maker: Table | None
    table: str
    source: str | None
    value: str
    may_change: bool
    of_line: dict[int, tuple[int, list[Record]]] = field(default_factory=dict)

    def add(self, line: int, byte_offset: int, text: str, origin: Origin) -> None:
        try:
            read = read_json(text)
        except ValueError:
            return
        table = route_of(self.service, read, origin).table
        if table is not None and self.maker is not None and self.table == self.maker.state_of(table):
            table = self.table
        has_value = self.source is not None and text_of(self.service, self.source, read, origin) == self.value
        likeness = int(table == self.table) + (0 if self.may_change else 2 * has_value)
        best, some = self.of_line.get(line, (-1, []))
        if likeness > best:
            self.of_line[line] = (likeness, some := [])
        if likeness >= best:
            some.insert(0 if has_value and self.may_change else len(some), Record(line, byte_offset, text, table))
            del some[MOST_OF_A_LINE:]


def _source(maker: Table | None, column: str) -> str | None:
    """The path of the field that has the column's value, if it is as the record has it."""
    for one in maker.columns if maker else ():
        if one.name == column:
            return one.source if one.expression is None else None
    return column if FIELD.fullmatch(column) else None


def _rule(service: Service, maker: Table | None, table: str) -> Rule:
    state = maker.state_of(table) if maker else None
    feeds = [state] if state else []
    feeds += [one.name for one in service.rollups if {table, state} & {*one.tables}]
    declared = maker.model_dump(mode="json", include={"name", "where", "where_sql"}, exclude_none=True) if maker else {}
    return Rule(
        service.version, declared.get("name"), declared.get("where", {}), declared.get("where_sql"), tuple(feeds)
    )
