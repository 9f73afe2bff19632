"""Mistakes between the parts of a service that are each valid alone.

In: a service and its tables. Out: problems, each with a suggestion.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterable, Sequence
from typing import Any

from pydantic import TypeAdapter, ValidationError

from forebay.declaration import object_key
from forebay.declaration.column_type import is_nested, leaves_of
from forebay.declaration.condition import Condition
from forebay.declaration.form import PARENT
from forebay.declaration.mistakes.places import Section
from forebay.declaration.order import taken_before
from forebay.declaration.path import parse_path
from forebay.declaration.personal import PersonalField, begins, of_elements, of_surrounded
from forebay.declaration.rollup import Rollup
from forebay.declaration.service import Service
from forebay.declaration.table import Table
from forebay.errors import Problem, meant

TREATED = ("string", "json", "binary", "map")
"""Types of parts that a treated value fits."""
TAKES = ("name", "where", "where_sql", "explode")
"""A table's name, and what decides about its records."""

Place = Callable[[Table | Rollup], str]


def disagreements(
    service: Service, given: Collection[str], wrong: Collection[str], *, all_tables: bool, at: Place, strict: bool
) -> Iterable[Problem]:
    """`given` are the sections that were declared, and `wrong` those that could not be read: they are compared with nothing.
    `all_tables` says whether every table could be read, and `at` where one is declared."""
    yield from _deletions_that_lose(service)
    if strict:
        yield from _never_reached(service.tables, at)
    yield from _states_of_others(service.tables, at)
    if all_tables:
        yield from _rollups_of_nothing(service, at)
    if all_tables:  # the group of a table that could not be read is unknown
        yield from _groups_of_nobody(service)
    if service.feeds and "envelope" in given:
        yield Problem(
            "service.toml: envelope", "is not allowed beside feeds", "declare it in each of the [[feeds]] instead"
        )
    if service.privacy is not None:
        yield from _exploded_as_a_whole(service)
        yield from _read_though_dropped(service, at)
        yield from _nested_that_loses_all(service, at)
        yield from _subject_lost(service)
        yield from _transforms_without_columns(service, at)
    yield from _landed_files_needed(service)
    if not {"envelope", "feeds"} & set(wrong):  # nor what their keys say
        yield from _not_in_the_key(service, at)
        yield from _of_no_feed(service, at)


def _deletions_that_lose(service: Service) -> Iterable[Problem]:
    """Under `ignore`, a later content that was left out is not read again. A deletion between the two that arrives last would
    leave the table without either. Files that maintenance or an erasure removes have rows that are still wanted."""
    if service.on_delete != "forget":
        return
    if "ignore" in (service.overwritten, *service.overwritten_below.values()):
        hint = 'declare overwritten = "append" or "replace" for all keys'
        yield Problem("service.toml: on_delete", '"forget" is not possible with overwritten = "ignore"', hint)
    if service.after_load is not None:
        problem = '"forget" would remove the rows of files that after_load moves or deletes'
        yield Problem("service.toml: on_delete", problem, "remove one of the two")
    if service.privacy is not None and service.privacy.landing != "list":
        problem = '"forget" would remove rows of other people when `forebay privacy erase` deletes versions of objects'
        yield Problem("service.toml: on_delete", problem, 'remove it, or declare privacy.landing = "list"')


def declared_twice(sections: Iterable[Section]) -> Iterable[Problem]:
    """Tables of one name that take the same records, also if something else is wrong with one of them."""
    seen: dict[tuple[object, ...], Section] = {}
    for section in sections:
        takes = _takes(section.given)
        first = section if takes is None else seen.setdefault(takes, section)
        if first is not section:
            where = section.at()
            yield Problem(where, f"is declared twice with the same `where`, also at {first.at()}", "remove one")


def _takes(given: Any) -> tuple[object, ...] | None:
    """The name of a table, and what decides about its records; None where that is wrong."""
    try:
        found = {name: _valid(name, given[name]) for name in TAKES if name in given}
        return (found["name"], frozenset(found.get("where", {}).items()), found.get("where_sql"), found.get("explode"))
    except (KeyError, TypeError, ValidationError):
        return None


