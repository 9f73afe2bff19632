"""The tables from which a table is computed, and the messages for lost ones. Pure.

In: the properties of a table. Out: names, and a sentence that says what to do.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from forebay.counted import counted
from forebay.lake.layout import DERIVED_FROM


def origins_of(configuration: Mapping[str, str]) -> tuple[str, ...]:
    """None for a table of records."""
    names = configuration.get(DERIVED_FROM)
    return () if names is None else tuple(names.split(","))


def origin_gone(table: str, origins: Sequence[str]) -> str:
    names, gone = " and ".join(origins), "is gone" if len(origins) == 1 else "are gone"
    return (
        f"{table} stays unchanged, because {names}, which it is computed from, {gone}; "
        f"restore the folder of {names} (docs/disasters.md, A table), "
        f"or remove the declaration and the folder of {table}"
    )


def origin_replaced(table: str, origin: str) -> str:
    return (
        f"{table} stays unchanged, because it was computed from another {origin} than the current one; "
        f"restore the earlier folder of {origin}, or delete the folder of {table}, and the next run computes it from this one"
    )


def table_lost(table: str, rows: int, replayed: int = 0) -> str:
    """For a table of records without a Delta log, whose rows the ledger counts. Of these, `replayed` are announced again."""
    lost = f"lost: the ledger counts {counted(rows, 'row')}, and there is no Delta log"
    left = "`forebay files list --outcome replay` shows what is left"
    if replayed and replayed >= rows:
        return f"{lost}; a replay of its files is announced, and the ingest job loads them with its next batch ({left})"
    some = f"a replay of {counted(replayed, 'row')} is announced ({left}); for the others, " if replayed else ""
    return (
        f"{lost}; {some}restore its objects, "
        f"or run `forebay replay --table {table}` to load its files again (docs/disasters.md, A table); "
        f"if it was removed for good, run `forebay tables drop {table}`"
    )
