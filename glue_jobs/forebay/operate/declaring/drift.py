"""The differences between a table in the lake and its declaration, from the declaration and the table's log.

In: a declaration, and the table's definition from its log. Out: every `Drift` at once, with its consequence. Some end with the
next rows. For the others, the table stays unchanged, or its rows are held, until somebody follows the advice.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from forebay.declaration.column import Column, widens
from forebay.declaration.column_type import ArrayOf, ColumnType, is_nested, parts_of, renamed_leaves
from forebay.declaration.service import Service
from forebay.declaration.table import Table
from forebay.declared_sql.columns import OWN_COLUMNS
from forebay.errors import Problem
from forebay.lake.layout import table_path
from forebay.lake.log.definition import Definition, definition_of
from forebay.lake.log.listing import BrokenLog, NoTable, UnsupportedTable, has_log
from forebay.lake.log.tables import tables_of
from forebay.lake.objects import open_objects
from forebay.operate.declaring.columns import type_name
from forebay.table.shaping import RESCUED
from forebay.threads import in_threads

OF_OURS = {**dict.fromkeys(OWN_COLUMNS, "long"), "_file_id": "string", "_ingested_at": "timestamp", RESCUED: "string"}
IN_DELTA = {"json": "string", "map": "map<string, string>"}
NUMBERS = ("byte", "short", "int", "long", "float", "double", "decimal")
TIMES = ("timestamp", "timestamp_ntz", "date")
NOT_WRITTEN = {
    "delta.generationExpression": "is a generated column",
    "delta.identity.start": "is an identity column",
    "delta.invariants": "has an invariant",
}
"""Keys of a column's metadata that only Spark writes, and our commits do not."""


@dataclass(frozen=True)
class Drift:
    """`by_itself`: it comes right with the next rows."""

    problem: Problem
    by_itself: bool = False


@dataclass(frozen=True)
class LakeDrift:
    """The drift of this many declared tables. `others` are undeclared, and nothing is written to them."""

    tables: int
    others: tuple[str, ...]
    drifts: tuple[Drift, ...]


def drift_of_lake(service: Service, lake: str) -> LakeDrift:
    """The drift of all tables that a declaration makes. A table that cannot be read counts as different."""
    there = tables_of(lake)
    made = {name: declared for name in there if (declared := service.maker_of(name)) is not None}

    def look(name: str) -> list[Drift]:
        try:
            return list(drift(name, made[name], definition_of(open_objects(f"{lake.rstrip('/')}/{name}"))))
        except NoTable:
            return []  # a folder of something else
        except (BrokenLog, UnsupportedTable) as unreadable:
            return [Drift(Problem(f"table {name}", "cannot be read", str(unreadable)))]

    found = [one for drifts in in_threads(look, made) for one in drifts]
    rest = (name for name in there if name not in made and not _is_computed(service, name))
    others = tuple(name for name in rest if has_log(open_objects(table_path(lake, name))))
    return LakeDrift(len(made), others, tuple(found))


def _is_computed(service: Service, name: str) -> bool:
    """Whether it is a state or a rollup of this service."""
    states = any(table.may_merge_into(name) for table in service.tables)
    return states or any(rollup.name == name for rollup in service.rollups)


def drift(name: str, declared: Table, found: Definition) -> Iterator[Drift]:
    return (Drift(_of(name, one.problem), one.by_itself) for one in _Looking(name, declared, found).all())


def _of(name: str, problem: Problem) -> Problem:
    return Problem(f"table {name}: {problem.where}", problem.what, problem.suggestion)


