"""Which services' batches can be made in one pass.

In: a service. Out: whether it is plain, and the one kind of SQL that needs no Spark: the day of a declared moment.
"""

from __future__ import annotations

import re

from forebay.batch.one_pass.ids import makes_ids
from forebay.declaration.column import Column
from forebay.declaration.service import Service
from forebay.declaration.table import Table
from forebay.record.typed import arrow_type_of
from forebay.table.partition import FOLDER_TYPES

__all__ = ["day_source", "is_plain"]

DAY_OF = re.compile(r"\s*(?:(?:to_)?date\s*\(\s*(\w+)\s*\)|cast\s*\(\s*(\w+)\s+as\s+date\s*\))\s*", re.IGNORECASE)


def is_plain(service: Service) -> bool:
    """Whether Arrow writes the texts of its partitions and of its ids as Spark does."""
    return all(_has_plain_partitions(table) and makes_ids(table) for table in service.tables)


def day_source(column: Column, table: Table) -> Column | None:
    """The declared column whose day this one is; None where it is anything else."""
    found = DAY_OF.fullmatch(column.expression or "")
    if found is None or column.type != "date":
        return None
    name = (found[1] or found[2]).lower()
    for source in table.columns:
        if source.name.lower() == name and source.type in ("timestamp", "date"):
            return None if source.expression or source.formats else source
    return None


def _has_plain_partitions(table: Table) -> bool:
    kinds = [arrow_type_of(column) for column in table.columns if column.name in table.partitions]
    return all(kind in FOLDER_TYPES for kind in kinds)
