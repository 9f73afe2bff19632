"""A deployment that replaces a function together with the declaration that names it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import forebay.jobs.ingest as job
from forebay.declaration.kept.in_force import service_for
from forebay.errors import InvalidConfiguration
from forebay.settings import IngestSettings
from forebay.transforms import use_folder

TABLE = 'name = "s"\n[[tables]]\nname = "t"\ntransform = "shop:NAME"\ncolumns = [{ name = "a" }]\n'


def started(folder: Path, monkeypatch: pytest.MonkeyPatch, *, before: str, deployed: str) -> str:
    """The function that the table has, in a job whose code has the function `new`. `before` was in force."""
    for name, function in (("declarations", before), ("deployment", deployed)):
        (folder / name).mkdir()
        (folder / name / "service.toml").write_text(TABLE.replace("NAME", function))
    (folder / "code" / "transforms").mkdir(parents=True)
    (folder / "code" / "transforms" / "shop.py").write_text("def new(rows): return rows")
    use_folder(str(folder / "code"))
    monkeypatch.setattr(job, "check_expressions", lambda *_: None)
    place, of_deployment = str(folder / "declarations"), str(folder / "deployment" / "service.toml")
    settings = IngestSettings(
        lake=str(folder), queue_url="http://localhost/q", service=place, deployed_service=of_deployment
    )
    spark: Any = None
    service = service_for(settings.service, settings.lake, settings.deployed_service)
    job._check(spark, settings.lake, service)
    (table,) = job._with_deployed(spark, service, settings, lambda _: None).tables
    return table.transform or ""


def test_a_deployment_may_take_the_place_of_a_declaration_whose_function_is_gone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The job would never start again otherwise, and never take up what was deployed."""
    assert started(tmp_path, monkeypatch, before="old", deployed="new") == "shop:new"


def test_a_deployment_whose_own_function_is_missing_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(InvalidConfiguration, match=r"table t: transform: shop:gone: .* has no function gone \(deploy"):
        started(tmp_path, monkeypatch, before="new", deployed="gone")