def _valid(name: str, value: object) -> Any:
    kind: Any = Table.model_fields[name].annotation
    return TypeAdapter(kind).validate_python(value)


def _take_the_same(one: Table, other: Table) -> bool:
    return all(getattr(one, name) == getattr(other, name) for name in TAKES)


def _never_reached(tables: Sequence[Table], at: Place) -> Iterable[Problem]:
    """Tables that never get a record, because an earlier table takes them all."""
    for number, table in enumerate(tables):
        earlier = taken_before(tables, number)
        if earlier is not None and not _take_the_same(earlier, table):
            problem = f"never gets a record: {at(earlier)} comes first and takes all of them"
            yield Problem(at(table), problem, "give the earlier table a narrower `where`, or remove one of the two")


def _states_of_others(tables: Sequence[Table], at: Place) -> Iterable[Problem]:
    """A state that records or another merge would write to as well."""
    merged = [(table, table.merge) for table in tables if table.merge is not None]
    for table, merge in merged:
        sample = re.sub(r"\{[^{}]*\}", "x", merge.into)
        for other in tables:
            if other.makes(sample) or other.glob == merge.glob:
                problem = f"{merge.into} is also a table that the declaration of {other.name} writes"
                yield Problem(f"{at(table)}: merge.into", problem, "give the state its own name")
        if any(other is not table and again.glob == merge.glob for other, again in merged):
            yield Problem(f"{at(table)}: merge.into", f"{merge.into} is the state of two tables", "name two")


def _rollups_of_nothing(service: Service, at: Place) -> Iterable[Problem]:
    """Rollups of tables that do not exist, and rollups whose own table something else writes."""

    def writers(name: str) -> list[str]:
        states = (table.name for table in service.tables if table.may_merge_into(name))
        return [*(table.name for table in service.tables if table.makes(name)), *states]

    for rollup in service.rollups:
        where = at(rollup)
        if taken := writers(rollup.name):
            yield Problem(
                f"{where}: name", f"is also a table that the declaration of {taken[0]} writes", "name another"
            )
        if sum(other.name == rollup.name for other in service.rollups) > 1:
            yield Problem(where, "is declared twice", "remove one")
        for name in rollup.tables:
            if not writers(name):
                yield Problem(
                    f"{where}: tables", f"no declaration defines {name}", "use tables or states of this service"
                )


def _groups_of_nobody(service: Service) -> Iterable[Problem]:
    known = sorted({"default", "own", *(table.compaction.group for table in service.tables)})
    for name, schedule in service.schedules.items():
        if schedule.group and schedule.group not in known:
            hint = meant(schedule.group, known, f"known groups: {', '.join(known)}")
            yield Problem(f"service.toml: schedules.{name}.group", f"no table is in the group {schedule.group!r}", hint)


def _exploded_as_a_whole(service: Service) -> Iterable[Problem]:
    """A record of an exploded array holds its position and the array, and both must stay."""
    for one in service.personal:
        for table in service.tables:
            if table.explosion is not None and begins(one.path, table.explosion.path):
                problem = f"the elements of {table.explode} become their own records in table {table.name}"
                where = f"service.toml: privacy.personal: {'.'.join(one.path)}"
                yield Problem(where, problem, "name the fields of the elements")


def _read_though_dropped(service: Service, at: Place) -> Iterable[Problem]:
    for table in service.tables:
        dropped = [one for one in _personal_of(service, table) if one.become == "dropped"]
        for name in sorted(table.named):
            path = parse_path(name)
            if path.of_record and any(begins(one.path, path.keys) for one in dropped):
                hint = "leave it out, or choose another treatment, such as masked"
                yield Problem(at(table), f"reads {name}, which is personal and dropped", hint)


