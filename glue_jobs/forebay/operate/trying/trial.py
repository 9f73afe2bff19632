"""A trial: the tables that sample files would become under given declarations, found without Spark and without a lake.

In: samples and a service. Out: a `Trial`: the rows and columns of each table; the rescued, parked and refused ones. The rules
are the job's own: its reader (`content`), its routing (`record.route`), its columns (`record.growth`, `record.conform`). Only
Spark evaluates SQL, so a trial names the SQL that it did not evaluate.
"""

from __future__ import annotations

import itertools
import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from forebay.batch.reasons import BAD_TABLE_NAME, REASONS, TRANSFORM
from forebay.content.end import FileEnd
from forebay.counted import counted
from forebay.declaration.column import Column
from forebay.declaration.column_name import family_of
from forebay.declaration.path import parse_path
from forebay.declaration.service import Service
from forebay.declaration.table import Table
from forebay.declared_sql.columns import rules_of
from forebay.landed_file import LandedFile
from forebay.ledger.entry import IGNORED
from forebay.ledger.ignored import RULES
from forebay.operate.trying.samples import Sample, Samples, having_key, name_of
from forebay.operate.trying.trial_dedupe import duplicates_in, is_known
from forebay.operate.trying.trial_merge import TrialState, state_of, unplaced
from forebay.operate.trying.trial_transform import TrialTransform, transformed
from forebay.privacy.together import NOT_KEPT
from forebay.record.conform import Records, writable
from forebay.record.declared import fits
from forebay.record.growth import grown
from forebay.record.kind import Struct, leaves
from forebay.record.number import problem_of, read_json
from forebay.record.route import Route, route_of, text_of
from forebay.record.typed import converted

EXAMPLES = 3


@dataclass(frozen=True)
class TrialColumn:
    """`source` is the path that a declared column is read from. `filled` counts the rows that have a value, and is None where
    only Spark knows. `misfits` are values that do not fit its type."""

    name: str
    type: str
    source: str | None = None
    filled: int | None = None
    misfits: int = 0
    example: str | None = None


@dataclass(frozen=True)
class TrialTable:
    """`rescued` rows keep something in `_rescued`. `duplicates` are places of records that `dedupe` drops, which make no rows.
    `unchecked` are the rules that a trial does not judge: SQL, and what depends on when a file lands. `state` is what a merge
    would make of the rows. `transformed` are rows that the table's function changed, each by its place and its changes.
    `at_landing` rows have no readable time, and get the one at which their file lands."""

    name: str
    rows: int
    columns: tuple[TrialColumn, ...]
    rescued: int
    examples: tuple[str, ...]
    unchecked: tuple[str, ...]
    duplicates: tuple[str, ...] = ()
    state: TrialState | None = None
    transformed: tuple[str, ...] = ()
    at_landing: int = 0


@dataclass(frozen=True)
class Trial:
    """`fates` says for each record, by its place, which table takes it, or `parked`, `dropped` (also as a duplicate) or
    `refused`. `left_out` counts further files, where the others are a sample."""

    files: tuple[dict[str, Any], ...]
    tables: tuple[TrialTable, ...]
    parked: tuple[dict[str, Any], ...]
    refused: tuple[dict[str, Any], ...]
    fates: Mapping[str, str] = field(default_factory=dict)
    left_out: int = 0

    @property
    def is_clean(self) -> bool:
        """Whether every file was read and no record refused."""
        return not self.refused and all(file["outcome"] in ("loaded", "empty", IGNORED) for file in self.files)

    def as_json(self) -> dict[str, Any]:
        facts = asdict(self)
        facts.pop("fates")
        return facts


def try_out(service: Service, samples: Samples) -> Trial:
    """Nothing is written anywhere."""
    taken: dict[tuple[int, str], list[tuple[Sample, Any]]] = {}
    parked, refused, fates = [], [], {}
    broken: Counter[LandedFile] = Counter()
    for sample in samples.records:
        record, reason, detail = _read(sample)
        table, fate = None, "parked"
        if reason is None:
            route = route_of(service, record, sample.origin)
            table, reason = route.table, route.reason
            if table is not None and route.declared is not None:
                reason = unplaced(service, service.tables[route.declared], record, sample.origin)
            if table is not None and route.declared is not None and reason is None:
                taken.setdefault((route.declared, table), []).append((sample, record))
            elif route.fate == "drop":
                fate = "dropped"
            elif reason is None:
                parked.append({"place": sample.place, "record": sample.text})
        if reason is not None:
            detail = detail or _why(service, reason, route_of(service, record, sample.origin), record, sample)
            text = NOT_KEPT if record is None and service.personal else sample.text
            refused.append({"place": sample.place, "reason": reason, "detail": detail, "record": text})
            broken[sample.file] += sample.reason is None
        fates[_known_as(sample)] = f"refused, {reason}" if reason else table or fate
    tables = []
    for (number, name), rows in sorted(taken.items(), key=lambda one: one[0]):
        declared = service.tables[number]
        done = transformed(service, declared, name, rows)
        for at, why in done.refused.items():
            one = rows[at][0]
            refused.append({"place": one.place, "reason": TRANSFORM, "detail": why, "record": one.text})
            broken[one.file] += 1
            fates[_known_as(one)] = f"refused, {TRANSFORM}"
        tables.append(_tried(service, declared, name, rows, done, fates))
    files = [_facts_of(end, broken[end.file]) for end in samples.ends]
    files += [_not_read(file, rule) for file, rule in samples.ignored]
    return Trial(tuple(files), tuple(tables), tuple(parked), tuple(refused), fates, samples.left_out)


