"""A record is its file and the byte where it begins, whatever else stands on its line: no verb takes one for another."""

from __future__ import annotations

import json
import uuid
from collections import Counter
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from pyspark.sql import SparkSession

from forebay.batch.batch import Batch
from forebay.batch.retry import Retry
from forebay.batch.retry_plan import Choice
from forebay.declaration.service import Service, parse_service
from forebay.landed_file import LandedFile
from forebay.ledger.ledger import Ledger
from forebay.operate.accounts import accounts
from forebay.operate.lake_view import LakeView
from forebay_local.twin.twin import Twin

BEFORE = """
name = "studio"
[[tables]]
name = "alpha"
where = { event = "tick" }
columns = [{ name = "id" }, { name = "level", type = "long" }]
dedupe = { by = ["id"], days = 3 }
[tables.expectations]
possible = { check = "level <= 100", on_violation = "quarantine" }
"""
AFTER = BEFORE.replace("<= 100", "<= 1000") + '[[tables]]\nname = "cheap"\nwhere = { event = "buy", price = "1" }\n'

LAYOUTS: dict[str, Callable[[list[str]], str]] = {
    "lines": "\n".join,
    "concatenated": "".join,
    "array": lambda texts: f"[{', '.join(texts)}]",
    "array over lines": lambda texts: "[\n" + ",\n".join(texts) + "\n]\n",
    "array on one of the lines": lambda texts: f"{texts[0]}\n[{','.join(texts[1:])}]\n",
    "pretty": lambda texts: "\n".join(json.dumps(json.loads(text), indent=2) for text in texts),
    "mixed": lambda texts: f"{texts[0]}\n{texts[1]}{texts[2]}\n" + " ".join(texts[3:]),
}


def tick(name: str, level: int = 1) -> str:
    return json.dumps({"event": "tick", "id": name, "level": level})


def buy(price: int) -> str:
    return json.dumps({"event": "buy", "price": price})


def service(text: str) -> Service:
    return parse_service({"service.toml": text})


class Lake:
    """A lake in a folder, and batches of files that lie in the twin's S3."""

    def __init__(self, spark: SparkSession, twin: Twin, lake: str) -> None:
        self.spark, self.s3, self.lake, self.bucket = spark, twin.client("s3"), lake, f"in-{uuid.uuid4().hex[:8]}"
        self.s3.create_bucket(Bucket=self.bucket, CreateBucketConfiguration={"LocationConstraint": twin.region})
        self.batch = Batch(
            spark,
            service(BEFORE),
            lake=lake,
            generation=lambda: "g",
            ledger=Ledger(spark, lake),
            emit=lambda event: None,
        )

    def load(self, number: int, files: dict[str, str]) -> None:
        landed = []
        for name, text in files.items():
            etag = self.s3.put_object(Bucket=self.bucket, Key=name, Body=text.encode())["ETag"].strip('"')
            landed.append(LandedFile(self.bucket, name, len(text), etag))
        columns = "bucket string, key string, size long, etag string, version_id string, sequencer string, event_time timestamp"
        rows = [(f.bucket, f.key, f.size, f.etag, None, None, None) for f in landed]
        self.batch.process(self.spark.createDataFrame(rows, columns), number)

    def try_again(self, choice: Choice) -> int:
        tries = Retry(self.spark, service(AFTER), lake=self.lake, emit=lambda event: None)
        try:
            return tries.run(choice).moved
        finally:
            tries.logs.close()

    def rows(self, table: str, column: str) -> Counter[Any]:
        return Counter(row[column] for row in LakeView(self.lake).query(table, f"select {column} from t"))

    def kept(self, pile: str, field: str) -> Counter[Any]:
        rows = LakeView(self.lake).query(f"_forebay/{pile}", "select record from t where line is not null")
        return Counter(json.loads(row["record"])[field] for row in rows)


@pytest.fixture
def made(spark: SparkSession, twin: Twin, lake: str) -> Iterator[Lake]:
    made = Lake(spark, twin, lake)
    yield made
    made.batch.close()


def test_records_that_share_a_line_are_told_apart_by_every_verb(made: Lake) -> None:
    made.load(0, {"known": tick("known")})
    files = {}
    for name, layout in LAYOUTS.items():
        texts = [tick(f"{name} 1"), tick("known"), tick(f"{name} 2"), tick(f"{name} 2"), tick("shared")]
        files[name] = layout([*texts, tick(f"{name} 3", 500), tick(f"{name} 4", 5000), buy(1), buy(2)])
    made.load(1, files)
    wanted = {f"{name} {n}" for name in LAYOUTS for n in (1, 2)} | {"known", "shared"}
    assert made.rows("alpha", "id") == Counter(dict.fromkeys(wanted, 1))
    count = len(LAYOUTS)
    assert made.kept("quarantine", "level") == {500: count, 5000: count}
    assert made.kept("parked", "price") == {1: count, 2: count}

    assert made.try_again(Choice("parked", table="cheap")) == count
    assert made.kept("parked", "price") == {2: count}
    assert made.rows("cheap", "price") == {1: count}
    assert made.try_again(Choice("quarantine")) == count
    assert made.kept("quarantine", "level") == {5000: count}
    assert made.rows("alpha", "level") == {1: len(wanted), 500: count}
    assert accounts(LakeView(made.lake)).differences() == []
