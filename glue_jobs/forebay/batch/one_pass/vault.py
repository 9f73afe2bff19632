"""The original values of one task's records, on their way into the vault. Spark encrypts them in the middle of the pass.

In: records with `personal` (`content.originals`), and what Spark makes of it. Out: rows as `privacy.vault` has them, of the
pieces that land.
"""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from forebay.batch.one_pass.held import RowsBeside
from forebay.batch.one_pass.landed import Landed
from forebay.batch.one_pass.spec import PassSpec
from forebay.content.originals import NAME
from forebay.declared_sql.questions import ENCRYPTED, ORIGINAL
from forebay.privacy.vault import value_data

KEPT = ("subjects", "key_id", "salt")
"""The parts of `personal` that the vault keeps unencrypted."""


def without_originals(rows: pa.Table, service: str) -> tuple[pa.Table, dict[str, pa.Array]]:
    """The rows without the values themselves, and the columns that Spark encrypts."""
    personal = rows[NAME].combine_chunks()
    parts = dict(zip((field.name for field in personal.type), personal.flatten(), strict=True))
    bound_to = pc.binary_join_element_wise(value_data(service, ""), parts["key_id"], "")
    kept = pa.StructArray.from_arrays([parts[name] for name in KEPT], list(KEPT), mask=pc.is_null(personal))
    rows = rows.set_column(rows.schema.get_field_index(NAME), NAME, kept)
    return rows, dict(zip(ORIGINAL, (parts["values"], parts["key"], bound_to), strict=True))


class VaultRows(RowsBeside):
    """The vault's rows of one task."""

    def __init__(self, landed: Landed, spec: PassSpec) -> None:
        super().__init__(landed, spec, spec.vaulted)

    def add(self, rows: pa.Table) -> None:
        """Nothing where a service has no vault, or a record no values for it."""
        if NAME in rows.column_names:
            mine = rows.select(["piece", "byte_offset", NAME, ENCRYPTED]).filter(pc.is_valid(rows[NAME]))
            self._waiting.append(mine)
            self.bytes += mine.nbytes

    def kept(self, pieces: pa.Array) -> pa.Table | None:
        """The rows of these pieces; None if there are none."""
        if (rows := self.of(pieces)) is None:
            return None
        personal, encrypted = rows[NAME].combine_chunks(), rows[ENCRYPTED].combine_chunks()
        made: dict[str, Any] = dict(zip(KEPT, personal.flatten(), strict=True))
        made |= {"byte_offset": rows["byte_offset"], "content": encrypted.flatten()[0]}
        made["file_id"] = self.landed.named("file_id", rows["piece"].combine_chunks())
        return self.with_shared(made, rows.num_rows)
