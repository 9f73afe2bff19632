"""A declared Python step in the tasks of a batch: what it changes, what it refuses, and a table whose function is not there."""

from __future__ import annotations

import json
import os
from collections import Counter
from dataclasses import replace
from decimal import Decimal
from pathlib import Path
from random import Random

import pytest
from pyspark.sql import SparkSession

from forebay.batch.events import BatchReadTwice, TableFailed
from forebay.batch.one_pass.answers import Answer, together
from forebay.batch.one_pass.jobs import Jobs
from forebay.batch.one_pass.spec import PassSpec
from forebay.batch.one_pass.task import GatherTask, ReadTask, Task
from forebay.batch.retrying.moving import Retried
from forebay.batch.retrying.plan import Choice
from forebay.batch.retrying.retry import Retry
from forebay.declaration.loading import load_service, parse_service
from forebay.declared_sql.questions import Given, Question, Questions
from forebay.transforms import use_folder
from tests.batch.tasks import InMemory, spec_of
from tests.batch.world import World
from tests.test_examples import EXAMPLES

ORDERS = """
name = "s"
[[tables]]
name = "orders"
transform = "shop:priced"
where = { order_id = { exists = true } }
columns = [{ name = "order_id" }, { name = "amount" }, { name = "paid", type = "decimal(12,2)" }]
"""
CHECKED = f'{ORDERS}expectations = {{ paid = {{ check = "paid > 5", on_violation = "quarantine" }} }}\n'
OTHERS = '[[tables]]\nname = "others"\n'
LINES = [
    '{"order_id": "o-1", "amount": "1.299,00", "more": {"x": 1}}',
    '{"order_id": "o-2", "amount": "many"}',
    '{"event": "no order"}',
    '{"order_id": "o-3", "amount": "4,90"}',
    '{"order_id": "o-4"}',
]
WRONG = "ArrowInvalid: The string 'many' is not a valid decimal128 number (shop.py, line 10)"


@pytest.fixture(autouse=True)
def functions() -> None:
    load_service(str(EXAMPLES / "python-step"))


def fates(answer: Answer) -> dict[tuple[str, str | None, str | None], int]:
    found: Counter[tuple[str, str | None, str | None]] = Counter()
    for one, rows in answer.fates.items():
        found[one.fate, one.table, one.reason] += rows
    return dict(found)


def done(service: str, lines: list[str], patched: pytest.MonkeyPatch) -> tuple[Answer, InMemory]:
    batch, storage = spec_of(service, {"a.json": "\n".join(lines).encode()}, patched)
    return together(list(Task(batch)([list(batch.pieces)]))), storage


def test_a_row_is_changed_or_refused_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    answer, storage = done(ORDERS + OTHERS, LINES, monkeypatch)
    assert answer.odd is None
    rows = storage.rows(answer, "orders")
    assert [(row["order_id"], row["amount"], row["paid"], row["_line"]) for row in rows] == [
        ("o-1", "1.299,00", Decimal("1299.00"), 1),
        ("o-3", "4,90", Decimal("4.90"), 4),
    ]
    held = [
        (row["table"], row["line"], row["reason"], row["detail"]) for row in storage.rows(answer, "_forebay/quarantine")
    ]
    assert held == [("orders", 2, "transform", WRONG), ("orders", 5, "transform", "no amount")]
    assert fates(answer) == {
        ("write", "orders", None): 2,
        ("quarantine", "orders", "transform"): 2,
        ("write", "others", None): 1,
    }


def test_a_table_without_its_function_fails_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    answer, _ = done(ORDERS.replace("shop:", "gone:") + OTHERS, LINES, monkeypatch)
    assert fates(answer) == {("write", "orders", None): 4, ("write", "others", None): 1}
    assert answer.broken == {
        "orders": "transform gone:priced cannot be imported: ModuleNotFoundError: No module named 'transforms.gone'"
    }