def differences(before: Trial, after: Trial) -> list[str]:
    """The effects of other declarations on the same samples, as sentences."""
    return [*_moved(before, after), *_other_tables(before, after)]


def _read(sample: Sample) -> tuple[Any, str | None, str | None]:
    """The record, or why there is none."""
    if sample.reason is not None:
        return None, sample.reason, sample.detail
    try:
        return read_json(sample.text), None, None
    except ValueError as broken:
        return None, problem_of(sample.text), str(broken)


def _known_as(sample: Sample) -> str:
    return f"{sample.place} #{sample.byte_offset}"


def _tried(
    service: Service,
    table: Table,
    name: str,
    all_rows: Sequence[tuple[Sample, Any]],
    done: TrialTransform,
    fates: dict[str, str],
) -> TrialTable:
    again = duplicates_in(service, table, all_rows)
    fates |= {_known_as(all_rows[at][0]): f"dropped as a duplicate in {name}" for at in again}
    rows = [row for at, row in enumerate(all_rows) if at not in again and at not in done.refused]
    rules = rules_of(table)
    records = Records(pa.array([sample.text for sample, _ in rows], pa.string()), rules)
    columns = grown(Struct(), records.shape(), rules)
    conformed = records.conformed(writable(columns))
    rescued = dict(zip(conformed.rows.to_pylist(), conformed.rescued.to_pylist(), strict=True))
    having = having_key([record for _, record in rows])
    declared = [_declared(service, column, rows, having) for column in table.columns if column.expression is None]
    odd = {at for _, places in declared for at in places} | {at for at, text in rescued.items() if text is not None}
    found = [
        TrialColumn(".".join(path).replace(".[]", "[]"), str(kind), filled=_filled(conformed.columns, path))
        for path, kind in leaves(columns)
    ]
    filled = {c.name: done.filled.get(c.name, c.filled) for c, _ in declared}
    derived = [TrialColumn(c.name, c.type, c.expression) for c in table.columns if c.expression is not None]
    return TrialTable(
        name=name,
        rows=len(rows),
        columns=(*(replace(c, filled=filled[c.name]) for c, _ in declared), *derived, *found),
        rescued=len(odd),
        examples=tuple(f"{rows[at][0].place}: {rescued[at]}" for at in sorted(odd) if rescued.get(at))[:EXAMPLES],
        unchecked=tuple(_unchecked(table)),
        duplicates=tuple(all_rows[at][0].place for at in sorted(again)),
        state=state_of(service, table, name, rows),
        transformed=tuple(f"{all_rows[at][0].place}: {change}" for at, change in sorted(done.changed.items())),
        at_landing=_at_landing(table, len(rows), filled),
    )


def _at_landing(table: Table, rows: int, filled: Mapping[str, int | None]) -> int:
    when = table.event_time
    there = filled.get(when.column) if when is not None and when.otherwise == "landed" else None
    return 0 if there is None else rows - there


def _filled(columns: pa.StructArray, path: Sequence[str]) -> int:
    """For a field of a list's elements, the rows that have the list."""
    array = columns
    for name in itertools.takewhile(lambda step: step != "[]", path):
        array = pc.struct_field(array, name)
    return int(len(array) - array.null_count)


def _why(service: Service, reason: str, route: Route, record: Any, sample: Sample) -> str:
    """The reason why a readable record was refused."""
    if reason != BAD_TABLE_NAME or route.declared is None:
        return REASONS.get(reason, "")
    table = service.tables[route.declared]
    texts = {path: text_of(service, path, record, sample.origin) or "" for path in table.fields}
    wrong = {path: text for path, text in texts.items() if re.fullmatch(table.values, text) is None}
    values = " and ".join(f"{path} is {text!r}" for path, text in wrong.items())
    return f"table {table.name}: {values}, which does not match the pattern {table.values}"


