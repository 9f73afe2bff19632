"""The same records end in the same rows, whatever format they come in; and the accounts hold for all formats."""

from __future__ import annotations

import csv
import io
import json
import zipfile
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from tests.content.avro_files import avro_file
from tests.journey.story import Story, lines

SERVICE = """
name = "formats"

[[tables]]
name = "{kind}"
columns = [
  { name = "n", type = "long" },
  { name = "price", type = "decimal(38,18)" },
  { name = "share", type = "double" },
  { name = "at", type = "timestamp" },
  { name = "code" },
  { name = "kind" },
]
dedupe = { by = ["n", "kind"], days = 3 }
"""
ROWS = [
    {
        "n": n,
        "price": f"{n + 1}1234567890.123456789",
        "share": 0.1 * n,
        "at": f"2026-11-22T10:30:00.{n:06}Z",
        "code": f"00{n}é",
    }
    for n in range(50)
]
SCHEMA = {
    "type": "record",
    "name": "R",
    "fields": [{"name": k, "type": t} for k, t in (("n", "long"), ("share", "double"))]
    + [{"name": k, "type": "string"} for k in ("price", "at", "code", "kind")],
}


def of_kind(kind: str) -> list[dict[str, Any]]:
    return [{**row, "kind": kind} for row in ROWS]


def csv_of(kind: str, *, more: str = "") -> bytes:
    written = io.StringIO()
    writer = csv.DictWriter(written, ["kind", *ROWS[0]])
    writer.writeheader()
    writer.writerows(of_kind(kind))
    return (written.getvalue() + more).encode()


def parquet_of(kind: str) -> bytes:
    rows = [{**row, "price": Decimal(str(row["price"]))} for row in of_kind(kind)]
    written = io.BytesIO()
    table = pa.Table.from_pylist(rows)
    at = table.schema.get_field_index("at")
    pq.write_table(table.set_column(at, "at", table["at"].cast(pa.timestamp("us", "UTC"))), written)
    return written.getvalue()


def zip_of(members: dict[str, bytes]) -> bytes:
    written = io.BytesIO()
    with zipfile.ZipFile(written, "w") as archive:
        for name, content in members.items():
            archive.writestr(name, content)
    return written.getvalue()


def test_the_same_records_are_the_same_rows_in_every_format(told: Story, tmp_path: Path) -> None:
    (tmp_path / "service.toml").write_text(SERVICE)
    told.service = str(tmp_path)
    told.put("a.json", lines(of_kind("as_json")))
    told.put("a.csv", csv_of("as_csv", more="as_csv,1,2\r\n"))
    told.put("a.parquet", parquet_of("as_parquet"))
    told.put("a.avro", avro_file(SCHEMA, of_kind("as_avro"), codec="deflate"))
    told.put(
        "a.zip", zip_of({"x.csv": csv_of("as_member"), "y.json": json.dumps({"kind": "as_member", "n": -1}).encode()})
    )
    told.put("torn.parquet", parquet_of("as_parquet")[:-9])
    told.put("torn.zip", zip_of({"x.csv": csv_of("as_csv")})[:-9])

    sums = told.run()

    assert sums.differences() == []
    columns = "select n, price, share, at, code from t where n >= 0 order by n"
    expected = told.rows("as_json", columns)
    assert [(row["n"], str(row["price"])) for row in expected] == [(r["n"], f"{r['price']}000000000") for r in ROWS]
    for name in ("as_csv", "as_parquet", "as_avro", "as_member"):
        assert told.rows(name, columns) == expected, name
        assert told.rows(name, "select count(*) as c from t where _rescued is not null") == [{"c": 0}]
    places = told.rows("as_parquet", "select n from t where _line = n + 1")
    assert len(places) == len(ROWS)
    members = told.rows("as_member", "select x_member, count(*) as c from t group by 1 order by 1")
    assert members == [{"x_member": "x.csv", "c": 50}, {"x_member": "y.json", "c": 1}]
    kept = told.rows("_forebay/quarantine", "select key, line, reason, record from t order by key")
    assert [(row["key"], row["line"], row["reason"]) for row in kept] == [
        ("in/a.csv", 52, "not-a-row"),
        ("in/torn.parquet", None, "corrupt-file"),
        ("in/torn.zip", None, "corrupt-archive"),
    ]
    assert kept[0]["record"] == "as_csv,1,2"
