"""A deployment that replaces something together with the declaration that names it: a function, or a secret."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import forebay.jobs.declarations as job
from forebay.declaration.kept.in_force import service_for
from forebay.declaration.loading import load_service
from forebay.declaration.service import Service
from forebay.errors import InvalidConfiguration
from forebay.privacy.known_secret import keep_secret
from forebay.privacy.secret import make_secret
from forebay.settings import IngestSettings
from forebay.transforms import use_folder

TABLE = 'name = "s"\n[[tables]]\nname = "t"\ntransform = "shop:NAME"\ncolumns = [{ name = "a" }]\n'


def started(folder: Path, monkeypatch: pytest.MonkeyPatch, *, before: str, deployed: str) -> str:
    """The function that the table has, in a job whose code has the function `new`. `before` was in force."""
    texts = (TABLE.replace("NAME", function) for function in (before, deployed))
    (table,) = taken_up(folder, monkeypatch, *texts).tables
    return table.transform or ""


def taken_up(folder: Path, monkeypatch: pytest.MonkeyPatch, before: str, deployed: str) -> Service:
    for name, text in (("declarations", before), ("deployment", deployed)):
        (folder / name).mkdir()
        (folder / name / "service.toml").write_text(text)
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
    job.check_in_lake(spark, settings.lake, service)
    in_force = job.with_deployed(spark, service, settings, lambda _: None)
    job.keep_in_lake(settings.lake, in_force)
    return in_force


def test_a_deployment_may_take_the_place_of_a_declaration_whose_function_is_gone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The job would never start again otherwise, and never take up what was deployed."""
    assert started(tmp_path, monkeypatch, before="old", deployed="new") == "shop:new"


def test_a_deployment_whose_own_function_is_missing_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(InvalidConfiguration, match=r"table t: transform: shop:gone: .* has no function gone \(deploy"):
        started(tmp_path, monkeypatch, before="new", deployed="gone")


def test_a_deployment_may_name_the_new_place_of_a_secret_that_the_job_can_no_longer_read_in_the_old_one(
    tmp_path: Path, tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The role of the deployment may read the new place alone. The declarations in force still name the old one."""
    apart = tmp_path_factory.mktemp("secrets")
    table = 'name = "s"\n[[tables]]\nname = "t"\n[privacy]\nsubject = "user"\nsecret = "{}"\n'
    earlier, later = table.format(apart / "old"), table.format(apart / "new")
    make_secret(f"{apart}/new")
    (tmp_path / "service.toml").write_text(later)
    keep_secret(str(tmp_path), load_service(str(tmp_path / "service.toml")))
    privacy = taken_up(tmp_path, monkeypatch, earlier, later).privacy
    assert privacy is not None
    assert privacy.secret == f"{apart}/new"
