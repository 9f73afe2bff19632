"""The report of S3 Inventory, read page by page: a listing of a bucket that costs no requests to list it.

In: the address of a report's `manifest.json`. Out: pages of versions under a prefix, as S3 lists them, and where the next page
begins. CSV (gzip) and Parquet are read; one data file of the report is in memory at a time. S3 promises no order of the rows,
so a report does not say whether a deletion followed an older version. A report that lacks what an announcement needs is
`InvalidConfiguration`.
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
from forebay.upkeep.reconcile.landed import Page

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
        self, s3: Any, prefix: str, after: tuple[str, str], *, only_latest: bool = False
    ) -> Iterator[tuple[Page, tuple[str, str]]]:
        """The versions of a page, the newest first, and where the next one begins: a data file and a row; nothing after the
        last."""
        first, row, ended = int(after[0] or 0), int(after[1] or 0), False
        for number in range(first, len(self.files)):
            table = self._table(s3, self.files[number])
            while row < table.num_rows:
                page = python_rows(table.slice(row, PAGE))
                row += len(page)
                ended = row >= table.num_rows and number == len(self.files) - 1
                marker = ("", "") if ended else (str(number), str(row))
                found = [version for one in page if (version := self._version(one, prefix, only_latest)) is not None]
                newest_first = sorted(found, key=lambda one: (one["LastModified"], one["IsLatest"]), reverse=True)
                yield {"Versions": newest_first, "DeleteMarkers": []}, marker
            row = 0
        if not ended:
            yield {"Versions": [], "DeleteMarkers": []}, ("", "")  # the last data file is empty, or there is none

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

    def _version(self, row: dict[str, Any], prefix: str, only_latest: bool) -> Page | None:
        """None of a delete marker, and of what lies elsewhere. CSV writes keys as URLs do."""
        key = unquote_plus(row["Key"]) if self.format == "CSV" else row["Key"]
        latest, is_marker = (
            str(row.get(n, d)).lower() == "true" for n, d in (("IsLatest", True), ("IsDeleteMarker", False))
        )
        if not key.startswith(prefix) or is_marker or (only_latest and not latest):
            return None
        version, written = row.get("VersionId") or None, row["LastModifiedDate"]
        moment = datetime.fromisoformat(written.replace("Z", "+00:00")) if isinstance(written, str) else written
        moment = moment if moment.tzinfo else moment.replace(tzinfo=UTC)
        about = {"Key": key, "Size": int(row["Size"]), "ETag": str(row["ETag"]), "VersionId": version or "null"}
        return {**about, "LastModified": moment, "IsLatest": latest}


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
