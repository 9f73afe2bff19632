"""Updates the ids of `dedupe` after a rollback: ids of removed rows are removed, and ids of restored rows are restored.

In: restored tables. Out: commits to the ids, which restore the ids of each file and table of the restored version. Otherwise a
new copy of a removed record would be dropped, and a new copy of a restored one would not. A second run changes nothing. If the
log of the ids does not reach back that far, ids of files that lost or got rows are unknown.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

import pyarrow as pa
import pyarrow.compute as pc
from deltalake import DeltaTable, write_deltalake
from deltalake.exceptions import DeltaError

from forebay.batch.dedupe import RETRY
from forebay.lake.conflict import commit
from forebay.lake.layout import IDS, application, table_path
from forebay.lake.log.listing import committed_at
from forebay.lake.log.snapshot import read_snapshot
from forebay.lake.objects import open_objects
from forebay.operate.changing.rollback_ledger import Rollback, TableBack
from forebay.operate.lake_view import LakeView, arrow_of, quoted
from forebay.table.kernel import NO_VERSION

AT_ONCE = 5000


def ids_as_then(view: LakeView, plan: Rollback) -> None:
    for one in plan.tables:
        files = sorted(one.changes)
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
    known = _known_then(view, one, [file for file in files if file in stand])
    if known is None or not known.num_rows:
        ids.delete(where)
    else:
        write_deltalake(ids, known, mode="overwrite", predicate=where)


def _known_then(view: LakeView, one: TableBack, files: Sequence[str]) -> pa.Table | None:
    """The ids before the commit that followed in the table: by then the ids of its rows were in. If a retry made that commit,
    so were those of its rows."""
    then = view.table(IDS)
    followed = committed_at(open_objects(table_path(view.lake, one.table)), one.to + 1)
    if not files or then is None or followed is None:
        return None
    try:
        then.load_as_version(followed)
        # delta-rs gives the first version for a time before it.
        at = committed_at(open_objects(table_path(view.lake, IDS)), then.version())
        return None if at is None or at > followed else _of_rows(view, one, _of(then, one.table, files))
    except (DeltaError, FileNotFoundError):
        return None


def _of(ids: DeltaTable, table: str, files: Sequence[str]) -> pa.Table:
    try:
        found = arrow_of(ids, f"select * from t where {_meant(ids, table, files)}")
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
