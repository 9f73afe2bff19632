"""A draft of declarations, made from samples: a start that a person reads and changes.

In: samples. Out: the text of a `service.toml`, with a comment for each choice. It finds the array in which documents have
their records. It finds the field that distinguishes kinds of records, and makes a table for each of its values. It declares
the type of each scalar field, and chooses event time and partitions. All sample records fit it. Samples without a record are
`InvalidConfiguration`.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from forebay.content.unpack import without_archive_suffix
from forebay.counted import counted
from forebay.declaration.column import Column
from forebay.declaration.column_name import family_of, safe_name, taken_key
from forebay.declaration.loading import parse_service
from forebay.declaration.path import Path
from forebay.errors import InvalidConfiguration
from forebay.operate.trying.samples import Samples, having_key, name_of, read_samples
from forebay.operate.trying.sql_names import unquoted
from forebay.record.declared import fits
from forebay.record.field import text_at
from forebay.record.number import read_json

KINDS = ("event", "event_type", "eventtype", "event_name", "eventname", "type", "kind", "action", "detail_type", "name")
"""Names of fields that tell kinds of records apart, as columns are named; the first that fits is taken."""
MOST_KINDS = 20
TIMES = (
    "event_time",
    "eventtime",
    "timestamp",
    "x_timestamp",
    "time",
    "occurred_at",
    "created_at",
    "createdat",
    "ts",
    "at",
)
IDS = ("event_id", "eventid", "insert_id", "x_insert_id", "message_id", "messageid", "uuid", "id")
ARRAYS = ("records", "log_events", "logevents", "events", "batch", "messages", "data", "results", "rows")
"""Names of arrays that hold the records of a document, as columns are named. One of another name holds them where they have
nothing else: an order has items, too."""
LOOKS_LIKE_A_TIME = re.compile(r"\d{4}-\d\d-\d\d([T ].*)?")
CSV = (".csv", ".tsv")
NUMBER, BOOLEAN = re.compile(r"-?(0|[1-9][0-9]*)(\.[0-9]+)?"), re.compile("true|false")
SCALARS = (str, bool, int, float)
MANY_KEYS = 100
"""An object with more keys than this over all samples has identifiers for keys."""


@dataclass(frozen=True)
class _Field:
    path: Path
    column: Column


UNITS = {10: "s", 13: "ms"}
"""The unit of a number that counts from 1970, by the number of its digits today."""


def draft(places: Sequence[str], name: str) -> tuple[str, list[str]]:
    """The text of a service of this name for the samples at these places, and what of them it does not know."""
    samples = read_samples(places)
    return _drafted(places, samples, name), left_out(samples)


def left_out(samples: Samples) -> list[str]:
    """Files that were not read, and records that were refused, with the reason of each."""
    files = [f"{name_of(end.file)}: {end.reason}: {end.detail}" for end in samples.ends if not end.lands]
    records = [f"{sample.place}: {sample.reason}: {sample.detail}" for sample in samples.records if sample.reason]
    sample = (
        [f"{counted(samples.left_out, 'further file')}: the others are a sample of them"] if samples.left_out else []
    )
    return sample + files + records


def _drafted(places: Sequence[str], samples: Samples, name: str) -> str:
    array = _array_of(_objects(samples))
    if array is None:
        return draft_of(samples, name, [*_other_array([*_objects(samples)])])
    envelope = _envelope_of(array)
    inside = parse_service({"service.toml": "\n".join(['name = "s"', *envelope, "[[tables]]", 'name = "records"'])})
    return draft_of(read_samples(places, inside), name, envelope)


def draft_of(samples: Samples, name: str, envelope: Sequence[str] = ()) -> str:
    """The text of a service of this name; the lines of its envelope say how these records were found."""
    records = list(_objects(samples))
    if not records:
        raise InvalidConfiguration.one(
            "--from", "holds no record that is a JSON object", "`forebay try` says what it contains"
        )
    if all(without_archive_suffix(sample.file.key).endswith(CSV) for sample in samples.records):
        records = _typed(records)
    kind = _kind_of(records)
    lines = [
        f"# Drafted from {counted(len(records), 'sample record')}. "
        "Read it, change it, and try it: forebay try SAMPLE --service FOLDER",
        f"name = {json.dumps(name)}  # a part of every transaction, so it must not change later",
        *(_why_one_table(records) if kind is None else ()),
        *envelope,
    ]
    piles: dict[str | None, list[Any]] = {}
    for record in records:
        piles.setdefault(None if kind is None else text_at(record, kind), []).append(record)
    names: set[str] = set()
    for value, pile in sorted(piles.items(), key=lambda one: (one[0] is None, one[0] or "")):
        lines += ["", *_table_of(kind, value, pile, names)]
    return "\n".join(lines) + "\n"


def _array_of(documents: Iterable[Mapping[str, Any]]) -> str | None:
    """The one array of objects that all documents have, if it is for their records. Most samples have none in the first one."""
    array, alone = None, True
    for document in documents:
        arrays = [key for key, value in document.items() if _holds_records(value)]
        if len(arrays) != 1 or array not in (None, arrays[0]):
            return None
        (array,) = arrays
        alone = alone and len(document) == 1
    return array if array is not None and (alone or safe_name(array) in ARRAYS) else None


def _other_array(documents: Sequence[Mapping[str, Any]]) -> Iterator[str]:
    """For a person who knows more: the first array that has nothing but objects in all documents."""
    for key in documents[0] if documents else ():
        arrays = [document.get(key) for document in documents]
        if any(arrays) and all(array == [] or _holds_records(array) for array in arrays):
            named = json.dumps(str(Path("record", (key,))), ensure_ascii=False)
            yield f"# The objects in {named} stay within their record. To make each of them a record:"
            yield f"# envelope = {{ records = {named} }}"
            return


def _holds_records(value: Any) -> bool:
    return isinstance(value, list) and bool(value) and all(isinstance(one, dict) for one in value)


def _envelope_of(array: str) -> list[str]:
    note = "# Each object of this array is a record, with what surrounds it as @parent. Remove this if documents are records."
    return ["", "[envelope]", note, f"records = {json.dumps(str(Path('record', (array,))), ensure_ascii=False)}"]


def _typed(rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """CSV has texts alone. Where all of a column are written as numbers are in JSON, or as booleans, they are taken for some:
    `007` and `1e5` are not."""
    numbers, booleans = (
        {key for key in dict.fromkeys(key for row in rows for key in row) if _all_are(pattern, rows, key)}
        for pattern in (NUMBER, BOOLEAN)
    )
    made = numbers | booleans
    return [{key: read_json(value) if key in made and value else value for key, value in row.items()} for row in rows]


def _all_are(pattern: re.Pattern[str], rows: list[dict[str, Any]], key: str) -> bool:
    texts = [row[key] for row in rows if row.get(key) is not None]
    return bool(texts) and all(pattern.fullmatch(text) for text in texts)


def service_name(folder: str) -> str:
    """A service's name that a folder's name suggests."""
    plain = re.sub(r"[^a-z0-9]+", "-", folder.lower()).strip("-")
    return (plain if plain[:1].isalpha() else f"s-{plain}")[:31].strip("-")


def _objects(samples: Samples) -> Iterator[dict[str, Any]]:
    for sample in samples.records:
        try:
            record = read_json(sample.text) if sample.reason is None else None
        except ValueError:
            continue
        if isinstance(record, dict):
            yield record


def _kind_of(records: Sequence[Mapping[str, Any]]) -> Path | None:
    """The field whose few values tell kinds of records apart, if there is one."""
    fields = _possible_kinds(records)
    fits = (key for key, values in fields if len({*values}) <= min(MOST_KINDS, max(1, len(values) // 2)))
    return next((Path("record", (key,)) for key in fits), None)


def _possible_kinds(records: Sequence[Mapping[str, Any]]) -> Iterator[tuple[str, list[str]]]:
    """Fields with such a name whose values are all texts, and these."""
    named = {safe_name(key): key for record in records for key in record}
    for key in (named[name] for name in KINDS if name in named):
        values = [value for record in records if (value := record.get(key)) is not None]
        if values and all(type(value) is str and value for value in values):
            yield key, values


def _why_one_table(records: Sequence[Mapping[str, Any]]) -> Iterator[str]:
    """For a person whose sample is too small: a field that repeats its values, but seldom."""
    for key, values in _possible_kinds(records):
        kinds = len({*values})
        if kinds < len(values) and kinds <= MOST_KINDS:
            yield (
                f"# {json.dumps(key, ensure_ascii=False)} has {counted(kinds, 'value')} in {counted(len(values), 'record')}. "
                "Draft from more samples to get a table for each of them."
            )
            return


def _table_of(kind: Path | None, value: str | None, records: list[Any], names: set[str]) -> Iterator[str]:
    name = (
        "others" if kind is not None and value is None else "records" if value is None else unquoted(safe_name(value))
    )
    while name in names:
        name += "_2"
    names.add(name)
    fields = list(_fields(records))
    yield "[[tables]]"
    yield f"name = {json.dumps(name)}  # {len(records):,} of the samples"
    if kind is not None and value is not None:
        yield f"where = {{ {json.dumps(str(kind), ensure_ascii=False)} = {json.dumps(value, ensure_ascii=False)} }}"
    time = _preferred(TIMES, [field for field in fields if field.column.type == "timestamp"])
    day = time is not None and all(field.column.name != "day" for field in fields)
    if fields:
        yield "# These columns keep their type. Other fields become columns automatically."
        yield "columns = ["
        yield from (f"  {_written(field)}," for field in fields)
        if time is not None and day:
            yield f'  {{ name = "day", type = "date", expression = "to_date({time.column.name})" }},'
        yield "]"
    if time is not None:
        yield "# When a record happened. If it has no readable time, the column gets the time when its file landed."
        yield f'event_time = {{ column = "{time.column.name}", otherwise = "landed" }}'
        if day:
            yield "# Queries about some days read those days' files only. Remove this for a table of less than 1 GB a year."
            yield 'partitions = ["day"]'
    ids = [field for field in fields if field.column.name in IDS]
    if (known := _preferred(IDS, [field for field in ids if _is_unique(field, records)])) is not None:
        yield f"# {known.path} differs in all samples. If it identifies a record, those that come again can be dropped:"
        yield f'# dedupe = {{ by = ["{known.column.name}"], days = 3 }}'


def _fields(records: Sequence[Mapping[str, Any]]) -> Iterator[_Field]:
    """The scalar fields, and objects whose keys are identifiers; of keys that make one name, the first."""
    taken: set[str] = set()
    having = having_key(records)
    for key in dict.fromkeys(key for record in records for key in record):
        some = [records[at] for at in having[family_of(key)]]
        read_from = [(record, taken_key(record, key)) for record in some]  # a twin replaces the key
        values = [record[one] for record, one in read_from if one is not None and record[one] is not None]
        name, path = safe_name(key), Path("record", (key,))
        kind = _type_of(name, values)
        if kind is not None and name not in taken:
            taken.add(name)
            yield _Field(path, Column.model_validate({"name": name, "path": str(path), **kind}))


def _type_of(name: str, values: list[Any]) -> dict[str, str] | None:
    """None where the field is better left to become what its values are."""
    if not values:
        return None
    if all(isinstance(value, dict) for value in values):
        return {"type": "map"} if len({key for value in values for key in value}) > MANY_KEYS else None
    if not all(isinstance(value, SCALARS) for value in values):
        return None
    if all(isinstance(value, bool) for value in values):
        return {"type": "boolean"}
    texts = [text_at({"x": value}, Path("record", ("x",))) or "" for value in values]
    candidates: list[dict[str, str]] = [{"type": "timestamp"}] if all(map(LOOKS_LIKE_A_TIME.fullmatch, texts)) else []
    if not any(isinstance(value, str | bool) for value in values):
        digits = {len(text.partition(".")[0]) for text in texts}
        if name in TIMES and len(digits) == 1 and (unit := UNITS.get(max(digits))):
            candidates.append({"type": "timestamp", "unit": unit})
        candidates += [{"type": "long"}, {"type": "double"}]
    return next((kind for kind in candidates if _all_fit(texts, kind)), {"type": "string"})


def _all_fit(texts: list[str], kind: dict[str, str]) -> bool:
    column = Column.model_validate({"name": "x", **kind})
    return all(fits(text, column) for text in texts)


def _preferred(names: Sequence[str], fields: list[_Field]) -> _Field | None:
    return next((field for name in names for field in fields if field.column.name == name), None)


def _is_unique(field: _Field, records: list[Any]) -> bool:
    texts = [text_at(record, field.path) for record in records]
    return None not in texts and len(set(texts)) == len(texts) > 1


def _written(field: _Field) -> str:
    parts = [f'name = "{field.column.name}"']
    if field.column.type != "string":
        parts.append(f'type = "{field.column.type}"')
    if field.column.unit is not None:
        parts.append(f'unit = "{field.column.unit}"')
    if str(field.path) != field.column.name:
        parts.append(f"path = {json.dumps(str(field.path), ensure_ascii=False)}")
    return "{ " + ", ".join(parts) + " }"
