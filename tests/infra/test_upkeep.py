"""A job for compaction or maintenance exists when its script does, with the rights that it needs."""

from __future__ import annotations

from pathlib import Path

import aws_cdk as cdk
import pytest
from aws_cdk.assertions import Match, Template

from forebay.declaration.service import builtin_service
from forebay.errors import Misdeclared
from forebay.settings import CompactSettings
from infra.buckets import access_logs_bucket
from infra.engines import Glue
from infra.jobs import JobCode, upkeep_jobs
from infra.keys import Keys
from infra.lake import Lake
from infra.settings import Settings
from tests.infra.synthesized import FLAGS, text

pytestmark = pytest.mark.xdist_group("cdk")


def template_with(scripts: Path) -> Template:
    settings = Settings()
    stack = cdk.Stack(cdk.App(outdir=str(scripts / "out"), context=FLAGS), "Upkeep")
    keys = Keys(stack, "Keys", settings=settings, landing_bucket_arn="arn:landing", topic_arn="arn:topic")
    lake = Lake(stack, "Lake", settings=settings, keys=keys, access_logs=access_logs_bucket(stack, settings=settings))
    code = JobCode(stack, "Code", service=builtin_service())
    upkeep_jobs(
        stack, settings=settings, engine=Glue(settings), code=code, lake=lake, key=keys.data, told={}, scripts=scripts
    )
    return Template.from_stack(stack)


def test_only_jobs_with_a_script_are_made_and_those_understand_their_arguments(tmp_path: Path) -> None:
    (tmp_path / "compact.py").write_text("print('compact')")
    template = template_with(tmp_path)
    (job,) = template.find_resources("AWS::Glue::Job").values()
    properties = job["Properties"]
    assert properties["Name"] == "forebay-dev-compact"
    assert (properties["Command"]["Name"], properties["Timeout"]) == ("glueetl", 120)
    argv = [word for name, value in properties["DefaultArguments"].items() for word in (name, text(value))]
    assert CompactSettings.from_argv(argv).lake.startswith("s3://<Lake")
    template.has_resource_properties("AWS::Logs::LogGroup", Match.object_like({"LogGroupName": "/forebay-dev/compact"}))


def test_without_the_built_log_store_the_app_says_what_to_run(tmp_path: Path) -> None:
    with pytest.raises(Misdeclared, match="make setup"):
        JobCode(cdk.Stack(), "Code", service=builtin_service(), log_store_jar=tmp_path / "missing.jar")
