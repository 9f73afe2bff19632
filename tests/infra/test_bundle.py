"""The bundle: the same bytes from the same sources, and all that a job needs of ours is in it."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import time
import zipfile
from pathlib import Path

import pytest

from forebay.declaration.loading import load_service, parse_service
from forebay.errors import InvalidConfiguration
from forebay.spark import runtime
from infra.bundle import KERNEL_JARS, LOG_STORE_JAR, ROOT, bundle, package_zip
from infra.declarations import functions_of
from infra.emr_environment import INTERPRETER, START, pack_interpreter
from tests.infra.synthesized import Synthesized, text

PYTHON_OF_EMR = runtime.PYTHON


def test_the_same_sources_give_the_same_bytes_wherever_and_whenever(tmp_path: Path) -> None:
    elsewhere = tmp_path / "elsewhere"
    for name in ("pyproject.toml", "README.md", "LICENSE", "jars.lock"):
        elsewhere.mkdir(exist_ok=True)
        shutil.copyfile(ROOT / name, elsewhere / name)
    shutil.copytree(ROOT / "glue_jobs" / "forebay", elsewhere / "glue_jobs" / "forebay")
    for file in (elsewhere / "glue_jobs").rglob("*.py"):
        file.chmod(0o600)
        os.utime(file, (time.time() - 86_400 * 400,) * 2)
    one, two = bundle(tmp_path / "one"), bundle(tmp_path / "two", root=elsewhere)
    assert [file.name.partition("-")[0] for file in one] == ["forebay.zip", "forebay", "forebay", "delta", "delta"]
    for first, second in zip(one, two, strict=True):
        assert first.name == second.name
        assert first.read_bytes() == second.read_bytes(), first.name
    assert (tmp_path / "one" / "SHA256SUMS").read_text() == (tmp_path / "two" / "SHA256SUMS").read_text()


def test_the_package_runs_out_of_the_zip_with_its_example(tmp_path: Path) -> None:
    (zipped, wheel, *_) = bundle(tmp_path)
    assert {name.partition("/")[0] for name in zipfile.ZipFile(zipped).namelist()} == {"forebay"}
    inside = set(zipfile.ZipFile(wheel).namelist())
    assert {name for name in zipfile.ZipFile(zipped).namelist() if name.endswith(".py")} <= inside
    code = "import forebay.declaration.loading as s; print(s.__file__); print(s.load_service('').name)"
    env = {**os.environ, "PYTHONPATH": str(zipped)}
    said = subprocess.run(
        [sys.executable, "-c", code], env=env, capture_output=True, text=True, check=True, cwd=tmp_path
    )
    place, name = said.stdout.split()
    assert place.startswith(str(zipped))
    assert name


def test_a_job_gets_the_functions_that_its_declarations_name(tmp_path: Path) -> None:
    """They are imported from the zip, by the same names as beside the declarations."""
    place = ROOT / "examples" / "python-step"
    folder = functions_of(load_service(str(place)), f"file://{place}")
    zipped = package_zip(tmp_path / "forebay.zip", functions=folder)
    assert modules_in(zipped) == ["transforms/__init__.py", "transforms/shop.py"]
    assert imported("shop:priced", zipped, tmp_path) == "transforms.shop"


def test_a_module_of_functions_may_import_others_in_folders(tmp_path: Path) -> None:
    """Not shipped is what a laptop leaves beside them."""
    folder = tmp_path / "transforms"
    for name in ("shop/.hidden/x.py", "shop/__pycache__/x.pyc", "shop/rates.csv", "gone.py", "more/of/money.py"):
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).touch()
    (folder / "gone.py").unlink()
    (folder / "gone.py").symlink_to("nowhere")
    (folder / "odd.py").mkdir()
    (folder / "shop" / "__init__.py").write_text("from ..more.of.money import f")
    (folder / "more" / "of" / "money.py").write_text("def f(rows): return rows")
    service = parse_service({"service.toml": NAMES_ONE.replace("clean", "f")})
    first, second = (
        package_zip(tmp_path / name, functions=functions_of(service, str(tmp_path))) for name in ("a.zip", "b.zip")
    )
    inner = ("__init__", "more/__init__", "more/of/__init__", "more/of/money", "shop/__init__")
    assert modules_in(first) == [f"transforms/{name}.py" for name in inner]
    assert imported("shop:f", first, tmp_path / "shop") == "transforms.more.of.money"
    assert first.read_bytes() == second.read_bytes()


def test_functions_are_deployed_before_a_declaration_that_names_them_is_pushed(tmp_path: Path) -> None:
    (tmp_path / "transforms").mkdir()
    service = parse_service({"service.toml": 'name = "s"\n[[tables]]\nname = "t"'})
    assert functions_of(service, str(tmp_path)) == tmp_path / "transforms"
    assert functions_of(service, "") is None


NAMES_ONE = 'name = "s"\n[[tables]]\nname = "t"\ntransform = "shop:clean"\ncolumns = [{ name = "a" }]'


def test_a_deployment_without_a_function_is_refused(tmp_path: Path) -> None:
    (tmp_path / "service.toml").write_text(NAMES_ONE)
    service = load_service(str(tmp_path))
    for place in (str(tmp_path), str(tmp_path / "service.toml"), "s3://bucket/declarations/", ""):
        with pytest.raises(InvalidConfiguration, match=r"table t: transform: transforms/shop\.py does not exist"):
            functions_of(service, place)


def modules_in(zipped: Path) -> list[str]:
    return [name for name in zipfile.ZipFile(zipped).namelist() if not name.startswith("forebay/")]


def imported(name: str, zipped: Path, cwd: Path) -> str:
    """The module of the function, in a process that has the zip."""
    cwd.mkdir(exist_ok=True)
    code = f"from forebay.transforms import function_of; print(function_of({name!r}).__module__)"
    env = {**os.environ, "PYTHONPATH": str(zipped)}
    said = subprocess.run([sys.executable, "-c", code], env=env, capture_output=True, text=True, check=True, cwd=cwd)
    return said.stdout.strip()


def test_without_the_built_log_store_it_says_what_to_run(tmp_path: Path) -> None:
    with pytest.raises(InvalidConfiguration, match="make setup"):
        bundle(tmp_path, log_store_jar=tmp_path / "missing.jar")


def test_the_template_ships_the_bundles_zip_and_jar(made: Synthesized, tmp_path: Path) -> None:
    (zipped, *_) = bundle(tmp_path)
    arguments = made.one("Glue::Job", "IngestJob")["DefaultArguments"]
    assert made.asset(arguments["--extra-py-files"]).read_bytes() == zipped.read_bytes()
    shipped = [made.asset(place).read_bytes() for place in text(arguments["--extra-jars"]).split(",")]
    assert shipped == [jar.read_bytes() for jar in (LOG_STORE_JAR, *KERNEL_JARS)]


def test_without_its_python_the_environment_for_emr_says_so(tmp_path: Path) -> None:
    start = tmp_path / "bin" / "python"
    start.parent.mkdir()
    start.write_text(START)
    start.chmod(0o755)
    ran = subprocess.run([str(start), "-V"], env={"PATH": "/usr/bin:/bin"}, capture_output=True, text=True, check=False)
    assert (ran.returncode, ran.stdout) == (1, "")
    (said,) = ran.stderr.splitlines()
    assert f"is for Python {runtime.PYTHON}" in said


def test_a_packed_interpreter_starts_where_no_python_is_on_the_path(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The interpreter of these tests stands for the one of EMR's version; it is moved twice."""
    version = f"{sys.version_info.major}.{sys.version_info.minor}"
    monkeypatch.setattr(runtime, "PYTHON", version)
    root = tmp_path / "packed"
    pack_interpreter(Path(sys.base_prefix), root / INTERPRETER, glibc=99)
    (root / "bin").mkdir()
    (root / "bin" / "python").write_text(START.replace(f"python{PYTHON_OF_EMR}", f"python{version}"))
    (root / "bin" / "python").chmod(0o755)
    unpacked = root.rename(tmp_path / "unpacked")
    code = "import sys, json, ssl, zlib, hashlib, ctypes, sqlite3; print(sys.prefix)"
    command, env = [str(unpacked / "bin" / "python"), "-c", code], {"PATH": "/nowhere"}
    ran = subprocess.run(command, env=env, capture_output=True, text=True, check=False)
    assert (ran.stdout.strip(), ran.returncode) == (str(unpacked / INTERPRETER), 0), ran.stderr


def test_a_folder_that_is_no_interpreter_of_emrs_version_is_not_packed(tmp_path: Path) -> None:
    with pytest.raises(InvalidConfiguration, match=f"has no bin/python{runtime.PYTHON}"):
        pack_interpreter(tmp_path, tmp_path / "python")


def test_an_interpreter_that_emrs_images_cannot_load_is_not_packed(tmp_path: Path) -> None:
    """Such as one that was built on a newer Linux: each run would end with "version `GLIBC_2.35' not found"."""
    built, version = tmp_path / "built", f"python{runtime.PYTHON}"
    for file, content in ((f"bin/{version}", b"\x7fELF GLIBC_2.34\0"), (f"lib/{version}/os.py", b"")):
        (built / file).parent.mkdir(parents=True)
        (built / file).write_bytes(content)
    pack_interpreter(built, tmp_path / "packed")
    (built / "lib" / f"lib{version}.so.1.0").write_bytes(b"\x7fELF GLIBC_2.2.5\0GLIBC_2.35\0")
    with pytest.raises(InvalidConfiguration, match=r"needs glibc 2\.35, and the image has 2\.34"):
        pack_interpreter(built, tmp_path / "packed-too")
