"""A log of changes that things happen to, and what is computed from it: each of them must equal the model in plain Python."""

from __future__ import annotations

import random
from collections.abc import Iterable
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pyarrow as pa
from delta.tables import DeltaTable as Delta
from deltalake import DeltaTable, write_deltalake
from pyspark.sql import SparkSession

from forebay.declaration.column import Column
from forebay.declaration.merge import HISTORY_COLUMNS, Merge
from forebay.declaration.service import Service
from forebay.declaration.table import Table
from forebay.errors import InvalidConfiguration
from forebay.lake.lease import Lease
from forebay.merge.partial import Partial
from forebay.merge.snapshot import Snapshot
from forebay.merge.state import State
from forebay.merge.step import kind_of, step
from forebay.operate.exporting.export import export
from forebay.operate.lake_view import LakeView
from forebay.table.kernel import TableLogs
from tests.merge.order import Change, current_state, folded_state, history, snapshot
from tests.operate.test_export import applied

STATE: dict[str, Any] = {
    "keys": ("id", "world"),
    "sequence_by": ("at",),
    "delete_when": "op = 'd'",
    "change_feed": True,
}
HISTORY = Merge(into="versions", history="scd2", **STATE)
MERGE = Merge(into="players", partitions=("world",), **STATE)
SNAPSHOT = Merge(into="players", snapshot=True, **STATE)
PARTIAL = MERGE.model_copy(update={"ignore_null_updates": True})
GROWING = MERGE.model_copy(update={"delete_when": None})
COLUMNS = pa.schema(
    {
        "id": pa.string(),
        "world": pa.string(),
        "at": pa.int64(),
        "op": pa.string(),
        "score": pa.int64(),
        "tags": pa.map_(pa.string(), pa.string()),
        "_file_id": pa.string(),
        "_line": pa.int64(),
        "_batch": pa.int64(),
        "_ingested_at": pa.timestamp("us", "UTC"),
    }
)
NOW = datetime.now(UTC)


class Held:
    epoch = 1

    def check(self) -> None:
        pass

    def let_go(self) -> None:
        pass


