"""How much longer a batch takes to reach many tables than one table that is partitioned by game, and how long it takes to make
1,200 tables.

In: a twin, with files of JSON lines as the bench `pipeline` has them, and lakes in a folder: with thousands of requests, the
twin's S3 would be all that is measured. One warm session takes the same files in by both
declarations, in turns, with 30 games and with 300. Then one batch takes a file with two records for each of 1,200 games. Every
batch is counted. Out: `run()`'s figures in seconds, and the bars.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import tempfile
from pathlib import Path
from typing import Any

from forebay.landed_file import LandedFile
from forebay_local.twin.twin import Twin, running
from tests.bench.bars import at_most
from tests.bench.pipeline import BUCKET, SERVICE, Contest, content_of, put_files

MANY = 1200
BARS = {30: 1.1, 300: 1.5}
PARTITIONED = SERVICE.replace('name = "{game}"', 'name = "games"\npartitions = ["game"]').replace(
    "columns = [", 'columns = [\n  { name = "game" },'
)


def run(*, files: int = 40, records: int = 400_000, rounds: int = 3) -> dict[str, Any]:
    """The first turn of each, on a tenth of the files, only warms up."""
    with tempfile.TemporaryDirectory(prefix="forebay-bench-") as folder, running(Path(folder) / "twin") as twin:
        os.environ.update(twin.env)
        ways = {"tables": Path(folder) / "tables.toml", "partitioned": Path(folder) / "partitioned.toml"}
        ways["tables"].write_text(SERVICE)
        ways["partitioned"].write_text(PARTITIONED)
        landed = {games: put_files(twin, files, records // files, games, f"in/{games}") for games in BARS}
        many = _many(twin)
        from forebay.spark.session import session

        spark = session("bench-fanout")
        try:
            # In a folder, Delta's usual log store starts a process for each chmod; one driver is alone here.
            spark.conf.set("spark.delta.logStore.file.impl", "io.delta.storage.LocalLogStore")
            contest = Contest(spark, twin, "", records // files)
            contest.lakes = f"file://{folder}"
            for way in ways.values():
                contest.ours(landed[30][: max(1, files // 10)], str(way))
            seconds: dict[tuple[str, int], list[float]] = {(way, games): [] for games in BARS for way in ways}
            for _ in range(rounds):
                for (way, games), taken in seconds.items():
                    taken.append(contest.ours(landed[games], str(ways[way])))
            contest.records_per_file = 2 * MANY
            new_tables = contest.ours([many], str(ways["tables"]))
        finally:
            spark.stop()
    figures: dict[str, Any] = {"files": files, "records": records, "new_tables": MANY, "new_tables_s": new_tables}
    figures |= {f"{way}_{games}_rounds_s": taken for (way, games), taken in seconds.items()}
    middle = {key: statistics.median(taken) for key, taken in seconds.items()}
    ratios = {games: middle["tables", games] / middle["partitioned", games] for games in BARS}
    bars = [at_most(f"{games} tables to one partitioned table", ratio, BARS[games]) for games, ratio in ratios.items()]
    bars.append(at_most(f"{MANY} new tables, seconds", new_tables, 10))
    return {"name": "fanout", "figures": figures, "bars": bars}


def _many(twin: Twin) -> LandedFile:
    """Two records for each of the tables."""
    lines = content_of(0, 2 * MANY, 1).decode().splitlines()
    content = "\n".join(line.replace("game_00", f"game_{n % MANY:04}", 1) for n, line in enumerate(lines)).encode()
    etag = twin.client("s3").put_object(Bucket=BUCKET, Key="many.json", Body=content)["ETag"].strip('"')
    return LandedFile(BUCKET, "many.json", len(content), etag)


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__)
    for name, default in (("files", 40), ("records", 400_000), ("rounds", 3)):
        options.add_argument(f"--{name}", type=int, default=default)
    print(json.dumps(run(**vars(options.parse_args()))))


if __name__ == "__main__":
    main()
