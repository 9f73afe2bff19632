"""The manifests of an export: which files of a place count, and in which order they apply.

In: a place, and the name of a table. Out: a `Manifest` for each step. The name of a manifest is the version after which its
step begins, so manifests form a chain.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Literal

from forebay.lake.layout import table_path
from forebay.lake.objects import Objects, open_objects

Format = Literal["parquet", "json"]


@dataclass(frozen=True)
class Part:
    name: str
    rows: int
    bytes: int


@dataclass(frozen=True)
class Manifest:
    """The changes after version `since` up to `version`; with `since` -1 the whole table. `keys`, with their types, name the
    rows that an `upsert` or a `delete` is about. Names of files are relative to the manifest's folder."""

    table: str
    table_id: str
    since: int
    version: int
    format: Format
    keys: dict[str, str]
    files: tuple[Part, ...]
    made_at: str

    @property
    def rows(self) -> int:
        return sum(part.rows for part in self.files)


def manifests_of(to: str, table: str) -> list[Manifest]:
    """The manifests in a place, in the order in which they apply."""
    target, found = open_objects(table_path(to, table)), list[Manifest]()
    while (text := target.read(name_of(found[-1].version if found else _first(target)))) is not None:
        stored = json.loads(text)
        parts = tuple(Part(**part) for part in stored.pop("files"))
        found.append(Manifest(**stored, files=parts))
    return found


def name_of(since: int) -> str:
    """The name of the manifest that begins after a version; -1 for the whole table."""
    return f"after-{since:020}.json" if since >= 0 else "whole.json"


def _first(target: Objects) -> int:
    """The version after which the place begins; the whole table where the place is empty."""
    first = next((found.name for found in target.found("after-")), None)
    if first is None or target.read(name_of(-1)) is not None:
        return -1
    return int(first.removeprefix("after-").removesuffix(".json"))
