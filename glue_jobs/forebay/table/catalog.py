"""The Glue Data Catalog knows the tables, so that Athena and others find them by name.

Enters: a table after a commit: its name, its place, its columns. Leaves: an entry in the catalog's database, made or changed
where it differs. What is registered is remembered, so a batch without new columns asks nothing. Readers of Delta read a
table's log for its columns; those in the catalog are for people who look there. Nothing here may stop the data: what AWS
refuses is an event, once a table.
"""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING, Any

from botocore.exceptions import BotoCoreError, ClientError

from forebay.events import Emit
from forebay.table.events import CatalogNotUpdated

if TYPE_CHECKING:
    from pyspark.sql.types import StructType

__all__ = ["Catalog"]

LONGEST_TYPE = 131_072
"""Of a column's type, as Glue takes it."""


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
                self._put(name, wanted)
            except (ClientError, BotoCoreError) as refused:
                if name not in self._refused:
                    self._refused.add(name)
                    self._emit(CatalogNotUpdated(table=name, database=self._database, error=str(refused)))
                return
            self._known[name] = wanted
            self._refused.discard(name)

    def _put(self, name: str, wanted: dict[str, Any]) -> None:
        where = {"DatabaseName": self._database}
        try:
            found = self._glue.get_table(**where, Name=name)["Table"]
        except self._glue.exceptions.EntityNotFoundException:
            try:
                self._glue.create_table(**where, TableInput=wanted)
                return
            except self._glue.exceptions.AlreadyExistsException:  # another driver was quicker
                found = self._glue.get_table(**where, Name=name)["Table"]
        parameters = {**found.get("Parameters", {}), **wanted["Parameters"]}
        kept = {key: found[key] for key in ("Description", "Owner", "Retention") if key in found}
        self._glue.update_table(**where, TableInput={**kept, **wanted, "Parameters": parameters})


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
