"""The changes of a table, exported step by step, and applied elsewhere: there is the same table."""

from __future__ import annotations

import io
import json
import random
import re
import shutil
from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta
from itertools import pairwise
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from deltalake import DeltaTable, write_deltalake

from forebay.declaration.feed import Feed
from forebay.declaration.kept.in_force import keep_in_force
from forebay.declaration.loading import parse_service
from forebay.declaration.rollup import Rollup
from forebay.declaration.service import Service
from forebay.errors import Halt, InvalidConfiguration
from forebay.lake.objects import open_objects
from forebay.operate.exporting import export as module
from forebay.operate.exporting import rows as export_rows
from forebay.operate.exporting.export import export
from forebay.operate.exporting.manifest import Manifest, manifests_of
from forebay.operate.exporting.rows import CHANGE, changed_rows
from forebay.operate.lake_view import LakeView
from tests.operate.command import failed, ran
from tests.operate.ledger import write_ledger

SERVICE = """
name = "studio"
[[tables]]
name = "player_changes"
mode = "merge"
columns = [{ name = "id" }, { name = "world" }, { name = "at", type = "long" }]
merge = { into = "players", keys = ["id"], sequence_by = ["at"] }
"""
FEED = {"delta.enableChangeDataFeed": "true"}
COLUMNS = pa.schema(
    [("id", pa.string()), ("world", pa.string()), ("n", pa.int64()), ("price", pa.decimal128(18, 2)),
     ("at", pa.timestamp("us", "UTC")), ("tags", pa.map_(pa.string(), pa.string())),
     ("items", pa.list_(pa.struct([("sku", pa.string())]))), ("_file_id", pa.string())]
)  # fmt: skip
START = datetime(2026, 11, 22, tzinfo=UTC)
PAGE = Path(__file__).parents[2] / "docs" / "operating.md"
OF_PAGE: dict[str, Any] = {"Path": Path, "json": json, "pq": pq}
exec(re.findall(r"```python\n(def apply_steps.*?)```", PAGE.read_text(), re.S)[0], OF_PAGE)


def rows(*named: tuple[str, int], file: str = "f") -> pa.Table:
    made = [
        {"id": key, "world": "ab"[n % 2], "n": n, "price": n, "at": START + timedelta(seconds=n),
         "tags": [("n", str(n))], "items": [{"sku": key}] * (n % 3), "_file_id": file}
        for key, n in named
    ]  # fmt: skip
    return pa.Table.from_pylist(made, COLUMNS)


def upsert(path: str, *named: tuple[str, int]) -> None:
    merge = DeltaTable(path).merge(rows(*named), "t.id = s.id", source_alias="s", target_alias="t")
    merge.when_matched_update_all().when_not_matched_insert_all().execute()


def service() -> Service:
    return parse_service({"service.toml": SERVICE})


def exported(lake: Path, name: str, to: Path, **more: Any) -> list[Manifest]:
    return list(export(LakeView(str(lake)), service(), name, str(to), **more))


def applied(to: Path, name: str, *, since: int = -1) -> list[dict[str, Any]]:
    """By the program of the page, which knows the manifests alone."""
    there: dict[tuple[Any, ...], list[dict[str, Any]]] = {}
    version = OF_PAGE["apply_steps"](to / name, there, since)
    assert OF_PAGE["apply_steps"](to / name, there, version) == version, "nothing is applied twice"
    found = [row for its in there.values() for row in its]
    return sorted(({key: value for key, value in row.items() if key != CHANGE} for row in found), key=str)


def read(to: Path, name: str, part: str) -> bytes:
    return (to / name / part).read_bytes()


def now(lake: Path, name: str) -> list[dict[str, Any]]:
    return sorted(DeltaTable(f"{lake}/{name}").to_pyarrow_table().to_pylist(), key=str)


@pytest.fixture
def state(tmp_path: Path) -> str:
    path = f"{tmp_path}/lake/players"
    write_deltalake(path, rows(("a", 1), ("b", 2)), partition_by=["world"], configuration=FEED)
    # delta-rs makes no table with a property that it does not know.
    first = Path(path) / "_delta_log" / f"{0:020}.json"
    feed = '"delta.enableChangeDataFeed":"true"'
    first.write_text(first.read_text().replace(feed, f'{feed},"forebay.derivedFrom":"player_changes"'))
    return path


