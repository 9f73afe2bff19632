"""A backfill from a report of S3 Inventory: the files of the listing, without a listing."""

from __future__ import annotations

import gzip
import io
import json
from datetime import UTC, datetime, timedelta
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from forebay.errors import InvalidConfiguration
from forebay.landed_file import LandedFile
from forebay.upkeep.reconcile import inventory
from forebay.upkeep.reconcile.inventory import open_inventory
from forebay.upkeep.reconcile.landed import files_in

MANIFEST = "s3://reports/drops/all/2026-05-01/manifest.json"
AT = datetime(2026, 5, 1, 10, 0, 0, 123000, tzinfo=UTC)
ROWS = [
    ("in/a b+c.json", "v2", True, False, 10, "e1"),
    ("in/a b+c.json", "v1", False, False, 9, "e0"),
    ("in/gone.json", "v9", True, True, None, None),
    ("other/x.json", "null", True, False, 5, "e3"),
    ("in/z.json", "null", True, False, 7, "e4"),
]
COLUMNS = "Bucket, Key, VersionId, IsLatest, IsDeleteMarker, Size, LastModifiedDate, ETag"
PARQUET = "message s3.inventory { required binary key; optional int64 size; last_modified_date; e_tag; }"


class S3:
    """Reports by key."""

    def __init__(self, objects: dict[str, bytes]) -> None:
        self.objects = objects

    def get_object(self, *, Bucket: str, Key: str) -> dict[str, Any]:  # noqa: N803
        assert Bucket == "reports"
        return {"Body": io.BytesIO(self.objects[Key])}


def manifest(kind: str, schema: str, *files: str) -> bytes:
    told = {
        "sourceBucket": "drops",
        "destinationBucket": "arn:aws:s3:::reports",
        "fileFormat": kind,
        "fileSchema": schema,
    }
    return json.dumps({**told, "files": [{"key": name} for name in files]}).encode()


def as_csv(rows: list[tuple[Any, ...]]) -> bytes:
    written = "2026-05-01T10:00:00.123Z"
    lines = [
        ",".join(
            f'"{"" if v is None else str(v).lower() if isinstance(v, bool) else v}"'
            for v in ("drops", row[0].replace("+", "%2B").replace(" ", "+"), *row[1:5], written, row[5])
        )
        for row in rows
    ]
    return gzip.compress("\n".join(lines).encode())


def as_parquet(rows: list[tuple[Any, ...]]) -> bytes:
    names = ("key", "version_id", "is_latest", "is_delete_marker", "size", "e_tag")
    table = pa.Table.from_pylist([{**dict(zip(names, row, strict=True)), "last_modified_date": AT} for row in rows])
    out = io.BytesIO()
    pq.write_table(table, out)
    return out.getvalue()


def reports(kind: str) -> S3:
    made = as_csv if kind == "CSV" else as_parquet
    schema = COLUMNS if kind == "CSV" else PARQUET
    return S3(
        {
            "drops/all/2026-05-01/manifest.json": manifest(kind, schema, "1", "2"),
            "1": made(ROWS[:3]),
            "2": made(ROWS[3:]),
        }
    )


@pytest.mark.parametrize("kind", ["CSV", "Parquet"])
def test_each_version_of_a_key_is_found_wherever_a_run_goes_on(kind: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(inventory, "PAGE", 2)
    s3 = reports(kind)
    report = open_inventory(s3, MANIFEST)
    pages = list(report.pages(s3, "in/", ("", "")))
    found = [file for page, _ in pages for file in files_in("drops", page, AT, AT + timedelta(days=1))]
    assert found == [
        LandedFile("drops", "in/a b+c.json", 10, "e1", "v2", event_time=AT),
        LandedFile("drops", "in/a b+c.json", 9, "e0", "v1", event_time=AT),
        LandedFile("drops", "in/z.json", 7, "e4", None, event_time=AT),
    ]
    assert [marker for _, marker in pages] == [("0", "2"), ("0", "3"), ("", "")]
    newest = [page["Versions"] for page, _ in report.pages(s3, "in/", ("", ""), only_latest=True)]
    assert [one["VersionId"] for some in newest for one in some] == ["v2", "null"]
    for n, (_, marker) in enumerate(pages[:-1]):
        assert list(report.pages(s3, "in/", marker)) == pages[n + 1 :]


@pytest.mark.parametrize("place", [0, 1, 2])
def test_a_data_file_of_the_report_may_be_empty(place: int) -> None:
    parts = [as_csv(ROWS[:2]), as_csv(ROWS[2:])]
    parts.insert(place, gzip.compress(b""))
    names = [f"{n}.csv.gz" for n in range(3)]
    s3 = S3(dict(zip(names, parts, strict=True)) | {MANIFEST.split("/", 3)[3]: manifest("CSV", COLUMNS, *names)})
    pages = [*open_inventory(s3, MANIFEST).pages(s3, "in/", ("", ""))]
    keys = [one["Key"] for page, _ in pages for one in page["Versions"]]
    assert keys == ["in/a b+c.json", "in/a b+c.json", "in/z.json"]
    assert [goes_on == ("", "") for _, goes_on in pages] == [False] * (len(pages) - 1) + [True]


def test_a_report_with_nothing_left_ends() -> None:
    s3 = S3({"m/manifest.json": manifest("Parquet", PARQUET, "1"), "1": as_parquet(ROWS[:1])})
    report = open_inventory(s3, "s3://reports/m/manifest.json")
    assert list(report.pages(s3, "in/", ("0", "1"))) == [({"Versions": [], "DeleteMarkers": []}, ("", ""))]


@pytest.mark.parametrize(
    ("told", "says"),
    [(("ORC", COLUMNS), "is in the format ORC"), (("CSV", "Bucket, Key"), "lacks Size, LastModifiedDate, ETag")],
)
def test_a_report_that_cannot_be_used_is_told(told: tuple[str, str], says: str) -> None:
    with pytest.raises(InvalidConfiguration, match=says):
        open_inventory(S3({"m/manifest.json": manifest(*told)}), "s3://reports/m/manifest.json")
    with pytest.raises(InvalidConfiguration, match="is not a manifest"):
        open_inventory(S3({}), "s3://reports/m/")
