"""The same records, in any order of batches, end in the same columns with the same values; what was rescued moves into them."""

from __future__ import annotations

import json
from itertools import permutations
from typing import TYPE_CHECKING, Any

import pytest

from forebay.operate.lake_view import LakeView
from forebay.operate.settle import Settled, declaration_of, settle
from forebay.service import parse_service
from forebay.table.kernel import TableLogs
from tests.journey.story import event, lines, story

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from pyspark.sql import SparkSession

    from forebay.twin.twin import Twin
    from tests.journey.story import Story

pytestmark = pytest.mark.xdist_group("journey")

SERVICE = """
name = "studio"
[[tables]]
name = "{game}"
columns = [{ name = "event_id" }COLUMNS]
"""

BATCHES = [
    [{"x": 1, "l": [1], "o": {"a": 1}, "Name": "A"}],
    [{"x": 2.5, "l": [], "o": {"a": "text", "b": True}, "name": "B"}],
    [
        {"x": 2**60, "o": {"c": [{"d": 1}]}, "new field": None},
        {"x": None, "o": "odd", "l": {"no": "list"}, "new.field": 7},
    ],
]


@pytest.fixture
def told(twin: Twin, spark: SparkSession) -> Iterator[Story]:
    with story(twin) as told:
        yield told


def declare(told: Story, folder: Path, columns: str = "") -> None:
    (folder / "service.toml").write_text(SERVICE.replace("COLUMNS", columns))
    told.service = str(folder)


def settled(told: Story, spark: SparkSession, table: str) -> Settled:
    from pathlib import Path

    service = parse_service({"service.toml": (Path(told.service) / "service.toml").read_text()})
    logs = TableLogs(spark)
    try:
        return settle(spark, logs, f"{told.lake}/{table}", service, declaration_of(service, table))
    finally:
        logs.close()


def types(told: Story, table: str) -> dict[str, Any]:
    found = LakeView(told.lake).table(table)
    assert found is not None
    return {field["name"]: field["type"] for field in json.loads(found.schema().to_json())["fields"]}


def by_name(kind: Any) -> Any:
    """A type in which the order of fields does not count."""
    if isinstance(kind, dict) and kind["type"] == "struct":
        return {field["name"]: by_name(field["type"]) for field in kind["fields"]}
    return [by_name(kind["elementType"])] if isinstance(kind, dict) else kind


def values(told: Story, table: str) -> list[str]:
    own = ("_file_id", "_line", "_batch", "_ingested_at", "game")
    rows = [
        {name: value for name, value in row.items() if name not in own}
        | {"_rescued": json.loads(row["_rescued"] or "{}")}
        for row in told.rows(table)
    ]
    return sorted(json.dumps(row, sort_keys=True).replace(table, "?") for row in rows)


def test_any_order_of_batches_ends_in_the_same_columns(told: Story, spark: SparkSession, tmp_path: Path) -> None:
    declare(told, tmp_path)
    orders = list(permutations(range(3)))
    for batch in range(3):
        records = [
            event(f"order{number}", 0, event_id=f"{order[batch]}-{n}", **record)
            for number, order in enumerate(orders)
            for n, record in enumerate(BATCHES[order[batch]])
        ]
        told.put(f"{batch}.json", lines(records))
        assert told.run().differences() == []
    assert len({str(sorted(types(told, f"order{n}"))) for n in range(6)} | {""}) > 1
    for number in range(6):
        done = settled(told, spark, f"order{number}")
        assert done.rows == 4
    first = {name: by_name(kind) for name, kind in types(told, "order0").items()}
    assert {name: first[name] for name in ("x", "l", "name", "new_field")} == {
        "x": "double",
        "l": "string",
        "name": "string",
        "new_field": "long",
    }
    for number in range(1, 6):
        assert {name: by_name(kind) for name, kind in types(told, f"order{number}").items()} == first
        assert values(told, f"order{number}") == values(told, "order0")
    assert told.accounts().differences() == []
    assert settled(told, spark, "order3").version is None


def test_a_column_that_is_declared_later_is_filled_from_where_its_values_were(
    told: Story, spark: SparkSession, tmp_path: Path
) -> None:
    declare(told, tmp_path, ']\nundeclared = { become = "rescued" }\nvalues = "[a-z]+" #')
    times = [1795262400, "2026-11-21T12:00:00Z", "never"]
    told.put("a.json", lines([event("alpha", n, player={"seen": at, "id": n}) for n, at in enumerate(times)]))
    told.run()
    columns = ', { name = "seen", type = "timestamp", path = "player.seen" }'
    declare(told, tmp_path, f'{columns}]\nundeclared = {{ become = "rescued" }}\n#')

    done = settled(told, spark, "alpha")

    assert (done.changed, done.rows, done.rescued_after) == (("seen",), 3, 3)
    rows = sorted(told.rows("alpha", "select event_id, seen, _rescued from t"), key=lambda row: row["event_id"])
    assert [row["seen"] and row["seen"].isoformat() for row in rows] == ["2026-11-21T12:00:00+00:00"] * 2 + [None]
    assert [json.loads(row["_rescued"])["player"] for row in rows] == [{"id": 0}, {"id": 1}, {"id": 2, "seen": "never"}]
    told.put("b.json", lines([event("alpha", 9, player={"seen": 1795262400})]))
    sums = told.run()
    assert sums.differences() == []
    assert sums.rows["alpha"] == 4
