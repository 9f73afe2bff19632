"""Checks whether an earlier version of a table has rows of people who have been erased since.

In: the newest version of a table, and an earlier one. Out: `InvalidConfiguration` if it has such rows, or if that is unknown.
An erasure that found rows has a commit in the table, and a rollback never goes back before that commit. An erasure that found
none searched every file of that version, so only files that were removed before can have rows of those people. These files are
searched here.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import NoReturn
from urllib.parse import unquote

from deltalake import DeltaTable

from forebay.declaration.kept.in_force import kept_service
from forebay.declaration.service import Service
from forebay.errors import ForebayError, InvalidConfiguration
from forebay.lake.layout import ERASED, table_path
from forebay.lake.log.snapshot import read_snapshot
from forebay.lake.objects import open_objects
from forebay.operate.lake_view import LakeView
from forebay.privacy.known_secret import must_be_known_secret
from forebay.upkeep.erase.due import erased_by, must_be_its_secret, places_in
from forebay.upkeep.erase.plan import ErasePlan, Erasures
from forebay.upkeep.erase.rows import found_in


def must_have_nobody_erased(view: LakeView, name: str, table: DeltaTable, then: DeltaTable) -> None:
    for of in open_objects(f"{view.lake}/{ERASED}").folders():
        looked = dict(_looked(view, of, name, then.version()))
        if looked and _is_found(view, of, name, table, then, looked):
            problem = f"has rows in version {then.version()} of people who have been erased since"
            raise InvalidConfiguration.one(f"table {name}", problem, "name a later version")


def _looked(view: LakeView, of: str, name: str, version: int) -> Iterator[tuple[ErasePlan, int]]:
    """The erasures that looked at this table after that version, and at which. Of those that are over, no file is left."""
    erasures = Erasures(view.lake, of)
    for plan in erasures.plans():
        done = None if plan.gone_at else erasures.done(plan).get(name)
        if done is not None and done.version > version:
            yield plan, done.version


def _is_found(
    view: LakeView, of: str, name: str, table: DeltaTable, then: DeltaTable, looked: dict[ErasePlan, int]
) -> bool:
    objects, version = open_objects(table_path(view.lake, name)), then.version()
    there = {unquote(file.path) for file in read_snapshot(objects, up_to=table.version()).files}
    was = read_snapshot(objects, up_to=version)
    left = [file for file in was.files if unquote(file.path) not in there]
    if not left:
        return False
    tokens = tuple(sorted({token for plan in looked for token in plan.tokens}))
    try:
        service = _declared(view, of)
        for plan in looked:
            must_be_its_secret(service, plan)
        places, erased = places_in(was, name, service), erased_by(replace(next(iter(looked)), tokens=tokens), service)
        for file in left:
            with objects.open(unquote(file.path)) or _gone(file.path) as content:
                if found_in(content, places, erased, file.partition).rows:
                    return True
    except ForebayError as why:
        problem = f"may have rows in version {version} of people who have been erased since, and this cannot be checked: {why}"
        later = f"name version {max(looked.values())} or a later one"
        raise InvalidConfiguration.one(f"table {name}", problem, later) from None
    return False


def _declared(view: LakeView, of: str) -> Service:
    service = kept_service(view.lake, of)
    if service is None or not service.subject:
        raise ForebayError(f"the declarations of {of} that are in force have no subject")
    must_be_known_secret(view.lake, service)
    return service


def _gone(path: str) -> NoReturn:
    raise ForebayError(f"its data file {path} is gone")
