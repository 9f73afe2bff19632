"""Samples whose reading needs too much, or ends its process, are refused by themselves."""

from __future__ import annotations

import gzip
import os
import signal
from collections.abc import Sequence
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from forebay.content.limits import Limits
from forebay.content.piece import Piece, cut
from forebay.declaration.form import Forms
from forebay.landed_file import LandedFile
from forebay.operate.trying.samples import read_samples
from forebay.operate.trying.sheltered import Contents, read_alone, read_sheltered

MAP = pa.map_(pa.large_string(), pa.int32())


def deadly(
    pieces: Sequence[Piece], contents: Contents, limits: Limits, forms: Forms | None, most_bytes: int
) -> list[pa.RecordBatch]:
    """Reads, and dies as Arrow may where its offsets overflow."""
    if any(b"deadly" in content for content in contents.values()):
        os.kill(os.getpid(), signal.SIGSEGV)
    return read_alone(pieces, contents, limits, forms, most_bytes)


def test_a_file_that_ends_its_reader_takes_no_other_with_it() -> None:
    contents = {LandedFile("", f"{n}.json"): b'{"n":%d}' % n for n in range(5)} | {LandedFile("", "x.json"): b"deadly"}
    pieces = cut([*contents], Limits())
    rows = [
        row for batch in read_sheltered(pieces, contents, Limits(), None, 1 << 20, deadly) for row in batch.to_pylist()
    ]
    assert sorted(row["value"] for row in rows if row["line"]) == [f'{{"n":{n}}}' for n in range(5)]
    assert {row["piece"]: row["problem"] for row in rows if row["line"] is None} == {
        **dict.fromkeys(range(5), None),
        5: "poison",
    }


@pytest.mark.skipif("not sys.platform.startswith('linux')", reason="only Linux holds a process to a ceiling")
def test_a_small_file_that_comes_to_gigabytes_is_too_large_and_the_others_are_tried(tmp_path: Path) -> None:
    """As large_string_map.brotli.parquet of parquet-testing does, whose keys are 2 GB in a file of 4 KB."""
    wide = pa.table({"a": pa.array([[("k" * (100 << 20), 1)]] * 2, MAP)})
    pq.write_table(wide, tmp_path / "wide.parquet", compression="brotli", write_statistics=False)
    assert (tmp_path / "wide.parquet").stat().st_size < 10_000
    (tmp_path / "a.json").write_text('{"a":1}\n')
    (tmp_path / "b.json.gz").write_bytes(gzip.compress(b'{"b":1}\n'))
    samples = read_samples([str(tmp_path)], limits=Limits(task_memory_bytes=256 << 20))
    assert [sample.text for sample in samples.records] == ['{"a":1}', '{"b":1}']
    assert [(end.file.key, end.reason) for end in samples.ends] == [
        ("a.json", None),
        ("b.json.gz", None),
        ("wide.parquet", "too-large"),
    ]
