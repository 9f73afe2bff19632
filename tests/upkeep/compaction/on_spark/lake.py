"""A small lake in a folder, with tables of many small files, and runs of the compaction job on it."""

from __future__ import annotations

import json
import os
import re
import uuid
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import deltalake as delta_rs
import pyarrow as pa
import pyarrow.parquet as pq
from delta.tables import DeltaTable
from deltalake.transaction import AddAction, create_table_with_add_actions
from pyspark.sql import DataFrame, SparkSession

from forebay.events import Event
from forebay.lake.log.live_file import LiveFile
from forebay.lake.log.snapshot import read_snapshot
from forebay.lake.objects import open_objects
from forebay.operate.lake_view import LakeView
from forebay.settings import CompactSettings, MaintainSettings
from forebay.upkeep.compaction.job import CompactionResult, compact
from forebay.upkeep.maintenance.job import MaintenanceResult, maintain

SCHEMA = delta_rs.Schema([delta_rs.Field(name, "long") for name in ("id", "v")])


def _add(folder: Path, ids: range) -> AddAction:
    """One data file, and how a commit names it."""
    columns = {"id": list(ids), "v": [n % 7 for n in ids]}
    place = folder / f"part-{uuid.uuid4()}.parquet"
    pq.write_table(pa.table(columns), place)
    stat, least_most = place.stat(), (("minValues", min), ("maxValues", max))
    stats = {name: {column: of(values) for column, values in columns.items()} for name, of in least_most}
    told = json.dumps({"numRecords": len(ids), **stats, "nullCount": dict.fromkeys(columns, 0)})
    return AddAction(place.name, stat.st_size, {}, int(stat.st_mtime * 1000), True, told)


@dataclass
class SmallLake:
    spark: SparkSession
    folder: Path
    events: list[Event] = field(default_factory=list)

    @property
    def place(self) -> str:
        return f"file://{self.folder}"

    def path(self, table: str = "alpha") -> str:
        return f"{self.place}/{table}"

    def append(self, rows: DataFrame, table: str = "alpha", by: str | None = None, **options: str) -> None:
        writer = rows.write.format("delta").mode("append").options(**options)
        (writer.partitionBy(by) if by else writer).save(self.path(table))

    def fill(self, table: str = "alpha", files: int = 6, rows: int = 10, first: int = 0) -> None:
        """So many files of a table without partitions, in one commit. Without Spark."""
        folder = self.folder / table
        folder.mkdir(parents=True, exist_ok=True)
        adds = [_add(folder, range(at, at + rows)) for at in range(first, first + files * rows, rows)]
        if (folder / "_delta_log").exists():
            delta_rs.DeltaTable(str(folder)).create_write_transaction(adds, "append", SCHEMA)
        else:
            create_table_with_add_actions(str(folder), SCHEMA, adds)

    def rows(self, table: str = "alpha") -> Counter[Any]:
        """Without Spark, which takes a second for each look."""
        found = LakeView(self.place).query(table, "select * from t")
        return Counter(tuple(row.items()) for row in found)

    def files(self, table: str = "alpha") -> list[LiveFile]:
        return list(read_snapshot(open_objects(self.path(table))).files)

    def version(self, table: str = "alpha") -> int:
        return read_snapshot(open_objects(self.path(table))).version

    def delta(self, table: str = "alpha") -> DeltaTable:
        return DeltaTable.forPath(self.spark, self.path(table))

    def declare(self, toml: str) -> str:
        place = self.folder / "service.toml"
        place.write_text(f'name = "studio"\n{toml}')
        return str(place)

    def age(self, days: int = 0, table: str = "alpha", *, hours: float = 0) -> None:
        """As if all that was done to the table until now had been done so long ago; with less than 0, as by a machine whose
        clock is ahead."""
        folder = self.folder / table
        seconds = round((days * 24 + hours) * 3600)
        ms = seconds * 1000
        for file in [*folder.rglob("*")]:
            if file.name.startswith(".") and file.name.endswith(".crc"):
                file.unlink()  # Hadoop's checksum of what is changed here
            elif file.name.endswith(".crc"):
                file.unlink()  # Delta's checksum, which has times in it, too
        for log in (folder / "_delta_log").glob("*.json"):
            text = log.read_text()
            for name in ("deletionTimestamp", "modificationTime", "timestamp"):
                text = re.sub(rf'"{name}":(\d+)', lambda m, name=name: f'"{name}":{int(m[1]) - ms}', text)  # type: ignore[misc]
            log.write_text(text)
        for file in [*folder.rglob("*")]:
            stat = file.stat()
            os.utime(file, (stat.st_atime - seconds, stat.st_mtime - seconds))
        jvm: Any = self.spark
        jvm._jvm.org.apache.spark.sql.delta.DeltaLog.clearCache()

    def maintain(self, **more: Any) -> MaintenanceResult:
        return maintain(MaintainSettings(lake=self.place, **more), emit=self.events.append)

    def compact(self, **more: Any) -> CompactionResult:
        settings = CompactSettings(lake=self.place, **{"now": True, **more})
        return compact(settings, emit=self.events.append)
