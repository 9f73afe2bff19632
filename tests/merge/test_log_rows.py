"""A table of changes with a column that the history of its state has for itself."""

from __future__ import annotations

from typing import Any

import pytest
from pyspark.sql.types import LongType, StringType, StructField, StructType

from forebay.declaration.loading import parse_service
from forebay.declaration.merge import HISTORY_COLUMNS, Merge
from forebay.declaration.table import Table
from forebay.declared_sql.columns import rules_of
from forebay.merge.log_rows import _beside
from forebay.record.kind import SPELLED

TEXT, NUMBER = StringType(), LongType()


def schema(*fields: tuple[str, Any, str]) -> StructType:
    made = (StructField(name, kind, metadata={SPELLED: [key]} if key else {}) for name, kind, key in fields)
    return StructType(list(made))


@pytest.mark.parametrize(
    ("fields", "columns"),
    [
        ([("id", TEXT, ""), ("valid_to", TEXT, "")], {"id": ["id"], "valid_to_field": ["valid_to"]}),
        ([("VALID_TO", TEXT, "")], {"valid_to_field": ["VALID_TO"]}),
        (
            [("valid_to", TEXT, ""), ("valid_to_field", TEXT, "valid_to")],
            {"valid_to_field": ["valid_to_field", "valid_to"]},
        ),
        ([("valid_to", NUMBER, ""), ("valid_to_field", TEXT, "valid_to")], {"valid_to_field": ["valid_to_field"]}),
        (
            [("valid_to", TEXT, ""), ("valid_to_field", TEXT, "")],
            {"valid_to_field": ["valid_to_field"], "valid_to_field_field": ["valid_to"]},
        ),
        ([("id", TEXT, "")], {"id": ["id"]}),
    ],
)
def test_such_a_column_has_another_name_in_the_state(
    fields: list[tuple[str, Any, str]], columns: dict[str, list[str]]
) -> None:
    assert _beside(schema(*fields), HISTORY_COLUMNS) == columns


def test_a_field_of_such_a_name_gets_another_column_where_a_history_is_declared() -> None:
    text = """
name = "s"
[[tables]]
name = "changes"
mode = "merge"
columns = [{ name = "id" }, { name = "at", type = "long" }]
merge = { into = "versions", keys = ["id"], sequence_by = ["at"], history = "scd2" }
"""
    (table,) = parse_service({"service.toml": text}).tables
    assert rules_of(table).reserved >= {*HISTORY_COLUMNS}
    assert not rules_of(Table(name="changes")).reserved & {*HISTORY_COLUMNS}
    assert Merge(into="x", keys=("id",), sequence_by=("at",)).own_columns == ()
