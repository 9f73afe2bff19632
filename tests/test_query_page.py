"""The blocks of docs/query.md, and other SQL of the documents, run against a small Delta table that delta-rs wrote.

The block of a consumer that copies a table runs in `tests/batch/test_streams.py`, behind every command.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
from datetime import UTC, date, datetime, timedelta
from pathlib import Path
from typing import Any, NamedTuple

import pyarrow as pa
import pytest
from deltalake import DeltaTable, write_deltalake
from pyspark.sql import DataFrame, SparkSession

from forebay.lake.objects import open_objects
from forebay.ledger.periods import FeedPeriod, Periods
from infra.bundle import ROOT
from tests.clean_environment import installed
from tests.duckdb_apart import ask_duckdb
from tests.operate.command import ran
from tests.operate.ledger import entry, write_ledger

PAGE = (ROOT / "docs" / "query.md").read_text()
PLACE = "s3://studio-lake/orders"
PINNED = ("pandas==3.1.1", "polars==2.1.0")
"""The page's other packages are in requirements.lock."""


class Block(NamedTuple):
    text: str
    needs: str
    not_run: bool


def _blocks() -> list[Block]:
    found = re.findall(r"([^\n]*)\n```python\n(.*?)```", PAGE, re.S)
    return [Block(text, _needs(text), before.startswith("<!-- not run: ")) for before, text in found]


def _needs(text: str) -> str:
    return "spark" if "spark." in text else "polars" if "polars" in text else "delta-rs"


RUN = [block for block in _blocks() if not block.not_run]


def blocks(needs: str) -> list[Any]:
    chosen = [block.text for block in RUN if block.needs == needs]
    return [pytest.param(text, id=str(number)) for number, text in enumerate(chosen)]


@pytest.fixture
def place(tmp_path: Path) -> str:
    """Orders of two days, in two versions."""
    customers = pa.struct([("id", "string"), ("country", "string")])
    columns = {"order_id": "string", "total": "float64", "customer": customers, "day": "date32", "_rescued": "string"}
    customer = {"id": "c-1", "country": "DE"}
    days = {date(2026, 11, 23): ["o-0"], date(2026, 11, 24): ["o-1", "o-3"]}
    for day, names in days.items():
        rows = [
            {
                "order_id": name,
                "total": 49.9 if name == "o-1" else None,
                "customer": customer,
                "day": day,
                "_rescued": None,
            }
            for name in names
        ]
        feed = {"delta.enableChangeDataFeed": "true"}
        table = pa.Table.from_pylist(rows, pa.schema(columns))
        write_deltalake(tmp_path / "orders", table, mode="append", partition_by=["day"], configuration=feed)
    return str(tmp_path / "orders")


@pytest.mark.parametrize("text", blocks("delta-rs"))
def test_a_block_for_delta_rs_or_duckdb_runs(text: str, place: str) -> None:
    """In a process of its own, as `tests.duckdb_apart` says. It must also end well: threads of Arrow may abort one that read a
    table with `to_pyarrow_table`."""
    assert "to_pyarrow" not in text
    found = next(name for name in ("table", "orders", "rows") if f"\n{name} = " in text)
    text += f"\nprint({found}.num_rows)"
    env = {**os.environ, "FOREBAY_LAKE": str(Path(place).parent)}
    done = subprocess.run([sys.executable, "-c", text], env=env, capture_output=True, text=True, check=False)
    expected = ["1" if "version=0" in text else "3"]
    assert (done.returncode, done.stdout.splitlines()[-1:]) == (0, expected), done.stderr


@pytest.mark.deep
def test_the_block_for_pandas_and_polars_runs_after_the_line_that_installs_them(place: str, tmp_path: Path) -> None:
    (text,) = (block.text for block in RUN if block.needs == "polars")
    (packages,) = re.findall(r"`pip install (pandas .*?)`", PAGE)
    programs = installed(tmp_path / "analyst", *packages.split(), pinned=PINNED)
    text += "print(len(frame), lazy.collect().height)\n"
    env = {**os.environ, "FOREBAY_LAKE": str(Path(place).parent)}
    done = subprocess.run([programs / "python", "-c", text], env=env, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout.splitlines()[-1:]) == (0, ["3 1"]), done.stderr


