"""The plan of a retry of held records, durable before anything happens.

In: which records (`Choice`), the version of the table that holds them, and the declarations. Out: the same after a crash, also
in older code. If newer code wrote a field that matters, it is a `Halt`.
"""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass, fields
from typing import Any, Literal

from forebay.declaration.kept.pinned import other_code_needed
from forebay.lake.layout import own_table

PLAN = "plan.json"
THIS_RETRY = "a retry of held records"
EMPTY: tuple[Any, ...] = (None, False, "", 0, [], {})


@dataclass(frozen=True)
class Choice:
    """Selects held records: by the table that they were meant for, or by reason; parked ones by the table that takes them now.
    `give_up` leaves them out for good."""

    held: Literal["quarantine", "parked"]
    table: str | None = None
    reason: str | None = None
    give_up: bool = False

    @property
    def place(self) -> str:
        """The table that holds them."""
        return own_table(self.held)


@dataclass(frozen=True)
class RetryPlan:
    number: int
    version: int
    at: str
    choice: Choice
    service: dict[str, Any]
    ids_version: int | None = None
    """The version of the ids table: an attempt that is finished after a crash must reach the same fates. None until the ids of
    the chosen records are there, too, and no batch is unfinished that does not know them."""
    intent: bool = False
    """Written before anything is chosen. A batch that sees it moves no held records; a batch that does not see it has its own
    plan in the lake by then, and its files are among those left out."""
    without: tuple[str, ...] = ()
    """Ids of files that a batch is about to replace. Their records stay where they are."""
    after: str = ""
    until: str = ""
    """Only records of files with ids in between are chosen: a choice may be too large for one plan."""
    written: tuple[str, ...] | None = None
    """The tables that have the records, kept before the ledger counts them. A table may be dropped right after."""

    def as_json(self) -> bytes:
        return json.dumps({**vars(self), "choice": asdict(self.choice)}).encode()

    @classmethod
    def of_json(cls, text: bytes) -> RetryPlan:
        plain = _known(json.loads(text), cls)
        choice = Choice(**_known(plain["choice"], Choice))
        written = None if (names := plain.get("written")) is None else tuple(names)
        return cls(**{**plain, "choice": choice, "without": tuple(plain.get("without", ())), "written": written})

    def is_of(self, other: RetryPlan) -> bool:
        """Whether both are of one retry, however far it is."""
        return (self.number, self.at) == (other.number, other.at)


def _known(plain: dict[str, Any], kind: type[Any]) -> dict[str, Any]:
    """Newer code may have written more fields. Empty ones decide nothing."""
    names = {of_kind.name for of_kind in fields(kind)}
    if decide := sorted(name for name, value in plain.items() if name not in names and value not in EMPTY):
        raise other_code_needed(THIS_RETRY, decide[0])
    return {name: value for name, value in plain.items() if name in names}
