"""Jobs on EMR Serverless, as functions see them: Glue's words in, requests that EMR's own API takes out."""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta
from types import SimpleNamespace
from typing import Any

import boto3
import pytest
from botocore.validate import ParamValidator

from forebay.settings import CompactSettings, IngestSettings
from lambdas.engine.emr_serverless import EmrServerless
from lambdas.engine.jobs import jobs_of
from lambdas.job_ended.run import console, ended, measured
from lambdas.publish_freshness.overdue import check_schedules
from lambdas.start_ingest.why_not import why_not
from lambdas.start_job.handler import start

NOW = datetime.now(UTC)
ASSETS = "s3://assets"
ARGUMENTS = {
    "--datalake-formats": "delta",
    "--conf": "spark.a=1 --conf spark.b=2",
    "--extra-py-files": f"{ASSETS}/forebay.zip",
    "--extra-jars": f"{ASSETS}/logstore.jar,{ASSETS}/kernel.jar",
    "--additional-python-modules": "s3://mine/python.tar.gz",
    "--enable-metrics": "true",
    "--enable-continuous-cloudwatch-log": "true",
    "--custom-logGroup-prefix": "/forebay-dev/ingest",
    "--spark-event-logs-path": "s3://artefacts/spark-events/",
    "--TempDir": "s3://artefacts/scratch/",
    "--lake": "s3://lake",
    "--service": "s3://lake/declarations",
    "--deployed_service": f"{ASSETS}/1234.toml",
    "--queue_url": "https://sqs/q",
}


def definition(name: str = "ingest", command: str = "gluestreaming", **more: Any) -> dict[str, Any]:
    where = {"Name": command, "ScriptLocation": f"{ASSETS}/{name}.py"}
    role = "arn:aws:iam::123456789012:role/ingest"
    workers = {"WorkerType": "G.1X", "NumberOfWorkers": 4}
    return {"Name": name, "Role": role, "Command": where, "DefaultArguments": ARGUMENTS, **workers} | more


class Ssm:
    class exceptions:  # noqa: N801
        class ParameterNotFound(Exception):
            pass

    def __init__(self, *definitions: dict[str, Any]) -> None:
        self.values = {f"/{one['Name']}": json.dumps(one) for one in definitions or (definition(),)}

    def get_parameter(self, **asked: Any) -> dict[str, Any]:
        if asked["Name"] not in self.values:
            raise self.exceptions.ParameterNotFound
        return {"Parameter": {"Value": self.values[asked["Name"]], "LastModifiedDate": NOW - timedelta(days=60)}}


class Emr:
    """Lists and takes runs; what it is asked must be what the real API's model allows."""

    MODEL = boto3.client("emr-serverless", region_name="eu-west-1").meta.service_model

    class exceptions:  # noqa: N801
        class ResourceNotFoundException(Exception):
            pass

    def __init__(self, *runs: dict[str, Any]) -> None:
        self.runs, self.started = list(runs), list[dict[str, Any]]()

    def check(self, operation: str, asked: dict[str, Any]) -> None:
        report = ParamValidator().validate(asked, self.MODEL.operation_model(operation).input_shape)
        assert not report.has_errors(), report.generate_report()
        assert asked["applicationId"] == "00f1"

    def get_paginator(self, name: str) -> Emr:
        assert name == "list_job_runs"
        return self

    def paginate(self, **asked: Any) -> Any:
        self.check("ListJobRuns", asked)
        states, since, until = (asked.get(name) for name in ("states", "createdAtAfter", "createdAtBefore"))
        found = [run for run in self.runs if not states or run["state"] in states]
        found = [run for run in found if not until or run["createdAt"] < until]
        yield {"jobRuns": [run for run in found if not since or run["createdAt"] > since]}

    def get_job_run(self, **asked: Any) -> dict[str, Any]:
        self.check("GetJobRun", asked)
        found = [run for run in self.runs if run["id"] == asked["jobRunId"]]
        if not found:
            raise self.exceptions.ResourceNotFoundException
        return {"jobRun": found[0]}

    def start_job_run(self, **asked: Any) -> dict[str, str]:
        self.check("StartJobRun", asked)
        self.started.append(asked)
        return {"jobRunId": "00new"}


