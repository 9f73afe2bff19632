"""Files out of S3, by its real protocol: rows right, one GET per file, nothing else."""

from __future__ import annotations

import gzip
import json
from collections.abc import Iterator
from typing import Any

import boto3
import pytest
from botocore.credentials import ReadOnlyCredentials
from moto.server import ThreadedMotoServer

from forebay.aws.quick_gets import QuickGets
from forebay.content.end import FileEnd, PieceEnd, file_ends
from forebay.content.fetch import Retrying
from forebay.content.limits import Limits
from forebay.content.piece import cut, deal
from forebay.content.reading import read_pieces
from forebay.declaration.form import Form, Forms
from forebay.declaration.personal import PersonalField
from forebay.errors import InvalidConfiguration
from forebay.landed_file import LandedFile
from tests.bench.latency_proxy import LatencyProxy

LIMITS = Limits()


@pytest.fixture(scope="module")
def s3_server() -> Iterator[LatencyProxy]:
    server = ThreadedMotoServer(port=0, verbose=False)
    server.start()
    with LatencyProxy(server.get_host_and_port()[1]) as proxy:
        yield proxy
    server.stop()


@pytest.fixture(scope="module")
def s3(s3_server: LatencyProxy) -> Iterator[Any]:
    client = boto3.client(
        "s3",
        endpoint_url=s3_server.url,
        region_name="eu-west-1",
        aws_access_key_id="test",
        aws_secret_access_key="test",
    )
    client.create_bucket(Bucket="landing", CreateBucketConfiguration={"LocationConstraint": "eu-west-1"})
    client.create_bucket(Bucket="versioned", CreateBucketConfiguration={"LocationConstraint": "eu-west-1"})
    client.put_bucket_versioning(Bucket="versioned", VersioningConfiguration={"Status": "Enabled"})
    yield client
    client.close()


def put(s3: Any, key: str, content: bytes, bucket: str = "landing") -> LandedFile:
    answer = s3.put_object(Bucket=bucket, Key=key, Body=content)
    return LandedFile(bucket, key, len(content), answer["ETag"].strip('"'), answer.get("VersionId"))


def rows_of(
    s3: Any, files: list[LandedFile], limits: Limits = LIMITS, *, tasks: int = 1, forms: Forms | None = None
) -> list[dict[str, Any]]:
    """As so many tasks read them, one after the other."""
    hands = deal(cut(files, limits), tasks)
    assert len(hands) <= tasks
    get = Retrying.over_s3(QuickGets(s3, lambda: ReadOnlyCredentials("test", "test", None), 32, (5, 60)), limits)
    return [row for hand in hands for some in read_pieces(hand, get, limits, forms=forms) for row in some.to_pylist()]


def ends_of(files: list[LandedFile], rows: list[dict[str, Any]], limits: Limits = LIMITS) -> dict[str, FileEnd]:
    ends = [PieceEnd.from_row(r["piece"], r["value"], r["problem"], r["detail"]) for r in rows if r["line"] is None]
    return {end.file.key: end for end in file_ends(cut(files, limits), ends)}


def test_all_files_of_a_batch_become_rows_with_one_get_each(s3: Any, s3_server: LatencyProxy) -> None:
    files = [
        put(s3, f"one-get/file {n} é.json", b"".join(b'{"n":%d,"i":%d}\n' % (n, i) for i in range(n)))
        for n in range(40)
    ]
    s3_server.requests.clear()

    rows = rows_of(s3, files)

    assert s3_server.methods() == {"GET": 40}
    assert all("list-type" not in target for _, target in s3_server.requests)
    documents = [(r["piece"], r["line"], json.loads(r["value"])) for r in rows if r["line"] is not None]
    assert sorted(documents, key=str) == sorted(
        ((n, i + 1, {"n": n, "i": i}) for n in range(40) for i in range(n)), key=str
    )
    ends = ends_of(files, rows)
    assert [ends[f.key].documents for f in files] == list(range(40))
    assert [ends[f.key].outcome for f in files] == ["empty", *["loaded"] * 39]


def test_without_its_secret_nothing_is_read(s3: Any, s3_server: LatencyProxy, monkeypatch: pytest.MonkeyPatch) -> None:
    told = {"ENDPOINT_URL": s3_server.url, "REGION": "eu-west-1", "ACCESS_KEY_ID": "test", "SECRET_ACCESS_KEY": "test"}
    for name, value in told.items():
        monkeypatch.setenv(f"AWS_{name}", value)
    file = put(s3, "personal/b.json", b'{"user":"anna"}')
    form = Form(personal=(PersonalField(("user",), "token"),), secret="s3://landing/apart/none")
    with pytest.raises(InvalidConfiguration, match="s3://landing/apart/none: holds no secret"):
        rows_of(s3, [file], forms=Forms(forms=(form,)))


def test_what_happened_to_files_since_they_were_announced_is_told_and_the_others_land(s3: Any) -> None:
    deleted = put(s3, "since/deleted.json", b'{"a":1}')
    replaced = put(s3, "since/replaced.json", b'{"a":1}')
    kept = put(s3, "since/kept.json.gz", gzip.compress(b'{"a":1}\noops\n'))
    older = put(s3, "since/older.json", b'{"a":"old"}', bucket="versioned")
    marker = put(s3, "since/marker.json", b'{"a":1}', bucket="versioned")
    erased = put(s3, "since/erased.json", b'{"a":1}', bucket="versioned")
    s3.delete_object(Bucket="landing", Key=deleted.key)
    put(s3, replaced.key, b'{"a":2}')
    put(s3, older.key, b'{"a":"new"}', bucket="versioned")
    s3.delete_object(Bucket="versioned", Key=marker.key)
    s3.delete_object(Bucket="versioned", Key=erased.key, VersionId=erased.version_id)
    files = [deleted, replaced, kept, older, marker, erased, LandedFile("no-such-bucket", "since/x", 1)]

    rows = rows_of(s3, files)

    ends = ends_of(files, rows)
    assert {key.removeprefix("since/"): (end.outcome, end.reason) for key, end in ends.items()} == {
        "deleted.json": ("missing", "no-such-key"),
        "replaced.json": ("changed", "etag-differs"),
        "kept.json.gz": ("loaded", None),
        "older.json": ("loaded", None),
        "marker.json": ("loaded", None),  # the announced version is still there below its delete marker
        "erased.json": ("missing", "no-such-version"),
        "x": ("missing", "no-such-bucket"),
    }
    documents = [(row["piece"], row["value"].strip()) for row in rows if row["line"] and not row["problem"]]
    assert sorted(documents) == [(2, '{"a":1}'), (3, '{"a":"old"}'), (4, '{"a":1}')]
    refused = [row for row in rows if row["line"] and row["problem"]]
    assert [(r["piece"], r["line"], r["byte_offset"], r["value"], r["problem"]) for r in refused] == [
        (2, 2, 8, "oops", "not-json")
    ]


def test_a_large_file_is_read_in_pieces_by_several_tasks(s3: Any) -> None:
    limits = Limits(piece_bytes=50_000)
    content = b"".join(b'{"n":%d}\n' % n for n in range(20_000))
    files = [put(s3, "large.json", content)]
    rows = rows_of(s3, files, limits, tasks=4)
    assert sorted(json.loads(r["value"])["n"] for r in rows if r["line"] is not None) == list(range(20_000))
    assert ends_of(files, rows, limits)["large.json"].documents == 20_000
