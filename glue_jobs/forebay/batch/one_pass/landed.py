"""The files that a task reads, by the numbers of their pieces: the facts that all records of a piece share.

In: pieces, each a whole file. Out: for a column of pieces, the ids, places and times of their files, as Arrow.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC
from functools import cached_property
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from forebay.content.piece import Piece
from forebay.declaration.path import Path
from forebay.declaration.service import Service
from forebay.landed_file import LandedFile
from forebay.record.route import Origin, text_of

MOMENT = pa.timestamp("us", tz="UTC")


@dataclass(frozen=True, slots=True)
class HeldFile(LandedFile):
    """The file of held records, as they name it. Its `event_time` is when they were held."""

    held_id: str = ""

    @property
    def file_id(self) -> str:
        return self.held_id


class Landed:
    """The landed files of one task."""

    def __init__(self, pieces: Sequence[Piece], service: Service) -> None:
        self.pieces, self.service = pieces, service
        self._texts: dict[str, pa.StringArray] = {}

    @cached_property
    def files(self) -> dict[int, LandedFile]:
        return {piece.number: piece.file for piece in self.pieces}

    @cached_property
    def _numbers(self) -> pa.Int32Array:
        return pa.array([piece.number for piece in self.pieces], pa.int32())

    def places(self, pieces: pa.Array) -> pa.Int32Array:
        """The positions of the pieces in this task."""
        return pc.index_in(pieces, value_set=self._numbers)

    def named(self, name: str, pieces: pa.Array) -> pa.StringArray:
        """A field of the files: `file_id`, `bucket`, `key` or `version_id`."""
        return self._column(name, lambda file: getattr(file, name)).take(self.places(pieces))

    def of_object(self, path: Path, rows: pa.Table) -> pa.StringArray:
        """A field that the records of a file have from their object."""
        name = str(path)
        if path.origin == "metadata":
            encoded = rows["metadata"].combine_chunks().dictionary_encode()
            origins = [Origin(metadata=json.loads(text)) for text in encoded.dictionary.to_pylist()]
            texts = pa.array([text_of(self.service, name, None, origin) for origin in origins], pa.string())
            return texts.take(encoded.indices)
        made = self._column(name, lambda file: text_of(self.service, name, None, Origin(file.key, file.bucket)))
        return made.take(self.places(rows["piece"].combine_chunks()))

    def landed_at(self, pieces: pa.Array) -> pa.TimestampArray:
        return self._landed.take(self.places(pieces))

    @cached_property
    def _landed(self) -> pa.TimestampArray:
        times = [piece.file.event_time for piece in self.pieces]
        return pa.array([None if time is None else time.astimezone(UTC) for time in times], MOMENT)

    def _column(self, name: str, of: Any) -> pa.StringArray:
        if name not in self._texts:
            self._texts[name] = pa.array([of(piece.file) for piece in self.pieces], pa.string())
        return self._texts[name]
