"""The files of a stream's checkpoint: whole or not there, and the first one stays."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any
from uuid import uuid4

import pytest
from py4j.protocol import Py4JJavaError

from forebay.spark.session import CHECKPOINT_FILES, job_settings

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from forebay_local.twin.twin import Twin


def create(spark: SparkSession, path: str) -> Any:
    jvm: Any = spark._jvm
    name = jvm.org.apache.hadoop.fs.Path(path)
    files = jvm.io.forebay.stream.CheckpointFiles(name.getParent(), spark._jsc.hadoopConfiguration())
    return files.createAtomic(name, False)


def test_every_job_has_them() -> None:
    assert job_settings()["spark.sql.streaming.checkpointFileManagerClass"] == CHECKPOINT_FILES


def test_on_s3_a_file_is_one_object_once_it_is_closed_and_the_second_one_is_refused(
    spark: SparkSession, twin: Twin
) -> None:
    folder = f"checkpoint-{uuid4().hex[:8]}/offsets"
    s3, place = twin.client("s3"), f"s3://{twin.lake_bucket}/{folder}/7"

    def there() -> dict[str, bytes]:
        found = s3.list_objects_v2(Bucket=twin.lake_bucket, Prefix=f"{folder}/").get("Contents", ())
        return {one["Key"]: s3.get_object(Bucket=twin.lake_bucket, Key=one["Key"])["Body"].read() for one in found}

    first, late, given_up = (create(spark, place) for _ in range(3))
    for file, content in ((first, b"first"), (late, b"late"), (given_up, b"half")):
        file.write(bytearray(content))
    given_up.cancel()
    given_up.close()
    assert there() == {}
    first.close()
    first.close()
    with pytest.raises(Py4JJavaError) as refused:
        late.close()
    assert refused.value.java_exception.getClass().getName() == "org.apache.hadoop.fs.FileAlreadyExistsException"
    assert there() == {f"{folder}/7": b"first"}


def test_in_a_folder_a_file_is_written_aside_and_renamed(spark: SparkSession, tmp_path: Path) -> None:
    file = create(spark, f"file://{tmp_path}/7")
    file.write(bytearray(b"first"))
    assert not (tmp_path / "7").exists()
    file.close()
    assert (tmp_path / "7").read_bytes() == b"first"
