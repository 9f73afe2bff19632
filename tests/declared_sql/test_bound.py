"""How large declared SQL may make a value. The expressions are trees of ours here, as `node_of` makes them of Spark's."""

from __future__ import annotations

from pathlib import Path, PurePosixPath
from typing import Any
from zipfile import ZipFile

import pyspark
import pytest

from forebay.declared_sql.bound import MOST_FIXED, MOST_TIMES, RULES, unsafe
from forebay.declared_sql.node import COLUMN, LAMBDA, LITERAL, VARIABLE, Node

TEXT = Node("AttributeReference", "string", name="t")
OTHER = Node("AttributeReference", "string", name="u")
NUMBER = Node("AttributeReference", "bigint", name="n")
WORDS = Node("StringSplit", "array<string>", (TEXT, Node("Literal", "string", value=",")))
ELEMENT = Node("NamedLambdaVariable", "string", name="x")


def literal(value: Any) -> Node:
    return Node("Literal", "int" if isinstance(value, int) else "string", value=value)


def call(kind: str, *parts: Node, returns: str = "string") -> Node:
    return Node(kind, returns, parts)


def each(body: Node, *variables: Node) -> Node:
    return call("LambdaFunction", body, *(variables or (ELEMENT,)), returns=body.type)


def aggregated(zero: Node, merged: Node) -> Node:
    accumulator = Node("NamedLambdaVariable", zero.type, name="acc")
    finish = each(accumulator, accumulator)
    return call("ArrayAggregate", WORDS, zero, each(merged, accumulator, ELEMENT), finish, returns=zero.type)


ACCUMULATOR = Node("NamedLambdaVariable", "string", name="acc")
HARMLESS = {
    "a column": TEXT,
    "columns side by side": call("Concat", TEXT, literal("-"), OTHER),
    "many columns as JSON": call(
        "StructsToJson", *(Node("AttributeReference", "string", name=f"c{n}") for n in range(40))
    ),
    "a padded id": call("StringLPad", TEXT, literal(10), literal("0")),
    "repeated twice": call("StringRepeat", TEXT, literal(2)),
    "spaces": call("StringSpace", literal(8)),
    "a few numbers": call("Sequence", literal(1), literal(24), returns="array<int>"),
    "underscores for blanks": call("StringReplace", TEXT, literal(" "), literal("_")),
    "the first and the last word": call(
        "Concat",
        call("ElementAt", WORDS, literal(1)),
        call("ElementAt", WORDS, call("UnaryMinus", literal(1), returns="int")),
    ),
    "an entry of a map": call("ElementAt", Node("AttributeReference", "map<string,string>", name="m"), TEXT),
    "any place, from 0": call("GetArrayItem", WORDS, NUMBER),
    "words with commas": call("ArrayJoin", WORDS, literal(", ")),
    "all numbers": call("RegExpExtractAll", TEXT, literal("([0-9]+)"), literal(1), returns="array<string>"),
    "a thousand's comma": call("RegExpReplace", TEXT, literal("(?<=[0-9])(?=([0-9]{3})+$)"), literal(","), literal(1)),
    "swapped": call("RegExpReplace", TEXT, literal("(.*)-(.*)"), literal("$2-$1"), literal(1)),
    "a number as text": call("FormatNumber", NUMBER, literal(2)),
    "a format": call("FormatString", literal("%s of %08d"), TEXT, NUMBER),
    "each word in capitals": call("ArrayTransform", WORDS, each(call("Upper", ELEMENT)), returns="array<string>"),
    "is a word long": call(
        "ArrayExists", WORDS, each(call("EqualTo", ELEMENT, OTHER, returns="boolean")), returns="boolean"
    ),
    "words above a limit": call(
        "ArrayTransform", WORDS, each(call("Add", NUMBER, literal(1), returns="bigint")), returns="array<bigint>"
    ),
    "the sum of lengths": aggregated(literal(0), call("Add", NUMBER, NUMBER, returns="int")),
    "the length of all that": call("Length", call("Concat", *[TEXT] * MOST_TIMES), returns="int"),
}
HARMFUL = {
    "repeated by a record": call("StringRepeat", TEXT, NUMBER),
    "repeated by a record, as a cast": call("StringRepeat", TEXT, call("Cast", NUMBER, returns="int")),
    "repeated a million times": call("StringRepeat", TEXT, literal(1_000_000)),
    "repeated and repeated": call("StringRepeat", call("StringRepeat", TEXT, literal(40)), literal(40)),
    "a constant as large": call("StringRepeat", literal("x"), literal(2_000_000_000)),
    "spaces by a record": call("StringSpace", NUMBER),
    "padded by a record": call("StringLPad", TEXT, NUMBER, literal("0")),
    "padded far": call("StringRPad", TEXT, literal(2_000_000_000), literal("0")),
    "bytes padded by a record": call("BinaryPad", call("StaticInvoke.lpad", TEXT, NUMBER, TEXT, returns="binary")),
    "an array by a record": call("ArrayRepeat", TEXT, NUMBER, returns="array<string>"),
    "numbers up to a record's": call("Sequence", literal(1), NUMBER, returns="array<bigint>"),
    "many numbers": call("Sequence", literal(0), literal(2**31 - 1), returns="array<int>"),
    "many numbers from below": call(
        "Sequence", call("UnaryMinus", literal(2**31 - 1), returns="int"), literal(0), returns="array<int>"
    ),
    "an element far out": call("ArrayInsert", WORDS, NUMBER, TEXT, returns="array<string>"),
    "a text for each of its characters": call("StringReplace", TEXT, literal("a"), TEXT),
    "a place in an array": call("ElementAt", WORDS, NUMBER),
    "a place in an array, as a cast": call("ElementAt", WORDS, call("Cast", NUMBER, returns="int")),
    "the one place that Spark looks for elsewhere": call("ElementAt", WORDS, literal(-(2**31))),
    "a pattern's matches": call("RegExpReplace", TEXT, literal(""), OTHER, literal(1)),
    "between all elements": call("ArrayJoin", WORDS, OTHER),
    "a wide format": call("FormatString", literal("%2000000000d"), NUMBER),
    "a format from a record": call("FormatString", TEXT, NUMBER),
    "many decimals": call("FormatNumber", NUMBER, literal(2_000_000_000)),
    "a record for each word": call("ArrayTransform", WORDS, each(OTHER), returns="array<string>"),
    "a word for each word": call(
        "ArrayTransform",
        WORDS,
        each(
            call(
                "ArrayTransform",
                call("StringSplit", ELEMENT, literal(""), returns="array<string>"),
                each(ELEMENT, Node("NamedLambdaVariable", "string", name="y")),
                returns="array<string>",
            )
        ),
        returns="array<array<string>>",
    ),
    "doubled with each word": aggregated(literal("x"), call("Concat", ACCUMULATOR, ACCUMULATOR)),
    "hexadecimal of hexadecimal": call(
        "Hex", call("Hex", call("Hex", call("Hex", call("Hex", call("Hex", call("Hex", TEXT))))))
    ),
    "large on the way to a number": call("Length", call("StringSpace", NUMBER), returns="int"),
    "columns side by side, often": call("Concat", *[TEXT] * (MOST_TIMES + 1)),
    "the rest of the text at each place": call("RegExpReplace", TEXT, literal("(?=(.*))"), literal("$1"), literal(1)),
    "all rests of the text": call("RegExpExtractAll", TEXT, literal("x(?=(.*))"), literal(1), returns="array<string>"),
    "all beginnings of the text": call("RegExpExtractAll", TEXT, literal("(?<=(.{0,99}))"), literal(1)),
    "what a pattern of the record finds": call("RegExpExtractAll", TEXT, OTHER, literal(1), returns="array<string>"),
    "a long text for each null": call("ArrayJoin", WORDS, literal(","), literal("x" * 100)),
    "a long constant": literal("x" * (MOST_FIXED + 1)),
}


