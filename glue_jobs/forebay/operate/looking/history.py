"""Batches, operators' commands, changes of tables, deployments and alarms, on one time line.

In: a view of the lake, a time, perhaps tables and a deployment. Out: `Happened`s, the newest first. Each operator's command
leaves one small object (`record_verb`), written once and never changed, with the caller, the time, and how to undo it. Tables'
logs are read only on request: every batch writes to them, so they may have many commits.
"""

from __future__ import annotations

import getpass
import json
import socket
import uuid
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from typing import Any

from botocore.exceptions import ClientError

from forebay.counted import counted
from forebay.lake.layout import LEDGER, is_erasure, table_path, verbs_of
from forebay.lake.log.definition import origins_in
from forebay.lake.log.listing import LOG, version_of_commit
from forebay.lake.objects import open_objects
from forebay.ledger.versions import NOT_DONE
from forebay.operate.lake_view import LakeView, known_table, quoted, rows_of
from forebay.operate.stack.deployed import alarm_changes, deploys
from forebay.operate.stack.deployment import Deployment
from forebay.threads import in_threads

QUIET = ("WRITE", "STREAMING UPDATE")
"""Operations that add rows: the batches report them. They are shown of one table only, which may be rolled back to them."""
EFFECTS = ("add", "remove", "metaData")
"""Actions of a commit that a rollback undoes. VACUUM commits without any of them."""


@dataclass(frozen=True)
class Happened:
    """`kind` is batch, verb, table, deploy or alarm; `undo` is what takes it back, where there is such a thing."""

    at: datetime
    kind: str
    what: str
    who: str = ""
    undo: str = ""


def record_verb(lake: str, what: str, *, undo: str = "", now: datetime | None = None) -> Happened:
    """Keeps that an operator did something. Said twice, it was done twice."""
    now = now or datetime.now(UTC)
    happened = Happened(now, "verb", what, f"{getpass.getuser()} on {socket.gethostname()}", undo)
    text = json.dumps({**asdict(happened), "at": now.isoformat()})
    # The name sorts by time: a look at the last days lists no more than these.
    open_objects(verbs_of(lake)).write(f"{now:%Y-%m-%dT%H%M%S}-{uuid.uuid4().hex[:8]}.json", text.encode())
    return happened


def history_of(
    view: LakeView,
    *,
    since: datetime,
    table: str = "",
    all_tables: bool = False,
    on: Deployment | None = None,
    untold: Callable[[str], None] = lambda why: None,
) -> list[Happened]:
    """With a deployment, also its deployments and alarms. Refusals of AWS are `untold`."""
    found = [*_batches(view, since), *_verbs(view.lake, since)]
    tables = view.tables() if all_tables else [known_table(view, table)] if table else []
    for of_table in in_threads(lambda name: list(_of_table(view, name, since, all_tables)), tables):
        found += of_table
    if on is not None:
        for kind, changes in (("deploy", deploys), ("alarm", alarm_changes)):
            try:
                found += [Happened(one.at, kind, one.what) for one in changes(on, since)]
            except ClientError as refused:
                untold(f"no {kind} is shown: {refused.response['Error'].get('Code')} of {refused.operation_name}")
    return sorted(found, key=lambda one: one.at, reverse=True)


def _batches(view: LakeView, since: datetime) -> Iterator[Happened]:
    """A file that is read again has one row, of the new batch. So the earlier batch no longer counts it."""
    ledger = view.table(LEDGER)
    if ledger is None:
        return
    sums = "sum(records) records, sum(quarantined) quarantined, sum(parked) parked"
    stayed = ", ".join(map(quoted, NOT_DONE.values()))
    has_tries = "tries" in {field.name for field in ledger.schema().fields}
    is_moved = f"tries > 1 and coalesce(reason, '') not in ({stayed})" if has_tries else "false"
    rows = rows_of(
        ledger,
        f"select service, generation, batch, max(committed_at) at, count(*) files, {sums}, "
        f"count(*) filter (where {is_moved}) moved from t "
        f"where day >= date '{since.date()}' and committed_at >= timestamp '{since.isoformat()}' "
        "group by service, generation, batch",
    )
    for row in rows:
        moved = f" ({row['moved']:,} moved here from an earlier batch)" if row["moved"] else ""
        aside = "".join(f", {row[name]:,} {name}" for name in ("quarantined", "parked") if row[name])
        what = (
            f"batch {row['batch']} of {row['service']}: {counted(row['files'], 'file')}{moved}, "
            f"{counted(row['records'] or 0, 'record')}{aside}"
        )
        yield Happened(row["at"], "batch", what)


def _verbs(lake: str, since: datetime) -> Iterator[Happened]:
    objects = open_objects(verbs_of(lake))
    for found in objects.found(after=f"{since:%Y-%m-%dT%H%M%S}"):
        stored: dict[str, Any] = json.loads(objects.read(found.name) or b"{}")
        if stored:
            yield Happened(**{**stored, "at": datetime.fromisoformat(stored["at"])})


def _of_table(view: LakeView, table: str, since: datetime, only_changes: bool) -> Iterator[Happened]:
    """Its commits: columns, compactions, deletions, restores, and without `only_changes` also the rows that came. `rollback`
    undoes those that came after the last erasure, of a table that is not computed from others."""
    objects = open_objects(table_path(view.lake, table))
    goes_back = not origins_in(objects)
    for found in reversed(list(objects.found(LOG))):
        version = version_of_commit(found.name)
        if version is None or found.modified < since:
            continue
        actions = [json.loads(line) for line in (objects.read(found.name) or b"").splitlines() if line.strip()]
        info: dict[str, Any] = next((action["commitInfo"] for action in actions if "commitInfo" in action), {})
        goes_back &= not any(is_erasure(action["txn"]["appId"]) for action in actions if "txn" in action)
        operation = str(info.get("operation", "commit"))
        is_changed = operation != "RESTORE" and any("metaData" in action for action in actions)
        changes = ["new columns or properties"] if is_changed else []
        if changes or operation not in QUIET or not only_changes:
            what = f"{table} version {version}: {', '.join([operation, *_rows_of(actions), *changes])}"
            has_effect = any(kind in action for action in actions for kind in EFFECTS)
            undo = f"forebay rollback {table} --to {version - 1}" if version and goes_back and has_effect else ""
            yield Happened(found.modified, "table", what, str(info.get("userName") or ""), undo)


def _rows_of(actions: list[dict[str, Any]]) -> list[str]:
    """The number of rows that came, of a commit that only adds some. Other writers may count none."""
    added = [json.loads(action["add"].get("stats") or "{}").get("numRecords") for action in actions if "add" in action]
    is_append = added and None not in added and not any("remove" in action for action in actions)
    return [counted(sum(added), "row")] if is_append else []
