"""The service as it is deployed: from the template alone, files that land become rows, by the template's own jobs. It declares
that rows of deleted files leave, and its freshness is another one than the default.

One story on one deployment, told in order: each test goes on where the one before it ended.
"""

from __future__ import annotations

import json
import time
from collections.abc import Iterable, Iterator
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from functools import partial
from typing import Any

import pytest

from forebay.capacity.pace import NAME, Done, Pace
from forebay.lake.layout import CHECKPOINT
from forebay.operate.lake_view import LakeView
from forebay.operate.looking.accounts import accounts
from forebay_local.twin import assembly
from forebay_local.twin.fire import fire
from forebay_local.twin.policy import USED
from forebay_local.twin.synth import assembly as assembly_of_the_twin
from forebay_local.twin.twin import Twin
from infra.bundle import ROOT
from lambdas import environment
from lambdas.start_ingest.starting import Settings, start
from tests.infra.synthesized import synthesized
from tests.journey.story import event, lines
from tests.twin.waiting import note_that_files_wait

pytestmark = [pytest.mark.jvm, pytest.mark.deep]


FILES = 20
NOTICES: dict[str, str] = {}
"""Messages of S3 that arrive later, or once more."""


def runs(twin: Twin, job: str) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = twin.client("glue").get_job_runs(JobName=job)["JobRuns"]
    return found


def wait(twin: Twin, job: str, within_s: float = 400) -> dict[str, Any]:
    until = time.monotonic() + within_s
    while (run := runs(twin, job)[0])["JobRunState"] in ("STARTING", "RUNNING") and time.monotonic() < until:
        time.sleep(0.5)
    return run


CONTEXT = json.loads((ROOT / "cdk.json").read_text())["context"]
SERVICE = """
name = "games"
on_delete = "forget"
[[tables]]
name = "{game}"
"""


