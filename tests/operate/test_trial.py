"""Declarations tried on sample files, without Spark: what becomes of each record, and what other declarations change."""

from __future__ import annotations

import gzip
import io
import json
import subprocess
import sys
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from forebay.declaration.loading import parse_service
from forebay.declaration.service import Service
from forebay.errors import InvalidConfiguration
from forebay.landed_file import LandedFile
from forebay.operate.trying.samples import Sample, Samples, read_samples
from forebay.operate.trying.trial import Trial, differences, try_out
from tests.operate.command import failed, ran
from tests.operate.command import given as commanded

SERVICE = """
name = "s"
envelope = { key = "{day}/" }
[[tables]]
name = "sales"
where = { kind = "sale" }
where_sql = "price > 0"
columns = [
  { name = "price", type = "decimal(9,2)" }, { name = "sku", path = "items[0].sku" },
  { name = "day", type = "date", path = "@key.day" },
]
expectations = { cheap = "price < 1000" }
[[tables]]
name = "{kind}"
"""
RECORDS: list[Any] = [
    {"kind": "sale", "price": 1.5, "items": [{"sku": "a"}]},
    {"kind": "sale", "price": "free", "more": {"x": 1}},
    {"kind": "gift", "n": 1},
    {"n": 2},
    {"kind": "No Name"},
]


@pytest.fixture
def samples(tmp_path: Path) -> Path:
    folder = tmp_path / "samples"
    (folder / "2026-11-22").mkdir(parents=True)
    lines = [json.dumps(record) for record in RECORDS]
    (folder / "2026-11-22" / "a.json").write_text("\n".join([*lines, "[1", '{"a":1} x', '{"a":1},{"b":2}']))
    (folder / "b.json.gz").write_bytes(gzip.compress(b'{"kind": "gift", "n": 2.5}')[:-9])
    return folder


def test_what_is_personal_is_told_as_it_would_be_kept(tmp_path: Path) -> None:
    told = '{"kind": "gift", "mail": "anna@example.org"}\n{"mail": "anna@example.org"}\n{"mail": "anna@example.org"\n'
    told += "{'mail': 'anna@example.org'}\n"
    (tmp_path / "a.json").write_text(told)
    (tmp_path / "service.toml").write_text(SERVICE + '[privacy]\npersonal = ["mail"]\n')
    said = failed(1, "try", str(tmp_path / "a.json"), "--service", str(tmp_path / "service.toml"), "--json")
    assert "anna" not in said
    assert "gift" in said


def service_of(text: str = SERVICE) -> Service:
    return parse_service({"service.toml": text})


def tried(folder: Path, text: str = SERVICE) -> Trial:
    return try_out(service_of(text), read_samples([str(folder)]))


def test_every_record_of_a_sample_has_a_fate(samples: Path) -> None:
    trial = tried(samples)
    assert [(table.name, table.rows) for table in trial.tables] == [("sales", 2), ("gift", 1)]
    assert [one["place"] for one in trial.parked] == ["2026-11-22/a.json:4", "2026-11-22/a.json:7"]
    assert [(one["place"], one["reason"]) for one in trial.refused] == [
        ("2026-11-22/a.json:5", "bad-table-name"),
        ("2026-11-22/a.json:6", "not-an-object"),
        ("2026-11-22/a.json:7", "not-json"),
        ("2026-11-22/a.json:8", "several-documents"),
    ]
    assert [(file["file"], file["outcome"], file["records"], file["refused"]) for file in trial.files] == [
        ("2026-11-22/a.json", "loaded", 5, 4),
        ("b.json.gz", "unreadable", 0, 0),
    ]


FEEDS = """
name = "s"
[[feeds]]
name = "trail"
prefix = "AWSLogs/"
key = "AWSLogs/{account}/"
records = "Records"
[[feeds]]
name = "app"
prefix = "app/"
key = "app/{game}/"
[[tables]]
name = "audit"
where = { "@feed" = "trail" }
columns = [{ name = "account", path = "@key.account" }, { name = "file_name", path = "@file" }]
[[tables]]
name = "{@key.game}_events"
where = { "@feed" = "app" }
columns = [{ name = "account", path = "@key.account" }, { name = "object_key", path = "@key" }]
"""


