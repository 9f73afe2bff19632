"""Updates the ids of `dedupe` after a rollback: ids of removed rows are removed, and ids of restored rows are restored.

In: restored tables. Out: commits to the ids, which restore the ids of each file and table of the restored version. Otherwise a
new copy of a removed record would be dropped, and a new copy of a restored one would not. A superseded version whose rows still
leave has no ids. A second run changes nothing. If the
log of the ids does not reach back that far, ids of files that lost or got rows are unknown.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from functools import cache, partial

import pyarrow as pa
import pyarrow.compute as pc
from deltalake import DeltaTable, write_deltalake
from deltalake.exceptions import DeltaError

from forebay.batch.dedupe import RETRY
from forebay.declaration.kept.in_force import kept_service
from forebay.errors import Halt
from forebay.lake.conflict import commit
from forebay.lake.layout import IDS, LEDGER, application, service_of, table_path
from forebay.lake.log.commit import transactions_of
from forebay.lake.log.listing import LOG, committed_at, version_of_commit
from forebay.lake.log.snapshot import read_snapshot
from forebay.lake.objects import open_objects
from forebay.operate.changing.rollback_ledger import Rollback, TableBack
from forebay.operate.lake_view import LakeView, arrow_of, quoted
from forebay.operate.looking.files import LedgerFile
from forebay.table.kernel import NO_VERSION

AT_ONCE = 5000


def must_know_ids(view: LakeView, found: Iterable[tuple[LedgerFile, Collection[str]]]) -> None:
    """`Halt` where superseded versions that would be in force again have rows in other tables (`left_elsewhere`). The ids of
    these rows left with the version, and no table says which ones they were."""
    service_named = cache(partial(kept_service, view.lake))
    for file, tables in found:
        service = service_named(file.service or "")
        for table in sorted(tables):
            made = service and service.maker_of(table)
            if made and made.dedupe:
                raise Halt(
                    f"{file.uri}: a version that a later one replaced would be in force again, and table {table} still has "
                    "rows of it. Copies of these records would be loaded beside them. The rows leave when a job starts and can "
                    f"write the table; if {table} is paused, `forebay resume {table}` first. Then repeat this command. "
                    "Nothing was done"
                )


def ids_as_then(view: LakeView, plan: Rollback) -> None:
    for one in plan.tables:
        files = sorted(one.files)
        for at in range(0, len(files), AT_ONCE):
            commit(
                partial(_as_then, view, one, files[at : at + AT_ONCE]),
                refused="the tables were rolled back, but other writers kept changing the ids of records; repeat the command",
            )


def _as_then(view: LakeView, one: TableBack, files: Sequence[str]) -> None:
    ids = view.table(IDS)
    if ids is None:
        return
    where = _meant(ids, one.table, files)
    stand = {row["_file_id"] for row in view.rows_with(one.table, 'distinct "_file_id"', "_file_id", files)}
    going = {
        row["file_id"] for row in view.rows_with(LEDGER, "file_id", "file_id", stand, where="outcome = 'superseded'")
    }
    known = _known_then(view, one, ids, [file for file in files if file in stand - going])
    if known is None or not known.num_rows:
        ids.delete(where)
    else:
        write_deltalake(ids, known, mode="overwrite", predicate=where)


def _known_then(view: LakeView, one: TableBack, ids: DeltaTable, files: Sequence[str]) -> pa.Table | None:
    """The ids of the rows that the table had; None where they are no longer known."""
    if not files:
        return None
    try:  # the cleanup of a log may leave commits that no checkpoint comes before
        version, later = _versions_then(view, one, ids)
        asked = [(version, _of_others(later)), *((at, _of_service(name)) for name, at in sorted(later.items()))]
        parts = [_of(_at(view, at), one.table, files, whose) for at, whose in asked if at > NO_VERSION]
    except (DeltaError, FileNotFoundError):
        return None
    return _of_rows(view, one, pa.concat_tables(parts, promote_options="default")) if parts else None


def _versions_then(view: LakeView, one: TableBack, ids: DeltaTable) -> tuple[int, dict[str, int]]:
    table, log = (open_objects(table_path(view.lake, name)) for name in (one.table, IDS))
    made = {number: at.modified for at in log.found(LOG) if (number := version_of_commit(at.name)) is not None}
    followed = committed_at(table, one.to + 1)
    version = max((number for number, at in made.items() if followed and at < followed), default=NO_VERSION)
    if followed is None or (version == NO_VERSION and 0 not in made):
        return NO_VERSION, {}
    then = None if version == NO_VERSION else _at(view, version)
    written = read_snapshot(table, up_to=one.to).transactions
    waited = {app: batch for app, batch in written.items() if _last(then, app) < batch <= _last(ids, app)}
    commits = ((number, transactions_of(log, number)) for number in sorted(made) if number > version)
    return version, later_versions(waited, commits)


def later_versions(waited: Mapping[str, int], commits: Iterable[tuple[int, Mapping[str, int]]]) -> dict[str, int]:
    """The versions of the ids that the commits of these batches made, by service. A batch commits its ids after its rows. The
    commit that followed in the table may come in between: it may be a compaction's, or another service's. It may also have the
    time of these ids, because S3's times are whole seconds. Where a later batch committed ids and this one did not, there is
    nothing to wait for."""
    left, later = dict(waited), dict[str, int]()
    for number, carried in commits:
        for app in left.keys() & carried.keys():
            if carried[app] == left[app]:
                later[service_of(app)] = number
            if carried[app] >= left[app]:
                del left[app]
        if not left:
            break
    return later


def _at(view: LakeView, version: int) -> DeltaTable:
    ids = view.table(IDS)
    assert ids is not None
    ids.load_as_version(version)
    return ids


def _last(ids: DeltaTable | None, app: str) -> int:
    last = None if ids is None else ids.transaction_version(app)
    return NO_VERSION if last is None else last


def _of_service(name: str) -> str:
    return f" and service = {quoted(name)}"


def _of_others(later: Collection[str]) -> str:
    return f" and service not in ({', '.join(map(quoted, sorted(later)))})" if later else ""


def _of(ids: DeltaTable, table: str, files: Sequence[str], whose: str) -> pa.Table:
    try:
        found = arrow_of(ids, f"select * from t where {_meant(ids, table, files)}{whose}")
    except pa.ArrowInvalid as broken:
        if "not found" not in str(broken):
            raise
        raise FileNotFoundError(str(broken)) from broken  # maintenance deleted a data file
    return found.cast(pa.schema(ids.schema()))  # a query gives other types of texts


def _meant(ids: DeltaTable, table: str, files: Sequence[str]) -> str:
    """Of ids without a table, which earlier code wrote, all of the file are meant."""
    named = "table" in ids.schema().to_arrow().names
    of_table = f' and coalesce("table", {quoted(table)}) = {quoted(table)}' if named else ""
    return f"file_id in ({', '.join(map(quoted, files))})" + of_table


def _of_rows(view: LakeView, one: TableBack, known: pa.Table) -> pa.Table:
    """Without ids of retries that had not written the table yet: a retry commits the ids first."""
    if "generation" not in known.schema.names:
        return known
    written = read_snapshot(open_objects(table_path(view.lake, one.table)), up_to=one.to).transactions
    of_retry = pc.field("generation") == RETRY
    for service in pc.unique(known["service"]).to_pylist():
        last = written.get(application(service, RETRY), NO_VERSION)
        later = of_retry & (pc.field("service") == service) & (pc.field("batch") > last)
        known = known.filter(~pc.coalesce(later, pc.scalar(False)))  # rows of earlier code have no generation
    return known
