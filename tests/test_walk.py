"""The walk finds what is packed: a search that could not find would prove nothing."""

from __future__ import annotations

import gzip
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from tests.walk import telling


@pytest.mark.parametrize("codec", ["none", "snappy", "zstd", "gzip"])
@pytest.mark.parametrize("version", ["1.0", "2.0"])
@pytest.mark.parametrize("dictionary", [True, False])
def test_a_value_inside_any_page_is_found(tmp_path: Path, codec: str, version: str, dictionary: bool) -> None:
    names = [f"person-{n % 700}-{n % 700}" if n % 3 else None for n in range(3000)]
    table = pa.table({"n": range(3000), "deep": [[{"who": name}] for name in names]})
    kept = {"compression": codec, "data_page_version": version, "use_dictionary": dictionary, "data_page_size": 4096}
    pq.write_table(table, tmp_path / "a.parquet", write_statistics=False, row_group_size=2000, **kept)
    assert telling(tmp_path, b"person-649-649") == ["a.parquet"]
    assert telling(tmp_path, b"person-7000") == []


def test_gz_is_unpacked(tmp_path: Path) -> None:
    (tmp_path / "a.gz").write_bytes(gzip.compress(b'{"who": "anna"}' * 100))
    assert telling(tmp_path, b'"anna"') == ["a.gz"]
