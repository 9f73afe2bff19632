"""The same records, in any order of batches, end in the same columns with the same values; what was rescued moves into them."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest

from forebay.declaration.loading import parse_service
from forebay.declaration.service import declaration_of
from forebay.operate.declaring.settle import Settled, settle
from forebay.operate.lake_view import LakeView
from forebay.table.kernel import TableLogs
from tests.journey.story import event, lines
from tests.operate.command import ran

if TYPE_CHECKING:
    from pathlib import Path

    from pyspark.sql import SparkSession

    from tests.journey.story import Story


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


def declare(told: Story, folder: Path, columns: str = "", more: str = "") -> None:
    (folder / "service.toml").write_text(SERVICE.replace("COLUMNS", columns) + more)
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


@pytest.mark.deep
def test_any_order_of_batches_ends_in_the_same_columns(told: Story, spark: SparkSession, tmp_path: Path) -> None:
    """Each batch is first once, and each two of them come in both orders."""
    declare(told, tmp_path)
    orders = [(0, 1, 2), (1, 2, 0), (2, 1, 0)]
    for batch in range(3):
        records = [
            event(f"order{number}", 0, event_id=f"{order[batch]}-{n}", **record)
            for number, order in enumerate(orders)
            for n, record in enumerate(BATCHES[order[batch]])
        ]
        told.put(f"{batch}.json", lines(records))
        assert told.run().differences() == []
    assert len({str(sorted(types(told, f"order{n}"))) for n in range(3)} | {""}) > 1
    for number in range(3):
        done = settled(told, spark, f"order{number}")
        assert done.rows == 4
    first = {name: by_name(kind) for name, kind in types(told, "order0").items()}
    assert {name: first[name] for name in ("x", "l", "name", "new_field")} == {
        "x": "double",
        "l": "string",
        "name": "string",
        "new_field": "long",
    }
    for number in range(1, 3):
        assert {name: by_name(kind) for name, kind in types(told, f"order{number}").items()} == first
        assert values(told, f"order{number}") == values(told, "order0")
    assert told.accounts().differences() == []
    assert settled(told, spark, "order2").version is None


@pytest.mark.deep
def test_a_column_that_is_declared_later_is_filled_from_where_its_values_were(
    told: Story, spark: SparkSession, tmp_path: Path
) -> None:
    declare(told, tmp_path, ']\nundeclared = { become = "rescued" }\nvalues = "[a-z]+" #')
    times = [1795262400, "2026-11-21T12:00:00Z", "never"]
    told.put("a.json", lines([event("alpha", n, player={"seen": at, "id": n}) for n, at in enumerate(times)]))
    told.run()
    columns = ', { name = "seen", type = "timestamp", path = "player.seen", unit = "s" }'
    declare(told, tmp_path, f'{columns}]\nundeclared = {{ become = "rescued" }}\n#')

    done = settled(told, spark, "alpha")

    assert (done.changed, done.rows, done.rescued_after) == (("seen timestamp",), 3, 3)
    rows = sorted(told.rows("alpha", "select event_id, seen, _rescued from t"), key=lambda row: row["event_id"])
    assert [row["seen"] and row["seen"].isoformat() for row in rows] == ["2026-11-21T12:00:00+00:00"] * 2 + [None]
    assert [json.loads(row["_rescued"])["player"] for row in rows] == [{"id": 0}, {"id": 1}, {"id": 2, "seen": "never"}]
    told.put("b.json", lines([event("alpha", 9, player={"seen": 1795262400})]))
    sums = told.run()
    assert sums.differences() == []
    assert sums.rows["alpha"] == 4


@pytest.mark.deep
def test_a_column_whose_declared_type_changes_has_the_new_one_and_what_does_not_fit_is_rescued(
    told: Story, spark: SparkSession, tmp_path: Path
) -> None:
    declare(told, tmp_path, ', { name = "n", type = "double" }, { name = "level", type = "long" }')
    said = [(1, 1, "2026-11-21T12:00:00Z"), (2.5, "odd", "soon"), (3, None, 1795262400)]
    records = [event("alpha", i, n=n, level=level, at=at) for i, (n, level, at) in enumerate(said)]
    told.put("a.json", lines([records[0] | {"ms": 1795262400000, "flag": True}, *records[1:]]))
    told.run()
    types_now = ', { name = "n", type = "long" }, { name = "level" }, { name = "at", type = "timestamp", unit = "s" }'
    types_now += ', { name = "ms", type = "timestamp", unit = "ms" }, { name = "flag", type = "date" }'
    types_now += ', { name = "day", type = "date", expression = "to_date(at)" }'
    declare(told, tmp_path, types_now, 'partitions = ["day"]')
    told.put("b.json", lines([event("alpha", 3, n=4, level="high", at=1795262400)]))
    assert told.run().rows["_forebay/quarantine"] == 1, "a table of another type takes no rows"

    done = settled(told, spark, "alpha")

    assert set(done.changed) == {"n long", "level string", "at timestamp", "ms timestamp", "flag date", "day date"}
    assert done.partitions == ("day",)
    assert told.run().differences() == []
    table = LakeView(told.lake).table("alpha")
    assert table is not None
    days = sorted(str(partition["day"]) for partition in table.partitions())
    assert (table.metadata().partition_columns, days) == (["day"], ["2026-11-21", "None"])
    rows = sorted(told.rows("alpha", "select event_id, n, level, at, _rescued from t"), key=lambda row: row["event_id"])
    assert [(row["n"], row["level"], row["at"] and row["at"].isoformat()) for row in rows] == [
        (1, "1", "2026-11-21T12:00:00+00:00"),
        (None, "odd", None),
        (3, None, "2026-11-21T12:00:00+00:00"),
        (4, "high", "2026-11-21T12:00:00+00:00"),
    ]
    [first] = told.rows("alpha", "select ms, flag from t where n = 1")
    assert (first["ms"].isoformat(), first["flag"]) == ("2026-11-21T12:00:00+00:00", None)
    assert [row["_rescued"] and json.loads(row["_rescued"]) for row in rows] == [
        {"flag": "true"},
        {"n": "2.5", "at": "soon"},
        None,
        None,
    ]
    assert settled(told, spark, "alpha").version is None


def test_a_field_is_promoted_to_a_column_of_its_own_and_every_value_is_accounted_for(
    told: Story, spark: SparkSession, tmp_path: Path
) -> None:
    declare(told, tmp_path)
    levels = [*range(90), *(f"{n}" for n in range(8)), "odd", None]
    told.put("a.json", lines([event("alpha", n, player={"level": level}) for n, level in enumerate(levels)]))
    told.run()
    which = ("--type", "int", "--service", told.service, "--lake", told.lake)
    said = ran("schema", "promote", "alpha", "player.level", *which).splitlines()
    assert said[0] == "  level int"
    assert said[1:] == [
        "alpha: 100 rows rewritten as version 1; rows with rescued values: 1, before: 90",
        'declare it, for new records: columns = [..., { name = "level", type = "int", path = "player.level" }]',
    ]
    (counted,) = told.rows("alpha", "select count(*) rows, count(level) levels, count(_rescued) odd from t")
    assert counted == {"rows": 100, "levels": 98, "odd": 1}
    assert told.accounts().differences() == []
