"""How much quicker the concurrent reader is than `spark.read.json`, on many small files near and far, and on large ones.

In: an S3 server of its own on this machine, a proxy that makes it far away, and one Spark session for both readers. Both
have every record parsed by Spark's own JSON reader with the same schema, so that what differs is how the records get
there; and make the same sums, which must come out equal. (What parsing costs us is in the bench `pipeline`.) Out:
`run()`'s figures in seconds, and the bars that they must clear. The two take turns, so that a busy machine is busy for
both.
"""

from __future__ import annotations

import argparse
import gc
import json
import os
import pickle
import statistics
import subprocess
import sys
import time
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from typing import Any

from forebay_local.twin.clients import KEY
from tests.bench.bars import at_least, at_most
from tests.bench.latency_proxy import LatencyProxy

NEAR, FAR = "near", "far-away"
SCHEMA = (
    "game string, event string, event_time string, id long, "
    "player struct<id: string, level: long, position: struct<x: double, y: double>>, "
    "items array<struct<sku: string, amount: long>>, note string"
)
SUMS = ["count(*)", "bit_xor(xxhash64(game, event, event_time, id, player, items, note))"]
CREDENTIALS = {"AWS_ACCESS_KEY_ID": "test", "AWS_SECRET_ACCESS_KEY": "test", "AWS_REGION": "us-east-1"}

Sums = tuple[Any, ...]


def run(
    *,
    objects: int = 1000,
    object_bytes: int = 70_000,
    delay_s: float = 0.03,
    large_files: int = 20,
    large_bytes: int = 50_000_000,
    rounds: int = 4,
) -> dict[str, Any]:
    """Figures and bars. A round more makes it steadier and slower; the far `spark.read.json` runs once, it takes minutes."""
    with _server() as port, LatencyProxy(port, keep=True) as proxy:
        small, large = _puts(port, objects, object_bytes, large_files, large_bytes)
        spark = _session(port, proxy.port)
        try:
            near = _Race(spark, f"http://127.0.0.1:{port}", NEAR)
            far = _Race(spark, proxy.url, FAR)
            near.ours(small[:4]), near.theirs(small[:4]), far.ours(small[:4]), far.theirs(small[:4])
            ours_near, theirs_near = _seconds(near, small, rounds)
            far.ours(small)  # and the proxy has all that it will be asked for
            proxy.delay_s = delay_s
            proxy.requests.clear()
            ours_far, _ = _timed(far.ours, small)
            gets_ours = len(proxy.requests)
            proxy.requests.clear()
            theirs_far, _ = _timed(far.theirs, small)
            gets_theirs = len(proxy.requests)
            ours_far = statistics.median([ours_far, *(_timed(far.ours, small)[0] for _ in range(rounds - 1))])
            large_seconds = _seconds(near, large, rounds) if large else None
        finally:
            spark.stop()
    figures = {
        "objects": objects,
        "object_bytes": object_bytes,
        "delay_s": delay_s,
        "large_files": large_files,
        "large_bytes": large_bytes,
        "far_ours_s": ours_far,
        "far_spark_s": theirs_far,
        "near_ours_s": ours_near,
        "near_spark_s": theirs_near,
        "requests_ours": gets_ours,
        "requests_spark": gets_theirs,
    }
    bars = [
        at_least("times faster, far", theirs_far / ours_far, 20),
        at_least("times faster, near", theirs_near / ours_near, 2.5),
        at_most("requests per file", gets_ours / objects, 1),
    ]
    if large_seconds is not None:
        figures["large_ours_s"], figures["large_spark_s"] = ours_large, theirs_large = large_seconds
        bars.append(at_least("times as fast, large files", theirs_large / ours_large, 0.9))
    rounded = {name: round(value, 3) for name, value in figures.items()}
    return {"name": "reader", "figures": rounded, "bars": bars}


class _Race:
    """Two readers of the same bucket over the same endpoint."""

    def __init__(self, spark: Any, endpoint: str, bucket: str) -> None:
        self.spark, self.endpoint, self.bucket = spark, endpoint, bucket

    def ours(self, files: list[tuple[str, int]]) -> Sums:
        from pyspark.sql import DataFrame

        from forebay.content.limits import Limits
        from forebay.content.piece import cut, deal
        from forebay.landed_file import LandedFile
        from forebay.table.data_files.in_arrow import map_in_arrow

        context = self.spark.sparkContext
        context.environment["AWS_ENDPOINT_URL"] = self.endpoint
        landed = [LandedFile(self.bucket, key, size) for key, size in files]
        hands = deal(cut(landed, Limits()), context.defaultParallelism)
        dealt = context.parallelize([(pickle.dumps(hand),) for hand in hands], len(hands))
        documents = map_in_arrow(self.spark.createDataFrame(dealt, "pieces binary"), _texts, "value string")
        # As JVM code does it, to whom `json` takes a dataset of strings; PySpark's takes an RDD only, and that is slow.
        texts = getattr(documents._jdf, "as")(self.spark._jvm.org.apache.spark.sql.Encoders.STRING())
        return self._sums(DataFrame(self.spark.read.schema(SCHEMA)._jreader.json(texts), self.spark))

    def theirs(self, files: list[tuple[str, int]]) -> Sums:
        paths = [f"s3a://{self.bucket}/{key}" for key, _ in files]
        return self._sums(self.spark.read.schema(SCHEMA).json(paths))

    def _sums(self, records: Any) -> Sums:
        return tuple(records.selectExpr(*SUMS).first())


