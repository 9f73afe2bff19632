"""A full VACUUM takes every file that no log knows. What is not Delta's must not be there when it runs."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from forebay.lake.objects import open_objects
from forebay.upkeep.maintenance.care import care_for
from forebay.upkeep.maintenance.orphans import unknown_files_of
from forebay.upkeep.maintenance.retention import Retention


class Spark:
    """Remembers what it was told, and refuses LITE where that is wanted."""

    def __init__(self, *, refuses: str = "") -> None:
        self.said: list[str] = []
        self.conf = SimpleNamespace(set=lambda *_: None, unset=lambda *_: None)
        self.refuses = refuses

    def sql(self, text: str) -> Any:
        from pyspark.errors import AnalysisException

        self.said.append(text.rsplit(" ", 1)[-1])
        if self.refuses and text.endswith(self.refuses):
            raise AnalysisException("[DELTA_CANNOT_VACUUM_LITE] the log is not whole")


@pytest.fixture
def table(tmp_path: Path) -> Path:
    for name in ("_delta_log/00000000000000000000.json", "day=1/a.parquet", "deletion_vector_1.bin", "_forebay/x.json"):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text("")
    return tmp_path


def vacuumed(spark: Any, table: Path, kind: str) -> tuple[str, tuple[str, ...]]:
    retention = Retention(keep=None, properties={})
    cared = care_for(spark, str(table), retention, vacuum=kind, checkpoint_after=100, version=0)
    return cared.vacuum, cared.unknown


def test_what_delta_writes_is_no_stranger(table: Path) -> None:
    assert unknown_files_of(open_objects(str(table))) == []
    assert vacuumed(spark := Spark(), table, "full") == ("full", ())
    assert spark.said == ["FULL"]


def test_declarations_in_a_tables_folder_are_not_vacuumed_away(table: Path) -> None:
    (table / "service.toml").write_text('name = "s"')
    assert vacuumed(spark := Spark(), table, "full") == ("lite", ("service.toml",))
    assert vacuumed(refusing := Spark(refuses="LITE"), table, "lite") == ("none", ())
    assert spark.said + refusing.said == ["LITE", "LITE"]
