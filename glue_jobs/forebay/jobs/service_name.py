"""The name of a service identifies its checkpoint, its files in the ledger, and its tables.

In: a lake, a checkpoint, and the declarations of a job that starts. Out: nothing, or `InvalidConfiguration` with what to do.
Under another name the job would not find the commits of an unfinished batch, and would load files again.
"""

from __future__ import annotations

from forebay.declaration.service import Service
from forebay.errors import InvalidConfiguration
from forebay.lake.layout import LEDGER, PLANS, table_path, writer_of
from forebay.lake.lease import holder
from forebay.lake.objects import Objects, open_objects
from forebay.ledger.services import tables_of_others

NAME = "service"


def must_be_of_service(checkpoint: Objects, name: str) -> None:
    """The first service to use a checkpoint keeps it for ever."""
    if checkpoint.write_once(NAME, name.encode()):
        return
    its = service_of(checkpoint)
    raise InvalidConfiguration.one(
        f"service {name}",
        f"was called {its} when it began with {checkpoint.place}",
        f'write name = "{its}" again. To rename it, let a drain end under that name first. Then start with a new --checkpoint, '
        f'and write shares_files_with = ["{its}"]',
    )


def service_of(checkpoint: Objects) -> str:
    """The service that keeps it, or an empty text before the first one."""
    return (checkpoint.read(NAME) or b"").decode()


def must_fill_own_tables(lake: str, service: Service) -> None:
    """Services know only their own files. So two that fill one table would each bring the rows of the same objects. Files of a
    batch that is unfinished are in nobody's ledger yet."""
    from forebay.batch.plan import Plans  # half of what `forebay status` would import

    for other, tables in sorted(tables_of_others(open_objects(table_path(lake, LEDGER)), [service.name]).items()):
        if other not in service.shares_files_with and (shared := _shared(service, tables)):
            raise InvalidConfiguration.one(
                f"service {service.name}",
                f"would fill table {shared}, which service {other} fills in {lake}",
                f"give its tables other names. If {service.name} is {other} under a new name, or the two never load the "
                f'same objects, write shares_files_with = ["{other}"]',
            )
    plans = open_objects(f"{lake}/{PLANS}")
    for other in sorted({*plans.folders()} - {service.name}):
        left = [plan.tables for plan in Plans(plans, other).left()]
        shared = _shared(service, frozenset().union(*left))
        if shared and holder(writer_of(lake, other)) is None:
            raise InvalidConfiguration.one(
                f"service {service.name}",
                f"would fill table {shared}, and service {other}, which also fills it, left an unfinished batch",
                f"let a job drain the queue once more under the name {other}",
            )


def _shared(service: Service, tables: frozenset[str]) -> str:
    """One of these tables that the service may fill."""
    return next((table for table in sorted(tables) if service.maker_of(table)), "")
