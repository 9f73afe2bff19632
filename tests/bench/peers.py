"""What the same files take with the ways that people would choose instead: a function in a loop with delta-rs, DuckDB with
delta-rs, and Spark's own file stream with foreachBatch.

In: a twin, with files of JSON lines as the bench `pipeline` has them. All take in the same files, on the same two cores and the
same S3, in turns of one process. Each writes one table a game, and its rows are counted. They differ in what they promise: only
ours takes file names from a queue, keeps an account of each file, knows duplicates, and keeps records that do not fit. Theirs
know the schema before. Out: `run()`'s figures in seconds; there is no bar.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import tempfile
from collections import defaultdict
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from time import perf_counter
from typing import Any

import pyarrow as pa
import pyarrow.json as pj

from forebay.landed_file import LandedFile
from forebay_local.twin.twin import Twin, running
from tests.bench.pipeline import BUCKET, SCHEMA, SERVICE, Contest, put_files

LAKE = "lake"
FILES_AT_ONCE, ATTEMPTS = 4, 10
"""Of the function: calls that run side by side, and how often each repeats a commit."""
OF_ROWS = pa.schema(
    [
        *((name, pa.string()) for name in ("game", "event", "event_id")),
        ("event_time", pa.timestamp("us", tz="UTC")),
        *((name, pa.string()) for name in ("session", "platform", "build")),
        (
            "player",
            pa.struct(
                [
                    ("id", pa.string()),
                    ("level", pa.int64()),
                    ("country", pa.string()),
                    ("position", pa.struct([("x", pa.float64()), ("y", pa.float64())])),
                ]
            ),
        ),
        ("items", pa.list_(pa.struct([("sku", pa.string()), ("amount", pa.int64())]))),
    ]
)


def run(*, files: int = 40, records: int = 400_000, games: int = 30, rounds: int = 2) -> dict[str, Any]:
    """The first turn of each, on a tenth of the files, only warms up."""
    with tempfile.TemporaryDirectory(prefix="forebay-bench-") as folder, running(Path(folder) / "twin") as twin:
        os.environ.update(twin.env)
        service = Path(folder) / "service.toml"
        service.write_text(SERVICE)
        landed = put_files(twin, files, records // files, games)
        from forebay.spark.session import session

        spark = session("bench-peers")
        try:
            contest = Contest(spark, twin, str(service), records // files)
            others = Others(spark, twin, Path(folder), records // files)
            ways: dict[str, Callable[[list[LandedFile]], float]] = {
                "forebay": contest.ours,
                "one_table_by_hand": contest.by_hand,
                "file_stream": others.file_stream,
                "functions": others.functions,
                "duckdb": others.duckdb,
            }
            for way in ways.values():
                way(landed[: max(1, files // 10)])
            seconds: dict[str, list[float]] = {name: [] for name in ways}
            for _ in range(rounds):
                for name, way in ways.items():
                    seconds[name].append(way(landed))
        finally:
            spark.stop()
    figures: dict[str, Any] = {"files": files, "records": records, "games": games}
    figures |= {"bytes": sum(file.size or 0 for file in landed)}
    figures |= {f"{name}_s": statistics.median(taken) for name, taken in seconds.items()}
    figures |= {f"{name}_rounds_s": taken for name, taken in seconds.items()}
    return {"name": "peers", "figures": figures, "bars": []}


class Others:
    """Each turn has a bucket of its own: to list some keys, the local S3 looks at all of their bucket."""

    def __init__(self, spark: Any, twin: Twin, folder: Path, records_per_file: int) -> None:
        self.spark, self.twin, self.folder, self.records_per_file = spark, twin, folder, records_per_file
        self.turn = 0
        self.options = {
            "AWS_ENDPOINT_URL": twin.env["AWS_ENDPOINT_URL"],
            "AWS_ALLOW_HTTP": "true",
            "aws_conditional_put": "etag",
        }

    @property
    def bucket(self) -> str:
        return f"others-{self.turn}"

    def file_stream(self, files: list[LandedFile]) -> float:
        """It lists the bucket. Rows are cached, as each table takes its own of them."""
        lake = self.place("s3a")
        for file in files:
            self.twin.client("s3").copy_object(
                Bucket=self.bucket,
                Key=f"source/{file.key}",
                CopySource={"Bucket": file.bucket, "Key": file.key},
            )

        def write(batch: Any, number: int) -> None:
            batch.persist()
            games = [row["game"] for row in batch.select("game").distinct().collect()]

            def append(game: str) -> None:
                rows = batch.where(batch["game"] == game).write.format("delta").mode("append")
                rows.option("txnAppId", "peers").option("txnVersion", number).save(f"{lake}/{game}")

            with ThreadPoolExecutor(FILES_AT_ONCE) as pool:
                list(pool.map(append, games))
            batch.unpersist()

        began = perf_counter()
        rows = self.spark.readStream.schema(SCHEMA).json(f"s3a://{self.bucket}/source/in/")
        stream = rows.writeStream.foreachBatch(write).option("checkpointLocation", f"{lake}-checkpoint")
        stream.trigger(availableNow=True).start().awaitTermination()
        return self.took(began, len(files))

    def functions(self, files: list[LandedFile]) -> float:
        """One call for each file, as for a function that S3 invokes: it commits its rows to the table of each game."""
        lake = self.place("s3")

        def call(file: LandedFile) -> None:
            content = self.twin.client("s3").get_object(Bucket=BUCKET, Key=file.key)["Body"].read()
            by_game: dict[str, list[bytes]] = defaultdict(list)
            for line in content.splitlines():
                by_game[json.loads(line)["game"]].append(line)
            for game, lines in by_game.items():
                rows = pj.read_json(
                    pa.BufferReader(b"\n".join(lines)), parse_options=pj.ParseOptions(explicit_schema=OF_ROWS)
                )
                self.append(f"{lake}/{game}", rows)

        began = perf_counter()
        with ThreadPoolExecutor(FILES_AT_ONCE) as pool:
            list(pool.map(call, files))
        return self.took(began, len(files))

    def duckdb(self, files: list[LandedFile]) -> float:
        """All files at once: they are downloaded, and DuckDB reads them."""
        import duckdb

        lake, folder = self.place("s3"), self.folder / f"duckdb-{self.turn}"
        folder.mkdir()

        def fetch(file: LandedFile) -> None:
            self.twin.client("s3").download_file(BUCKET, file.key, str(folder / Path(file.key).name))

        began = perf_counter()
        with ThreadPoolExecutor(FILES_AT_ONCE) as pool:
            list(pool.map(fetch, files))
        with duckdb.connect() as database:
            database.execute("set threads = 2")
            database.execute(f"create table rows as from read_json('{folder}/*.json', format = 'newline_delimited')")
            for (game,) in database.execute("select distinct game from rows").fetchall():
                rows = database.sql("from rows where game = ?", params=[game]).to_arrow_table()
                self.append(f"{lake}/{game}", rows)
        return self.took(began, len(files))

    def append(self, table: str, rows: pa.Table) -> None:
        """Once more where another call created the table, or committed, at the same time."""
        from deltalake import write_deltalake
        from deltalake.exceptions import CommitFailedError

        for attempt in range(1, ATTEMPTS + 1):
            try:
                write_deltalake(table, rows, mode="append", storage_options=self.options)
                return
            except CommitFailedError:
                if attempt == ATTEMPTS:
                    raise

    def place(self, scheme: str) -> str:
        self.turn += 1
        where = {"LocationConstraint": self.twin.region}
        self.twin.client("s3").create_bucket(Bucket=self.bucket, CreateBucketConfiguration=where)
        return f"{scheme}://{self.bucket}/{LAKE}"

    def took(self, began: float, files: int) -> float:
        """Once every row of the turn is counted."""
        seconds = round(perf_counter() - began, 3)
        pages = self.twin.client("s3").get_paginator("list_objects_v2")
        found = pages.paginate(Bucket=self.bucket, Prefix=f"{LAKE}/", Delimiter="/")
        tables = [one["Prefix"] for page in found for one in page.get("CommonPrefixes", ())]
        read = self.spark.read.format("delta")
        rows = sum(read.load(f"s3a://{self.bucket}/{table}").count() for table in tables)
        assert rows == files * self.records_per_file, rows
        return seconds


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__)
    for name, default in (("files", 40), ("records", 400_000), ("games", 30), ("rounds", 2)):
        options.add_argument(f"--{name}", type=int, default=default)
    print(json.dumps(run(**vars(options.parse_args()))))


if __name__ == "__main__":
    main()
