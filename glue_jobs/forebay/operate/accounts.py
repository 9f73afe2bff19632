"""Do the numbers add up? What the ledger says, held against what is in the tables.

In: a view of the lake. Out: `Accounts`, with a list of what does not add up, which is empty when all is well.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from forebay.lake.health import HealthRecords
from forebay.lake.layout import LEDGER, own_table
from forebay.operate.lake_view import LakeView

__all__ = ["Accounts", "accounts"]


@dataclass(frozen=True)
class Accounts:
    """The sums of the ledger, and the rows that are there."""

    files: Mapping[str, int] = field(default_factory=dict)
    """Files by outcome."""
    records: int = 0
    written: int = 0
    quarantined: int = 0
    parked: int = 0
    dropped: int = 0
    ledger_tables: Mapping[str, int] = field(default_factory=dict)
    """Rows by table, as the ledger counted them."""
    rows: Mapping[str, int] = field(default_factory=dict)
    """Rows by table, as the tables' own logs count them; with `quarantine` (records only) and `parked`."""

    expired: Mapping[str, int] = field(default_factory=dict)
    """Rows of `quarantine` and `parked` that maintenance was told to delete: they are past the time for which they are kept."""

    @property
    def all_files(self) -> int:
        return sum(self.files.values())

    def differences(self) -> list[str]:
        """Every sum that does not hold, in a sentence."""
        found = []
        settled = self.written + self.quarantined + self.parked + self.dropped
        if self.records != settled:
            found.append(f"{self.records} records were read, but {settled} are accounted for")
        if self.written != sum(self.ledger_tables.values()):
            found.append(f"{self.written} rows were written, but by table they are {sum(self.ledger_tables.values())}")
        expected = {**self.ledger_tables, "quarantine": self.quarantined, "parked": self.parked}
        expected |= {name: expected[name] - rows for name, rows in self.expired.items()}
        for name in sorted({*expected, *self.rows}):
            if expected.get(name, 0) != self.rows.get(name, 0):
                found.append(
                    f"{name}: the ledger says {expected.get(name, 0)} rows, the table has {self.rows.get(name, 0)}"
                )
        return found


def accounts(view: LakeView) -> Accounts:
    sums = "sum(records) records, sum(written) written, sum(quarantined) quarantined, sum(parked) parked, sum(dropped) dropped"
    by_outcome = view.query(LEDGER, f"select outcome, count(*) files, {sums} from t group by outcome")
    by_table: dict[str, int] = {}
    for row in view.query(LEDGER, "select tables from t"):
        for name, rows in row["tables"] or ():
            by_table[name] = by_table.get(name, 0) + rows
    rows = {name: facts.rows for name in view.tables() if (facts := view.facts(name))}
    expired = {}
    for name, of_a_record, column in (("quarantine", "line is not null", "quarantined"), ("parked", "true", "parked")):
        until = HealthRecords(view.lake).of(own_table(name)).expired_until or "0001-01-01"
        there = view.query(
            own_table(name), f"select count(*) n from t where {of_a_record} and day >= cast('{until}' as date)"
        )
        past = view.query(
            LEDGER,
            f"select sum({column}) n from t where cast(claimed_at as date) < cast('{until}' as date)",
        )
        rows[name] = there[0]["n"] if there else 0
        expired[name] = (past[0]["n"] or 0) if past else 0
    names = ("records", "written", "quarantined", "parked", "dropped")
    totals = {name: sum(row[name] or 0 for row in by_outcome) for name in names}
    return Accounts(
        {r["outcome"]: r["files"] for r in by_outcome}, **totals, ledger_tables=by_table, rows=rows, expired=expired
    )
