"""Events about tables that the batch itself does not report."""

from __future__ import annotations

from dataclasses import dataclass

from forebay.events import ErrorEvent, Event, metric


@dataclass(frozen=True, kw_only=True)
class TableCreated(Event):
    """A table was seen for the first time; this batch's rows are its first commit."""

    table: str
    path: str


@dataclass(frozen=True, kw_only=True)
class ColumnsAdded(Event):
    """The rows had columns or nested fields that the table did not have; older rows have null there."""

    table: str
    columns: tuple[str, ...]


@dataclass(frozen=True, kw_only=True)
class ColumnsLeftOut(ErrorEvent):
    """Fields got no column, because `new_columns` or `max_columns` was reached: their values are in `_rescued`. Raise the limit
    and run `forebay schema settle`; or declare the field, or a smaller `keys`. `forebay tables health` shows it until then."""

    table: str
    such_as: str
    columns: int = metric()


@dataclass(frozen=True, kw_only=True)
class TypesWidened(Event):
    """Columns got a wider type, as the table's declaration allows. Only readers that know the feature typeWidening can read
    the table."""

    table: str
    columns: tuple[str, ...]


@dataclass(frozen=True, kw_only=True)
class LogNotTidied(Event):
    """A checkpoint or checksum was due and could not be written. Nothing is lost: readers must read more commits until the
    next one succeeds."""

    path: str
    version: int
    what: str
    error: str


@dataclass(frozen=True, kw_only=True)
class CatalogEntryForeign(ErrorEvent):
    """The database has an entry of this name that forebay did not create, and does not change. The table is written anyway,
    but readers do not find it by its name. Rename one of the two, or give the service its own database."""

    table: str
    database: str
    entry: str


@dataclass(frozen=True, kw_only=True)
class CatalogNotUpdated(ErrorEvent):
    """The Glue Data Catalog refused a table. The table is written anyway. Check the database and the job's permissions."""

    table: str
    database: str
    error: str
