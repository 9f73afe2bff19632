"""Each alarm rings in a story where it must, within its promise, and in none where it must not; in all modes.

Stories are played through CloudWatch's documented evaluation, with several guesses at what is not documented.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cache, partial
from typing import Any
from unittest.mock import MagicMock

import pytest

from forebay.aws.cloudwatch import CloudWatch
from forebay.batch.events import RowsAppended
from infra.metrics import ServiceMetrics
from tests.infra.cloudwatch import Rule, evaluate, ringing, rule_of, rule_of_band
from tests.infra.synthesized import Synthesized

pytestmark = pytest.mark.xdist_group("cdk")

DAY = 24 * 60
TROUBLE = 8 * 60
"""The minute in which each story's trouble begins."""
X, O, _ = 1.0, 0.0, None  # noqa: E741  as AWS's page writes them


# --- the evaluation itself, by the tables of AWS's page ---------------------------------------------------------------


@pytest.mark.parametrize(
    ("to_alarm", "points", "missing", "ignore", "breaching", "not_breaching"),
    [
        (3, [O, _, X, _, X], "OK", "OK", "OK", "OK"),
        (3, [_, _, _, _, O], "OK", "OK", "OK", "OK"),
        (3, [_, _, _, _, _], "INSUFFICIENT_DATA", "before", "ALARM", "OK"),
        (3, [O, X, X, _, X], "ALARM", "ALARM", "ALARM", "ALARM"),
        (3, [_, _, X, _, _], "ALARM", "before", "ALARM", "OK"),
        (2, [O, _, X, _, X], "ALARM", "ALARM", "ALARM", "ALARM"),
        (2, [O, O, X, O, X], "ALARM", "ALARM", "ALARM", "ALARM"),
        (2, [_, _, _, _, O], "OK", "OK", "ALARM", "OK"),
        (2, [_, _, _, X, _], "ALARM", "before", "ALARM", "OK"),
    ],
)
def test_alarms_are_evaluated_as_awss_page_says(
    to_alarm: int, points: list[float | None], missing: str, ignore: str, breaching: str, not_breaching: str
) -> None:
    wanted = {"missing": missing, "ignore": ignore, "breaching": breaching, "notBreaching": not_breaching}
    for treated, state in wanted.items():
        rule = Rule(1, 3, to_alarm, treated, lambda value: value > 0.5, lambda *_: None)
        assert evaluate(points, rule, "before") == state, treated


# --- stories ----------------------------------------------------------------------------------------------------------


def every(minutes: int, value: float | Callable[[int], float], begin: int = 0, end: int = DAY) -> dict[int, float]:
    return {minute: value(minute) if callable(value) else value for minute in range(begin, end, minutes)}


def once(value: float) -> dict[int, float]:
    return {TROUBLE: value}


def age(minute: int) -> float:
    """Of a file that landed when the trouble began, in seconds."""
    return max(0.0, 60.0 * (minute - TROUBLE))


@dataclass(frozen=True)
class Story:
    """What metrics get. `within` is how many minutes after the trouble began the alarm must ring; None: it must not."""

    says: str
    metrics: Mapping[str, Mapping[int, float]]
    within: int | None = None
    late: int = 0
    """Minutes until a number is there."""


OLDEST, BATCH = "ApproximateAgeOfOldestMessage", "FreshnessMeasuredSinceBatchSeconds"
LOST = ("NumberOfNotificationsFailedToRedriveToDlq", "InvocationsFailedToBeSentToDlq")
LATE, VISIBLE = "BatchCommittedLatencyP99Seconds", "ApproximateNumberOfMessagesVisible"

