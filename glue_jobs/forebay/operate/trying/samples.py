"""Sample files, on this machine or in S3, read by the job's own reader.

In: paths, folders and s3:// addresses. Out: their records and refusals, each with its position, and the outcome of each file.
A sample is read whole into memory. A missing one is `InvalidConfiguration`.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import islice
from pathlib import Path
from typing import Any

import pyarrow as pa

from forebay.address import bucket_and_key
from forebay.aws.client import client
from forebay.content.end import FileEnd, PieceEnd, file_ends
from forebay.content.fetch import GetObject, Metadata
from forebay.content.limits import Limits
from forebay.content.outcome import Unread
from forebay.content.piece import Piece, cut
from forebay.content.reading import read_pieces
from forebay.content.signature import is_packed
from forebay.declaration.column_name import family_of
from forebay.declaration.form import Forms
from forebay.declaration.service import Service
from forebay.errors import InvalidConfiguration
from forebay.landed_file import LandedFile
from forebay.ledger.ignored import why_ignored
from forebay.operate.trying.sheltered import read_sheltered
from forebay.record.route import Origin

MOST_FILES = 1000
"""The most files of a place that are read; of more files, a sample is read."""
MOST_LISTED = 20_000
MOST_BYTES = 64 << 20
"""The most bytes of files, and of their records: about ten seconds, and 1 GB of memory."""

FEWER = "name fewer, or parts of them, such as the output of `head -n 10000`"


@dataclass(frozen=True)
class Sample:
    """A record, or what was refused as one: then `reason` says why. `line` counts from 1 in the file."""

    file: LandedFile
    line: int
    text: str
    byte_offset: int = 0
    reason: str | None = None
    detail: str | None = None
    metadata: Mapping[str, str] = field(default_factory=dict)

    @property
    def place(self) -> str:
        return f"{name_of(self.file)}:{self.line}"

    @property
    def origin(self) -> Origin:
        return Origin(self.file.key, self.file.bucket, self.metadata)


@dataclass(frozen=True)
class Samples:
    """In the order of the files and of their lines; `ends` has one for each file that was read. `ignored` files were not, by
    the rule that is named. `left_out` counts further files, where the others are a sample."""

    records: tuple[Sample, ...]
    ends: tuple[FileEnd, ...]
    ignored: tuple[tuple[LandedFile, str], ...] = ()
    left_out: int = 0


def read_samples(
    places: Iterable[str], service: Service | None = None, *, limits: Limits | None = None, s3: Any = None
) -> Samples:
    """The records of all files that land; those of a file that is not read whole are left out, as the job does. The service
    says how records are laid out in them, and which files are ignored. Tokens are made up: a trial needs no
    secret, and learns nobody's token."""
    listed = [_files_at(place, s3) for place in places]
    found = [file for files, _ in listed for file in files]
    rules = {file: why_ignored(service, file) if service else "" for file in found}
    files = [file for file in found if not rules[file]]
    _refuse_large(files)
    forms = service.forms.without_secrets if service else None
    limits = limits or Limits(attempts=2)
    metadata: Metadata = {}
    pieces = cut(files, limits)
    of_piece = {piece.number: piece.file for piece in pieces}
    get = _Get(s3, limits, metadata)
    rows = [row for batch in _few(_batches(pieces, get, limits, forms)) for row in batch.to_pylist()]
    ends_of_pieces = [row for row in rows if row["line"] is None]
    ends = file_ends(
        pieces, [PieceEnd.from_row(r["piece"], r["value"], r["problem"], r["detail"]) for r in ends_of_pieces]
    )
    before = {piece: lines for end in ends if end.lands for piece, lines in end.lines_before.items()}
    rows = sorted((r for r in rows if r["line"] and r["piece"] in before), key=lambda r: (r["piece"], r["byte_offset"]))
    records = (
        Sample(
            file=of_piece[row["piece"]],
            line=row["line"] + before[row["piece"]],
            text=row["value"].rstrip(),
            byte_offset=row["byte_offset"],
            reason=row["problem"],
            detail=row["detail"],
            metadata=metadata.get(of_piece[row["piece"]], {}),
        )
        for row in rows
    )
    ignored = tuple((file, rule) for file, rule in rules.items() if rule)
    return Samples(tuple(records), tuple(ends), ignored, sum(others for _, others in listed))


def _batches(pieces: Sequence[Piece], get: _Get, limits: Limits, forms: Forms | None) -> Iterator[pa.RecordBatch]:
    """Only fetches content that is not plain text; `sheltered` reads it."""
    for batch in read_pieces(pieces, get, limits, get.metadata, forms):
        kept = [pieces[number].file not in get.more_than_text for number in batch.column("piece").to_pylist()]
        yield batch.filter(pa.array(kept, pa.bool_()))
    aside = [piece for piece in pieces if piece.file in get.more_than_text]
    yield from read_sheltered(aside, get.more_than_text, limits, forms, MOST_BYTES)


