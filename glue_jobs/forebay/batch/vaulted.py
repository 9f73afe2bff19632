"""Personal values on their way into the vault: encrypted before anything keeps a row, written last of what a batch writes.

In: rows as they come from the reader, with the column `personal`. Out: the same rows with `_vault` in its place, from which
only who may decrypt with the vault's key gets anything; and the rows of the vault's table. Keys are values of columns, which no
plan shows. Each value is bound to its service, path and wrapping key, and a data key to its subjects.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from forebay.privacy.vault import COLUMNS, key_data, value_data

if TYPE_CHECKING:
    from pyspark.sql import Column as Expression
    from pyspark.sql import DataFrame

__all__ = ["SEALED", "sealed", "vault_rows"]

SEALED = "_vault"
KEPT = ("write", "quarantine", "park")
"""Fates of records of which anything is kept."""


def sealed(content: DataFrame, service: str) -> DataFrame:
    """Where the reader tells no originals, nothing changes."""
    from pyspark.sql import functions as F

    if "personal" not in content.columns:
        return content
    found = F.col("personal")
    key_id = found["key_id"]

    def encrypted(value: Expression, key: Expression, data: Expression) -> Expression:
        return F.aes_encrypt(value.cast("binary"), key, F.lit("GCM"), F.lit("DEFAULT"), F.lit(""), data.cast("binary"))

    def field(one: Expression) -> Expression:
        data = _said(value_data(service, "%s", "%s"), key_id, one["path"])
        return F.struct(one["path"].alias("path"), encrypted(one["value"], found["key"], data).alias("value"))

    key = encrypted(
        found["key"],
        found["wrapping"],
        _said(key_data(service, "%s", "%s"), key_id, F.array_join(found["subjects"], " ")),
    )
    vault = F.struct(
        found["subjects"].alias("subjects"),
        key_id.alias("key_id"),
        key.alias("key"),
        F.transform(found["fields"], field).alias("fields"),
    )
    return content.withColumn(SEALED, F.when(found.isNotNull(), vault)).drop("personal")


def _said(template: str, *parts: Expression) -> Expression:
    from pyspark.sql import functions as F

    texts = template.split("%s")
    pieces: list[Expression] = [F.lit(texts[0])]
    for part, text in zip(parts, texts[1:], strict=True):
        pieces += [part, F.lit(text)]
    return F.concat(*pieces)


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
