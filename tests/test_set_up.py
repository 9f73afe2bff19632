"""Set-up on a plain machine: the package installer comes by pip, or the message says how to get pip."""

from __future__ import annotations

import importlib.util
import os
import subprocess
import sys
from pathlib import Path
from types import ModuleType

import pytest

ROOT = Path(__file__).resolve().parent.parent


@pytest.fixture
def set_up(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> ModuleType:
    for name in ("path", "dont_write_bytecode"):
        monkeypatch.setattr(sys, name, getattr(sys, name).copy() if name == "path" else False)
    spec = importlib.util.spec_from_file_location("set_up", ROOT / "dev" / "set_up.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    monkeypatch.setattr(module, "CACHE", tmp_path)
    return module


def test_the_installer_is_the_one_whose_hash_is_in_the_lock_file(
    set_up: ModuleType, monkeypatch: pytest.MonkeyPatch
) -> None:
    ran: list[list[str]] = []
    monkeypatch.setattr(set_up.Progress, "run", lambda self, command: ran.append(command))
    monkeypatch.setattr(set_up.importlib.util, "find_spec", lambda name: object())
    assert set_up.pinned_uv() == str(set_up.CACHE / "uv" / "bin" / "uv")
    (command,) = ran
    assert {"--require-hashes", "--no-deps", str(ROOT / "dev" / "uv.lock"), str(set_up.CACHE / "uv")} <= set(command)


def test_without_pip_the_message_says_how_to_get_it(set_up: ModuleType, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(set_up.importlib.util, "find_spec", lambda name: None)
    with pytest.raises(SystemExit, match=r"has no pip.*apt-get install python3-pip"):
        set_up.pinned_uv()


def test_what_tests_start_finds_its_modules_compiled_on_every_machine() -> None:
    """Also where the image says PYTHONDONTWRITEBYTECODE."""
    code = "import forebay.errors as one, os; print(os.path.exists(one.__cached__), one.__cached__)"
    there, where = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True
    ).stdout.split()
    assert (there, where.startswith(os.environ["PYTHONPYCACHEPREFIX"])) == ("True", True)
