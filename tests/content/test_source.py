"""The data source in a real Spark session against a real S3 protocol: rows right, one GET per file, nothing else."""

from __future__ import annotations

import gzip
import json
from base64 import b64decode
from collections.abc import Iterator
from typing import Any

import boto3
import pytest
from moto.server import ThreadedMotoServer
from pyspark.errors import AnalysisException, PySparkException
from pyspark.sql import SparkSession

from forebay.batch.poison import OUR_FAULT
from forebay.content.end import FileEnd, PieceEnd, file_ends
from forebay.content.limits import Limits
from forebay.content.piece import cut
from forebay.content.rows import IS_DOCUMENT, IS_END, IS_REFUSED
from forebay.content.source import FORMAT, read_content, register
from forebay.declaration.form import Form, Forms
from forebay.declaration.personal import PersonalField
from forebay.landed_file import LandedFile
from forebay.nesting import DEEPEST
from forebay.privacy.secret import make_secret
from forebay.privacy.token import token_of
from tests.bench.latency_proxy import LatencyProxy

LIMITS = Limits()

pytestmark = pytest.mark.filterwarnings(
    # pyspark leaves the sockets of `collect` to the garbage collector.
    "ignore:Exception ignored in. <socket.socket:pytest.PytestUnraisableExceptionWarning"
)


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


@pytest.fixture(scope="module")
def spark(spark: SparkSession, s3_server: LatencyProxy) -> Iterator[SparkSession]:
    """Its Python workers look for S3 where this module's server is, until its tests are over."""
    environment, before = spark.sparkContext.environment, dict(spark.sparkContext.environment)
    environment.update(
        AWS_ENDPOINT_URL=s3_server.url,
        AWS_REGION="eu-west-1",
        AWS_ACCESS_KEY_ID="test",
        AWS_SECRET_ACCESS_KEY="test",
    )
    register(spark)
    yield spark
    environment.clear()
    environment.update(before)
    register(spark)


def put(s3: Any, key: str, content: bytes, bucket: str = "landing") -> LandedFile:
    answer = s3.put_object(Bucket=bucket, Key=key, Body=content)
    return LandedFile(bucket, key, len(content), answer["ETag"].strip('"'), answer.get("VersionId"))


def ends_of(files: list[LandedFile], rows: list[Any], limits: Limits = LIMITS) -> dict[str, FileEnd]:
    ends = [PieceEnd.from_row(r["piece"], r["value"], r["problem"], r["detail"]) for r in rows if r["line"] is None]
    return {end.file.key: end for end in file_ends(cut(files, limits), ends)}


def test_all_files_of_a_batch_become_rows_with_one_get_each(
    spark: SparkSession, s3: Any, s3_server: LatencyProxy
) -> None:
    files = [
        put(s3, f"one-get/file {n} é.json", b"".join(b'{"n":%d,"i":%d}\n' % (n, i) for i in range(n)))
        for n in range(40)
    ]
    s3_server.requests.clear()

    rows = read_content(spark, files, LIMITS, tasks=3).collect()

    assert s3_server.methods() == {"GET": 40}
    assert all("list-type" not in target for _, target in s3_server.requests)
    documents = [(r["piece"], r["line"], json.loads(r["value"])) for r in rows if r["line"] is not None]
    assert sorted(documents, key=str) == sorted(
        ((n, i + 1, {"n": n, "i": i}) for n in range(40) for i in range(n)), key=str
    )
    ends = ends_of(files, rows)
    assert [ends[f.key].documents for f in files] == list(range(40))
    assert [ends[f.key].outcome for f in files] == ["empty", *["loaded"] * 39]


def test_the_secret_of_tokens_is_read_by_the_tasks_and_is_in_no_plan(spark: SparkSession, s3: Any) -> None:
    address = "s3://landing/apart/secret"
    assert make_secret(address, s3=s3)
    stored = s3.get_object(Bucket="landing", Key="apart/secret")["Body"].read().split()[-1]
    file = put(s3, "personal/a.json", b'{"user":"anna","n":1}\n{"n":2,"friend":"anna"}\n{"user":42}\n')
    personal = (PersonalField(("user",), "token"), PersonalField(("friend",), "token"))
    frame = read_content(spark, [file], LIMITS, forms=Forms(forms=(Form(personal=personal, secret=address),)))
    documents = [json.loads(row["value"]) for row in frame.where(IS_DOCUMENT).orderBy("line").collect()]
    anna, other = documents[0]["user"], documents[2]["user"]
    assert documents == [{"user": anna, "n": 1}, {"n": 2, "friend": anna}, {"user": other}]
    assert {anna, other} == {token_of("anna", b64decode(stored)), token_of("42", b64decode(stored))}
    classic: Any = frame
    told = [classic._jdf.queryExecution().toString(), *map(repr, spark.sparkContext.getConf().getAll())]
    told += [frame.schema.json(), repr(dict(spark.sparkContext.environment))]
    assert not [text for text in told if stored.decode() in text or b64decode(stored).hex() in text]


def test_without_its_secret_nothing_is_read_and_no_file_is_blamed(spark: SparkSession, s3: Any) -> None:
    file = put(s3, "personal/b.json", b'{"user":"anna"}')
    form = Form(personal=(PersonalField(("user",), "token"),), secret="s3://landing/apart/none")
    with pytest.raises(
        PySparkException, match="InvalidConfiguration: s3://landing/apart/none: holds no secret"
    ) as raised:
        read_content(spark, [file], LIMITS, forms=Forms(forms=(form,))).collect()
    assert OUR_FAULT.search(str(raised.value))