def test_each_feed_has_its_own_envelope_and_a_file_of_none_is_ignored(tmp_path: Path) -> None:
    for name, text in {
        "AWSLogs/7/a.json": '{"Records": [{"n": 1}, {"n": 2}]}',
        "app/alpha/b.json": '{"Records": [{"n": 1}, {"n": 2}]}',
        "app/.hidden.json": "{}",
        "elsewhere/c.json": "{}",
    }.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(text)
    trial = try_out(service_of(FEEDS), read_samples([str(tmp_path)], service_of(FEEDS)))
    assert {table.name: table.rows for table in trial.tables} == {"audit": 2, "alpha_events": 1}
    alpha, audit = sorted(trial.tables, key=lambda table: table.name)
    assert {c.name: c.filled for c in audit.columns if c.source} == {"account": 2, "file_name": 2}
    assert {c.name: c.filled for c in alpha.columns if c.source} == {"account": 0, "object_key": 1}
    assert {file["file"]: file.get("reason", file["outcome"]) for file in trial.files} == {
        "AWSLogs/7/a.json": "loaded",
        "app/alpha/b.json": "loaded",
        "app/.hidden.json": "hidden",
        "elsewhere/c.json": "no-feed",
    }
    assert trial.is_clean


@pytest.mark.parametrize(("key", "is_told"), [("c.json", True), ("AWSLogs/7/c.json", False)])
def test_of_a_sample_that_no_feed_takes_it_is_told_where_to_put_it(key: str, is_told: bool, tmp_path: Path) -> None:
    (tmp_path / "service.toml").write_text(FEEDS)
    file = tmp_path / "samples" / key
    file.parent.mkdir(parents=True)
    file.write_text('{"n": 1}')
    said = ran("try", str(tmp_path / "samples"), "--service", str(tmp_path))
    assert ("the key of a local file is its path inside the folder that you name" in said) == is_told


def test_a_value_of_several_lines_stays_in_its_line(tmp_path: Path) -> None:
    (tmp_path / "service.toml").write_text(
        'name = "s"\n[[tables]]\nname = "t"\ncolumns = [{ name = "n", type = "long" }]\n'
    )
    (tmp_path / "a.json").write_text('{"n": "12\\nforged"}')
    _, said, _ = commanded(("try", str(tmp_path / "a.json"), "--service", str(tmp_path / "service.toml")), "")
    assert r"a.json:1: 12\nforged" in said


SHOP = """
name = "s"
[[tables]]
name = "orders"
where = { id = { exists = true } }
[[tables]]
name = "lines"
explode = "cart.items"
where = { "@parent.kind" = "sale" }
columns = [{ name = "order_id", path = "@parent.id" }, { name = "position", type = "int", path = "@ordinal" }]
"""
ITEMS = st.lists(
    st.fixed_dictionaries({}, optional={"sku": st.text(), "@parent.id": st.just(1)}) | st.none() | st.floats(0, 9)
)
ORDERS = st.lists(st.tuples(st.sampled_from(["sale", "gift"]), st.booleans(), ITEMS), max_size=6)