@pytest.mark.parametrize("what", HARMLESS)
def test_what_stays_within_a_few_times_the_record_is_taken(what: str) -> None:
    assert unsafe(HARMLESS[what]) is None


@pytest.mark.parametrize("what", HARMFUL)
def test_what_a_record_could_make_large_is_refused(what: str) -> None:
    assert unsafe(HARMFUL[what])


@pytest.mark.parametrize(
    ("pattern", "is_harmful"),
    [
        ("^(a|b)*$", True),
        ("^(?:[a-z]+,)*x", True),
        ("(?:ab?)+?", True),
        (r"(?:\w+\.)+com", True),
        ("(?:(?:ab)*c){2,}", True),
        ("(?:a|b){0,100000}", True),
        ("(?=(a|b)*$)", True),
        ("^(a|b)*+$", False),
        (r"^(?:[\w()|+*]+\()?\d+[])]*$", False),
        ("^([ab]{2})+(?:ab)*?$", False),
        ("(?:a|b){0,100}", False),
        (r"\Q(a|b)*\E(?i)\(a|b\)*", False),
        ("[(a|b)*[c)+]]*", False),
    ],
)
def test_a_pattern_may_not_take_the_stack_of_a_worker(pattern: str, is_harmful: bool) -> None:
    """Those that are harmful end in Java's StackOverflowError with a million characters, and the others do not."""
    kinds = [call("RLike", TEXT, literal(pattern), returns="boolean"), call("StringSplit", TEXT, literal(pattern))]
    kinds += [call("RegExpReplace", TEXT, literal(pattern), literal(""), literal(1))]
    assert [unsafe(one) is not None for one in kinds] == [is_harmful] * 3
    assert unsafe(call("RLike", TEXT, OTHER, returns="boolean"))


def test_the_refusal_says_what_to_change() -> None:
    assert unsafe(HARMFUL["repeated by a record"]) == (
        "the number of repetitions must be a constant number, because a record may contain any number"
    )


def test_every_rule_is_for_an_expression_that_spark_has() -> None:
    """A name that Spark changes would make a rule that refuses nothing."""
    (jar,) = (Path(pyspark.__file__).parent / "jars").glob("spark-catalyst_*.jar")
    with ZipFile(jar) as classes:
        known = {PurePosixPath(name).stem for name in classes.namelist() if "/catalyst/expressions/" in name}
    named = {name.partition(".")[0] for name in (*RULES, COLUMN, LAMBDA, LITERAL, VARIABLE, "UnaryMinus", "Cast")}
    assert named - known == set()
