"""The service on EMR Serverless: the same jobs, defined, started and heard of by other means."""

from __future__ import annotations

import json
import re
from typing import Any

import pytest

from forebay.errors import InvalidConfiguration
from forebay.settings import IngestSettings
from infra.context import settings_in
from infra.functions.each import usd_an_hour
from infra.settings import Settings
from lambdas.engine.submission import submission
from tests.infra.conftest import PYTHON
from tests.infra.synthesized import Synthesized, text
from tests.infra.test_stack import names


def definitions(service: Synthesized) -> dict[str, Any]:
    found = [p["Properties"] for p in service.of("SSM::Parameter").values()]
    return {one["Name"]: json.loads(text(one["Value"])) for one in found}


def test_one_application_starts_with_a_run_and_stops_without(emr: Synthesized) -> None:
    application = emr.one("EMRServerless::Application", "EngineApplication")
    assert (application["Type"], application["ReleaseLabel"]) == ("SPARK", "emr-spark-8.1.0")
    assert application["AutoStartConfiguration"] == {"Enabled": True}
    assert application["AutoStopConfiguration"] == {"Enabled": True, "IdleTimeoutMinutes": 15}
    assert application["MaximumCapacity"] == {"Cpu": "80 vCPU", "Memory": "320 GB"}
    assert emr.of("Glue::Job") == {}
    (report,) = [r for r in emr.report["pluginReports"] if r["pluginName"] == "AwsSolutions"]
    assert report["violations"] == []


def test_each_job_is_defined_so_that_it_can_be_submitted_and_understands_what_it_is_told(emr: Synthesized) -> None:
    found = definitions(emr)
    assert set(found) == {f"/forebay-prod-{job}" for job in ("ingest", "compact", "maintain", "reconcile")}
    assert all(len(text(p["Properties"]["Value"])) < 8192 for p in emr.of("SSM::Parameter").values())
    asked = submission(found["/forebay-prod-ingest"], {})
    assert (asked["mode"], asked["name"]) == ("STREAMING", "forebay-prod-ingest")
    settings = IngestSettings.from_argv(asked["jobDriver"]["sparkSubmit"]["entryPointArguments"])
    assert settings.lake.startswith("s3://<Lake")
    assert re.fullmatch(r"s3://<Lake\w+>/declarations", settings.service)
    assert settings.deployed_service.startswith("s3://cdk-")
    parameters = asked["jobDriver"]["sparkSubmit"]["sparkSubmitParameters"]
    assert f"spark.archives={PYTHON}#environment" in parameters
    jars = re.findall(r"([\w-]+)\.jar\b", parameters)
    assert (jars[:2], len(jars)) == (["delta-spark", "delta-storage"], 5), "EMR's, the log store, and Kernel's two"
    assert submission(found["/forebay-prod-compact"], {})["executionTimeoutMinutes"] == 120
    assert {one["WorkerType"] for one in found.values()} == {"G.1X"}


def test_functions_start_jobs_as_their_roles_and_nothing_else(emr: Synthesized) -> None:
    policies = {role: {a: names(r) for a, r in rights.items()} for role, rights in emr.policies().items()}
    application = {"EngineApplication"}
    started = {
        "StartIngest": ["Ingest"],
        "PlanCompaction": ["Compact"],
        "StartJob": ["Ingest", "Compact", "Maintain", "Reconcile"],
    }
    for function, jobs in started.items():
        rights = policies[f"Functions{function}Role"]
        assert rights["emr-serverless:StartJobRun"] == rights["emr-serverless:ListJobRuns"] == application
        assert rights["iam:PassRole"] == {f"{job}Role" for job in jobs}
        assert rights["ssm:GetParameter"] == {f"ssm:parameter/forebay-prod-{job.lower()}" for job in jobs}
    assert policies["FunctionsJobEndedRole"]["emr-serverless:GetJobRun"] == {"EngineApplication/jobruns/*"}
    assert policies["FunctionsStatusPageRole"]["emr-serverless:ListJobRuns"] == application
    assert policies["SchedulesRole"].keys() == {"lambda:InvokeFunction"}
    of_glue = {
        (role, action)
        for role, rights in policies.items()
        for action in rights
        if action.startswith("glue:") and "Job" in action
    }
    assert of_glue == set()
    passed = json.dumps([p["Properties"] for p in emr.of("IAM::Policy").values()])
    assert passed.count('"iam:PassedToService": "emr-serverless.amazonaws.com"') == passed.count("iam:PassRole")


