"""The lake that a command names, once it is known to be one.

A place to which forebay never wrote is `InvalidConfiguration`: an operator who mistyped it must not read "all is well".
"""

from __future__ import annotations

from collections.abc import Callable

from forebay.aws.preflight import check_lake
from forebay.errors import InvalidConfiguration, meant
from forebay.lake.layout import CHECKPOINT, HOME, LEDGER, table_path, writers_of
from forebay.lake.objects import open_objects
from forebay.ledger.lost import has_ledger
from forebay.ledger.services import services_of_ledger
from forebay.operate.lake_view import MOST_MEANT, LakeView


def view_of(lake: str) -> LakeView:
    """The view of a lake that is there, and has a ledger."""
    lake = place_of(lake)
    if not has_ledger(lake):
        _must_have_lost_none(lake)
        raise InvalidConfiguration.one(
            f"lake {lake}", "has no ledger", "is it spelled correctly? The first batch of `forebay ingest` makes it"
        )
    return LakeView(lake)


def _must_have_lost_none(lake: str) -> None:
    """The first batch of the lake's job may have rows in tables before there is a ledger."""
    from forebay.jobs.first_batch import first_batch
    from forebay.jobs.lost_ledger import must_have_its_ledger
    from forebay.jobs.service_name import service_of

    checkpoint = open_objects(checkpoint_of(lake, ""))
    must_have_its_ledger(lake, first_batch(checkpoint, service_of(checkpoint)))


def begun_view(lake: str) -> LakeView:
    """The view of a lake that jobs write to, perhaps before the first batch has ended."""
    return LakeView(begun_lake(lake))


def place_of(lake: str) -> str:
    """The address, of a place that can be reached."""
    check_lake(lake)
    return lake.rstrip("/")


def begun_lake(lake: str) -> str:
    """The address of a lake that jobs write to, perhaps without a ledger yet. In a mistyped one nothing would seem to run."""
    lake = place_of(lake)
    if HOME not in open_objects(lake).folders():
        hint = "is it spelled correctly? The first run of `forebay ingest` begins it"
        raise InvalidConfiguration.one(f"lake {lake}", "no job has written there", hint)
    return lake


def checkpoint_of(lake: str, named: str) -> str:
    """The folder of the checkpoint that was named, or the lake's own. Beside a mistyped one nothing would seem to run."""
    folder = named.rstrip("/")
    if folder and next(iter(open_objects(folder).found()), None) is None:
        raise InvalidConfiguration.one(f"checkpoint {folder}", "no job has written there", "is it spelled correctly?")
    return folder or f"{lake.rstrip('/')}/{CHECKPOINT}"


def tell_if_not_begun(lake: str, tell: Callable[[str], None]) -> None:
    """Warns before the first batch: in a mistyped lake, too, all files would be new."""
    check_lake(lake)
    if not has_ledger(lake):
        tell(f"{lake} has no ledger yet, so all files count as new: is it spelled correctly?")


def service_of_queue(lake: str, named: str) -> str:
    """The service that takes in what is announced into a queue: the one that is named, else the only one of this lake. Empty
    before the first one began. `InvalidConfiguration` where there are several: each knows its own files only."""
    began = open_objects(writers_of(lake)).folders()
    there = sorted({*began, *services_of_ledger(open_objects(table_path(lake, LEDGER)))})
    if named and there and named not in there:
        known = f"known services: {', '.join(there)}. Start its ingest job first"
        hint = meant(named, there, known, most=MOST_MEANT)
        raise InvalidConfiguration.one(f"--of {named}", f"never began in {lake}", hint)
    if named:
        return named
    if len(there) > 1:
        several = f"is needed, because {lake} has the services {', '.join(there)}"
        raise InvalidConfiguration.one("--of", several, "name the one whose queue it is")
    return there[0] if there else ""
