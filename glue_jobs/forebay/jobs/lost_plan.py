"""A batch of an earlier stream that tables have, and whose plan somebody deleted: a new stream would load its files again.

In: a lake, a service, and the checkpoint of a job that starts. Out: nothing, or `InvalidConfiguration`. Only a new stream asks,
because the answer reads the logs of all tables. A table counts only while it has rows of files that the ledger does not know,
because the transaction stays in the log after the rows were deleted by hand.
"""

from __future__ import annotations

from forebay.batch.dedupe import RETRY
from forebay.batch.plan import Plans
from forebay.errors import InvalidConfiguration
from forebay.jobs.generation import known_generation
from forebay.jobs.lost_ledger import Transaction, loading_transactions
from forebay.lake.layout import LEDGER, PARKED, PLANS, QUARANTINE, application, is_own, table_path
from forebay.lake.log.tables import tables_of
from forebay.lake.objects import Objects, open_objects
from forebay.ledger.data_files import data_files
from forebay.threads import answers_by
from forebay.upkeep.accounts.in_tables import file_ids_in

NO_STREAMS = (RETRY, "leftovers")
"""The last parts of applications that load no new file."""


def must_have_its_plans(lake: str, service: str, checkpoint: Objects) -> None:
    """While no other driver loads files of this service."""
    if known_generation(checkpoint) is not None:
        return
    names = [*tables_of(lake), QUARANTINE, PARKED]
    newest = answers_by(lambda name: _newest(lake, service, name), names)
    plans = Plans(open_objects(f"{lake}/{PLANS}"), service)
    left = plans.left() if any(newest.values()) else []
    planned = {(application(service, plan.generation), plan.batch) for plan in left}
    ended = dict(_newest(lake, service, LEDGER))
    for name, found in sorted(newest.items()):
        for app_id, number in sorted(found):
            if number > ended.get(app_id, -1) and (app_id, number) not in planned and _has_unknown_rows(lake, name):
                raise InvalidConfiguration.one(
                    f"table {name}",
                    f"has rows of batch {number} of {app_id}, which the ledger lacks, and its plan is gone: a new "
                    f"checkpoint would load its files again",
                    f"restore {plans.address(app_id.rpartition('/')[2], number)} from the versions of the bucket, or delete "
                    "these rows. See docs/disasters.md, A plan",
                )


def _newest(lake: str, service: str, name: str) -> frozenset[Transaction]:
    """The newest batch of each stream of the service that this table has."""
    no_streams = {application(service, last) for last in NO_STREAMS}
    mine = (one for one in loading_transactions(lake, name) if one[0].startswith(application(service, "")))
    return frozenset(one for one in mine if one[0] not in no_streams)


def _has_unknown_rows(lake: str, name: str) -> bool:
    """A table whose rows cannot be counted by file says nothing."""
    found = {*file_ids_in(open_objects(table_path(lake, name)), "file_id" if is_own(name) else "_file_id")}
    for parquet in data_files(open_objects(table_path(lake, LEDGER))):
        for known in parquet.iter_batches(columns=["file_id"]):
            found.difference_update(known["file_id"].to_pylist())
    return bool(found)
