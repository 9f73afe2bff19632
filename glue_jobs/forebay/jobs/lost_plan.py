"""A batch of an earlier stream that tables have, and whose plan somebody deleted: a new stream would load its files again.

In: a lake, a service, and the checkpoint of a job that starts. Out: nothing, or `InvalidConfiguration`. Only a new stream asks,
because the answer reads the logs of all tables. A table counts only while it has rows of files that the ledger does not know,
because the transaction stays in the log after the rows were deleted by hand.
"""

from __future__ import annotations

import re
from concurrent.futures import ThreadPoolExecutor

from forebay.batch.dedupe import RETRY
from forebay.batch.plan import Plans
from forebay.errors import InvalidConfiguration
from forebay.jobs.generation import known_generation
from forebay.lake.layout import LEDGER, PARKED, PLANS, QUARANTINE, application, is_own, table_path
from forebay.lake.log.listing import BrokenLog, NoTable, UnsupportedTable
from forebay.lake.log.snapshot import read_snapshot
from forebay.lake.log.tables import tables_of
from forebay.lake.objects import Objects, open_objects
from forebay.ledger.data_files import data_files
from forebay.upkeep.accounts.in_tables import DerivedTable, rows_by_file

__all__ = ["must_have_its_plans"]

AT_ONCE = 16
NO_STREAMS = (RETRY, "leftovers", "erase")
"""The last parts of applications that load no new file."""
Transaction = tuple[str, int]
"""An application, and the number of its batch."""


def must_have_its_plans(lake: str, service: str, checkpoint: Objects) -> None:
    """While no other driver loads files of this service."""
    if known_generation(checkpoint) is not None:
        return
    names = [*tables_of(lake), QUARANTINE, PARKED]
    with ThreadPoolExecutor(AT_ONCE, "tables") as threads:
        newest = dict(zip(names, threads.map(lambda name: _newest(lake, service, name), names), strict=True))
    plans = Plans(open_objects(f"{lake}/{PLANS}"), service).left() if any(newest.values()) else []
    planned = {(application(service, plan.generation), plan.batch) for plan in plans}
    ended = dict(_newest(lake, service, LEDGER))
    for name, found in sorted(newest.items()):
        for app_id, number in sorted(found):
            if number > ended.get(app_id, -1) and (app_id, number) not in planned and _has_unknown_rows(lake, name):
                raise InvalidConfiguration.one(
                    f"table {name}",
                    f"has rows of batch {number} of {app_id}, which the ledger lacks, and its plan is gone: a new "
                    f"checkpoint would load its files again",
                    f"restore {lake}/{PLANS}/{service}/{app_id.rpartition('/')[2]}-{number}.json.gz from the versions of the "
                    "bucket, or delete these rows. See docs/disasters.md, A plan",
                )


def _newest(lake: str, service: str, name: str) -> frozenset[Transaction]:
    """The newest batch of each stream of the service that this table has."""
    try:
        newest = read_snapshot(open_objects(table_path(lake, name))).transactions
    except (NoTable, BrokenLog, UnsupportedTable):
        return frozenset()
    stream = re.compile(re.escape(application(service, "")) + f"(?!({'|'.join(NO_STREAMS)})$)[^/]+")
    return frozenset((app_id, number) for app_id, number in newest.items() if stream.fullmatch(app_id))


def _has_unknown_rows(lake: str, name: str) -> bool:
    """A table whose rows cannot be counted by file says nothing."""
    table, column = open_objects(table_path(lake, name)), "file_id" if is_own(name) else "_file_id"
    try:
        found = {file_id for rows in rows_by_file(table, column=column) for file_id in rows}
    except (NoTable, BrokenLog, UnsupportedTable, DerivedTable):
        return False
    found.discard(None)
    for parquet in data_files(open_objects(table_path(lake, LEDGER))):
        for known in parquet.iter_batches(columns=["file_id"]):
            found.difference_update(known["file_id"].to_pylist())
    return bool(found)
