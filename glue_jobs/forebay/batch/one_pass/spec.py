"""The spec of a pass, for all its tasks.

In: the service, the lake, and the tables that the driver knows. Out: `PassSpec`, which travels to each task.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import pyarrow as pa

from forebay.batch.accounting import Standing
from forebay.batch.reasons import PAUSED_TABLE
from forebay.content.end import PieceEnd
from forebay.content.limits import Limits
from forebay.content.piece import Piece
from forebay.declaration.service import Service
from forebay.declared_sql.columns import rules_of
from forebay.declared_sql.questions import Questions
from forebay.lake.layout import table_path
from forebay.privacy.known_secret import must_be_secret_of
from forebay.record.apart import ApartTransform, Lost
from forebay.record.kind import Struct
from forebay.record.transform import Transform
from forebay.spark.python_worker import is_repeated
from forebay.table.data_files.data_file import TableFolder
from forebay.table.data_files.storage import Storage
from forebay.table.shaping import Shaping

PLACE = ["piece", "line", "byte_offset", "value", "metadata"]
"""The columns of a record on its way: where it stands, its text, and the metadata of its object if that is asked for."""
Fact = pa.Array | pa.ChunkedArray | str | int | None
"""A fact about records that no table gets: one value for all of them, or an array."""
TASK_BYTES = 128 << 20
"""The bytes of text that may wait in a task. After that, it is written, or sent on."""


@dataclass(frozen=True)
class Known:
    """A table that the driver knows, if it is made by this declaration."""

    declared: int
    place: TableFolder


@dataclass(frozen=True)
class KeptOut:
    """The reason why rows of a table go to the quarantine instead."""

    reason: str
    detail: str | None = None


@dataclass(frozen=True)
class Held:
    """The facts about records that were held. Records that no table gets stay where they are: they are counted, but not
    written. `stay` are, by table, the pieces whose records stay although the table would accept them. If there is an `only`
    table, no other table gets records."""

    stay: Mapping[str, Sequence[int]] = field(default_factory=dict)
    only: str | None = None


@dataclass(frozen=True)
class PassSpec:
    """`shared` are the fields that all rows of the batch share beside the tables, and `pieces` are those of all tasks."""

    service: Service
    limits: Limits
    lake: str
    shared: Mapping[str, Any]
    pieces: tuple[Piece, ...]
    known: Mapping[str, Known]
    kept: pa.Schema
    """The schema of the quarantine and the parked records: a task cannot ask Spark for it."""
    vaulted: pa.Schema
    """The schema of the vault's rows."""
    storage: Storage
    questions: Questions
    conditions: Questions
    """The questions about records whose table is not known."""
    ids_at_most: int
    """The rows whose ids one task answers with."""
    unwritten: Mapping[str, KeptOut] = field(default_factory=dict)
    """Tables that the driver does not write."""
    standing: Standing = field(default_factory=dict)
    """The tables that have rows of replayed files, by file id. In tables that are not written, these rows stay."""
    only_unwritten: bool = False
    """The tables that are written have these rows already."""
    ends: tuple[PieceEnd, ...] = ()
    """The ends of all pieces, if they were read before (`one_pass.lean`), or if their records were held."""
    held: Held | None = None
    """Only for held records, which do not come from landed files."""
    functions_in: tuple[str, ...] = ()
    """The folders in which the driver finds the functions of tables."""
    functions_apart: bool = False
    """Each function has a process of its own: one of them may have ended the process of a task."""
    secret_token: str = ""
    """A token of the secret that the driver has. A worker that starts later may find another one there."""
    lost: Lost = field(default_factory=Lost)
    """Of the one task that has this object."""

    @property
    def has_functions(self) -> bool:
        return any(table.transform for table in self.service.tables)

    def must_have_its_secret(self) -> None:
        if self.secret_token:
            must_be_secret_of(self.secret_token, self.service.secret)

    def transform_of(self, declared: int) -> Transform | None:
        name = self.service.tables[declared].transform
        if name is None:
            return None
        memory = self.limits.task_memory_bytes
        if self.functions_apart or is_repeated():
            return ApartTransform(name, self.functions_in, memory_bytes=memory, lost=self.lost)
        return Transform(name, self.functions_in, memory_bytes=memory)

    def kept_out(self, table: str) -> KeptOut | None:
        if self.service.is_paused(table) and not self.only_unwritten:
            return KeptOut(PAUSED_TABLE)
        return self.unwritten.get(table)

    @property
    def standing_pieces(self) -> dict[str, list[int]]:
        """The pieces of files whose earlier rows a table keeps, by table."""
        found: dict[str, list[int]] = {}
        for piece in self.pieces if self.standing else ():
            for table in self.standing.get(piece.file.file_id, ()):
                found.setdefault(table, []).append(piece.number)
        return found

    def place(self, name: str, declared: int) -> TableFolder:
        """A table that the driver does not know may be new."""
        known = self.known.get(name)
        if known is not None and known.declared == declared:
            return known.place
        table = self.service.tables[declared]
        return TableFolder(table_path(self.lake, name), table.partitions, Shaping(Struct(), rules_of(table)))
