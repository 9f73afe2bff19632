"""A draft from samples: declarations that the samples fit, with the choices explained."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from deltalake import write_deltalake
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from forebay.declaration.column_name import taken_key
from forebay.declaration.loading import parse_service
from forebay.errors import InvalidConfiguration
from forebay.lake.layout import OWN_NAMES
from forebay.landed_file import LandedFile
from forebay.operate.lake_view import LakeView
from forebay.operate.looking.sql import WRITES, query
from forebay.operate.trying.draft import draft, draft_of
from forebay.operate.trying.samples import Sample, Samples, read_samples
from forebay.operate.trying.sql_names import unquoted
from forebay.operate.trying.trial import try_out
from forebay.record.field import text_at
from forebay.record.route import text_of
from tests.duckdb_apart import ask_duckdb
from tests.operate.command import given as given_to
from tests.operate.command import ran

EXAMPLES = Path(__file__).parents[2] / "examples"
FILE = LandedFile("", "a.json")


def samples_of(records: list[Any]) -> Samples:
    return Samples(tuple(Sample(FILE, n, json.dumps(record)) for n, record in enumerate(records, 1)), ())


EVENTS: list[Any] = [
    {"type": "order.paid", "@timestamp": "2026-11-22T10:00:00Z", "id": "a", "total": 10, "Test": False, "at": {"x": 1}},
    {"type": "order.paid", "@timestamp": "2026-11-22T10:00:01Z", "id": "b", "total": 10.5, "a.b": "c"},
    {"type": "login", "ts": 1795341600, "id": "c"},
    {"type": "login", "ts": 1795341601.25, "id": "d", "scores": {f"player-{n}": n for n in range(200)}},
    {"other": 1},
]


def test_kinds_types_times_and_ids_are_found() -> None:
    text = draft_of(samples_of(EVENTS), "shop")
    service = parse_service({"service.toml": text})
    login, paid, others = service.tables
    assert [table.name for table in service.tables] == ["login", "order_paid", "others"]
    assert {c.name: (c.type, c.source) for c in paid.columns if not c.expression} == {
        "type": ("string", "type"),
        "x_timestamp": ("timestamp", "@timestamp"),
        "id": ("string", "id"),
        "total": ("double", "total"),
        "test": ("boolean", "Test"),
        "a_b": ("string", '"a.b"'),
    }
    assert (paid.event_time and paid.event_time.column, paid.partitions) == ("x_timestamp", ("day",))
    assert (login.columns[1].type, {c.name: c.type for c in login.columns}["scores"]) == ("timestamp", "map")
    assert (others.partitions, others.where) == ((), {})
    assert '# dedupe = { by = ["id"], days = 3 }' in text


def test_the_table_of_a_kind_that_is_an_sql_keyword_needs_no_quotes(tmp_path: Path) -> None:
    """Of DuckDB all keywords, of DataFusion what `forebay query` takes. Athena has `order` and others among them."""
    keywords = "select distinct keyword_name as word from duckdb_keywords()"
    words = {*ask_duckdb(keywords)["word"].to_pylist(), *WRITES, *OWN_NAMES}
    assert {unquoted("orders"), unquoted("refund")} == {"orders", "refund"}
    rows = pa.table({"n": [1]})
    names = sorted({*map(unquoted, words)})
    each = " union all ".join(f"select n from {name} where n = 1" for name in names)
    assert ask_duckdb(each, tables=dict.fromkeys(names, rows)).num_rows == len(names)
    some = sorted(words)[::9]
    for word in (*some, "order", "table", "update", "ledger"):
        write_deltalake(tmp_path / unquoted(word), rows, mode="overwrite")
        assert query(LakeView(str(tmp_path)), f"select n from {unquoted(word)} where n = 1").num_rows == 1
    orders: list[Any] = [{"event": "order", "n": n} for n in range(3)] + [{"event": "refund", "n": n} for n in range(2)]
    drafted = parse_service({"service.toml": draft_of(samples_of(orders), "shop")}).tables
    assert [table.name for table in drafted] == ["order_events", "refund"]


def test_a_field_with_another_value_in_each_record_tells_no_kinds_apart() -> None:
    people: list[Any] = [{"name": "Ann", "age": 1}, {"name": "Bob", "age": 2}]
    (table,) = parse_service(
        {"service.toml": draft_of(samples_of([*people, *({"n": n} for n in range(9))]), "s")}
    ).tables
    assert table.where == {}


def test_columns_of_csv_have_a_type_where_all_their_texts_are_written_as_one() -> None:
    rows = [
        {
            "id": "7",
            "zip": "01234",
            "price": "1.10",
            "paid": "true",
            "at": "2026-11-22T10:00:00Z",
            "e": "1e5",
            "note": None,
        },
        {"id": "8", "zip": "99999", "price": "2", "paid": "false", "at": "2026-11-22T10:00:01Z", "e": "1", "note": "1"},
    ]
    of_csv = [Sample(LandedFile("", "in/a.csv.gz"), n, json.dumps(row)) for n, row in enumerate(rows, 2)]
    [table] = parse_service({"service.toml": draft_of(Samples(tuple(of_csv), ()), "shop")}).tables
    types = {column.name: column.type for column in table.columns if not column.expression}
    assert types == {
        "id": "long",
        "zip": "string",
        "price": "double",
        "paid": "boolean",
        "at": "timestamp",
        "e": "string",
        "note": "long",
    }
    [table] = parse_service({"service.toml": draft_of(samples_of(rows), "shop")}).tables
    assert {column.type for column in table.columns if column.name in ("id", "price", "paid")} == {"string"}


@pytest.mark.parametrize("records", [[], [1, "x"]])
def test_samples_without_a_record_are_no_start(records: list[Any]) -> None:
    with pytest.raises(InvalidConfiguration, match="no record that is a JSON object"):
        draft_of(samples_of(records), "s")


KEYS = st.sampled_from(
    ["type", "event", "id", "ts", "@timestamp", "Level", "level", "a.b", "", "_x", "day", "Name ", "é", '"']
)
VALUES = st.sampled_from(
    [None, True, 1, 2**70, -1.5, "", "x", "X y", "2026-11-22", "2026-13-01", 1795341600, [1], {"k": 1}, {}]
)


@settings(suppress_health_check=list(HealthCheck))
@given(st.lists(st.dictionaries(KEYS, VALUES, max_size=6), min_size=1, max_size=12))
def test_the_samples_fit_their_draft(records: list[dict[str, Any]]) -> None:
    samples = samples_of(records)
    trial = try_out(parse_service({"service.toml": draft_of(samples, "s")}), samples)
    assert (trial.parked, trial.refused, trial.is_clean) == ((), (), True)
    assert [column for table in trial.tables for column in table.columns if column.misfits] == []
    assert sum(table.rows for table in trial.tables) == len(records)


INSIDE: dict[str, Any] = {
    "Records": [{"eventName": name, "userIdentity": {"x": 1}} for name in ("Get", "Put", "Get", "Put")]
}


@pytest.mark.parametrize(
    ("documents", "array"),
    [
        ([INSIDE, INSIDE], "Records"),
        ([{"api_key": "k", "events": [{"n": 1}]}], "events"),
        ([{"a.b": [{"n": 1}]}], '"a.b"'),
        ([{"status": "ok", "page": 1, "data": [{"id": 7}, {"id": 8}]}], "data"),
        ([{"order": 7, "items": [{"sku": "a"}]}], None),
        ([{"events": [{"n": 1}], "batch": [{"n": 1}]}], None),
        ([{"events": [{"n": 1}]}, {"n": 1}], None),
        ([{"events": [{"n": 1}, 2]}], None),
        ([{"events": []}], None),
    ],
)
def test_the_array_that_records_lie_in_is_found(tmp_path: Path, documents: list[Any], array: str | None) -> None:
    (tmp_path / "a.json").write_text("\n".join(map(json.dumps, documents)))
    service = parse_service({"service.toml": (text := draft([str(tmp_path)], "s")[0])})
    assert service.envelope.records == ((array,) if array else ())
    assert ("[envelope]" in text) == bool(array)
    assert try_out(service, read_samples([str(tmp_path)], service)).is_clean


def test_another_array_of_objects_is_named_with_what_makes_rows_of_them(tmp_path: Path) -> None:
    """An order has items, and another document has its records in an array of this name: only a person knows."""
    documents = [
        {"order": n, "tags": ["a"], "items": items} for n, items in enumerate(([{"sku": "a"}, {"sku": "b"}], []))
    ]
    (tmp_path / "a.json").write_text("\n".join(map(json.dumps, documents)))
    text, _ = draft([str(tmp_path)], "s")
    line = 'envelope = { records = "items" }'
    assert f'# The objects in "items" stay within their record. To make each of them a record:\n# {line}\n' in text
    assert parse_service({"service.toml": text.replace(f"# {line}", line)}).envelope.records == ("items",)
    (tmp_path / "a.json").write_text('{"items": [1]}\n{"items": [{"sku": "a"}], "n": [], "m": {}}')
    assert "To make each of them" not in draft([str(tmp_path)], "s")[0]


@pytest.mark.parametrize("example", sorted(path.parent.name for path in EXAMPLES.glob("*/samples")))
def test_the_samples_of_public_shapes_fit_their_draft(example: str) -> None:
    places = [str(EXAMPLES / example / "samples")]
    service = parse_service({"service.toml": draft(places, "s")[0]})
    assert try_out(service, read_samples(places, service)).is_clean
    inside = {"cloudtrail": "Records", "cloudwatch-logs": "logEvents", "sdk-batches": "batch"}
    assert service.envelope.records == ((inside[example],) if example in inside else ())


def test_records_of_a_document_have_the_tables(tmp_path: Path) -> None:
    (tmp_path / "a.json").write_text(json.dumps(INSIDE))
    service = parse_service({"service.toml": draft([str(tmp_path)], "s")[0]})
    trial = try_out(service, read_samples([str(tmp_path)], service))
    assert [(table.name, table.rows) for table in trial.tables] == [("get", 2), ("put", 2)]


def test_the_command_writes_a_draft_that_try_takes(tmp_path: Path) -> None:
    sample = tmp_path / "a.json"
    sample.write_text("\n".join(map(json.dumps, EVENTS)))
    assert "service.toml" in ran("tables", "init", str(tmp_path / "My shop"), "--from", str(sample))
    assert "table order_paid: 2 rows" in ran("try", str(sample), "--service", str(tmp_path / "My shop"))


def test_what_a_draft_does_not_know_is_named(tmp_path: Path) -> None:
    samples = tmp_path / "samples"
    samples.mkdir()
    (samples / "a.json").write_text('{"n": 1}\n[1\n')
    (samples / "b.json.gz").write_bytes(b"\x1f\x8bnothing")
    status, out, err = given_to(("tables", "init", str(tmp_path / "mine"), "--from", str(samples)), "")
    assert (status, out.splitlines()[:2]) == (0, [f"wrote {tmp_path / 'mine'}/service.toml", "tables   records"])
    assert [line.partition(": ")[2].partition(": ")[0] for line in err.splitlines()] == ["b.json.gz", "a.json:2"]


def test_a_sample_that_is_too_small_for_a_table_of_each_kind_says_so() -> None:
    text = draft_of(samples_of([{"type": kind, "n": 1} for kind in ("end", "end", "start", "start", "up")]), "s")
    assert '# "type" has 3 values in 5 records. Draft from more samples to get a table for each of them.' in text
    assert [table.name for table in parse_service({"service.toml": text}).tables] == ["records"]


@pytest.mark.parametrize("kinds", [["end", "end", "up", "up"], ["a", "b", "c"], [1, 1, 2]])
def test_other_samples_do_not_say_so(kinds: list[Any]) -> None:
    assert "Draft from more" not in draft_of(samples_of([{"type": kind, "n": 1} for kind in kinds]), "s")


def test_records_that_share_no_keys_cost_no_more_than_their_keys(monkeypatch: pytest.MonkeyPatch) -> None:
    calls: Counter[str] = Counter()
    for name, real in (("draft.taken_key", taken_key), ("draft.text_at", text_at), ("trial.text_of", text_of)):

        def counting(*given: Any, name: str = name, real: Callable[..., Any] = real) -> Any:
            calls[name] += 1
            return real(*given)

        monkeypatch.setattr(f"forebay.operate.trying.{name}", counting)
    samples = samples_of([{"id": at, f"player_{at}": at} for at in range(50)])
    tried = try_out(parse_service({"service.toml": draft_of(samples, "games")}), samples)
    assert [column.filled for column in tried.tables[0].columns] == [50] + [1] * 50
    assert all(count <= 4 * 100 for count in calls.values()), calls
