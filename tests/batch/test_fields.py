"""The fields that declarations name: Spark reads at each path what the Python definition reads there."""

from __future__ import annotations

import json
from random import Random
from typing import TYPE_CHECKING, Any

from pyspark.sql import functions as F

from forebay.batch.columns import column_of_text
from forebay.batch.fields import field, parsed
from forebay.batch.record_fields import PROBLEM, is_exact
from forebay.declaration.column import Column
from forebay.declaration.loading import parse_service
from forebay.declaration.path import parse_path
from forebay.declaration.service import Service
from forebay.nesting import DEEPEST
from forebay.record.declared import fits
from forebay.record.field import text_at
from forebay.record.number import read_json

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

ODD = ["@timestamp", "$insert_id", '"a.b".c d', "items[0].sku", "items[1]", "grid[0][1]", '"@key".game', "it's `x`"]
TWINS = ["Level", "level", "LEVEL.of", "player.Id", "player.id", "whole", "whole.in.it", '"".x']
PATHS = [*ODD, *TWINS]


def service_of(paths: list[str]) -> Service:
    columns = ", ".join(f"{{ name = 'c{n}', path = {json.dumps(path)} }}" for n, path in enumerate(paths))
    return parse_service({"service.toml": f'name = "s"\n[[tables]]\nname = "a"\ncolumns = [{columns}]'})


def read_by_spark(spark: SparkSession, service: Service, paths: list[str], texts: list[str]) -> list[list[Any]]:
    rows = spark.createDataFrame([(n, text) for n, text in enumerate(texts)], "n int, t string")
    made = parsed(rows, F.col("t"), service).select(
        "n", *(field(service, path).alias(f"c{n}") for n, path in enumerate(paths))
    )
    return [list(row)[1:] for row in made.orderBy("n").collect()]


def read_by_python(paths: list[str], texts: list[str]) -> list[list[Any]]:
    records = map(read_json, texts)
    return [[text_at(record, parse_path(path)) for path in paths] for record in records]


RECORD = {
    "@timestamp": "t", "$insert_id": 7, "a.b": {"c d": True}, "items": [{"sku": "s"}, "{\"sku\": 2}"], "grid": [[0, 1.5]],
    "@key": {"game": "g"}, "it's `x`": "x", "Level": 1, "level": 2, "LEVEL": {"of": 3}, "player": {"Id": "A", "id": "a"},
    "whole": {"in": {"it": [1, None]}}, "": {"x": "empty"},
}  # fmt: skip


def test_any_key_and_any_position_can_be_named(spark: SparkSession) -> None:
    (found,) = read_by_spark(spark, service_of(PATHS), PATHS, [json.dumps(RECORD)])
    assert found == [
        *("t", "7", "true", "s", '{"sku": 2}', "1.5", "g", "x"),
        *("1", "2", "3", "A", "a", '{"in":{"it":[1,null]}}', "[1,null]", "empty"),
    ]


ODD_VALUES = [
    None,
    True,
    7,
    -2.5,
    "",
    "text",
    " 7",
    [],
    {},
    [1, [2, "x"], {"sku": "y"}],
    {"of": 1, "x": [0], "in": {"it": 2}},
]


def altered(value: Any, draw: Random) -> Any:
    """The value with some parts of it gone, or something else."""
    if draw.random() < 0.15:
        return draw.choice(ODD_VALUES)
    if isinstance(value, dict):
        return {key: altered(inner, draw) for key, inner in value.items() if draw.random() < 0.9}
    return [altered(inner, draw) for inner in value] if isinstance(value, list) else value


def test_spark_reads_what_the_definition_reads(spark: SparkSession) -> None:
    draw = Random(16)
    texts = [json.dumps({key: altered(value, draw) for key, value in RECORD.items()}) for _ in range(400)]
    by_spark, by_python = read_by_spark(spark, service_of(PATHS), PATHS, texts), read_by_python(PATHS, texts)
    assert [(t, s, p) for t, s, p in zip(texts, by_spark, by_python, strict=True) if s != p][:3] == []


