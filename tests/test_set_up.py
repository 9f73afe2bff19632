"""Set-up on a plain machine: the package installer comes without pip and without venv, and only if its hash is right."""

from __future__ import annotations

import hashlib
import importlib.util
import os
import subprocess
import sys
import threading
import zipfile
from collections.abc import Iterator
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from types import ModuleType

import pytest

ROOT = Path(__file__).resolve().parent.parent
HERE = f"uv-1.2.3-py3-none-{'macosx_11_0' if sys.platform == 'darwin' else 'manylinux_2_17'}_"


@pytest.fixture
def uv_wheel() -> ModuleType:
    spec = importlib.util.spec_from_file_location("uv_wheel", ROOT / "dev" / "uv_wheel.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.fixture
def index(tmp_path: Path, uv_wheel: ModuleType, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A package index with two wheels of uv, one of them for this machine; gives that one."""
    monkeypatch.setattr(uv_wheel.platform, "libc_ver", lambda: ("glibc", "2.36"))
    folder = tmp_path / "simple" / "uv"
    folder.mkdir(parents=True)
    names = [f"{HERE}{uv_wheel.platform.machine()}.whl", "uv-1.2.3-py3-none-win_amd64.whl"]
    for name in names:
        with zipfile.ZipFile(folder / name, "w") as wheel:
            wheel.writestr("uv-1.2.3.data/scripts/uv", "#!/bin/sh\necho uv\n")
    (folder / "index.html").write_text("".join(f'<a href="{name}#sha256=x">{name}</a>' for name in reversed(names)))

    class Quiet(SimpleHTTPRequestHandler):
        def log_message(self, *_: object) -> None: ...

    server = ThreadingHTTPServer(("127.0.0.1", 0), lambda *given: Quiet(*given, directory=str(tmp_path)))
    threading.Thread(target=server.serve_forever, daemon=True).start()
    monkeypatch.setenv("PIP_INDEX_URL", f"http://user:secret@127.0.0.1:{server.server_port}/simple")
    monkeypatch.setenv("no_proxy", "127.0.0.1")
    yield folder / names[0]
    server.shutdown()
    server.server_close()


def lock(place: Path, wheel: Path) -> Path:
    file = place / "uv.lock"
    file.write_text(f"uv==1.2.3 \\\n    --hash=sha256:{hashlib.sha256(wheel.read_bytes()).hexdigest()}\n")
    return file


def test_the_installer_comes_from_the_configured_index_without_pip(
    index: Path, uv_wheel: ModuleType, tmp_path: Path
) -> None:
    wheel = uv_wheel.by_index(lock(tmp_path, index), tmp_path)
    program = uv_wheel.unpack(wheel, tmp_path / "bin")
    assert program.read_text() == "#!/bin/sh\necho uv\n"
    assert program.stat().st_mode & 0o111


def test_a_file_with_another_hash_is_not_installed(index: Path, uv_wheel: ModuleType, tmp_path: Path) -> None:
    wanted = lock(tmp_path, index)
    index.write_bytes(index.read_bytes() + b"more")
    with pytest.raises(uv_wheel.NotFetched, match=r"is not the file that uv\.lock names"):
        uv_wheel.by_index(wanted, tmp_path)


def test_an_index_that_does_not_answer_is_named_without_its_password(
    uv_wheel: ModuleType, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PIP_INDEX_URL", "http://user:secret@127.0.0.1:9/simple")
    monkeypatch.setenv("no_proxy", "127.0.0.1")
    with pytest.raises(uv_wheel.NotFetched, match=r"http://127\.0\.0\.1:9/simple/uv/ could not be fetched") as told:
        uv_wheel.by_index(lock(tmp_path, Path(__file__)), tmp_path)
    assert "secret" not in str(told.value)


@pytest.mark.parametrize(
    ("wheel", "system", "machine", "libc", "right"),
    [
        ("uv-1-py3-none-manylinux_2_17_x86_64.manylinux2014_x86_64.whl", "linux", "x86_64", "glibc", True),
        ("uv-1-py3-none-manylinux_2_17_x86_64.manylinux2014_x86_64.whl", "linux", "x86_64", "musl", False),
        ("uv-1-py3-none-musllinux_1_1_x86_64.whl", "linux", "x86_64", "musl", True),
        ("uv-1-py3-none-manylinux_2_28_aarch64.whl", "linux", "x86_64", "glibc", False),
        ("uv-1-py3-none-macosx_11_0_arm64.whl", "darwin", "arm64", "", True),
        ("uv-1-py3-none-macosx_10_12_x86_64.whl", "darwin", "arm64", "", False),
        ("uv-1.tar.gz", "linux", "x86_64", "glibc", False),
    ],
)
def test_the_wheel_for_a_machine_is_told_by_its_name(
    uv_wheel: ModuleType, wheel: str, system: str, machine: str, libc: str, right: bool
) -> None:
    assert uv_wheel.fits(wheel, system, machine, libc) is right


def test_pips_files_are_honoured(uv_wheel: ModuleType, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "pip.conf").write_text("[global]\nindex-url = https://packages.studio.example/simple\n")
    monkeypatch.delenv("PIP_INDEX_URL", raising=False)
    monkeypatch.setenv("PIP_CONFIG_FILE", str(tmp_path / "pip.conf"))
    assert uv_wheel.configured("index-url", "-") == "https://packages.studio.example/simple"


def test_the_lock_file_pins_one_version_and_its_wheels(uv_wheel: ModuleType) -> None:
    version, hashes = uv_wheel.locked((ROOT / "dev" / "uv.lock").read_text())
    assert version.count(".") == 2
    assert len(hashes) > 5


def test_what_tests_start_finds_its_modules_compiled_on_every_machine() -> None:
    """Also where the image says PYTHONDONTWRITEBYTECODE."""
    code = "import forebay.errors as one, os; print(os.path.exists(one.__cached__), one.__cached__)"
    there, where = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True
    ).stdout.split()
    assert (there, where.startswith(os.environ["PYTHONPYCACHEPREFIX"])) == ("True", True)
