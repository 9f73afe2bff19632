"""When the ingest job is started, and when it is left alone."""

from __future__ import annotations

import io
import json
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from types import SimpleNamespace
from typing import Any

import pytest

from forebay.capacity.pace import Done, Pace
from forebay.capacity.waiting import Waiting
from forebay.lake.stop import NAME
from forebay.settings import IGNORE_ARGUMENTS, IngestSettings
from lambdas.start_ingest.last_good import IGNORE, WENT_BACK
from lambdas.start_ingest.starting import Settings
from lambdas.start_ingest.starting import start as start_ingest
from lambdas.start_ingest.why_not import why_not

NOW = datetime(2026, 5, 1, 12, tzinfo=UTC)
CHECKPOINT = "s3://lake/_forebay/checkpoints/ingest"
GOOD = f"{CHECKPOINT}/last-good.json"
NOTE, PACE = f"{CHECKPOINT}/waiting.json", f"{CHECKPOINT}/pace.json"
NEWEST = f"s3://lake/_forebay/ledger/_delta_log/{7:020}.json"
DRAIN = Settings(
    job="ingest", queue_url="q", checkpoint=CHECKPOINT, lake="s3://lake", alarm_topic="arn:topic", freshness_s=420
)
TIGHT = replace(DRAIN, freshness_s=60)


ABOUT = {"Name": "ingest", "WorkerType": "G.1X", "NumberOfWorkers": 4, "GlueVersion": "6.0", "Role": "ingest"}
DRAINS = {"Arguments": {"--drain": "true", "--drain_cap_s": "3600"}, "Timeout": 90}


class Exceptions:
    class ConcurrentRunsExceededException(Exception):
        pass


class Glue:
    exceptions = Exceptions

    def __init__(self, *states: str, ended_minutes_ago: float = 0, full: bool = False) -> None:
        ended = NOW - timedelta(minutes=ended_minutes_ago)
        began = ended - timedelta(hours=1)
        self.runs = [{"JobRunState": state, "StartedOn": began, "CompletedOn": ended} for state in states]
        self.full, self.started = full, []
        self.changed, self.code = began - timedelta(minutes=1), "now"
        self.more: dict[str, str] = {}

    def get_job(self, **asked: Any) -> dict[str, Any]:
        assert asked == {"JobName": "ingest"}
        arguments = {"--extra-py-files": f"{self.code}.zip", "--lake": "s3://lake", **self.more}
        command = {"ScriptLocation": f"{self.code}.py"}
        return {"Job": {"LastModifiedOn": self.changed, "Command": command, "DefaultArguments": arguments, **ABOUT}}

    def get_job_runs(self, **asked: Any) -> dict[str, Any]:
        assert asked == {"JobName": "ingest", "MaxResults": 200}
        return {"JobRuns": self.runs}

    def start_job_run(self, **asked: Any) -> None:
        if self.full:
            raise Exceptions.ConcurrentRunsExceededException
        self.started.append(asked)


class Sqs:
    def __init__(self, waiting: int) -> None:
        self.waiting = waiting

    def get_queue_attributes(self, **_: Any) -> dict[str, Any]:
        held = "ApproximateNumberOfMessagesNotVisible"
        return {"Attributes": {"ApproximateNumberOfMessages": str(self.waiting), held: "0"}}


