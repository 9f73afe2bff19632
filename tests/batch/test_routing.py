"""Which table a record belongs to: a task routes thousands of records at once as the definition routes each of them."""

from __future__ import annotations

import json
from random import Random
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pytest

from forebay.batch.one_pass.landed import Landed
from forebay.batch.one_pass.routing import Router
from forebay.content.piece import Piece
from forebay.declaration.loading import parse_service
from forebay.declaration.service import Service
from forebay.declared_sql.questions import Questions
from forebay.landed_file import LandedFile
from forebay.record.conform import Records
from forebay.record.growth import Rules
from forebay.record.number import read_json
from forebay.record.route import Origin, route_of
from tests.batch.world import World

if TYPE_CHECKING:
    from pathlib import Path

    from pyspark.sql import SparkSession

METADATA = {"studio": "north", "empty": ""}
PLACES = [
    ("ours", "in/alpha/2026/a.json"),
    ("ours", "in/x.json"),
    ("theirs", "in/beta/a.json"),
    ("ours", "out/c/d.json"),
]
EXPLODES = """
[[tables]]
name = "lines"
explode = "items"
where = { a = ["x", "y", "7"] }
columns = [{ name = "id", path = "@parent.id" }]
[[tables]]
name = "{a}_tags"
explode = "tags"
columns = [{ name = "id", path = "@parent.id" }]
"""
ENVELOPE = 'envelope = { key = "in/{game}/" }'
FEEDS = """
[[feeds]]
name = "a"
prefix = "in/"
key = "in/{game}/"
[[feeds]]
name = "b"
prefix = "in/"
bucket = "theirs"
key = "in/{studio}/{game}."
[[feeds]]
name = "c"
key = "{kind}/"
"""


def routes_by_task(service: Service, texts: list[str]) -> list[tuple[Any, ...]]:
    files = [LandedFile(bucket, key, 1, key) for bucket, key in PLACES]
    landed = Landed([Piece(number, file, 0, None) for number, file in enumerate(files)], service)
    pieces = pa.array([number % len(PLACES) for number in range(len(texts))], pa.int32())
    rows = pa.table({"piece": pieces, "metadata": [json.dumps(METADATA)] * len(texts)})
    routes, taken = Router(service, landed, Questions()).routes(Records(pa.array(texts), Rules()), rows)
    return [(one.fate, one.table, one.declared, one.reason) for one in (routes[number] for number in taken)]


def routes_by_python(service: Service, texts: list[str]) -> list[tuple[Any, ...]]:
    origins = (Origin(key, bucket, METADATA) for bucket, key in map(_place, range(len(texts))))
    routes = [route_of(service, read_json(text), origin) for text, origin in zip(texts, origins, strict=True)]
    return [(route.fate, route.table, route.declared, route.reason) for route in routes]


def _place(number: int) -> tuple[str, str]:
    return PLACES[number % len(PLACES)]


def service_of(wheres: list[Any], feeds: str) -> Service:
    tables = [{"name": f"t{n}" if n % 3 else f"t{n}_{{a}}", "where": where} for n, where in enumerate(wheres)]
    last = {"name": "{@key.game}_{@metadata.studio}", "where": {"@type": ["x", "y"]}}
    text = "\n".join(
        f"[[tables]]\nname = {json.dumps(t['name'])}\nwhere = {toml_of(t['where'])}" for t in [*tables, last]
    )
    return parse_service({"service.toml": f'name = "s"\n{feeds}\n{text}'})


def toml_of(value: Any) -> str:
    if isinstance(value, dict):
        return "{ " + ", ".join(f"{json.dumps(key)} = {toml_of(inner)}" for key, inner in value.items()) + " }"
    return json.dumps(value, ensure_ascii=False)


TEXTS = ["x", "y", "", "x.y", "7", "7.5", "x\n", "é", "a", "b", "c", "a.json", "ours"]
VALUES = [*TEXTS, None, True, 7, -1, 7.5]
NUMBERS = [7, -1, 7.5, 0]
PATHS = ["a", "@type", '"a.b"', "items[1]", "items[0].a", "@metadata.studio", "@metadata.empty", "@key.game"]
PATHS += ["@key", "@file", "@bucket", "@feed"]


