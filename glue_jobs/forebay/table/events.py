"""What happens to tables that the batch which feeds them does not say itself."""

from __future__ import annotations

from dataclasses import dataclass

from forebay.events import Event

__all__ = ["ColumnsAdded", "LogNotTidied", "TableCreated"]


@dataclass(frozen=True, kw_only=True)
class TableCreated(Event):
    """A table was seen for the first time; this batch's rows are its first commit."""

    table: str
    path: str


@dataclass(frozen=True, kw_only=True)
class ColumnsAdded(Event):
    """The rows had columns or nested fields that the table lacked; older rows have null there."""

    table: str
    columns: tuple[str, ...]


@dataclass(frozen=True, kw_only=True)
class LogNotTidied(Event):
    """A checkpoint or checksum was due and could not be written. Nothing is lost: readers have more commits to read until the
    next one succeeds."""

    path: str
    version: int
    what: str
    error: str
