"""A pass without its duplicates, against plain Python: the rows that stay, the counts, and the ids that are kept."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field, replace
from datetime import date, timedelta
from pathlib import Path
from random import Random
from types import SimpleNamespace
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import forebay.batch.one_pass.duplicates as duplicates
import forebay.batch.one_pass.gathering as gathering
import forebay.batch.one_pass.writer as writer
import forebay.batch.plan as plan
import forebay.content.rows as content_rows
import forebay.lake.objects as objects
from forebay.batch.one_pass.answers import together
from forebay.batch.one_pass.driver import OnePass
from forebay.batch.one_pass.outcome import Pass, ReadAgain
from forebay.batch.one_pass.spec import KeptOut, PassSpec
from forebay.batch.one_pass.task import GatherTask, ReadTask, Task
from forebay.content.end import file_ends
from forebay.content.limits import Limits
from forebay.privacy.vault import values_of
from forebay.table.data_files.data_file import DataFile, Written
from forebay.table.data_files.storage import Storage
from tests.batch.tasks import spec_of

DAY = date(2026, 11, 21)
SERVICE = """
name = "s"
[[tables]]
name = "{game}_buys"
where = { event = "buy" }
columns = [
  { name = "id" }, { name = "price", type = "decimal(9,2)" }, { name = "at", type = "timestamp" }, { name = "n", type = "int" },
]
dedupe = { by = ["id", "price", "at"], days = 1 }
[[tables]]
name = "{game}"
columns = [{ name = "id" }, { name = "place" }, { name = "n", type = "int" }]
partitions = ["place"]
partition_values = { place = ".*" }
dedupe = { by = ["id"], days = 3 }
"""
BY = {"a_buys": ("id", "price", "at"), "b_buys": ("id", "price", "at"), "a": ("id",), "b": ("id",)}
IDS = ["x", "y", "", None, 1, 1.0, True, "é", "e\u0301", "\u0000", '"\\', "null", {"a": 1}]
PLACES = ["de", "a/b", "a=b", "a%2Fb", "", None, "😀", ".."]


@dataclass
class Known:
    """The ids of earlier batches, as `Dedupe` has them."""

    ids: dict[bytes, date] = field(default_factory=dict)
    day: date = DAY
    days: dict[int, int] = field(default_factory=lambda: {0: 1, 1: 3})
    """Those of the declarations with `dedupe`, by their number."""

    @property
    def since(self) -> dict[int, date]:
        return {number: self.day - timedelta(days=days) for number, days in self.days.items()}

    @property
    def of_all_ids(self) -> dict[str, Any]:
        return {"day": self.day, "service": "s", "generation": "g", "batch": 1}

    def days_of(self, ids: pa.Array, landed: object) -> dict[bytes, date]:
        return {one: self.ids[one] for one in ids.to_pylist() if one in self.ids}


class Here:
    """A Spark context whose tasks run in this process."""

    defaultParallelism = 3  # noqa: N815 (Spark's name)

    def parallelize(self, some: Iterable[Any], _: int) -> Here:
        self.some = list(some)
        return self

    def mapPartitions(self, task: Any) -> SimpleNamespace:  # noqa: N802 (Spark's name)
        return SimpleNamespace(collect=lambda: [answer for one in self.some for answer in task(iter([one]))])


SPARK: Any = SimpleNamespace(sparkContext=Here())


def record(random: Random, n: int) -> str:
    made = {"game": random.choice("ab"), "event": random.choice(["buy", "see"]), "id": random.choice(IDS), "n": n}
    made |= {"price": random.choice([1, 1.0, "1.00", "x", None]), "place": random.choice(PLACES)}
    made |= {"at": random.choice(["2026-11-21T10:00:00Z", "2026-11-21 11:00:00+01:00", None])}
    return json.dumps(made | {key: 1 for key in "uvw" if random.random() < 0.1})


def made_of(batch: PassSpec, random: Random) -> Pass:
    """By tasks that write what they read, or by some that read and some that write."""
    if all(piece.whole for piece in batch.pieces) and random.random() < 0.5:
        answers = [answer for piece in batch.pieces for answer in Task(batch)([[piece]])]
    else:
        readers = list(enumerate(batch.pieces))
        sent = [one for at, piece in readers for one in ReadTask(batch, len(readers), 2)(at, [[piece]])]
        answers = [answer for at in range(2) for answer in GatherTask(batch)([one for one in sent if one[0] == at])]
        answers = [answers[0], *(replace(answer, ends=[]) for answer in answers[1:])]
    answer = together(answers)
    assert answer.odd is None
    made = Pass([], answer.counted, answer.written, batch.lake, answer.identified)
    return replace(made, ends=file_ends(batch.pieces, answer.ends))


def rows_of(lake: Path, made: Pass) -> Iterator[tuple[str, dict[str, Any]]]:
    for name, _, row in rows_with_files(lake, made):
        yield name, row


def rows_with_files(lake: Path, made: Pass) -> Iterator[tuple[str, str, dict[str, Any]]]:
    for name, files in made.written.files.items():
        for file in files:
            rows = pq.read_table(pa.BufferReader((lake / name / file.path).read_bytes()))
            assert json.loads(file.stats)["numRecords"] == file.rows == rows.num_rows > 0
            yield from ((name, file.path, {**row, **dict(file.partitions)}) for row in rows.to_pylist())


@pytest.mark.parametrize("seed", [0, *(pytest.param(seed, marks=pytest.mark.deep) for seed in (1, 2, 3))])
def test_all_but_the_first_of_equal_records_leave(seed: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    random, known = Random(seed), Known()
    earlier: dict[Any, date] = {}
    for number in range(3):
        known.day = DAY + timedelta(days=number * random.randint(0, 2))
        monkeypatch.setattr(content_rows, "BATCH_ROWS", random.choice([3, 10_000]))
        monkeypatch.setattr(gathering, "PARCEL_BYTES", random.choice([1, 8 << 20]))
        monkeypatch.setattr(writer, "TABLE_BYTES", random.choice([100, 64 << 20]))
        monkeypatch.setattr(duplicates, "FEW_BYTES", random.choice([0, 4 << 20]))
        monkeypatch.setattr(duplicates, "ROWS_AT_ONCE", random.choice([1, 7, 1 << 21]))
        monkeypatch.setattr(duplicates, "IDS_AT_ONCE", random.choice([1, 7, 1 << 21]))
        lines = [[record(random, n) for n in range(random.randint(1, 40))] for _ in range(4)]
        files = {f"{number}/{n}.json": "\n".join(some).encode() for n, some in enumerate(lines)}
        batch, _ = spec_of(SERVICE, files, monkeypatch, limits=Limits(piece_bytes=random.choice([500, 1 << 20])))
        made = made_of(
            replace(batch, lake=f"file://{tmp_path}", storage=Storage(), shared={**batch.shared, "batch": number}),
            random,
        )
        rows = sorted(rows_of(tmp_path, made), key=lambda one: (one[1]["_file_id"], one[1]["n"]))
        before = list(rows_with_files(tmp_path, made))
        stay, here = [], dict[Any, date]()
        for name, row in rows:
            values = tuple(row[column] for column in BY[name])
            since = known.since[0 if name.endswith("_buys") else 1]
            is_known = (name, values) in here or earlier.get((name, values), date.min) >= since
            if any(value is not None for value in values):
                if is_known:
                    continue
                here[name, values] = known.day
            stay.append((name, row))
        left = duplicates.without_duplicates(made, known, SPARK, Storage())  # type: ignore[arg-type]
        assert Counter(map(repr, rows_of(tmp_path, left))) == Counter(map(repr, stay))
        fates = Counter(fate.fate for fate in left.fates for _ in range(fate.rows))
        assert (fates["write"], fates["drop"]) == (len(stay), len(rows) - len(stay))
        assert left.unaccounted() == []
        assert all(fate.rows for fate in left.fates)
        fewer = {path for name, path, row in before if (name, row) not in stay}
        assert {path for _, path, _ in before} - {path for _, path, _ in rows_with_files(tmp_path, left)} == fewer
        ids = [one for some in left.ids for one in some.to_pylist()]
        assert Counter((one["table"], one["file_id"]) for one in ids) == Counter(
            (name, row["_file_id"]) for name, row in stay if any(row[column] is not None for column in BY[name])
        )
        named = {f"{name}/{file.path}" for name, some in left.written.files.items() for file in some}
        there = {str(path.relative_to(tmp_path)) for path in tmp_path.rglob("*.parquet")}
        assert there == named
        left.undo()
        known.ids |= {one["id"]: known.day for one in ids}
        earlier |= here


@pytest.mark.parametrize("seed", range(4))
def test_records_of_a_table_that_is_not_written_wait_without_those_that_came_before(
    seed: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """And those of a replayed file, whose earlier rows stand in the table, do not wait at all."""
    monkeypatch.setattr(duplicates, "FEW_BYTES", 0)
    random = Random(seed)
    lines = [[record(random, n) for n in range(30)] for _ in range(4)]
    files = {f"{n}.json": "\n".join(some).encode() for n, some in enumerate(lines)}
    batch, _ = spec_of(SERVICE, files, monkeypatch)
    batch = replace(batch, lake=f"file://{tmp_path}", storage=Storage())
    again = batch.pieces[2].file.file_id
    out = {name: KeptOut("paused") for name in ("a", "b_buys")}
    found, ids = [], []
    for unwritten in ({}, out):
        told_of = replace(batch, unwritten=unwritten, standing={again: {"a": 1, "b": 1}} if unwritten else {})
        left = duplicates.without_duplicates(made_of(told_of, random), Known(), SPARK, Storage())  # type: ignore[arg-type]
        rows = [
            (row.get("table") or name, json.loads(row["record"]) | row if "record" in row else row)
            for name, row in rows_of(tmp_path, left)
        ]
        found.append(Counter((name, row.get("_file_id") or row["file_id"], row["n"]) for name, row in rows))
        assert left.unaccounted() == []
        ids.append({(one["table"], one["id"]) for some in left.ids for one in some.to_pylist()})
        fates = Counter(fate.fate for fate in left.fates for _ in range(fate.rows))
        found.append(Counter({fate: rows for fate, rows in fates.items() if fate in ("write", "drop")}))
    stand = Counter({one: 1 for one in found[0] if one[:2] == ("a", again)})
    assert found[2] == found[0] - stand
    assert stand
    assert found[1] == found[3]
    assert ids[1] == {one for one in ids[0] if one[0] not in out}


def test_rows_of_tables_with_and_without_dedupe_wait_in_one_data_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    service = """
    name = "s"
    [[tables]]
    name = "buys"
    where = { event = "buy" }
    columns = [{ name = "id" }]
    dedupe = { by = ["id"], days = 1 }
    [[tables]]
    name = "rest"
    where = { event = "see" }
    """
    lines = [{"event": event, "id": id_} for event in ("buy", "see") for id_ in ("x", "x", "y")]
    lines.append({"event": "nobody's", "id": "x"})
    batch, _ = spec_of(service, {"a.json": "\n".join(map(json.dumps, lines)).encode()}, monkeypatch)
    unwritten = {name: KeptOut("paused") for name in ("buys", "rest")}
    batch = replace(batch, lake=f"file://{tmp_path}", storage=Storage(), unwritten=unwritten)
    left = duplicates.without_duplicates(made_of(batch, Random(0)), Known(days={0: 1}), SPARK, Storage())  # type: ignore[arg-type]
    waiting = Counter((row["table"], json.loads(row["record"])["id"]) for _, row in rows_of(tmp_path, left))
    assert waiting == {("buys", "x"): 1, ("buys", "y"): 1, ("rest", "x"): 2, ("rest", "y"): 1, (None, "x"): 1}
    assert {(one.table, one.fate): one.rows for one in left.fates if one.fate != "write"} == {
        ("buys", "drop"): 1,
        (None, "park"): 1,
    }


def test_the_data_files_of_many_tables_are_deleted_together(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: dict[str, list[str]] = {}
    monkeypatch.setattr(plan, "discard", asked.__setitem__)
    names = [*(f"t{n}" for n in range(1000)), "_forebay/quarantine", "_forebay/vault"]
    files = {name: [DataFile(name, f"p=%2F/{n}.parquet", (), 1, 1, 0, "{}") for n in range(2)] for name in names}
    Pass([], [], Written(files, {}), "s3://lake/in", vault="s3://vault/of").undo()
    tables = [f"{name}/p=%2F/{n}.parquet" for name in names[:-1] for n in range(2)]
    assert asked == {"s3://lake/in": tables, values_of("s3://vault/of"): ["p=%2F/0.parquet", "p=%2F/1.parquet"]}


def test_a_job_that_may_not_delete_data_files_leaves_them_to_maintenance(monkeypatch: pytest.MonkeyPatch) -> None:
    """The role of the ingest job on AWS has no such right."""

    def refuse(Bucket: str, Delete: Any) -> dict[str, Any]:  # noqa: N803 (boto3's names)
        asked.extend(f"{Bucket}/{one['Key']}" for one in Delete["Objects"])
        return {"Errors": [{"Key": one["Key"], "Code": "AccessDenied"} for one in Delete["Objects"]]}

    asked: list[str] = []
    monkeypatch.setattr(objects, "s3_client", lambda: SimpleNamespace(delete_objects=refuse))
    files = {name: [DataFile(name, "0.parquet", (), 1, 1, 0, "{}")] for name in ("a", "_forebay/vault")}
    Pass([], [], Written(files, {}), "s3://lake/in", vault="s3://vault/of").undo()
    assert asked == ["lake/in/a/0.parquet", "vault/of/values/0.parquet"]


def test_a_worker_that_dies_over_data_files_with_duplicates_gives_the_pass_up(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def die(*_: object) -> None:
        raise RuntimeError(
            "Job aborted due to stage failure: Task 0 in stage 1.0 failed: Python worker exited unexpectedly"
        )

    monkeypatch.setattr(duplicates, "FEW_BYTES", 0)
    monkeypatch.setattr(Here, "mapPartitions", die)
    line = b'{"game": "a", "id": "x", "place": "de", "n": 1}\n'
    batch, _ = spec_of(SERVICE, {"a.json": line * 2}, monkeypatch)
    made = made_of(replace(batch, lake=f"file://{tmp_path}", storage=Storage()), Random(0))
    unasked: Any = None
    with pytest.raises(ReadAgain, match="a task failed"):
        OnePass(SPARK, batch.lake, Limits(), unasked).without_duplicates(made, Known())  # type: ignore[arg-type]
    assert [*tmp_path.rglob("*.parquet")] == [], "a retry does not know the pass, and leaves no data file of it"
