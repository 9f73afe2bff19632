"""A table to which rows are appended, and the possible results: `Appended`, `Skipped`, or `Failed`."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from forebay.errors import ForebayError
from forebay.record.growth import Rules


class TableLost(ForebayError):
    """A table that must be there was deleted."""


@dataclass(frozen=True)
class Destination:
    """A table: its name in the rows, where it lives, and what it is made with if it is not there yet."""

    name: str
    path: str
    partition_columns: tuple[str, ...] = ()
    properties: Mapping[str, str] = field(default_factory=dict)
    """A table that is there and lacks some of them gets them before its next rows."""
    rules: Rules | None = None
    """The rules by which its records become columns. Without rules, rows stay unchanged."""
    cluster_columns: tuple[str, ...] = ()
    """Instead of partition columns: by which OPTIMIZE puts its rows together."""
    type_widening: bool = False
    """Its columns may get wider types, at the price of readers that do not know that."""
    if_lost: str = ""
    """The message if it is not there; empty for a table that may be created."""


@dataclass(frozen=True)
class Appended:
    """The rows are in the table, as of this version of it; of `rescued` rows something had no column to fit in."""

    version: int
    files: int
    rows: int
    bytes: int
    seconds: float
    rescued: int = 0


@dataclass(frozen=True)
class Skipped:
    """The table has this transaction already."""


@dataclass(frozen=True)
class Failed:
    """The table was not written. `may_be_in`: the commit was sent, and its answer is unknown. The log does not show it, but it
    may still arrive; only a repetition of the batch can tell."""

    error: ForebayError
    may_be_in: bool = False


AppendResult = Appended | Skipped | Failed
