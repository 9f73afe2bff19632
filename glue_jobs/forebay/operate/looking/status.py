"""The state of a service, from the queue, the job, the ledger and held records. It needs no JVM, and reads no table's data.

In: a view of the lake, and what is known of the queue, the checkpoint and the deployment. Out: a `Status`, with the problems
that a person must look at, in sentences. A ledger of a million files is counted in well under a second.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from functools import partial
from typing import Any

from forebay.address import region_of_queue
from forebay.aws.client import client
from forebay.aws.preflight import check_queue
from forebay.aws.prices import read_prices
from forebay.batch.reasons import PAUSED_TABLE, TABLE_FAILED
from forebay.capacity.waiting import NAME, Waiting
from forebay.counted import counted
from forebay.declaration.kept.in_force import kept_services
from forebay.jobs.first_batch import first_batch
from forebay.jobs.lost_ledger import table_without_ledger
from forebay.jobs.service_name import service_of
from forebay.lake.health import Health, HealthRecords
from forebay.lake.layout import LEDGER, PARKED, QUARANTINE, is_own
from forebay.lake.lease import holder
from forebay.lake.objects import open_objects
from forebay.lake.origin import table_lost
from forebay.lake.paused import ALL, paused_tables
from forebay.lake.rollback_plan import command_of, rollback_plan
from forebay.ledger.entry import DENIED, FORGET, PARTLY_REPLAYED, PUT_AGAIN, REPLAY, WANTED_AGAIN
from forebay.operate.lake_view import Counted, LakeView, lost_tables, quoted, tables_there
from forebay.operate.looking.held import waiting_for
from forebay.operate.looking.queue import Depth, dead_letter_url, depth_of
from forebay.operate.looking.refused import count_refused
from forebay.operate.named_lake import checkpoint_of
from forebay.operate.page.content import Cost, Run
from forebay.operate.stack.aws_answers import Alarm
from forebay.operate.stack.cost import cost_of, hours_of, month_of
from forebay.operate.stack.deployed import alarms_ringing, emr_hours_since, runs_since
from forebay.operate.stack.deployment import Deployment
from forebay.threads import in_threads
from forebay.upkeep.accounts.open_batches import open_batches
from forebay.upkeep.reconcile.last import LastReconcile, last_reconcile


@dataclass(frozen=True)
class LastBatch:
    batch: int
    service: str
    at: datetime
    files: int
    records: int


@dataclass(frozen=True)
class BatchBegun:
    batch: int
    service: str
    at: datetime
    files: int


@dataclass(frozen=True)
class Status:
    """`today` counts files by outcome, of batches that ended today in UTC; `refused` are messages that nobody could understand,
    kept with their bodies; `failed` are rows by table that wait in the quarantine because the table could not be written."""

    at: datetime
    queue: Depth | None
    dead: Depth | None
    runs: str | None
    files: int
    batch: LastBatch | None
    today: Mapping[str, int] = field(default_factory=dict)
    records_today: int = 0
    quarantined: int = 0
    """Records; besides them, `whole_files` could not be read at all."""
    whole_files: int = 0
    parked: int = 0
    refused: int = 0
    failed: Mapping[str, int] = field(default_factory=dict)
    causes: Mapping[str, str] = field(default_factory=dict)
    """Why the tables with `failed` rows could not be written, if known."""
    begun: tuple[BatchBegun, ...] = ()
    """Batches that have not ended."""
    paused: Mapping[str, int] = field(default_factory=dict)
    """Rows by table that wait because it is paused, or was."""
    now_paused: frozenset[str] = frozenset()
    going_back: Mapping[str, int | None] = field(default_factory=dict)
    """Tables whose rollback is unfinished, and the version that each goes to; None for one that is dropped."""
    finishes_going_back: str = ""
    """The command that finishes it."""
    replays: int = 0
    """Files that wait to be read again."""
    partly: int = 0
    """Files with rows of an earlier reading in a table."""
    forgets: int = 0
    """Files that wait to be forgotten."""
    tables: int = 0
    """As `forebay tables list` counts them."""
    newest_rows: Mapping[str, datetime] = field(default_factory=dict)
    """When each table last got rows: by the ledger where that was today or yesterday, else by its health object."""
    reconciled: LastReconcile | None = None
    alarms: tuple[Alarm, ...] | None = None
    """Alarms that ring. Without a deployment, this is None, and so are the runs and the cost."""
    runs_of_jobs: tuple[Run, ...] | None = None
    """The runs of this month."""
    cost: Cost | None = None
    budget_warned_at: datetime | None = None
    """When a message warned, within a day, that the budget holds runs back and files are late."""
    denied: int = 0
    """Files that the job may not read."""
    lost: str | None = None
    """A table that jobs have filled, where there is no ledger."""
    lost_tables: Mapping[str, Counted] = field(default_factory=dict)
    """Tables without a Delta log, and what the ledger counts of each."""

    @property
    def lag_s(self) -> dict[str, float]:
        """The age of each table's newest rows, the oldest first."""
        ages = {table: max(0.0, (self.at - at).total_seconds()) for table, at in self.newest_rows.items()}
        return dict(sorted(ages.items(), key=lambda pair: (-pair[1], pair[0])))

    @property
    def problems(self) -> list[str]:
        found = list[str]()
        if self.lost is not None:
            found.append(
                f"the lake has no ledger, but table {self.lost} has rows that a job loaded: the ledger was lost. "
                "The job refuses this lake until the ledger is back (docs/disasters.md, The ledger)"
            )
        found += [f"{table}: {table_lost(table, its.rows, its.replayed)}" for table, its in self.lost_tables.items()]
        found += [
            f"{table}: {counted(rows, 'row', 'waits')} because the table could not be written"
            f"{_caused(self.causes.get(table))}. Fix the cause (`forebay tables check` with --lake says how), "
            f"then `forebay quarantine retry --table {table} --service FOLDER`"
            for table, rows in sorted(self.failed.items())
        ]
        found += [
            f"{table}: {counted(rows, 'row', 'waits')} that arrived while it was paused (`forebay resume {table}` loads them)"
            for table, rows in sorted(self.paused.items())
            if table not in self.now_paused and ALL not in self.now_paused
        ]
        if self.runs is None:
            found += [
                f"batch {one.batch} of {one.service} began at {one.at:%Y-%m-%d %H:%M:%S} and has not ended: start the job to "
                "finish it"
                for one in self.begun
            ]
        if self.going_back:
            what = "drop" if None in self.going_back.values() else "rollback"
            problem = f"a {what} of {', '.join(self.going_back)} is unfinished"
            found.append(f"{problem} (repeat `{self.finishes_going_back}` to finish it)")
        if self.dead is not None and (dead := self.dead.waiting + self.dead.in_flight):
            found.append(f"{counted(dead, 'dead letter')} (`forebay queue dlq` says why)")
        if self.refused:
            then = "(`forebay queue refused` shows why, and with --drop deletes the copies)"
            found.append(f"{counted(self.refused, 'message')} not understood {then}")
        if self.denied:
            may = f"the job may not read {counted(self.denied, 'file')}"
            found.append(f"{may} (`forebay files list --outcome denied` shows why). Once it may, it reads them")
        found += [f"alarm {alarm.name}: {alarm.says}".rstrip(": ") for alarm in self.alarms or ()]
        newest = {run.job: run for run in sorted(self.runs_of_jobs or (), key=lambda run: run.began_at)}
        found += [
            f"job {run.job}: the last run failed: {run.error}".rstrip(": ") for run in newest.values() if run.is_bad
        ]
        return found


