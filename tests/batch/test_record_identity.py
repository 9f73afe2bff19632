"""A record is its file and the byte where it begins, whatever else stands on its line: no verb takes one for another."""

from __future__ import annotations

import json
import os
import uuid
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from random import Random
from typing import Any

import pytest
from pyspark.sql import SparkSession

from forebay.batch.batch import Batch
from forebay.batch.retrying.plan import Choice
from forebay.batch.retrying.retry import Retry
from forebay.declaration.loading import parse_service
from forebay.declaration.service import Service
from forebay.landed_file import LandedFile
from forebay.ledger.ledger import Ledger
from forebay.operate.lake_view import LakeView
from forebay.operate.looking.accounts import accounts
from forebay_local.twin.twin import Twin

BEFORE = """
name = "studio"
overwritten = "replace"
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
            ledger=Ledger(spark, lake, "studio"),
            emit=lambda event: None,
        )

    def load(self, number: int, files: dict[str, str]) -> None:
        landed = []
        for name, text in files.items():
            etag = self.s3.put_object(Bucket=self.bucket, Key=name, Body=text.encode())["ETag"].strip('"')
            landed.append(LandedFile(self.bucket, name, len(text), etag))
        self.batch.load(landed, number)

    def retry(self, choice: Choice) -> int:
        tries = Retry(self.spark, service(AFTER), lake=self.lake, emit=lambda event: None)
        try:
            return tries.run(choice).moved
        finally:
            tries.logs.close()

    def rows(self, table: str, column: str) -> Counter[Any]:
        return Counter(row[column] for row in LakeView(self.lake).query(table, f"select {column} from t"))

    def held(self, pile: str, field: str) -> Counter[Any]:
        """The values of a field in the records that are whole."""
        found = (json.loads(text) for text in self._held(pile) if text.endswith("}"))
        return Counter(record[field] for record in found)

    def torn(self) -> int:
        return sum(not text.endswith("}") for text in self._held("quarantine"))

    def _held(self, pile: str) -> list[str]:
        rows = LakeView(self.lake).query(f"_forebay/{pile}", "select record from t where line is not null")
        return [row["record"].rstrip() for row in rows]


@pytest.fixture
def made(spark: SparkSession, twin: Twin, lake: str) -> Iterator[Lake]:
    made = Lake(spark, twin, lake)
    yield made
    made.batch.close()


TORN = ('{"torn": [1, 2', '{"torn": "x', "oops", '{"torn":')


@dataclass
class Told:
    """What a file holds, and where each of its records belongs before anything is retried."""

    text: str
    ticks: list[str] = field(default_factory=list)
    high: list[str] = field(default_factory=list)
    higher: list[str] = field(default_factory=list)
    prices: list[int] = field(default_factory=list)
    torn: int = 0


def told(draw: Random, name: str) -> Told:
    """A file of several parts, each in a layout of its own; what is broken stands before any of them, on its own line."""
    made, parts = Told(""), []
    for part in range(draw.randint(1, 4)):
        if draw.random() < 0.4:
            parts.append(draw.choice(TORN))
            made.torn += 1
        texts = [text for n in range(draw.randint(3, 6)) for text in some(draw, f"{name} {part} {n}", made)]
        parts.append(LAYOUTS[draw.choice(sorted(LAYOUTS))](texts))
    made.text = "\n".join(parts)
    return made


def some(draw: Random, name: str, made: Told) -> list[str]:
    kind = draw.choice(("new", "new", "known", "twice", "high", "higher", "buy"))
    if kind == "buy":
        made.prices.append(draw.choice((1, 2)))
        return [buy(made.prices[-1])]
    if kind == "known":
        return [tick("known")]
    {"high": made.high, "higher": made.higher}.get(kind, made.ticks).append(name)
    one = tick(name, {"high": 500, "higher": 5000}.get(kind, 1))
    return [one, one] if kind == "twice" else [one]


@pytest.mark.deep
@pytest.mark.parametrize("seed", range(int(os.environ.get("FOREBAY_LAYOUTS", "1"))))
def test_every_layout_goes_through_every_verb(made: Lake, seed: int) -> None:
    """Ingest, dedupe, quarantine, replace, adopt, retry, replace again, drop. FOREBAY_LAYOUTS=50 draws so many times."""
    draw = Random(seed)
    files = {f"{n}.json": told(draw, f"{n}") for n in range(10)}

    def load(number: int, keys: Iterable[str]) -> None:
        made.load(number, {key: files[key].text for key in keys})

    def everything(*names: str) -> Counter[Any]:
        return Counter(one for file in files.values() for name in names for one in getattr(file, name))

    made.load(0, {"known": tick("known")})
    load(1, files)
    replaced = draw.sample(sorted(files), 4)
    for key in replaced:
        again = files[key].ticks[:2]  # the same records as before are no duplicates: those leave
        files[key] = told(draw, f"{key} again")
        files[key].ticks += again
        files[key].text += "".join(f"\n{tick(one)}" for one in again)
    load(2, replaced)
    assert made.rows("alpha", "id") == everything("ticks") + Counter(["known"])
    assert made.held("quarantine", "id") == everything("high", "higher")
    assert made.torn() == sum(file.torn for file in files.values())
    assert made.held("parked", "price") == everything("prices")

    assert made.retry(Choice("parked", table="cheap")) == everything("prices")[1]
    assert made.retry(Choice("quarantine")) == everything("high").total()
    replaced = draw.sample(sorted(files), 4)
    high = [one for key, file in files.items() if key not in replaced for one in file.high]
    cheap = [one for key, file in files.items() if key not in replaced for one in file.prices if one == 1]
    files |= {key: told(draw, f"{key} once more") for key in replaced}
    load(3, replaced)
    assert made.rows("alpha", "id") == everything("ticks") + Counter(["known", *high])
    assert made.rows("cheap", "price") == Counter(cheap)
    held = made.held("quarantine", "id")
    assert held == everything("high", "higher") - Counter(high)
    assert made.held("parked", "price") == everything("prices") - Counter(cheap)

    torn = sum(file.torn for file in files.values())
    assert made.retry(Choice("quarantine", give_up=True)) == held.total() + torn
    assert made.held("quarantine", "id").total() == made.torn() == 0
    assert accounts(LakeView(made.lake)).differences() == []
