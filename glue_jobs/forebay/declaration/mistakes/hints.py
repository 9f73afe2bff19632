"""Suggestions: the correct name of a misspelt setting, the place where a setting belongs, our word for a value.

In: the location of a mistake in a declaration, and the model that it broke. Out: a suggestion, or nothing.
"""

from __future__ import annotations

import difflib
from collections.abc import Iterator, Sequence
from functools import lru_cache
from typing import Any, Literal, get_args, get_origin

from pydantic import BaseModel

from forebay.refusal import Location

Names = tuple[str, ...]

MEANT = {
    "hashed": "token",
    "hash": "token",
    "pseudonymised": "token",
    "pseudonymized": "token",
    "tokenized": "token",
    "encrypted": "token",
    "removed": "dropped",
    "deleted": "dropped",
    "redacted": "masked",
    "hidden": "masked",
    "jsonl": "json",
    "ndjson": "json",
    "jsonlines": "json",
    "json-lines": "json",
    "text": "lines",
    "txt": "lines",
    "upsert": "merge",
    "latest": "replace",
    "overwrite": "replace",
}
"""Values that have another name here."""

MEANT_KEYS = {
    "eq": "one_of",
    "in": "one_of",
    "is": "one_of",
    "ne": "not",
    "not_in": "not",
    "gt": "above",
    "gte": "at_least",
    "lt": "below",
    "lte": "at_most",
    "like": "prefix",
    "starts_with": "prefix",
    "regex": "matches",
    "null": "exists",
    "notnull": "exists",
    "not_null": "exists",
    "format": "formats",
    "path": "prefix",
    "source": "path",
    "sql": "expression",
    "filter": "where",
    "order_by": "sequence_by",
    "primary_key": "keys",
    "fields": "personal",
    "otherwise": "on_violation",
}
"""Settings that have another name where they were written."""


OF_DEPLOYMENT = (
    "freshness",
    "workers",
    "worker_type",
    "keep_landed_days",
    "landing_bucket",
    "budget_usd_month",
    "alarm_email",
)
"""Settings of the deployment that people look for in the declarations."""


LOOKS = {
    "Table": {
        "columns": 'columns = [{ name = "day", type = "date" }]',
        "where": 'where = { event = "purchase" }',
        "dedupe": 'dedupe = { by = ["event_id"] }',
        "expectations": 'expectations = { is_paid = "amount > 0" }',
        "event_time": 'event_time = { column = "at", otherwise = "landed" }',
        "merge": 'merge = { into = "players", keys = ["player"], sequence_by = ["at"] }',
        "compaction": 'compaction = { way = "rewrite" }',
        "undeclared": 'undeclared = { become = "rescued" }',
    },
    "Rollup": {
        "columns": 'columns = { revenue = "sum(amount)" }',
        "group_by": 'group_by = { day = "date(at)" }',
    },
}
"""Settings that people write in another shape, each in ours."""


def hint_for(model: type[BaseModel], location: Location, what: str, given: Any, *, within: type[BaseModel]) -> str:
    """`within` is the whole declaration, `model` the section of it that the location begins in."""
    names = names_of(location)
    if what == "is unknown":
        return _for_key(model, names, within, given)
    looks = LOOKS.get(model.__name__, {})
    if names and what.startswith("must be a list") and isinstance(given, str) and names[-1] not in looks:
        return f'write {names[-1]} = ["{given}"]'
    if names and what.startswith(("must be a list", "must be a table of")) and names[0] in looks:
        return f"such as {looks[names[0]]}"
    meant = value_meant(model, names, given)
    return f"did you mean {meant}?" if meant and what.startswith("must be") else ""


def value_meant(model: type[BaseModel], names: Names, given: Any) -> str | None:
    """The allowed value that this one seems to stand for."""
    choices = _choices(model, names)
    if not isinstance(given, str) or not choices:
        return None
    if MEANT.get(given.lower()) in choices:
        return MEANT[given.lower()]
    return next(iter(difflib.get_close_matches(given.lower(), choices, 1)), None)


def _for_key(model: type[BaseModel], names: Names, within: type[BaseModel], given: Any) -> str:
    *around, key = names
    if within is not model and names in (("tables",), ("rollups",)):
        inner = next(iter(given), "") if isinstance(given, dict) else ""
        written = f"[{inner}] in place of [{key}.{inner}]" if inner else f"its settings without [[{key}]]"
        return f"this is one {model.__name__.lower()} already: write {written}"
    if key in OF_DEPLOYMENT:
        return f"it is a setting of the deployment: cdk deploy -c {key}=..."
    here = [known for path, known in _keys(model) if path == _path_of(around)]
    if MEANT_KEYS.get(key) in here:
        return f"did you mean {MEANT_KEYS[key]}?"
    exact = [path for path, known in _keys(model) if known == key]
    if () in exact:
        return "belongs outside this section, before its header"
    if exact:
        return "belongs " + " or ".join(dict.fromkeys(map(_inside, exact)))
    outside = [path for path, known in _keys(within) if known == key and path[:1] != ("tables",)]
    if within is not model and outside:
        return "belongs in service.toml" + (f", inside `{outside[0][0]}`" if outside[0] else ", above all [[tables]]")
    if near := difflib.get_close_matches(key, here, 1):
        return f"did you mean {near[0]}?"
    if around and here:
        return f"the settings here are {', '.join(here)}"
    elsewhere = {known: path for path, known in _keys(model)}
    near = difflib.get_close_matches(key, elsewhere, 1)
    if not near:
        return ""
    place = elsewhere[near[0]]
    return f"did you mean {near[0]}, {_inside(place) if place else 'outside this section'}?"


def _path_of(around: Sequence[str]) -> Names:
    """The path without names of the user's own: `where` and `expectations` have one for each field or rule."""
    return (around[0],) if around and around[0] in ("where", "expectations") else tuple(around)


def _inside(path: Names) -> str:
    if path[0] in ("tables", "feeds"):
        return f"inside one of the [[{path[0]}]]" + (f", in `{path[1]} = {{ ... }}`" if len(path) > 1 else "")
    if path[0] in ("columns", "personal"):
        return f"inside one of the `{path[0]} = [{{ ... }}]`"
    return f"inside `{'.'.join(path)} = {{ ... }}`"


def names_of(location: Location) -> Names:
    """The names of settings, without positions in lists."""
    return tuple(str(step) for step in location if isinstance(step, str))


@lru_cache(maxsize=100)
def _keys(model: type[BaseModel], above: Names = ()) -> list[tuple[Names, str]]:
    """Every setting in a declaration, and the names of the sections around it."""
    found: list[tuple[Names, str]] = []
    for name, field in model.model_fields.items():
        found.append((above, field.alias or name))
        for inner in _models(field.annotation):
            found += _keys(inner, (*above, name))
    return found


def _models(annotation: Any) -> Iterator[type[BaseModel]]:
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        yield annotation
    for part in get_args(annotation):
        yield from _models(part)


def _choices(model: type[BaseModel], names: Names) -> list[str]:
    annotation: Any = model
    for name in names:
        inner = next((m for m in _models(annotation) if name in m.model_fields), None)
        if inner is not None:
            annotation = inner.model_fields[name].annotation
    return [choice for choice in _literals(annotation) if isinstance(choice, str)]


def _literals(annotation: Any) -> Iterator[Any]:
    if get_origin(annotation) is Literal:
        yield from get_args(annotation)
    else:
        for part in get_args(annotation):
            yield from _literals(part)