@pytest.mark.deep
def test_the_blocks_for_spark_run(spark: SparkSession, place: str, tmp_path: Path) -> None:
    # To Spark, the time of a commit is that of its file, which may be a millisecond before the one in its text.
    newest = max(commit.stat().st_mtime_ns for commit in Path(place, "_delta_log").glob("*.json")) // 1_000_000
    at = spark.sql(f"select string(timestamp_millis({newest}))").first()
    assert at
    read = {}
    for text in [block.text for block in RUN if block.needs == "spark" and "foreachBatch" not in block.text]:
        here = text.replace(PLACE, place).replace("2026-11-24 12:00", at[0])
        names: dict[str, Any] = {"spark": spark}
        exec(compile(here, "docs/query.md", "exec"), names)
        read |= {name: frame for name, frame in names.items() if isinstance(frame, DataFrame)}
    counts = {name: _counted(frame, tmp_path / name) for name, frame in read.items()}
    assert counts == {"orders": 3, "by_number": 1, "by_time": 3, "new_rows": 3}


def _counted(frame: DataFrame, scratch: Path) -> int:
    """The rows of a table, or those that a stream has written when it has read all."""
    if not frame.isStreaming:
        return frame.count()
    stream = frame.writeStream.format("parquet").option("checkpointLocation", f"{scratch}/checkpoint")
    stream.trigger(availableNow=True).start(f"{scratch}/rows").awaitTermination()
    return frame.sparkSession.read.parquet(f"{scratch}/rows").count()


def test_two_blocks_do_not_run_and_the_others_all_have_a_test() -> None:
    assert [block.text.split("; ")[0] for block in _blocks() if block.not_run] == [
        'import duckdb\n\nduckdb.sql("install delta'
    ]
    documents = ("query.md", "tutorial.md", "states.md")
    found = [re.findall(r"([^\n]*)\n```sql\n", (ROOT / "docs" / document).read_text()) for document in documents]
    marked = [[before.startswith("<!-- not run: ") for before in of_one] for of_one in found]
    assert marked == [[False, True], [False], [False]]


QUERIES = re.findall(r"^\$ forebay query (['\"])(.*?)\1", PAGE, re.M)


def test_the_queries_of_the_command_line_find_their_rows(tmp_path: Path) -> None:
    """The last but one asks for files without rows, and the last for the hours of yesterday."""
    lake, now = str(tmp_path), datetime.now(UTC)
    yesterday = now - timedelta(days=1)
    file = entry("in/a.json", at=yesterday, tables={"orders": 1})
    write_ledger(lake, file, entry("in/b.json", at=yesterday, outcome="superseded"))
    row = {"order_id": "o-3", "total": 1.5, "at": now - timedelta(days=3), "day": yesterday.date(), "_rescued": "{}"}
    of_ours = {"_file_id": file["file_id"], "_line": 3, "_ingested_at": now}
    write_deltalake(f"{lake}/orders", pa.Table.from_pylist([{**row, **of_ours}]))
    refused = {"day": now.date(), "key": "in/a.json", "line": 6, "reason": "not-json", "detail": "?", "record": "{"}
    write_deltalake(f"{lake}/_forebay/quarantine", pa.Table.from_pylist([refused]))
    hour = yesterday.replace(minute=0, second=0, microsecond=0)
    seen = FeedPeriod(service="shop", feed="all", period=hour, ends=hour + timedelta(hours=1), since=hour)
    Periods(open_objects(f"{lake}/_forebay/complete")).change(lambda _: [seen])
    assert len(QUERIES) == 11
    for _, text in QUERIES:
        some = ran("query", text, "--lake", lake, "--json")
        assert some, text
        assert "describe" in text or len(some.splitlines()) == (2 if "group by outcome" in text else 1), text


@pytest.mark.parametrize("document", ["query.md", "tutorial.md"])
def test_sql_for_athena_is_of_the_columns_that_the_tutorial_declares(document: str, place: str) -> None:
    """DuckDB has the same words for it."""
    (text,) = re.findall(
        r"```sql\n(select [^`]*?forebay_prod\.orders.*?)```", (ROOT / "docs" / document).read_text(), re.S
    )
    found = ask_duckdb(
        "create schema forebay_prod",
        "create table forebay_prod.orders as from rows",
        text,
        tables={"rows": DeltaTable(place).to_pyarrow_table()},
    )
    assert sum(value or 0 for value in found[-1].to_pylist()) == (2 if document == "query.md" else 49.9)


def test_sql_for_a_table_with_a_history_finds_the_version_of_the_time() -> None:
    (text,) = re.findall(r"```sql\n(select e\.\*.*?)```", (ROOT / "docs" / "states.md").read_text(), re.S)
    found = ask_duckdb(
        "create table purchases as select * from (values ('p', 2), ('p', 7), ('q', 1)) t(player, \"at\")",
        "create table player_versions as select * from "
        "(values ('p', 'DE', 1, 5), ('p', 'FR', 5, null)) t(player, country, valid_from, valid_to)",
        text,
    )
    rows = zip(*(column.to_pylist() for column in found.columns), strict=True)
    assert sorted(rows, key=str) == [("p", 2, "DE"), ("p", 7, "FR"), ("q", 1, None)]