def _refuse_large(files: Iterable[LandedFile]) -> None:
    size = sum(file.size or 0 for file in files)
    if size > MOST_BYTES:
        raise InvalidConfiguration.one("samples", f"hold {size:,} bytes, and {MOST_BYTES:,} is the limit", FEWER)


def _few(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """A small file may hold very many records."""
    size = 0
    for batch in batches:
        size += batch.nbytes
        if size > MOST_BYTES:
            raise InvalidConfiguration.one("samples", f"their records have more than {MOST_BYTES:,} bytes", FEWER)
        yield batch


def having_key(records: Sequence[Any]) -> dict[str, list[int]]:
    """By the family of a key, the positions of the records that have it or a twin of it."""
    having: dict[str, list[int]] = defaultdict(list)
    for at, record in enumerate(records):
        for family in dict.fromkeys(map(family_of, record)) if isinstance(record, dict) else ():
            having[family].append(at)
    return having


def name_of(file: LandedFile) -> str:
    return file.uri if file.bucket else file.key


@dataclass(frozen=True)
class _Get:
    """From S3, or from this machine where a file has no bucket. Content that is not plain text is put aside."""

    s3: Any
    limits: Limits
    metadata: Metadata
    more_than_text: dict[LandedFile, bytes] = field(default_factory=dict)

    def __call__(self, file: LandedFile, start: int = 0, stop: int | None = None) -> bytes | Unread:
        content = self._fetched(file, start, stop)
        if isinstance(content, Unread) or not is_packed(content):
            return content
        self.more_than_text[file] = content
        return Unread("unavailable", "gave-up", "it is read in a separate process")

    def _fetched(self, file: LandedFile, start: int, stop: int | None) -> bytes | Unread:
        if file.bucket:
            return GetObject(self.s3 or client("s3"), self.limits.max_file_bytes, self.metadata)(file, start, stop)
        try:
            with Path(file.etag).open("rb") as sample:
                if start:
                    sample.seek(start)
                data = sample.read(MOST_BYTES + 1 if stop is None else stop - start)
        except PermissionError as error:
            return Unread("denied", "access-denied", str(error))
        except OSError as error:
            return Unread("unavailable", "gave-up", str(error))
        if len(data) > MOST_BYTES:  # a pipe says no size
            raise InvalidConfiguration.one(file.key, f"is longer than {MOST_BYTES:,} bytes", FEWER)
        return data


def _files_at(place: str, s3: Any) -> tuple[list[LandedFile], int]:
    """The files, and how many of those that were listed are left out."""
    if place.startswith(("s3://", "s3a://")):
        listed = list(islice(_objects_at(place, s3 or client("s3")), MOST_LISTED))
    else:
        listed = list(_files_below(Path(place.removeprefix("file:"))))
    if not listed:
        is_there = place.startswith(("s3://", "s3a://")) or Path(place.removeprefix("file:")).exists()
        problem = "holds no file" if is_there else "does not exist"
        raise InvalidConfiguration.one(place, problem, "name files, folders or s3:// addresses that hold samples")
    chosen = _sampled(listed) if len(listed) > MOST_FILES else listed
    return chosen, len(listed) - len(chosen)


def _files_below(root: Path) -> Iterator[LandedFile]:
    below = (path for path in root.rglob("*") if path.is_file()) if root.is_dir() else [root]
    for path in sorted(islice(below, MOST_LISTED)):
        key = path.relative_to(root).as_posix() if root.is_dir() else path.as_posix()
        # A file of this machine has no etag, so that says where it is.
        if path.exists():
            yield LandedFile("", key, path.stat().st_size, str(path))


def _sampled(files: Sequence[LandedFile]) -> list[LandedFile]:
    """The most files that are allowed, from all parts of the listing, so that each day and each kind has its share. It is the
    same sample each time."""
    chosen = [files[n * len(files) // MOST_FILES] for n in range(MOST_FILES)]
    while len(chosen) > 1 and sum(file.size or 0 for file in chosen) > MOST_BYTES:
        chosen = chosen[::2]
    return chosen


def _objects_at(place: str, s3: Any) -> Iterator[LandedFile]:
    """The object of this name, or all below where it ends in a slash."""
    bucket, _ = bucket_and_key(place)
    key = place.partition("://")[2].partition("/")[2]
    pages = s3.get_paginator("list_objects_v2").paginate(Bucket=bucket, Prefix=key)
    for page in pages:
        for one in page.get("Contents", []):
            if one["Key"] == key or key.endswith("/") or not key:
                yield LandedFile(bucket, one["Key"], one["Size"], one["ETag"].strip('"'))