@settings(max_examples=40, deadline=None)
@given(ORDERS)
def test_every_element_of_an_exploded_array_has_one_fate_and_all_sums_hold(
    drawn: list[tuple[str, bool, list[Any]]],
) -> None:
    orders = [
        {"kind": kind, "cart": {"items": items}} | ({"id": n} if has_id else {})
        for n, (kind, has_id, items) in enumerate(drawn)
    ]
    with TemporaryDirectory() as folder:
        Path(folder, "a.json").write_text("".join(f"{json.dumps(order)}\n" for order in orders))
        trial = try_out(service_of(SHOP), read_samples([folder], service_of(SHOP)))
    rows = {table.name: table.rows for table in trial.tables}
    elements = [(order["kind"], one) for order in orders for one in order["cart"]["items"]]
    sold = sum(kind == "sale" and isinstance(one, dict) for kind, one in elements)
    given_away = sum(kind == "gift" and isinstance(one, dict) for kind, one in elements)
    assert rows.get("orders", 0) == sum("id" in order for order in orders)
    assert (rows.get("lines", 0), list(trial.fates.values()).count("dropped")) == (sold, given_away)
    assert len(trial.parked) == len(orders) - rows.get("orders", 0)
    assert len(trial.refused) == len(elements) - sold - given_away
    (file,) = trial.files
    assert file["records"] == len(orders) + sold + given_away
    assert file["refused"] == len(trial.refused)


def test_columns_have_their_types_and_what_does_not_fit_is_told(samples: Path) -> None:
    sales, gift = tried(samples).tables
    assert [(c.name, c.type, c.filled, c.misfits) for c in sales.columns] == [
        ("price", "decimal(9,2)", 1, 1),
        ("sku", "string", 1, 0),
        ("day", "date", 2, 0),
        ("items[].sku", "string", 1, 0),
        ("kind", "string", 2, 0),
        ("more.x", "long", 1, 0),
    ]
    assert sales.columns[0].example == "2026-11-22/a.json:2: free"
    assert (sales.rescued, sales.unchecked) == (1, ("where_sql: price > 0", "expectation cheap: price < 1000"))
    assert [(c.name, c.type) for c in gift.columns] == [("kind", "string"), ("n", "long")]


def test_a_value_that_fits_in_part_is_in_its_column_and_does_not_fit(tmp_path: Path) -> None:
    """`_rescued` has all of it, too."""
    columns = (
        '{ name = "pos", type = "struct<x: double>" }, { name = "n", type = "double" }, { name = "d", type = "date" }'
    )
    lines = [{"pos": {"x": 1, "z": 2}, "n": 0.5, "d": "2026-11-22"}, {"pos": {"x": "far"}, "n": "many", "d": "soon"}]
    texts = [*map(json.dumps, lines), '{"pos": null, "n": 0.12345678901234567890}']
    (tmp_path / "a.json").write_text("\n".join(texts))
    (table,) = tried(tmp_path, f'name = "s"\n[[tables]]\nname = "t"\ncolumns = [{columns}]\n').tables
    found = [(c.name, c.filled, c.misfits) for c in table.columns]
    assert found == [("pos", 1, 2), ("n", 2, 2), ("d", 1, 1)]


@pytest.mark.parametrize(("otherwise", "at_landing"), [("landed", 2), ("null", 0)])
def test_rows_without_a_readable_time_get_that_of_landing_only_where_it_is_declared(
    otherwise: str, at_landing: int, tmp_path: Path
) -> None:
    (tmp_path / "a.json").write_text('{"at": "2026-11-24T09:00:00Z"}\n{"at": "soon"}\n{"x": 1}\n')
    table = '[[tables]]\nname = "t"\ncolumns = [{ name = "at", type = "timestamp" }]\n'
    text = f'name = "s"\n{table}event_time = {{ column = "at", otherwise = "{otherwise}" }}\n'
    assert [found.at_landing for found in tried(tmp_path, text).tables] == [at_landing]
    (tmp_path / "service.toml").write_text(text)
    said = ran("try", str(tmp_path / "a.json"), "--service", str(tmp_path / "service.toml"))
    assert ("  2 rows get the time of landing as event time" in said) == (otherwise == "landed")


def test_other_declarations_are_compared_record_by_record(samples: Path) -> None:
    after = SERVICE.replace('kind = "sale"', 'kind = ["sale", "gift"]').replace("decimal(9,2)", "string")
    assert differences(tried(samples), tried(samples)) == []
    assert differences(tried(samples), tried(samples, after)) == [
        "1 record: gift -> sales, such as 2026-11-22/a.json:3",
        "table gift: no longer gets records",
        "table sales: column n long is new",
        "table sales: column price: decimal(9,2) -> string",
        "table sales: rows with something rescued: 1 -> 0",
    ]


