"""Forgets files: removes their rows from the tables on purpose, such as test data that a producer put into production. Also
restores them.

In: addresses, in which * matches any text, or ids of the ledger. Out: a `Replay` to inspect, and the tables that are computed
from its tables. It works like a replay (`operate.changing.replay`), with nothing to read.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from typing import Any

from forebay.errors import InvalidConfiguration, Problem
from forebay.lake.layout import LEDGER
from forebay.operate.changing.replay import FORGOTTEN_FILES, STANDING, Replay, plan_of
from forebay.operate.lake_view import LakeView, known_service, like, quoted
from forebay.operate.looking.files import HOW_TO_NAME, URI, FileChoice, LedgerFile


def to_forget(view: LakeView, addresses: Sequence[str], file_ids: Sequence[str] = (), service: str = "") -> Replay:
    """`InvalidConfiguration` where the ledger does not know one of them, where they are of several services, or where a table
    of theirs is paused."""
    if service:
        known_service(view, service)

    def his(found: Iterable[dict[str, Any]]) -> list[dict[str, Any]]:
        return [row for row in found if service in ("", row["service"])]

    rows = his(view.rows_with(LEDGER, "*", URI, addresses))
    unknown = set(addresses) - {f"s3://{row['bucket']}/{row['key']}" for row in rows}
    for pattern in [one for one in addresses if "*" in one]:
        if found := his(view.query(LEDGER, f"select * from t where {URI} like {like(pattern)}")):
            rows += found
            unknown.discard(pattern)
    rows += (by_id := his(view.rows_with(LEDGER, "*", "file_id", file_ids)))
    unknown |= set(file_ids) - {row["file_id"] for row in by_id}
    if unknown:
        what = "it is not in the ledger" + (f" as a file of {service}" if service else "")
        raise InvalidConfiguration(Problem(one, what, HOW_TO_NAME) for one in sorted(unknown))
    files = {row["file_id"]: LedgerFile.of(row) for row in rows}
    return plan_of(view, sorted(files.values(), key=lambda file: file.uri), STANDING)


def forgotten(view: LakeView, *, key: str = "", file_id: str = "", service: str = "") -> Replay:
    """Files that were forgotten, or wait for it."""
    chosen = FileChoice(key=key, service=service).where()
    condition = f"outcome in ({', '.join(map(quoted, FORGOTTEN_FILES))})"
    condition += f" and file_id = {quoted(file_id)}" if file_id else ""
    rows = view.query(LEDGER, f"select * from t {chosen} {'and' if chosen else 'where'} {condition} order by key")
    if service and not rows:
        known_service(view, service)
    return plan_of(view, [LedgerFile.of(row) for row in rows], FORGOTTEN_FILES)


def computed_from(view: LakeView, tables: Collection[str]) -> list[str]:
    """The states and rollups of these tables. The next merge takes the same rows out of them."""
    origins = view.origins(view.tables()) if tables else {}
    return [name for name, of_it in origins.items() if not set(tables).isdisjoint(of_it)]
