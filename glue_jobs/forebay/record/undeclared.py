"""The fields of parsed records that no column declares, flattened where the table is declared so.

In: records as a struct array of Arrow. Out: the same without the declared fields. `Unordinary` where records may differ in
which key a declared field is read from: then they are walked.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from forebay.declaration.column_name import family_of
from forebay.record.arrow_parser import (
    Unordinary,
)


def children(array: pa.StructArray) -> list[pa.Array]:
    """Each child is null where the struct is, and begins where it begins."""
    found: list[pa.Array] = array.flatten()
    return found


def with_a_value(array: pa.StructArray) -> np.ndarray[Any, Any]:
    """Which objects have a field that is not null."""
    columns = children(array) if array.type.num_fields else []
    if not all(column.null_count for column in columns):
        return np.ones(len(array), bool)
    filled = np.zeros(len(array), bool)
    for column in columns:
        filled |= np.asarray(pc.is_valid(column))
    return filled


def _struct_of(names: list[str], arrays: list[pa.Array], like: pa.StructArray) -> pa.StructArray:
    mask = pc.is_null(like) if like.null_count else None
    if not arrays:
        # A struct array without fields has no other constructor.
        return pa.array([None if null else {} for null in pc.is_null(like).to_pylist()], pa.struct([]))
    fields = [pa.field(name, array.type) for name, array in zip(names, arrays, strict=True)]
    return pa.StructArray.from_arrays(arrays, fields=fields, mask=mask)


def undeclared(array: pa.StructArray, declared: Mapping[str, Any]) -> pa.StructArray:
    """The objects without these fields, which may be nested."""
    names, arrays = [], []
    taken = _taken([child.name for child in array.type], declared)
    for child, column in zip(array.type, children(array), strict=True):
        nested = taken.get(child.name)
        if nested == {}:
            continue
        if nested and pa.types.is_struct(column.type):
            column = undeclared(column, nested)
            if not column.type.num_fields:
                continue
            # An object with nothing left is null.
            fields, left = list(column.type), with_a_value(column)
            column = pa.StructArray.from_arrays(children(column), fields=fields, mask=pa.array(~left))
        names.append(child.name)
        arrays.append(column)
    return _struct_of(names, arrays, array)


def _taken(keys: list[str], declared: Mapping[str, Any]) -> dict[str, Any]:
    """The keys that declared fields are read from. `Unordinary` where records may differ in which."""
    taken = {}
    families: dict[str, list[str]] = {}
    for key in keys:
        families.setdefault(family_of(key), []).append(key)
    for name, nested in declared.items():
        same = families.get(family_of(name), [])
        if len(same) > 1:
            raise Unordinary("twins of a declared field")
        taken.update(dict.fromkeys(same, nested))
    return taken


def flattened(array: pa.StructArray, separator: str, depth: int) -> pa.StructArray:
    """The objects with the fields of objects within them, down to this depth."""
    names: list[str] = []
    arrays: list[pa.Array] = []
    for child, column in zip(array.type, children(array), strict=True):
        if pa.types.is_struct(column.type) and depth > 0:
            inner = flattened(column, separator, depth - 1)
            names += [f"{child.name}{separator}{leaf.name}" for leaf in inner.type]
            arrays += children(inner) if inner.type.num_fields else []
        else:
            names.append(child.name)
            arrays.append(column)
    if len(set(names)) < len(names):
        raise Unordinary("two fields are one when they are flattened")
    return _struct_of(names, arrays, array)
