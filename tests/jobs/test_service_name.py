"""A service keeps its name as long as its checkpoint, and fills tables that no other service of the lake fills."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path

import pytest

from forebay.batch.accounting import Fate
from forebay.batch.plan import Plan, Plans
from forebay.declaration.loading import parse_service
from forebay.declaration.service import Service
from forebay.errors import InvalidConfiguration
from forebay.jobs.ingest import alone
from forebay.lake.layout import writer_of
from forebay.lake.lease import hold
from forebay.lake.objects import open_objects
from forebay.landed_file import LandedFile
from forebay.settings import IngestSettings
from tests.operate.ledger import entry, write_ledger

FILE = LandedFile("landing", "in/a.json", etag="e1")


def service(name: str, table: str = "{game}", more: str = "") -> Service:
    return parse_service({"service.toml": f'name = "{name}"\n{more}\n[[tables]]\nname = "{table}"\n'})


def begins(lake: Path, declared: Service, checkpoint: str = "one") -> None:
    settings = IngestSettings(lake=str(lake), queue_url="q", checkpoint=str(lake / checkpoint), lease_wait_s=0)
    with alone(declared, settings):
        pass


def test_a_service_that_was_renamed_does_not_go_on_with_its_checkpoint(tmp_path: Path) -> None:
    begins(tmp_path, service("studio"))
    with pytest.raises(
        InvalidConfiguration, match=r'was called studio when it began with .*write name = "studio" again'
    ):
        begins(tmp_path, service("games"))
    begins(tmp_path, service("studio"))


def test_a_service_that_was_renamed_does_not_fill_its_tables_from_a_new_checkpoint(tmp_path: Path) -> None:
    """Its ledger has its files under the old name, so they would all be new."""
    write_ledger(tmp_path, entry("in/a.json", tables={"alpha": 2, "beta": 1}), entry("in/b.json"))
    with pytest.raises(InvalidConfiguration, match="would fill table alpha, which service games fills in"):
        begins(tmp_path, service("studio"))
    begins(tmp_path, service("games"), "two")
    begins(tmp_path, service("studio", more='shares_files_with = ["games"]'), "three")


def test_services_with_tables_of_their_own_share_a_lake(tmp_path: Path) -> None:
    write_ledger(
        tmp_path, entry("in/a.json", tables={"alpha": 2}), entry("in/a.json", service="more", tables={"more": 1})
    )
    begins(tmp_path, service("studio", "studio_{game}"))
    with pytest.raises(InvalidConfiguration, match="would fill table more, which service more fills"):
        begins(tmp_path, service("games", "more"), "two")


def test_tables_of_a_batch_that_is_half_done_count_before_the_ledger_has_it(tmp_path: Path) -> None:
    fates = (Fate(FILE.file_id, "write", 1, "alpha", 0),)
    began = datetime(2026, 11, 21, tzinfo=UTC)
    plan = Plan(generation="g", batch=0, began_at=began, service={}, files=(FILE,), ends=(), fates=fates)
    Plans(open_objects(str(tmp_path / "_forebay" / "plans")), "games").pin(plan)
    told = "which also fills it, left an unfinished batch .let a job drain the queue once more under the name games"
    sharing = service("studio", more='shares_files_with = ["games"]')
    for declared in (service("studio"), sharing):
        with pytest.raises(InvalidConfiguration, match=told):
            begins(tmp_path, declared)
    begins(tmp_path, service("games"), "two")
    alive = hold(writer_of(str(tmp_path), "games"), wait_s=0)
    begins(tmp_path, sharing, "three")
    alive.let_go()
