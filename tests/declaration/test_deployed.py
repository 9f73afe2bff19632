"""What was deployed is in force until somebody pushes; and no deployment undoes a push without a word."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from forebay.declaration.kept.deployed import DeploymentGaveWay, PushReplaced, take_up_deployed
from forebay.declaration.kept.in_force import service_for
from forebay.declaration.loading import load_service
from forebay.events import Event


def declared(table: str) -> str:
    return f'name = "games"\n[[tables]]\nname = "{table}"\n'


class Lake:
    """Whoever deploys and whoever pushes, at moments that are said."""

    def __init__(self, folder: Path) -> None:
        self.lake, self.place, self.deployments = folder / "lake", folder / "lake" / "declarations", folder / "assets"
        self.deployments.mkdir(parents=True)
        self.events: list[Event] = []

    def deploy(self, table: str, at: float) -> None:
        self.deployed = self.deployments / f"{table}.toml"
        if not self.deployed.exists():  # the same content is the same asset
            self.deployed.write_text(declared(table))
            os.utime(self.deployed, (at, at))

    def push(self, table: str, at: float) -> None:
        """A folder: the service, and a file for its table."""
        (self.place / "tables").mkdir(parents=True, exist_ok=True)
        for name, text in (("service.toml", 'name = "games"\n'), (f"tables/{table}.toml", f'name = "{table}"\n')):
            (self.place / name).write_text(text)
            os.utime(self.place / name, (at, at))

    def start(self) -> str:
        """A job starts; the table that is in force then."""
        self.events.clear()
        take_up_deployed(str(self.place), str(self.deployed), str(self.lake), emit=self.events.append)
        (table,) = load_service(str(self.place)).tables
        return table.name


@pytest.fixture
def lake(tmp_path: Path) -> Lake:
    return Lake(tmp_path)


def test_a_deployment_seeds_an_empty_place_and_a_later_one_changes_it(lake: Lake) -> None:
    lake.deploy("alpha", at=1000)
    assert (lake.start(), lake.start(), lake.events) == ("alpha", "alpha", [])
    lake.deploy("beta", at=2000)
    assert (lake.start(), lake.start(), lake.events) == ("beta", "beta", [])


def test_a_push_stays_in_force_through_starts_and_through_deployments_that_bring_nothing_new(lake: Lake) -> None:
    lake.deploy("alpha", at=1000)
    lake.start()
    lake.push("pushed", at=2000)
    assert (lake.start(), lake.start(), lake.events) == ("pushed", "pushed", [])


def test_a_deployment_that_is_newer_than_the_push_replaces_it_says_so_and_keeps_it(lake: Lake) -> None:
    lake.deploy("alpha", at=1000)
    lake.start()
    lake.push("pushed", at=2000)
    pushed = load_service(str(lake.place)).version
    lake.deploy("beta", at=3000)
    assert lake.start() == "beta"
    (told,) = lake.events
    assert isinstance(told, PushReplaced)
    assert told.pushed == pushed
    assert [table.name for table in load_service(told.kept.removeprefix("file:")).tables] == ["pushed"]
    assert (lake.start(), lake.events) == ("beta", [])


def test_a_deployment_that_is_older_than_the_push_gives_way_and_says_so_once(lake: Lake) -> None:
    lake.deploy("alpha", at=1000)
    lake.start()
    lake.push("pushed", at=3000)
    lake.deploy("beta", at=2000)
    assert lake.start() == "pushed"
    assert [type(event) for event in lake.events] == [DeploymentGaveWay]
    assert (lake.start(), lake.events) == ("pushed", [])
    lake.deploy("gamma", at=4000)
    assert lake.start() == "gamma"
    assert [type(event) for event in lake.events] == [PushReplaced]


def test_a_job_that_died_after_it_wrote_the_declarations_goes_on(lake: Lake) -> None:
    lake.deploy("alpha", at=1000)
    lake.start()
    lake.deploy("beta", at=2000)
    lake.place.joinpath("service.toml").write_text(declared("beta"))
    assert (lake.start(), lake.events) == ("beta", [])


def test_jobs_that_start_before_anything_is_there_go_by_what_was_deployed(lake: Lake) -> None:
    lake.deploy("alpha", at=1000)
    found = service_for(str(lake.place), str(lake.lake), str(lake.deployed))
    assert [table.name for table in found.tables] == ["alpha"]
