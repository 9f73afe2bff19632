"""What runs in the twin runs from the deployed template: functions from their code, schedules, alarms, rules; and jobs.

The jobs here are small scripts, and one that refuses its settings; `tests/journey/test_deployed.py` has a whole one.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from botocore.exceptions import ClientError

from forebay.errors import Halt, InvalidConfiguration
from forebay.notification import read_message
from forebay_local.twin import alarms, clients, fire
from forebay_local.twin import twin as twins
from forebay_local.twin.run import LOG_STORE_JAR, class_path, reason
from forebay_local.twin.twin import Twin


@pytest.fixture(scope="module")
def quick(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Twin]:
    with twins.running(tmp_path_factory.mktemp("quick")) as twin:
        twin.client("s3").create_bucket(Bucket="scripts", CreateBucketConfiguration={"LocationConstraint": twin.region})
        yield twin


def eventually(look: Callable[[], Any], within_s: float = 60) -> Any:
    until = time.monotonic() + within_s
    while not (found := look()) and time.monotonic() < until:
        time.sleep(0.1)
    return found


def shown_by_dashboards(twin: Twin) -> set[str]:
    """The names of the metrics of our own that graphs show."""
    cloudwatch = twin.client("cloudwatch")
    names = [one["DashboardName"] for one in cloudwatch.list_dashboards()["DashboardEntries"]]
    bodies = [json.loads(cloudwatch.get_dashboard(DashboardName=name)["DashboardBody"]) for name in names]
    properties = [widget["properties"] for body in bodies for widget in body["widgets"]]
    metrics = [metric for one in properties for metric in one.get("metrics", ())]
    return {metric[1] for metric in metrics if metric[0] == twin.stack}


# --- schedules and functions ---


def test_a_schedule_that_is_fired_runs_its_function_from_the_deployed_code(quick: Twin) -> None:
    assert fire.schedules(quick.client)["start-ingest"] == quick.stack
    assert fire.fire(quick.client, "start-ingest") == "nothing waits"
    groups = quick.client("logs").describe_log_streams(logGroupName=f"/{quick.stack}/start_ingest")["logStreams"]
    said = quick.client("logs").get_log_events(
        logGroupName=f"/{quick.stack}/start_ingest", logStreamName=groups[-1]["logStreamName"]
    )["events"]
    assert "nothing waits" in "".join(event["message"] for event in said)


def test_freshness_is_published_to_the_metrics_that_the_dashboard_shows(quick: Twin) -> None:
    fire.fire(quick.client, "publish-freshness")
    metrics = quick.client("cloudwatch").list_metrics(Namespace=quick.stack)["Metrics"]
    published = {metric["MetricName"] for metric in metrics}
    assert {"FreshnessMeasuredWaiting", "KeysCheckedUnusable", "SchedulesCheckedOverdue"} <= published
    shown = {name for name in shown_by_dashboards(quick) if name.startswith("FreshnessMeasured")}
    assert "FreshnessMeasuredWaiting" in shown
    assert shown - published == {"FreshnessMeasuredSinceBatchSeconds"}, "no batch has ended yet"
    assert fire.fire(quick.client, "start-waiting") == "no waiting run can start"


def test_a_schedule_that_is_not_there_is_named_with_those_that_are(quick: Twin) -> None:
    with pytest.raises(InvalidConfiguration, match=r"schedule nightly: is not in the twin .known: .*start-ingest"):
        fire.fire(quick.client, "nightly")


def test_a_function_that_fails_says_what_its_handler_raised(quick: Twin) -> None:
    name = f"{quick.stack}-start-ingest"
    functions = quick.client("lambda")
    settings = functions.get_function_configuration(FunctionName=name)["Environment"]["Variables"]
    functions.update_function_configuration(FunctionName=name, Environment={"Variables": {"FRESHNESS_S": "60"}})
    try:
        with pytest.raises(Halt, match=f"{name}: InvalidConfiguration: JOB: is missing"):
            fire.fire(quick.client, "start-ingest")
    finally:
        functions.update_function_configuration(FunctionName=name, Environment={"Variables": settings})


def call(twin: Twin, function: str, event: dict[str, Any]) -> Any:
    answer = twin.client("lambda").invoke(FunctionName=f"{twin.stack}-{function}", Payload=json.dumps(event))
    assert "FunctionError" not in answer, answer["Payload"].read()
    return json.loads(answer["Payload"].read())


def test_files_that_nobody_announced_are_announced_by_the_function_as_s3_does(quick: Twin) -> None:
    quick.client("sqs").purge_queue(QueueUrl=quick.queue_url)
    s3 = quick.client("s3")
    for key in ("in/x/first.json", "in/x/a b.json", "in/x/a b.json"):
        s3.put_object(Bucket=quick.landing_bucket, Key=key, Body=b"{}")
    heard = files_in(quick)
    assert len(heard) == 3

    assert call(quick, "announce-files", {"prefix": "in/x/"}) == {"announced": 2, "missing": [], "after": None}
    assert files_in(quick) == {
        file for file in heard if file[1] == s3.head_object(Bucket=quick.landing_bucket, Key=file[0])["VersionId"]
    }
    assert call(quick, "announce-files", {"keys": ["in/x/gone.json"]})["missing"] == ["in/x/gone.json"]


def test_the_command_names_files_that_s3_told_nobody_of_and_announces_them(quick: Twin) -> None:
    s3 = quick.client("s3")
    for body in (b"{}", b'{"again": 1}'):
        s3.put_object(Bucket=quick.landing_bucket, Key="in/lost/a b.json", Body=body)
    heard = files_in(quick)

    def reconcile(*more: str) -> str:
        where = ("--lake", f"s3://{quick.lake_bucket}", "--queue-url", quick.queue_url)
        landing = ("--landing", f"s3://{quick.landing_bucket}/in/lost/", "--settle-hours", "0")
        command = [sys.executable, "-m", "forebay.cli.main", "find-missed", *where, *landing, *more]
        ran = subprocess.run(command, env={**os.environ, **quick.env}, capture_output=True, text=True, check=True)
        return ran.stdout

    planned = reconcile("--dry-run")
    assert planned.count(f"s3://{quick.landing_bucket}/in/lost/a b.json\n") == 2
    assert planned.endswith("2 files checked: 2 missed\n")
    assert files_in(quick) == set()
    assert reconcile().endswith("2 files checked: 2 missed, and announced now\n")
    assert files_in(quick) == {file for file in heard if file[0] == "in/lost/a b.json"}


def files_in(twin: Twin) -> set[tuple[str, str | None, str]]:
    """What the source would make of the queue's messages, which are taken off it."""
    found = set()
    sqs = twin.client("sqs")
    at_once = {"QueueUrl": twin.queue_url, "MaxNumberOfMessages": 10, "WaitTimeSeconds": 0}
    while got := sqs.receive_message(**at_once).get("Messages"):
        for message in got:
            found |= {(file.key, file.version_id, file.etag) for file in read_message(message["Body"]).files}
            sqs.delete_message(QueueUrl=twin.queue_url, ReceiptHandle=message["ReceiptHandle"])
    return found


