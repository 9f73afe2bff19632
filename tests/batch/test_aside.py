"""Files that are read into another lake: each once, through a crash, and this lake is as it was."""

from __future__ import annotations

from pathlib import Path

import pytest
from deltalake import DeltaTable
from pyspark.sql import SparkSession

from forebay.declaration.loading import parse_service
from forebay.operate.changing import aside
from forebay.operate.changing.aside import load_aside
from tests.batch.world import SERVICE, Died, World, die_after, records

NARROW = SERVICE.replace('name = "{game}"', 'name = "{game}_new"')


@pytest.mark.deep
def test_files_are_read_into_another_lake_by_other_declarations_each_once_and_this_lake_stays(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    here = World(spark, str(tmp_path / "here"), monkeypatch)
    there = World(spark, str(tmp_path / "there"), monkeypatch)
    here.answers = there.answers = {"a": records(alpha=2, homeless=1), "b": records(alpha=3), "c": records(beta=1)}
    files = [here.file(key) for key in "abc"]
    here.try_batch(0, files)
    before = DeltaTable(f"{here.lake}/_forebay/ledger").version(), DeltaTable(f"{here.lake}/alpha").version()

    def load() -> list[int]:
        emit = there.events.append
        return list(load_aside(spark, files, parse_service({"service.toml": NARROW}), there.lake, emit=emit))

    monkeypatch.setattr(aside, "FILES_A_BATCH", 2)
    with monkeypatch.context() as patched:
        die_after(patched, 1)
        with pytest.raises(Died):
            load()
    assert load() == [2, 3]
    assert load() == [2, 3]
    assert there.outcomes() == dict.fromkeys("abc", "loaded")
    assert there.rows_of("alpha_new") == {"a": 2, "b": 3}
    assert there.rows_of("beta_new") == {"c": 1}
    assert before == (DeltaTable(f"{here.lake}/_forebay/ledger").version(), DeltaTable(f"{here.lake}/alpha").version())
