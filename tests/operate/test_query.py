"""SQL over the lake: whatever reads is answered, and whatever writes is refused."""

from __future__ import annotations

import json
import re
import shutil
from datetime import UTC, date, datetime
from decimal import Decimal
from pathlib import Path

import pyarrow as pa
import pytest
from deltalake import DeltaTable, write_deltalake

from forebay.cli.main import main
from forebay.cli.show import console
from tests.operate.command import failed, ran
from tests.operate.ledger import entry, write_ledger


@pytest.fixture
def lake(tmp_path: Path) -> str:
    write_ledger(tmp_path, entry("in/a.json", tables={"alpha": 2}), entry("in/b.gz", outcome="unreadable"))
    write_deltalake(
        tmp_path / "alpha", pa.table({"v": [1, 2], "text": ["insert into", "\x1b[31mred\n"], "set": [1, 1]})
    )
    return str(tmp_path)


def rows(lake: str, sql: str) -> list[dict[str, object]]:
    return [json.loads(line) for line in ran("query", sql, "--lake", lake, "--json").splitlines()]


def test_tables_and_the_ledger_are_asked_together(lake: str) -> None:
    asked = "select outcome, count(*) n from ledger group by outcome order by outcome; "
    assert rows(lake, asked) == [{"outcome": "loaded", "n": 1}, {"outcome": "unreadable", "n": 1}]
    both = "with x as (select max(v) m from alpha) select m, key from x, ledger where written = m"
    assert rows(lake, both) == [{"m": 2, "key": "in/a.json"}]


def test_words_that_write_may_stand_in_texts_and_in_quoted_names(lake: str) -> None:
    assert rows(lake, "select count(*) n from alpha where text = 'insert into' -- delete\n") == [{"n": 1}]
    assert rows(lake, 'select sum("set") n from alpha /* drop */') == [{"n": 2}]


def test_a_quote_in_a_name_begins_no_text(lake: str) -> None:
    write_deltalake(f"{lake}/notes", pa.table({"it's": ["o'x"], "a;b": [1]}))
    asked = """select "it's" as x, "a;b" as y from notes where "it's" is not null"""
    assert rows(lake, asked) == [{"x": "o'x", "y": 1}]
    hidden = """with "a'" as (select 1) insert into alpha select * from "a'" """
    assert "has the word insert" in failed(2, "query", hidden, "--lake", lake)


def test_what_is_no_json_is_text_in_it(lake: str) -> None:
    (line,) = ran("query", "select 0.0 / 0 as x, -1.0 / 0 as y, 'NaN' as z", "--lake", lake, "--json").splitlines()
    assert json.loads(line, parse_constant=pytest.fail) == {"x": "NaN", "y": "-Infinity", "z": "NaN"}


def test_times_and_decimals_in_arrays_and_structs_are_written_like_those_in_columns(lake: str) -> None:
    part = pa.struct([("at", pa.timestamp("us", "UTC")), ("price", pa.decimal128(10, 2)), ("day", pa.date32())])
    one = {"at": datetime(2026, 11, 24, 10, tzinfo=UTC), "price": Decimal("1.50"), "day": date(2026, 11, 24)}
    table = {"parts": pa.array([[one, None]], pa.list_(part)), "sku": pa.array([{"x": "a'b", "n": None}])}
    write_deltalake(f"{lake}/carts", pa.table(table))
    said = ran("query", "select parts, sku from carts", "--lake", lake).splitlines()[1]
    parts = "[{'at': 2026-11-24 10:00:00+00:00, 'price': 1.50, 'day': 2026-11-24}, None]"
    assert said == parts + """  {'n': None, 'x': "a'b"}"""


@pytest.mark.parametrize(
    ("sql", "says"),
    [
        (
            "select * form alpha",
            "query: is not SQL: Expected: end of statement, found: form at Line: 1, Column: 10 (tables are",
        ),
        (
            "select V from alpha",
            "query: there is no column V; columns are alpha.v, alpha.text, alpha.set (did you mean alpha.v?",
        ),
        ('select v from alpha where text = "a b"', "query: there is no column a b; columns are alpha.v,"),
        ("select zzz", "query: there is no column zzz (tables are after_load, alpha, complete, ledger,"),
        ("select abs('x') from alpha", "query: "),
    ],
)
def test_what_the_engine_refuses_is_one_line(lake: str, sql: str, says: str) -> None:
    (Path(lake) / "declarations").mkdir()
    said = failed(2, "query", sql, "--lake", lake)
    assert says in said
    assert "declarations" not in said
    assert said.count("\n") == 1
    assert not {"Schema error", "enable_ident"} & {word for word in ("Schema error", "enable_ident") if word in said}