def status_page(twin: Twin) -> str:
    bucket, _, key = fire.fire(twin.client, "status-page").removeprefix("s3://").partition("/")
    page = twin.client("s3").get_object(Bucket=bucket, Key=key)
    assert page["ContentType"] == "text/html; charset=utf-8"
    return str(page["Body"].read().decode())


def test_the_status_page_is_in_the_artefacts_and_says_what_there_is(quick: Twin) -> None:
    text = status_page(quick)
    assert f"<h1>{quick.stack}</h1>" in text
    assert "no batch yet" in text
    assert "Cost of this month so far" in text


def test_averages_are_published_by_the_hour(quick: Twin) -> None:
    cloudwatch, service = quick.client("cloudwatch"), [{"Name": "service", "Value": "games"}]
    before = datetime.now(UTC) - timedelta(minutes=1)  # whole seconds are compared: one put in this second is not seen
    for name, value in (("BatchCommittedBytes", 7000), ("BatchCommittedFiles", 2)):
        datum = {"MetricName": name, "Dimensions": service, "Value": value, "Timestamp": before}
        cloudwatch.put_metric_data(Namespace=quick.stack, MetricData=[datum])
    fire.fire(quick.client, "measure-trend")
    now = datetime.now(UTC)
    said = cloudwatch.get_metric_statistics(
        Namespace=quick.stack,
        MetricName="TrendMeasuredFileBytes",
        Dimensions=service,
        StartTime=now - timedelta(hours=1),
        EndTime=now + timedelta(minutes=1),
        Period=3600,
        Statistics=["Maximum"],
    )["Datapoints"]
    assert [point["Maximum"] for point in said] == [3500]


# --- alarms ---


