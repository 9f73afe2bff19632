"""Files with awkward keys, and messages that are as full as S3 makes them."""

from __future__ import annotations

from collections.abc import Sequence

from forebay.landed_file import LandedFile
from forebay_local.fabricate import Wrapping, body, file_named

AWKWARD_KEYS = (
    "a plain space.json",
    "one+one=two.json",
    "100%.json",
    "already%20encoded%2Fonce.json",
    "game=chess/day=2024-05-01/part.json",
    "größe/日本語/🎲.json",
    "cafe\u0301-decomposed.json",
    "caf\u00e9-composed.json",
    "quote'\"back\\slash.json",
    "double//slash.json",
    "&?#;:@$,<>{}[]^`|~!*().json",
    " spaces at both ends ",
    "non\u00a0breaking\u2028line.json",
    "k" * 1019 + ".json",
)
"""Keys that S3 takes and that something on the way is likely to get wrong; the last is as long as a key can be."""

LONGEST_KEY_BYTES = 1024
SEPARATORS = 3
"""A comma between two events, and the brackets of an array that a single event does without."""


def awkward_files(folder: str = "") -> tuple[LandedFile, ...]:
    """One file for each awkward key, under `folder`; the long one stays exactly as long as a key can be."""
    return tuple(file_named(_below(folder, key)) for key in AWKWARD_KEYS)


def full_bodies(
    files: Sequence[LandedFile], shape: Wrapping = Wrapping.S3, *, limit_bytes: int = 64 * 1024
) -> list[str]:
    """The files in as few messages as the limit allows: 64 KB is the most that S3 sends. A single file is never cut."""
    wrapping = _size(body((), shape))
    groups: list[list[LandedFile]] = []
    room = 0
    for file in files:
        needed = _size(body([file], shape)) - wrapping + SEPARATORS
        if not groups or needed > room:
            groups.append([])
            room = limit_bytes - wrapping
        groups[-1].append(file)
        room -= needed
    return [body(group, shape) for group in groups]


def _below(folder: str, key: str) -> str:
    overlong = len(f"{folder}{key}".encode()) - LONGEST_KEY_BYTES
    return folder + key[max(overlong, 0) :]


def _size(text: str) -> int:
    return len(text.encode())