@dataclass
class Story:
    """A log that things happen to, and its state."""

    spark: SparkSession
    lake: Path
    chance: random.Random
    logs: TableLogs
    files: int = 0
    declared: Merge = MERGE
    batches: int = 0
    exports: int = 0
    said: list[str] = field(default_factory=list)

    @property
    def log(self) -> str:
        return f"{self.lake}/player_changes"

    @property
    def elsewhere(self) -> Path:
        return self.lake.parent / f"elsewhere-{self.exports}"

    def rows(self, file_id: str, count: int = 60) -> list[tuple[Any, ...]]:
        """Few keys and few moments, so that changes meet, also at the same moment."""
        chance = self.chance
        made = []
        for line in range(1, count + 1):
            key, op = f"p{chance.randrange(25)}", "d" if chance.random() < 0.3 else "u"
            tags: dict[str, str] | None = {"n": str(chance.randrange(5))}
            score, tags = chance.choice([None, chance.randrange(99)]), chance.choice([None, tags])
            made.append((key, chance.choice("ab"), chance.randrange(15), op, score, tags, file_id, line))
        return made

    def bring(self, *, into: str = "", count: int = 60) -> None:
        """A file arrives; or takes the place of an earlier version of itself."""
        self.batches += 1
        file_id = into or f"f{self.chance.randrange(10**6)}"
        rows = [(*row, self.batches, NOW) for row in self.rows(file_id, count)]
        if into:
            self._write(rows, mode="overwrite", predicate=f"_file_id = '{into}'")
        else:
            self.append(rows)
        self.said.append(f"{'replace' if into else 'bring'} {file_id}")

    def append(self, rows: list[tuple[Any, ...]]) -> None:
        self._write(rows, mode="append")

    def _write(self, rows: list[tuple[Any, ...]], **how: Any) -> None:
        write_deltalake(self.log, in_columns(rows, COLUMNS), schema_mode="merge", **how)

    def merge(self, lease: Lease | None = None) -> Any:
        into, declared = self.declared.into, self.declared
        lake, log = str(self.lake), "player_changes"
        return step(self.spark, lake, log, into, declared, logs=self.logs, lease=lease or Held())

    def optimize(self) -> None:
        Delta.forPath(self.spark, self.log).optimize().executeCompaction()
        self.said.append("optimize")

    def replace_one(self) -> None:
        self.bring(into=self.chance.choice(self.file_ids()))

    def forget_one(self) -> None:
        """Its rows leave, and none come, as with `forebay files forget`."""
        file_id = self.chance.choice(self.file_ids())
        Delta.forPath(self.spark, self.log).delete(f"_file_id = '{file_id}'")
        self.said.append(f"forget {file_id}")

    def roll_back(self) -> None:
        table = Delta.forPath(self.spark, self.log)
        table.restoreToVersion(table.history(1).collect()[0].version - 2)
        self.said.append("roll back")

    def file_ids(self) -> list[str]:
        return sorted(set(DeltaTable(self.log).to_pyarrow_table()["_file_id"].to_pylist()))

    def must_be_the_same_elsewhere(self) -> None:
        """Where somebody applies what `forebay export` writes."""
        columns = [Column(name="id"), Column(name="world"), Column(name="at", type="long"), Column(name="op")]
        table = Table(name="player_changes", mode="merge", merge=self.declared, columns=tuple(columns))
        name, service = self.declared.into, Service(name="s", tables=(table,))
        try:
            list(export(LakeView(str(self.lake)), service, name, str(self.elsewhere)))
        except InvalidConfiguration as refused:
            if "other partition columns" not in str(refused):
                raise
            self.exports += 1
            list(export(LakeView(str(self.lake)), service, name, str(self.elsewhere)))
        rows = DeltaTable(f"{self.lake}/{name}").to_pyarrow_table()
        # Steps from before a column came do not have it.
        none = dict.fromkeys(rows.column_names)
        there = [none | row for row in applied(self.elsewhere, name)]
        assert sorted(there, key=str) == sorted(rows.to_pylist(), key=str), self.said

    def must_agree(self) -> None:
        self.must_be_the_same_elsewhere()
        log = DeltaTable(self.log).to_pyarrow_table().to_pylist()
        deletes = self.declared.delete_when is not None
        changes = (
            Change((r["id"], r["world"]), (r["at"],), r["_file_id"], r["_line"], 0, deletes and r["op"] == "d", r)
            for r in log
        )
        if self.declared.history is not None:
            self.must_agree_in_history(tuple(changes))
            return
        model = {State: current_state, Partial: folded_state, Snapshot: snapshot}[kind_of(self.declared)]
        expected = {key: plain(change.row) for key, change in model(changes).items()}
        # delta-rs, a foreign reader, sees what Spark wrote.
        rows = DeltaTable(f"{self.lake}/players").to_pyarrow_table().to_pylist()
        found = {(row["id"], row["world"]): plain(row) for row in rows}
        assert len(rows) == len(found), self.said
        assert found == expected, self.said

    def must_agree_in_history(self, changes: Iterable[Change]) -> None:
        expected = {
            (*key, one.change.sequence[0]): {**plain(beside(one.change.row)), "valid_to": one.until}
            for key, versions in history(changes).items()
            for one in versions
        }
        rows = DeltaTable(f"{self.lake}/versions").to_pyarrow_table().to_pylist()
        found = {(row["id"], row["world"], row.pop("valid_from")): plain(row) for row in rows}
        assert len(rows) == len(found), self.said
        assert found == expected, self.said


def in_columns(rows: list[tuple[Any, ...]], columns: pa.Schema) -> pa.Table:
    """For delta-rs: Spark takes a second to write a few rows."""
    return pa.Table.from_pylist([dict(zip(columns.names, row, strict=True)) for row in rows], columns)


def plain(row: dict[str, Any]) -> dict[str, Any]:
    return {**row, "tags": row["tags"] and dict(row["tags"]), "_ingested_at": None}


def beside(row: dict[str, Any]) -> dict[str, Any]:
    """Columns of the log that a history has for itself are others in the state."""
    return {f"{name}_field" if name in HISTORY_COLUMNS else name: value for name, value in row.items()}


def die(*given: object) -> None:
    raise KeyboardInterrupt