def run(state: str, *, hours_ago: float = 1, name: str = "ingest", details: str = "", **more: Any) -> dict[str, Any]:
    at = NOW - timedelta(hours=hours_ago)
    about = {"id": f"{state.lower()}{hours_ago:g}", "name": name, "state": state, "stateDetails": details}
    return {**about, "mode": "BATCH", "createdAt": at, "updatedAt": at + timedelta(minutes=5), **more}


def jobs(*runs: dict[str, Any], definitions: tuple[dict[str, Any], ...] = ()) -> tuple[EmrServerless, Emr]:
    emr = Emr(*runs)
    return EmrServerless(emr, Ssm(*definitions), "00f1"), emr


def submitted(arguments: dict[str, str] | None = None, **of_the_job: Any) -> dict[str, Any]:
    engine, emr = jobs(definitions=(definition(**of_the_job),))
    assert engine.start_job_run(JobName=of_the_job.get("name", "ingest"), Arguments=arguments) == {"JobRunId": "00new"}
    return emr.started[0]


def conf_of(asked: dict[str, Any]) -> dict[str, str]:
    said = asked["jobDriver"]["sparkSubmit"]["sparkSubmitParameters"].split("--conf ")[1:]
    return dict(pair.strip().split("=", 1) for pair in said)


def test_the_continuous_job_is_a_streaming_run_that_emr_begins_again_by_itself() -> None:
    asked = submitted()
    assert (asked["mode"], asked["retryPolicy"]) == ("STREAMING", {"maxFailedAttemptsPerHour": 5})
    assert asked["executionRoleArn"] == "arn:aws:iam::123456789012:role/ingest"
    assert "executionTimeoutMinutes" not in asked
    log = asked["configurationOverrides"]["monitoringConfiguration"]["cloudWatchLoggingConfiguration"]
    assert log == {"enabled": True, "logGroupName": "/forebay-dev/ingest/output"}


def test_a_drain_and_upkeep_are_tried_once() -> None:
    assert (submitted({"--drain": "true"})["mode"], submitted({"--drain": "true"})["retryPolicy"]) == (
        "BATCH",
        {"maxAttempts": 1},
    )
    asked = submitted({"--tables": "a,b"}, name="compact", command="glueetl", Timeout=120)
    assert (asked["mode"], asked["name"], asked["executionTimeoutMinutes"]) == ("BATCH", "compact", 120)


def test_the_script_is_told_what_it_understands_and_spark_gets_the_rest() -> None:
    driver = submitted({"--drain": "true"})["jobDriver"]["sparkSubmit"]
    settings = IngestSettings.from_argv(driver["entryPointArguments"])
    assert (settings.lake, settings.queue_url, settings.drain) == ("s3://lake", "https://sqs/q", True)
    assert (settings.service, settings.deployed_service) == ("s3://lake/declarations", f"{ASSETS}/1234.toml")
    conf = conf_of(submitted())
    assert (conf["spark.a"], conf["spark.b"]) == ("1", "2")
    assert conf["spark.jars"].endswith(ARGUMENTS["--extra-jars"])
    assert conf["spark.submit.pyFiles"] == f"{ASSETS}/forebay.zip"
    assert conf["spark.archives"] == "s3://mine/python.tar.gz#environment"
    assert conf["spark.dynamicAllocation.maxExecutors"] == "3"


@pytest.mark.parametrize(("worker_type", "cores", "gigabytes"), [("G.1X", 4, 16), ("G.2X", 8, 32), ("G.4X", 16, 64)])
def test_a_worker_is_as_large_as_glues_and_leaves_python_as_much_of_it(
    worker_type: str, cores: int, gigabytes: int
) -> None:
    """EMR's own default is 14 GB of heap in 16 GB, whatever the setting says; files are read outside the heap."""
    conf = conf_of(submitted(WorkerType=worker_type))
    whole = 1 + float(conf["spark.emr-serverless.memoryOverheadFactor"])
    for role in ("driver", "executor"):
        assert int(conf[f"spark.{role}.cores"]) == cores
        assert int(conf[f"spark.{role}.memory"].removesuffix("g")) * whole == pytest.approx(gigabytes)


