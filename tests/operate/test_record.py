"""The record that a row came from, as S3 has it now: `forebay where --row --text`, without a JVM."""

from __future__ import annotations

import gzip
import io
import json
import zipfile
from pathlib import Path
from typing import Any

import boto3
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from deltalake import write_deltalake

from forebay.content.limits import Limits
from forebay.declaration.kept.in_force import keep_in_force
from forebay.declaration.loading import parse_service
from forebay.operate.lake_view import LakeView
from forebay.operate.looking import record
from forebay.operate.looking.files import versions_of
from forebay.operate.looking.record import Traced, rows_traced
from forebay.privacy.secret import make_secret
from tests.operate.command import failed, ran
from tests.operate.ledger import entry, write_ledger

SERVICE = """
name = "games"
[[tables]]
name = "moves"
where = { kind = "move" }
columns = [{ name = "event_id", path = "id" }, { name = "n", type = "long" }]
mode = "merge"
merge = { into = "newest", keys = ["event_id"], sequence_by = ["n"] }
[[tables]]
name = "alpha"
where = { game = "alpha" }
[[tables]]
name = "beta"
where = { game = "beta" }
[[rollups]]
name = "sums"
tables = ["alpha", "newest"]
group_by = { level = "n" }
columns = { found = "count(*)" }
"""
KEY = "in/a.json"


class Lake:
    def __init__(self, place: Path, s3: str, service: str = SERVICE) -> None:
        self.place, self.s3 = str(place), boto3.client("s3", endpoint_url=s3, region_name="us-east-1")
        keep_in_force(self.place, parse_service({"service.toml": service}))

    def put(self, content: bytes, key: str = KEY) -> str:
        return str(self.s3.put_object(Bucket="studio-lake", Key=key, Body=content)["ETag"].strip('"'))

    def loaded(self, content: bytes, *rows: dict[str, Any], key: str = KEY, table: str = "alpha") -> None:
        """An object whose rows are in a table, each with its line."""
        told = {"etag": self.put(content, key), "bucket": "studio-lake", "size": len(content)}
        row = entry(key, **told, tables={table: len(rows)})
        write_ledger(self.place, row)
        made = [{"_file_id": row["file_id"], "_line": 1, **one} for one in rows]
        write_deltalake(f"{self.place}/{table}", pa.Table.from_pylist(made), mode="append")

    def traced(self, value: str, key: str = KEY, table: str = "alpha", column: str = "event_id") -> Traced:
        view = LakeView(self.place)
        found, more = rows_traced(view, table, column, value, versions_of(view, "studio-lake", key), s3=self.s3)
        assert not more
        (one,) = found.values()
        return one

    def texts(self, value: str, **more: Any) -> list[str]:
        return [one.text for one in self.traced(value, **more).records]


@pytest.fixture
def lake(tmp_path: Path, s3: str) -> Lake:
    return Lake(tmp_path / "lake", s3)


def event(game: str, event_id: str, **more: Any) -> str:
    return json.dumps({"game": game, "event_id": event_id, **more})


def test_a_row_leads_to_its_record_and_its_declaration(lake: Lake) -> None:
    first, second = event("alpha", "x"), event("alpha", "y", text="[bold] \x1b")
    lake.loaded(f"{first}\n{second}\n".encode(), {"event_id": "x"}, {"event_id": "y", "_line": 2})
    asked = ("where", "y", "--row", "alpha", "--lake", lake.place)
    said = ran(*asked, "--text").splitlines()
    version = lake.traced("y").rule.version
    etag = lake.s3.head_object(Bucket="studio-lake", Key=KEY)["ETag"].strip('"')
    assert said[-4:] == [
        f"  object      etag {etag}",
        f"  record      line 2, byte {len(first) + 1}: {second}",
        f'  declared    alpha  where {{"game": "alpha"}}  in declarations {version}',
        "  feeds       sums",
    ]
    told = json.loads(ran(*asked, "--text", "--json"))
    assert told["row"]["records"] == [{"line": 2, "byte_offset": len(first) + 1, "text": second, "table": "alpha"}]
    assert "row" not in json.loads(ran(*asked, "--json"))
    assert "needs --row" in failed(2, "where", f"s3://studio-lake/{KEY}", "--text", "--lake", lake.place)


def test_a_state_leads_to_its_latest_change(lake: Lake) -> None:
    change = json.dumps({"kind": "move", "id": "x", "n": 1})
    lake.loaded(f"{event('alpha', 'x')} {change}".encode(), {"event_id": "x"}, table="newest")
    found = lake.traced("x", table="newest")
    assert [(one.text, one.table) for one in found.records] == [(change, "newest")]
    assert (found.rule.name, found.rule.where) == ("moves", {"kind": "move"})
    assert found.rule.feeds == ("sums",)


def packed(text: str) -> bytes:
    made = io.BytesIO()
    with zipfile.ZipFile(made, "w") as archive:
        archive.writestr("a.json", event("alpha", "w"))
        archive.writestr("b.json", text)
    return made.getvalue()


def parquet(*ids: str) -> bytes:
    made = io.BytesIO()
    pq.write_table(pa.table({"game": ["alpha"] * len(ids), "event_id": list(ids)}), made)
    return made.getvalue()


ONE, TWO = event("alpha", "x"), event("alpha", "y")
MADE = '{"game":"alpha","event_id":"y"}'


