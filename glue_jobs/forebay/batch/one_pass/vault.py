"""The original values of one task's records, on their way into the vault. Spark encrypts them in the middle of the pass.

In: records with `personal` (`content.originals`), and what Spark makes of it. Out: rows as `privacy.vault` has them, of the
pieces that land.
"""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from forebay.batch.one_pass.landed import Landed
from forebay.batch.one_pass.told import Told
from forebay.content.originals import NAME
from forebay.declared_sql.questions import ENCRYPTED, ORIGINAL
from forebay.privacy.vault import value_data

KEPT = ("subjects", "key_id", "salt")
"""The parts of `personal` that the vault keeps unencrypted."""


def without_originals(rows: pa.Table, service: str) -> tuple[pa.Table, dict[str, pa.Array]]:
    """The rows without the values themselves, and the columns that Spark encrypts."""
    personal = rows[NAME].combine_chunks()
    told = dict(zip((field.name for field in personal.type), personal.flatten(), strict=True))
    bound_to = pc.binary_join_element_wise(value_data(service, ""), told["key_id"], "")
    kept = pa.StructArray.from_arrays([told[name] for name in KEPT], list(KEPT), mask=pc.is_null(personal))
    rows = rows.set_column(rows.schema.get_field_index(NAME), NAME, kept)
    return rows, dict(zip(ORIGINAL, (told["values"], told["key"], bound_to), strict=True))


class VaultRows:
    """The vault's rows of one task."""

    def __init__(self, landed: Landed, told: Told) -> None:
        self.landed, self.schema = landed, told.vaulted
        self.shared = {"day": told.shared["at"].date(), **told.shared}
        self._waiting: list[pa.Table] = []
        self.bytes = 0

    def add(self, rows: pa.Table) -> None:
        """Nothing where a service has no vault, or a record no values for it."""
        if NAME in rows.column_names:
            mine = rows.select(["piece", "byte_offset", NAME, ENCRYPTED]).filter(pc.is_valid(rows[NAME]))
            self._waiting.append(mine)
            self.bytes += mine.nbytes

    def clear(self) -> None:
        """They are written."""
        self._waiting, self.bytes = [], 0

    def kept(self, pieces: pa.Array) -> pa.Table | None:
        """The rows of these pieces; None if there are none."""
        rows = pa.concat_tables(self._waiting) if self._waiting else None
        rows = None if rows is None else rows.filter(pc.is_in(rows["piece"], value_set=pieces))
        if rows is None or not rows.num_rows:
            return None
        personal, encrypted = rows[NAME].combine_chunks(), rows[ENCRYPTED].combine_chunks()
        made: dict[str, Any] = dict(zip(KEPT, personal.flatten(), strict=True))
        made |= {"byte_offset": rows["byte_offset"], "content": encrypted.flatten()[0]}
        made["file_id"] = self.landed.named("file_id", rows["piece"].combine_chunks())
        for name, value in self.shared.items():
            made[name] = pa.repeat(pa.scalar(value, self.schema.field(name).type), rows.num_rows)
        return pa.table([made[name] for name in self.schema.names], schema=self.schema)
