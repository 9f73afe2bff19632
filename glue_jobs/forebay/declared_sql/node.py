"""A part of an expression, as Spark analysed it: plain values, so that rules about it need no JVM."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

SIZED = ("string", "binary", "array", "map", "variant", "char")
COLUMN, LITERAL, VARIABLE, LAMBDA = "AttributeReference", "Literal", "NamedLambdaVariable", "LambdaFunction"


@dataclass(frozen=True)
class Node:
    """A part of an expression: Spark's name of its class, its type in SQL's words, its parts; a literal's value, and the name
    of a column or of a lambda's variable."""

    kind: str
    type: str
    parts: tuple[Node, ...] = ()
    value: Any = None
    name: str = ""

    @property
    def sized(self) -> bool:
        """Whether a record decides how large it is. A struct of numbers is not."""
        return any(word in self.type for word in SIZED)

    @property
    def all(self) -> Iterator[Node]:
        yield self
        for part in self.parts:
            yield from part.all


def node_of(expression: Any) -> Node:
    """The node of an analysed expression in the JVM."""
    kind = str(expression.getClass().getSimpleName())
    children = expression.children()
    parts = tuple(node_of(children.apply(at)) for at in range(children.size()))
    value: Any = None
    if kind == LITERAL:
        value = expression.value()
        value = value if isinstance(value, int) and not isinstance(value, bool) else str(value)
    name = str(expression.name()) + str(expression.exprId()) if kind in (COLUMN, VARIABLE) else ""
    if kind.endswith("Invoke"):
        kind += f".{expression.functionName()}"
    return Node(kind, str(expression.dataType().simpleString()), parts, value, name)
