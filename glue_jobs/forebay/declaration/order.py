"""The order in which tables are tried, and the tables that can never get a record.

In: declared tables, in the order of their files. Out: the same tables in the order in which a record tries them, and for
each table the earlier one that takes all of its records. Users need not know the order of files: a table with conditions
comes before a table without, and a family such as `{game}` before the table that takes every record.
"""

from __future__ import annotations

from collections.abc import Sequence

from forebay.declaration.condition import Condition
from forebay.declaration.table import Table

EXISTS = Condition(exists=True)


def in_order(tables: Sequence[Table]) -> list[Table]:
    """Tables of equal rank keep the order of their files."""
    return sorted(tables, key=_rank)


def taken_before(tables: Sequence[Table], at: int) -> Table | None:
    """The earlier table that takes every record of this one; None where some record can reach it."""
    table = tables[at]
    earlier = (one for one in tables[:at] if _fits_all_of(one, table))
    return next((one for one in earlier if _has_fields_of(one, table)), None)


def family_before(tables: Sequence[Table], at: int) -> Table | None:
    """The earlier family that takes the records of this table in which it finds its fields."""
    table = tables[at]
    return next((one for one in tables[:at] if _fits_all_of(one, table) and not _has_fields_of(one, table)), None)


def _rank(table: Table) -> int:
    return 0 if table.where or table.where_sql else 1 if table.fields else 2


def _fits_all_of(earlier: Table, later: Table) -> bool:
    return (
        earlier.explode == later.explode
        and earlier.where_sql in (None, later.where_sql)
        and all(_implied(path, condition, later) for path, condition in earlier.where.items())
    )


def _has_fields_of(earlier: Table, later: Table) -> bool:
    return all(_implied(path, EXISTS, later) for path in earlier.fields)


def _implied(path: str, condition: Condition, later: Table) -> bool:
    """Whether each record for the later table meets the earlier table's condition on this field."""
    theirs = later.where.get(path)
    if theirs is not None and theirs.one_of:
        return all(condition.holds(value) for value in theirs.one_of if theirs.holds(value))
    if condition == EXISTS:
        return path in later.fields or (theirs is not None and theirs.needs_a_value)
    return theirs == condition
