"""One page that shows the journey from left to right and top to bottom: arrived, waiting, taken, rows, late, failed.

Numbers of single tables come from the log (Logs Insights), which is billed when somebody opens the page. Metrics would be
billed by the table and month. The page shows at most 50 metrics: with more, CloudWatch charges for each dashboard.
"""

from __future__ import annotations

from collections.abc import Sequence

from aws_cdk import Duration
from aws_cdk import aws_cloudwatch as cw
from constructs import Construct

from forebay.batch.events import BatchCommitted, RecordsQuarantined, RowsAppended
from forebay.lake.health import HealthMeasured
from forebay.source.events import QueuePolled
from forebay.upkeep.accounts.events import AccountsChecked
from forebay.upkeep.compaction.events import CompactionEnded, TableNotCompacted
from forebay.upkeep.maintenance.events import MaintenanceEnded, TableNotMaintained
from forebay.upkeep.reconcile.events import FilesReconciled
from infra.jobs.job import Job
from infra.landing import Landing
from infra.metrics import ServiceMetrics
from infra.runbook import dashboard_name, runbook_text
from infra.settings import Settings
from lambdas.job_ended.events import JobEnded
from lambdas.publish_freshness.events import FreshnessMeasured, TableFreshnessMeasured, TrendMeasured

MINUTE = Duration.minutes(1)
THIRD, HALF, ALL = 8, 12, 24
MOST_ALARMS = 100
"""The most alarms in one widget.
https://docs.aws.amazon.com/AmazonCloudWatch/latest/APIReference/CloudWatch-Dashboard-Body-Structure.html"""

NOT_LOADED = ("missing_files", "withheld_files", "refused_files")


def dashboard(
    scope: Construct,
    *,
    settings: Settings,
    service: str,
    landing: Landing,
    jobs: Sequence[Job],
    alarms: Sequence[cw.IAlarm],
) -> cw.Dashboard:
    page = cw.Dashboard(
        scope, "Dashboard", dashboard_name=dashboard_name(settings), default_interval=Duration.hours(12)
    )
    metrics = ServiceMetrics(settings.namespace, service)
    for at in range(0, len(alarms), MOST_ALARMS):
        some = list(alarms[at : at + MOST_ALARMS])
        page.add_widgets(cw.AlarmStatusWidget(title="Alarms", alarms=some, width=ALL))
    page.add_widgets(*_arrivals(metrics, landing))
    page.add_widgets(*_looks(metrics))
    page.add_widgets(*_batches(metrics))
    log_groups = [group.log_group_name for job in jobs for group in job.log_groups]
    page.add_widgets(*_tables(metrics, log_groups))
    page.add_widgets(*_expectations(log_groups))
    page.add_widgets(*_files(metrics, log_groups))
    page.add_widgets(*_upkeep(metrics, watched=bool(settings.watched)))
    page.add_widgets(*_trends(metrics, jobs))
    if settings.dpu_hour_usd:
        page.add_widgets(_price_of_a_day(metrics, jobs, settings.dpu_hour_usd))
    page.add_widgets(_errors(log_groups))
    page.add_widgets(cw.TextWidget(markdown=runbook_text(), width=ALL, height=20))
    return page


def _graph(title: str, left: Sequence[cw.IMetric], width: int = THIRD, *, stacked: bool = False) -> cw.GraphWidget:
    return cw.GraphWidget(title=title, left=list(left), width=width, stacked=stacked)


def _arrivals(metrics: ServiceMetrics, landing: Landing) -> list[cw.IWidget]:
    of, oldest = metrics.of, landing.queue.metric_approximate_age_of_oldest_message(period=MINUTE, label="oldest")
    arrived = landing.queue.metric_number_of_messages_sent(period=MINUTE, label="messages")
    counts = [of(FreshnessMeasured, name, statistic="Maximum", minutes=5) for name in ("waiting", "held", "dead")]
    since = of(FreshnessMeasured, "since_batch_seconds", statistic="Maximum", minutes=5, label="since the last batch")
    return [
        _graph("Arrived", [arrived]),
        _graph("In the queues", counts),
        _graph("Behind, seconds", [oldest, since]),
    ]


def _looks(metrics: ServiceMetrics) -> list[cw.IWidget]:
    became, left = ("files", "duplicates", "ignored", "kept", "held"), ("received", "deleted", "deletions_failed")
    return [
        _graph("Notifications, by outcome", [metrics.of(QueuePolled, name) for name in became], HALF),
        _graph("Messages received and deleted", [metrics.of(QueuePolled, name) for name in left], HALF),
    ]


def _batches(metrics: ServiceMetrics) -> list[cw.IWidget]:
    def sums(*names: str) -> list[cw.IMetric]:
        return [metrics.of(BatchCommitted, name) for name in names]

    stages = [
        metrics.of(BatchCommitted, f"{name}_seconds", statistic="Average", label=name)
        for name in ("claim", "read", "write", "ledger")
    ]
    return [
        _graph("Files taken", sums("files", "known_files", "duplicate_files", *NOT_LOADED)),
        _graph("Records", sums("records", "written", "quarantined", "parked", "dropped")),
        _graph("A batch, seconds by stage", stages, stacked=True),
    ]


def _tables(metrics: ServiceMetrics, log_groups: Sequence[str]) -> list[cw.IWidget]:
    latency = [
        metrics.of(BatchCommitted, f"latency_{name}_seconds", statistic="Maximum", label=name)
        for name in ("p50", "p99")
    ]
    return [
        _graph("From landing to rows, seconds", latency),
        _of_tables("Rows by table", RowsAppended.__name__, "rows", "sum", log_groups),
        _last("Quarantined, by reason: the last batches", RecordsQuarantined.__name__, log_groups),
    ]


