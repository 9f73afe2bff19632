"""The content of a file, or of each member of a zip archive, one at a time.

In: bytes from S3. Out: `Content`; or `NotTaken`: corrupt-archive, expansion-bomb, too-many-members, encrypted. A zip archive
with one broken member is refused whole, as any archive is. The files that macOS adds (`__MACOSX/`, `.DS_Store`) are left
out.
"""

from __future__ import annotations

import io
import lzma
import struct
import zipfile
import zlib
from collections.abc import Iterator
from dataclasses import dataclass, replace

from forebay.content.limits import Limits
from forebay.content.outcome import NotTaken, Unread, kept_text
from forebay.content.unpack import CHUNK_BYTES, expand, most_expanded_bytes

HEAD_CHARACTERS = 1024
LONGEST_NAME = 1024
"""The longest name, as for S3's keys. Each record carries it."""

ENTRY = b"PK\x01\x02"
"""Begins an entry in the directory of a zip archive."""

BROKEN = (zipfile.BadZipFile, zlib.error, lzma.LZMAError, EOFError, OSError, RuntimeError, ValueError, struct.error)


@dataclass(frozen=True, slots=True)
class Content:
    """Bytes, unpacked. `offset` is not 0 for lines of a larger file, which are `cut` from it. `key` is a member's own name."""

    key: str
    data: bytes
    was_packed: bool = False
    cut: bool = False
    offset: int = 0
    is_member: bool = False

    @property
    def head(self) -> str:
        return kept_text(self.data[:HEAD_CHARACTERS], HEAD_CHARACTERS)


def contents_of(key: str, raw: bytes, limits: Limits) -> Iterator[Content]:
    content = _expanded(raw, limits)
    if is_zip(content):
        yield from _members(content, limits)
    else:
        yield Content(key, content, was_packed=content is not raw)


def is_zip(data: bytes) -> bool:
    return data.startswith((b"PK\x03\x04", b"PK\x05\x06"))


def _expanded(data: bytes, limits: Limits) -> bytes:
    content = expand(data, limits)
    if isinstance(content, Unread):
        raise NotTaken(content.reason, content.detail)
    return content


def _members(data: bytes, limits: Limits) -> Iterator[Content]:
    """The limits apply to all members together, not to each of them."""
    most = most_expanded_bytes(len(data), limits)
    _refuse_too_many(data, limits)
    try:
        archive = zipfile.ZipFile(io.BytesIO(data))
        for member in _of_interest(archive):
            packed = _read(archive, member, most)
            content = _expanded(packed, replace(limits, max_expanded_bytes=max(1, most)))
            most -= len(content)
            yield Content(member.filename, content, was_packed=True, is_member=True)
    except BROKEN as error:
        raise NotTaken("corrupt-archive", f"a zip archive that cannot be read: {error}") from error


def _refuse_too_many(data: bytes, limits: Limits) -> None:
    """Counts the entries of the archive's directory before any of them is read: a hundred bytes each soon add up to a
    million."""
    count = data.count(ENTRY)
    if count > limits.max_members:
        raise NotTaken("too-many-members", f"a zip archive of {count} members, and {limits.max_members} is the limit")


def _of_interest(archive: zipfile.ZipFile) -> Iterator[zipfile.ZipInfo]:
    before = min((member.header_offset for member in archive.infolist()), default=0)
    if before:  # as of two archives, one behind the other: only the last one's members are listed
        raise NotTaken("corrupt-archive", f"a zip archive has {before} bytes before its first member")
    for member in archive.infolist():
        if member.filename == "[Content_Types].xml":
            raise NotTaken("wrong-format", "it is an Office document, such as an Excel workbook, which is not read")
        if member.flag_bits & 0x1:
            raise NotTaken("encrypted", f"the member {member.filename} of the zip archive is encrypted")
        if len(member.filename.encode("utf-8", "surrogatepass")) > LONGEST_NAME:
            raise NotTaken("corrupt-archive", f"a member's name is longer than {LONGEST_NAME} bytes")
        name = member.filename.rpartition("/")[2]
        is_folder = member.is_dir() and not member.file_size
        if not (is_folder or member.filename.startswith("__MACOSX/") or name == ".DS_Store"):
            yield member


def _read(archive: zipfile.ZipFile, member: zipfile.ZipInfo, most: int) -> bytes:
    """Reads in bounded pieces, whatever size the archive states for its member."""
    parts: list[bytes] = []
    size = 0
    with archive.open(member) as stream:
        while chunk := stream.read(CHUNK_BYTES):
            parts.append(chunk)
            size += len(chunk)
            if size > most:
                raise NotTaken("expansion-bomb", f"the members of the zip archive expand to more than {most} bytes")
    return b"".join(parts)