class S3:
    """A lake whose newest batch was so many minutes ago. Files were seen to wait 200 seconds ago."""

    class exceptions:  # noqa: N801
        class NoSuchKey(Exception):
            pass

    def __init__(self, batch_minutes_ago: float = 0, by: str = "forebay/games/0123456789ab") -> None:
        self.put: list[str] = []
        self.kept = {NOTE: json.dumps({"since": NOW.timestamp() - 200}).encode()}
        self.asked: list[str] = []
        self.newest, self.by = NOW - timedelta(minutes=batch_minutes_ago), by

    def get_object(self, **asked: Any) -> Any:
        place = f"s3://{asked['Bucket']}/{asked['Key']}"
        self.asked.append(place)
        if place == NEWEST:
            txn = {"txn": {"appId": self.by, "version": 3}} if self.by else {"commitInfo": {"operation": "OPTIMIZE"}}
            return {"Body": io.BytesIO(json.dumps(txn, separators=(",", ":")).encode())}
        if place not in self.kept:
            raise self.exceptions.NoSuchKey
        return {"Body": io.BytesIO(self.kept[place])}

    def get_paginator(self, _: str) -> Any:
        key = NEWEST.removeprefix("s3://lake/")
        return SimpleNamespace(paginate=lambda **_: [{"Contents": [{"Key": key, "LastModified": self.newest}]}])

    def put_object(self, *, Bucket: str, Key: str, Body: bytes) -> None:  # noqa: N803
        place = f"s3://{Bucket}/{Key}"
        if place in (GOOD, NOTE):
            self.kept[place] = Body
        else:
            assert Body == b""
            self.put.append(place)


class Sns:
    def __init__(self) -> None:
        self.sent: list[str] = []

    def publish(self, **message: Any) -> None:
        assert message["TopicArn"] == "arn:topic"
        self.sent.append(message["Subject"])
        self.text = json.loads(message["Message"])["default"]


def start(
    settings: Settings, *, glue: Glue, sqs: Sqs, now: datetime, s3: S3 | None = None, sns: Sns | None = None
) -> str:
    return start_ingest(settings, glue=glue, sqs=sqs, s3=s3 or S3(), sns=sns or Sns(), now=now)


@pytest.mark.parametrize("settings", [DRAIN, TIGHT])
def test_a_run_that_is_older_than_the_jobs_definition_is_asked_to_stop_and_the_next_look_starts_one(
    settings: Settings,
) -> None:
    glue, s3 = Glue("RUNNING"), S3()
    glue.runs[0]["Arguments"] = {"--drain": "true"}
    assert start(settings, glue=glue, sqs=Sqs(1), s3=s3, now=NOW) == "it is already running"
    assert s3.put == []
    glue.changed = NOW
    assert "asked to stop after its batch" in start(settings, glue=glue, sqs=Sqs(1), s3=s3, now=NOW)
    assert s3.put == [f"{IngestSettings(lake='s3://lake', queue_url='q').checkpoint_folder}/{NAME}"]
    assert glue.started == []
    glue.runs[0]["JobRunState"] = "SUCCEEDED"
    assert start(settings, glue=glue, sqs=Sqs(1), s3=s3, now=NOW).startswith("started")


def test_a_drain_is_started_when_files_wait() -> None:
    glue = Glue("SUCCEEDED")
    assert start(DRAIN, glue=glue, sqs=Sqs(1), now=NOW) == "started"
    assert glue.started == [{"JobName": "ingest", **DRAINS}]


def test_a_drain_that_hangs_is_ended_some_time_after_it_should_have_stopped_by_itself() -> None:
    glue = Glue("SUCCEEDED")
    start(replace(DRAIN, drain_minutes_at_most=75), glue=glue, sqs=Sqs(1), now=NOW)
    assert glue.started[0]["Timeout"] == 75


def test_no_drain_is_started_when_nothing_waits() -> None:
    glue = Glue()
    assert start(DRAIN, glue=glue, sqs=Sqs(0), now=NOW) == "nothing waits"
    assert glue.started == []


def test_a_run_stays_on_where_a_drain_would_be_too_late() -> None:
    glue = Glue("EXPIRED")
    assert start(TIGHT, glue=glue, sqs=Sqs(0), now=NOW) == "nothing waits"
    assert start(TIGHT, glue=glue, sqs=Sqs(1), now=NOW) == "started, to keep running"
    assert glue.started == [{"JobName": "ingest"}]


