"""Renames the columns in declared SQL, so that it can run beside the columns of other declarations.

In: SQL over declared columns, as declared. Out: the columns that it names, and the same SQL with other names. Spark's parser
finds the names. Variables of a lambda keep theirs, and so do the fields of a struct.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from functools import cache
from typing import Any

NAMES = ("UnresolvedAttribute", "UnresolvedNamedLambdaVariable")
STRUCT = "CreateNamedStruct"
FIRST_PART = re.compile(r"`(?:[^`]|``)*`|[^`.]+")
"""The first part of a name, which may have fields after it."""


def columns_in(sql: str) -> frozenset[str]:
    """The names in it, in lower case."""
    return frozenset(_plain(_first(sql, start, end)).lower() for start, end, _ in _names(sql))


def renamed(sql: str, new: Mapping[str, str]) -> str:
    """`new` has the SQL that replaces a name, by the name in lower case. Other names stay."""
    made, done = "", 0
    for start, end, field in _names(sql):
        first = _first(sql, start, end)
        rest = sql[start + len(first) : end]
        made += sql[done:start] + new.get(_plain(first).lower(), first) + rest + (f" AS {field}" if field else "")
        done = end
    return made + sql[done:]


def _first(sql: str, start: int, end: int) -> str:
    found = FIRST_PART.match(sql, start, end)
    assert found is not None
    return found[0]


def _plain(name: str) -> str:
    return name[1:-1].replace("``", "`") if name.startswith("`") else name


def has_star(sql: str) -> bool:
    """Whether it means all columns that there are, with those of other declarations."""
    return any(str(node.getClass().getSimpleName()).startswith("UnresolvedStar") for node in nodes_of(_parsed(sql)))


def nodes_of(expression: Any) -> Iterator[Any]:
    """An expression of the JVM, and all its parts."""
    yield expression
    for child in _children(expression):
        yield from nodes_of(child)


def _children(node: Any) -> list[Any]:
    return [node.children().apply(at) for at in range(node.children().size())]


@cache
def _names(sql: str) -> tuple[tuple[int, int, str | None], ...]:
    """The positions of columns' names, each with the field of a struct that gets its name from it."""
    return tuple(sorted(_found(_parsed(sql), frozenset())))


def _parsed(sql: str) -> Any:
    from pyspark.sql import SparkSession

    session: Any = SparkSession.active()
    return session._jsparkSession.sessionState().sqlParser().parseExpression(sql)


def _found(node: Any, variables: frozenset[str], of_struct: bool = False) -> Iterator[tuple[int, int, str | None]]:
    kind = str(node.getClass().getSimpleName())
    if kind in NAMES:
        if kind == NAMES[0] or str(node.nameParts().head()).lower() not in variables:
            field = str(node.nameParts().last()).replace("`", "``")
            yield (
                node.origin().startIndex().get(),
                node.origin().stopIndex().get() + 1,
                f"`{field}`" if of_struct else None,
            )
        return
    children = _children(node)
    if kind == "LambdaFunction":
        body, *arguments = children
        variables |= {str(one.nameParts().head()).lower() for one in arguments}
        children = [body]
    for child in children:
        yield from _found(child, variables, _names_fields(kind, node))


def _names_fields(kind: str, node: Any) -> bool:
    """Whether a column in it becomes a field of the column's name."""
    return kind == STRUCT or (kind == "UnresolvedFunction" and str(node.nameParts().last()).lower() == "struct")