@pytest.mark.parametrize(
    "sql",
    [
        "delete from alpha",
        "insert into alpha values (1)",
        "with x as (select 1) insert into alpha select * from x",
        "copy (select * from alpha) to 'stolen.parquet'",
        "create external table x stored as parquet location '/etc'",
        "select 1; drop table alpha",
        "explain analyze insert into alpha select * from alpha",
        "",
    ],
)
def test_what_would_write_is_refused_and_nothing_changes(lake: str, sql: str) -> None:
    assert re.search(
        r"must be a SELECT|several statements|has the word \w+, and only", failed(2, "query", sql, "--lake", lake)
    )
    assert DeltaTable(f"{lake}/alpha").version() == 0


def test_a_mistake_is_one_answer_with_the_tables_that_there_are(lake: str) -> None:
    said = failed(2, "query", "select * from alhpa", "--lake", lake)
    assert "alhpa" in said
    assert "(did you mean alpha? Tables are after_load, alpha, complete, ledger" in said


def test_a_text_in_double_quotes_is_told_the_quotes_of_sql(lake: str) -> None:
    said = failed(2, "query", 'select * from ledger where outcome = "loaded"', "--lake", lake)
    assert """write names in "double" quotes, and texts in 'single' quotes""" in said


def test_a_table_whose_log_was_deleted_is_told_as_such(lake: str) -> None:
    shutil.rmtree(Path(lake, "alpha", "_delta_log"))
    told = (
        "forebay: table alpha: lost: the ledger counts 2 rows, and there is no Delta log; restore its objects, or run"
    )
    assert told in failed(2, "query", "select * from alpha", "--lake", lake)
    assert told in failed(2, "where", "1", "--row", "alpha", "--by", "v", "--lake", lake)


def test_a_data_file_that_was_deleted_is_named_with_the_page_that_says_what_to_do(lake: str) -> None:
    (gone,) = DeltaTable(f"{lake}/alpha").file_uris()
    Path(gone).unlink()
    told = f"forebay: query: the data file {gone} was deleted (see docs/disasters.md, Deleted objects)\n"
    assert failed(2, "query", "select * from alpha", "--lake", lake) == told


def test_a_table_of_forebay_that_no_batch_has_needed_yet_is_told_to_be_empty(lake: str) -> None:
    said = failed(2, "query", "select * from quarantine", "--lake", lake)
    assert said == "forebay: query: quarantine has no rows yet (forebay creates this table with its first row)\n"
    for table, needs in (("complete", "feeds that declare `complete`"), ("quality", "that tables declare")):
        assert needs in failed(2, "query", f"select * from {table}", "--lake", lake)


def test_control_characters_of_data_do_not_reach_the_terminal(lake: str) -> None:
    said = ran("query", "select text from alpha where v = 2", "--lake", lake)
    assert said.splitlines()[1].rstrip() == "\\x1b[31mred"


def test_a_long_value_is_cut_on_a_terminal_and_whole_in_a_pipe(lake: str, monkeypatch: pytest.MonkeyPatch) -> None:
    asked = ("query", f"select '{'x' * 90}' as it", "--lake", lake)
    assert ran(*asked).split() == ["it", "x" * 90]
    monkeypatch.setattr(console, "_force_terminal", True)
    assert "x" * 60 + "…" in ran(*asked)


def test_the_rows_of_a_rollup_lead_to_no_file(lake: str) -> None:
    said = failed(2, "where", "1", "--row", "alpha", "--by", "v", "--lake", lake)
    hint = "the rows of a rollup come from many files: name a table that it reads"
    assert said == f"forebay: --row alpha: its rows do not name a file ({hint})\n"


def test_a_row_that_is_too_wide_for_the_terminal_is_shown_column_by_column(
    lake: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(console, "_width", 80)
    with pytest.raises(SystemExit) as ended:
        main(["query", "select * from ledger order by key", "--lake", lake])
    said = capsys.readouterr().out.splitlines()
    assert (ended.value.code, max(map(len, said)) <= 80) == (0, True)
    assert "outcome          loaded" in said
    assert said.count("") == 1, "between the two rows"
    with pytest.raises(SystemExit):
        main(["query", "select outcome, key from ledger order by key", "--lake", lake])
    assert [line.split() for line in capsys.readouterr().out.splitlines()] == [
        ["outcome", "key"],
        ["loaded", "in/a.json"],
        ["unreadable", "in/b.gz"],
    ]


def test_a_long_answer_says_that_it_is_cut(lake: str) -> None:
    from tests.operate.command import given

    status, out, err = given(("query", "select v from alpha order by v", "--lake", lake, "--limit", "1"), "")
    assert (status, len(out.splitlines()), "1 of 2 rows" in err) == (0, 2, True)
