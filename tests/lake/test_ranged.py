"""An object in S3 as a file: Parquet reads one column of it, and only that is fetched."""

from __future__ import annotations

import io
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from botocore.exceptions import ClientError

from forebay.lake.folder_objects import FolderObjects
from forebay.lake.s3_objects import S3Objects


class OneObject:
    def __init__(self, content: bytes) -> None:
        self.content, self.fetched = content, 0

    def get_object(self, *, Bucket: str, Key: str, Range: str) -> dict[str, Any]:  # noqa: N803 (boto3's names)
        if Key != "lake/there":
            raise ClientError({"Error": {"Code": "NoSuchKey"}, "ResponseMetadata": {"HTTPStatusCode": 404}}, "Get")
        begin, _, end = Range.removeprefix("bytes=").partition("-")
        part = self.content[int(begin) : int(end) + 1] if begin else self.content[-int(end) :]
        self.fetched += len(part)
        return {"Body": io.BytesIO(part), "ContentRange": f"bytes ?/{len(self.content)}"}


@pytest.mark.parametrize("rows", [10, 200_000])
def test_one_column_of_a_parquet_file_costs_no_more_than_that(rows: int, tmp_path: Path) -> None:
    wide = pa.table({"id": [n // 100 for n in range(rows)], "text": [f"{n * 7919 % 1_000_003}" for n in range(rows)]})
    pq.write_table(wide, tmp_path / "there")
    s3 = OneObject((tmp_path / "there").read_bytes())
    content = S3Objects(s3, "s3://bucket/lake").open("there")
    assert content is not None
    assert pq.ParquetFile(content).read(columns=["id"]) == wide.select(["id"])
    assert s3.fetched <= 64 * 1024 or s3.fetched < len(s3.content) / 2


def test_what_is_not_there_is_none(tmp_path: Path) -> None:
    assert S3Objects(OneObject(b""), "s3://bucket/lake").open("gone") is None
    assert FolderObjects(tmp_path).open("gone") is None


def test_it_reads_as_a_file_does() -> None:
    content = S3Objects(OneObject(bytes(range(256)) * 1000), "s3://bucket/lake").open("there")
    assert content is not None
    assert (content.seek(-3, io.SEEK_END), content.read()) == (255_997, b"\xfd\xfe\xff")
    assert (content.seek(10), content.read(3), content.tell()) == (10, b"\x0a\x0b\x0c", 13)
    assert content.seek(0, io.SEEK_END) == 256_000
    assert content.read(5) == b""