class _Looking:
    def __init__(self, name: str, declared: Table, found: Definition) -> None:
        self.name, self.declared, self.found = name, declared, found
        self.fields: Mapping[str, Any] = {field["name"].lower(): field for field in found.schema["fields"]}

    def all(self) -> Iterator[Drift]:
        yield from self.of_table()
        yield from self.of_layout()
        for column in self.declared.columns:
            yield from self.of_column(column)
        for own, kind in OF_OURS.items():
            if own in self.fields:
                yield from self.of_type(own, type_name(self.fields[own]["type"]), kind, None)
        yield from self.of_other_columns()

    def of_table(self) -> Iterator[Drift]:
        if self.found.configuration.get("delta.columnMapping.mode", "none") != "none":
            yield self.refused("delta.columnMapping.mode", "is on, but forebay appends only by the columns' own names")
        for name, value in self.declared.properties.items():
            if (has := self.found.configuration.get(name)) != value:
                what = f"is {has or 'not set'} in the table but declared {value}"
                yield Drift(Problem(name, what, "the next rows add it"), by_itself=True)
        for key in sorted(self.found.configuration):
            if key.startswith("delta.constraints."):
                constraint = key.removeprefix("delta.constraints.")
                then = f"declare an expectation instead; ALTER TABLE ... DROP CONSTRAINT {constraint}"
                yield self.refused(f"constraint {constraint}", "binds writers, but forebay does not check it", then)

    def of_layout(self) -> Iterator[Drift]:
        declared, found = self.declared.partitions, self.found.partition_columns
        names = {column.name for column in self.declared.columns}
        for name in found:
            if name not in names and name not in OF_OURS:
                yield self.refused(
                    f"partitions: {name}", "is a partition column of the table but is not declared", "declare it"
                )
        if declared != found:
            what = f"are {', '.join(found) or 'none'} in the table but declared {', '.join(declared) or 'none'}"
            yield Drift(Problem("partitions", what, self.moved_by()))
        if self.declared.cluster_by != self.found.cluster_columns and not declared:
            by = ", ".join(self.declared.cluster_by)
            what = (
                f"is {', '.join(self.found.cluster_columns) or 'nothing'} in the table but declared {by or 'nothing'}"
            )
            clause = f"({by})" if by else "NONE"
            yield Drift(Problem("cluster_by", what, f"ALTER TABLE ... CLUSTER BY {clause}"))

    def moved_by(self) -> str:
        first = "ALTER TABLE ... CLUSTER BY NONE, then " if self.found.cluster_columns else ""
        return f"{first}`forebay schema settle {self.name}` moves its rows"

    def of_column(self, column: Column) -> Iterator[Drift]:
        field = self.fields.get(column.name.lower())
        where, kind = f"column {column.name}", renamed_leaves(column.type, lambda name: IN_DELTA.get(name, name))
        if field is None:
            then = f"the next rows add it; `forebay schema settle {self.name}` fills it for old ones"
            yield Drift(Problem(where, f"is declared {column.type} but is not in the table", then), by_itself=True)
        elif field["name"] != column.name:
            what = f"is called {field['name']} in the table, and many readers are case-sensitive"
            yield self.refused(where, what, "declare it so")
        elif (new := _new_fields(column.name, field["type"], parts_of(column.type))) is not None:
            then = f"the next rows add it; `forebay schema settle {self.name}` fills it for old ones"
            for path in new:
                what = "is declared but is not in the table"
                yield Drift(Problem(f"field {path}", what, then), by_itself=True)
        else:
            yield from self.of_type(column.name, type_name(field["type"]), kind, column)

    def of_type(self, name: str, found: str, kind: str, column: Column | None) -> Iterator[Drift]:
        where = f"column {name}"
        if found == kind:
            return
        what = (
            f"is {found} in the table but declared {column.type}"
            if column
            else f"is {found}, but forebay's column of this name is {kind}"
        )
        if column is None:
            yield self.refused(where, what, "rename it in the table")
        elif self.gets_wider(name, found, column):
            yield Drift(Problem(where, what, "the next rows widen it"), by_itself=True)
        elif reachable(found, kind):
            yield self.refused(where, what, f"run `forebay schema settle {self.name}`")
        else:
            none = f"`forebay schema settle {self.name}` would rescue all its values, for none is a {column.type}"
            yield self.refused(where, what, none)

    def gets_wider(self, name: str, found: str, column: Column) -> bool:
        allowed = self.declared.type_widening and name not in self.found.partition_columns
        return allowed and widens(found, column.type)

    def of_other_columns(self) -> Iterator[Drift]:
        for field in self.found.schema["fields"]:
            where = f"column {field['name']}"
            if not field.get("nullable", True):
                yield self.refused(
                    where, "may not be null in the table", "ALTER TABLE ... ALTER COLUMN ... DROP NOT NULL"
                )
            for key, what in NOT_WRITTEN.items():
                if key in (field.get("metadata") or {}):
                    yield self.refused(where, f"{what}, which forebay does not write")

    def refused(self, where: str, what: str, then: str = "") -> Drift:
        return Drift(Problem(where, what, "; ".join(filter(None, ["rows for it wait in the quarantine", then]))))


def _new_fields(path: str, found: Any, kind: ColumnType) -> list[str] | None:
    """The fields of structs that the table lacks; None where the types differ in more than fields."""
    if isinstance(kind, str):
        return [] if type_name(found) == IN_DELTA.get(kind, kind) else None
    if isinstance(found, str):
        return None
    if isinstance(kind, ArrayOf):
        return _new_fields(f"{path}[]", found["elementType"], kind.of) if found["type"] == "array" else None
    if found["type"] != "struct":
        return None
    known = {field["name"]: field["type"] for field in found["fields"]}
    spelled = {name.lower(): name for name in known}
    new: list[str] = []
    for name, of in kind.fields.items():
        if name not in known and name.lower() in spelled:
            return None
        inner = _new_fields(f"{path}.{name}", known[name], of) if name in known else [f"{path}.{name}"]
        if inner is None:
            return None
        new += inner
    return new


def reachable(found: str, declared: str) -> bool:
    """Whether values of one type can be some of the other, when the table is settled."""
    has_parts = declared.startswith("map<") or is_nested(declared)
    if found.startswith("array"):
        return declared == "string" or declared.startswith("array<")
    if found.startswith(("struct", "map")):
        is_object = declared.startswith("struct<") or (found.startswith("struct") and declared.startswith("map<"))
        return declared == "string" or is_object
    if found == "boolean":
        return declared in ("string", "binary")
    if found in TIMES:
        return declared != "boolean" and not has_parts and not declared.startswith(NUMBERS)
    if found.startswith(NUMBERS):
        return not has_parts
    return True
