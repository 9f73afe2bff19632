"""What a long history costs: a batch on a lake whose ledger has a million files, against the same batch on a fresh lake.

In: two lakes in folders, a twin for the files to read, and one warm session. The ledger's million rows are made by Spark,
in as many files as a compacted ledger has. The lakes take turns with batches of the same shape, each of new files. Out:
`run()`'s figures in seconds, with what loading the driver's index cost, and the bars.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import statistics
import tempfile
import time
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from forebay.landed_file import LandedFile
from forebay_local.twin.twin import Twin, running
from tests.bench.bars import at_most

BUCKET = "bench-landing"


def run(*, history: int = 1_000_000, files: int = 20, rounds: int = 5) -> dict[str, Any]:
    """Figures and bars. The index of ten million files must load within 15 s: `--history 10000000` tries it."""
    with tempfile.TemporaryDirectory(prefix="forebay-bench-") as folder, running(Path(folder) / "twin") as twin:
        os.environ.update(twin.env)
        from forebay.spark.session import session

        spark = session("bench-history")
        try:
            lakes = {name: f"file://{folder}/{name}" for name in ("fresh", "old")}
            _write_history(spark, lakes["old"], history)
            contest = {name: _Lake(spark, twin, name, lake, files) for name, lake in lakes.items()}
            load_s = contest["old"].load()
            contest["fresh"].load()
            for lake in contest.values():
                lake.batch()
            seconds: dict[str, list[float]] = {name: [] for name in contest}
            for _ in range(rounds):
                for name, lake in contest.items():
                    seconds[name].append(lake.batch())
            for name, lake in contest.items():
                lake.check((rounds + 1) * files + (history if name == "old" else 0))
        finally:
            spark.stop()
    old, fresh = (statistics.median(seconds[name]) for name in ("old", "fresh"))
    figures = {
        "history": history,
        "files_per_batch": files,
        "old_batch_s": old,
        "fresh_batch_s": fresh,
        "index_load_s": load_s,
        "old_rounds_s": seconds["old"],
        "fresh_rounds_s": seconds["fresh"],
    }
    bars = [
        at_most("times a fresh batch", old / fresh, 1.2),
        at_most("seconds to load the index", load_s, 15),
    ]
    return {"name": "history", "figures": figures, "bars": bars}


class _Lake:
    """One lake and its driver."""

    def __init__(self, spark: Any, twin: Twin, name: str, lake: str, files: int) -> None:
        from forebay.batch.batch import Batch
        from forebay.declaration.loading import builtin_service
        from forebay.ledger.ledger import Ledger

        self.spark, self.twin, self.name, self.files, self.number = spark, twin, name, files, 0
        self.bucket = f"{BUCKET}-{name}"
        where = {"CreateBucketConfiguration": {"LocationConstraint": twin.region}}
        twin.client("s3").create_bucket(Bucket=self.bucket, **where)
        service = builtin_service()
        self.ledger = Ledger(spark, lake, service.name)
        self.load_files = Batch(
            spark, service, lake=lake, generation=lambda: "bench", ledger=self.ledger, emit=lambda event: None
        ).load

    def load(self) -> float:
        began = time.perf_counter()
        assert self.ledger.index is not None
        return round(time.perf_counter() - began, 3)

    def batch(self) -> float:
        files = [self._put(n) for n in range(self.files)]
        began = time.perf_counter()
        self.load_files(files, self.number)
        took = round(time.perf_counter() - began, 3)
        self.number += 1
        return took

    def check(self, wanted: int) -> None:
        assert self.spark.read.format("delta").load(self.ledger.path).count() == wanted

    def _put(self, n: int) -> LandedFile:
        key = f"in/{self.number:04}-{n:04}.json"
        at = datetime.now(UTC)
        lines = [{"game": f"game_{i % 3}", "event": "tick", "event_id": f"{key}-{i}"} for i in range(200)]
        content = "".join(json.dumps(line) + "\n" for line in lines).encode()
        etag = self.twin.client("s3").put_object(Bucket=self.bucket, Key=key, Body=content)["ETag"].strip('"')
        return LandedFile(self.bucket, key, len(content), etag, event_time=at)


def _write_history(spark: Any, lake: str, files: int) -> None:
    """Rows as the ledger has them; what nobody reads at a start is short."""
    from forebay.ledger.entry import COLUMNS

    made = {
        "day": "date_add(date'2026-01-01', cast(id % 300 as int))",
        "file_id": "md5(cast(id as string))",
        "file_hash": "xxhash64(id)",
        "key_hash": "xxhash64(id, 1)",
        "bucket": "'landing'",
        "key": "concat('in/', id, '.json')",
        "outcome": "'loaded'",
    }
    kinds = re.findall(r"(\w+) (map<[^>]*>|\w+)", COLUMNS)
    columns = [f"cast({made.get(name, 'null')} as {kind}) {name}" for name, kind in kinds]
    rows = spark.range(0, files, 1, 8).selectExpr(*columns)
    rows.repartition(8, "day").write.format("delta").partitionBy("day").save(f"{lake}/_forebay/ledger")


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__)
    for name, default in (("history", 1_000_000), ("files", 20), ("rounds", 5)):
        options.add_argument(f"--{name}", type=int, default=default)
    print(json.dumps(run(**vars(options.parse_args()))))


if __name__ == "__main__":
    main()