def _texts(batches: Iterable[Any]) -> Iterator[Any]:
    """The texts of the records in pieces of files, as the tasks of a batch read them."""
    import pyarrow as pa
    import pyarrow.compute as pc

    from forebay.batch.one_pass.reader import source
    from forebay.content.limits import Limits
    from forebay.content.reading import read_pieces

    for batch in batches:
        for hand in batch.column(0).to_pylist():
            for rows in read_pieces(pickle.loads(hand), source(Limits(), None), Limits()):
                some = pa.Table.from_batches([rows])
                texts = some.filter(pc.and_(pc.is_valid(some["line"]), pc.is_null(some["problem"]))).select(["value"])
                yield from texts.to_batches()


def _seconds(race: _Race, files: list[tuple[str, int]], rounds: int) -> tuple[float, float]:
    """The median of each reader, after a round that is not timed: the JVM compiles what large files need in their
    first."""
    ours, theirs = list[float](), list[float]()
    turns = [(race.ours, ours), (race.theirs, theirs)]
    wanted, _ = [read(files) for read, _ in turns]
    for n in range(rounds):
        for read, seconds in turns if n % 2 else reversed(turns):
            took, sums = _timed(read, files)
            seconds.append(took)
            if sums != wanted:
                raise AssertionError(f"the readers do not agree: {sums} and {wanted}")
    return statistics.median(ours), statistics.median(theirs)


def _timed(work: Callable[[list[tuple[str, int]]], Sums], files: list[tuple[str, int]]) -> tuple[float, Sums]:
    gc.collect()
    began = time.perf_counter()
    sums = work(files)
    return time.perf_counter() - began, sums


@contextmanager
def _server() -> Iterator[int]:
    command = [sys.executable, "-m", "forebay_local.twin.server", "--port", "0", "--with-parent", str(os.getpid())]
    env = {**os.environ, KEY: CREDENTIALS["AWS_ACCESS_KEY_ID"]}
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=env) as process:
        assert process.stdout is not None
        try:
            line = process.stdout.readline().split()
            if line[:1] != ["READY"]:
                raise RuntimeError(f"the S3 server did not start: {' '.join(line)}")
            yield int(line[1].rpartition(":")[2])
        finally:
            process.terminate()


def _puts(port: int, *shape: int) -> tuple[list[tuple[str, int]], list[tuple[str, int]]]:
    """The same small files in both buckets, and the large ones in the near one; their keys and sizes."""
    import boto3

    objects, object_bytes, large_files, large_bytes = shape
    s3 = boto3.client(
        "s3",
        endpoint_url=f"http://127.0.0.1:{port}",
        region_name=CREDENTIALS["AWS_REGION"],
        aws_access_key_id=CREDENTIALS["AWS_ACCESS_KEY_ID"],
        aws_secret_access_key=CREDENTIALS["AWS_SECRET_ACCESS_KEY"],
    )
    content, large_content = _content(object_bytes), _content(large_bytes)
    small = [(f"small/{n:05}.json", len(content)) for n in range(objects)]
    large = [(f"large/{n:03}.json", len(large_content)) for n in range(large_files)]
    with ThreadPoolExecutor(4) as pool:
        for bucket in (NEAR, FAR):
            s3.create_bucket(Bucket=bucket)
            list(pool.map(lambda f, b=bucket: s3.put_object(Bucket=b, Key=f[0], Body=content), small))
    for key, _ in large:
        s3.put_object(Bucket=NEAR, Key=key, Body=large_content)
    s3.close()
    return small, large


def _content(size: int) -> bytes:
    """JSON lines of about 350 bytes, as a game's client writes them."""
    lines = [
        json.dumps(
            {
                "game": f"game-{n % 30}",
                "event": "match_ended",
                "event_time": f"2026-11-21T10:{n % 60:02}:00Z",
                "id": n,
                "player": {"id": f"player-{n * 7919}", "level": n % 100, "position": {"x": n / 7, "y": n / 3}},
                "items": [{"sku": f"sku-{n % 50}", "amount": 1}, {"sku": f"sku-{n % 40}", "amount": n % 9}],
                "note": f"a note of the {n}th match, long enough to be read and ignored",
            },
            separators=(",", ":"),
        )
        for n in range(min(size // 300, 20_000))
    ]
    block = ("\n".join(lines) + "\n").encode()
    whole = block * (size // len(block) + 1)
    return whole[: whole.rfind(b"\n", 0, size) + 1]


def _session(port: int, far_port: int) -> Any:
    from forebay.spark.session import session

    env = {**os.environ, **CREDENTIALS, "AWS_ENDPOINT_URL": f"http://127.0.0.1:{port}"}
    os.environ.update(CREDENTIALS)  # S3A asks the environment of the JVM
    far = {f"spark.hadoop.fs.s3a.bucket.{FAR}.endpoint": f"http://127.0.0.1:{far_port}"}
    spark = session("bench-reader", env=env, extra=far)
    spark.sparkContext.environment.update(CREDENTIALS)
    return spark


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__)
    for name, default in (("objects", 1000), ("large-files", 20), ("large-bytes", 50_000_000), ("rounds", 4)):
        options.add_argument(f"--{name}", type=int, default=default)
    given = options.parse_args()
    print(json.dumps(run(**vars(given))))


if __name__ == "__main__":
    main()