def test_an_operator_sees_and_cancels_runs_and_has_the_function_start_them(emr: Synthesized) -> None:
    rights = {action: names(resources) for action, resources in emr.policies()["Operator"].items()}
    assert rights["emr-serverless:ListJobRuns"] == {"EngineApplication"}
    for action in ("GetJobRun", "CancelJobRun"):
        assert rights[f"emr-serverless:{action}"] == {"EngineApplication/jobruns/*"}
    assert "FunctionsStartJob" in rights["lambda:InvokeFunction"]


def test_the_jobs_roles_are_emrs_and_may_read_what_they_run(emr: Synthesized) -> None:
    for job in ("Ingest", "Compact", "Maintain", "Reconcile"):
        (trusted,) = emr.one("IAM::Role", f"{job}Role")["AssumeRolePolicyDocument"]["Statement"]
        assert trusted["Principal"] == {"Service": "emr-serverless.amazonaws.com"}
        assert trusted["Condition"]["StringEqualsIfExists"]["aws:SourceAccount"] == {"Ref": "AWS::AccountId"}
        rights = {action: names(resources) for action, resources in emr.policies()[f"{job}Role"].items()}
        assert "s3:studio-tools/python.tar.gz" in rights["s3:GetObject"]
        assert rights["logs:PutLogEvents"] == {f"{job}OutputLog"}


def test_the_clock_asks_a_function_for_upkeep_and_functions_know_the_engine(emr: Synthesized) -> None:
    by_clock = emr.of("Scheduler::Schedule")["SchedulesVacuum"]["Properties"]["Target"]
    assert text(by_clock["Arn"]).startswith("<FunctionsStartJob")
    asked = json.loads(text(by_clock["Input"]))
    assert asked == {"JobName": "forebay-prod-maintain", "Arguments": {"--vacuum": "lite"}, "Wait": True}
    for name in ("StartIngest", "PlanCompaction", "JobEnded", "StatusPage", "StartJob"):
        variables = emr.one("Lambda::Function", f"Functions{name}")["Environment"]["Variables"]
        assert text(variables["ENGINE"]).startswith("emr-serverless:<EngineApplication")


def test_the_end_of_a_run_of_the_application_is_heard_whatever_its_state(emr: Synthesized) -> None:
    (rule,) = emr.of("Events::Rule").values()
    pattern = rule["Properties"]["EventPattern"]
    assert (pattern["source"], pattern["detail-type"]) == (
        ["aws.emr-serverless"],
        ["EMR Serverless Job Run State Change"],
    )
    assert [text(one).startswith("<EngineApplication") for one in pattern["detail"]["applicationId"]] == [True]
    (states,) = pattern["detail"]["state"]
    assert "FAILED" not in states["anything-but"]
    assert "RUNNING" in states["anything-but"]


def test_what_emr_lacks_is_said_at_once() -> None:
    with pytest.raises(InvalidConfiguration) as refused:
        settings_in({"engine": "emr-serverless", "worker_type": "G.8X"})
    assert "worker_type G.8X has 32 vCPUs" in str(refused.value)
    with pytest.raises(InvalidConfiguration, match=r"G\.025X is only for Glue"):
        settings_in({"engine": "emr-serverless", "worker_type": "G.025X"})
    assert "python_modules must be the s3:// address of a packed virtual environment" in str(refused.value)


def test_what_a_budget_pays_for_is_reckoned_with_the_prices_of_the_engine() -> None:
    assert usd_an_hour(Settings()) == pytest.approx(2 * 0.44)
    assert usd_an_hour(Settings(engine="emr-serverless")) == pytest.approx(2 * (4 * 0.052624 + 16 * 0.0057785))
    assert usd_an_hour(Settings(engine="emr-serverless", dpu_hour_usd=0.5)) == pytest.approx(1)