def status_of(
    view: LakeView,
    *,
    queue_url: str = "",
    checkpoint: str = "",
    on: Deployment | None = None,
    health: Sequence[Health] | None = None,
    now: datetime | None = None,
) -> Status:
    """Nothing of the queue where its URL is not known, and nothing of runs, alarms and cost without a deployment. `health` is
    read unless it is given."""
    now = now or datetime.now(UTC)
    health = health_objects(view.lake) if health is None else health
    there = tables_there(view)
    queue_url = queue_url or (on.queue_url if on is not None else "")
    folder = checkpoint_of(view.lake, checkpoint)
    holds = holder(folder)
    queue, dead = _queues(queue_url, _clients(queue_url, on)) if queue_url else (None, None)
    outcomes = view.query(
        LEDGER, f"select outcome, count(*) n, sum(records) r from t where day = date '{now.date()}' group by outcome"
    )
    runs = runs_since(on, month_of(now)) if on is not None else None
    failed, going_back = waiting_for(view, TABLE_FAILED), rollback_plan(view.lake)
    files, parked = (facts.rows if (facts := view.facts(name)) else 0 for name in (LEDGER, PARKED))
    held = view.query(QUARANTINE, "select count(line) records, count(*) - count(line) files from t")
    return Status(
        now,
        queue,
        dead,
        holds.who if holds else None,
        files,
        _last_batch(view),
        {row["outcome"]: row["n"] for row in outcomes},
        sum(row["r"] or 0 for row in outcomes),
        held[0]["records"] if held else 0,
        held[0]["files"] if held else 0,
        parked,
        count_refused(folder),
        {table: one.rows for table, one in failed.items()},
        {table: one.cause for table, one in failed.items() if one.cause},
        tuple(
            BatchBegun(one.batch, one.service, one.began_at, one.files)
            for one in open_batches(view.lake, view.has_batch)
        ),
        {table: one.rows for table, one in waiting_for(view, PAUSED_TABLE).items()},
        paused_tables(view.lake),
        {one["table"]: one["to"] for one in going_back["tables"]} if going_back else {},
        command_of(going_back) if going_back else "",
        _count(view, f"outcome = {quoted(REPLAY)} or reason in ({quoted(WANTED_AGAIN)}, {quoted(PUT_AGAIN)})"),
        _count(view, f"outcome in ('loaded', 'empty') and reason = {quoted(PARTLY_REPLAYED)}"),
        _count(view, f"outcome = {quoted(FORGET)}"),
        len(there),
        {name: at for name, at in _newest_rows(view, health, now).items() if name in there},
        last_reconcile(view.lake),
        tuple(alarms_ringing(on)) if on is not None else None,
        tuple(runs) if runs is not None else None,
        _cost(view, on, runs, health, now) if runs is not None and on is not None else None,
        _budget_warned_at(folder, now),
        _count(view, f"outcome = {quoted(DENIED)}"),
        None if files else _lost(view.lake, folder),
        lost_tables(view, there),
    )


