"""How much longer ingestion takes where each record has three personal fields, one a token and two in the vault.

In: what the bench `pipeline` takes in, with a key of the twin's KMS. Out: seconds without personal fields, with fields that are
only treated, and with the vault, in turns of one warm session; and the bar. The vault of each turn has all records, counted.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import tempfile
from pathlib import Path
from typing import Any

from forebay.lake.layout import table_path
from forebay.privacy.secret import make_secret
from forebay.privacy.vault import values_of
from forebay_local.twin.twin import running
from tests.bench.bars import at_most
from tests.bench.pipeline import SERVICE, Contest, put_files

BARS = {"treated": 6, "vault": 20}
TREATED = """
[privacy]
subject = "player.id"
secret = "{lake}/secret"
personal = [
  {{ path = "player.id", become = "token" }},
  {{ path = "session", become = "masked"{kept} }},
  {{ path = "player.country", become = "masked"{kept} }},
]
"""


def run(*, files: int = 40, records: int = 400_000, games: int = 30, rounds: int = 3) -> dict[str, Any]:
    """The first turn of each, on a tenth of the files, only warms up."""
    with tempfile.TemporaryDirectory(prefix="forebay-bench-") as folder, running(Path(folder) / "twin") as twin:
        os.environ.update(twin.env)
        landed = put_files(twin, files, records // files, games)
        lake = f"s3://{twin.lake_bucket}/privacy"
        make_secret(f"{lake}/secret")
        key = twin.client("kms").create_key()["KeyMetadata"]["Arn"]
        from forebay.spark.session import session

        spark = session("bench-privacy")
        contest = Contest(spark, twin, "", records // files)

        def turn(kind: str, some: list[Any]) -> float:
            privacy = "" if kind == "plain" else TREATED.format(lake=lake, kept=", vault = true" * (kind == "vault"))
            vault = table_path(lake, f"vault-{contest.turn}")
            if kind == "vault":
                privacy += f'vault = "{vault}"\nvault_key = "{key}"\n'
            head, tables = SERVICE.split("[[tables]]")
            place = Path(folder) / f"{kind}-{contest.turn}.toml"
            place.write_text(f"{head}{privacy}[[tables]]{tables}")
            seconds = contest.ours(some, str(place))
            if kind == "vault":
                kept = spark.read.format("delta").load(values_of(vault).replace("s3://", "s3a://")).count()
                assert kept == len(some) * contest.records_per_file, kept
            return seconds

        try:
            seconds: dict[str, list[float]] = {"plain": [], "treated": [], "vault": []}
            for kind in seconds:
                turn(kind, landed[: max(1, files // 10)])
            for _ in range(rounds):
                for kind, taken in seconds.items():
                    taken.append(turn(kind, landed))
        finally:
            spark.stop()
    middle = {kind: statistics.median(taken) for kind, taken in seconds.items()}
    figures: dict[str, Any] = {"files": files, "records": records, "bytes": sum(file.size or 0 for file in landed)}
    figures |= {f"{kind}_s": took for kind, took in middle.items()}
    figures |= {f"{kind}_rounds_s": taken for kind, taken in seconds.items()}
    more = {kind: (middle[kind] - middle["plain"]) / records * 1e6 for kind in BARS}
    bars = [at_most(f"{kind}: more microseconds a record", value, BARS[kind], digits=1) for kind, value in more.items()]
    return {"name": "privacy", "figures": figures, "bars": bars}


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__)
    for name, default in (("files", 40), ("records", 400_000), ("games", 30), ("rounds", 3)):
        options.add_argument(f"--{name}", type=int, default=default)
    print(json.dumps(run(**vars(options.parse_args()))))


if __name__ == "__main__":
    main()
