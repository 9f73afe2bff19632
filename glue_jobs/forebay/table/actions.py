"""The actions of a commit that change what a table looks like: its protocol and its metadata, as Delta's log has them.

In: Kernel's protocol or metadata of the table, and what changes. Out: the action as JSON.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pyspark.sql.types import StructType


def protocol_action(protocol: Any, feature: str) -> str:
    """The table's protocol with one more feature for readers and writers; those that older versions implied are named."""
    supported = protocol.getImplicitlyAndExplicitlySupportedFeatures().toArray()
    names = {str(found.featureName()): bool(found.isReaderWriterFeature()) for found in supported} | {feature: True}
    action = {
        "minReaderVersion": 3,
        "minWriterVersion": 7,
        "readerFeatures": sorted(name for name, for_readers in names.items() if for_readers),
        "writerFeatures": sorted(names),
    }
    return json.dumps({"protocol": action})


def metadata_action(
    metadata: Any,
    schema: StructType,
    partition_columns: Sequence[str] | None = None,
    properties: Mapping[str, str] | None = None,
) -> str:
    """The table's metadata in its log, with another schema, and perhaps with other partition columns."""
    if partition_columns is None:
        partition_columns = texts(metadata.getPartitionColumns())
    named = {"name": metadata.getName(), "description": metadata.getDescription()}
    action = {
        "id": metadata.getId(),
        **{key: str(value.get()) for key, value in named.items() if value.isPresent()},
        "format": {"provider": "parquet", "options": {}},
        "schemaString": schema.json(),
        "partitionColumns": list(partition_columns),
        "configuration": {**dict(metadata.getConfiguration()), **(properties or {})},
    }
    if metadata.getCreatedTime().isPresent():
        action["createdTime"] = int(metadata.getCreatedTime().get())
    return json.dumps({"metaData": action})


def texts(array: Any) -> list[str]:
    elements = array.getElements()
    return [str(elements.getString(at)) for at in range(array.getSize())]