def _nested_that_loses_all(service: Service, at: Place) -> Iterable[Problem]:
    """An array or a struct is null where one of its parts does not fit, and a treated part is a text or gone."""
    for table in service.tables:
        personal = _personal_of(service, table)
        for column in (one for one in table.columns if one.of_record and is_nested(one.type)):
            keys = parse_path(column.source).keys
            for names, kind in leaves_of(column.type):
                became = {one.become for one in personal if begins(one.path, (*keys, *names))}
                where, what = f"{at(table)}: columns.{column.name}", ".".join(names)
                if "dropped" in became and names:
                    hint = "leave the field out, or choose another treatment, such as masked"
                    yield Problem(where, f"has the field {what}, which is personal and dropped", hint)
                elif kind not in TREATED and {"masked", "token"} & became:
                    problem = f"has the field {what} as {kind}, but it is personal, and its values become texts"
                    yield Problem(where, problem, "make it a string: otherwise the whole column would always be null")


def _personal_of(service: Service, table: Table) -> tuple[PersonalField, ...]:
    """As paths of the records of this table."""
    within = of_elements(service.personal, [table.explosion.path]) if table.explosion else ()
    return (*of_surrounded(service.personal, PARENT), *within)


def _subject_lost(service: Service) -> Iterable[Problem]:
    """By a field whose column it shares in a table that flattens objects. The section itself refuses all other cases."""
    for one in service.personal if service.subject else ():
        if begins(one.path, service.subject) and one.become != "token":
            problem = f"shares a column with a personal field that is {one.become}, in a table that flattens objects"
            yield Problem(
                "service.toml: privacy.subject", problem, "declare the subject as a personal field that becomes a token"
            )


def _transforms_without_columns(service: Service, at: Place) -> Iterable[Problem]:
    """Where each column could have the subject."""
    for table in service.tables:
        if table.transform is not None and not service.transformed(table):
            problem = "the function would get no column, because it gets none that could have privacy.subject"
            yield Problem(f"{at(table)}: transform", problem, "declare another column, or remove the transform")


def _landed_files_needed(service: Service) -> Iterable[Problem]:
    """By an erasure, by a manifest that counts them, or by the feed that would load the copies."""
    rule = service.after_load
    if rule is None:
        return
    where = "service.toml: after_load"
    if rule.move and service.subject:
        problem = (
            "`forebay privacy erase` would not find a person's records in moved files, and privacy.subject is declared"
        )
        yield Problem(f"{where}.move", problem, "use delete = true, or remove after_load")
    for feed in service.all_feeds:
        if feed.complete is not None and feed.complete.manifest:
            problem = (
                f"the manifest {feed.complete.manifest} of feed {feed.name} counts the files in the landing bucket"
            )
            yield Problem(where, problem, "remove after_load, or use a marker instead of a manifest")
    bucket, key = rule.place_of("bucket", "key", "id")
    for feed in service.feeds:
        if rule.move and feed.bucket and feed.place.holds(bucket, key):
            problem = f"feed {feed.name} would load the moved files again and again"
            yield Problem(f"{where}.move", problem, "choose a prefix outside of all feeds, or another bucket")


def _not_in_the_key(service: Service, at: Place) -> Iterable[Problem]:
    where = "feeds.0.key" if service.feeds else "envelope.key"
    declared = {f"{object_key.PREFIX}{name}" for feed in service.all_feeds for name in object_key.names(feed.key)}
    for table in service.tables:
        for path in sorted(table.named):
            if path.startswith(object_key.PREFIX) and path not in declared:
                name = path.removeprefix(object_key.PREFIX)
                yield Problem(at(table), f"the keys do not contain {path}", f'such as {where} = "in/{{{name}}}/"')


def _of_no_feed(service: Service, at: Place) -> Iterable[Problem]:
    known = sorted(feed.name for feed in service.all_feeds)
    for table in service.tables:
        wanted = table.where.get("@feed", Condition(exists=True))
        for name in sorted({*wanted.one_of, *wanted.none_of} - set(known)):
            hint = meant(name, known, f"known feeds: {', '.join(known)}")
            yield Problem(f"{at(table)}: where.@feed", f"no feed has the name {name}", hint)
