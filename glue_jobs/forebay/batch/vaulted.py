"""Personal values on their way into the vault: encrypted before anything keeps a row, written last of what a batch writes.

In: rows as they come from the reader, with the column `personal`. Out: the same rows with `_vault` in its place, from which
only who may decrypt with the vault's key gets anything; and the rows of the vault's table. Keys are values of columns, which no
plan shows. Values are bound to their service and wrapping key, and a data key to its subjects.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from forebay.privacy.vault import COLUMNS, value_data

if TYPE_CHECKING:
    from pyspark.sql import Column as Expression
    from pyspark.sql import DataFrame

__all__ = ["KEPT", "SEALED", "encrypted_values", "sealed", "vault_rows"]

SEALED = "_vault"
KEPT = ("write", "quarantine", "park")
"""Fates of records that are kept in any form."""


def sealed(content: DataFrame, service: str) -> DataFrame:
    """Where the reader tells no originals, nothing changes."""
    from pyspark.sql import functions as F

    if "personal" not in content.columns:
        return content
    found = F.col("personal")
    bound_to = F.concat(F.lit(value_data(service, "")), found["key_id"])
    encrypted = encrypted_values(found["values"], found["key"], bound_to)
    kept = [found[name].alias(name) for name in ("subjects", "key_id", "salt")]
    vault = F.struct(*kept, encrypted.alias("content"))
    return content.withColumn(SEALED, F.when(found.isNotNull(), vault)).drop("personal")


def encrypted_values(values: Expression, key: Expression, bound_to: Expression) -> Expression:
    from pyspark.sql import functions as F

    return F.aes_encrypt(values.cast("binary"), key, F.lit("GCM"), F.lit("DEFAULT"), F.lit(""), bound_to.cast("binary"))


def vault_rows(rows: DataFrame, shared: Mapping[str, Any]) -> DataFrame:
    """Of records that are kept, wherever. `shared` is what all of them say alike."""
    from pyspark.sql import functions as F

    known: dict[str, Expression] = {name: F.lit(value) for name, value in shared.items()}
    known |= {"day": F.lit(shared["at"].date()), "file_id": F.col("_file_id"), "byte_offset": F.col("byte_offset")}
    kept = rows.where(F.col(SEALED).isNotNull() & F.col("_fate").isin(*KEPT))
    chosen = []
    for name, kind in (column.split(" ", 1) for column in COLUMNS.split(", ")):
        chosen.append((known[name] if name in known else F.col(SEALED)[name]).cast(kind).alias(name))
    return kept.select(*chosen)