def test_what_happened_to_files_since_they_were_announced_is_told_and_the_others_land(
    spark: SparkSession, s3: Any
) -> None:
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

    frame = read_content(spark, files, LIMITS).cache()

    ends = ends_of(files, frame.where(IS_END).collect())
    assert {key.removeprefix("since/"): (end.outcome, end.reason) for key, end in ends.items()} == {
        "deleted.json": ("missing", "no-such-key"),
        "replaced.json": ("changed", "etag-differs"),
        "kept.json.gz": ("loaded", None),
        "older.json": ("loaded", None),
        "marker.json": ("loaded", None),  # the announced version is still there below its delete marker
        "erased.json": ("missing", "no-such-version"),
        "x": ("missing", "no-such-bucket"),
    }
    documents = frame.where(IS_DOCUMENT).select("piece", "value").collect()
    assert sorted((r.piece, r.value.strip()) for r in documents) == [(2, '{"a":1}'), (3, '{"a":"old"}'), (4, '{"a":1}')]
    refused = frame.where(IS_REFUSED).collect()
    assert [(r.piece, r.line, r.byte_offset, r.value, r.problem) for r in refused] == [(2, 2, 8, "oops", "not-json")]
    frame.unpersist()


def test_a_large_file_is_read_in_pieces_by_several_tasks(spark: SparkSession, s3: Any) -> None:
    limits = Limits(piece_bytes=50_000)
    content = b"".join(b'{"n":%d}\n' % n for n in range(20_000))
    files = [put(s3, "large.json", content)]

    frame = read_content(spark, files, limits, tasks=4)

    assert frame.rdd.getNumPartitions() == 4
    rows = frame.collect()
    assert sorted(json.loads(r["value"])["n"] for r in rows if r["line"] is not None) == list(range(20_000))
    assert ends_of(files, rows, limits)["large.json"].documents == 20_000


def test_two_thousand_files_are_named_in_one_plan_and_do_not_clutter_it(spark: SparkSession) -> None:
    files = [LandedFile("landing", f"many/{'y' * 200}{n}", 70_000, "e") for n in range(2000)]
    frame = read_content(spark, files, LIMITS, tasks=5)
    assert frame.rdd.getNumPartitions() == 5
    assert len(frame._jdf.queryExecution().toString()) < 5000


def test_no_files_are_no_rows(spark: SparkSession) -> None:
    assert read_content(spark, [], LIMITS).collect() == []


def test_a_person_may_use_the_format_without_our_python(spark: SparkSession, s3: Any) -> None:
    put(s3, "by-hand.json", b'{"a":1}')
    frame = spark.read.format(FORMAT).option("files", '[{"bucket": "landing", "key": "by-hand.json"}]').load()
    assert frame.where(IS_DOCUMENT).first()["value"] == '{"a":1}'


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"files": "[]", "max_dept": "3"}, "max_dept: no option of forebay-content"),
        ({"files": "nonsense"}, "not a JSON array of files"),
        ({"files": '[{"key": "k"}]'}, "a file has bucket and key"),
        ({"files": "[]", "max_depth": "deep"}, "'deep' is not a whole number"),
        ({"files": "[]", "tasks": "many"}, "'many' is not a whole number"),
        ({"files": "[]", "forms": '[[{}, {"inside": ["Records"]}]]'}, "not the forms of files"),
    ],
)
def test_a_wrong_option_is_refused_with_a_sentence(spark: SparkSession, options: dict[str, str], said: str) -> None:
    with pytest.raises((AnalysisException, PySparkException, Exception), match=said):
        spark.read.format(FORMAT).options(**options).load().collect()


PARSED: dict[str, tuple[str, dict[str, Any] | None]] = {
    "a lone surrogate becomes a question mark": ('{"s":"x\\ud800y"}', {"s": "x?y"}),
    "of two equal keys the last counts": ('{"a":1,"a":2}', {"a": 2}),
    "a whole number too large spoils the record": ('{"a":' + "9" * 30 + ',"s":"k"}', None),
    "a NUL character, escaped, is a character": ('{"s":"x\\u0000y"}', {"s": "x\0y"}),
    "a control character, raw, spoils the record": ('{"s":"x\ty"}', None),
    "NaN where a whole number belongs spoils the record": ('{"a":NaN}', None),
    "NaN is a float": ('{"d":NaN,"a":1}', {"a": 1}),
    "as many levels as may be are fine": (f'{{"a":1,"z":{"[" * (DEEPEST - 1)}{"]" * (DEEPEST - 1)}}}', {"a": 1}),
    "what follows the first document is dropped without a word": ('{"a":1},{"a":2}', {"a": 1}),
}


def test_what_sparks_parser_makes_of_what_we_pass_through(spark: SparkSession, s3: Any) -> None:
    """Facts that the batch builds on; when Spark changes one of them, this says so."""
    files = [put(s3, "facts.json", "\n".join(text for text, _ in PARSED.values()).encode())]
    schema = "a long, s string, d double, _spoiled string"
    parsed = (
        read_content(spark, files, LIMITS, tasks=1)
        .where(IS_DOCUMENT)
        .selectExpr("line", f"from_json(value, '{schema}', map('columnNameOfCorruptRecord', '_spoiled')) AS r")
        .orderBy("line")
        .collect()
    )
    found = [
        None if row.r["_spoiled"] is not None else {k: row.r[k] for k in ("a", "s") if row.r[k] is not None}
        for row in parsed
    ]
    assert dict(zip(PARSED, found, strict=True)) == {name: expected for name, (_, expected) in PARSED.items()}