def test_a_function_that_changes_nothing_is_none(monkeypatch: pytest.MonkeyPatch) -> None:
    """Random records, in tasks that write what they read, and in those that send it to others."""
    random = Random(11)
    columns = (
        "string",
        "long",
        "double",
        "decimal(9,2)",
        "timestamp",
        "date",
        "json",
        "map",
        "boolean",
        "array<string>",
    )
    declared = ", ".join(f'{{ name = "c{n}", type = "{kind}" }}' for n, kind in enumerate(columns))
    plain = f'name = "s"\n[[tables]]\nname = "t"\ncolumns = [{declared}]\nevent_time = {{ column = "c4", oldest_days = 9 }}\n'
    values = [
        "x",
        1,
        -2.5,
        "2026-11-20",
        "2026-11-20T10:00:00Z",
        "1969-01-01T00:00:00Z",
        True,
        None,
        [],
        ["a"],
        {"a": 1},
    ]
    for _ in range(12):
        keys = [*(f"c{n}" for n in range(len(columns))), "more"]
        lines = [
            json.dumps({key: random.choice(values) for key in keys if random.random() < 0.7})
            for _ in range(random.randint(1, 30))
        ]
        before, storage = done(plain, lines, monkeypatch)
        same = plain.replace('name = "t"\n', 'name = "t"\ntransform = "shop:same"\n')
        monkeypatch.setattr("transforms.shop.same", lambda rows: rows, raising=False)
        batch, in_memory = spec_of(same, {"a.json": "\n".join(lines).encode()}, monkeypatch)
        sent = ReadTask(batch, 1, 1)(0, [list(batch.pieces)])
        after = together(list(GatherTask(batch, alone=True)(sent)))
        assert in_memory.rows(after, "t") == storage.rows(before, "t")
        assert fates(after) == fates(before)


