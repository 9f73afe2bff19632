"""The alarms. Each says in a sentence what happened, and names its place in the runbook.

An alarm watches a metric of AWS, or one that an event of ours carries. How many points must breach, of how many, and what a
missing point means decide whether an alarm rings at all; `tests/infra/test_alarms.py` plays stories through each of them.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from aws_cdk import Duration
from aws_cdk import aws_cloudwatch as cw
from aws_cdk import aws_cloudwatch_actions as actions
from aws_cdk import aws_lambda as lam
from aws_cdk import aws_sns as sns
from aws_cdk import aws_sqs as sqs
from constructs import Construct

from forebay.batch.events import BatchCommitted, RowsAppended
from forebay.capacity.freshness import in_words
from forebay.counted import counted
from forebay.jobs.troubles import TroublesCounted
from forebay.upkeep.accounts.events import AccountsChecked
from forebay.upkeep.reconcile.events import FilesReconciled
from infra.landing import Landing
from infra.metrics import ServiceMetrics
from infra.runbook import place_in_runbook, region_of
from infra.settings import Settings
from lambdas.publish_freshness.events import FreshnessMeasured, KeysChecked, SchedulesChecked, TrendMeasured

MINUTE = Duration.minutes(1)
LONGER_S = DRAINS_FROM_S = 300
"""Files that wait without a batch for this much longer than the freshness are late. Drains may hold such a freshness."""


@dataclass(frozen=True)
class Bar:
    """The alarm rings where `points` of the last `periods` (all of them, unless named) compare so with the threshold."""

    threshold: float
    comparison: cw.ComparisonOperator = cw.ComparisonOperator.GREATER_THAN_THRESHOLD
    periods: int = 1
    points: int | None = None
    missing: cw.TreatMissingData = cw.TreatMissingData.NOT_BREACHING


ANY = Bar(0)


def silence(periods: int = 1) -> Bar:
    """Less than one, or no point at all."""
    return Bar(1, cw.ComparisonOperator.LESS_THAN_THRESHOLD, periods, missing=cw.TreatMissingData.BREACHING)


class Alarms(Construct):
    def __init__(
        self, scope: Construct, construct_id: str, *, settings: Settings, topic: sns.ITopic, service: str
    ) -> None:
        super().__init__(scope, construct_id)
        self._settings, self._topic, self._metrics = settings, topic, ServiceMetrics(settings.namespace, service)
        self._region = region_of(self)
        self.all: list[cw.Alarm] = []

    def watch_landing(self, landing: Landing) -> None:
        freshness, seconds = self._settings.freshness, self._settings.freshness_s
        budget = " The budget may delay runs." if self._settings.budget_usd_month else ""
        self._add(
            "files-wait",
            landing.queue.metric_approximate_age_of_oldest_message(period=MINUTE),
            f"A file has waited in the queue for more than {freshness}.{budget}",
            Bar(seconds, periods=3),
        )
        dead = "ApproximateNumberOfMessagesVisible"
        self._add(
            "dead-letters",
            landing.dead.metric(dead, statistic="Maximum", period=MINUTE),
            "A message was not understood, or its batch never finished. The dead-letter queue keeps it for 14 days.",
        )
        if landing.undelivered:
            self._add(
                "undelivered",
                landing.undelivered.metric(dead, statistic="Maximum", period=MINUTE),
                "A notification could not be delivered to the queue. It is kept for 14 days.",
            )

    def watch_deliveries(self, topics: Sequence[str], rules: Sequence[str], untold: sqs.IQueue) -> None:
        """Announcements that did not even reach a dead-letter queue are lost. `undelivered` does not count them."""
        lost = "S3's announcements could not be delivered, or kept as dead letters: files may be missing in the tables."
        of_topics = ("AWS/SNS", "NumberOfNotificationsFailedToRedriveToDlq", "TopicName")
        of_rules = ("AWS/Events", "InvocationsFailedToBeSentToDlq", "RuleName")
        metrics = [_delivery(*of_topics, _last(arn, ":")) for arn in topics]
        metrics += [_delivery(*of_rules, _last(arn, "/")) for arn in rules]
        for number, metric in enumerate(metrics):
            self._add("announcements-lost", metric, lost, of=str(number or ""))
        self._add(
            "alarms-undelivered",
            _delivery("AWS/SNS", "NumberOfNotificationsFailed", "TopicName", f"{self._settings.name}-alarms"),
            "A message from the alarm topic did not reach one of its subscribers.",
        )
        self._add(
            "result-unreported",
            untold.metric("ApproximateNumberOfMessagesVisible", statistic="Maximum", period=MINUTE),
            "A job ended, and its result could not be reported. The queue keeps the event for 14 days.",
        )

    def watch_batches(self, queue: sqs.IQueue) -> None:
        freshness, seconds = self._settings.freshness, self._settings.freshness_s
        silence_s = seconds + LONGER_S
        self._add(
            "late-rows",
            self._metrics.of(BatchCommitted, "latency_p99_seconds", statistic="Maximum", minutes=5),
            f"One file in a hundred took more than {freshness} to become rows.",
            # A batch leaves one point. In a run that stays on one slow batch is harmless; drains are far apart.
            Bar(seconds, periods=6, points=2 if seconds < DRAINS_FROM_S else 1),
        )
        self._add(
            "no-batch",
            self._silence(queue),
            f"Files are waiting, and no batch has finished for {in_words(silence_s)}.",
            Bar(silence_s),
        )
        self._add(
            "quarantine-share",
            self._quarantine_share(),
            f"More than {self._settings.quarantine_percent:g} % of an hour's records went to the quarantine.",
            Bar(self._settings.quarantine_percent),
        )
        self._add(
            "files-refused",
            self._metrics.of(BatchCommitted, "refused_files", minutes=5),
            "A whole file could not be read. It is in the quarantine, with the reason.",
        )
        self._add(
            "files-withheld",
            self._metrics.of(BatchCommitted, "withheld_files", minutes=5),
            "S3 did not return a file: access denied, archived, or persistent errors. Its records are not in the tables yet.",
        )
        self._add(
            "table-failed",
            self._metrics.of(TroublesCounted, "failed", minutes=5),
            "A table could not be written. Its rows are in the quarantine; the other tables were written.",
        )
        self._add(
            "columns-left-out",
            self._metrics.of(TroublesCounted, "full", minutes=5),
            "A table has reached its limit of columns. New fields get no column; their values are in _rescued.",
        )
        self._add(
            "expectation-violated",
            self._metrics.of(TroublesCounted, "violated", minutes=5),
            "More rows of a table violate an expectation than its declaration accepts. `forebay quality` shows which.",
        )

    def watch_catalog(self) -> None:
        self._add(
            "name-taken",
            self._metrics.of(TroublesCounted, "unlisted", minutes=5),
            "The Glue database has an entry of another owner with a table's name. Readers do not find the table by its name.",
        )

    def watch_notifications(self) -> None:
        self._add(
            "missed-files",
            self._metrics.of(FilesReconciled, "missed", minutes=60),
            "Files landed that S3 never announced. forebay has announced them now.",
        )
        self._add(
            "accounts-differ",
            self._metrics.of(AccountsChecked, "differences", minutes=60),
            "The ledger and the tables do not agree, file by file: rows are missing, duplicated or left over.",
        )

    def watch_table(self, table: str) -> None:
        """For tables that always get rows. The usual band is learned from two weeks of them."""
        minutes = self._settings.stale_table_minutes
        self._add(
            "stale-table",
            _or_zero(self._metrics.of_table(RowsAppended, "rows", table, minutes=5), minutes=5, label="rows"),
            f"The table {table} has had no new rows for {counted(minutes, 'minute')}.",
            silence(minutes // 5),
            of=table,
        )
        name = f"unusual-rows-{table}"
        alarm = cw.AnomalyDetectionAlarm(
            self,
            f"UnusualRows{table}",
            alarm_name=f"{self._settings.name}-{name}",
            alarm_description=f"The table {table} got far more or far fewer rows than usual for three hours. "
            f"Runbook: {place_in_runbook(self._settings, 'unusual-rows', self._region)}",
            metric=self._metrics.of_table(RowsAppended, "rows", table, minutes=60),
            std_devs=3,
            evaluation_periods=3,  # an odd hour may span two periods
            treat_missing_data=cw.TreatMissingData.IGNORE,
        )
        self._tell(alarm)

    def watch_trends(self) -> None:
        """The last day against the last week: a slow growth rings no other alarm in time."""
        percent = self._settings.trend_percent
        for name, field, what, than in (
            ("latency-rising", "latency", "Files take", "time to become rows"),
            ("cost-rising", "run_dpu", "Runs of the ingest job take", "DPU-seconds"),
        ):
            day, week = (
                self._metrics.of(TrendMeasured, f"{field}_{span}_seconds", statistic="Maximum", minutes=60)
                for span in ("day", "week")
            )
            self._add(
                name,
                cw.MathExpression(
                    expression="IF(week > 0, 100 * (day - week) / week, 0)",
                    using_metrics={"day": day, "week": week},
                    period=Duration.hours(1),
                    label="more than in a week, %",
                ),
                f"{what} {percent} % more {than} than the average of the last week.",
                # Measured once an hour, give or take: an hour may have no point.
                Bar(percent, periods=3, points=2),
            )

    def watch_the_watchers(self, functions: Sequence[lam.IFunction]) -> None:
        errors = {f"f{n}": f.metric_errors(period=Duration.minutes(5)) for n, f in enumerate(functions)}
        self._add(
            "function-failed",
            cw.MathExpression(
                expression=" + ".join(f"FILL({name}, 0)" for name in errors),
                using_metrics=errors,
                period=Duration.minutes(5),
                label="errors of functions",
            ),
            "A Lambda function failed: the job may not have started, or its result may not have been reported.",
            # Errors are reported late, and FILL says 0 of a period until they are.
            Bar(0, periods=3, points=1),
        )
        self._add(
            "schedule-overdue",
            self._metrics.of(SchedulesChecked, "overdue", statistic="Maximum", minutes=15),
            "A schedule has had no successful run for longer than its interval: retention, erasure, "
            "compaction or the search for missed files is not happening.",
        )
        self._add(
            "key-unusable",
            self._metrics.of(KeysChecked, "unusable", statistic="Maximum", minutes=5),
            "A KMS key is disabled or about to be deleted: nothing can be read or written with it.",
        )
        self._add(
            "metrics-missing",
            _or_zero(
                self._metrics.of(FreshnessMeasured, "waiting", statistic="SampleCount", minutes=15),
                minutes=15,
                label="measured",
            ),
            "Freshness was not measured for 15 minutes. Other alarms depend on it and may stay silent.",
            silence(),
        )

    def _silence(self, queue: sqs.IQueue) -> cw.MathExpression:
        """How long files have waited, or no batch has finished, whichever is less: a quiet night does not count."""
        return cw.MathExpression(
            expression="IF(oldest < batch, oldest, batch)",
            using_metrics={
                "oldest": queue.metric_approximate_age_of_oldest_message(period=Duration.minutes(5)),
                "batch": self._metrics.of(FreshnessMeasured, "since_batch_seconds", statistic="Minimum", minutes=5),
            },
            period=Duration.minutes(5),
            label="silence",
        )

    def _quarantine_share(self) -> cw.MathExpression:
        return cw.MathExpression(
            expression="IF(records > 0, 100 * quarantined / records, 0)",
            using_metrics={
                name: self._metrics.of(BatchCommitted, name, minutes=60) for name in ("records", "quarantined")
            },
            period=Duration.hours(1),
            label="quarantined, %",
        )

    def _add(self, name: str, metric: cw.IMetric, says: str, bar: Bar = ANY, *, of: str = "") -> None:
        self._tell(self._alarm(name, metric, says, bar, of=of))

    def _tell(self, alarm: cw.Alarm) -> None:
        alarm.add_alarm_action(actions.SnsAction(self._topic))
        alarm.add_ok_action(actions.SnsAction(self._topic))
        if alarm not in self.all:
            self.all.append(alarm)

    def _alarm(self, name: str, metric: cw.IMetric, says: str, bar: Bar, *, of: str = "") -> cw.Alarm:
        full = f"{name}-{of}" if of else name
        alarm = cw.Alarm(
            self,
            _construct_id(name) + of,
            alarm_name=f"{self._settings.name}-{full}",
            alarm_description=f"{says} Runbook: {place_in_runbook(self._settings, name, self._region)}",
            metric=metric,
            threshold=bar.threshold,
            comparison_operator=bar.comparison,
            evaluation_periods=bar.periods,
            datapoints_to_alarm=bar.points,
            treat_missing_data=bar.missing,
        )
        self.all.append(alarm)
        return alarm


def _delivery(namespace: str, name: str, dimension: str, value: str) -> cw.Metric:
    return cw.Metric(
        namespace=namespace,
        metric_name=name,
        dimensions_map={dimension: value},
        statistic="Sum",
        period=Duration.minutes(5),
    )


def _last(arn: str, separator: str) -> str:
    return arn.rpartition(separator)[2]


def _or_zero(metric: cw.IMetric, *, minutes: int, label: str) -> cw.MathExpression:
    """Zero where there is no point. CloudWatch would look further back for a real one, and the alarm would come late."""
    return cw.MathExpression(
        expression="FILL(found, 0)", using_metrics={"found": metric}, period=Duration.minutes(minutes), label=label
    )


def _construct_id(name: str) -> str:
    return name.title().replace("-", "").replace("_", "")