TEXTS = [
    *(
        "7",
        "-7",
        "+7",
        " 7 ",
        "7.0",
        "1e3",
        "9223372036854775807",
        "9223372036854775808",
        "2147483648",
        "",
        "x",
        "0x10",
    ),
    *("7d", "5f", "1.5D ", "0x1p3", "1e5f", "0.00", "0", "-0", "0.50", "0.505"),
    *(
        "1.005",
        "123456789.99",
        "1234567890",
        ".5",
        "5.",
        "1E400",
        "0.123456789",
        "123456789012345678901234567890123456.78",
        "NaN",
        "Infinity",
        "true",
        "F",
        "yes",
        "2",
    ),
    *("2026-11-22", "2026-11-22T10:30:00Z", "2026-11-22 10:30:00.123456", "2026-13-01", "2026-02-30", "yesterday"),
    *(
        "\u00a07",
        "\u20037",
        "\x007",
        "\x1c7\x1f",
        "\x7f7",
        "\x7ftrue",
        "\u00a0true",
        "\x00yes",
        "\uff17",
        "\u0663.5",
        "1_0",
    ),
    *("\u00a02026-11-22", "\x002026-11-22", "\u0662026-11-22", "2026-11-22T10:30:60", "2026-11-22T10:30:00.1234567Z"),
    *(
        "1795341600",
        "1795341600123",
        "22/11/2026",
        "20261122T1030+0530",
        "2026-11-22T24:00",
        "10:30",
        "0001-01-01T00:00+01:00",
        "2026-11-22T10:30-19:00",
        '{"k": 1}',
        "[1]",
        "{",
    ),
]
KINDS = [
    "long",
    "int",
    "double",
    "float",
    "decimal(9,2)",
    "decimal(38,2)",
    "decimal(2,2)",
    "boolean",
    "timestamp",
    "date",
    "map",
    "json",
    "string",
]


def _fits(text: Any, column: Column) -> Any:
    """A double that does not hold the number fits it only in part."""
    value = column_of_text(text, column).isNotNull()
    return value & is_exact(text, single=column.type == "float") if column.type in ("double", "float") else value


def test_a_text_fits_its_column_in_python_where_spark_has_a_value(spark: SparkSession) -> None:
    columns = [Column(name=f"c{n}", type=kind) for n, kind in enumerate(KINDS)]
    columns.append(Column(name="dated", type="date", formats=("dd/MM/yyyy",)))
    columns += [Column(name=f"u{unit}", type="timestamp", unit=unit) for unit in ("s", "ms", "us", "ns")]
    rows = spark.createDataFrame([(n, text) for n, text in enumerate(TEXTS)], "n int, t string").orderBy("n")
    made = rows.select(*(_fits(F.col("t"), column) for column in columns)).collect()
    wrong = [
        (text, column.type, value)
        for text, row in zip(TEXTS, made, strict=True)
        for column, value in zip(columns, row, strict=True)
        if fits(text, column) != value
    ]
    assert wrong == []


def test_a_record_of_as_many_levels_as_may_be_is_read_and_a_deeper_one_is_told_to_be_too_deep(
    spark: SparkSession,
) -> None:
    def of_levels(levels: int) -> str:
        return '{"a":' + "[" * (levels - 1) + '"}"' + "]" * (levels - 1) + "}"

    texts = [of_levels(DEEPEST), of_levels(DEEPEST + 1), of_levels(DEEPEST + 1)[:-1], '{"a":"' + "[" * DEEPEST]
    rows = spark.createDataFrame([(n, text) for n, text in enumerate(texts)], "n int, t string")
    made = parsed(rows, F.col("t"), service_of(["a"])).select("n", F.col(f"_parsed.`{PROBLEM}`"), "_parsed.`0`")
    found = [list(row)[1:] for row in made.orderBy("n").collect()]
    assert found == [[None, texts[0][5:-1]], ["too-deep", None], ["too-deep", None], ["not-json", None]]
