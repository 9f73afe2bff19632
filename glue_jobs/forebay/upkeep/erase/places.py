"""The columns of a table that name the person of a row, and those that hold other data of the person.

In: the name of a table, the declarations, and the columns that it has. Out: `Place`s, each a column and the path in it. Pure.
A declared column is read from its path and from nothing else. Other columns are known by their names, in every spelling that
shares one. They are also known by the keys that the table's schema says they were made for: a key with blanks around it has a
column of its own. Records that are kept as text hold all of their fields. A table that ignores undeclared fields, the subject
among them, or that is no longer declared, does not say whose its rows are.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from forebay.declaration.column import Column
from forebay.declaration.form import Keys
from forebay.declaration.path import parse_path
from forebay.declaration.personal import may_hold, means
from forebay.declaration.service import Service
from forebay.declaration.table import Table
from forebay.lake.layout import PARKED, QUARANTINE
from forebay.privacy.subject import subject_paths
from forebay.record.kind import SPELLED

TEXTS = ("_rescued", "_record")
"""Columns of tables with records, or parts of them, as text."""
COUNTED = re.compile(r"(?i)\b(?:count|approx_count_distinct)\s*\([^()]*\)")
WORD = re.compile(r"\w+")
STEP = re.compile(r"`([^`]+)`|(\w+)")
GROUP = re.compile(rf"(?:{STEP.pattern})(?:\s*\.\s*(?:{STEP.pattern}))*")
"""A column in SQL, or a field of a struct."""
KEPT = {QUARANTINE: "record", PARKED: "record"}


SpelledKeys = Mapping[str, tuple[str, ...]]
NO_KEYS: SpelledKeys = {}


@dataclass(frozen=True)
class Place:
    """`path` is what is left of a field's path behind the column: none where the column is the field."""

    column: str
    path: Keys = ()


def keys_of(said_of: Mapping[str, Mapping[str, Any]]) -> SpelledKeys:
    """By column, from the metadata of a table's columns."""
    return {name: tuple(declared[SPELLED]) for name, declared in said_of.items() if declared.get(SPELLED)}


def subject_places(
    table: str, service: Service, columns: Sequence[str], log: str | None = None, keys: SpelledKeys = NO_KEYS
) -> tuple[Place, ...]:
    """`log` is the table that this one is computed from, if it is: it has the columns of that."""
    paths = _subject_paths(service)
    if table in KEPT:
        return tuple(Place(KEPT[table], path) for path in paths if KEPT[table] in columns)
    for rollup in (one for one in service.rollups if one.name == table):
        groups = rollup.group_by.items()
        return tuple(dict.fromkeys(one for name, sql in groups for one in _in_group(name, sql, rollup.tables, service)))
    made = service.maker_of(log or table)
    found = tuple(dict.fromkeys(place for path in paths for place in _places_of(path, made, columns, keys)))
    ignores = made is None or made.undeclared.become == "ignored"
    return () if ignores and all(place.column in TEXTS for place in found) else found


def lost_columns(before: Service, after: Service) -> Iterator[tuple[str, Column]]:
    """Declared columns with the subject, by table, that `after` takes for something else, although it makes the table."""
    for table in before.tables:
        made = next((one for one in after.tables if one.name == table.name), None) or after.maker_of(table.name)
        for column in table.columns if made is not None else ():
            was, now = (
                {place for path in _subject_paths(service) for place in _places_of(path, of, [column.name], NO_KEYS)}
                for service, of in ((before, table), (after, made))
            )
            if was - now:
                yield table.name, column


def is_of_nobody(table: str, service: Service) -> bool:
    """Whether it is a rollup whose columns use the subject of rows at most for counts."""
    found = [one for one in service.rollups if one.name == table]
    return bool(found) and not any(
        _places_of_name(word, source, service)
        for rollup in found
        for sql in (*rollup.group_by.values(), *rollup.columns.values())
        for word in WORD.findall(COUNTED.sub("", sql))
        for source in rollup.tables
    )


def personal_columns(
    table: str, service: Service, columns: Sequence[str], keys: SpelledKeys = NO_KEYS
) -> tuple[str, ...]:
    """All that is null in an anonymised row: the subject, what is personal, what is made of columns, and kept texts."""
    made = service.maker_of(table)
    paths = [
        *_subject_paths(service),
        *(path for one in service.personal for path in subject_paths(one.path, inside=service.inside)),
    ]
    named = {place.column for path in paths for place in _places_of(path, made, columns, keys)}
    derived = {column.name for column in made.columns if column.expression is not None} if made else set()
    partitions = set(made.partitions) if made else set()
    return tuple(name for name in columns if name in (named | derived) - partitions)


def _subject_paths(service: Service) -> tuple[Keys, ...]:
    exploded = [parse_path(one).keys for one in service.exploded]
    return subject_paths(service.subject, exploded, service.joints, service.inside)


def _in_group(name: str, sql: str, tables: Iterable[str], service: Service) -> Iterator[Place]:
    """The places of a person in the groups of a rollup: a column, or fields of a struct. Other SQL is not understood."""
    if GROUP.fullmatch(sql.strip()) is None:
        return
    column, *fields = (quoted or bare for quoted, bare in STEP.findall(sql))
    for place in (one for table in tables for one in _places_of_name(column, table, service)):
        within = zip(place.path, fields, strict=False)
        if len(fields) <= len(place.path) and all(may_hold((step,), field) for step, field in within):
            yield Place(name, place.path[len(fields) :])


def _places_of_name(column: str, table: str, service: Service) -> tuple[Place, ...]:
    """In a table or a state. Spark ignores upper and lower case of a column in SQL."""
    made = service.maker_of(table) or next((one for one in service.tables if one.may_merge_into(table)), None)
    names = [one.name for one in made.columns if one.name.lower() == column.lower()] if made else []
    paths = _subject_paths(service)
    return tuple(place for path in paths for place in _places_of(path, made, names or [column], NO_KEYS))


def _places_of(path: Keys, made: Table | None, columns: Iterable[str], spelled: SpelledKeys) -> Iterator[Place]:
    declared = {column.name: column for column in made.columns} if made else {}
    joint = made.undeclared.flatten if made else None
    for name in columns:
        if name in TEXTS:
            yield Place(name, path)
        elif name in declared:
            column = declared[name]
            keys = parse_path(column.source).keys if column.of_record else ()
            if keys and _leads(keys, path):
                yield Place(name, path[len(keys) :])
        elif may_hold(path[:1], name) or any(means(path[0], key) for key in spelled.get(name, ())):
            yield Place(name, path[1:])
        elif joint is not None and len(path) > 1 and may_hold(path, name, joint):
            yield Place(name)


def _leads(keys: Keys, path: Keys) -> bool:
    """Whether a column of these keys holds the field, or is a part of it."""
    return all(means(step, key) for step, key in zip(path, keys, strict=False)) and len(keys) <= len(path)
