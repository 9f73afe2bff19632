"""The contents mode: rows of a declared schema straight from the queue, as Spark's own JSON reader would make them."""

from __future__ import annotations

import gzip
import textwrap
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql.types import IntegerType, StructField, StructType

from forebay.errors import InvalidConfiguration
from forebay.source.source import FileNames, register
from forebay_local.twin.twin import Twin
from tests.source.conftest import Queues
from tests.source.notebook import NOTEBOOK
from tests.source.notices import body
from tests.source.stream import Stream

BUCKET = "contents"
SCHEMA = "id bigint, player struct<name: string, level: int>, tags array<string>, at timestamp, _corrupt_record string"


class Rows(Stream):
    """A stream of rows into memory, run after run on one checkpoint."""

    def __init__(self, spark: Any, twin: Twin, queues: Queues, folder: Path) -> None:
        super().__init__(spark, folder)
        self.s3, self.queues = twin.client("s3"), queues
        self.queue = queues.make(VisibilityTimeout="30")
        self.schema = SCHEMA
        self.options = {"fileFormat": "json", "queueUrl": self.queue, "sqsFetchInterval": "0s", "region": "eu-west-1"}
        self.found: list[Any] = []
        self.batches: list[int] = []
        self.fails = False

    def put(self, key: str, content: bytes | str) -> None:
        raw = content.encode() if isinstance(content, str) else content
        put = self.s3.put_object(Bucket=BUCKET, Key=key, Body=raw)
        etag, version = put["ETag"].strip('"'), put.get("VersionId")
        self.queues.send(self.queue, [body(key, bucket=BUCKET, size=len(raw), etag=etag, version=version)])

    def start(self) -> Rows:
        def take(frame: Any, batch: int) -> None:
            rows = frame.collect()
            if self.fails:
                raise RuntimeError("the sink is down")
            self.found += rows
            self.batches.append(len(rows))

        stream = self.spark.readStream.format("s3-sqs").options(**self.options).schema(self.schema).load().writeStream
        self.query = stream.foreachBatch(take).option("checkpointLocation", str(self.folder / "checkpoint")).start()
        return self

    @property
    def found_so_far(self) -> Any:
        return self.found

    def fails_with(self, words: str) -> None:
        with pytest.raises(Exception, match=words):
            self.start().query.awaitTermination(120)
        assert sum(self.queues.left(self.queue)) > 0, "a message of a batch that failed was deleted"

    @property
    def ids(self) -> list[Any]:
        return sorted(row.id for row in self.found if row.id is not None)


@pytest.fixture
def rows(spark: Any, twin: Twin, queues: Queues, tmp_path: Path) -> Iterator[Rows]:
    s3 = twin.client("s3")
    if BUCKET not in [bucket["Name"] for bucket in s3.list_buckets()["Buckets"]]:
        s3.create_bucket(Bucket=BUCKET, CreateBucketConfiguration={"LocationConstraint": "eu-west-1"})
    register(spark, manifests=str(tmp_path / "manifests"))
    rows = Rows(spark, twin, queues, tmp_path)
    yield rows
    rows.stop()


def test_a_notebook_gets_rows_with_the_options_it_had(rows: Rows) -> None:
    rows.options |= {
        "maxFilesPerTrigger": "100",
        "fetchParallelism": "2",
        "allowOverwrites": "true",
        "maxFileAge": "7d",
    }
    rows.put(
        "in/a.json", '{"id": 1, "player": {"name": "Ada", "level": 3}, "tags": ["x"], "at": "2026-01-02T03:04:05Z"}\n'
    )
    rows.put("in/b.json.gz", gzip.compress(b'[{"id": 2},\n {"id": 3, "new": true}]'))
    rows.start().until(lambda: rows.ids == [1, 2, 3])
    [ada] = [row for row in rows.found if row.id == 1]
    assert (ada.player.asDict(), ada.tags, ada._corrupt_record) == ({"name": "Ada", "level": 3}, ["x"], None)
    millis = rows.spark.createDataFrame([ada], SCHEMA).selectExpr("unix_millis(at)").first()[0]
    assert millis == 1767323045000
    rows.until(lambda: rows.queues.left(rows.queue) == (0, 0))
    assert list((rows.folder / "manifests").glob("*/*/batches/*")), "the manifests lie under the queue's name"


def test_the_notebook_of_the_readme_runs_as_it_stands(rows: Rows) -> None:
    rows.put("in/a.json", '{"player": "Ada", "level": 3}')
    notebook = NOTEBOOK.replace("https://sqs.eu-west-1.amazonaws.com/123456789012/landed", rows.queue)
    told: dict[str, Any] = {"spark": rows.spark}
    exec(textwrap.dedent(notebook), told)
    stream = told["events"].writeStream.format("memory").queryName("notebook")
    rows.query = stream.option("checkpointLocation", str(rows.folder / "checkpoint")).start()
    rows.until(lambda: [row.player for row in rows.spark.table("notebook").collect()] == ["Ada"])