def told(twin: Twin, queue: str) -> list[dict[str, Any]]:
    """A person's mailbox: a queue that listens to the alarm topic."""
    url = twin.client("sqs").get_queue_url(QueueName=queue)["QueueUrl"]
    got = twin.client("sqs").receive_message(QueueUrl=url, MaxNumberOfMessages=10, WaitTimeSeconds=1)
    return [json.loads(message["Body"]) for message in got.get("Messages", [])]


@pytest.fixture
def mailbox(quick: Twin) -> str:
    alarms.evaluate(quick.client)  # the first look at a new alarm tells that it is OK
    sqs, name = quick.client("sqs"), f"mailbox-{time.monotonic_ns()}"
    url = sqs.create_queue(QueueName=name)["QueueUrl"]
    arn = sqs.get_queue_attributes(QueueUrl=url, AttributeNames=["QueueArn"])["Attributes"]["QueueArn"]
    (topic,) = [t["TopicArn"] for t in quick.client("sns").list_topics()["Topics"] if t["TopicArn"].endswith("-alarms")]
    quick.client("sns").subscribe(TopicArn=topic, Protocol="sqs", Endpoint=arn)
    return name


def test_a_dead_letter_raises_its_alarm_and_a_person_is_told_once(quick: Twin, mailbox: str) -> None:
    name = f"{quick.stack}-dead-letters"
    assert alarms.evaluate(quick.client)[name] == "OK"
    quick.client("sqs").send_message(QueueUrl=quick.dlq_url, MessageBody="poison")
    (foretold,) = [seen for seen in alarms.evaluations(quick.client) if seen.name == name]
    assert (foretold.before, foretold.now) == ("OK", "ALARM")
    assert foretold.does == (f"notifies the topic {quick.stack}-alarms",)
    assert told(quick, mailbox) == []
    assert alarms.evaluate(quick.client)[name] == "ALARM"
    assert alarms.evaluate(quick.client)[name] == "ALARM"
    assert "dead-letters: " in status_page(quick)
    (mail,) = told(quick, mailbox)
    assert mail["Subject"] == f'ALARM: "{name}"'
    message = json.loads(mail["Message"])
    assert (message["AlarmName"], message["NewStateValue"]) == (name, "ALARM")
    assert "under dead-letters" in message["AlarmDescription"]
    quick.client("sqs").purge_queue(QueueUrl=quick.dlq_url)
    assert alarms.evaluate(quick.client)[name] == "OK"
    assert "dead-letters: " not in status_page(quick)
    assert [mail["Subject"] for mail in told(quick, mailbox)] == [f'OK: "{name}"']


# --- rights ---


def test_a_role_may_do_what_its_policies_say_and_a_refusal_names_who_what_and_where(quick: Twin) -> None:
    """Each request below is one that a role of the template makes, or must not be able to make."""
    roles = {
        role["RoleName"].split("-")[2][:-8]: role["RoleName"] for role in quick.client("iam").list_roles()["Roles"]
    }

    def as_role(service: str, role: str) -> Any:
        return clients.client(service, quick.endpoint, quick.region, roles[role])

    lake, s3 = quick.lake_bucket, as_role("s3", "IngestRole")
    commit = f"t/_delta_log/{7:020}.json"
    with pytest.raises(ClientError, match=rf"AccessDenied.*may not s3:PutObject on .*{commit}"):
        s3.put_object(Bucket=lake, Key=commit, Body=b"{}")
    s3.put_object(Bucket=lake, Key=commit, Body=b"{}", IfNoneMatch="*")
    assert s3.get_object(Bucket=lake, Key=commit)["Body"].read() == b"{}"
    with pytest.raises(ClientError, match=r"may not s3:PutObject on arn:aws:s3:::.*-landing-"):
        s3.put_object(Bucket=quick.landing_bucket, Key="in/forged.json", Body=b"{}")
    planner = as_role("s3", "FunctionsPlanCompactionRole")
    with pytest.raises(ClientError, match=r"may not s3:GetObject on .*t/_delta_log"):
        planner.get_object(Bucket=lake, Key=commit)
    refused = s3.delete_objects(Bucket=quick.landing_bucket, Delete={"Objects": [{"Key": "in/a & b.json"}]})
    assert [error["Code"] for error in refused["Errors"]] == ["AccessDenied"]
    s3.delete_objects(Bucket=lake, Delete={"Objects": [{"Key": commit}]})
    with pytest.raises(ClientError, match=r"may not glue:StartJobRun on .*:job/.*-maintain"):
        as_role("glue", "FunctionsPlanCompactionRole").start_job_run(JobName=f"{quick.stack}-maintain")
    with pytest.raises(ClientError):
        as_role("cloudwatch", "IngestRole").put_metric_data(Namespace="theirs", MetricData=[])


