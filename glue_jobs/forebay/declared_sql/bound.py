"""Finds declared SQL with which a record could kill a worker, before the first record arrives.

Pure. In: an expression as Spark analysed it. Out: its fault, if a record could make it take
a worker's memory: `repeat(name, level)`, or `aggregate` that doubles its text with each element. `TryEval` catches no
OutOfMemoryError and no StackOverflowError: `name rlike '^(a|b)*$'` has one with 2,000 letters. Nor does it catch a segmentation
fault: `element_at` reads outside of the array at -2147483648 (Spark 4.1).

A value has at most `fixed + times * R` characters, where `R` is the size of the record's columns. Both are computed from the
leaves up. A value without such a bound is refused, and so is a bound that is too large. Numbers, dates and the like have a
fixed size. A function that is not named here returns no more characters than its arguments have together.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from forebay.declared_sql.node import COLUMN, LAMBDA, LITERAL, VARIABLE, Node

MOST_TIMES = 64
MOST_ROUNDS = 1000
"""The most rounds of a group in a pattern: Java uses part of its stack for each."""
MOST_FIXED = 1 << 20
OF_A_NUMBER = 16


@dataclass(frozen=True)
class Size:
    """`of` says how often a value contains each column. The columns together have at most the size of the record."""

    fixed: int = 0
    of: Mapping[str, int] = field(default_factory=dict)

    @property
    def times(self) -> int:
        return max(self.of.values(), default=0)

    def __add__(self, other: Size) -> Size:
        names = self.of.keys() | other.of.keys()
        return Size(self.fixed + other.fixed, {name: self.of.get(name, 0) + other.of.get(name, 0) for name in names})

    def __mul__(self, count: int) -> Size:
        return Size(self.fixed * count, {name: times * count for name, times in self.of.items()})


PATTERN_PARTS = re.compile(
    r"\\Q.*?(?:\\E|\Z)|\\.|\[(?:\\.|\[(?:\\.|[^\]\\])*\]|[^\]\\])*\]|\(\??|[)|]|(?P<rounds>[*+?]|\{\d+(?:,\d*)?\})[+?]?|.",
    re.DOTALL,
)
"""The parts of a Java regular expression: a quotation, a character class, a group, or a quantifier."""
LOOKS_AROUND = re.compile(r"\(\?<?=")


class Unbounded(Exception):
    """Its text says why."""


def unsafe(expression: Node) -> str | None:
    """Why a record could kill a worker with this expression; None if none can."""
    try:
        _size(expression)
    except Unbounded as why:
        return str(why)
    return None


def _size(node: Node) -> Size:
    """The size of the node's value. Intermediate values are bounded as well."""
    rule = RULES.get(node.kind) or RULES.get(node.kind.partition(".")[0], _sum)
    size = rule(node)
    if not node.sized:
        size = Size(OF_A_NUMBER)
    if size.times > MOST_TIMES or size.fixed > MOST_FIXED:
        raise Unbounded(
            f"could make a value of {size.fixed:,} characters plus {size.times:,} times the record; "
            f"the limits are {MOST_FIXED:,} characters and {MOST_TIMES} times"
        )
    return size


def _sum(node: Node) -> Size:
    return _total(node.parts)


def _total(parts: tuple[Node, ...]) -> Size:
    size = Size()
    for part in parts:
        size += _size(part)
    return size


def _record(node: Node) -> Size:
    """A column, or an element of an argument: no more than what it comes from."""
    return Size(0, {node.name: 1})


def _grows(factor: int) -> Callable[[Node], Size]:
    return lambda node: _sum(node) * factor


def _element(node: Node) -> Size:
    """Spark takes the absolute value of the place, and that of the smallest integer is negative."""
    array, place = node.parts[:2]
    if array.type.startswith("array"):
        if place.kind not in (LITERAL, "UnaryMinus", "Cast"):
            raise Unbounded("the position in an array must be a constant; get(array, index), from 0, takes any")
        _count(place, "position in an array")
    return _sum(node)