def _expectations(log_groups: Sequence[str]) -> list[cw.IWidget]:
    violated = "Expectation(Violated|Failed)"
    return [
        _of_tables("Rows that violate an expectation, by table", violated, "rows", "sum", log_groups),
        _last("Expectations violated: the last batches", violated, log_groups, width=ALL - THIRD),
    ]


def _files(metrics: ServiceMetrics, log_groups: Sequence[str]) -> list[cw.IWidget]:
    """Small files make reading dear; compaction is measured by what it takes away."""
    gain = [metrics.of(CompactionEnded, name, minutes=60) for name in ("files_removed", "files_added")]
    return [
        _of_tables("Files by table", HealthMeasured.__name__, "files", "latest", log_groups),
        _of_tables("Small files by table, %", HealthMeasured.__name__, "small_share_percent", "latest", log_groups),
        _graph("Compaction: small files removed, large files added", gain),
    ]


def _of_tables(title: str, event: str, field: str, statistic: str, log_groups: Sequence[str]) -> cw.LogQueryWidget:
    """The largest 30, over the time that the page shows. The event is a pattern."""
    lines = [
        f'filter @message like /"event": "{event}"/',
        'parse @message /"table": "(?<name>[^"]+)"/',
        f'parse @message /"{field}": (?<number>[0-9.]+)/',
        f"stats {statistic}(number) as {field} by name",
        f"sort {field} desc",
        "limit 30",
    ]
    return _log_table(title, lines, log_groups)


def _last(title: str, event: str, log_groups: Sequence[str], width: int = THIRD) -> cw.LogQueryWidget:
    lines = [
        "fields @timestamp, @message",
        f'filter @message like /"event": "{event}"/',
        "sort @timestamp desc",
        "limit 20",
    ]
    return _log_table(title, lines, log_groups, width)


def _log_table(title: str, lines: Sequence[str], log_groups: Sequence[str], width: int = THIRD) -> cw.LogQueryWidget:
    return cw.LogQueryWidget(title=title, log_group_names=list(log_groups), query_lines=list(lines), width=width)


def _upkeep(metrics: ServiceMetrics, *, watched: bool) -> list[cw.IWidget]:
    left = [metrics.of(CompactionEnded, "tables_left", minutes=60, label="left by compaction")]
    left.append(metrics.of(MaintenanceEnded, "tables_left", minutes=60, label="left by maintenance"))
    failed = metrics.by_table(TableNotCompacted, "tables"), metrics.by_table(TableNotMaintained, "tables")
    shown: list[cw.IWidget] = [
        _graph("Runs of upkeep: tables left for the next run", left),
        _graph("Tables that need attention", failed, stacked=True),
        _graph("Files S3 never announced", [metrics.of(FilesReconciled, "missed", minutes=60)]),
        _graph("Accounts that differ", [metrics.of(AccountsChecked, "differences", minutes=60)]),
    ]
    age = metrics.by_table(TableFreshnessMeasured, "since_rows_seconds", statistic="Maximum")
    return [*shown, _graph("Since a watched table got rows, seconds", [age])] if watched else shown


def _trends(metrics: ServiceMetrics, jobs: Sequence[Job]) -> list[cw.IWidget]:
    def averages(field: str) -> list[cw.IMetric]:
        names = {f"{field}_{span}_seconds": f"average of a {span}" for span in ("day", "week")}
        return [
            metrics.of(TrendMeasured, n, statistic="Maximum", minutes=60, label=label) for n, label in names.items()
        ]

    waiting = metrics.of(FreshnessMeasured, "waiting", statistic="Maximum", minutes=60)
    size = metrics.of(TrendMeasured, "file_bytes", statistic="Maximum", minutes=60)
    backlog = cw.MathExpression(
        expression="waiting * size",
        using_metrics={"waiting": waiting, "size": size},
        period=Duration.hours(1),
        label="waiting, bytes, approximately",
    )
    spent = [metrics.of_job(JobEnded, "dpu_seconds", job.name) for job in jobs]
    return [
        cw.GraphWidget(title="From landing to rows, seconds", left=averages("latency"), right=[backlog], width=THIRD),
        _graph("A run of the ingest job, DPU-seconds", averages("run_dpu")),
        _graph("DPU-seconds by job", spent, stacked=True),
    ]


def _price_of_a_day(metrics: ServiceMetrics, jobs: Sequence[Job], dpu_hour_usd: float) -> cw.IWidget:
    """By DPU-seconds of runs that ended, so a continuous run counts when it ends, which is weekly. The rest of the bill is the
    budget's."""
    spent = {
        f"spent{n}": metrics.of_job(JobEnded, "dpu_seconds", job.name, minutes=24 * 60) for n, job in enumerate(jobs)
    }
    price = cw.MathExpression(
        expression=f"({' + '.join(f'FILL({name}, 0)' for name in spent)}) / 3600 * {dpu_hour_usd:g}",
        using_metrics=dict(spent),
        period=Duration.days(1),
        label="USD per day, approximately",
    )
    return _graph("Cost of the jobs", [price], ALL)


def _errors(log_groups: Sequence[str]) -> cw.LogQueryWidget:
    return cw.LogQueryWidget(
        title="Needs attention",
        log_group_names=list(log_groups),
        query_lines=[
            "fields @timestamp, @message",
            'filter @message like /"level": "error"/',
            "sort @timestamp desc",
            "limit 50",
        ],
        width=ALL,
    )