def test_files_that_were_just_seen_wait_and_the_time_is_noted_once() -> None:
    glue, s3 = Glue("SUCCEEDED", ended_minutes_ago=30), S3()
    del s3.kept[NOTE]
    assert start(DRAIN, glue=glue, sqs=Sqs(1), s3=s3, now=NOW) == "files wait, and there is still time"
    later = NOW + timedelta(minutes=2)
    assert start(DRAIN, glue=glue, sqs=Sqs(1), s3=s3, now=later) == "files wait, and there is still time"
    assert Waiting.of(s3.kept[NOTE]) == Waiting(since=NOW.timestamp())
    assert start(DRAIN, glue=glue, sqs=Sqs(1), s3=s3, now=NOW + timedelta(minutes=3)) == "started"


def test_a_note_of_files_that_a_run_took_is_replaced() -> None:
    glue, s3 = Glue(), S3()
    glue.runs = [run("SUCCEEDED", 2, ended_minutes_ago=1)]
    assert start(DRAIN, glue=glue, sqs=Sqs(1), s3=s3, now=NOW) == "files wait, and there is still time"
    assert json.loads(s3.kept[NOTE])["since"] > NOW.timestamp() - 120


def test_a_budget_that_is_spent_holds_a_run_back() -> None:
    glue = Glue("SUCCEEDED")  # an hour of the last day
    assert start(replace(DRAIN, share_per_mille=50), glue=glue, sqs=Sqs(1), now=NOW) == "started"
    held = start(replace(DRAIN, share_per_mille=40), glue=glue, sqs=Sqs(1), now=NOW)
    assert held == "the budget delays the next run"


def test_a_person_is_told_once_a_day_that_the_budget_makes_files_late() -> None:
    glue, s3, sns, bounded = Glue("SUCCEEDED"), S3(), Sns(), replace(DRAIN, share_per_mille=40)
    told = "forebay: the budget delays ingest"

    def look(hours: float, settings: Settings = bounded) -> list[str]:
        assert start(settings, glue=glue, sqs=Sqs(1), s3=s3, sns=sns, now=NOW + timedelta(hours=hours)).startswith(
            "the budget"
        )
        return sns.sent

    assert look(0, replace(bounded, freshness_s=3600)) == [], "there is time"
    assert look(0) == [told]
    assert look(1) == [told]
    # A run took the files, and later ones wait, too.
    glue.runs.insert(
        0, {**glue.runs[0], "StartedOn": NOW + timedelta(hours=2), "CompletedOn": NOW + timedelta(hours=4)}
    )
    assert look(5) == [told]
    assert look(6) == [told]
    assert look(24) == [told, told]
    assert "raise budget_usd_month or freshness" in sns.text


def test_a_message_of_the_budget_that_could_not_be_sent_is_sent_by_the_next_look() -> None:
    class Denied(Sns):
        def publish(self, **message: Any) -> None:
            raise ConnectionError("no topic")

    glue, s3, sns, bounded = Glue("SUCCEEDED"), S3(), Sns(), replace(DRAIN, share_per_mille=40)
    with pytest.raises(ConnectionError):
        start(bounded, glue=glue, sqs=Sqs(1), s3=s3, sns=Denied(), now=NOW)
    start(bounded, glue=glue, sqs=Sqs(1), s3=s3, sns=sns, now=NOW + timedelta(minutes=1))
    assert sns.sent == ["forebay: the budget delays ingest"]


def test_a_look_reads_its_note_once() -> None:
    s3 = S3()
    start(replace(DRAIN, share_per_mille=40), glue=Glue("SUCCEEDED"), sqs=Sqs(1), s3=s3, now=NOW)
    assert s3.asked.count(NOTE) == 1


@pytest.mark.parametrize("state", ["STARTING", "RUNNING", "STOPPING", "WAITING"])
def test_a_job_at_work_gets_no_companion(state: str) -> None:
    glue = Glue("FAILED", state)
    assert start(TIGHT, glue=glue, sqs=Sqs(9), now=NOW) == "it is already running"
    assert glue.started == []


def test_a_run_that_somebody_else_started_meanwhile_is_no_failure() -> None:
    assert start(TIGHT, glue=Glue(full=True), sqs=Sqs(9), now=NOW) == "it is already running"


