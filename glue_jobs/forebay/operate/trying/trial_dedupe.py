"""Finds the sample records that a table's `dedupe` would drop, without Spark.

In: a table's records, in the order of their files. Out: the numbers of all but the first of equal ones. Only Spark evaluates
SQL, so computed ids are unknown here. In the job, the ids of files decide which copy is the first. Samples have none, so here
their order decides. Records of other batches are not known.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from forebay.declaration.service import Service
from forebay.declaration.table import Table
from forebay.operate.trying.samples import Sample
from forebay.operate.trying.trial_merge import columns_named, value_in
from forebay.record.route import text_of


def is_known(table: Table) -> bool:
    """Whether a trial can find the ids of this table's records."""
    by = columns_named(table, table.dedupe.by) if table.dedupe else []
    return table.transform is None and not any(table.computes(column) or column.formats for column in by)


def duplicates_in(service: Service, table: Table, rows: Sequence[tuple[Sample, Any]]) -> set[int]:
    if table.dedupe is None or not is_known(table):
        return set()
    by = columns_named(table, table.dedupe.by)
    met: set[tuple[str | None, ...]] = set()
    again: set[int] = set()
    for at, (sample, record) in enumerate(rows):
        values = [value_in(text_of(service, column.source, record, sample.origin), column) for column in by]
        # Ids are made of texts: -0.0 and 0.0 are two, NaN is one.
        same = tuple(None if value is None else str(value) for value in values)
        if same in met:
            again.add(at)
        if any(part is not None for part in same):
            met.add(same)
    return again