BOTH: dict[str, list[Story]] = {
    "files-wait": [
        Story("nothing is taken off the queue any more", {OLDEST: every(1, age)}, within=10 + 5),
        Story("each file waits three minutes", {OLDEST: every(1, 180)}),
        Story("an idle queue reports nothing", {}),
    ],
    "dead-letters": [
        Story("one message is dead", {VISIBLE: every(1, lambda minute: minute >= TROUBLE)}, within=5),
        Story("none is", {VISIBLE: every(1, 0)}),
    ],
    "undelivered": [
        Story("one message was not delivered", {VISIBLE: every(1, lambda minute: minute >= TROUBLE)}, within=5),
        Story("all were", {VISIBLE: every(1, 0)}),
    ],
    "no-batch": [
        Story("the job hangs", {OLDEST: every(1, age), BATCH: every(5, age)}, within=15 + 15),
        Story("a quiet night, then a file", {OLDEST: every(1, lambda m: m % 5 * 60.0), BATCH: every(5, 9e4)}),
        Story("batches end while a backlog is worked off", {OLDEST: every(1, 9e3), BATCH: every(5, 60)}),
    ],
    "quarantine-share": [
        Story(
            "every tenth record is bad",
            {"BatchCommittedRecords": every(10, 100), "BatchCommittedQuarantined": every(10, 10, TROUBLE)},
            within=2 * 60,
        ),
        Story("one in a hundred", {"BatchCommittedRecords": every(10, 100), "BatchCommittedQuarantined": every(10, 1)}),
        Story("nothing comes", {}),
    ],
    "files-refused": [
        Story("one file is not JSON", {"BatchCommittedRefusedFiles": every(1, 0) | once(1)}, within=10),
        Story("all are", {"BatchCommittedRefusedFiles": every(1, 0)}),
    ],
    "files-withheld": [
        Story("S3 does not give one file", {"BatchCommittedWithheldFiles": every(1, 0) | once(1)}, within=10),
        Story("it gives all", {"BatchCommittedWithheldFiles": every(1, 0)}),
    ],
    "table-failed": [
        Story("one table cannot be written", {"TroublesCountedFailed": every(1, 0) | once(1)}, within=10),
        Story("none fails", {"TroublesCountedFailed": every(1, 0)}),
        Story("the first number that comes is a failure", {"TroublesCountedFailed": once(1)}, within=10),
        Story("no batch was there yet", {}),
    ],
    "columns-left-out": [
        Story("a table is at its limit of columns", {"TroublesCountedFull": every(1, 0) | once(1)}, within=10),
        Story("none is", {"TroublesCountedFull": every(1, 0)}),
    ],
    "expectation-violated": [
        Story("one rings", {"TroublesCountedViolated": every(1, 0) | once(1)}, within=10),
        Story("none does", {"TroublesCountedViolated": every(1, 0)}),
    ],
    "name-taken": [
        Story("an entry is another's", {"TroublesCountedUnlisted": every(1, 0) | once(1)}, within=10),
        Story("all are ours", {"TroublesCountedUnlisted": every(1, 0)}),
    ],
    "missed-files": [
        Story("reconcile finds one", {"FilesReconciledMissed": once(1)}, within=2 * 60),
        Story("it finds none", {"FilesReconciledMissed": once(0)}),
    ],
    "accounts-differ": [
        Story("the nightly run finds a difference", {"AccountsCheckedDifferences": once(1)}, within=2 * 60),
        Story("it finds none", {"AccountsCheckedDifferences": once(0)}),
    ],
    "function-failed": [
        Story("one call of one function fails", {"Errors": once(1)}, within=15),
        Story("one fails, and Lambda says so late", {"Errors": every(1, 0) | once(1)}, within=15, late=4),
        Story("all succeed", {"Errors": every(5, 0)}),
        Story("none is called", {}),
    ],
    "announcements-lost": [
        Story("the key is disabled", {name: once(1) for name in LOST}, within=10),
        Story("all are delivered, or kept", {}),
    ],
    "alarms-undelivered": [
        Story("a subscriber answers with an error", {"NumberOfNotificationsFailed": once(1)}, within=10),
        Story("nothing is sent", {}),
    ],
    "result-unreported": [
        Story("one event is left over", {VISIBLE: every(1, lambda minute: minute >= TROUBLE)}, within=5),
        Story("none is", {VISIBLE: every(1, 0)}),
    ],
    "schedule-overdue": [
        Story("one is overdue", {"SchedulesCheckedOverdue": every(5, lambda m: m >= TROUBLE)}, within=30),
        Story("none is", {"SchedulesCheckedOverdue": every(5, 0)}),
    ],
    "key-unusable": [
        Story("it is disabled", {"KeysCheckedUnusable": every(5, lambda m: m >= TROUBLE)}, within=10),
        Story("it is not", {"KeysCheckedUnusable": every(5, 0)}),
    ],
    "metrics-missing": [
        Story("the function is gone", {"FreshnessMeasuredWaiting": every(5, 0, end=TROUBLE)}, within=35),
        Story("it measures, and runs late at times", {"FreshnessMeasuredWaiting": every(5, 0) | every(7, 0)}),
    ],
    **{
        name: [
            Story(
                "the last day is twice the week",
                {
                    f"TrendMeasured{field}DaySeconds": every(61, lambda minute: 200 if minute >= TROUBLE else 100),
                    f"TrendMeasured{field}WeekSeconds": every(61, 100),
                },
                within=5 * 60,
            ),
            Story(
                "a tenth more",
                {
                    f"TrendMeasured{field}DaySeconds": every(61, 110),
                    f"TrendMeasured{field}WeekSeconds": every(61, 100),
                },
            ),
        ]
        for name, field in (("latency-rising", "Latency"), ("cost-rising", "RunDpu"))
    },
}
LATER = {LATE: lambda minutes: every(minutes, lambda minute: 1200 if minute >= TROUBLE else 120)}
CONTINUOUS = {
    "late-rows": [
        Story("batches of two minutes are late", {LATE: LATER[LATE](2)}, within=15),
        Story("batches of nine minutes are late", {LATE: LATER[LATE](9)}, within=30),
        Story("one slow batch among quick ones", {LATE: every(2, 120) | once(1200)}),
    ],
    "stale-table-orders": [
        Story("its rows stop", {"RowsAppendedRows": every(3, 50, end=TROUBLE)}, within=60 + 15),
        Story("it gets rows every half hour", {"RowsAppendedRows": every(30, 50)}),
    ],
}
DRAINS = {
    "late-rows": [
        Story("a drain of each half hour is late", {LATE: LATER[LATE](30)}, within=35 + 5),
        Story("drains are in time", {LATE: every(30, 400)}),
    ],
}


