"""Erases subjects from a vault: rows and keys leave its table, and every file that held them is deleted at once.

In: a plan whose subjects are on the list of batches already. Out: how many rows left. A vault has no time travel. Files of
writers that died hold keys as well, so all files that are not live are searched. A repeat does the remaining work.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from datetime import timedelta
from typing import BinaryIO

from forebay.declaration.service import Service
from forebay.lake.log.listing import NoTable
from forebay.lake.log.live_file import LiveFile
from forebay.lake.objects import open_objects
from forebay.privacy.vault import values_of
from forebay.upkeep.erase.due import erased_by
from forebay.upkeep.erase.places import Place
from forebay.upkeep.erase.plan import Done, ErasePlan
from forebay.upkeep.erase.purge import delete_old_files
from forebay.upkeep.erase.rows import Found, found_in
from forebay.upkeep.erase.table import Leaving, TableErasure

SUBJECTS = (Place("subjects"),)


def forget(service: Service, plan: ErasePlan, *, note: Callable[[Done], None] = lambda done: None) -> int:
    """`note` is called before they leave, and once files are deleted. Where no vault is declared, or nothing was kept yet,
    there is nothing to do."""
    if service.privacy is None or not service.privacy.vault:
        return 0
    table = open_objects(values_of(service.privacy.vault))
    erased = replace(erased_by(plan, service), shared=True)

    def find(content: BinaryIO, file: LiveFile) -> Found:
        return found_in(content, SUBJECTS, erased)

    leaving = Leaving(plan.app_id, plan.number, lambda snapshot: find)
    try:
        done = TableErasure("the vault", table, leaving, keep=timedelta(), note=note).erase(None)
    except NoTable:
        return 0
    note(replace(done, unjudged_objects=delete_old_files(table, SUBJECTS, erased).unjudged))
    return done.rows
