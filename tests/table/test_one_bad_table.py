"""What fails in one table's rows fails that table, in the task that writes the files of many. Without Spark."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from forebay.errors import Halt
from forebay.record.conform import Records
from forebay.record.growth import Rules
from forebay.record.kind import Struct
from forebay.table.data_files import files
from forebay.table.data_files.data_file import TableFolder, Written, collect_answers
from forebay.table.data_files.files import DESTINATION
from forebay.table.data_files.storage import Storage
from forebay.table.shaping import DOCUMENT, MISFITS, Shaping

BAD = '{"n": "the record that nobody can shape"}'


def rows(*tables: tuple[str, list[str]]) -> pa.RecordBatch:
    told = [(json.dumps([table]), text) for table, texts in tables for text in texts]
    keys, texts = zip(*told, strict=True)
    nothing = pa.nulls(len(keys), pa.string())
    names = [DESTINATION, "event_id", DOCUMENT, MISFITS]
    return pa.RecordBatch.from_arrays([pa.array(keys), pa.array(texts), pa.array(texts), nothing], names)


def write(lake: Path, *batches: pa.RecordBatch) -> Written:
    shaping = Shaping(Struct(), Rules())
    places = {name: TableFolder(f"file://{lake}/{name}", (), shaping) for name in ("alpha", "bad", "gamma")}
    answers = files._Task(places, Storage())(batches)
    return collect_answers(as_row(answer) for batch in answers for answer in batch.to_pylist())


def as_row(answer: dict[str, Any]) -> Any:
    return type("Row", (), answer)


def there(lake: Path, table: str) -> int:
    return sum(pq.read_table(path).num_rows for path in (lake / table).glob("*.parquet"))


def in_shaping(monkeypatch: pytest.MonkeyPatch) -> None:
    real = Records.shape

    def shape(records: Records) -> Any:
        if BAD in records.texts.to_pylist():
            raise KeyError("a bug of ours")
        return real(records)

    monkeypatch.setattr(Records, "shape", shape)


def in_writing(monkeypatch: pytest.MonkeyPatch) -> None:
    fail_for_bad(monkeypatch, "write")


def in_closing(monkeypatch: pytest.MonkeyPatch) -> None:
    fail_for_bad(monkeypatch, "close")


def fail_for_bad(monkeypatch: pytest.MonkeyPatch, step: str) -> None:
    real: Callable[..., Any] = getattr(files.OpenFile, step)

    def failing(file: files.OpenFile, *args: Any) -> Any:
        if file.table == "bad":
            raise pa.ArrowInvalid("a bug of ours")
        return real(file, *args)

    monkeypatch.setattr(files.OpenFile, step, failing)


@pytest.mark.parametrize("breaks", [in_shaping, in_writing, in_closing])
def test_an_exception_in_one_table_fails_that_table_only(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, breaks: Callable[[pytest.MonkeyPatch], None]
) -> None:
    breaks(monkeypatch)
    first = rows(("alpha", ['{"n": 1}']), ("bad", ['{"n": 2}', BAD]))
    second = rows(("bad", ['{"n": 3}']), ("gamma", ['{"n": 4}', '{"n": 5}']))
    written = write(tmp_path, first, second)
    assert {name: sum(file.rows for file in found) for name, found in written.files.items()} == {"alpha": 1, "gamma": 2}
    assert list(written.failed) == ["bad"]
    assert "a bug of ours" in written.failed["bad"]
    assert (there(tmp_path, "alpha"), there(tmp_path, "gamma")) == (1, 2)


def test_a_row_for_a_table_that_nobody_named_still_stops_everything(tmp_path: Path) -> None:
    with pytest.raises(Halt, match="delta"):
        write(tmp_path, rows(("alpha", ['{"n": 1}']), ("delta", ['{"n": 2}'])))