@pytest.mark.parametrize(("workers", "executors", "at_first"), [(2, "1", "1"), (10, "9", "3")])
def test_a_job_begins_with_no_more_executors_than_it_may_have(workers: int, executors: str, at_first: str) -> None:
    conf = conf_of(submitted(NumberOfWorkers=workers))
    assert conf["spark.dynamicAllocation.maxExecutors"] == executors
    assert conf["spark.executor.instances"] == at_first


def test_upkeep_is_told_its_own_arguments_too() -> None:
    arguments = {name: value for name, value in ARGUMENTS.items() if name != "--queue_url"}
    job = definition("compact", "glueetl", DefaultArguments=arguments)
    engine, emr = jobs(definitions=(job,))
    done = start({"JobName": "compact", "Arguments": {"--round": "second"}}, engine, s3=None, artefacts="", ours=())
    assert done == "started 00new"
    settings = CompactSettings.from_argv(emr.started[0]["jobDriver"]["sparkSubmit"]["entryPointArguments"])
    assert settings.round == "second"


def test_a_job_without_a_definition_is_not_there() -> None:
    """So a schedule's run of it waits."""
    engine, emr = jobs()
    with pytest.raises(engine.exceptions.EntityNotFoundException, match="compact"):
        engine.start_job_run(JobName="compact")
    assert emr.started == []


@pytest.mark.parametrize("state", ["SUBMITTED", "PENDING", "SCHEDULED", "QUEUED", "RUNNING", "CANCELLING"])
def test_a_job_that_is_at_work_is_not_started_again_however_long_ago_it_began(state: str) -> None:
    engine, emr = jobs(run(state, hours_ago=24 * 60))
    assert start({"JobName": "ingest"}, engine, s3=None, artefacts="", ours=()) == "it is already running"
    assert emr.started == []
    assert why_not(engine.get_job_runs(JobName="ingest", MaxResults=50)["JobRuns"], NOW) == "it is already running"


def test_runs_of_other_jobs_of_the_application_are_not_this_jobs() -> None:
    engine, _ = jobs(run("RUNNING", name="compact"), run("SUCCESS", hours_ago=2))
    (found,) = engine.get_job_runs(JobName="ingest", MaxResults=50)["JobRuns"]
    assert (found["JobRunState"], found["StartedOn"]) == ("SUCCEEDED", NOW - timedelta(hours=2))


def test_runs_come_newest_first_and_what_a_person_stopped_long_ago_is_known() -> None:
    engine, _ = jobs(run("FAILED", hours_ago=3, details="boom"), run("SUCCESS", hours_ago=2))
    found = engine.get_job_runs(JobName="ingest", MaxResults=50)["JobRuns"]
    assert [(one["JobRunState"], one.get("ErrorMessage")) for one in found] == [("SUCCEEDED", None), ("FAILED", "boom")]
    engine, _ = jobs(run("CANCELLED", hours_ago=24 * 9))
    found = engine.get_job_runs(JobName="ingest", MaxResults=50)["JobRuns"]
    assert "somebody stopped it" in why_not(found, NOW)


def test_a_failure_of_today_hides_no_run_that_succeeded_before() -> None:
    """The list of the last day has only the failure."""
    target = {"Input": json.dumps({"JobName": "ingest", "Arguments": {"--round": "second"}})}
    weekly = {"ScheduleExpression": "cron(30 2 ? * SUN *)", "LastModificationDate": NOW - timedelta(days=60)}
    scheduler = SimpleNamespace(get_schedule=lambda **_: {**weekly, "Target": target})
    for days_ago, late in ((3, 0), (8, 1)):
        engine, _ = jobs(run("FAILED", hours_ago=1), run("SUCCESS", hours_ago=24 * days_ago))
        found = check_schedules(
            "games", "g", ["order"], scheduler=scheduler, jobs=engine, arguments_known=False, now=NOW
        )
        assert found.overdue == late


