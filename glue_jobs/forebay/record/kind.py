"""The kinds of columns: the few types that JSON has, in the words of Delta's schemas.

A kind is a leaf's name, a `Struct`, a `Many` (an array), or `Fixed`. Leaves are `boolean`, `long`, `double`, `string`, and
`json` for text that holds objects. `Fixed` is a declared type that no JSON value has. In and out: Delta's schema JSON; out:
Arrow types.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

import pyarrow as pa

Leaf = str
LEAVES = {"boolean": pa.bool_(), "long": pa.int64(), "double": pa.float64(), "string": pa.string(), "json": pa.string()}

JSON = "forebay.json"
"""In the metadata of a column of text: it holds objects that have too many different keys to be structs."""

SPELLED = "forebay.fields"
"""In a column's metadata: the keys, as the records spell them, where they are not the column's name."""

Path = tuple[str, ...]


@dataclass(frozen=True)
class Field:
    """A column, or a field inside of one. `spelled` are the keys that were seen, where they differ from the name."""

    name: str
    kind: Kind
    spelled: frozenset[str] = frozenset()

    def as_json(self) -> dict[str, Any]:
        metadata: dict[str, Any] = {SPELLED: sorted(self.spelled)} if self.spelled else {}
        if self.kind == "json":
            metadata[JSON] = True
        return {"name": self.name, "type": json_of(self.kind), "nullable": True, "metadata": metadata}


@dataclass(frozen=True)
class Struct:
    """Fields by the name in lowercase letters; each has its own spelling in the table."""

    fields: Mapping[str, Field] = field(default_factory=dict)


@dataclass(frozen=True)
class Many:
    """An array of this."""

    of: Kind


@dataclass(frozen=True)
class Fixed:
    """A type that did not come from the data: a timestamp, a decimal, a map. Values for it go to `_rescued`."""

    json: Any


Kind = Leaf | Struct | Many | Fixed


def leaves(kind: Kind, path: Path = ()) -> Iterator[tuple[Path, Kind]]:
    """All innermost fields, by name; an array's elements are named `[]`."""
    if isinstance(kind, Struct):
        for name, inner in kind.fields.items():
            yield from leaves(inner.kind, (*path, name))
    elif isinstance(kind, Many):
        yield from leaves(kind.of, (*path, "[]"))
    else:
        yield path, kind


def kind_of_json(json: Any) -> Kind:
    """From Delta's schema JSON."""
    if isinstance(json, str):
        return json if json in LEAVES and json != "json" else Fixed(json)
    if json["type"] == "struct":
        return Struct({f["name"].lower(): _field_of_json(f) for f in json["fields"]})
    if json["type"] == "array":
        of: Kind = kind_of_json(json["elementType"])
        return Fixed(json) if isinstance(of, Fixed) else Many(of)
    return Fixed(json)


def columns_of_json(json: Any) -> Struct:
    """The columns of a whole table."""
    kind = kind_of_json(json)
    assert isinstance(kind, Struct)
    return kind


def _field_of_json(json: Mapping[str, Any]) -> Field:
    metadata = json.get("metadata", {})
    kind = "json" if metadata.get(JSON) and json["type"] == "string" else kind_of_json(json["type"])
    return Field(json["name"], kind, frozenset(metadata.get(SPELLED, ())))


def json_of(kind: Kind) -> Any:
    """The columns as Delta's schema JSON."""
    if isinstance(kind, Struct):
        return {"type": "struct", "fields": [f.as_json() for f in kind.fields.values()]}
    if isinstance(kind, Many):
        return {"type": "array", "elementType": json_of(kind.of), "containsNull": True}
    if isinstance(kind, Fixed):
        return kind.json
    return "string" if kind == "json" else kind


def arrow_type(kind: Kind) -> pa.DataType:
    """The Arrow type of a kind that contains nothing `Fixed`."""
    if isinstance(kind, Struct):
        return pa.struct([(f.name, arrow_type(f.kind)) for f in kind.fields.values()])
    if isinstance(kind, Many):
        return pa.list_(pa.field("element", arrow_type(kind.of)))
    assert isinstance(kind, str)
    return LEAVES[kind]