def test_what_is_not_there_is_named(tmp_path: Path) -> None:
    with pytest.raises(InvalidConfiguration, match="nowhere: does not exist"):
        read_samples([str(tmp_path / "nowhere")])
    with pytest.raises(InvalidConfiguration, match="holds no file"):
        read_samples([str(tmp_path)])


def test_the_command_shows_all_of_it(samples: Path, tmp_path: Path) -> None:
    (tmp_path / "service.toml").write_text(SERVICE)
    asked = ("try", str(samples), "--service", str(tmp_path))
    said = failed(1, *asked)
    assert "checked only by the job: expectation cheap: price < 1000" in said
    named = "table {kind}: kind is 'No Name', which does not match the pattern [a-z0-9][a-z0-9_]{0,62}"
    assert f"2026-11-22/a.json:5  bad-table-name  {named}" in said
    assert "1 record parked" not in said
    assert "2 records parked, because no table accepts them" in said
    told = json.loads(failed(1, *asked, "--json"))
    assert [table["name"] for table in told["tables"]] == ["sales", "gift"]
    assert "nothing changes for these samples" in failed(1, *asked, "--against", str(tmp_path))
    (tmp_path / "good.json").write_text('{"kind": "gift", "n": "\\u001b[31m"}')
    assert "table gift: 1 row\n" in ran("try", str(tmp_path / "good.json"), "--service", str(tmp_path))


def test_rules_that_depend_on_when_a_file_lands_are_named_as_not_judged() -> None:
    text = """name = "s"
    [[tables]]
    name = "a"
    columns = [{ name = "at", type = "timestamp" }, { name = "day" }]
    event_time = { column = "at", oldest_days = 30, ahead_hours = 24 }
    partitions = ["day"]
    partition_values = { day = "2.*" }
    """
    record = Sample(LandedFile("", "a.json"), 1, '{"at": "1999-01-01T00:00:00Z", "day": "x"}')
    (table,) = try_out(service_of(text), Samples((record,), ())).tables
    assert table.unchecked == ("event_time.oldest_days: 30", "event_time.ahead_hours: 24", "partition_values.day: 2.*")


def test_a_trial_imports_no_spark() -> None:
    code = (
        "import sys, forebay.operate.trying.trial; print([m for m in ('pyspark', 'py4j', 'delta') if m in sys.modules])"
    )
    ran = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert ran.stdout.strip() == "[]"


def test_a_sample_that_this_machine_does_not_give_says_so_and_the_others_are_tried(tmp_path: Path) -> None:
    (tmp_path / "a.json").write_text('{"kind": "gift"}')
    (tmp_path / "gone.json").symlink_to("/proc/self/mem")  # begins with what nobody may read
    trial = tried(tmp_path)
    assert [(file["file"], file["outcome"]) for file in trial.files] == [
        ("a.json", "loaded"),
        ("gone.json", "unavailable"),
    ]
    assert "Input/output error" in trial.files[1]["detail"]


def test_more_samples_than_memory_should_hold_are_refused_before_they_are_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("forebay.operate.trying.samples.MOST_BYTES", 1000)
    (tmp_path / "large.json").write_text('{"kind": "gift"}\n' * 100)
    with pytest.raises(InvalidConfiguration, match=r"hold 1,700 bytes, and 1,000 is the limit"):
        tried(tmp_path)
    (tmp_path / "large.json").write_bytes(gzip.compress(b'{"kind": "gift"}\n' * 100))
    (tmp_path / "large.json").rename(tmp_path / "large.json.gz")
    with pytest.raises(InvalidConfiguration, match=r"their records have more than 1,000 bytes"):
        tried(tmp_path)


