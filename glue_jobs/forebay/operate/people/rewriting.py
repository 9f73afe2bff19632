"""Whether a landed object may be rewritten: only if the job takes the notification of its new bytes for a duplicate.

In: the ledger's rows of a key, and a version that S3 has of it. Out: the files that get the hash of the new bytes, or why the
version stays. A version that no job has loaded would be missing for it, with all records of others. And what is left of a
version whose records are in no table would be loaded as a new file, although an operator left it out or took it back. An
earlier version is not rewritten but deleted, so it stays while it could still be loaded.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from forebay.declaration.service import Service
from forebay.lake.layout import LEDGER
from forebay.landed_file import LandedFile
from forebay.ledger.claim import Claim
from forebay.ledger.decision import decide_files
from forebay.ledger.entry import hashes_in
from forebay.ledger.versions import Earlier
from forebay.operate.lake_view import LakeView

IN_NO_TABLE = "has an earlier version with records of others that are in no table, and could still be loaded"
NOT_LOADED = "has a version with records of others that no job has loaded yet: repeat the command afterwards"
WOULD_BE_LOADED = "has records of others that are in no table, and the job would load what is left as a new file"
Key = tuple[str, str]


@dataclass(frozen=True)
class Version:
    """A version in S3. Its id is null where the bucket kept no versions then."""

    version_id: str
    etag: str
    content_hash: str

    def is_of(self, row: Mapping[str, Any]) -> bool:
        """Whether the row is of this version. A version that an erasure wrote is known by its bytes alone, at first."""
        if self.content_hash in hashes_in(row["content_hash"]):
            return True
        named = row["version_id"] or "null"
        return bool(named == self.version_id and (named != "null" or row["etag"] == self.etag))


@dataclass(frozen=True)
class KeyInLedger:
    """`rows` are those of all services of the lake. The `others` of them decide about their own."""

    service: Service
    rows: Sequence[Mapping[str, Any]]
    others: Sequence[Service] = ()

    def knows(self, version: Version) -> bool:
        return self.service in self._knowing(version)

    def equals(self, version: Version) -> list[Mapping[str, Any]]:
        """The rows of files with its bytes. A file of many pieces has another hash than its bytes, so its own row tells."""
        own = [row for row in self.rows if version.is_of(row)]
        etags = {version.etag, *(row["etag"] for row in own)} - {"", None}
        hashes = {version.content_hash}.union(*(hashes_in(row["content_hash"]) for row in own))
        return [row for row in self.rows if row["etag"] in etags or hashes & hashes_in(row["content_hash"])]

    def why_kept(self, version: Version) -> str:
        """Why an earlier version must not be deleted, although it has records of theirs; empty if it may be."""
        if not self.knows(version):
            return NOT_LOADED
        equal = self.equals(version)
        stay = any(_all_may_be_loaded(_rows_for(one, equal)) for one in self._knowing(version))
        return IN_NO_TABLE if stay else ""

    def why_not(self, version: Version, new_hash: str) -> str:
        """Why it must not be rewritten; empty if it may be."""
        if not self.knows(version):
            return NOT_LOADED
        equal = {row["file_id"] for row in self.equals(version)}
        rows = [
            {**row, "content_hash": f"{row['content_hash'] or ''} {new_hash}".strip()}
            if row["file_id"] in equal
            else row
            for row in self.rows
        ]
        load = any(_would_load(one, _rows_for(one, rows), new_hash) for one in self._knowing(version))
        return WOULD_BE_LOADED if load else ""

    def _knowing(self, version: Version) -> list[Service]:
        """The services with a row of it. One that has none yet loads what is rewritten, without the records of theirs."""
        services = (self.service, *self.others)
        return [one for one in services if any(map(version.is_of, _rows_for(one, self.rows)))]


def _rows_for(service: Service, rows: Iterable[Mapping[str, Any]]) -> list[Mapping[str, Any]]:
    """Those that decide for a service."""
    names = {None, service.name, *service.shares_files_with}
    return [row for row in rows if row["service"] in names]


def _would_load(service: Service, rows: Sequence[Mapping[str, Any]], new_hash: str) -> bool:
    bucket, key = rows[0]["bucket"], rows[0]["key"]
    new = LandedFile(bucket, key, version_id="rewritten", event_time=datetime.now(UTC))
    claim = Claim([new], {(bucket, key): [*map(Earlier.of, rows)]}, service.rule_of)
    return not decide_files(claim, {new.file_id: new_hash}).left_out


def _all_may_be_loaded(rows: Iterable[Mapping[str, Any]]) -> bool:
    equal = [*map(Earlier.of, rows)]
    return all(map(_may_be_loaded, [one for one in equal if not one.is_duplicate] or equal))


def _may_be_loaded(seen: Earlier) -> bool:
    """Whether the job, or an operator, can still have it read, and no row of it stands."""
    return seen.rolled_back or not (seen.final or seen.has_rows)


def keys_in_ledger(view: LakeView, keys: Collection[Key]) -> dict[Key, list[Mapping[str, Any]]]:
    """The rows of these buckets and keys."""
    found: dict[Key, list[Mapping[str, Any]]] = {key: [] for key in keys}
    for row in view.rows_with(LEDGER, "*", "key", {key for _, key in keys}):
        found.get((row["bucket"], row["key"]), []).append(row)
    return found