def test_a_job_that_a_person_stopped_stays_stopped() -> None:
    glue = Glue("STOPPED", "SUCCEEDED")
    assert "somebody stopped it" in start(TIGHT, glue=glue, sqs=Sqs(9), now=NOW)
    assert glue.started == []


@pytest.mark.parametrize(
    ("failures", "waits_minutes"), [(1, 1), (2, 2), (4, 8), (7, 60), (10, 60)], ids=lambda n: f"{n}"
)
def test_the_pause_after_failures_doubles_up_to_an_hour(failures: int, waits_minutes: float) -> None:
    states = ["FAILED"] * failures
    assert why_not(Glue(*states, ended_minutes_ago=waits_minutes - 0.1).runs, NOW)
    assert why_not(Glue(*states, ended_minutes_ago=waits_minutes).runs, NOW) == ""


def test_a_failure_before_a_good_run_is_forgotten() -> None:
    assert why_not(Glue("SUCCEEDED", "FAILED", "FAILED").runs, NOW) == ""


@pytest.mark.parametrize("failures", [42, 200])
def test_a_job_that_failed_for_days_is_started_every_hour_all_the_same(failures: int) -> None:
    """As long as the list of runs is."""
    states = ["FAILED"] * failures
    assert "waiting" in why_not(Glue(*states, ended_minutes_ago=59).runs, NOW)
    assert why_not(Glue(*states, ended_minutes_ago=60).runs, NOW) == ""


def test_a_failed_run_without_a_time_of_its_end_stops_nothing() -> None:
    """Glue may not say when a run ended that never began."""
    runs = [{"JobRunState": "ERROR", "StartedOn": NOW - timedelta(minutes=2)}]
    assert why_not(runs, NOW) == ""
    assert "waiting" in why_not(runs, NOW - timedelta(minutes=1.5))


# --- a run that stays on ---


def test_a_run_stays_on_while_files_come_fast_and_ends_when_nothing_comes_any_more() -> None:
    glue, s3, at = Glue("SUCCEEDED"), S3(), NOW.timestamp()
    busy = Pace(batches=tuple(Done(at - 20 * n, 300, 15) for n in range(60, -1, -1)))
    s3.kept[PACE] = busy.text().encode()
    assert start(DRAIN, glue=glue, sqs=Sqs(5), s3=s3, now=NOW) == "started, to keep running"
    glue.runs = [run("RUNNING", 60, ended_minutes_ago=0)]
    assert start(DRAIN, glue=glue, sqs=Sqs(0), s3=s3, now=NOW) == "it is already running"
    assert s3.put == []
    assert "asked to stop" in start(DRAIN, glue=glue, sqs=Sqs(0), s3=s3, now=NOW + timedelta(hours=1))
    assert s3.put == [f"{CHECKPOINT}/stop"]
    glue.runs[0]["Arguments"] = {"--drain": "true"}
    assert start(DRAIN, glue=glue, sqs=Sqs(0), s3=s3, now=NOW + timedelta(hours=1)) == "it is already running"


# --- a deploy that does not run ---

BEFORE_ARGUMENTS = {"--scriptLocation": "before.py", "--extra-py-files": "before.zip", "--lake": "s3://lake"}
BEFORE = {"Arguments": BEFORE_ARGUMENTS, **ABOUT}
NOW_ARGUMENTS = {"--scriptLocation": "now.py", "--extra-py-files": "now.zip", "--lake": "s3://lake"}


def run(state: str, minutes: float, *, ended_minutes_ago: float, **arguments: str) -> dict[str, Any]:
    ended = NOW - timedelta(minutes=ended_minutes_ago)
    named = {f"--{name}": value for name, value in arguments.items()}
    began = ended - timedelta(minutes=minutes)
    at_work = {} if state in ("RUNNING", "WAITING") else {"CompletedOn": ended}
    return {"JobRunState": state, "StartedOn": began, "Arguments": named, **at_work}


