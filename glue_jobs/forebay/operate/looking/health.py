"""The current health of tables: their logs, and what the health objects have recorded.

In: the lake, and names of tables. Out: a `Health` for each, and those that cannot be read, with the reason. Nothing is
written.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from datetime import UTC, datetime

from forebay.aws.preflight import check_lake
from forebay.batch.reasons import TABLE_FAILED
from forebay.lake.health import Health, HealthRecords, seen_in
from forebay.lake.log.tables import own_tables, tables_of
from forebay.merge.lag import Lag, lag_of
from forebay.merge.trouble import Troubles
from forebay.operate.lake_view import LakeView
from forebay.operate.looking.held import Waiting, waiting_for
from forebay.threads import in_threads
from forebay.upkeep.compaction.live_files import TableState, Unreadable, is_no_table, read_table


def health_of(lake: str, names: Sequence[str]) -> tuple[list[Health], list[Unreadable], dict[str, Lag]]:
    """`Lag` of those that are states, by name; also of one that was never created, because each merge of it failed."""
    check_lake(lake)
    lake = lake.rstrip("/")
    records, now = HealthRecords(lake), datetime.now(UTC)
    wanted = names or [*tables_of(lake), *own_tables(lake)]

    lags: dict[str, Lag] = {}

    def look(name: str) -> Health | Unreadable | None:
        state: TableState | Unreadable = read_table(name, f"{lake}/{name}", whole_log=True)
        if is_no_table(state, names):
            return None
        if isinstance(state, Unreadable) or state.snapshot is None:
            return state if isinstance(state, Unreadable) else Unreadable(name, "not-found", lake)
        if (lag := lag_of(lake, name, state.snapshot.configuration)) is not None:
            lags[name] = lag
        return seen_in(state.snapshot, records.of(name), now=now)

    looked = in_threads(look, wanted)
    for name, trouble in Troubles(lake).all().items():
        lag = lags.get(name, Lag(name, "", None, None))
        if (not names or name in names) and lag.commits != 0:
            detail = f"{name}: no merge of it has ended well since {trouble.since}: {trouble.detail}"
            lags[name] = replace(lag, trouble=lag.trouble or detail)
    unreadable = [one for one in looked if isinstance(one, Unreadable)]
    return [one for one in looked if isinstance(one, Health)], unreadable, lags


def unwritten_tables(lake: str, names: Sequence[str]) -> dict[str, Waiting]:
    """Tables whose rows are in the quarantine because they could not be written; of these names, or of all."""
    found = waiting_for(LakeView(lake.rstrip("/")), TABLE_FAILED)
    return {name: found[name] for name in sorted(found) if not names or name in names}