def rows(minute: int) -> float:
    """Of a table, each five minutes: some more, some less."""
    return 100.0 + minute // 5 % 7 * 10 + minute // 60 % 3 * 5


def rows_of(trouble: Callable[[int], float], hours: int) -> dict[str, dict[int, float]]:
    end = TROUBLE + 60 * hours
    return {"RowsAppendedRows": every(5, rows) | every(5, trouble, TROUBLE, end)}


UNUSUAL = {
    "unusual-rows-orders": [
        Story("a client sends everything ten times", rows_of(lambda m: 10 * rows(m), 16), within=4 * 60),
        Story("most clients stopped sending", rows_of(lambda m: rows(m) / 10, 16), within=4 * 60),
        Story("one hour has thrice the rows", rows_of(lambda m: 3 * rows(m), 1)),
        Story("all is as it always was", rows_of(rows, 1)),
        Story("no rows at all, which stale-table tells", {"RowsAppendedRows": every(5, rows, end=TROUBLE)}),
    ]
}
"""By a band that is learned from the hours before the trouble."""


def alarms(service: Synthesized) -> dict[str, Any]:
    found = [alarm["Properties"] for alarm in service.of("CloudWatch::Alarm").values()]
    return {alarm["AlarmName"].split("-", 2)[2]: alarm for alarm in found}


@pytest.mark.parametrize(("which", "stories"), [("made", BOTH | DRAINS), ("adopted", BOTH | CONTINUOUS)])
def test_every_alarm_rings_where_it_must_and_only_there(
    request: pytest.FixtureRequest, which: str, stories: dict[str, list[Story]]
) -> None:
    found = alarms(request.getfixturevalue(which))
    assert set(found) - set(UNUSUAL) == set(stories), "each alarm has its stories"
    assert {any(story.within is None for story in told) for told in stories.values()} == {True}
    assert {any(story.within for story in told) for told in stories.values()} == {True}
    for name, told in stories.items():
        rule = rule_of(found[name])
        for story in told:
            play(name, story, rule)


@pytest.mark.parametrize("story", UNUSUAL["unusual-rows-orders"], ids=lambda story: story.says)
def test_the_band_of_usual_rows_tells_trouble_of_hours_and_not_one_odd_hour(adopted: Synthesized, story: Story) -> None:
    alarm = alarms(adopted)["unusual-rows-orders"]
    play("unusual-rows-orders", story, rule_of_band(alarm, story.metrics["RowsAppendedRows"], TROUBLE))


def play(name: str, story: Story, rule: Rule) -> None:
    value = cache(partial(rule.value, story.metrics))
    for phase in range(0, rule.minutes, max(1, rule.minutes // 5)):
        for further_back in (0, 2, 5):
            rang = list(ringing(rule, value, until=DAY, phase=phase, further_back=further_back, late=story.late))
            rang = [minute for minute in rang if minute > 2 * 60]  # nothing was measured before the story began
            how = f"{name}: {story.says} (period begins at {phase}, {further_back} periods further back)"
            if story.within is None:
                assert not rang, f"{how}: rings at {rang[0]}"
            else:
                assert rang, f"{how}: never rings"
                assert TROUBLE <= rang[0] <= TROUBLE + story.within, f"{how}: rings {rang[0] - TROUBLE} min after"


def test_an_error_that_is_told_late_is_missed_by_one_point_of_one(made: Synthesized) -> None:
    before = {**alarms(made)["function-failed"], "EvaluationPeriods": 1, "DatapointsToAlarm": 1}
    with pytest.raises(AssertionError, match="never rings"):
        play("function-failed", BOTH["function-failed"][1], rule_of(before))


def test_what_was_wrong_before_is_found(made: Synthesized) -> None:
    """Three one-minute points in a row, missing ones in order: a drain leaves one point in half an hour."""
    before = {**alarms(made)["late-rows"], "Period": 60, "EvaluationPeriods": 3, "DatapointsToAlarm": 3}
    late = DRAINS["late-rows"][0]
    with pytest.raises(AssertionError, match="never rings"):
        play("late-rows", late, rule_of(before))


@pytest.mark.parametrize("table", ["orders", "événements"])
def test_the_alarm_of_a_watched_table_looks_where_its_metric_is_published(table: str) -> None:
    """Elsewhere it would see no rows, and ring for ever."""
    sink = CloudWatch(client := MagicMock())
    sink(RowsAppended(service="s", table=table, batch=1, rows=2, files=1, bytes=1, version=0))
    sink.flush()
    (sent,) = client.put_metric_data.call_args.kwargs["MetricData"][:1]
    watched = ServiceMetrics("forebay-dev", "s").of_table(RowsAppended, "rows", table)
    assert watched.dimensions == {one["Name"]: one["Value"] for one in sent["Dimensions"]}