def deployed(*runs: dict[str, Any], hours_ago: float = 2, before: Any = None) -> tuple[Glue, S3, Sns]:
    """Newest run first; the code before this deploy ran well."""
    glue, s3 = Glue(), S3()
    glue.runs, glue.changed = list(runs), NOW - timedelta(hours=hours_ago)
    s3.kept[GOOD] = json.dumps(before or BEFORE).encode()
    return glue, s3, Sns()


def test_code_of_a_run_that_succeeded_is_remembered_with_all_that_its_job_said() -> None:
    glue, s3, sns = deployed(run("SUCCEEDED", 1, ended_minutes_ago=9))
    assert start(DRAIN, glue=glue, sqs=Sqs(1), s3=s3, sns=sns, now=NOW) == "started"
    assert json.loads(s3.kept[GOOD]) == {"Arguments": NOW_ARGUMENTS, **ABOUT}
    assert glue.started == [{"JobName": "ingest", **DRAINS}]


@pytest.mark.parametrize(
    ("newest", "is_proof"),
    [
        (S3(batch_minutes_ago=5), True),
        (S3(batch_minutes_ago=50), False),
        (S3(batch_minutes_ago=5, by=""), False),
        (S3(batch_minutes_ago=5, by="forebay/games/retry"), False),
        (S3(batch_minutes_ago=5, by="forebay/games/expiry/alpha"), False),
    ],
    ids=["a batch", "a batch of before", "a compaction", "a retry", "a command"],
)
def test_code_at_work_is_proven_by_a_batch_alone(newest: S3, is_proof: bool) -> None:
    glue, _, sns = deployed(run("RUNNING", 20, ended_minutes_ago=0))
    newest.kept[GOOD] = json.dumps(BEFORE).encode()
    assert start(TIGHT, glue=glue, sqs=Sqs(1), s3=newest, sns=sns, now=NOW) == "it is already running"
    assert (json.loads(newest.kept[GOOD]) != BEFORE) == is_proof


@pytest.mark.parametrize("state", ["WAITING", "FAILED", "TIMEOUT", "STOPPED"])
def test_time_alone_proves_no_code(state: str) -> None:
    glue, s3, sns = deployed(run(state, 16, ended_minutes_ago=0))
    start(DRAIN, glue=glue, sqs=Sqs(1), s3=s3, sns=sns, now=NOW)
    assert json.loads(s3.kept[GOOD]) == BEFORE


@pytest.mark.parametrize("minutes", [(1, 1), (18, 20)], ids=["at once", "late"])
@pytest.mark.parametrize("state", ["FAILED", "TIMEOUT"])
def test_a_deploy_that_fails_twice_is_gone_back_from_and_a_person_is_told_once(
    state: str, minutes: tuple[int, int]
) -> None:
    failed = [run(state, lasted, ended_minutes_ago=9 + 30 * n) for n, lasted in enumerate(minutes)]
    glue, s3, sns = deployed(*failed)
    assert start(DRAIN, glue=glue, sqs=Sqs(1), s3=s3, sns=sns, now=NOW) == "started with the earlier code"
    workers = {"WorkerType": "G.1X", "NumberOfWorkers": 4}
    arguments = {**BEFORE_ARGUMENTS, **DRAINS["Arguments"]}
    assert glue.started == [{"JobName": "ingest", "Arguments": arguments, "Timeout": 90, **workers}]
    assert sns.sent == ["forebay: ingest went back"]
    assert "keep the deployed values" not in sns.text

    glue.runs = [run("SUCCEEDED", 3, ended_minutes_ago=1, scriptLocation="before.py"), *failed]
    assert start(DRAIN, glue=glue, sqs=Sqs(1), s3=s3, sns=sns, now=NOW) == "started with the earlier code"
    assert sns.sent == ["forebay: ingest went back"]
    assert json.loads(s3.kept[GOOD]) == BEFORE

    glue.changed = NOW - timedelta(minutes=0.5)
    assert start(DRAIN, glue=glue, sqs=Sqs(1), s3=s3, sns=sns, now=NOW) == "started"
    assert WENT_BACK not in glue.started[-1]["Arguments"]


