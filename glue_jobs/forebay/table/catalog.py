"""Registers the tables in the Glue Data Catalog, so that Athena and others find them by name.

In: a table after a commit: its name, its place, its columns. Out: an entry in the catalog's database, made or changed where it
differs. Registrations are remembered, so a batch without new columns asks nothing. Readers of Delta read a table's log for its
columns; those in the catalog are for people who look there. No error here stops the data: a refusal of AWS is an event, once a
table. An entry of this name with another place or format is an event too, and is not changed.
"""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING, Any

from botocore.exceptions import BotoCoreError, ClientError

from forebay.events import Emit, Event
from forebay.table.events import CatalogEntryForeign, CatalogNotUpdated

if TYPE_CHECKING:
    from pyspark.sql.types import StructType

LONGEST_TYPE = 131_072
"""The longest column type that Glue accepts."""


class Catalog:
    """One database of the catalog, which must exist."""

    def __init__(self, glue: Any, database: str, *, emit: Emit = lambda event: None) -> None:
        self._glue, self._database, self._emit = glue, database, emit
        self._known: dict[str, dict[str, Any]] = {}
        self._refused: set[str] = set()
        self._lock = threading.Lock()

    def keep(self, name: str, path: str, schema: StructType) -> None:
        """The entry is as the table is; again is harmless. Fields that others added to the entry stay."""
        wanted = _entry(name, path, schema)
        with self._lock:
            if self._known.get(name) == wanted:
                return
            try:
                foreign = self._put(name, wanted)
            except (ClientError, BotoCoreError) as refused:
                self._refuse(name, CatalogNotUpdated(table=name, database=self._database, error=str(refused)))
                return
            if foreign:
                self._refuse(name, CatalogEntryForeign(table=name, database=self._database, entry=foreign))
                return
            self._known[name] = wanted
            self._refused.discard(name)

    def _refuse(self, name: str, event: Event) -> None:
        if name not in self._refused:
            self._refused.add(name)
            self._emit(event)

    def _put(self, name: str, wanted: dict[str, Any]) -> str:
        """Leaves what another's entry is; nothing where this one is ours, and now as it should be."""
        where = {"DatabaseName": self._database}
        try:
            found = self._glue.get_table(**where, Name=name)["Table"]
        except self._glue.exceptions.EntityNotFoundException:
            try:
                self._glue.create_table(**where, TableInput=wanted)
                return ""
            except self._glue.exceptions.AlreadyExistsException:  # another driver was quicker
                found = self._glue.get_table(**where, Name=name)["Table"]
        if not _is_ours(found, wanted):
            return _described(found)
        parameters = {**found.get("Parameters", {}), **wanted["Parameters"]}
        kept = {key: found[key] for key in ("Description", "Owner", "Retention") if key in found}
        self._glue.update_table(**where, TableInput={**kept, **wanted, "Parameters": parameters})
        return ""


def remove_entry(glue: Any, database: str, name: str, path: str) -> str | None:
    """Says what another's entry is, which stays; empty where ours is gone now. None where there is none, and perhaps no such
    database."""
    where = {"DatabaseName": database, "Name": name}
    try:
        found = glue.get_table(**where)["Table"]
        if not _is_ours(found, {"StorageDescriptor": {"Location": path}}):
            return f"it is {_described(found)}"
        glue.delete_table(**where)
    except glue.exceptions.EntityNotFoundException:
        return None
    return ""


def _is_ours(found: dict[str, Any], wanted: dict[str, Any]) -> bool:
    """The entry of a table at the same place, in our format. Whoever changes an entry's columns and parameters leaves these.
    A view or a link has no place, and is never a table of ours."""
    if _is_a_view(found) or "TargetTable" in found:
        return False
    places = [_place(one) for one in (found, wanted)]
    return places[0] in ("", places[1]) and _format(found) in ("", "DELTA")


def _is_a_view(found: dict[str, Any]) -> bool:
    return "ViewDefinition" in found or str(found.get("TableType")).endswith("VIEW")


def _described(found: dict[str, Any]) -> str:
    kind = _format(found) or found.get("TableType") or ("a link" if "TargetTable" in found else "a table")
    return f"{kind} at {_place(found) or 'no place'}"


def _place(entry: dict[str, Any]) -> str:
    place = str(entry.get("StorageDescriptor", {}).get("Location", ""))
    return place.replace("s3a://", "s3://", 1).rstrip("/")


def _format(entry: dict[str, Any]) -> str:
    parameters = entry.get("Parameters", {})
    return str(parameters.get("table_type") or parameters.get("spark.sql.sources.provider") or "").upper()


def _entry(name: str, path: str, schema: StructType) -> dict[str, Any]:
    location = path.replace("s3a://", "s3://", 1)
    columns = [(field.name.lower(), field.dataType.simpleString()) for field in schema.fields]
    return {
        "Name": name,
        "TableType": "EXTERNAL_TABLE",
        "Parameters": {
            "EXTERNAL": "TRUE",
            "table_type": "DELTA",
            "classification": "delta",
            "spark.sql.sources.provider": "delta",
        },
        "StorageDescriptor": {
            "Columns": [{"Name": column, "Type": kind} for column, kind in columns if len(kind) <= LONGEST_TYPE],
            "Location": location,
            "InputFormat": "org.apache.hadoop.mapred.SequenceFileInputFormat",
            "OutputFormat": "org.apache.hadoop.hive.ql.io.HiveSequenceFileOutputFormat",
            "SerdeInfo": {
                "SerializationLibrary": "org.apache.hadoop.hive.serde2.lazy.LazySimpleSerDe",
                "Parameters": {"path": location, "serialization.format": "1"},
            },
        },
    }
