from __future__ import annotations

import gc
import importlib
import sys
import weakref
import zipfile
import zipimport
from collections.abc import Iterator
from pathlib import Path

import pytest

from forebay.spark.python_worker import freeze, spare_repeats


@pytest.fixture
def archive(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A package in an archive on the path, as PySpark is in its workers."""
    path = tmp_path / "tool.zip"
    with zipfile.ZipFile(path, "w") as packed:
        packed.writestr("tool_in_archive/__init__.py", "")
        packed.writestr("tool_in_archive/first.py", "")
        packed.writestr("tool_in_archive/second.py", "ANSWER = 42")
    monkeypatch.syspath_prepend(str(path))
    return path


def finders_of(archive: Path) -> list[object]:
    return [
        finder
        for path, finder in sys.path_importer_cache.items()
        if path.startswith(str(archive)) and isinstance(finder, zipimport.zipimporter)
    ]


@pytest.fixture
def thawed() -> Iterator[None]:
    freeze.cache_clear()
    yield
    gc.unfreeze()


pytestmark = pytest.mark.usefixtures("thawed")


def test_what_was_imported_from_an_archive_is_not_read_again_before_each_task(archive: Path) -> None:
    importlib.import_module("tool_in_archive.first")
    assert finders_of(archive)
    spare_repeats()
    assert not finders_of(archive)
    importlib.invalidate_caches()  # as a worker does before each task; what has no finder is not read
    assert not finders_of(archive)


def test_what_was_not_imported_yet_can_still_be(archive: Path) -> None:
    importlib.import_module("tool_in_archive.first")
    spare_repeats()
    assert importlib.import_module("tool_in_archive.second").ANSWER == 42


def test_what_is_there_is_not_looked_through_for_garbage_again_and_what_comes_later_is() -> None:
    spare_repeats()
    frozen = gc.get_freeze_count()
    assert frozen
    made_later: list[object] = []
    made_later.append(made_later)
    garbage = weakref.ref(Garbage(made_later))
    del made_later
    spare_repeats()
    assert 0 < gc.get_freeze_count() <= frozen  # what is frozen can still go, and nothing is frozen anew
    gc.collect()
    assert garbage() is None


class Garbage:
    """An object that only a circle of references keeps."""

    def __init__(self, circle: list[object]) -> None:
        circle.append(self)
