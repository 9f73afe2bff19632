"""The one kind of declared SQL that needs no Spark: the day of a declared timestamp."""

from __future__ import annotations

import re

from forebay.declaration.column import Column
from forebay.declaration.table import Table

DAY_OF = re.compile(r"\s*(?:(?:to_)?date\s*\(\s*(\w+)\s*\)|cast\s*\(\s*(\w+)\s+as\s+date\s*\))\s*", re.IGNORECASE)


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
