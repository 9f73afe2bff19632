"""The result of a merge of sample records, without Spark: the records that cannot be placed, and the winners.

In: records that a table in mode merge takes. Out: the reason for which a record would be quarantined, and a `TrialState`. Only
evaluates SQL, so derived keys are unknown here, and a change that deletes is a winner like any other. Among equals, the job
decides by the ids of files. Samples have none, so here the last one wins.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from forebay.batch.reasons import BAD_PARTITION_VALUE, NO_KEY, NO_SEQUENCE
from forebay.declaration.column import Column
from forebay.declaration.merge import FOLDER_TEXTS
from forebay.declaration.service import Service
from forebay.declaration.table import Table
from forebay.operate.trying.samples import Sample
from forebay.record.declared import fits, value_of
from forebay.record.moment import PLACES, micros_since_1970
from forebay.record.route import Origin, text_of


@dataclass(frozen=True)
class TrialState:
    """`winners` are places of records, one for each row that the state would have, in the order of the samples."""

    name: str
    keys: int
    winners: tuple[str, ...]


def unplaced(service: Service, table: Table, record: Any, origin: Origin) -> str | None:
    """Why the record could not be placed; None where it could be, or where only Spark knows."""
    if table.merge is None or table.transform is not None:
        return None
    for names, reason in ((table.merge.keys, NO_KEY), (table.merge.sequence_by, NO_SEQUENCE)):
        for column in columns_named(table, names):
            if column.expression is None and not _fits(text_of(service, column.source, record, origin), column, table):
                return reason
    texts = [column for column in columns_named(table, table.merge.partitions) if column.type == "string"]
    named = (text_of(service, column.source, record, origin) for column in texts if column.expression is None)
    return None if all(re.fullmatch(FOLDER_TEXTS, text or "") for text in named) else BAD_PARTITION_VALUE


def state_of(service: Service, table: Table, name: str, rows: Sequence[tuple[Sample, Any]]) -> TrialState | None:
    """The state's winners among these rows, which can all be placed; None where there are none, or only Spark knows them."""
    merge, state = table.merge, table.state_of(name)
    if merge is None or state is None or table.transform is not None:
        return None
    keys, sequence = columns_named(table, merge.keys), columns_named(table, merge.sequence_by)
    if any(column.expression is not None or column.formats for column in (*keys, *sequence)):
        return None
    found: list[tuple[tuple[Any, ...], tuple[Any, ...], int]] = []
    for at, (sample, record) in enumerate(rows):
        key, rank = (
            tuple(value_in(text_of(service, column.source, record, sample.origin), column) for column in columns)
            for columns in (keys, sequence)
        )
        found.append((key, rank, at))
    newest = max(rank[0] for _, rank, _ in found) if merge.snapshot and found else None
    latest: dict[tuple[Any, ...], tuple[tuple[Any, ...], int]] = {}
    for key, rank, at in found:
        if newest in (None, rank[0]):
            row = key if merge.history is None else (*key, rank[0])
            latest[row] = max(latest.get(row, (rank, at)), (rank, at))
    winners = tuple(rows[at][0].place for at in sorted(at for _, at in latest.values()))
    return TrialState(state, len({row[: len(keys)] for row in latest}), winners)


def columns_named(table: Table, names: Sequence[str]) -> list[Column]:
    kinds = {column.name: column for column in table.columns}
    return [kinds[name] for name in names]


def _fits(text: str | None, column: Column, table: Table) -> bool:
    if text is None or not fits(text, column):
        return False
    return bool(text) or table.merge is None or column.name not in table.merge.partitions


def value_in(text: str | None, column: Column) -> Any:
    """Two texts of one value, such as two ways to write a moment, are one key."""
    if text is None:
        return None
    if column.unit is not None and (since := micros_since_1970(text, PLACES[column.unit])) is not None:
        return since
    return value_of(text, column.type)