def test_a_run_with_code_of_before_is_known_as_one_and_runs_that_code() -> None:
    asked = submitted({"--scriptLocation": f"{ASSETS}/old.py", "--extra-py-files": f"{ASSETS}/old.zip"})
    assert asked["jobDriver"]["sparkSubmit"]["entryPoint"] == f"{ASSETS}/old.py"
    assert f"spark.submit.pyFiles={ASSETS}/old.zip" in asked["jobDriver"]["sparkSubmit"]["sparkSubmitParameters"]
    engine, _ = jobs(run("RUNNING", name=asked["name"], mode="STREAMING"))
    (found,) = engine.get_job_runs(JobName="ingest", MaxResults=50)["JobRuns"]
    assert list(found["Arguments"]) == ["--scriptLocation"]


def test_a_run_may_have_workers_and_an_end_of_its_own() -> None:
    engine, emr = jobs(definitions=(definition(),))
    engine.start_job_run(JobName="ingest", WorkerType="G.2X", NumberOfWorkers=2, Timeout=90)
    assert conf_of(emr.started[0])["spark.driver.cores"] == "8"
    assert conf_of(emr.started[0])["spark.dynamicAllocation.maxExecutors"] == "1"
    assert emr.started[0]["executionTimeoutMinutes"] == 90


def test_a_deploy_that_changes_the_job_is_seen_by_its_time() -> None:
    job = jobs()[0].get_job(JobName="ingest")["Job"]
    assert job["LastModifiedOn"] == NOW - timedelta(days=60)
    assert job["Command"]["ScriptLocation"] == f"{ASSETS}/ingest.py"


@pytest.mark.parametrize(
    ("state", "details", "ours", "failed"),
    [
        ("SUCCESS", "", "SUCCEEDED", 0),
        ("FAILED", "InvalidConfiguration: no such queue", "FAILED", 1),
        ("CANCELLED", "", "STOPPED", 0),
        ("CANCELLED", "Job run timed out", "TIMEOUT", 1),
        ("WONDERED", "", "WONDERED", 1),
    ],
)
def test_the_end_of_a_run_is_told_as_of_any_engine(state: str, details: str, ours: str, failed: int) -> None:
    said = run(state, details=details, totalExecutionDurationSeconds=90, billedResourceUtilization={"vCPUHour": 0.5})
    engine, _ = jobs(said)
    detail = ended({"applicationId": "00f1", "jobRunId": said["id"], "state": state}, engine)
    assert (detail["jobName"], detail["state"]) == ("ingest", ours)
    event = measured(detail, engine.get_job_run(JobName="ingest", RunId=said["id"])["JobRun"], "games")
    assert (event.failed, event.seconds, event.dpu_seconds) == (failed, 90, 450)
    assert detail["message"] == (details if failed else "")
    assert "serverless-applications/00f1" in console(detail, "eu-west-1")


def test_a_run_that_is_gone_by_then_is_told_of_all_the_same() -> None:
    detail = ended({"applicationId": "00f1", "jobRunId": "00gone", "state": "FAILED"}, jobs()[0])
    assert (detail["jobName"], detail["state"]) == ("00gone", "FAILED")


@pytest.mark.parametrize("name", [{}, {"name": ""}])
def test_a_run_that_somebody_started_without_a_name_is_told_of_by_its_number(name: dict[str, str]) -> None:
    """CloudWatch takes no dimension without a value."""
    said = {k: v for k, v in run("FAILED").items() if k != "name"} | name
    detail = ended({"applicationId": "00f1", "jobRunId": said["id"], "state": "FAILED"}, jobs(said)[0])
    assert detail["jobName"] == said["id"]


def test_the_engine_is_told_by_its_name(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AWS_DEFAULT_REGION", "eu-west-1")
    assert jobs_of("glue").meta.service_model.service_name == "glue"
    assert isinstance(jobs_of("emr-serverless:00f1"), EmrServerless)
