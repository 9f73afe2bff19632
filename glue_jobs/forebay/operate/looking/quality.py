"""The content of `_forebay/quality`: the verdicts of all batches, or of those since a day, added up."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import date

from forebay.lake.layout import QUALITY
from forebay.operate.lake_view import LakeView


@dataclass(frozen=True)
class Quality:
    """`failed` counts the batches in which the table was not written because of it."""

    table: str
    expectation: str
    on_violation: str
    rows: int
    violated: int
    batches: int
    failed: int


def quality_of(view: LakeView, table: str | None = None, *, since: date | None = None) -> list[Quality]:
    """The verdicts on one table, or on all of them, the most violated first. An expectation whose consequence was changed
    appears with each."""
    chosen = ["true"]
    if table is not None:
        chosen.append('"table" = \'' + table.replace("'", "''") + "'")
    if since is not None:
        chosen.append(f"day >= date '{since}'")
    rows = view.query(
        QUALITY,
        'select "table", expectation, on_violation, sum(rows) rows, sum(violated) violated, count(*) batches, '
        f"sum(case when failed then 1 else 0 end) failed from t where {' and '.join(chosen)} "
        'group by "table", expectation, on_violation order by violated desc, "table", expectation, on_violation',
    )
    return [Quality(**row) for row in rows]
