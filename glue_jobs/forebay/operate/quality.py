"""What `_forebay/quality` says of a table: the verdicts of all batches, added up."""

from __future__ import annotations

from dataclasses import dataclass

from forebay.operate.lake_view import LakeView

__all__ = ["Quality", "quality_of"]


@dataclass(frozen=True)
class Quality:
    """`failed` counts the batches in which the table was not written because of it."""

    expectation: str
    on_violation: str
    rows: int
    violated: int
    batches: int
    failed: int


def quality_of(view: LakeView, table: str) -> list[Quality]:
    """The most violated first; an expectation whose consequence was changed is there with each."""
    named = table.replace("'", "''")
    rows = view.query(
        "_forebay/quality",
        "select expectation, on_violation, sum(rows) rows, sum(violated) violated, count(*) batches, "
        f"sum(case when failed then 1 else 0 end) failed from t where \"table\" = '{named}' "
        "group by expectation, on_violation order by violated desc, expectation, on_violation",
    )
    return [Quality(**row) for row in rows]
