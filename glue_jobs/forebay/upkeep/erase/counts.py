"""The ledger, after rows left tables: they are dropped where they were written, quarantined or parked.

In: rows that left, by file and table. Out: one commit to the ledger, which carries a number as its transaction. A file whose
entry is another one by now was read again since, without these rows, so its counts hold already.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import pyarrow as pa
from deltalake import CommitProperties, DeltaTable, QueryBuilder, Transaction

from forebay.aws.delta_rs import open_table
from forebay.errors import Halt
from forebay.lake.conflict import commit
from forebay.lake.layout import LEDGER, PARKED, QUARANTINE, table_path
from forebay.lake.rows import python_rows

__all__ = ["HELD", "change_ledger", "counts_after", "ledger_of"]

ASKED_AT_ONCE = 5000
SAME = ("generation", "batch", "committed_at")
"""What an entry is known by: whoever reads a file again writes another one."""
HELD = {QUARANTINE: "quarantined", PARKED: "parked"}
NUMBERS = ("written", "quarantined", "parked", "dropped")
KINDS = {"file_id": pa.string(), **dict.fromkeys(NUMBERS, pa.int64()), "tables": pa.map_(pa.string(), pa.int64())}


def ledger_of(lake: str) -> DeltaTable:
    return open_table(table_path(lake, LEDGER))


def change_ledger(lake: str, app_id: str, number: int, leaving: Mapping[str, Mapping[str, int]], *, as_of: int) -> None:
    """`leaving` are rows by file and table, `as_of` the ledger's version when they were there. Said again, nothing changes."""
    if not leaving:
        return

    def attempt() -> None:
        ledger = ledger_of(lake)
        if ledger.transaction_version(app_id) == number:
            return
        then = ledger_of(lake)
        then.load_as_version(as_of)
        before, now = _entries(then, leaving), _entries(ledger, leaving)
        same = [row for id_, row in now.items() if id_ in before and all(row[n] == before[id_][n] for n in SAME)]
        changed = [counts_after(row, leaving[row["file_id"]]) for row in same]
        rows = pa.Table.from_pylist(changed, pa.schema(KINDS.items()))
        properties = CommitProperties(app_transactions=[Transaction(app_id, number)])
        merge = ledger.merge(
            rows, "t.file_id = s.file_id", source_alias="s", target_alias="t", commit_properties=properties
        )
        merge.when_matched_update({name: f"s.{name}" for name in KINDS if name != "file_id"}).execute()

    commit(attempt, refused="the rows left, but the ledger is written all the time; say it again to finish it")


def counts_after(row: Mapping[str, Any], leaving: Mapping[str, int]) -> dict[str, Any]:
    """What is not there any more was taken by somebody else, who counted it."""
    tables, held = dict(row["tables"] or ()), {name: row[name] for name in HELD.values()}
    dropped = row["dropped"]
    for table, rows in leaving.items():
        there = held[HELD[table]] if table in HELD else tables.get(table, 0)
        left = min(rows, there)
        if table in HELD:
            held[HELD[table]] -= left
        else:
            tables[table] = there - left
        dropped += left
    tables = {table: rows for table, rows in sorted(tables.items()) if rows}
    counts = {"written": sum(tables.values()), **held, "dropped": dropped}
    if row["records"] != sum(counts.values()):
        raise Halt(f"s3://{row['bucket']}/{row['key']}: the ledger's counts do not add up; see `forebay accounts`")
    return {"file_id": row["file_id"], **counts, "tables": list(tables.items())}


def _entries(ledger: DeltaTable, wanted: Iterable[str]) -> dict[str, dict[str, Any]]:
    ids, found = sorted(wanted), dict[str, dict[str, Any]]()
    for at in range(0, len(ids), ASKED_AT_ONCE):
        some = ", ".join(f"'{one}'" for one in ids[at : at + ASKED_AT_ONCE])  # hashes, as hexadecimal digits
        asked = QueryBuilder().register("t", ledger).execute(f"select * from t where file_id in ({some})")
        found |= {row["file_id"]: row for row in python_rows(pa.table(asked))}
    return found
