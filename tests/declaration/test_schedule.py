"""When the jobs of upkeep run: as people say it, as the clock and the job are told."""

from __future__ import annotations

import pytest

from forebay.declaration.loading import parse_service
from forebay.declaration.schedule import Schedule, schedules_of
from forebay.declaration.service import Service
from infra.clocked import tables_that_wait
from infra.schedules import cron
from lambdas.plan_compaction.why import waits

SERVICE = """
name = "studio"
[[tables]]
name = "{game}"
where = { live = "yes" }
[[tables]]
name = "asia_scores"
where = { event = "score" }
[[tables]]
name = "asia_{game}"
where = { region = "asia" }
compaction = { group = "asia" }
"""
NIGHT = """
[schedules.night-asia]
job = "compact"
group = "asia"
at = "daily 03:30"
zone = "Asia/Tokyo"
"""


def service(more: str = "") -> Service:
    return parse_service({"service.toml": SERVICE + more})


@pytest.mark.parametrize(
    ("at", "said"),
    [
        ("daily 04:00", "cron(0 4 * * ? *)"),
        ("Sun 02:30", "cron(30 2 ? * SUN *)"),
        ("Mon-Sat 23:05", "cron(5 23 ? * MON-SAT *)"),
        ("Mon,Thu 00:00", "cron(0 0 ? * MON,THU *)"),
    ],
)
def test_an_hour_as_people_say_it_is_one_as_the_clock_knows_it(at: str, said: str) -> None:
    assert cron(Schedule(job="compact", at=at)) == said


def test_what_is_declared_comes_to_the_usual_hours_takes_their_place_or_takes_them_away() -> None:
    usual = schedules_of({})
    assert {name: (one.job, one.at) for name, one in usual.items()} == {
        "order-tables": ("compact", "Sun 02:30"),
        "vacuum": ("maintain", "Mon-Sat 04:00"),
        "vacuum-all": ("maintain", "Sun 04:00"),
        "reconcile": ("reconcile", "daily 01:00"),
    }
    more = '[schedules.vacuum]\njob = "maintain"\nat = "daily 05:00"\n[schedules.vacuum-all]\njob = "maintain"\nat = "never"'
    declared = schedules_of(service(NIGHT + more).schedules)
    assert {name: one.at for name, one in declared.items()} == {
        "order-tables": "Sun 02:30",
        "vacuum": "daily 05:00",
        "reconcile": "daily 01:00",
        "night-asia": "daily 03:30",
    }
    assert declared["night-asia"].arguments == {"--round": "first", "--group": "asia"}


def test_declarations_that_were_pinned_as_json_are_the_same_when_read() -> None:
    declared = service(NIGHT + '[schedules.vacuum]\njob = "maintain"\nat = "never"')
    assert Service.model_validate_json(declared.model_dump_json()) == declared


def test_tables_of_a_group_with_hours_of_its_own_wait_for_them_and_no_others() -> None:
    tables = ("asia_one", "asia_scores", "europe", "_forebay/ledger")
    assert [table for table in tables if waits(table, tables_that_wait(service()))] == []
    patterns = tables_that_wait(service(NIGHT))
    # {game} is tried first and may give any name. A plain name, and a family that says more of it, go before it.
    assert [table for table in tables if waits(table, patterns)] == ["asia_one"]
    families = (
        SERVICE.replace('[[tables]]\nname = "{game}"\nwhere = { live = "yes" }\n', "") + '[[tables]]\nname = "{game}"\n'
    )
    patterns = tables_that_wait(parse_service({"service.toml": families + NIGHT}))
    assert [table for table in tables if waits(table, patterns)] == ["asia_one"]


def test_the_second_round_of_a_group_keeps_no_table_waiting() -> None:
    weekly = NIGHT.replace("daily", "Sun") + 'round = "second"'
    assert tables_that_wait(service(weekly)) == ""
    everything = NIGHT.replace('group = "asia"', 'group = "default"')
    patterns = tables_that_wait(parse_service({"service.toml": 'name = "s"\n[[tables]]\nname = "a"\n' + everything}))
    assert [table for table in ("a", "unheard_of", "_forebay/ledger") if waits(table, patterns)] == ["a", "unheard_of"]
