"""The settings of a session on this machine."""

from __future__ import annotations

from pathlib import Path

import pytest

from forebay.errors import InvalidConfiguration
from forebay.spark.session import laptop_settings


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
