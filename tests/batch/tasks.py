"""The tasks of one pass alone, without Spark: files from memory, data files into memory, and their rows back out."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

import forebay.batch.one_pass.reader as reader
from forebay.batch.one_pass.answers import Answer
from forebay.batch.one_pass.spec import PassSpec
from forebay.content.limits import Limits
from forebay.content.piece import cut
from forebay.declaration.loading import parse_service
from forebay.declared_sql.questions import Questions
from forebay.landed_file import LandedFile

AT = datetime(2026, 11, 21, 10, tzinfo=UTC)
TEXT, MOMENT = pa.string(), pa.timestamp("us", tz="UTC")
KEPT = pa.schema(
    [("day", pa.date32()), ("at", MOMENT), ("service", TEXT), ("generation", TEXT), ("batch", pa.int64())]
    + [(name, TEXT) for name in ("file_id", "bucket", "key", "version_id")]
    + [("line", pa.int64()), ("byte_offset", pa.int64())]
    + [(name, TEXT) for name in ("table", "reason", "detail", "record", "metadata")]
)


@dataclass
class InMemory:
    """A place for data files, by the path of their table."""

    files: dict[str, bytes] = field(default_factory=dict)

    def put(self, table_path: str, name: str, content: pa.Buffer) -> None:
        self.files[f"{table_path}/{name}"] = content.to_pybytes()

    def rows(self, answer: Answer, table: str) -> list[dict[str, Any]]:
        """Of the files that the answer names, with the values of their folders."""
        found = []
        for file in answer.files:
            if file["table"] == table and "path" in file:
                content = pq.read_table(pa.BufferReader(self.files[f"file:///lake/{table}/{file['path']}"]))
                found += [{**row, **dict(json.loads(file["partitions"]))} for row in content.to_pylist()]
        return found


def spec_of(
    service: str, files: Mapping[str, bytes], patched: Any, *, limits: Limits | None = None
) -> tuple[PassSpec, InMemory]:
    """The spec for the tasks of a batch of these files, and where they write."""
    limits, storage = limits or Limits(), InMemory()
    landed = [
        LandedFile("landing", key, len(some), key, None, f"{n:016X}", AT) for n, (key, some) in enumerate(files.items())
    ]
    patched.setattr(reader, "source", lambda *_: lambda file, start=0, stop=None: files[file.key][start:stop])
    shared = {"day": AT.date(), "at": AT, "service": "s", "generation": "g", "batch": 1}
    made = PassSpec(
        service=parse_service({"service.toml": service}),
        limits=limits,
        lake="file:///lake",
        shared=shared,
        pieces=tuple(cut(landed, limits)),
        known={},
        kept=KEPT,
        vaulted=pa.schema([]),
        storage=storage,  # type: ignore[arg-type]
        questions=Questions(),
        conditions=Questions(),
        ids_at_most=1_000_000,
    )
    return made, storage