def test_whoever_applies_the_steps_has_the_state_whatever_happened_to_it(
    tmp_path: Path, state: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    chance, lake, to = random.Random(7), tmp_path / "lake", tmp_path / "out"
    whole, *_ = exported(lake, "players", to)
    assert (whole.since, whole.rows, whole.keys) == (-1, 2, {"id": "string"})
    deeds: list[Callable[[], Any]] = [
        lambda: upsert(state, *((key, chance.randrange(99)) for key in chance.sample("abcdefgh", 3))),
        lambda: DeltaTable(state).delete(f"id = '{chance.choice('abcdefgh')}'"),
        lambda: DeltaTable(state).optimize.compact(),
        lambda: DeltaTable(state).restore(DeltaTable(state).version() - 2),
        # Computed anew.
        lambda: write_deltalake(state, rows(("a", 3), ("z", chance.randrange(9))), mode="overwrite"),
    ]
    for turn in range(12):
        for _ in range(chance.randrange(1, 5)):
            chance.choice(deeds)()
        monkeypatch.setattr(module, "STEP_BYTES", chance.choice([1, 1 << 30]))
        monkeypatch.setattr(export_rows, "HELD_BYTES", chance.choice([999, 1 << 30]))
        steps = exported(lake, "players", to)
        assert applied(to, "players") == now(lake, "players"), turn
        assert all(one.version == other.since for one, other in pairwise(steps))
    assert exported(lake, "players", to) == [], "nothing is new"


def test_an_interrupted_export_goes_on_where_it_was(
    tmp_path: Path, state: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    lake, to = tmp_path / "lake", tmp_path / "out"
    exported(lake, "players", to)
    for n in range(4):
        upsert(state, ("a", n), (f"k{n}", n))
    monkeypatch.setattr(module, "STEP_BYTES", 1)
    steps = export(LakeView(str(lake)), service(), "players", str(to))
    next(steps)  # one step is there; then it dies within the next one, whose files no manifest names
    monkeypatch.setattr(type(open_objects(str(to))), "write_once", die)
    with pytest.raises(KeyboardInterrupt):
        next(steps)
    monkeypatch.undo()
    assert [one.since for one in exported(lake, "players", to)] == [1]
    assert applied(to, "players") == now(lake, "players")


def die(*given: object) -> None:
    raise KeyboardInterrupt


def test_of_two_exports_at_once_each_step_counts_once(
    tmp_path: Path, state: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    lake, to = tmp_path / "lake", tmp_path / "out"
    exported(lake, "players", to)
    upsert(state, ("a", 5))

    def overtaken(to: str, table: str) -> list[Manifest]:
        found = manifests_of(to, table)
        monkeypatch.undo()
        upsert(state, ("b", 6))
        exported(lake, "players", Path(to))
        return found

    monkeypatch.setattr(module, "manifests_of", overtaken)
    with pytest.raises(Halt, match="another export of players"):
        exported(lake, "players", to)
    assert applied(to, "players") == now(lake, "players")


def test_rows_of_files_that_left_an_append_table_leave_elsewhere(tmp_path: Path) -> None:
    lake, to, path = tmp_path / "lake", tmp_path / "out", f"{tmp_path}/lake/events"
    write_deltalake(path, rows(("a", 1), ("a", 1), file="f1"), configuration=FEED)
    write_deltalake(path, rows(("b", 1), ("c", 2), file="f2"), mode="append")
    exported(lake, "events", to, since=0)
    assert [row["id"] for row in applied(to, "events", since=0)] == ["b", "c"], "what came after version 0"
    to = tmp_path / "whole"
    exported(lake, "events", to)
    write_deltalake(path, rows(("d", 3), file="f3"), mode="append")
    DeltaTable(path).delete("_file_id = 'f2'")  # replaced: other rows of the same file, and one that stays
    write_deltalake(path, rows(("b", 1), ("c", 9), file="f2"), mode="append")
    DeltaTable(path).delete("id = 'a'")
    (step,) = exported(lake, "events", to)
    assert step.keys == {"_file_id": "string"}
    assert applied(to, "events") == now(lake, "events")


@pytest.mark.parametrize("table", ["players", "events"])
def test_of_a_commit_of_any_size_only_a_part_is_held_at_once(
    tmp_path: Path, state: str, monkeypatch: pytest.MonkeyPatch, table: str
) -> None:
    """Every row of the state leaves in one commit, and most come again."""
    lake, to, path, count = tmp_path / "lake", tmp_path / "out", f"{tmp_path}/lake/{table}", 30_000
    columns = {"id": list(map(str, range(count))), "n": range(count), "_file_id": ["f"] * count}
    many = pa.table({**columns, "world": ["a"] * count})
    if table == "players":
        write_deltalake(path, many, mode="overwrite", schema_mode="overwrite")
        exported(lake, table, to)
        write_deltalake(path, many.slice(9), mode="overwrite")
    else:
        write_deltalake(path, many.slice(0, 5), configuration=FEED)
        exported(lake, table, to)
        write_deltalake(path, many.slice(5).set_column(2, "_file_id", [["g"] * (count - 5)]), mode="append")
    held: list[int] = []

    def counted(*given: Any) -> Iterator[pa.Table]:
        for rows in changed_rows(*given):
            held.append(rows.num_rows)
            yield rows

    monkeypatch.setattr(module, "changed_rows", counted)
    monkeypatch.setattr(export_rows, "HELD_BYTES", 50_000)
    exported(lake, table, to)
    assert applied(to, table) == now(lake, table)
    assert sum(held) >= count - 5
    assert max(held) <= count / 3


def test_what_lies_in_s3_makes_the_same_table_in_another_lake(tmp_path: Path, state: str, s3: str) -> None:
    """With delta-rs alone: a MERGE for each step, of what its manifest names."""
    lake, to, copy = tmp_path / "lake", "s3://studio-lake/feed", str(tmp_path / "copy")
    list(export(LakeView(str(lake)), service(), "players", to))
    upsert(state, ("b", 7), ("c", 3))
    DeltaTable(state).delete("id = 'a'")
    list(export(LakeView(str(lake)), service(), "players", to))
    place = open_objects(f"{to}/players")
    for step in manifests_of(to, "players"):
        parts = [pq.read_table(io.BytesIO(place.read(part.name) or b"")) for part in step.files]
        changes = pa.concat_tables(parts)
        if step.since < 0:
            write_deltalake(copy, changes.drop_columns([CHANGE]))
            continue
        same = " and ".join(f"t.{key} = s.{key}" for key in step.keys)
        merge = DeltaTable(copy).merge(changes, same, source_alias="s", target_alias="t")
        merge = merge.when_matched_delete(f"s.{CHANGE} = 'delete'").when_matched_update_all(except_cols=[CHANGE])
        merge.when_not_matched_insert_all(f"s.{CHANGE} = 'upsert'", except_cols=[CHANGE]).execute()
    assert [row["id"] for row in now(lake, "players")] == ["b", "c"]
    assert now(tmp_path, "copy") == now(lake, "players")


def test_a_key_of_another_type_begins_another_export(
    tmp_path: Path, state: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    lake, to = tmp_path / "lake", tmp_path / "out"
    write_deltalake(state, rows(("1", 1), ("2", 2)), mode="overwrite", configuration=FEED)
    exported(lake, "players", to)
    upsert(state, ("3", 3))
    monkeypatch.setattr(module, "STEP_BYTES", 1)
    kinds = COLUMNS.set(0, pa.field("id", pa.int64()))
    write_deltalake(state, rows(("1", 5)).cast(kinds), mode="overwrite", schema_mode="overwrite")
    for since, place in ((None, to), (1, tmp_path / "since")):
        with pytest.raises(InvalidConfiguration, match="keys id long, but the export there has id string") as refused:
            exported(lake, "players", place, since=since)
        assert "another folder" in str(refused.value)
        assert [one.version for one in manifests_of(str(place), "players")][-1:] == [2], "what came before the change"
    exported(lake, "players", tmp_path / "other")
    assert applied(tmp_path / "other", "players") == now(lake, "players")


def test_other_partitions_begin_another_export(tmp_path: Path, state: str) -> None:
    """delta-rs says of such a feed that a column has no type."""
    lake, to = tmp_path / "lake", tmp_path / "out"
    exported(lake, "players", to)
    upsert(state, ("c", 3))
    other = {"mode": "overwrite", "schema_mode": "overwrite", "partition_by": ["id"]}
    write_deltalake(state, rows(("a", 5), ("d", 1)), configuration=FEED, **other)  # type: ignore[call-overload]
    upsert(state, ("d", 2))
    for _ in "twice":
        with pytest.raises(
            InvalidConfiguration, match=r"other partition columns than \['world'\] with version 2"
        ) as refused:
            exported(lake, "players", to)
        assert "another folder" in str(refused.value)
        assert [one.version for one in manifests_of(str(to), "players")] == [0, 1], "what came before the change"
    exported(lake, "players", tmp_path / "other")
    upsert(state, ("e", 1))
    exported(lake, "players", tmp_path / "other")
    assert applied(tmp_path / "other", "players") == now(lake, "players")


def test_other_keys_begin_another_export(tmp_path: Path, state: str) -> None:
    """A history has no row that its key named before."""
    lake, to = tmp_path / "lake", tmp_path / "out"
    exported(lake, "players", to)
    versions = rows(("a", 5)).append_column("valid_from", pa.array([5], pa.int64()))
    write_deltalake(state, versions, mode="overwrite", schema_mode="overwrite")
    other = parse_service({"service.toml": SERVICE.replace('["at"] }', '["at"], history = "scd2" }')})
    with pytest.raises(InvalidConfiguration, match="keys id string, valid_from long"):
        list(export(LakeView(str(lake)), other, "players", str(to)))


def test_a_moment_before_the_table_was_made_begins_with_its_first_rows(tmp_path: Path) -> None:
    lake, path = tmp_path / "lake", f"{tmp_path}/lake/events"
    write_deltalake(path, rows(("a", 1), file="f1"), configuration=FEED)
    write_deltalake(path, rows(("b", 2), file="f2"), mode="append")
    exported(lake, "events", tmp_path / "out", since=START - timedelta(days=9999))
    assert applied(tmp_path / "out", "events") == now(lake, "events")
    DeltaTable(path).create_checkpoint()
    (Path(path) / "_delta_log" / f"{0:020}.json").unlink()
    with pytest.raises(InvalidConfiguration, match="has no version of 1999"):
        exported(lake, "events", tmp_path / "late", since=START - timedelta(days=9999))


def test_json_has_a_line_for_each_row(tmp_path: Path, state: str) -> None:
    (step,) = exported(tmp_path / "lake", "players", tmp_path / "out", form="json")
    (part,) = step.files
    first, _ = sorted(map(json.loads, read(tmp_path / "out", "players", part.name).splitlines()), key=str)
    assert first == {
        "_change": "upsert", "id": "a", "world": "b", "n": 1, "price": 1.00, "at": "2026-11-22T00:00:01.000000Z",
        "tags": {"n": "1"}, "items": [{"sku": "a"}], "_file_id": "f",
    }  # fmt: skip


def test_json_for_others_has_nan_and_infinity_as_texts(tmp_path: Path, state: str) -> None:
    odd = pa.table(
        {"id": ["a"], "x": [float("nan")], "m": pa.array([[("k", float("-inf"))]], pa.map_(pa.string(), pa.float64()))}
    )
    write_deltalake(f"{tmp_path}/lake/events", odd, configuration=FEED)
    (step,) = exported(tmp_path / "lake", "events", tmp_path / "out", form="json")
    (line,) = read(tmp_path / "out", "events", step.files[0].name).splitlines()
    row = json.loads(line, parse_constant=pytest.fail)
    assert (row["x"], row["m"]) == ("NaN", {"k": "-Infinity"})


def test_a_column_that_came_later_is_null_in_rows_from_before(tmp_path: Path, state: str) -> None:
    lake, to = tmp_path / "lake", tmp_path / "out"
    exported(lake, "players", to)
    upsert(state, ("c", 3))
    wider = rows(("d", 4)).append_column("level", pa.array([7], pa.int64()))
    write_deltalake(state, wider, mode="append", schema_mode="merge")
    exported(lake, "players", to)
    assert {row["id"]: row.get("level") for row in applied(to, "players")} == {"a": None, "b": None, "c": None, "d": 7}


def test_what_cannot_be_exported_says_why(tmp_path: Path, state: str) -> None:
    lake, to = tmp_path / "lake", tmp_path / "out"
    rollup = Rollup(name="daily", tables=("players",), group_by={"id": "id"}, columns={"n": "count(*)"})
    write_deltalake(f"{lake}/daily", rows(("a", 1)), configuration=FEED)
    with pytest.raises(InvalidConfiguration, match="is a rollup"):
        list(export(LakeView(str(lake)), service().model_copy(update={"rollups": (rollup,)}), "daily", str(to)))
    keep_in_force(
        str(lake), service().model_copy(update={"feeds": (Feed(name="drops", prefix="in/", bucket="drops"),)})
    )
    with pytest.raises(InvalidConfiguration, match="it would load what is written there"):
        list(export(LakeView(str(lake)), service(), "players", "s3://drops/in/out"))
    for within in (lake, lake / "players", lake / "feed", tmp_path / "lake" / ".." / "lake"):
        with pytest.raises(InvalidConfiguration, match="is a part of this lake"):
            exported(lake, "players", within)
    write_deltalake(f"{lake}/plain", rows(("a", 1)))
    with pytest.raises(InvalidConfiguration, match="has no change feed"):
        exported(lake, "plain", to)
    with pytest.raises(InvalidConfiguration, match="has no version of 9"):
        exported(lake, "players", to, since=9)
    exported(lake, "players", to)
    with pytest.raises(InvalidConfiguration, match="leave --since out"):
        exported(lake, "players", to, since=0)
    upsert(state, ("a", 5))
    upsert(state, ("a", 6))
    DeltaTable(state).create_checkpoint()
    (Path(state) / "_delta_log" / f"{1:020}.json").unlink()
    with pytest.raises(InvalidConfiguration, match="export it to another folder"):
        exported(lake, "players", to)
    write_deltalake(f"{tmp_path}/other/players", rows(("a", 1)), configuration=FEED)
    with pytest.raises(InvalidConfiguration, match="is not the table whose export is there"):
        exported(tmp_path / "other", "players", to)


def test_a_feed_that_maintenance_deleted_is_told_with_what_to_do(tmp_path: Path, state: str) -> None:
    lake, to = tmp_path / "lake", tmp_path / "out"
    exported(lake, "players", to)
    upsert(state, ("a", 5))
    shutil.rmtree(Path(state) / "_change_data")
    with pytest.raises(InvalidConfiguration, match="has no change feed from version 1 to 1") as refused:
        exported(lake, "players", to)
    assert "no longer exists" in str(refused.value)
    assert [one.version for one in manifests_of(str(to), "players")] == [0]


@pytest.mark.parametrize("gone", [1, 3])
def test_an_export_whose_last_version_the_log_no_longer_has_says_what_to_do(
    tmp_path: Path, state: str, gone: int
) -> None:
    """Maintenance, or an erasure, deleted the log before a checkpoint."""
    lake, to = tmp_path / "lake", tmp_path / "out"
    exported(lake, "players", to)
    for n in range(3):
        upsert(state, ("a", n))
    DeltaTable(state).create_checkpoint()
    for version in range(gone):
        (Path(state) / "_delta_log" / f"{version:020}.json").unlink()
    with pytest.raises(InvalidConfiguration, match="no longer has version 0") as refused:
        exported(lake, "players", to)
    assert "export it to another folder, from the start" in str(refused.value)


def test_the_command_says_what_it_wrote(tmp_path: Path, state: str) -> None:
    lake, to = f"{tmp_path}/lake", f"{tmp_path}/out"
    write_ledger(lake)
    (tmp_path / "service.toml").write_text(SERVICE)
    told = ("export", "players", "--lake", lake, "--service", str(tmp_path), "--to", to)
    assert ran(*told) == "players: whole, up to version 0: 2 rows in 1 file\n"
    upsert(state, ("a", 5))
    assert json.loads(ran(*told, "--json"))["version"] == 1
    assert ran(*told) == "players: nothing new since the last export\n"
    assert "is neither a version nor a time" in failed(2, *told, "--since", "soon")