def _repeated(node: Node) -> Size:
    what, count = node.parts
    return _size(what) * _count(count, "number of repetitions")


def _longer_by(what: str) -> Callable[[Node], Size]:
    return lambda node: _sum(node) + Size(_count(node.parts[1], what))


def _sequence(node: Node) -> Size:
    start, stop, *step = [_count(part, "bound of a sequence") for part in node.parts[:3] if part.type != "void"]
    return Size(OF_A_NUMBER * (abs(stop - start) // max(1, abs(step[0]) if step else 1) + 1))


def _replaced(node: Node) -> Size:
    """In the worst case each character is replaced by the replacement."""
    text, pattern, by, *_ = node.parts
    if node.kind == "RegExpReplace":
        _is_level(pattern)
        if "$" in str(by.value):
            _matches_apart(pattern)
    return _size(text) * (1 + _length(by, "replacement"))


def _extracted(node: Node) -> Size:
    _matches_apart(node.parts[1])
    return _matched(node)


def _matched(node: Node) -> Size:
    _is_level(node.parts[1])
    return _sum(node)


def _is_level(pattern: Node) -> None:
    if pattern.kind != LITERAL:
        raise Unbounded(
            "its pattern must be a constant, because a pattern from a record could overflow the worker's stack"
        )
    if _climbs(str(pattern.value)):
        raise Unbounded(
            "its pattern repeats a group that matches texts of several lengths or kinds, like (a|b)*, and a long text would "
            "overflow the worker's stack; add a +, as in (a|b)*+, so that it does not backtrack"
        )


def _climbs(pattern: str) -> bool:
    """Whether Java calls itself for each round of a group: one that it may have to match in another way."""
    varies, closed, group = [False], False, False
    for part in PATTERN_PARTS.finditer(pattern):
        text = part[0]
        was_closed, closed = closed, text == ")"
        if text.startswith("("):
            varies.append(False)
        elif text == ")" and len(varies) > 1:
            group = varies.pop()
            varies[-1] |= group
        elif text == "|":
            varies[-1] = True
        elif part["rounds"]:
            if was_closed and group and not text.endswith("+", 1) and _rounds(part["rounds"]) > MOST_ROUNDS:
                return True
            varies[-1] |= text.strip("{}").isdigit() is False
    return False


def _rounds(repeats: str) -> float:
    last = repeats.strip("{}").rpartition(",")[2]
    return float(last) if last.isdigit() else 1 if repeats == "?" else math.inf


def _of_nested_xml(node: Node) -> Size:
    raise Unbounded("parses XML of any depth, and could overflow the worker's stack; use from_xml")


def _matches_apart(pattern: Node) -> None:
    """Matches share no text. But groups of a pattern that looks ahead or behind do: `(?=(.*))` has the rest of the text at each
    place, which together is the square of it."""
    if pattern.kind != LITERAL or LOOKS_AROUND.search(str(pattern.value)):
        raise Unbounded(
            "its pattern must be a constant without (?= and (?<=, because a group could match the text at each position"
        )


def _joined(node: Node) -> Size:
    """`array_join` may have a text for null, too."""
    between = node.parts[:1] if node.kind == "ConcatWs" else node.parts[1:]
    return _sum(node) * (1 + sum(_length(part, "separator of the elements") for part in between))


def _format(node: Node) -> Size:
    """Each argument may be named often, and filled up to a width."""
    if not node.parts or node.parts[0].kind != LITERAL:
        raise Unbounded("its format must be a constant, because its widths could be any number")
    text = str(node.parts[0].value)
    widths = [int(number) for number in re.findall(r"\d+", text)]
    return _total(node.parts[1:]) * max(1, text.count("%")) + Size(len(text) + sum(widths))


def _number_format(node: Node) -> Size:
    decimals = node.parts[1]
    if decimals.type == "string":
        return Size(_length(decimals, "number format") + OF_A_NUMBER * 32)
    return Size(_count(decimals, "number of decimals") + OF_A_NUMBER * 32)


def _of_each(node: Node) -> Size:
    """A value made for each element. Values from outside of the lambda are in it once for each."""
    *arguments, function = node.parts
    _captures_nothing(function)
    each = _size(function.parts[0])
    return _total(tuple(arguments)) * (each.times + each.fixed)


def _aggregate(node: Node) -> Size:
    """A number is fine. A text could double with each element."""
    argument, zero, merge, finish = node.parts
    if zero.sized:
        raise Unbounded(
            "aggregates into a text, array or map, which could double with each element; use concat_ws or array_join"
        )
    for part in (argument, merge.parts[0]):
        _size(part)
    return _size(finish.parts[0])


def _captures_nothing(function: Node) -> None:
    body, *own = function.parts
    names = {variable.name for variable in own}
    for node in body.all:
        if node.kind == LAMBDA:
            names |= {variable.name for variable in node.parts[1:]}
    for node in body.all:
        if node.kind in (COLUMN, VARIABLE) and node.sized and node.name not in names:
            raise Unbounded(f"uses {node.name} for each element; only the element itself may be used there")


def _count(node: Node, what: str) -> int:
    if node.kind == "Cast":
        node = node.parts[0]
    if node.kind == "UnaryMinus" and node.parts[0].kind == LITERAL:
        return -_count(node.parts[0], what)
    if node.kind != LITERAL or not isinstance(node.value, int) or node.value <= -(2**31):
        raise Unbounded(f"the {what} must be a constant number, because a record may contain any number")
    return abs(node.value) if what != "bound of a sequence" else node.value


def _length(node: Node, what: str) -> int:
    if node.kind != LITERAL:
        raise Unbounded(f"the {what} must be a constant, because a record may contain any value")
    return len(str(node.value or ""))


PATTERNS = ("RLike", "RegExpCount", "RegExpExtract", "RegExpInStr", "RegExpSubStr", "StringSplit")
XPATHS = ("Boolean", "Double", "Float", "Int", "Long", "Short", "List", "String")
RULES: Mapping[str, Callable[[Node], Size]] = {
    LITERAL: lambda node: Size(len(str(node.value))),
    COLUMN: _record,
    VARIABLE: _record,
    "ElementAt": _element,
    "StringRepeat": _repeated,
    "ArrayRepeat": _repeated,
    "StringSpace": lambda node: Size(_count(node.parts[0], "number of spaces")),
    **dict.fromkeys(
        ("StringLPad", "StringRPad", "BinaryPad", "StaticInvoke.lpad", "StaticInvoke.rpad"),
        _longer_by("length to pad to"),
    ),
    "Sequence": _sequence,
    "ArrayInsert": _longer_by("position in an array"),
    **dict.fromkeys(("StringReplace", "RegExpReplace"), _replaced),
    "RegExpExtractAll": _extracted,
    **dict.fromkeys(PATTERNS, _matched),
    **dict.fromkeys((f"XPath{kind}" for kind in XPATHS), _of_nested_xml),
    **dict.fromkeys(("ConcatWs", "ArrayJoin"), _joined),
    "FormatString": _format,
    "FormatNumber": _number_format,
    **dict.fromkeys(("ArrayTransform", "ZipWith", "TransformKeys", "TransformValues", "MapZipWith"), _of_each),
    "ArrayAggregate": _aggregate,
    **dict.fromkeys(("Hex", "Base64", "StructsToCsv", "Quote"), _grows(2)),
    **dict.fromkeys(("Upper", "Lower", "InitCap", "StaticInvoke", "Invoke"), _grows(3)),
    **dict.fromkeys(("StructsToJson", "StructsToXml", "Encode"), _grows(6)),
}
