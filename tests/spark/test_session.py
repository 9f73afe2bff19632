"""The settings of a session on this machine."""

from __future__ import annotations

import logging
from pathlib import Path
from typing import Any

import pytest
from pyspark.errors import AnalysisException
from pyspark.sql import SparkSession

from forebay.errors import InvalidConfiguration
from forebay.spark.session import CALLED_ALL_THE_TIME, LOCAL_FILES, laptop_settings


@pytest.fixture
def jars(tmp_path: Path) -> Path:
    (tmp_path / "delta.jar").touch()
    return tmp_path


def test_the_jvm_takes_the_archive_of_classes_that_set_up_made(jars: Path) -> None:
    options = "spark.driver.extraJavaOptions"
    assert "SharedArchiveFile" not in laptop_settings({"FOREBAY_JARS": str(jars)})[options]
    (jars / "classes.jsa").touch()
    assert f"-XX:SharedArchiveFile={jars}/classes.jsa" in laptop_settings({"FOREBAY_JARS": str(jars)})[options]


def test_options_for_the_jvm_come_from_the_environment(jars: Path) -> None:
    env = {"FOREBAY_JARS": str(jars), "FOREBAY_JAVA_OPTIONS": "-Xss4m -verbose:gc"}
    assert laptop_settings(env)["spark.driver.defaultJavaOptions"] == "-Xss4m -verbose:gc"


def test_a_machine_without_the_jvm_libraries_is_told_how_to_get_them(tmp_path: Path) -> None:
    with pytest.raises(InvalidConfiguration, match="make setup"):
        laptop_settings({"FOREBAY_JARS": str(tmp_path)})


def test_a_file_in_a_folder_is_written_alone_and_with_the_rights_it_should_have(
    spark: SparkSession, tmp_path: Path
) -> None:
    """Hadoop's own file system adds a checksum to each, and starts processes for links and rights."""
    context: Any = spark.sparkContext
    made = context._jvm.org.apache.hadoop.fs.Path(f"file://{tmp_path}/a/b.txt")
    rights = context._jvm.org.apache.hadoop.fs.permission.FsPermission("640")
    conf = context._jsc.hadoopConfiguration()
    files = made.getFileSystem(conf)
    files.create(made).close()
    files.setPermission(made, rights)
    renamed = context._jvm.org.apache.hadoop.fs.Path(f"file://{tmp_path}/a/c.txt")
    other = context._jvm.org.apache.hadoop.fs.FileContext.getFileContext(made.toUri(), conf)
    other.rename(made, renamed, context._gateway.new_array(context._jvm.org.apache.hadoop.fs.Options.Rename, 0))
    assert [(path.name, oct(path.stat().st_mode)[-3:]) for path in (tmp_path / "a").iterdir()] == [("c.txt", "640")]
    assert {files.getClass().getName(), other.getDefaultFileSystem().getClass().getName()} == {
        LOCAL_FILES,
        f"{LOCAL_FILES}$Context",
    }


def test_pyspark_finds_the_classes_that_it_names_all_the_time_without_asking(spark: SparkSession) -> None:
    session: Any = spark
    assert set(CALLED_ALL_THE_TIME) <= vars(session._jvm).keys()
    assert session.conf.get("spark.python.sql.dataFrameDebugging.enabled") == "false"


def test_a_refused_query_raises_and_logs_nothing_by_itself(spark: SparkSession) -> None:
    """Forebay says what became of it, in one line and not in PySpark's JSON."""
    with pytest.raises(AnalysisException, match="no_such_column"):
        spark.sql("select no_such_column from values (1) as t(n)").collect()
    with pytest.raises(AnalysisException, match="no_such_column"):
        spark.range(1).select("no_such_column").collect()
    for name in ("SQLQueryContextLogger", "DataFrameQueryContextLogger"):
        assert not logging.getLogger(name).isEnabledFor(logging.ERROR)