def test_of_very_many_files_a_sample_is_tried_and_it_says_so(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("forebay.operate.trying.samples.MOST_FILES", 4)
    for n in range(10):
        (tmp_path / f"{n}.json").write_text(f'{{"kind":"gift","n":{n}}}')
    trial = tried(tmp_path)
    assert ([file["file"] for file in trial.files], trial.left_out) == (["0.json", "2.json", "5.json", "7.json"], 6)
    assert trial.as_json()["left_out"] == 6
    declared = tmp_path / "service.toml"
    declared.write_text(SERVICE)
    assert "4 of 11 files were read, as a sample" in ran("try", str(tmp_path), "--service", str(declared)).replace(
        "\n", " "
    )


def test_a_sample_of_very_many_files_is_no_larger_than_may_be(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("forebay.operate.trying.samples.MOST_FILES", 8)
    monkeypatch.setattr("forebay.operate.trying.samples.MOST_BYTES", 12_000)
    for n in range(10):
        (tmp_path / f"{n}.json").write_text(f'{{"kind":"gift","x":"{"x" * 2000}"}}\n')
    assert (len(tried(tmp_path).files), tried(tmp_path).left_out) == (4, 6)


def test_no_more_of_a_place_is_listed_than_a_sample_is_taken_of(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("forebay.operate.trying.samples.MOST_LISTED", 3)
    pages = iter([[{"Key": f"in/{n}", "Size": 1, "ETag": "e"}] for n in range(9)])

    class Listing:
        def get_paginator(self, _: str) -> Listing:
            return self

        def paginate(self, **_: Any) -> Any:
            return ({"Contents": page} for page in pages)

        def get_object(self, **_: Any) -> Any:
            return {"ContentLength": 2, "Body": io.BytesIO(b"{}"), "Metadata": {}}

    assert len(read_samples(["s3://b/in/"], s3=Listing()).ends) == 3
    assert len(list(pages)) == 6


MERGED = """
name = "s"
[[tables]]
name = "changes"
mode = "merge"
columns = [{ name = "id", type = "long" }, { name = "at", type = "timestamp", unit = "s" }, { name = "op" }]
merge = { into = "things", keys = ["id"], sequence_by = ["at"], delete_when = "op = 'd'" }
"""


def test_a_merge_tells_which_records_would_win_and_which_cannot_be_placed(tmp_path: Path) -> None:
    records = [
        {"id": 1, "at": 1763719200, "op": "u"},
        {"id": "1", "at": "2025-11-21T09:00:00Z", "op": "u"},
        {"id": 2, "at": 1763719200, "op": "d"},
        {"id": None, "at": 1763719200},
        {"id": "one", "at": 1763719200},
        {"id": 3, "at": "soon"},
    ]
    (tmp_path / "a.json").write_text("\n".join(map(json.dumps, records)))
    service = service_of(MERGED)
    trial = try_out(service, read_samples([str(tmp_path)], service))
    (table,) = trial.tables
    assert table.rows == 3
    assert table.state is not None
    assert (table.state.name, table.state.keys) == ("things", 2)
    assert [place.rpartition(":")[2] for place in table.state.winners] == ["1", "3"]
    assert [one["reason"] for one in trial.refused] == ["no-key", "no-key", "no-sequence"]
    assert "merge.delete_when: op = 'd'" in table.unchecked


def test_a_merge_tells_which_texts_cannot_name_a_partition(tmp_path: Path) -> None:
    worlds = ["w", "w" * 101, "__HIVE_DEFAULT_PARTITION__", "nul\0", ""]
    (tmp_path / "a.json").write_text("\n".join(json.dumps({"id": 1, "at": 1, "world": world}) for world in worlds))
    said = MERGED.replace('{ name = "op" }', '{ name = "world" }').replace(", delete_when = \"op = 'd'\"", "")
    service = service_of(said.replace('["id"]', '["id", "world"], partitions = ["world"]'))
    trial = try_out(service, read_samples([str(tmp_path)], service))
    assert trial.tables[0].rows == 1
    assert [one["reason"] for one in trial.refused] == [*["bad-partition-value"] * 3, "no-key"]


def test_of_a_history_each_moment_of_a_key_is_won_by_one_record(tmp_path: Path) -> None:
    records = [{"id": 1, "at": 1}, {"id": 1, "at": 2}, {"id": 2, "at": 2}, {"id": 1, "at": 2}]
    (tmp_path / "a.json").write_text("\n".join(map(json.dumps, records)))
    service = service_of(MERGED.replace("delete_when = \"op = 'd'\"", 'history = "scd2"'))
    (table,) = try_out(service, read_samples([str(tmp_path)], service)).tables
    assert table.state is not None
    assert (table.state.keys, [place.rpartition(":")[2] for place in table.state.winners]) == (2, ["1", "3", "4"])


def test_of_snapshots_only_rows_of_the_newest_would_win(tmp_path: Path) -> None:
    records = [{"id": 1, "at": 2}, {"id": 2, "at": 1}, {"id": 3, "at": 2}, {"id": 3, "at": 1}]
    (tmp_path / "a.json").write_text("\n".join(map(json.dumps, records)))
    service = service_of(MERGED.replace("delete_when = \"op = 'd'\"", "snapshot = true"))
    (table,) = try_out(service, read_samples([str(tmp_path)], service)).tables
    assert table.state is not None
    assert [place.rpartition(":")[2] for place in table.state.winners] == ["1", "3"]


REPEATED = """
name = "s"
[[tables]]
name = "{kind}s"
columns = [
  { name = "id" }, { name = "price", type = "decimal(9,2)" }, { name = "at", type = "timestamp", unit = "s" },
]
dedupe = { by = ["id", "price", "at"] }
[[tables]]
name = "computed"
columns = [{ name = "id", type = "long", expression = "1" }]
dedupe = { by = ["id"] }
"""


def test_records_that_dedupe_would_drop_are_told_and_make_no_rows(tmp_path: Path) -> None:
    records = [
        {"kind": "sale", "id": "a", "price": 1.5, "at": 1763719200},
        {"kind": "sale", "id": "a", "price": "1.50", "at": "2025-11-21T10:00:00Z", "only": "here"},
        {"kind": "gift", "id": "a", "price": 1.5, "at": 1763719200},
        {"kind": "sale", "id": "a", "price": "free", "at": 1763719200},
        {"kind": "sale", "id": "a", "at": 1763719200},
        {"kind": "sale", "price": "free"},
        {"kind": "sale"},
        {"id": "a"},
        {"id": "a"},
    ]
    (tmp_path / "a.json").write_text("\n".join(map(json.dumps, records)))
    service = service_of(REPEATED)
    trial = try_out(service, read_samples([str(tmp_path)], service))
    tables = {table.name: table for table in trial.tables}
    assert {name: table.rows for name, table in tables.items()} == {"computed": 2, "gifts": 1, "sales": 4}
    assert [place.rpartition(":")[2] for place in tables["sales"].duplicates] == ["2", "5"]
    assert "only" not in {column.name for column in tables["sales"].columns}
    assert list(trial.fates.values()).count("dropped as a duplicate in sales") == 2
    assert [tables[name].unchecked for name in ("computed", "sales")] == [("column id: 1", "dedupe by id"), ()]
    (tmp_path / "service.toml").write_text(REPEATED)
    asked = ("try", str(tmp_path / "a.json"), "--service", str(tmp_path / "service.toml"))
    assert "2 records would be dropped as duplicates" in ran(*asked)
    before = try_out(service_of(REPEATED.replace('["id", "price", "at"]', '["id"]')), read_samples([str(tmp_path)]))
    assert "1 record: sales -> dropped as a duplicate in sales" in "\n".join(differences(trial, before))


STEP = Path(__file__).resolve().parents[2] / "examples" / "python-step"


def test_a_function_of_the_declarations_is_tried_on_the_samples(tmp_path: Path) -> None:
    file = tmp_path / "orders.jsonl"
    amounts = ['"1.299,00"', '"many"', "null", '"4,90"']
    file.write_text("\n".join(f'{{"order_id": "o-{n}", "amount": {text}}}' for n, text in enumerate(amounts)))
    said = json.loads(failed(1, "try", str(file), "--service", str(STEP), "--json"))
    (table,) = said["tables"]
    assert [one.partition("orders.jsonl:")[2] for one in table["transformed"]] == [
        "1: paid: None -> 1299.00",
        "4: paid: None -> 4.90",
    ]
    assert {column["name"]: column["filled"] for column in table["columns"]}["paid"] == table["rows"] == 2
    assert [(one["reason"], one["detail"]) for one in said["refused"]] == [
        ("transform", "ArrowInvalid: The string 'many' is not a valid decimal128 number (shop.py, line 10)"),
        ("transform", "no amount"),
    ]
    assert [(one["records"], one["refused"]) for one in said["files"]] == [(2, 2)]


def test_a_function_may_refuse_all_samples_of_a_table(tmp_path: Path) -> None:
    (tmp_path / "orders.jsonl").write_text('{"order_id": "o-1"}')
    said = failed(1, "try", str(tmp_path / "orders.jsonl"), "--service", str(STEP))
    assert "table orders: 0 rows\n" in said
    assert "orders.jsonl:1  transform  no amount" in said


def test_other_declarations_are_compared_with_their_own_functions(tmp_path: Path) -> None:
    """In folders whose modules have the same names."""
    (tmp_path / "a.json").write_text('{"at": "2026-11-21T10:00:00Z", "n": 1}')
    for name, micros in (("old", 3_600_000_000), ("new", 7_200_000_000)):
        (tmp_path / name / "transforms").mkdir(parents=True)
        columns = 'columns = [{ name = "at", type = "timestamp" }, { name = "n", type = "long" }]'
        (tmp_path / name / "service.toml").write_text(
            f'name = "s"\n[[tables]]\nname = "t"\ntransform = "a:f"\n{columns}'
        )
        (tmp_path / name / "transforms" / "a.py").write_text(
            "import pyarrow as pa\ndef f(rows):\n    kinds = rows.schema\n"
            f"    return pa.table([pa.array([{micros}]).cast(kinds[0].type), pa.array([2])], schema=kinds)"
        )
    asked = ("try", str(tmp_path / "a.json"), "--service", str(tmp_path / "new"))
    assert "at: 2026-11-21 10:00:00+00:00 -> 1970-01-01 02:00:00+00:00, n: 1 -> 2" in ran(*asked)
    assert "nothing changes" in ran(*asked, "--against", str(tmp_path / "new"))
    assert "1 record transformed otherwise" in ran(*asked, "--against", str(tmp_path / "old"))


def test_what_a_function_prints_is_not_the_answer_of_a_command(tmp_path: Path) -> None:
    (tmp_path / "a.json").write_text('{"n": 1}')
    columns = 'columns = [{ name = "n", type = "long" }]'
    (tmp_path / "service.toml").write_text(f'name = "s"\n[[tables]]\nname = "t"\ntransform = "a:f"\n{columns}')
    (tmp_path / "transforms").mkdir()
    (tmp_path / "transforms" / "a.py").write_text("print('here')\ndef f(rows):\n    print('called')\n    return rows")
    checked = commanded(("tables", "check", "--no-sql", "--json", str(tmp_path)), "")
    tried = commanded(("try", str(tmp_path / "a.json"), "--service", str(tmp_path), "--json"), "")
    assert "kind" in json.loads(checked[1])
    assert "tables" in json.loads(tried[1])
    assert (checked[2], tried[2]) == ("here\n", "here\ncalled\n")


def test_a_function_that_is_not_there_is_named_before_anything_is_tried(tmp_path: Path) -> None:
    (tmp_path / "service.toml").write_text((STEP / "service.toml").read_text().replace("shop:", "nowhere:"))
    for command in (("try", str(STEP / "samples"), "--service"), ("tables", "check", "--no-sql")):
        said = failed(2, *command, str(tmp_path))
        assert "table orders: transform" in said
        assert "nowhere:priced cannot be imported: ModuleNotFoundError" in " ".join(said.split())
