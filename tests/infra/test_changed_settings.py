"""A setting that is changed on a running stack takes nothing along that keeps data, but where `docs/upgrade.md` says so.

Two templates are compared as CloudFormation compares them: a resource leaves if its logical id does, or if a property changes
that the resource can only be created with. cfn-lint has AWS's own list of those.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any

import pytest
from cfnlint.schema.manager import PROVIDER_SCHEMA_MANAGER as SCHEMAS

from infra.settings import Settings
from tests.infra.conftest import BROUGHT, IN_A_VPC, KEY, PRODUCER, PYTHON, REPLICA_KEY, TOPIC
from tests.infra.synthesized import Synthesized, synthesized

pytestmark = pytest.mark.xdist_group("cdk")

ROOT = Path(__file__).resolve().parents[2]
PAGE = ROOT / "docs" / "upgrade.md"
KEEP_DATA = {
    *("AWS::S3::Bucket", "AWS::SQS::Queue", "AWS::SNS::Topic", "AWS::KMS::Key", "AWS::Glue::Database"),
    *("AWS::Logs::LogGroup", "AWS::Athena::WorkGroup"),
}
KEPT = "RetainExceptOnCreate"
ADOPTED = {"landing_bucket": "studio-drops"}
QUEUES = {name: BROUGHT[name] for name in ("landing_queue", "landing_dead_queue")}
ANALYSTS = {"analysts": IN_A_VPC["analysts"]}
EMR = {"engine": "emr-serverless", "python_modules": PYTHON}
TAKE_SOMETHING: Mapping[str, tuple[dict[str, Any], dict[str, Any]]] = {
    "env": ({}, {"env": "test"}),
    "prefix": ({}, {"prefix": "studio-games"}),
    "landing_bucket": ({}, {**ADOPTED, "landing_topic": TOPIC}),
    "landing_queue": ({}, {**ADOPTED, **QUEUES}),
    "lake_bucket": ({}, {"lake_bucket": "studio-lake"}),
    "data_key": ({}, {"data_key": BROUGHT["data_key"]}),
    "database": ({}, {"database": "studio_games"}),
    "engine": ({}, EMR),
    "analysts": (ANALYSTS, {}),
    "athena": (ANALYSTS, {**ANALYSTS, "athena": False}),
}
"""By setting, the settings before the change and after it."""
TAKE_NOTHING: tuple[tuple[dict[str, Any], dict[str, Any]], ...] = (
    (
        {},
        {
            "worker_type": "G.2X",
            "workers": 5,
            "maintenance_window": "Mon:3",
            "tables_at_once": 4,
            "python_modules": "pydantic",
            "plan_compaction_every_minutes": 30,
            "status_page_every_minutes": 60,
            "producer_accounts": PRODUCER,
            "landing_prefix": "drops/",
            "reconcile_below": "drops/%Y/",
            "landing_ia_days": 90,
            "keep_landed_days": 800,
            "assets_key": KEY,
            "lake_formation": True,
            **{name: IN_A_VPC[name] for name in IN_A_VPC if name.startswith("vpc_")},
            "operators": IN_A_VPC["operators"],
            "vault_users": IN_A_VPC["operators"],
            "log_level": "INFO",
            "log_days": 60,
            "alarm_email": "night@example.org",
            "trend_percent": 60,
            "alarm_url": "https://oncall.example.org/in",
            "alarm_slack": "T01234567/C0123456789",
            "runbook_url": "https://wiki.example.org/forebay",
            "freshness": "20 min",
            "quarantine_percent": 6,
            "watched_tables": "orders",
            "stale_table_minutes": 30,
            "table_metrics": "*",
            "dpu_hour_usd": 0.44,
            "budget_usd_month": 200,
            "keep_deleted_days": 30,
            "replicate_to": "studio-copies",
            "replicate_to_key": REPLICA_KEY,
            "conditional_commits": False,
            "permissions_boundary": "arn:aws:iam::123456789012:policy/studio",
            "termination_protection": True,
        },
    ),
    ({}, {"delete_data": True, "delete_data_of": "forebay-prod"}),
    ({}, {"existing_roles": "studio-forebay-"}),
    ({**ADOPTED, "landing_topic": TOPIC}, {**ADOPTED, "landing_eventbridge": True, "landing_key": KEY}),
    (
        {**ADOPTED, **QUEUES},
        {**ADOPTED, **QUEUES, "landing_dead_queue": f"{QUEUES['landing_dead_queue']}-2", "landing_queue_key": KEY},
    ),
    ({"lake_bucket": "studio-lake"}, {"lake_bucket": "studio-lake", "lake_prefix": "games/"}),
    (EMR, {**EMR, "emr_release": "emr-spark-8.2.0"}),
    ({}, {"service": str(ROOT / "examples" / "csv-export")}),
)


def test_each_setting_is_changed_here() -> None:
    there = set(TAKE_SOMETHING).union(*(setting for pair in TAKE_NOTHING for setting in pair))
    assert there == set(Settings.model_fields)


Made = Callable[[Mapping[str, Any]], Synthesized]


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Made:
    """Each service once."""
    there: dict[str, Synthesized] = {}

    def make(settings: Mapping[str, Any]) -> Synthesized:
        key = json.dumps(settings, sort_keys=True)
        if key not in there:
            there[key] = synthesized(tmp_path_factory.mktemp("changed"), **{"env": "prod", **settings})
        return there[key]

    return make


@pytest.mark.parametrize("which", range(len(TAKE_NOTHING)))
@pytest.mark.deep
def test_most_settings_take_nothing_along_in_either_direction(which: int, made: Made) -> None:
    before, after = map(made, TAKE_NOTHING[which])
    assert leaving(before, after) | leaving(after, before) == {}


def test_settings_that_add_something_replace_nothing_of_any_kind(made: Made) -> None:
    """The role that S3 copies the lake with, say: between the old one's end and the new one's permissions it could not."""
    _, more = TAKE_NOTHING[0]
    replicated = {name: more[name] for name in ("keep_deleted_days", "replicate_to", "replicate_to_key")}
    assert leaving(made(replicated), made(more), kinds=None) == {}


@pytest.mark.parametrize("setting", TAKE_SOMETHING)
@pytest.mark.deep
def test_what_a_setting_takes_along_and_what_of_it_is_kept_is_on_the_page(setting: str, made: Made) -> None:
    before, after = map(made, TAKE_SOMETHING[setting])
    found, told = leaving(before, after), on_the_page()[setting]
    wrong = {name: kept for name, kept in found.items() if not any(fits(name, kept, *one) for one in told.items())}
    assert found, f"{setting} takes nothing: it belongs to the others"
    assert wrong == {}, f"docs/upgrade.md does not say this of {setting}"
    assert [one for one in told.items() if not any(fits(*there, *one) for there in found.items())] == []
    assert leaving(after, before).keys() <= found.keys(), "the way back takes something else along"


def fits(name: str, kept: bool, pattern: str, told: bool) -> bool:
    return fnmatchcase(name, pattern) and kept == told


def test_cloudformation_can_take_what_a_removed_stack_kept_into_a_new_one(made: Made) -> None:
    """It imports a resource that has a deletion policy, by the identifier that the page names."""
    asks_for = {"AWS::S3::Bucket": "BucketName", "AWS::KMS::Key": "KeyId", "AWS::Athena::WorkGroup": "Name"}
    there = made(ANALYSTS).template["Resources"].values()
    kept = [one for one in there if one["Type"] in asks_for]
    others = {one["Type"] for one in there if one.get("DeletionPolicy") == KEPT} - asks_for.keys()
    assert {one["Type"] for one in kept} == asks_for.keys()
    assert others == {"AWS::S3::BucketPolicy"}, "which the page has deleted before the deployment"
    for one in kept:
        schema = SCHEMAS.get_resource_schema("us-east-1", one["Type"]).schema
        assert schema["primaryIdentifier"] == [f"/properties/{asks_for[one['Type']]}"]
        assert one["DeletionPolicy"] == KEPT
    assert "buckets and a workgroup by name, keys by id" in " ".join(PAGE.read_text().split())
    assert "aws s3api delete-bucket-policy --bucket KEPT" in PAGE.read_text()


def on_the_page() -> dict[str, dict[str, bool]]:
    """By setting, what leaves the stack, and whether it is kept."""
    found: dict[str, dict[str, bool]] = {}
    for line in PAGE.read_text().splitlines():
        cells = [cell.strip() for cell in line.strip("|").split("|")]
        if len(cells) == 3 and cells[0].startswith("`"):
            leaves = {name: bool(kept) for name, kept in re.findall(r"`([\w*]+)`( \(kept\))?", cells[1])}
            found |= dict.fromkeys(re.findall(r"`(\w+)`", cells[0]), leaves)
    return found


def leaving(before: Synthesized, after: Synthesized, kinds: set[str] | None = KEEP_DATA) -> dict[str, bool]:
    """By logical id without its hash, whether CloudFormation keeps it."""
    old, new = before.template["Resources"], after.template["Resources"]
    return {
        name[:-8]: one.get("DeletionPolicy") == KEPT and one.get("UpdateReplacePolicy") == "Retain"
        for name, one in old.items()
        if kinds is None or one["Type"] in kinds
        if name not in new or fixed(one) != fixed(new[name])
    }


def fixed(resource: Mapping[str, Any]) -> dict[str, Any]:
    """The properties that a resource can only be created with."""
    schema = SCHEMAS.get_resource_schema("us-east-1", resource["Type"]).schema
    names = {path.rpartition("/")[2] for path in schema.get("createOnlyProperties", ())}
    said = resource.get("Properties", {})
    name = said["DatabaseInput"]["Name"] if resource["Type"] == "AWS::Glue::Database" else None
    return {"Type": resource["Type"], "Name": name, **{key: said[key] for key in names & said.keys()}}


def test_what_is_kept_can_be_imported_together_but_where_the_page_says_otherwise(made: Made, auto: Synthesized) -> None:
    """An import makes a template of the imported resources alone, so none of them may need another one."""
    _, more = TAKE_NOTHING[0]
    replicated = {name: more[name] for name in ("keep_deleted_days", "replicate_to", "replicate_to_key")}
    assert needy(made(ANALYSTS)) == {"Landing"}
    assert needy(auto) == {"Landing"}, "with a vault and its key"
    assert needy(made(replicated)) == {"Landing", "Lake"}
    page = PAGE.read_text()
    assert "*The landing bucket* cannot be imported" in page
    assert "With `replicate_to`, import without this setting, because *the lake's bucket names a role*" in " ".join(
        page.split()
    )


def needy(service: Synthesized) -> set[str]:
    """The kept resources that name a resource which is not kept."""
    there = service.template["Resources"]
    kept = {name for name, one in there.items() if one.get("DeletionPolicy") == KEPT}
    gone = there.keys() - kept
    return {name[:-8] for name in kept if gone & set(re.findall(r"\w+", json.dumps(there[name])))}