@pytest.mark.parametrize(
    ("key", "content", "line", "text"),
    [
        ("in/a.gz", gzip.compress(f"{ONE}\n{TWO}".encode()), 2, TWO),
        ("in/a.zip", packed(TWO), 1, '{"@member":"b.json",' + TWO[1:]),
        ("in/array.json", f"[{ONE}, {TWO}]".encode(), 1, TWO),
        ("in/a.csv", b"game,event_id\nalpha,x\nalpha,y\n", 3, MADE),
        ("in/a.parquet", parquet("x", "y"), 2, MADE),
    ],
    ids=["gzip", "zip", "array", "csv", "parquet"],
)
def test_every_format_is_read_as_the_job_reads_it(lake: Lake, key: str, content: bytes, line: int, text: str) -> None:
    lake.loaded(content, {"event_id": "y", "_line": line}, key=key)
    assert lake.texts("y", key=key) == [text]


def test_a_large_file_is_read_piece_by_piece_up_to_the_record(lake: Lake, monkeypatch: pytest.MonkeyPatch) -> None:
    events = [event("alpha", f"e{n}") for n in range(100)]
    lake.loaded("\n".join(events).encode(), *({"event_id": f"e{n}", "_line": n + 1} for n in (0, 41, 99)))
    monkeypatch.setattr(record, "LIMITS", Limits(piece_bytes=1000))
    assert [lake.texts(f"e{n}") for n in (0, 41, 99)] == [[events[0]], [events[41]], [events[99]]]
    assert lake.traced("e41").records[0].byte_offset == len("\n".join(events[:41])) + 1


def test_of_a_line_with_many_records_those_are_shown_that_may_be_the_row(lake: Lake) -> None:
    events = [event("alpha", f"e{n}", n=n) for n in range(9)]
    content = " ".join([event("beta", "x"), *events]).encode()
    lake.loaded(content, {"event_id": "e8", "made": "x"}, {"event_id": "lost", "made": "y"})
    assert lake.texts("e8") == [events[8]], "the one with the value"
    assert lake.texts("x", column="made") == events[: record.MOST_OF_A_LINE], "only those of the table"


def test_where_a_function_may_have_made_the_value_no_record_of_the_table_is_left_out(tmp_path: Path, s3: str) -> None:
    """The row with n = 2 may come from the record with n = 1."""
    doubles = 'where = { game = "alpha" }\ncolumns = [{ name = "n", type = "long" }]\ntransform = "shop:double"'
    lake = Lake(tmp_path / "lake", s3, SERVICE.replace('where = { game = "alpha" }', doubles))
    events = [event("alpha", f"e{n}", n=n) for n in range(9)]
    lake.loaded(" ".join([event("beta", "x"), *events]).encode(), {"event_id": "e1", "n": 2})
    assert lake.texts("2", column="n") == [events[2], *events[:2], *events[3:5]], "the one with the value comes first"
    assert lake.texts("e1") == [events[1]], "the function does not get this column"


def test_a_record_that_goes_elsewhere_by_now_is_still_shown(lake: Lake) -> None:
    lake.loaded(event("beta", "x").encode(), {"event_id": "x"})
    said = ran("where", "x", "--row", "alpha", "--lake", lake.place, "--text")
    assert "these declarations send it to beta" in said


@pytest.mark.parametrize(
    ("change", "says"),
    [
        ("delete", "missing  (no-such-key: 404"),
        ("overwrite", "changed  (etag-differs: 412"),
        ("archive", "unavailable  (archived: 403 InvalidObjectState"),
    ],
)
def test_an_object_that_s3_no_longer_gives_is_told(lake: Lake, change: str, says: str) -> None:
    content = event("alpha", "x").encode()
    lake.loaded(content, {"event_id": "x"})
    if change == "delete":
        lake.s3.delete_object(Bucket="studio-lake", Key=KEY)
    elif change == "overwrite":
        lake.put(b"{}")
    else:
        lake.s3.put_object(Bucket="studio-lake", Key=KEY, Body=content, StorageClass="GLACIER")
    said = failed(1, "where", "x", "--row", "alpha", "--lake", lake.place, "--text")
    assert f"  not read    {says}" in said
    assert "event_id" not in said


def test_personal_fields_are_shown_treated(tmp_path: Path, s3: str) -> None:
    make_secret(f"{tmp_path}/secret")
    privacy = f'[privacy]\npersonal = [{{ path = "mail", become = "token" }}, "name"]\nsecret = "{tmp_path}/secret"\n'
    lake = Lake(tmp_path / "lake", s3, SERVICE.replace("[[tables]]", f"{privacy}[[tables]]", 1))
    lake.loaded(event("alpha", "x", mail="anna@example.org", name="Anna").encode(), {"event_id": "x"})
    (text,) = lake.texts("x")
    assert "anna" not in text.lower()
    assert json.loads(text).keys() == {"game", "event_id", "mail"}


def test_without_declarations_no_text_is_shown(lake: Lake) -> None:
    lake.loaded(event("alpha", "x", mail="anna").encode(), {"event_id": "x"})
    Path(f"{lake.place}/_forebay/services/games.json").unlink()
    said = failed(2, "where", "x", "--row", "alpha", "--lake", lake.place, "--text")
    assert "it is unknown which fields" in said
    assert "anna" not in said


def test_a_file_that_was_moved_is_read_from_the_archive(tmp_path: Path, s3: str) -> None:
    rule = 'name = "games"\nafter_load = { move = "s3://studio-lake/old/" }'
    lake = Lake(tmp_path / "lake", s3, SERVICE.replace('name = "games"', rule, 1))
    lake.loaded(ONE.encode(), {"event_id": "x"})
    (file,) = versions_of(LakeView(lake.place), "studio-lake", KEY)
    lake.s3.delete_object(Bucket="studio-lake", Key=KEY)
    assert lake.traced("x").not_read is not None
    lake.put(ONE.encode(), f"old/studio-lake/in/{file.file_id}/a.json")
    assert lake.texts("x") == [ONE]
