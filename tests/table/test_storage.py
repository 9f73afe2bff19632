"""Where data files are put; S3 is a fake here, and a real server in test_on_s3.py."""

from __future__ import annotations

import pickle
from pathlib import Path

import pyarrow as pa
import pytest

from forebay.address import local_folder
from forebay.errors import InvalidConfiguration
from forebay.table.data_files.storage import Storage, storage_as


@pytest.mark.parametrize("prefix", ["", "file:", "file://"])
def test_a_local_table_may_be_named_with_or_without_a_scheme(tmp_path: Path, prefix: str) -> None:
    Storage().put(f"{prefix}{tmp_path}/my%20 table#1", "day=1/part.parquet", pa.py_buffer(b"PAR1"))
    assert (tmp_path / "my%20 table#1" / "day=1" / "part.parquet").read_bytes() == b"PAR1"


def test_a_local_path_is_read_as_hadoop_reads_it() -> None:
    assert local_folder("file:/a/b") == local_folder("file:///a/b") == local_folder("/a/b") == Path("/a/b")


def test_another_kind_of_storage_is_refused() -> None:
    with pytest.raises(InvalidConfiguration, match="gs://lake/t"):
        Storage().put("gs://lake/t", "part.parquet", pa.py_buffer(b""))


def test_storage_travels_to_executors_as_the_environment_said() -> None:
    storage = storage_as({"AWS_REGION": "eu-west-1", "AWS_ENDPOINT_URL": "http://127.0.0.1:1"})
    assert pickle.loads(pickle.dumps(storage)) == Storage("eu-west-1", "http://127.0.0.1:1")