def test_a_record_that_does_not_fit_keeps_what_fits_and_its_text(rows: Rows) -> None:
    rows.put("in/a.json", '{"id": 1, "player": {"name": "Ada", "level": "high"}}\n{"id": 2\n{"id": 3}\n')
    rows.start().until(lambda: len(rows.found) == 3)
    told = {row._corrupt_record: (row.id, row.player and row.player.name) for row in rows.found}
    assert told == {
        '{"id": 1, "player": {"name": "Ada", "level": "high"}}': (1, "Ada"),
        '{"id": 2': (None, None),
        None: (3, None),
    }


@pytest.mark.deep
def test_dropmalformed_drops_and_failfast_stops(rows: Rows) -> None:
    rows.options["mode"] = "DROPMALFORMED"
    rows.put("in/a.json", '{"id": 1}\n{"id": "two"}\n{"id": 3}\n')
    rows.start().until(lambda: rows.ids == [1, 3])
    rows.until_committed(len(rows.batches))
    rows.stop()
    rows.options["mode"] = "FAILFAST"
    rows.put("in/b.json", '{"id": "four"}\n')
    rows.fails_with("does not fit the schema: .*four")


def test_a_batch_that_runs_again_has_the_same_rows(rows: Rows) -> None:
    """Also when the object has been written again meanwhile: its version is pinned, and where there are no versions the
    batch says that it is another object now."""
    rows.s3.put_bucket_versioning(Bucket=BUCKET, VersioningConfiguration={"Status": "Enabled"})
    try:
        rows.put("in/again.json", '{"id": 1}')
        rows.fails = True
        rows.fails_with("the sink is down")
        rows.put("in/again.json", '{"id": 2}')
        rows.fails = False
        rows.start().until(lambda: rows.ids == [1, 2])
        assert rows.batches[0] == 1
    finally:
        rows.s3.put_bucket_versioning(Bucket=BUCKET, VersioningConfiguration={"Status": "Suspended"})


@pytest.mark.deep
def test_a_file_that_is_gone_stops_the_query_unless_it_may_be_ignored(rows: Rows) -> None:
    rows.put("in/gone.json", '{"id": 1}')
    rows.s3.delete_object(Bucket=BUCKET, Key="in/gone.json")
    rows.put("in/there.json", '{"id": 2}')
    rows.fails_with("in/gone.json .*the file was deleted. With the option ignoreFileDeletion")
    rows.options["ignoreFileDeletion"] = "true"
    rows.start().until(lambda: rows.ids == [2])
    rows.until(lambda: rows.queues.left(rows.queue) == (0, 0))


@pytest.mark.deep
def test_a_broken_file_is_a_row_that_says_so_or_stops_the_query(rows: Rows) -> None:
    rows.put("in/broken.json.gz", gzip.compress(b'{"id": 1}')[:-4])
    rows.put("in/fine.json", '{"id": 2}')
    rows.schema = "id bigint"
    rows.fails_with("in/broken.json.gz .*With a column _corrupt_record string in the schema the query continues")
    rows.schema = SCHEMA
    rows.start().until(lambda: rows.ids == [2])
    assert [row._corrupt_record.split(")")[0] for row in rows.found if row.id is None] == [
        f"s3://{BUCKET}/in/broken.json.gz (corrupt-archive"
    ]


@pytest.mark.parametrize(
    ("options", "schema", "words"),
    [
        ({"fileFormat": "csv"}, SCHEMA, "fileFormat: 'csv' is not allowed"),
        ({}, None, "schema: fileFormat needs one"),
        ({}, "id variant", "JSON is not read into variant"),
    ],
)
def test_what_cannot_be_honoured_is_refused_with_a_reason(
    rows: Rows, options: dict[str, str], schema: str | None, words: str
) -> None:
    """Of the options, of the schema, and of both together: each is asked for at its own time."""

    def run() -> None:
        reader = rows.spark.readStream.format("s3-sqs").options(**rows.options | options)
        stream = (reader.schema(schema) if schema else reader).load().writeStream.format("memory").queryName("refused")
        stream.start().awaitTermination(60)

    with pytest.raises(Exception, match=words):
        run()


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({}, "declare it `_corrupt_record string`"),
        ({"timeZone": "Mars"}, "timeZone: 'Mars' is not allowed"),
        ({"pathRewrites": "{}"}, "pathrewrites: is not an option of this s3-sqs .leave it out"),
        ({"maxFilesPerTrigger": "0"}, "maxFilesPerTrigger: '0' is not allowed"),
    ],
)
def test_other_options_and_columns_are_refused_in_the_same_places(options: dict[str, str], words: str) -> None:
    least = {"fileFormat": "json", "queueUrl": "https://sqs.eu-west-1.amazonaws.com/1/q", "manifestPath": "s3://lake/m"}
    schema = StructType([StructField("id", IntegerType()), StructField("_corrupt_record", IntegerType())])
    with pytest.raises(InvalidConfiguration, match=words):
        FileNames(least | options).streamReader(schema)
