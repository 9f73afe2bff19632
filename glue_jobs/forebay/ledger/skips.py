"""Files that an operator skips: no batch reads them until the skip is removed.

Each skip is one small object in the lake. Its name is the id of one version of an object, or the id of a key for all its
versions. So a batch finds the skips of its files with one listing, and reads none of them.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import asdict, dataclass

from forebay.lake.objects import Objects
from forebay.landed_file import LandedFile, is_meant


@dataclass(frozen=True)
class Skip:
    """A skip of a version, by its `file_id`; or of a key, with all its present and future versions."""

    file_id: str = ""
    bucket: str = ""
    key: str = ""

    @property
    def name(self) -> str:
        return self.file_id or _id_of_key(self.bucket, self.key)

    def __str__(self) -> str:
        return f"file {self.file_id}" if self.file_id else f"s3://{self.bucket}/{self.key}"


class Skips:
    """The skips of one lake. Each call can be repeated safely."""

    def __init__(self, store: Objects) -> None:
        self._store = store

    def add(self, skip: Skip) -> None:
        self._store.write(skip.name, json.dumps(asdict(skip)).encode())

    def remove(self, skips: Iterable[Skip]) -> None:
        self._store.delete([skip.name for skip in skips])

    def among(self, files: Iterable[LandedFile]) -> frozenset[str]:
        """The ids of these files that must be skipped."""
        names = {listed.name for listed in self._store.found()}
        if not names:
            return frozenset()
        return frozenset(f.file_id for f in files if not names.isdisjoint((f.file_id, _id_of_key(f.bucket, f.key))))

    def list(self, *, key: str = "", file_id: str = "") -> list[Skip]:
        """All, or those of such a key or address, or that of one version."""
        contents = (self._store.read(found.name) for found in self._store.found(file_id))
        skips = [Skip(**json.loads(content)) for content in contents if content is not None]
        return [skip for skip in skips if not key or (skip.key and is_meant(key, skip.bucket, skip.key))]


def _id_of_key(bucket: str, key: str) -> str:
    return LandedFile(bucket, key).file_id