@pytest.fixture(autouse=True, scope="module")
def deployed(twin: Twin, tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """As an operator does who changes two things of a service that is there. Afterwards it is again as it was."""
    service, folder = tmp_path_factory.mktemp("service"), tmp_path_factory.mktemp("assembly")
    (service / "service.toml").write_text(SERVICE)
    more: dict[str, Any] = {"env": "local", "service": str(service), "freshness": "30 min"}
    synthesized(folder, reviewed=False, **{**CONTEXT, **more})
    assembly.deploy(assembly.read(folder), client=twin.client)
    yield
    assembly.deploy(assembly.read(assembly_of_the_twin()), client=twin.client)


@pytest.fixture(autouse=True, scope="module")
def impatient(twin: Twin, deployed: None) -> None:
    """A run ends when a poll finds nothing. The twin's queue tells at once all that it has: no poll needs to wait."""
    glue, job = twin.client("glue"), f"{twin.stack}-ingest"
    definition = glue.get_job(JobName=job)["Job"]
    update = {name: definition[name] for name in ("Role", "Command", "DefaultArguments", "ExecutionProperty")}
    update["DefaultArguments"] = {**update["DefaultArguments"], "--wait_s": "1"}
    glue.update_job(JobName=job, JobUpdate=update)


def test_files_that_have_waited_wake_the_job_that_makes_them_rows_and_ends(twin: Twin) -> None:
    job = f"{twin.stack}-ingest"
    for number in range(FILES):
        body = lines([event("alpha", number), event("beta", number), *(["{broken"] if number == 0 else [])])
        twin.client("s3").put_object(Bucket=twin.landing_bucket, Key=f"{twin.prefix}{number}.json", Body=body)
    assert runs(twin, job) == []

    assert fire(twin.client, "start-ingest") == "files wait, and there is still time"
    note_that_files_wait(twin.client, twin.lake_bucket, minutes=9)  # enough for the default of 10 minutes
    assert fire(twin.client, "start-ingest") == "files wait, and there is still time"
    note_that_files_wait(twin.client, twin.lake_bucket, minutes=29)
    assert fire(twin.client, "start-ingest") == "started"

    (run,) = runs(twin, job)
    assert run["Arguments"]["--drain"] == "true"
    assert fire(twin.client, "start-ingest") == "it is already running"
    done = wait(twin, job)
    assert done["JobRunState"] == "SUCCEEDED", done.get("ErrorMessage")
    sums = accounts(LakeView(f"s3://{twin.lake_bucket}"))
    assert sums.differences() == []
    assert sums.files == {"loaded": FILES}
    assert sums.rows == {"alpha": FILES, "beta": FILES, "_forebay/quarantine": 1, "_forebay/parked": 0}
    assert fire(twin.client, "start-ingest") == "nothing waits"


def land(twin: Twin, numbers: Iterable[int]) -> None:
    for number in numbers:
        key = f"{twin.prefix}{number}.json"
        twin.client("s3").put_object(Bucket=twin.landing_bucket, Key=key, Body=lines([event("alpha", number)]))


def test_a_run_stays_on_while_much_arrives_and_a_deploy_replaces_its_code_after_a_batch(twin: Twin) -> None:
    """One freshness all the time. The clock of each look is given, so nobody waits for it."""
    glue, s3, job = twin.client("glue"), twin.client("s3"), f"{twin.stack}-ingest"
    lake, look = LakeView(f"s3://{twin.lake_bucket}"), partial(look_at, twin)
    noted = {"Bucket": twin.lake_bucket, "Key": f"{CHECKPOINT}/{NAME}"}
    pace = Pace.of(s3.get_object(**noted)["Body"].read())
    assert (len(pace.firsts), sum(done.files for done in pace.batches)) == (1, FILES), "as the drain measured it"
    assert look(minutes=1) == "nothing waits"

    land(twin, range(500, 510))
    delete_some(twin)
    assert look() == "files wait, and there is still time"
    # As the job notes it in a busy hour: work that fills the time.
    now = time.time()
    busy = tuple(Done(now - 60 * minute, 3000, 58) for minute in range(60, -1, -1))
    s3.put_object(**noted, Body=replace(pace, batches=busy).text().encode())
    assert look() == "started, to keep running"
    (run, _) = runs(twin, job)
    assert "--drain" not in run["Arguments"]
    loaded = {"loaded": FILES - 2 + 10, "superseded": 3, "deleted": 3, "duplicate": 1}
    until = time.monotonic() + 300
    while accounts(lake).files != loaded and time.monotonic() < until:
        time.sleep(1)
    assert accounts(lake).files == loaded
    assert look() == "it is already running"

    definition = glue.get_job(JobName=job)["Job"]
    update = {name: definition[name] for name in ("Role", "Command", "DefaultArguments", "ExecutionProperty")}
    glue.update_job(JobName=job, JobUpdate={**update, "NumberOfWorkers": 3})
    land(twin, range(510, 520))
    assert "asked to stop after its batch" in fire(twin.client, "start-ingest")
    done = wait(twin, job)
    assert (done["Id"], done["JobRunState"]) == (run["Id"], "SUCCEEDED"), done.get("ErrorMessage")
    assert accounts(lake).differences() == []

    s3.put_object(**noted, Body=pace.text().encode())  # the busy hour is long over
    land(twin, range(520, 525))
    assert fire(twin.client, "start-ingest") == "files wait, and there is still time"


def key_of(twin: Twin, name: object) -> dict[str, str]:
    return {"Bucket": twin.landing_bucket, "Key": f"{twin.prefix}{name}.json"}


def delete_some(twin: Twin) -> None:
    """The bucket has versions. A key is deleted, and one version for good. Two keys are deleted and come back, one of them with
    the same bytes: its deletion is announced after the next run, and that of the other after its new version."""
    s3 = twin.client("s3")
    same = s3.get_object(**key_of(twin, 2))["Body"].read()
    s3.delete_object(**key_of(twin, 0))
    s3.delete_object(**key_of(twin, 1), VersionId=s3.head_object(**key_of(twin, 1))["VersionId"])
    for number, body in ((2, same), (3, lines([event("alpha", 3)]))):
        s3.delete_object(**key_of(twin, number))
        NOTICES[f"deletion of {number}"] = taken(twin, f"{number}.json", "ObjectRemoved:DeleteMarkerCreated")
        s3.put_object(**key_of(twin, number), Body=body)
    NOTICES["deletion of 0"] = taken(twin, "0.json", "ObjectRemoved:DeleteMarkerCreated")
    for number in (0, 3):
        announce_again(twin, f"deletion of {number}")


def announce_again(twin: Twin, notice: str) -> None:
    twin.client("sqs").send_message(QueueUrl=twin.queue_url, MessageBody=NOTICES[notice])


def look_at(twin: Twin, *, minutes: float = 0) -> str:
    """What the deployed function does, with its own settings, when so much time has passed."""
    function = twin.client("lambda").get_function_configuration(FunctionName=f"{twin.stack}-start-ingest")
    settings = environment.read(Settings, function["Environment"]["Variables"])
    clients = {name: twin.client(name) for name in ("glue", "sqs", "s3", "sns")}
    return start(settings, **clients, now=datetime.now(UTC) + timedelta(minutes=minutes))


def test_the_clock_wakes_the_planner_whose_job_makes_many_files_few(twin: Twin) -> None:
    glue, s3, job = twin.client("glue"), twin.client("s3"), f"{twin.stack}-compact"
    lake, health = LakeView(f"s3://{twin.lake_bucket}"), "_forebay/health/alpha.json"
    before = lake.facts("alpha")
    assert before is not None
    assert before.files > 1
    assert fire(twin.client, "plan-compaction") == "no table needs compaction"
    # As if hours had passed: any small file is worth a run, and the run may take files that came just now.
    known = json.load(s3.get_object(Bucket=twin.lake_bucket, Key=health)["Body"])
    assert known["waiting"] > 0
    s3.put_object(Bucket=twin.lake_bucket, Key=health, Body=json.dumps({**known, "hot_wakes_at": 1}).encode())
    definition = glue.get_job(JobName=job)["Job"]
    update = {name: definition[name] for name in ("Role", "Command", "DefaultArguments", "ExecutionProperty")}
    update["DefaultArguments"] = {**update["DefaultArguments"], "--now": "true"}
    glue.update_job(JobName=job, JobUpdate=update)

    assert fire(twin.client, "plan-compaction") == "started for 1 table"

    done = wait(twin, job)
    assert done["JobRunState"] == "SUCCEEDED", done.get("ErrorMessage")
    after = lake.facts("alpha")
    assert after is not None
    assert (after.files, after.rows) == (1, before.rows)
    assert fire(twin.client, "plan-compaction") == "no table needs compaction"


def test_the_clock_wakes_maintenance_which_tells_how_it_went(twin: Twin) -> None:
    job = f"{twin.stack}-maintain"
    assert fire(twin.client, "vacuum") == f"started {runs(twin, job)[0]['Id']}"
    done = wait(twin, job)
    assert done["JobRunState"] == "SUCCEEDED", done.get("ErrorMessage")


def test_a_file_that_s3_told_nobody_of_is_found_announced_and_loaded_with_those_that_came_after_the_deploy(
    twin: Twin,
) -> None:
    job = f"{twin.stack}-reconcile"
    for notice in NOTICES:
        announce_again(twin, notice)
    land(twin, [9999])
    taken(twin, "9999.json", "ObjectCreated:Put")
    time.sleep(1.1)  # S3 tells of whole seconds
    glue = twin.client("glue")
    glue.start_job_run(JobName=job, Arguments={"--settle_hours": "0"})
    done = wait(twin, job)
    assert done["JobRunState"] == "SUCCEEDED", done.get("ErrorMessage")

    glue.start_job_run(JobName=f"{twin.stack}-ingest", Arguments={"--drain": "true"})
    assert wait(twin, f"{twin.stack}-ingest")["JobRunState"] == "SUCCEEDED"
    after = accounts(LakeView(f"s3://{twin.lake_bucket}"))
    assert after.differences() == []
    assert after.rows["alpha"] == after.files["loaded"] == FILES - 2 + 25 + 1


def taken(twin: Twin, name: str, event_name: str) -> str:
    """The one message of this event, which leaves the queue. The queue keeps all others."""
    sqs, where = twin.client("sqs"), {"QueueUrl": twin.queue_url}
    found: list[dict[str, Any]] = []
    while got := sqs.receive_message(**where, MaxNumberOfMessages=10, WaitTimeSeconds=0).get("Messages"):
        found += got
    (message,) = [one for one in found if f"/{name}" in one["Body"] and event_name in one["Body"]]
    sqs.delete_message(**where, ReceiptHandle=message["ReceiptHandle"])
    for other in found:
        if other is not message:
            sqs.change_message_visibility(**where, ReceiptHandle=other["ReceiptHandle"], VisibilityTimeout=0)
    return str(message["Body"])


def test_the_tables_are_in_the_catalog(twin: Twin) -> None:
    (database,) = [found["Name"] for found in twin.client("glue").get_databases()["DatabaseList"]]
    tables = twin.client("glue").get_tables(DatabaseName=database)["TableList"]
    assert {table["Name"] for table in tables} >= {"alpha", "beta"}


def test_every_metric_of_the_dashboard_was_published(twin: Twin) -> None:
    """By these runs and the function that measures, save what only trouble publishes; one kind of it was among the files."""
    for schedule in ("publish-freshness", "measure-trend", "status-page"):
        fire(twin.client, schedule)
    pages = twin.client("cloudwatch").get_paginator("list_metrics").paginate(Namespace=twin.stack)
    published = {metric["MetricName"] for page in pages for metric in page["Metrics"]}
    name = f"{twin.stack}-{twin.region}"
    body = json.loads(twin.client("cloudwatch").get_dashboard(DashboardName=name)["DashboardBody"])
    shown = {name for widget in body["widgets"] for name in _ours(widget["properties"].get("metrics", []), twin.stack)}
    # What trouble publishes, and tables that somebody watches.
    rare = {n for n in shown if n.startswith(("TableFailed", "RecordsQuarantined", "TableNot", "TableFreshness"))}
    assert shown - published == rare - {"RecordsQuarantinedNotJson"}
    assert len(shown) > 15


def _ours(metrics: list[list[Any]], namespace: str) -> set[str]:
    found = set()
    for metric in metrics:
        if metric[0] == namespace:
            found.add(metric[1])
        elif isinstance(metric[0], dict) and "MetricName=" in metric[0].get("expression", ""):
            found.add(metric[0]["expression"].split('MetricName="')[1].split('"')[0])
    return found


BY_THE_PLATFORM = {"logs:CreateLogGroup", "logs:CreateLogStream", "logs:PutLogEvents", "s3:GetBucketLocation"}
"""Lambda and Glue write logs with the role, and Glue's own client asks where a bucket is; the twin does so in part."""
NOT_IN_THIS_STORY = {
    "FunctionsJobEndedRole": {"sns:Publish", "sqs:SendMessage", "kms:Decrypt", "kms:GenerateDataKey"},  # nothing failed
    "FunctionsStartJobRole": {  # no schedule met a run at work
        *("s3:GetObject", "s3:PutObject", "s3:DeleteObject", "s3:ListBucket", "kms:Decrypt", "kms:GenerateDataKey"),
    },
    "FunctionsStartIngestRole": {"sns:Publish", "kms:Decrypt"},  # no deploy failed
    # The ledger is too short for a checkpoint, and no schedule is overdue.
    "FunctionsPublishFreshnessRole": {"kms:Decrypt", "glue:GetJobRuns"},
    "FunctionsAnnounceFilesRole": {  # S3 lost no notification; tests/twin tells its story
        *("s3:ListBucket", "s3:ListBucketVersions", "s3:GetObject"),
        *("sqs:SendMessage", "kms:Decrypt", "kms:GenerateDataKey"),
    },
    "IngestRole": {
        *("sqs:ChangeMessageVisibility", "sqs:SendMessage"),  # no batch took minutes; S3 withheld no file
        *(
            "s3:ListBucketVersions",
            "events:PutEvents",
        ),  # no feed declares `complete`: tests/journey/test_complete.py does
    },
    "ReconcileRole": {
        *("s3:PutObject", "s3:DeleteObject"),  # what Glue leaves of a run: scratch, Spark's events
        *("s3:GetObjectVersion", "events:PutEvents"),  # no feed declares `complete`
    },
}
MULTIPART = {"s3:AbortMultipartUpload", "s3:ListMultipartUploadParts", "s3:ListBucketMultipartUploads"}
"""Of jobs, for files of more than some MB, and what is left of uploads that broke off."""


def test_every_role_did_its_work_with_its_own_rights_and_needs_all_that_it_has(twin: Twin) -> None:
    """The twin holds each request against the policies of the role that makes it; too little would have stopped the story. Too
    much shows here: a right that nobody used, where it is not said why it is there all the same."""
    said = [json.loads(line) for line in (twin.state / USED).read_text().splitlines()]
    # Each job proves at its start that the lake refuses a commit put without a condition. The ingest job may not delete the
    # data file that it wrote before it found out that it knew a file's bytes. Maintenance may. Nothing else may be refused.
    refused = {
        (line["action"], line["resource"].split("/_forebay/")[-1].rpartition("/")[0])
        for line in said
        if not line["allowed"]
    }
    left = ("s3:DeleteObject", f"arn:aws:s3:::{twin.lake_bucket}/alpha")
    assert refused == {("s3:PutObject", "probe/_delta_log"), left}
    iam, idle = twin.client("iam"), {}
    for name in [role["RoleName"] for role in twin.client("iam").list_roles()["Roles"]]:
        role = name.removeprefix(f"{twin.stack}-").partition("-")[0][:-8]
        excused = BY_THE_PLATFORM | NOT_IN_THIS_STORY.get(role, set()) | (set() if "Functions" in role else MULTIPART)
        idle[role] = set(_actions(iam, name)) - {line["action"] for line in said if line["role"] == name} - excused
    assert {role: rights for role, rights in idle.items() if rights} == {}
    assert len(idle) == 12


def _actions(iam: Any, role: str) -> Iterator[str]:
    for policy in iam.list_role_policies(RoleName=role)["PolicyNames"]:
        for statement in iam.get_role_policy(RoleName=role, PolicyName=policy)["PolicyDocument"]["Statement"]:
            actions = statement["Action"]
            yield from actions if isinstance(actions, list) else [actions]