def _declared(
    service: Service, column: Column, rows: Sequence[tuple[Sample, Any]], having: Mapping[str, Sequence[int]]
) -> tuple[TrialColumn, list[int]]:
    """The column, and the rows whose value does not fit it. Rows without the key are not looked at: columns times rows are
    many."""
    path = parse_path(column.source)
    key = path.steps[0] if path.of_record else None
    places = having.get(family_of(key), ()) if isinstance(key, str) else range(len(rows))
    texts = {at: text_of(service, column.source, rows[at][1], rows[at][0].origin) for at in places}
    odd = [at for at, text in texts.items() if text is not None and not fits(text, column)]
    there = sum(text is not None for text in texts.values())
    empty = sum(not _has_value(texts[at] or "", column) for at in odd)
    example = f"{rows[odd[0]][0].place}: {texts[odd[0]]}" if odd else None
    return TrialColumn(column.name, column.type, column.source, there - empty, len(odd), example), odd


def _has_value(misfit: str, column: Column) -> bool:
    """Whether the column has a part of it, such as the nearest double, or the declared fields of a struct."""
    return not column.formats and converted(misfit, column) is not None


def _unchecked(table: Table) -> Iterator[str]:
    if table.where_sql is not None:
        yield f"where_sql: {table.where_sql}"
    yield from (f"column {c.name}: {c.expression}" for c in table.columns if c.expression is not None)
    if table.dedupe is not None and not is_known(table):
        yield f"dedupe by {', '.join(table.dedupe.by)}"
    if table.merge is not None and table.transform is not None:
        yield f"merge into {table.merge.into}, which is of transformed rows"
    if table.merge is not None and table.merge.delete_when is not None:
        yield f"merge.delete_when: {table.merge.delete_when}"
    yield from (f"expectation {name}: {expectation.check}" for name, expectation in table.expectations.items())
    if (when := table.event_time) is not None:
        bounds = {"oldest_days": when.oldest_days, "ahead_hours": when.ahead_hours}
        yield from (f"event_time.{name}: {bound:g}" for name, bound in bounds.items() if bound is not None)
    yield from (f"partition_values.{name}: {pattern}" for name, pattern in table.partition_values.items())


def _facts_of(end: FileEnd, broken: int) -> dict[str, Any]:
    """`broken` records were read, and refused after that."""
    counts = {"records": end.documents - broken, "refused": end.refused + broken}
    facts = {"file": name_of(end.file), "outcome": end.outcome, **counts}
    return {**facts, **({"reason": end.reason, "detail": end.detail} if end.reason else {})}


def _not_read(file: LandedFile, rule: str) -> dict[str, Any]:
    nothing = {"outcome": IGNORED, "records": 0, "refused": 0}
    return {"file": name_of(file), **nothing, "reason": rule, "detail": RULES[rule]}


def _moved(before: Trial, after: Trial) -> Iterator[str]:
    """Records that go elsewhere, counted by where from and where to."""
    moves: dict[tuple[str, str], list[str]] = {}
    for place, fate in before.fates.items():
        if (now := after.fates.get(place, "no record")) != fate:
            moves.setdefault((fate, now), []).append(place.partition(" #")[0])
    for place, fate in after.fates.items():
        if place not in before.fates:
            moves.setdefault(("no record", fate), []).append(place.partition(" #")[0])
    for (old, new), places in sorted(moves.items()):
        yield f"{counted(len(places), 'record')}: {old} -> {new}, such as {places[0]}"


def _other_tables(before: Trial, after: Trial) -> Iterator[str]:
    had, has = ({table.name: table for table in trial.tables} for trial in (before, after))
    for name in sorted(had.keys() | has.keys()):
        if name not in has or name not in had:
            yield f"table {name}: {'no longer gets records' if name not in has else 'is new'}"
            continue
        old, new = ({column.name: column.type for column in tables[name].columns} for tables in (had, has))
        yield from (f"table {name}: column {c} {new[c]} is new" for c in new if c not in old)
        yield from (f"table {name}: column {c} is gone" for c in old if c not in new)
        yield from (f"table {name}: column {c}: {old[c]} -> {new[c]}" for c in new if old.get(c, new[c]) != new[c])
        if made := [change for change in has[name].transformed if change not in had[name].transformed]:
            yield f"table {name}: {counted(len(made), 'record')} transformed otherwise, such as {made[0]}"
        elif kept := [change for change in had[name].transformed if change not in has[name].transformed]:
            yield f"table {name}: {counted(len(kept), 'record')} no longer transformed, such as {kept[0]}"
        if had[name].rescued != has[name].rescued:
            yield f"table {name}: rows with something rescued: {had[name].rescued} -> {has[name].rescued}"