def test_an_object_that_is_not_there_is_missing_only_for_those_who_may_list(quick: Twin) -> None:
    roles = [role["RoleName"] for role in quick.client("iam").list_roles()["Roles"]]
    (starter,) = [name for name in roles if "FunctionsStartIngestRole" in name]
    (planner,) = [name for name in roles if "FunctionsPlanCompactionRole" in name]
    nothing = {"Bucket": quick.lake_bucket, "Key": "_forebay/health/nothing.json"}
    with pytest.raises(ClientError, match="NoSuchKey"):
        clients.client("s3", quick.endpoint, quick.region, planner).get_object(**nothing)
    with pytest.raises(ClientError, match="AccessDenied"):
        clients.client("s3", quick.endpoint, quick.region, starter).get_object(**nothing)


# --- jobs ---


@pytest.fixture
def job(quick: Twin) -> Callable[..., str]:
    """Makes a job of a script."""

    def make(name: str, script: str, **more: Any) -> str:
        quick.client("s3").put_object(Bucket="scripts", Key=f"{name}.py", Body=script.encode())
        quick.client("glue").create_job(
            Name=name,
            Role="role",
            Command={"Name": "glueetl", "ScriptLocation": f"s3://scripts/{name}.py"},
            **more,
        )
        return name

    return make


def run(twin: Twin, job: str, run_id: str) -> dict[str, Any]:
    found: dict[str, Any] = twin.client("glue").get_job_run(JobName=job, RunId=run_id)["JobRun"]
    return found


def ended(twin: Twin, job: str, run_id: str) -> dict[str, Any]:
    found: dict[str, Any] = eventually(
        lambda: (found := run(twin, job, run_id))["JobRunState"] not in ("STARTING", "RUNNING", "STOPPING") and found
    )
    return found


def test_a_script_is_given_its_arguments_and_files_and_its_words_are_kept(quick: Twin, job: Callable[..., str]) -> None:
    quick.client("s3").put_object(Bucket="scripts", Key="told.txt", Body=b"beside the script")
    name = job(
        "says",
        "import sys, pathlib; print(pathlib.Path('told.txt').read_text(), sys.argv[1:])",
        DefaultArguments={
            "--extra-files": "s3://scripts/told.txt",
            "--color": "red",
            "--custom-logGroup-prefix": "/said",
            "--continuous-log-logGroup": "/of-glue-4",
        },
    )
    run_id = quick.client("glue").start_job_run(JobName=name, Arguments={"--color": "green"})["JobRunId"]
    done = ended(quick, name, run_id)
    assert (done["JobRunState"], done["GlueVersion"]) == ("SUCCEEDED", "6.0")
    assert "ErrorMessage" not in done
    said = (quick.state / "runs" / run_id / "output").read_text()
    assert "beside the script ['--JOB_NAME', 'says', '--JOB_RUN_ID', 'jr_" in said
    assert "'--color', 'green'" in said
    logs = quick.client("logs")
    events = logs.get_log_events(logGroupName="/said/output", logStreamName=f"{run_id}-driver")["events"]
    assert [event["message"] for event in events] == said.splitlines()
    groups = {group["logGroupName"] for group in logs.describe_log_groups()["logGroups"]}
    assert "/said/error" in groups
    assert "/of-glue-4" not in groups, "Glue 5.0 and later pass over the arguments of Glue 4.0"


def test_a_run_may_be_given_the_script_of_before(quick: Twin, job: Callable[..., str]) -> None:
    job("before", "print('as it was')")
    name = job("now", "raise SystemExit('broken')")
    arguments = {"--scriptLocation": "s3://scripts/before.py"}
    done = ended(quick, name, quick.client("glue").start_job_run(JobName=name, Arguments=arguments)["JobRunId"])
    assert done["JobRunState"] == "SUCCEEDED", done.get("ErrorMessage")


def test_a_script_that_fails_fails_its_run_with_the_error_as_its_reason(quick: Twin, job: Callable[..., str]) -> None:
    name = job("fails", "raise LookupError('no such table')")
    done = ended(quick, name, quick.client("glue").start_job_run(JobName=name)["JobRunId"])
    assert (done["JobRunState"], done["ErrorMessage"]) == ("FAILED", "LookupError: no such table")


