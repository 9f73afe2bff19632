"""The report of S3 Inventory, read page by page: a listing of a bucket that costs no requests to list it.

In: the address of a report's `manifest.json`. Out: files under a prefix, in pages, and where the next page begins. CSV (gzip)
and Parquet are read; one data file of the report is in memory at a time. Of a key with several versions the newest counts. A
report that lacks what an announcement needs is `InvalidConfiguration`.
"""

from __future__ import annotations

import gzip
import json
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any
from urllib.parse import unquote_plus

import pyarrow as pa
import pyarrow.csv as csv
import pyarrow.parquet as pq

from forebay.address import bucket_and_key, is_s3
from forebay.errors import InvalidConfiguration
from forebay.lake.rows import python_rows
from forebay.landed_file import LandedFile

PAGE = 1000
NEEDED = ("Key", "Size", "LastModifiedDate", "ETag")
NAMES = {
    "key": "Key",
    "size": "Size",
    "last_modified_date": "LastModifiedDate",
    "e_tag": "ETag",
    "version_id": "VersionId",
    "is_latest": "IsLatest",
    "is_delete_marker": "IsDeleteMarker",
}
"""Parquet's columns, in the words of CSV."""


@dataclass(frozen=True)
class Inventory:
    """`columns` are those of CSV; Parquet names its own."""

    bucket: str
    reports: str
    format: str
    columns: tuple[str, ...]
    files: tuple[str, ...]

    def pages(
        self, s3: Any, prefix: str, after: tuple[str, str]
    ) -> Iterator[tuple[list[LandedFile], int, tuple[str, str]]]:
        """The files of a page, how many rows it had, and where the next one begins: a data file and a row; nothing after the
        last."""
        first, row, ended = int(after[0] or 0), int(after[1] or 0), False
        for number in range(first, len(self.files)):
            table = self._table(s3, self.files[number])
            while row < table.num_rows:
                page = python_rows(table.slice(row, PAGE))
                row += len(page)
                ended = row >= table.num_rows and number == len(self.files) - 1
                marker = ("", "") if ended else (str(number), str(row))
                yield [file for one in page if (file := self._file(one, prefix)) is not None], len(page), marker
            row = 0
        if not ended:
            yield [], 0, ("", "")  # the last data file is empty, or there is none

    def _table(self, s3: Any, name: str) -> pa.Table:
        content = s3.get_object(Bucket=self.reports, Key=name)["Body"].read()
        if self.format == "Parquet":
            table = pq.read_table(pa.BufferReader(content))
            return table.rename_columns([NAMES.get(column, column) for column in table.column_names])
        text = gzip.decompress(content)
        if not text:
            return pa.table({})
        options = csv.ReadOptions(column_names=list(self.columns))
        return csv.read_csv(
            pa.BufferReader(text),
            options,
            convert_options=csv.ConvertOptions(column_types=dict.fromkeys(self.columns, pa.string())),
        )

    def _file(self, row: dict[str, Any], prefix: str) -> LandedFile | None:
        """None of an older version, a deleted one, and of what lies elsewhere. CSV writes keys as URLs do."""
        key = unquote_plus(row["Key"]) if self.format == "CSV" else row["Key"]
        values = {
            name: str(row.get(name, default)).lower()
            for name, default in (("IsLatest", "true"), ("IsDeleteMarker", "false"))
        }
        if not key.startswith(prefix) or values["IsLatest"] == "false" or values["IsDeleteMarker"] == "true":
            return None
        version, written = row.get("VersionId") or None, row["LastModifiedDate"]
        moment = datetime.fromisoformat(written.replace("Z", "+00:00")) if isinstance(written, str) else written
        moment = moment if moment.tzinfo else moment.replace(tzinfo=UTC)
        etag = str(row["ETag"]).strip('"')
        return LandedFile(
            self.bucket, key, int(row["Size"]), etag, version if version != "null" else None, event_time=moment
        )


def open_inventory(s3: Any, manifest: str) -> Inventory:
    if not is_s3(manifest) or not manifest.endswith("manifest.json"):
        raise InvalidConfiguration.one(
            manifest, "is not a manifest of S3 Inventory", "write s3://bucket/.../manifest.json"
        )
    bucket, key = bucket_and_key(manifest)
    report = json.loads(s3.get_object(Bucket=bucket, Key=key)["Body"].read())
    if report["fileFormat"] not in ("CSV", "Parquet"):
        raise InvalidConfiguration.one(manifest, f"is in the format {report['fileFormat']}", "CSV and Parquet are read")
    schema = report["fileSchema"]
    lacks = [name for name in NEEDED if name.lower() not in schema.lower().replace("_", "")]
    if lacks:
        raise InvalidConfiguration.one(manifest, f"lacks {', '.join(lacks)}", "let the report include these fields")
    columns = tuple(name.strip() for name in schema.split(",")) if report["fileFormat"] == "CSV" else ()
    reports = report["destinationBucket"].rpartition(":")[2]
    files = tuple(one["key"] for one in report["files"])
    return Inventory(report["sourceBucket"], reports, report["fileFormat"], columns, files)
