"""What a table's log says the table is, version by version, also when its first commits are gone."""

from __future__ import annotations

import json
import tracemalloc
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from deltalake import DeltaTable, write_deltalake

from forebay.errors import InvalidConfiguration
from forebay.lake.listed import Listed
from forebay.lake.log.definition import definition_of, history_of
from forebay.lake.log.listing import NoTable
from forebay.lake.objects import open_objects


def grown(place: Path) -> None:
    """Four versions: made, more rows, a column more, more rows."""
    write_deltalake(place, pa.table({"day": ["mon"], "n": [1]}), partition_by=["day"])
    write_deltalake(place, pa.table({"day": ["tue"], "n": [2]}), mode="append")
    write_deltalake(place, pa.table({"day": ["tue"], "n": [3], "m": ["x"]}), mode="append", schema_mode="merge")
    write_deltalake(place, pa.table({"day": ["tue"], "n": [4], "m": ["x"]}), mode="append")


def names(schema: object) -> list[str]:
    return sorted(field["name"] for field in schema["fields"])  # type: ignore[index]


def test_each_version_is_as_the_last_change_before_it_left_it(tmp_path: Path) -> None:
    grown(tmp_path)
    found = history_of(open_objects(str(tmp_path)))
    assert (found.oldest, found.newest, [one.version for one in found.definitions]) == (0, 3, [0, 2])
    assert [names(found.of(version).schema) for version in range(4)] == [["day", "n"]] * 2 + [["day", "m", "n"]] * 2
    now = definition_of(open_objects(str(tmp_path)))
    assert (names(now.schema), now.partition_columns) == (["day", "m", "n"], ("day",))


def test_a_version_that_is_not_in_the_log_is_refused_with_those_that_are(tmp_path: Path) -> None:
    grown(tmp_path)
    with pytest.raises(InvalidConfiguration, match=r"has no version 4 in its log \(it has 0 to 3\)"):
        history_of(open_objects(str(tmp_path))).of(4)


@pytest.mark.parametrize(("checkpoint", "left"), [(1, 2), (2, 2), (3, 4)])
def test_where_commits_are_gone_a_checkpoint_says_what_they_had_made(
    tmp_path: Path, checkpoint: int, left: int
) -> None:
    grown(tmp_path)
    DeltaTable(tmp_path, version=checkpoint).create_checkpoint()
    for version in range(left):
        (tmp_path / "_delta_log" / f"{version:020}.json").unlink()
    found = history_of(open_objects(str(tmp_path)))
    assert (found.oldest, found.newest) == (checkpoint, 3)
    assert names(found.of(checkpoint).schema) == (["day", "n"] if checkpoint < 2 else ["day", "m", "n"])
    assert names(found.of(3).schema) == ["day", "m", "n"]
    now = definition_of(open_objects(str(tmp_path)))
    assert (names(now.schema), now.partition_columns) == (["day", "m", "n"], ("day",))
    with pytest.raises(InvalidConfiguration):
        found.of(checkpoint - 1)


def test_by_what_a_table_is_clustered_is_known(tmp_path: Path) -> None:
    write_deltalake(tmp_path, pa.table({"n": [1]}))
    domain = {"domain": "delta.clustering", "removed": False, "configuration": '{"clusteringColumns": [["n"]]}'}
    log = tmp_path / "_delta_log"
    (log / f"{1:020}.json").write_text(json.dumps({"domainMetadata": domain}))
    (log / f"{2:020}.json").write_text(json.dumps({"domainMetadata": {**domain, "removed": True}}))
    found = history_of(open_objects(str(tmp_path)))
    assert [found.of(version).cluster_columns for version in range(3)] == [(), ("n",), ()]
    assert definition_of(open_objects(str(tmp_path))).cluster_columns == ()


def test_what_is_no_table_is_said_to_be_none(tmp_path: Path) -> None:
    for asked in (definition_of, history_of):
        with pytest.raises(NoTable):
            asked(open_objects(str(tmp_path)))


def test_the_history_of_a_long_log_is_read_in_the_memory_of_a_few_commits() -> None:
    told = {"schemaString": '{"type":"struct","fields":[]}', "partitionColumns": [], "configuration": {}}
    first = json.dumps({"metaData": told}).encode()

    class LongLog:
        place = "s3://lake/alpha"

        def found(self, prefix: str = "") -> Iterator[Listed]:
            return (Listed(f"_delta_log/{n:020}.json", 1, datetime(2026, 1, 1, tzinfo=UTC)) for n in range(300))

        def read(self, name: str) -> bytes:
            return first if int(name[11:31]) == 0 else b'{"add":"%s"}' % (b"x" * (256 << 10))

    log: Any = LongLog()
    tracemalloc.start()
    history = history_of(log)
    _, peak_bytes = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert (history.newest, len(history.definitions)) == (299, 1)
    assert peak_bytes < 40 << 20
