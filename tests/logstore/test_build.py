"""The log store's jar: the same sources make the same bytes, and what is up to date is not made again."""

from __future__ import annotations

import zipfile
from pathlib import Path
from types import ModuleType

import pytest

from tests.logstore.conftest import JARS


@pytest.fixture(scope="module")
def built(log_store_build: ModuleType, tmp_path_factory: pytest.TempPathFactory) -> Path:
    made: Path = log_store_build.build(JARS, tmp_path_factory.mktemp("built") / "forebay-logstore.jar")
    return made


@pytest.fixture
def small(log_store_build: ModuleType, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """One class instead of the sources, which take javac three seconds."""
    folder = tmp_path / "src"
    folder.mkdir()
    (folder / "Small.java").write_text("class Small {}")
    monkeypatch.setattr(log_store_build, "SOURCES", folder)
    return folder / "Small.java"


def test_half_a_jar_is_made_again_with_the_same_bytes(log_store_build: ModuleType, small: Path, tmp_path: Path) -> None:
    (folder := tmp_path / "jars").mkdir()
    whole = log_store_build.build(JARS, tmp_path / "whole.jar").read_bytes()
    jar = folder / "forebay-logstore.jar"
    jar.write_bytes(b"PK\x03\x04 and then the disk was full")
    log_store_build.build(JARS, jar)
    assert jar.read_bytes() == whole
    assert list(folder.iterdir()) == [jar]


def test_the_entries_of_the_jar_are_sorted_and_have_one_time(built: Path) -> None:
    with zipfile.ZipFile(built) as jar:
        names = jar.namelist()
        assert {entry.date_time for entry in jar.infolist()} == {(1980, 1, 1, 0, 0, 0)}
    assert names[0] == "META-INF/MANIFEST.MF"
    assert names[1:] == sorted(names[1:])
    assert "io/forebay/logstore/S3ConditionalLogStore.class" in names


def test_a_jar_is_made_again_only_when_a_source_changed(
    log_store_build: ModuleType, small: Path, tmp_path: Path
) -> None:
    jar: Path = log_store_build.build(JARS, tmp_path / "forebay-logstore.jar")
    made = jar.stat().st_mtime_ns

    log_store_build.build(JARS, jar)
    assert jar.stat().st_mtime_ns == made

    small.write_text(small.read_text() + "// changed\n")
    log_store_build.build(JARS, jar)
    assert jar.stat().st_mtime_ns > made


def test_a_library_that_is_not_there_is_named(log_store_build: ModuleType, tmp_path: Path) -> None:
    with pytest.raises(log_store_build.BuildFailed, match="without delta-storage, delta-kernel-api"):
        log_store_build.build(tmp_path, tmp_path / "forebay-logstore.jar")


def test_an_error_in_the_source_is_shown_in_javacs_words(
    log_store_build: ModuleType, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "Wrong.java").write_text("class Wrong { int x = ; }")
    monkeypatch.setattr(log_store_build, "SOURCES", tmp_path)
    with pytest.raises(log_store_build.BuildFailed, match="illegal start of expression"):
        log_store_build.build(JARS, tmp_path / "forebay-logstore.jar")
    assert not (tmp_path / "forebay-logstore.jar").exists()
