"""Kept records are treated again when they come back: they may be older than what the declarations call personal.

In: rows with a record in `value` and a `problem`, and the service. Out: the same rows, treated as the reader treats what it
reads.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

from forebay.content.treated import treated_records
from forebay.declaration.form import Form
from forebay.declaration.service import Service
from forebay.privacy.erased import newest_list
from forebay.table.in_arrow import map_in_arrow

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql import DataFrame

__all__ = ["treated_again", "without_erased"]


def treated_again(rows: DataFrame, service: Service) -> DataFrame:
    """A personal field is personal in every feed."""
    if service.privacy is None:
        return rows
    return map_in_arrow(rows, _Treat(service.form_of_all_feeds), rows.schema)


def without_erased(service: Service, lake: str) -> Service:
    """The service with the newest list of erased people; where a lake has none, with the list that it was given."""
    newest = newest_list(lake, service.name) if service.subject else ""
    return service.with_erased(newest) if newest else service


@dataclass(frozen=True)
class _Treat:
    form: Form

    def __call__(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            yield treated_records(batch, self.form)
