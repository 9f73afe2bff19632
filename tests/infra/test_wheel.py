"""The wheel on a machine without a checkout: what an operator needs is there, and what starts Spark says what to install."""

from __future__ import annotations

import hashlib
import os
import re
import shlex
import subprocess
import sys
import tomllib
from collections.abc import Sequence
from pathlib import Path

import pytest

from forebay.spark import runtime
from forebay.spark.libraries import LOG_STORE_JAR, NotFetched, fetched_once
from infra.bundle import ROOT, wheel
from tests import clean_environment


@pytest.fixture(scope="module")
def installed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of programs of an environment that has the wheel and what it asks for, at the locked versions."""
    folder = tmp_path_factory.mktemp("bare")
    return clean_environment.installed(folder / "venv", wheel(folder))


def ran(installed: Path, folder: Path, *arguments: str, shell: Sequence[str] = ()) -> tuple[int, str]:
    env = {"PATH": "/usr/bin:/bin", "HOME": str(folder), "LANG": "C.UTF-8"}
    command = [*shell, installed / "forebay", *arguments]
    done = subprocess.run(command, cwd=folder, env=env, capture_output=True, text=True, check=False)
    return done.returncode, done.stdout + done.stderr


def test_a_file_can_be_tried_and_drafted_from(installed: Path, tmp_path: Path) -> None:
    (tmp_path / "a.json").write_text('{"event": "in", "n": 1}\n')
    status, said = ran(installed, tmp_path, "try", "a.json")
    assert (status, "table in_events: 1 row" in said) == (0, True), said
    assert ran(installed, tmp_path, "tables", "init", "shop", "--from", "a.json")[0] == 0
    assert ran(installed, tmp_path, "try", "a.json", "--service", "shop")[0] == 0


def test_uvx_runs_a_file_of_the_wheel_as_documented(tmp_path: Path) -> None:
    (line,) = re.findall(r"^\$ uvx (.*?)  #", (ROOT / "docs" / "install.md").read_text(), re.M)
    (tmp_path / "dist").mkdir()
    assert wheel(tmp_path / "dist").name in line
    (tmp_path / "samples").mkdir()
    (tmp_path / "samples" / "a.json").write_text('{"event": "in", "n": 1}\n')
    program, lock = clean_environment.program("uvx"), clean_environment.LOCK
    command = [program, "--isolated", "--python", sys.executable, "--constraints", lock, *shlex.split(line)]
    done = clean_environment.offline_if_possible(command, cwd=tmp_path)
    assert (done.returncode, "table in_events: 1 row" in done.stdout) == (0, True), done.stderr


def test_help_shows_what_can_be_run(installed: Path, tmp_path: Path) -> None:
    status, said = ran(installed, tmp_path, "--help")
    assert (status, "ingest" in said, "demo" in said) == (0, True, False)
    assert ran(installed, tmp_path, "--version") == (0, "forebay 0.1.0\n")


def test_the_shell_can_complete_the_commands(installed: Path, tmp_path: Path) -> None:
    # Its parents tell it which shell runs. With nothing left to do, bash would become the command, and be no parent of it.
    shell = ("bash", "-c", '"$@"; exit $?', "bash")
    status, said = ran(installed, tmp_path, "--show-completion", "bash", shell=shell)
    assert (status, "_FOREBAY_COMPLETE=complete_bash" in said) == (0, True), said


def test_a_command_that_starts_spark_names_the_extra(installed: Path, tmp_path: Path) -> None:
    (tmp_path / "service.toml").write_text(
        'name = "s"\n[[tables]]\nname = "a"\ncolumns = [{ name = "b", type = "long", expression = "1 + 1" }]\n'
    )
    status, said = ran(installed, tmp_path, "tables", "check", ".")
    hint = "pip install 'WHEEL[spark]' with the path of the wheel, or --no-sql"
    told = f"forebay: Spark: is not installed, so no SQL is checked ({hint})\n"
    assert (status, said) == (2, told)
    assert ran(installed, tmp_path, "tables", "check", ".", "--no-sql")[0] == 0
    arguments = ("ingest", "--lake", str(tmp_path / "lake"), "--queue-url", "https://sqs.eu-west-1.amazonaws.com/1/q")
    status, said = ran(installed, tmp_path, *arguments, "--service", ".")
    hint = "pip install 'WHEEL[spark]', with the path of the wheel"
    assert (status, said) == (2, f"forebay: Spark: is not installed, and this command needs it ({hint})\n")


def test_the_extras_are_those_of_the_documents() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    assert list(project["optional-dependencies"]) == ["spark", "deploy", "dev"]


@pytest.fixture
def shipped(tmp_path: Path) -> Path:
    """The lock of a wheel: one library, and our own jar beside it. An Ivy that finds the library is there, too."""
    (tmp_path / LOG_STORE_JAR).write_bytes(b"ours")
    (tmp_path / "jars.lock").write_text(f"org.x:lib:1.0 {hashlib.sha256(b'lib').hexdigest()}\n")
    (tmp_path / "pyspark" / "jars").mkdir(parents=True)
    (tmp_path / "pyspark" / "jars" / "ivy-2.5.jar").touch()
    java(tmp_path, "lib")
    return tmp_path / "jars.lock"


def java(place: Path, content: str) -> None:
    """Ivy as far as this matters: it puts the jar where its last argument says."""
    program = place / "jdk" / "bin" / "java"
    program.parent.mkdir(parents=True, exist_ok=True)
    program.write_text(f'#!/bin/sh\nfor last; do :; done\nprintf {content} > "$(dirname "$last")/lib-1.0.jar"\n')
    program.chmod(0o755)


def test_the_libraries_are_fetched_once_and_our_own_jar_is_beside_them(shipped: Path, tmp_path: Path) -> None:
    env = {"XDG_CACHE_HOME": str(tmp_path / "cache"), "JAVA_HOME": str(tmp_path / "jdk"), "PATH": os.environ["PATH"]}
    folder = fetched_once(env, lock=shipped, pyspark=tmp_path / "pyspark")
    assert {file.name: file.read_bytes() for file in folder.iterdir()} == {
        "lib-1.0.jar": b"lib",
        LOG_STORE_JAR: b"ours",
    }
    (tmp_path / "jdk" / "bin" / "java").unlink()
    (tmp_path / LOG_STORE_JAR).write_bytes(b"newer")
    assert fetched_once(env, lock=shipped, pyspark=tmp_path / "pyspark") == folder
    assert (folder / LOG_STORE_JAR).read_bytes() == b"newer"


def test_a_library_that_is_another_than_the_lock_names_is_not_taken(shipped: Path, tmp_path: Path) -> None:
    java(tmp_path, "other")
    env = {"XDG_CACHE_HOME": str(tmp_path / "cache"), "JAVA_HOME": str(tmp_path / "jdk"), "PATH": os.environ["PATH"]}
    with pytest.raises(NotFetched, match=r"lib-1\.0\.jar is not the file that jars\.lock names"):
        fetched_once(env, lock=shipped, pyspark=tmp_path / "pyspark")
    assert list((tmp_path / "cache").rglob("*.jar")) == []


def test_without_java_the_message_says_what_to_install(shipped: Path, tmp_path: Path) -> None:
    env = {"XDG_CACHE_HOME": str(tmp_path / "cache"), "PATH": str(tmp_path)}
    with pytest.raises(NotFetched, match="install a JDK 17, or set JAVA_HOME"):
        fetched_once(env, lock=shipped, pyspark=tmp_path / "pyspark")


def test_the_image_is_of_the_locked_versions() -> None:
    image = (ROOT / "Dockerfile").read_text()
    version = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["version"]
    (uv,) = (line.split()[0] for line in (ROOT / "dev" / "uv.lock").read_text().splitlines() if line.startswith("uv=="))
    assert f"FROM python:{runtime.PYTHON}-slim-bookworm\n" in image
    assert f"openjdk-{runtime.JAVA}-jre-headless" in image
    assert f"pip install --no-cache-dir {uv} " in image
    assert f"dist/forebay-{version}-py3-none-any.whl" in image
    assert "--constraints /tmp/requirements.lock" in image