@pytest.mark.parametrize("own", [[], [run("FAILED", 1, ended_minutes_ago=9_000)]], ids=["none", "one"])
def test_runs_keep_the_earlier_code_when_the_list_of_runs_no_longer_reaches_back_to_the_failures(
    own: list[Any],
) -> None:
    back = [run("SUCCEEDED", 3, ended_minutes_ago=20 * n, scriptLocation="before.py") for n in range(200 - len(own))]
    glue, s3, sns = deployed(*back, *own, hours_ago=200)
    assert start(TIGHT, glue=glue, sqs=Sqs(1), s3=s3, sns=sns, now=NOW).endswith("with the earlier code")
    assert sns.sent == []


def test_arguments_workers_and_what_was_dropped_go_back_and_what_cannot_is_named() -> None:
    before = {
        "Arguments": {**BEFORE_ARGUMENTS, "--dropped": "yes", "--python-modules-installer-option": "--no-index"},
        "WorkerType": "G.2X",
        "NumberOfWorkers": 2,
        "GlueVersion": "5.1",
        "Role": "ingest",
        "Name": "ingest",
    }
    glue, s3, sns = deployed(*(run("FAILED", 1, ended_minutes_ago=n) for n in (9, 13)), before=before)
    glue.more = {"--late_commit_wait_s": "5", "--enable-new-thing": "true"}
    said = start(TIGHT, glue=glue, sqs=Sqs(1), s3=s3, sns=sns, now=NOW)
    assert said == "started, to keep running with the earlier code"
    (asked,) = glue.started
    assert (asked["WorkerType"], asked["NumberOfWorkers"]) == ("G.2X", 2)
    later = {IGNORE: "late_commit_wait_s,enable-new-thing"}
    assert asked["Arguments"] == before["Arguments"] | later
    assert "GlueVersion 6.0, the argument --late_commit_wait_s, the argument --enable-new-thing" in sns.text
    assert f"--{IGNORE_ARGUMENTS}" == IGNORE
    argv = [word for pair in {**asked["Arguments"], **glue.more, "--queue_url": "q"}.items() for word in pair]
    assert IngestSettings.from_argv(argv).late_commit_wait_s == 960


@pytest.mark.parametrize(
    "runs",
    [
        [run("FAILED", 1, ended_minutes_ago=9)],
        [run("FAILED", 1, ended_minutes_ago=9), run("SUCCEEDED", 1, ended_minutes_ago=20)],
        [run("EXPIRED", 1, ended_minutes_ago=9), run("FAILED", 1, ended_minutes_ago=20)],
        [run("FAILED", 1, ended_minutes_ago=9), run("FAILED", 1, ended_minutes_ago=200)],
    ],
    ids=["once", "ran well before", "one that is no failure", "of an older deploy"],
)
def test_nothing_is_gone_back_from_that_ran_or_failed_once(runs: list[dict[str, Any]]) -> None:
    glue, s3, sns = deployed(*runs)
    assert start(DRAIN, glue=glue, sqs=Sqs(1), s3=s3, sns=sns, now=NOW) == "started"
    assert sns.sent == []


def test_where_there_is_no_code_of_before_or_it_is_the_same_or_another_jobs_the_job_goes_on_trying() -> None:
    same = json.dumps({"Arguments": NOW_ARGUMENTS, **ABOUT}).encode()
    others = json.dumps({**BEFORE, "Name": "first-ingest"}).encode()
    for kept in (None, b"{broken", b"{}", b"[]", same, others):
        glue, s3, sns = deployed(*(run("FAILED", 1, ended_minutes_ago=n) for n in (9, 13)))
        if kept is None:
            del s3.kept[GOOD]
        else:
            s3.kept[GOOD] = kept
        assert start(DRAIN, glue=glue, sqs=Sqs(1), s3=s3, sns=sns, now=NOW) == "started"
        assert sns.sent == []
