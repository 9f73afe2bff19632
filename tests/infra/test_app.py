"""The app as a person meets it, and what its parts ship with."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from forebay.declaration.loading import load_service, parse_service
from forebay.errors import InvalidConfiguration
from infra import app
from infra.declarations import one_text
from infra.functions.function import gather_code

ROOT = Path(__file__).resolve().parents[2]
FUNCTIONS = sorted(file.parent.name for file in (ROOT / "lambdas").glob("*/handler.py"))

NIGHT = '[schedules.night]\njob = "compact"\nat = "daily 03:30"\nzone = "Asia/Tokyo"\n'
TABLE = """
name = "odd"
event_time = { column = "at", bucket = 2026-01-01T00:00:00 }
where = { "header.kind" = "it's \\"odd\\" ☃", other = "x\\u007f\\n" }
columns = [{ name = "level", type = "long", path = "player.level" }, { name = "event" }, { name = "at", type = "timestamp" }]
"""


def test_what_is_wrong_is_said_at_once_and_nothing_is_written(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("CDK_OUTDIR", str(tmp_path / "out"))
    assert app.main(["-c", "wrkers=3", "-c", "workers=1", "-c", "freshness=5m"]) == 2
    said = capsys.readouterr().err
    assert "wrkers: is unknown (did you mean workers?)" in said
    assert "workers: must be at least 2" in said
    assert "freshness: must be a duration from 30 s to 24 h, such as 5 min, 90 s or 1 h; got '5m' (the longest" in said
    assert not (tmp_path / "out").exists()


@pytest.mark.deep
def test_synth_needs_neither_node_nor_a_network(tmp_path: Path) -> None:
    """Node comes with a wheel. Whoever asks the network here is sent to a port where nobody answers."""
    nobody = dict.fromkeys(
        ("http_proxy", "https_proxy", "HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY"), "http://127.0.0.1:9"
    )
    env = {"PATH": "/nonexistent", "HOME": str(tmp_path), "CDK_OUTDIR": str(tmp_path / "out"), **nobody}
    env["PYTHONPYCACHEPREFIX"] = os.environ["PYTHONPYCACHEPREFIX"]  # else it compiles all of the CDK
    # Where jsii has it on Linux; else it unpacks the CDK once more.
    env["JSII_RUNTIME_PACKAGE_CACHE_ROOT"] = str(Path.home() / ".cache" / "aws" / "jsii" / "package-cache")
    command = [sys.executable, "-m", "infra.app", "-c", "env=prod"]
    ran = subprocess.run(command, cwd=ROOT, env=env, capture_output=True, text=True, check=False)
    assert ran.returncode == 0, ran.stderr
    assert (tmp_path / "out" / "forebay-prod.template.json").exists()


def test_wrong_declarations_are_told_in_the_words_of_every_command(tmp_path: Path) -> None:
    (tmp_path / "service.toml").write_text('name = "shop"\n[[tables]]\nname = "A b"\nwher = {}\n')
    with pytest.raises(InvalidConfiguration) as here:
        app.build({"service": str(tmp_path)}, outdir=str(tmp_path / "out"))
    with pytest.raises(InvalidConfiguration) as there:
        load_service(str(tmp_path))
    assert here.value.problems == there.value.problems


def test_a_schedule_with_the_name_of_one_that_wakes_a_function_is_refused(tmp_path: Path) -> None:
    name = '[schedules.start-ingest]\njob = "maintain"\nat = "daily 04:00"\n'
    (tmp_path / "service.toml").write_text('name = "shop"\n[[tables]]\nname = "orders"\n' + name)
    with pytest.raises(
        InvalidConfiguration, match=r"schedules\.start-ingest: is the name of a schedule that starts a function"
    ):
        app.build({"service": str(tmp_path)}, outdir=str(tmp_path / "out"))


def test_declarations_in_several_files_become_one_that_declares_the_same(tmp_path: Path) -> None:
    (tmp_path / "tables").mkdir()
    (tmp_path / "service.toml").write_text(
        'name = "shop"\noverwritten = "ignore"\n[[tables]]\nname = "{game}"\n' + NIGHT
    )
    (tmp_path / "tables" / "odd.toml").write_text(TABLE)
    many = load_service(str(tmp_path))
    one = tmp_path / "one.toml"
    one.write_text(one_text(many))
    assert load_service(str(one)).model_copy(update={"version": many.version}) == many
    assert len(many.tables) == 2


@pytest.mark.parametrize("example", sorted(place.parent.name for place in (ROOT / "examples").glob("*/service.toml")))
def test_each_example_can_be_deployed_as_it_is_declared(example: str, tmp_path: Path) -> None:
    service, written = load_service(str(ROOT / "examples" / example)), tmp_path / "service.toml"
    written.write_text(one_text(service))
    assert load_service(str(written)).model_copy(update={"version": service.version}) == service


def test_what_nobody_declared_is_not_written_so_that_an_upgrade_with_new_settings_changes_no_declaration() -> None:
    """A deployment that changes no declaration undoes no push, and the text decides."""
    service = parse_service({"service.toml": 'name = "shop"\n[[tables]]\nname = "orders"\n'})
    assert one_text(service) == 'name = "shop"\n\n[[tables]]\nname = "orders"\n'


def test_the_built_in_example_survives_being_written() -> None:
    example = load_service("")
    assert '[[tables]]\nname = "{game}"' in one_text(example)


def test_functions_can_be_read_by_lambda_whatever_the_umask_of_who_deploys(tmp_path: Path) -> None:
    """Lambda unpacks the zip with the modes of its entries, and runs the function as somebody else."""
    before = os.umask(0o077)
    try:
        gather_code(tmp_path)
    finally:
        os.umask(before)
    modes = {oct(path.stat().st_mode & 0o777) for path in (tmp_path, *tmp_path.rglob("*")) if path.is_file()}
    assert modes == {"0o644"}
    assert {oct(p.stat().st_mode & 0o777) for p in (tmp_path, *tmp_path.rglob("*")) if p.is_dir()} == {"0o755"}


@pytest.mark.parametrize("function", FUNCTIONS)
def test_a_function_ships_with_all_that_it_imports(function: str, tmp_path: Path) -> None:
    gather_code(tmp_path)
    code = (
        "import sys; sys.path.insert(0, sys.argv[1])\n"
        f"import lambdas.{function}.handler as h, lambdas.environment, forebay.errors\n"
        "ours = [m for n, m in sys.modules.items() if n.split('.')[0] in ('lambdas', 'forebay')]\n"
        "stray = [m.__file__ for m in ours if m.__file__ and not m.__file__.startswith(sys.argv[1])]\n"
        "heavy = [n for n in ('pydantic', 'pyspark', 'pyarrow') if n in sys.modules]\n"
        "print(stray, heavy, callable(h.handle))"
    )
    env = {"PATH": "/usr/bin:/bin", "PYTHONDONTWRITEBYTECODE": "1"}
    env["PYTHONPYCACHEPREFIX"] = os.environ["PYTHONPYCACHEPREFIX"]
    ran = subprocess.run(
        [sys.executable, "-c", code, str(tmp_path)], cwd=tmp_path, env=env, capture_output=True, text=True, check=True
    )
    assert ran.stdout.strip() == "[] [] True"
    assert not list(tmp_path.rglob("__pycache__"))


def test_a_functions_handler_is_read_at_a_glance() -> None:
    lines = {file.parent.name: len(file.read_text().splitlines()) for file in (ROOT / "lambdas").glob("*/handler.py")}
    assert {name: count for name, count in lines.items() if count >= 60} == {}


def test_wrong_settings_and_wrong_declarations_are_told_together(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("CDK_OUTDIR", str(tmp_path / "out"))
    (tmp_path / "service.toml").write_text('name = "shop"\n[[tables]]\nname = "orders"\nwher = {}\n')
    assert app.main(["-c", "workers=1", "-c", f"service={tmp_path}"]) == 2
    said = capsys.readouterr().err
    assert "workers: must be at least 2" in said
    assert "wher: is unknown" in said
