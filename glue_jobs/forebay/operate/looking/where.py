"""The life of one file, from its notification to its current rows in the tables; or the reason why it has none.

In: a view of the lake, and an object's address. Out: a `Life` for each of its versions that the ledger has. The rows are
counted in the tables themselves, so a row that somebody deleted is missing here. Nothing is written.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from typing import Any

from forebay.batch.dedupe import RETRY
from forebay.errors import InvalidConfiguration
from forebay.lake.layout import LEDGER, PARKED, QUARANTINE, application, table_path
from forebay.lake.log.listing import LOG, version_of_commit
from forebay.lake.objects import Objects, open_objects
from forebay.ledger.entry import DELETED
from forebay.operate.lake_view import LakeView, columns_there, having, quoted
from forebay.operate.looking.files import Away, LedgerFile, away_of, versions_of

CLOCKS_DIFFER = timedelta(minutes=10)
READ_COMMITS = 200
"""A table's commits that are looked at for compactions since."""


@dataclass(frozen=True)
class InTable:
    """A file's rows in one table: by the ledger's count, and by today's count. `version` is the commit that brought
    them, None where the log does not show which; `rewritten` counts commits since then that only moved rows. `by_retry`: they
    were held, and came with a retry."""

    table: str
    rows: int
    rows_now: int
    version: int | None
    rewritten: int
    by_retry: bool = False

    @property
    def all_there(self) -> bool:
        return self.rows == self.rows_now


@dataclass(frozen=True)
class Life:
    """`quarantined` counts the file's records there by reason; whole files count as one. `details`: of reasons for which all of
    its records have the same. `away`: it is no longer in the landing bucket. `deleted_at`: its key was deleted, and that
    superseded it."""

    file: LedgerFile
    tables: tuple[InTable, ...] = ()
    quarantined: Mapping[str, int] = field(default_factory=dict)
    parked: int = 0
    details: Mapping[str, str] = field(default_factory=dict)
    away: Away | None = None
    deleted_at: datetime | None = None

    @property
    def well(self) -> bool:
        return all(one.all_there for one in self.tables)


def lives_of(view: LakeView, bucket: str, key: str) -> list[Life]:
    """The newest version first; none where the ledger does not know the key."""
    found = versions_of(view, bucket, key)
    away, deleted = away_of(view, found), {file.file_id: file.event_time for file in found if file.outcome == DELETED}
    return [
        replace(_life(view, file), away=away.get(file.file_id), deleted_at=deleted.get(file.superseded_by or ""))
        for file in found
    ]


def file_of_row(view: LakeView, table: str, column: str, value: str) -> list[tuple[str, str]]:
    """Bucket and key of the files that brought the rows with this value."""
    has_value = having(view, table, column, value, option="--by")
    if "_file_id" not in columns_there(view, table):
        hint = "the rows of a rollup come from many files: name a table that it reads"
        raise InvalidConfiguration.one(f"--row {table}", "its rows do not name a file", hint)
    ids = [row["_file_id"] for row in view.query(table, f"select distinct _file_id from t where {has_value}")]
    return sorted({(row["bucket"], row["key"]) for row in view.rows_with(LEDGER, "bucket, key", "file_id", ids)})


def _life(view: LakeView, file: LedgerFile) -> Life:
    this = f"where file_id = {quoted(file.file_id)}"
    one_detail = "case when count(distinct detail) = 1 then min(detail) end"
    by_reason = f"select reason, count(*) n, {one_detail} detail from t {this} group by reason order by reason"
    kept = view.query(QUARANTINE, by_reason)
    parked = view.query(PARKED, f"select count(*) n from t {this}")
    tables = tuple(_in_table(view, file, table, rows) for table, rows in sorted(file.tables.items()))
    quarantined = {row["reason"]: row["n"] for row in kept}
    details = {row["reason"]: row["detail"] for row in kept if row["detail"]}
    return Life(file, tables, quarantined, parked[0]["n"] if parked else 0, details)


def _in_table(view: LakeView, file: LedgerFile, table: str, rows: int) -> InTable:
    there = view.query(table, f"select count(*) n from t where _file_id = {quoted(file.file_id)}")
    commits, are_all = _commits(open_objects(table_path(view.lake, table)), file.claimed_at)
    service = file.service or ""
    batch, retry = (application(service, file.generation or ""), file.batch), application(service, RETRY)
    by_batch = [version for version, actions in commits if batch in _transactions(actions)]
    by_retry = [version for version, actions in commits if are_all and retry in dict(_transactions(actions))]
    brought = by_batch[:1] or (by_retry if len(by_retry) == 1 else [])
    rewritten = sum(_only_moves(actions) for version, actions in commits if brought and version > brought[0])
    version = brought[0] if brought else None
    return InTable(table, rows, there[0]["n"] if there else 0, version, rewritten, bool(by_retry and not by_batch))


def _commits(table: Objects, since: datetime | None) -> tuple[list[tuple[int, list[dict[str, Any]]]], bool]:
    """The first commits after a moment, with their actions, and whether the log still has all of them."""
    begin = since - CLOCKS_DIFFER if since else None
    found = [(version, one) for one in table.found(LOG) if (version := version_of_commit(one.name)) is not None]
    later = [(version, one) for version, one in found if begin is None or one.modified >= begin]
    commits = [
        (version, [json.loads(line) for line in (table.read(one.name) or b"").splitlines() if line.strip()])
        for version, one in later[:READ_COMMITS]
    ]
    return commits, len(later) < len(found) or any(version == 0 for version, _ in later)


def _transactions(actions: list[dict[str, Any]]) -> list[tuple[str, int]]:
    """The applications of a commit, each with its version."""
    found = [action["txn"] for action in actions if "txn" in action]
    return [(txn["appId"], txn["version"]) for txn in found]


def _only_moves(actions: list[dict[str, Any]]) -> bool:
    """A compaction: files went and came, and no row changed."""
    removed = [action["remove"] for action in actions if "remove" in action]
    return bool(removed) and not any(one.get("dataChange", True) for one in removed)
