"""A command that is given no declarations works by those of the lake, and never by the example for somebody else's tables."""

from __future__ import annotations

from pathlib import Path

import pytest

from forebay.declaration.kept.in_force import keep_in_force, service_for
from forebay.declaration.loading import builtin_service, parse_service
from forebay.errors import InvalidConfiguration
from forebay.lake.layout import SERVICES, writer_of
from forebay.lake.lease import hold
from forebay.settings import CompactSettings
from forebay.upkeep.compaction.job import compact

MINE = 'name = "studio"\n[[tables]]\nname = "purchases"\nwhere = { event = "purchase" }\nkeep_days = 30\n'


def test_the_declarations_of_the_lake_are_taken_where_none_are_named(tmp_path: Path) -> None:
    mine = parse_service({"service.toml": MINE})
    keep_in_force(str(tmp_path), mine)
    keep_in_force(str(tmp_path), mine.with_paused(["purchases"]))
    assert service_for("", str(tmp_path)) == mine


def test_a_new_lake_has_the_example(tmp_path: Path) -> None:
    assert service_for("", str(tmp_path)) == builtin_service()
    keep_in_force(str(tmp_path), builtin_service())
    assert service_for("", str(tmp_path)) == builtin_service()


def test_what_is_named_counts_whatever_the_lake_has(tmp_path: Path) -> None:
    keep_in_force(str(tmp_path), builtin_service())
    (tmp_path / "service.toml").write_text(MINE)
    assert service_for(str(tmp_path / "service.toml"), str(tmp_path)).name == "studio"


def test_of_several_services_one_must_be_named(tmp_path: Path) -> None:
    keep_in_force(str(tmp_path), builtin_service())
    keep_in_force(str(tmp_path), parse_service({"service.toml": MINE}))
    with pytest.raises(
        InvalidConfiguration, match="--service: is missing: this lake has files of the services games, studio"
    ):
        service_for("", str(tmp_path))


def test_a_lake_of_before_is_not_worked_on_by_the_example(tmp_path: Path) -> None:
    """A job of an earlier version kept no declarations, but its lease is there."""
    hold(writer_of(str(tmp_path), "studio"), wait_s=0).let_go()
    with pytest.raises(InvalidConfiguration, match="--service: is missing: this lake has files of the service studio"):
        compact(CompactSettings(lake=str(tmp_path)), emit=lambda event: None)


def test_what_else_is_kept_beside_the_declarations_is_no_service(tmp_path: Path) -> None:
    """The ledger keeps there which service was the first."""
    mine = parse_service({"service.toml": MINE})
    keep_in_force(str(tmp_path), mine)
    (tmp_path / SERVICES / "first").write_text("studio")
    assert service_for("", str(tmp_path)) == mine