def any_condition(draw: Random, path: str) -> Any:
    tests = {
        "one_of": draw.sample(TEXTS, draw.randint(1, 3)),
        "not": draw.choice([draw.choice(TEXTS), draw.sample(TEXTS, 2)]),
        "exists": draw.random() < 0.5,
        "prefix": draw.choice(TEXTS),
        "matches": draw.choice(["x|y", "[0-9.]+", ".*", "x.y"]),
        **{name: draw.choice(NUMBERS) for name in ("above", "at_least", "below", "at_most")},
    }
    if path == "@feed":  # a feed that nobody declared is refused
        tests |= {"one_of": ["a"], "not": ["a"]}
        return {name: tests[name] for name in draw.sample(sorted(tests), draw.randint(1, 2))}
    return draw.choice(
        [draw.choice(TEXTS), {name: tests[name] for name in draw.sample(sorted(tests), draw.randint(1, 2))}]
    )


def any_record(draw: Random) -> dict[str, Any]:
    item = lambda: draw.choice([draw.choice(VALUES), {"a": draw.choice(VALUES)}])  # noqa: E731
    made = {key: draw.choice(VALUES) for key in ("a", "@type", "a.b") if draw.random() < 0.7}
    for field, values in {"@exploded": ("items", "tags", "others"), "@ordinal": (0, 1, None)}.items():
        made |= {field: draw.choice(values)} if draw.random() < 0.5 else {}
    return made | {"items": draw.choice([draw.choice(VALUES), [item() for _ in range(draw.randint(0, 3))]])}


@pytest.mark.parametrize(("seed", "feeds"), [(0, ENVELOPE), (1, ENVELOPE), (2, FEEDS), (3, FEEDS + EXPLODES)])
def test_a_task_routes_a_record_as_the_definition_does(seed: int, feeds: str) -> None:
    draw = Random(seed)
    paths = [path for path in PATHS if feeds != ENVELOPE or path != "@feed"]
    wheres = [{path: any_condition(draw, path) for path in draw.sample(paths, draw.randint(1, 2))} for _ in range(8)]
    service, texts = service_of(wheres, feeds), [json.dumps(any_record(draw)) for _ in range(200)]
    by_task, by_python = routes_by_task(service, texts), routes_by_python(service, texts)
    assert [(t, s, p) for t, s, p in zip(texts, by_task, by_python, strict=True) if s != p][:3] == []
    assert len(set(by_python)) > 2


SHARED = """
name = "s"
[[tables]]
name = "{a}_x"
where = { a = { not = "b" } }
[[tables]]
name = "c"
where = { b = "c" }
[[tables]]
name = "{b}"
values = "a|(?:x_)?x"
where = { b = { exists = true } }
[[tables]]
name = "{c}"
"""


def test_a_task_finds_the_owner_of_a_name_as_the_definition_does() -> None:
    service = parse_service({"service.toml": SHARED})
    names = ["a", "x", "a_x", "b_x", "x_x", "c", "z"]
    texts = [json.dumps({field: name}) for field in "abc" for name in names]
    by_task, by_python = routes_by_task(service, texts), routes_by_python(service, texts)
    assert by_task == by_python
    assert {(table, declared) for _, table, declared, _ in by_python} >= {("a_x", 0), ("x_x", 0), ("c", 1), ("a", 2)}


def test_sql_that_is_null_or_cannot_be_computed_leaves_the_record_to_the_next_table(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    service = """
name = "s"
[[tables]]
name = "big"
where = { kind = "sale" }
where_sql = "price / quantity > 10 and day >= date'2026-01-01'"
columns = [
  { name = "price", type = "double" }, { name = "quantity", type = "long" },
  { name = "at", type = "timestamp" }, { name = "day", type = "date", expression = "to_date(at)" },
]
[[tables]]
name = "others"
"""
    good = {"kind": "sale", "price": 100, "quantity": 2, "at": "2026-11-22T10:00:00Z"}
    others = [{"quantity": 0}, {"quantity": None}, {"price": "x"}, {"kind": "gift"}, {"at": "2025-01-01T00:00:00Z"}]
    world = World(spark, f"file://{tmp_path}/lake", monkeypatch, service=service)
    world.answers["a.json"] = "\n".join(json.dumps({**good, **other}) for other in [{}, *others]).encode()
    world.try_batch(0, [world.file("a.json")])
    assert [row["_line"] for row in world._table("big")] == [1]
    assert sorted(row["_line"] for row in world._table("others")) == [2, 3, 4, 5, 6]