def test_a_second_run_is_refused_while_one_is_at_work_and_a_stopped_one_ends(
    quick: Twin, job: Callable[..., str]
) -> None:
    glue = quick.client("glue")
    name = job("sleeps", "import time; print('asleep', flush=True); time.sleep(600)")
    first = glue.start_job_run(JobName=name)["JobRunId"]
    with pytest.raises(glue.exceptions.ConcurrentRunsExceededException):
        glue.start_job_run(JobName=name)
    assert eventually(lambda: run(quick, name, first)["JobRunState"] == "RUNNING")
    assert "CompletedOn" not in run(quick, name, first)
    answer = glue.batch_stop_job_run(JobName=name, JobRunIds=[first, "jr_none"])
    assert [stopped["JobRunId"] for stopped in answer["SuccessfulSubmissions"]] == [first]
    assert [refused["JobRunId"] for refused in answer["Errors"]] == ["jr_none"]
    assert ended(quick, name, first)["JobRunState"] == "STOPPED"
    second = glue.start_job_run(JobName=name)["JobRunId"]
    assert [run["Id"] for run in glue.get_job_runs(JobName=name)["JobRuns"]] == [second, first]
    glue.batch_stop_job_run(JobName=name, JobRunIds=[second])
    assert ended(quick, name, second)["JobRunState"] == "STOPPED"


def test_a_job_whose_files_are_not_there_fails_with_that_reason(quick: Twin, job: Callable[..., str]) -> None:
    name = job("lost", "", DefaultArguments={"--extra-files": "s3://scripts/nowhere.txt"})
    done = ended(quick, name, quick.client("glue").start_job_run(JobName=name)["JobRunId"])
    assert done["JobRunState"] == "FAILED"
    assert done["ErrorMessage"].startswith("the local twin could not run it: ")


@pytest.mark.parametrize(
    ("log", "expected"),
    [
        ("", ""),
        ("spark says hello\nand goodbye\n", "and goodbye"),
        ("WARNING: Using incubator modules: jdk.incubator.vector\n", ""),
        (
            "Traceback (most recent call last):\n  File 'a.py'\nforebay.errors.Halt: the lake is gone\nClosing\n",
            "Halt: the lake is gone",
        ),
        (
            "Traceback (most recent call last):\n  first\nKeyError: 1\n\nDuring handling ...:\n\n"
            "Traceback (most recent call last):\n  second\nValueError: 2\n",
            "ValueError: 2",
        ),
    ],
)
def test_the_reason_is_the_last_error_that_a_script_let_out(log: str, expected: str) -> None:
    assert reason(log) == expected


# --- rules ---


def test_a_failed_ingest_run_tells_a_person_why_by_the_templates_own_rule(quick: Twin, mailbox: str) -> None:
    name = f"{quick.stack}-ingest"
    run_id = quick.client("glue").start_job_run(JobName=name, Arguments={"--queue_url": "arrivals"})["JobRunId"]
    done = ended(quick, name, run_id)
    assert done["JobRunState"] == "FAILED"
    assert done["ErrorMessage"].startswith("InvalidConfiguration: queue arrivals: is not a URL")
    (mail,) = eventually(lambda: told(quick, mailbox))
    assert mail["Subject"] == f"forebay: {name} FAILED"
    assert "reason   InvalidConfiguration: queue arrivals: is not a URL" in mail["Message"]
    assert f"run      {run_id}" in mail["Message"]
    assert "under job-failed" in mail["Message"]


def test_a_job_that_ships_the_jars_of_set_up_has_the_class_path_of_its_archive_of_classes(tmp_path: Path) -> None:
    """Without the archive, the JVM of each run loads and verifies all of its classes again."""
    here = {name: tmp_path / name for name in ("delta.jar", LOG_STORE_JAR, "s3.jar")}
    shipped = {name: tmp_path / f"asset-{name}" for name in here}
    for name in here:
        here[name].write_text(name)
        shipped[name].write_text(name)
    there = [str(jar) for jar in here.values()]
    assert class_path(there, [str(shipped[name]) for name in (LOG_STORE_JAR, "delta.jar")]) == there
    assert class_path(there, []) == [there[0], there[2]], "the log store is the job's own"
    shipped[LOG_STORE_JAR].write_text("another release")
    assert class_path(there, [str(shipped[LOG_STORE_JAR])]) == [there[0], there[2], str(shipped[LOG_STORE_JAR])]