def _lost(lake: str, folder: str) -> str | None:
    """The first batch of the job may have rows in tables before there is a ledger."""
    checkpoint = open_objects(folder)
    return table_without_ledger(lake, first_batch(checkpoint, service_of(checkpoint)))


def _budget_warned_at(checkpoint: str, now: datetime) -> datetime | None:
    note = Waiting.of(open_objects(checkpoint).read(NAME))
    return datetime.fromtimestamp(note.warned_at, UTC) if note.is_warned(now.timestamp()) else None


def _count(view: LakeView, condition: str) -> int:
    return sum(row["n"] for row in view.query(LEDGER, f"select count(*) n from t where {condition}"))


def _newest_rows(view: LakeView, health: Sequence[Health], now: datetime) -> dict[str, datetime]:
    known = {one.table: one.newest_at for one in health if one.newest_at is not None}
    day = (now - timedelta(days=1)).date()
    of_tables = f"select unnest(map_keys(tables)) name, committed_at from t where day >= date '{day}'"
    for row in view.query(LEDGER, f"select name, max(committed_at) at from ({of_tables}) x group by name"):
        known[row["name"]] = max(row["at"], known.get(row["name"], row["at"]))
    return known


def _cost(view: LakeView, on: Deployment, runs: list[Run], health: Sequence[Health], now: datetime) -> Cost:
    since, is_on_emr = month_of(now), bool(on.emr_application)
    services = [service.name for service in kept_services(view.lake)] if is_on_emr else []
    hours = emr_hours_since(on, since, services, {run.job for run in runs}) if is_on_emr else hours_of(runs, since)
    files, size = _count(view, f"day >= date '{since.date()}'"), sum(one.bytes for one in health)
    return cost_of(hours, files, size, read_prices(), now=now, is_on_emr=is_on_emr)


def _clients(url: str, on: Deployment | None) -> Callable[[str], Any]:
    return on.client if on is not None else partial(client, region=region_of_queue(url))


def _queues(url: str, client: Callable[[str], Any]) -> tuple[Depth, Depth | None]:
    sqs = client("sqs")
    check_queue(url, sqs=sqs)
    dead = dead_letter_url(url, sqs=sqs)
    return depth_of(url, sqs=sqs, cloudwatch=client("cloudwatch")), depth_of(dead, sqs=sqs) if dead else None


def _last_batch(view: LakeView) -> LastBatch | None:
    of_a_batch = "batch, service, generation, max(committed_at) at, count(*) files, sum(records) records"
    rows = view.query(
        LEDGER,
        f"select {of_a_batch} from t where day = (select max(day) from t) "
        "group by batch, service, generation order by at desc limit 1",
    )
    return LastBatch(*(rows[0][name] for name in ("batch", "service", "at", "files", "records"))) if rows else None


def _caused(cause: str | None) -> str:
    return f": {' '.join(cause.split()).rstrip('.')}" if cause else "; the job's log says why (TableFailed)"


def health_objects(lake: str) -> list[Health]:
    """The health of each table without its log; one small object each."""
    records = HealthRecords(lake)
    return [one for one in in_threads(records.of, records.names(), at_once=32) if not is_own(one.table)]
