"""What jobs ship with must be there before the app is synthesized."""

from __future__ import annotations

import zipfile
from pathlib import Path

import aws_cdk as cdk
import pytest

from forebay.declaration.loading import builtin_service
from forebay.errors import InvalidConfiguration
from forebay.spark import runtime
from infra.jobs.code import JobCode
from infra.wheels import digest, wheels_zip


def test_without_the_built_log_store_the_app_says_what_to_run(tmp_path: Path) -> None:
    with pytest.raises(InvalidConfiguration, match="make setup"):
        JobCode(cdk.Stack(), "Code", service=builtin_service(), log_store_jar=tmp_path / "missing.jar")


def test_the_wheels_install_without_an_index_and_are_the_same_bytes_each_time(tmp_path: Path) -> None:
    one, two = (wheels_zip(tmp_path / f"{name}.gluewheels.zip") for name in ("one", "two"))
    assert one.read_bytes() == two.read_bytes()
    with zipfile.ZipFile(one) as archive:
        archive.extractall(tmp_path)
    wheels = sorted((tmp_path / "wheels").glob("*.whl"))
    assert len(wheels) == len(runtime.GLUE_LACKS)
    for wheel in wheels:
        with zipfile.ZipFile(wheel) as archive:
            (record,) = [name for name in archive.namelist() if name.endswith(".dist-info/RECORD")]
            listed = [line.split(",") for line in archive.read(record).decode().splitlines()]
            assert {name for name, _, _ in listed} == set(archive.namelist())
            for name, hashed, _ in listed:
                assert name == record or hashed == f"sha256={digest(archive.read(name))}", name


def test_without_the_packages_the_app_says_what_to_run(tmp_path: Path) -> None:
    with pytest.raises(InvalidConfiguration, match="make setup"):
        wheels_zip(tmp_path / "none.gluewheels.zip", packages=tmp_path)