@pytest.mark.deep
def test_expectations_see_the_changed_values_and_a_retry_applies_the_function(
    spark: SparkSession, lake: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The first batch has a function that is not there; its table fails and keeps its records, and other tables go on."""
    world = World(spark, lake, monkeypatch, service=CHECKED.replace("shop:", "gone:") + OTHERS)
    world.answers = {"a.json": "\n".join(LINES).encode()}
    world.try_batch(0, [world.file("a.json")])
    assert (world.rows_of("others"), world.kept("quarantine")) == ({"a.json": 1}, {"a.json": 4})
    (failed,) = [event for event in world.events if isinstance(event, TableFailed)]
    assert (failed.table, failed.rows, "cannot be imported" in failed.error) == ("orders", 4, True)
    world.tables_agree_with_the_ledger("others")
    choice = Choice("quarantine", reason="table-failed")
    for text, expected in ((world.service, Retried(4)), (CHECKED + OTHERS, Retried(4, {"orders": 1}))):
        retry = Retry(spark, parse_service({"service.toml": text}), lake=lake, emit=world.events.append)
        try:
            assert retry.run(choice) == expected
        finally:
            retry.logs.close()
    assert [row["paid"] for row in world._table("orders")] == [Decimal("1299.00")]
    assert (world.rows_of("orders"), world.kept("quarantine")) == ({"a.json": 1}, {"a.json": 3})
    world.tables_agree_with_the_ledger("orders", "others")


def test_a_paused_table_needs_no_function(monkeypatch: pytest.MonkeyPatch) -> None:
    """The retry after the pause calls it."""
    batch, storage = spec_of(
        ORDERS.replace("shop:", "gone:") + OTHERS, {"a.json": "\n".join(LINES).encode()}, monkeypatch
    )
    batch = replace(batch, service=batch.service.with_paused(["orders"]))
    answer = together(list(Task(batch)([list(batch.pieces)])))
    assert (answer.broken, fates(answer)["write", "orders", None]) == ({}, 4)
    assert {row["reason"] for row in storage.rows(answer, "_forebay/quarantine")} == {"paused"}


def test_a_table_that_fails_in_one_task_is_written_by_none(
    spark: SparkSession, lake: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A function that filters rows works where it leaves out none."""
    monkeypatch.setattr("transforms.shop.some", lambda rows: rows.filter(rows["amount"].is_valid()), raising=False)
    world = World(spark, lake, monkeypatch, service=ORDERS.replace("priced", "some") + OTHERS)
    monkeypatch.setattr(Jobs, "of_pieces", lambda _, spec: list(Task(spec)([piece] for piece in spec.pieces)))
    world.answers = {"a.json": LINES[0].encode(), "b.json": "\n".join(LINES[2:]).encode()}
    world.try_batch(0, [world.file("a.json"), world.file("b.json")])
    assert (world.rows_of("others"), world.kept("quarantine")) == ({"b.json": 1}, {"a.json": 1, "b.json": 2})
    assert not Path(f"{lake.removeprefix('file://')}/orders/_delta_log").exists()
    (failed,) = [event for event in world.events if isinstance(event, TableFailed)]
    assert failed.error.endswith("shop:some returned 1 of 2 rows; it must return each row once")
    world.tables_agree_with_the_ledger("others")


def test_a_row_that_was_refused_before_spark_was_asked_about_it_is_not_written(monkeypatch: pytest.MonkeyPatch) -> None:
    """A function may miss its time once only. Spark's answer is then about values that it did not change."""
    calls = Counter[str]()

    def once(rows: object) -> object:
        calls["all"] += 1
        if calls["all"] == 1:
            raise OSError("it took too long")
        return rows

    monkeypatch.setattr("transforms.shop.once", once, raising=False)
    batch, storage = spec_of(ORDERS.replace("priced", "once"), {"a.json": LINES[0].encode()}, monkeypatch)
    question = Question(batch.service.tables[0], {"slot": Given("amount")}, {}, {}, {})
    batch = replace(batch, questions=Questions(of={0: question}))
    answer = together(list(GatherTask(batch, alone=True)(ReadTask(batch, 1, 1)(0, [list(batch.pieces)]))))
    assert calls["all"] == 2
    assert storage.rows(answer, "orders") == []
    (held,) = storage.rows(answer, "_forebay/quarantine")
    assert (held["reason"], held["detail"]) == ("transform", "OSError: it took too long")


DEADLY = """
import os
def priced(rows):
    if "many" in rows["amount"].to_pylist():
        os._exit(7)
    return rows
"""


def test_a_function_that_ends_its_process_has_only_that_row_refused_in_batches_and_in_retries(
    spark: SparkSession, lake: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    (tmp_path / "transforms").mkdir()
    (tmp_path / "transforms" / "shop.py").write_text(DEADLY)
    use_folder(str(tmp_path))
    world = World(spark, lake, monkeypatch, service=ORDERS + OTHERS)

    def answers(_: Jobs, spec: PassSpec) -> list[Answer]:
        if not spec.functions_apart:
            spark.sparkContext.parallelize([0], 1).foreach(lambda _: os._exit(7))
        return list(Task(spec)([list(spec.pieces)]))

    monkeypatch.setattr(Jobs, "of_pieces", answers)
    world.answers = {"a.json": "\n".join(LINES).encode()}
    world.try_batch(0, [world.file("a.json")])
    assert world.rows_of("orders") == {"a.json": 3}
    assert world.rows_of("others") == {"a.json": 1}
    assert [(row["line"], row["reason"], row["detail"]) for row in world._table("_forebay/quarantine")] == [
        (2, "transform", "shop:priced ended its process with the exit code 7")
    ]
    assert any("processes of their own" in event.why for event in world.events if isinstance(event, BatchReadTwice))
    retry = Retry(spark, parse_service({"service.toml": world.service}), lake=lake, emit=world.events.append)
    try:
        assert retry.run(Choice("quarantine", reason="transform")) == Retried(1)
    finally:
        retry.logs.close()
    assert world.kept("quarantine") == {"a.json": 1}
    world.tables_agree_with_the_ledger("orders", "others")
