"""Decides the columns that a table gets, from its current columns and the new values, independent of their order.

In: a table's columns (`Struct`), a `Shape`, the `Rules` of its declaration. Out: the columns, including added ones; none is
ever removed or changed, because a reader of version 1 cannot follow that. `decided` is the kind that a field would get from
all its values; `forebay schema settle` brings a table there.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from forebay.record.kind import Field, Kind, Many, Path, Struct, leaves
from forebay.record.name import free_name
from forebay.record.shape import Shape

RARE = 100
"""A type is dirt, and decides nothing, if fewer than one in this many values of a field has it: these are rescued."""


@dataclass(frozen=True)
class Rules:
    """The rules of a declaration for the columns that come from data."""

    depth: int = 5
    """Objects nest as structs down to this depth; deeper ones are JSON text."""
    flatten: str | None = None
    """Objects become columns of their own instead, with their names joined by this."""
    new_columns: int = 1000
    """Columns that one batch may add, nested fields counted."""
    columns: int = 1000
    """Columns of a table in all."""
    keys: int = 200
    """Different keys that a struct may have; an object with more is JSON text."""
    undeclared: str = "columns"
    """For undeclared fields: columns, rescue or ignore."""
    declared: Mapping[str, Any] = field(default_factory=dict)
    """The fields that are read elsewhere, as a tree of keys; an empty tree is a whole field."""
    reserved: frozenset[str] = frozenset()
    """Columns that are filled elsewhere, in lowercase letters."""

    @property
    def grows(self) -> bool:
        return self.undeclared == "columns"


def grown(known: Struct, shape: Shape, rules: Rules) -> Struct:
    """The columns after these values came."""
    if not rules.grows:
        return known
    wanted, new = _wanted(known, shape, rules)
    room = _room(known, rules)
    if len(new) <= room:
        return wanted
    kept = _pruned(wanted, (), {path for path, _ in leaves(known)} | set(new[:room]))
    return kept if isinstance(kept, Struct) else Struct()


def left_out(known: Struct, shape: Shape, rules: Rules) -> list[Path]:
    """The columns that these values would have made, had the limits not been reached: their values are rescued."""
    return _wanted(known, shape, rules)[1][_room(known, rules) :] if rules.grows else []


def _wanted(known: Struct, shape: Shape, rules: Rules) -> tuple[Struct, list[Path]]:
    """All columns that the values would make, and which of them are new, the shallow ones first."""
    wanted = _merged(known, shape, rules.depth, rules.keys, rules.reserved)
    have = {path for path, _ in leaves(known)}
    return wanted, sorted((path for path, _ in leaves(wanted) if path not in have), key=lambda path: (len(path), path))


def _room(known: Struct, rules: Rules) -> int:
    return max(0, min(rules.new_columns, rules.columns - sum(1 for _ in leaves(known))))


def decided(shape: Shape, depth: int, keys: int = Rules.keys) -> Kind | None:
    """The kind that holds these values; None where they say nothing yet (no value, only empty lists or objects)."""
    total = sum(shape.counts.values())
    counting = {kind for kind, values in shape.counts.items() if values * RARE >= total}
    if not counting:
        return None
    if counting == {"object"}:
        return _struct(shape, depth, keys) if depth > 0 else "string"
    if counting == {"list"}:
        of = decided(shape.element, depth, keys) if shape.element is not None else None
        return None if of is None else Many("string" if of == "json" else of)
    if counting <= {"long", "double"}:
        return "double" if "double" in shape.counts else "long"
    return next(iter(counting)) if len(counting) == 1 else "string"


def agrees(written: Kind, table: Kind) -> bool:
    """Whether files with these columns belong into this table: it has all of them, and of the same types."""
    if isinstance(written, Struct) and isinstance(table, Struct):
        return all(
            name in table.fields and agrees(mine.kind, table.fields[name].kind) for name, mine in written.fields.items()
        )
    if isinstance(written, Many) and isinstance(table, Many):
        return agrees(written.of, table.of)
    return written == table


def keeps_spelling(written: Kind, table: Kind | None) -> bool:
    """Whether files with these columns hold the values as the records spell them, wherever the table's columns differ. A double
    loses its digits, a struct loses the order of its keys, and a value loses its key where several keys share a column."""
    if isinstance(written, Struct) and any(field.spelled for field in written.fields.values()):
        return False
    if isinstance(written, Struct) and isinstance(table, Struct):
        others = {name: field.kind for name, field in table.fields.items()}
        return all(keeps_spelling(mine.kind, others.get(name)) for name, mine in written.fields.items())
    if isinstance(written, Many) and isinstance(table, Many):
        return keeps_spelling(written.of, table.of)
    return written == table or written in ("boolean", "long", "string")


def _struct(shape: Shape, depth: int, keys: int) -> Kind | None:
    if len(shape.fields) > keys:
        return "json"
    made = _merged(Struct(), shape, depth - 1, keys)
    return made if made.fields else None


def _merged(known: Struct, shape: Shape, depth: int, keys: int, reserved: frozenset[str] = frozenset()) -> Struct:
    """`known`, then the new fields in the order of their names: whatever the order in which they came."""
    named: dict[str, Shape] = {}
    for name, of in shape.fields.items():
        free = free_name(name, reserved)
        named[free] = Shape.sum([named[free], of]) if free in named else of
    moved = {free_name(name, reserved): frozenset({name}) for name in shape.fields if name in reserved}
    fields = {n: _grown_field(f, named[n], depth, keys) if n in named else f for n, f in known.fields.items()}
    for name in sorted(named.keys() - fields.keys()):
        kind = decided(named[name], depth, keys)
        if kind is not None:
            fields[name] = Field(name, kind, frozenset(named[name].spelled) or moved.get(name, frozenset()))
    return Struct(fields)


def _grown_field(known: Field, shape: Shape, depth: int, keys: int) -> Field:
    return replace(known, kind=_grown_kind(known.kind, shape, depth, keys))


def _grown_kind(known: Kind, shape: Shape, depth: int, keys: int) -> Kind:
    if isinstance(known, Struct) and depth > 0:
        if len(known.fields.keys() | shape.fields.keys()) > keys:
            return (
                known  # its keys turned out to be identifiers: more of them are rescued, until `settle` makes it text
            )
        return _merged(known, shape, depth - 1, keys)
    if isinstance(known, Many) and shape.element is not None:
        return Many(_grown_kind(known.of, shape.element, depth, keys))
    return known


def _pruned(kind: Kind, path: Path, allowed: set[Path]) -> Kind | None:
    """Without the leaves that are not allowed; None where nothing is left."""
    if isinstance(kind, Struct):
        kept = {name: (f, _pruned(f.kind, (*path, name), allowed)) for name, f in kind.fields.items()}
        fields = {name: replace(f, kind=inner) for name, (f, inner) in kept.items() if inner is not None}
        return Struct(fields) if fields else None
    if isinstance(kind, Many):
        of = _pruned(kind.of, (*path, "[]"), allowed)
        return None if of is None else Many(of)
    return kind if path in allowed else None
