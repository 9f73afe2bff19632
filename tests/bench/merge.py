"""What a merge costs beside one hand-written Delta MERGE of the same changes, and whether that grows with the table.

In: a table of changes on a lake in a folder, merged once, and batches of changes after that, of which a tenth is late. Each
batch goes into two equal tables, in turn: by `merge.step`, and by one MERGE statement as one would write it. Then the same
changes hit the same few partitions of a table four times as large. At last many changes of one key come at once. Out: `run()`'s
figures, medians of the rounds, and the bars.
"""

from __future__ import annotations

import argparse
import json
import statistics
import tempfile
import time
from typing import Any

from tests.bench.bars import at_most

PARTITIONS = 20
HIT = 4
"""Partitions that the changes of a batch are in."""
TIMES_LARGER = 4
LATE = 10
"""One change in so many is older than what the table has."""


def run(*, rows: int = 5_000_000, changes: int = 200_000, rounds: int = 3) -> dict[str, Any]:
    from forebay.spark.session import session

    with tempfile.TemporaryDirectory(prefix="forebay-bench-") as folder:
        spark = session("bench-merge", extra={"spark.sql.shuffle.partitions": "16"})
        try:
            small = _Contest(spark, f"{folder}/small", rows, changes, PARTITIONS)
            large = _Contest(spark, f"{folder}/large", rows * TIMES_LARGER, changes, PARTITIONS * TIMES_LARGER)
            times: dict[str, list[float]] = {"step": [], "by_hand": [], "step_of_large": []}
            for number in range(rounds + 1):
                for contest in (small, large):
                    contest.bring(number)
                found = {"step": small.step(), "by_hand": small.by_hand(), "step_of_large": large.step()}
                for name, seconds in found.items() if number else ():  # the first round warms up
                    times[name].append(seconds)
            small.check()
            one_key = small.change_one_key(rows // 5)
        finally:
            spark.stop()
    figures: dict[str, Any] = {"rows": rows, "changes": changes, "late_share": 1 / LATE}
    medians = {name: statistics.median(found) for name, found in times.items()}
    figures |= {"changes_of_one_key": rows // 5, "one_key_s": round(one_key, 2)}
    figures |= {f"{name}_s": round(seconds, 2) for name, seconds in medians.items()}
    ratios = {
        "a merge to one MERGE by hand": (medians["step"] / medians["by_hand"], 1.2),
        f"the same changes in a table {TIMES_LARGER} times as large": (medians["step_of_large"] / medians["step"], 1.3),
    }
    bars = [at_most(name, ratio, limit) for name, (ratio, limit) in ratios.items()]
    return {"name": "merge", "figures": figures, "bars": bars}


class _Contest:
    """One table of changes, and two equal tables that they are merged into."""

    def __init__(self, spark: Any, lake: str, rows: int, changes: int, partitions: int) -> None:
        from forebay.declaration.merge import Merge
        from forebay.table.kernel import TableLogs

        self.spark, self.lake, self.changes, self.number = spark, lake, changes, 0
        self.each, self.logs = rows // partitions, TableLogs(spark)
        self.merge = Merge(into="state", keys=("world", "id"), sequence_by=("at",), partitions=("world",))
        self._write(spark.range(rows), f"id div {self.each}", f"id % {self.each}", "1000", "log")
        self.step()
        state = spark.read.format("delta").load(f"{lake}/state")
        state.write.format("delta").partitionBy("world").save(f"{lake}/by_hand")

    def bring(self, number: int) -> None:
        """Keys spread over the partitions that are hit; one in `LATE` changes is older than all that is there."""
        self.number = number + 1
        at = f"if(id % {LATE} = 0, 1, 1000 + {self.number})"
        key = f"(id * 7919 + {self.number}) % {self.each}"
        self._write(self.spark.range(self.changes), f"id % {HIT}", key, at, "log")

    def step(self) -> float:
        from forebay.merge.step import step

        began = time.monotonic()
        step(self.spark, self.lake, "log", "state", self.merge, logs=self.logs, lease=_Nobodys())
        return time.monotonic() - began

    def by_hand(self) -> float:
        began = time.monotonic()
        rank = "row_number() over (partition by world, id order by at desc, _line desc)"
        new = f"select *, {rank} n from delta.`{self.lake}/log` where _batch = {self.number}"
        hit = ", ".join(str(world) for world in range(HIT))
        self.spark.sql(f"""
            merge into delta.`{self.lake}/by_hand` t using (select * except (n) from ({new}) where n = 1) s
            on t.world = s.world and t.id = s.id and t.world in ({hit})
            when matched and s.at > t.at then update set *
            when not matched then insert *""")
        return time.monotonic() - began

    def change_one_key(self, changes: int) -> float:
        """All in one batch. The time of the step, after which one of them stands."""
        self._write(self.spark.range(changes), "0", "1", "id + 5000", "log")
        seconds = self.step()
        (at,) = self.spark.sql(f"select at from delta.`{self.lake}/state` where world = 0 and id = 1").collect()
        assert at[0] == changes + 4999, at
        return seconds

    def check(self) -> None:
        """Nobody was quicker by leaving changes out."""
        sums = [
            self.spark.sql(f"select count(*), sum(at), sum(_line) from delta.`{self.lake}/{name}`").first()
            for name in ("state", "by_hand")
        ]
        assert sums[0] == sums[1], sums

    def _write(self, ids: Any, world: str, key: str, at: str, table: str) -> None:
        text = "concat('player-', sha2(cast(id as string), 256))"
        rows = ids.selectExpr(
            f"cast({world} as long) world", f"cast({key} as long) id", f"cast({at} as long) at", f"{text} payload",
            f"'file-{self.number}' _file_id", "id _line", f"{self.number}L _batch", "timestamp'2026-11-22' _ingested_at",
        )  # fmt: skip
        rows.write.format("delta").mode("append").save(f"{self.lake}/{table}")


class _Nobodys:
    epoch = 1

    def check(self) -> None:
        """Nobody else is here."""

    def let_go(self) -> None:
        """It was never held."""


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__)
    for name, default in (("rows", 5_000_000), ("changes", 200_000), ("rounds", 3)):
        options.add_argument(f"--{name}", type=int, default=default)
    print(json.dumps(run(**vars(options.parse_args()))))


if __name__ == "__main__":
    main()
