"""Whether rows fit a table; Spark's types, but no Spark."""

from __future__ import annotations

import pytest
from pyspark.sql.types import ArrayType, LongType, MapType, NullType, StringType, StructType, TimestampNTZType

from forebay.table.schema import misfits, new_columns, nullable, unwritable

REMEDY = "(declare the type of the table, or run `forebay schema settle`)"


def schema(ddl: str) -> StructType:
    """`a long not null, s struct<b: string>`, read without a session."""
    made = StructType()
    for part in ddl.split(", ") if ddl else []:
        name, kind, *rest = part.split(" ")
        made.add(name, {"long": LongType(), "string": StringType()}[kind], nullable=not rest)
    return made


@pytest.mark.parametrize(
    ("rows", "table", "problems"),
    [
        ("a long", "a long", []),
        ("a long", "a long, b string", []),
        ("b string, a long", "a long, b string", []),
        ("a long, new string", "a long", []),
        ("a string", "a long", [f"column a: is long in the table and string in the rows {REMEDY}"]),
        ("A long", "a long", ["column A: is called a in the table (many readers are case-sensitive)"]),
        (
            "a long",
            "a long not-null",
            ["column a: may not be null in the table (fill it, and declare it so in the rows' schema)"],
        ),
        ("a long not-null", "a long not-null", []),
        ("a long", "a long, b long not-null", ["column b: may not be null in the table, and the rows lack it"]),
    ],
)
def test_rows_fit_when_names_and_types_are_the_same(rows: str, table: str, problems: list[str]) -> None:
    assert [str(p) for p in misfits(schema(rows), schema(table))] == problems


def test_nested_fields_are_compared_too() -> None:
    rows = StructType().add(
        "s", StructType().add("a", ArrayType(StructType().add("x", StringType()).add("y", LongType())))
    )
    table = StructType().add("s", StructType().add("a", ArrayType(StructType().add("x", LongType()))))
    assert [str(p) for p in misfits(rows, table)] == [
        f"column s.a[].x: is long in the table and string in the rows {REMEDY}"
    ]
    assert new_columns(rows, table) == ("s.a.y",)


def test_what_not_every_reader_knows_is_refused() -> None:
    rows = StructType().add("t", TimestampNTZType()).add("n", NullType()).add("s", StructType())
    rows.add("m", MapType(StringType(), TimestampNTZType())).add("good", LongType())
    assert [p.where for p in unwritable(rows, ())] == ["column t", "column n", "column s", "column m (value)"]


@pytest.mark.parametrize(
    ("partition_columns", "problems"),
    [
        (("day",), []),
        (("hour",), ["partition column hour: is not among the rows' columns"]),
        (("tags",), ["partition column tags: array<string> cannot name a folder (derive one)"]),
        (
            ("day", "id", "tags"),
            [
                "partition column tags: array<string> cannot name a folder (derive one)",
                "partition columns: leave no column for the data files",
            ],
        ),
    ],
)
def test_partition_columns_must_be_plain_and_leave_something_to_write(
    partition_columns: tuple[str, ...], problems: list[str]
) -> None:
    rows = StructType().add("day", StringType()).add("id", LongType()).add("tags", ArrayType(StringType()))
    assert [str(p) for p in unwritable(rows, partition_columns)] == problems


def test_a_new_table_takes_nulls_everywhere() -> None:
    made = nullable(StructType().add("a", ArrayType(StructType().add("x", LongType(), False), False), False))
    assert made == StructType().add("a", ArrayType(StructType().add("x", LongType(), True), True), True)
