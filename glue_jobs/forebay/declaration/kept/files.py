"""The files that declare a service, in a folder or under an s3:// prefix.

In: a place. Out: the files' texts by name, or a fingerprint of them. `service.toml` decides the service; each file of
`tables/` and `rollups/` declares one of those.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterable, Iterator, Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from forebay.address import bucket_and_key, is_s3, local_folder
from forebay.aws.client import client
from forebay.errors import InvalidConfiguration, Problem

_NAME = re.compile(r"service\.toml|(tables|rollups)/[^/]+\.toml")

_LIKE_ONE = re.compile(
    r"service\.(ya?ml|json|toml)|(table|rollup)s?(/[^/]+\.(ya?ml|json|toml)|/.+/[^/]+\.toml|\.toml)", re.IGNORECASE
)
"""Names that look as if they declared something. Only those that fit `_NAME` do."""


def is_declaration(name: str) -> bool:
    """Whether a file of this name, counted from the place, is one."""
    return _NAME.fullmatch(name) is not None


def _files_in(folder: Path) -> tuple[dict[str, Path], list[Problem]]:
    """The files, by name, and those that look like a declaration, but are none."""
    found = {file.relative_to(folder).as_posix(): file for file in (*folder.glob("*"), *folder.glob("*/*"))}
    read = {name: file for name, file in sorted(found.items()) if is_declaration(name) and file.is_file()}
    deeper = [name for place in ("tables", "rollups") for name in _below(folder, place)]
    like_one = {name for name in (*found, *deeper) if _LIKE_ONE.fullmatch(name)}
    hint = "declarations are service.toml, tables/NAME.toml and rollups/NAME.toml"
    return read, [Problem(name, "is not read", hint) for name in sorted(like_one - read.keys())]


def _below(folder: Path, place: str) -> list[str]:
    return [file.relative_to(folder).as_posix() for file in (folder / place).glob("*/**/*.toml")]


def texts_at(place: str) -> dict[str, str]:
    """The texts, by name, with `service.toml` among them. A place may be one file."""
    texts, problems = readable_at(place)
    if problems:
        raise InvalidConfiguration(problems)
    return texts


def readable_at(place: str, *, s3: Any = None) -> tuple[dict[str, str], list[Problem]]:
    """The texts that can be read, by name, and the problems of other files there."""
    texts, problems = _from_s3(place, s3 or client("s3")) if is_s3(place) else _from_folder(local_folder(place))
    if "service.toml" not in texts and not problems:
        raise InvalidConfiguration.one(place, "has no service.toml", "`forebay tables init` writes one to start from")
    return texts, problems


def text_of(name: str, content: bytes) -> str:
    """The text, without the byte order mark that some editors write."""
    try:
        return content.decode("utf-8-sig")
    except UnicodeDecodeError:
        raise InvalidConfiguration.one(name, "is not UTF-8", "save it as UTF-8") from None


def written_at(file: str) -> datetime:
    """When this one file was written, by a request that needs no permission to list."""
    if is_s3(file):
        bucket, key = bucket_and_key(file)
        found: datetime = client("s3").head_object(Bucket=bucket, Key=key)["LastModified"]
        return found
    return datetime.fromtimestamp(local_folder(file).stat().st_mtime, UTC)


def fingerprint(place: str, *, s3: Any = None) -> str:
    """A fingerprint that changes when a file is changed, added or removed. It reads no file."""
    if is_s3(place):
        seen = sorted((name, found["ETag"]) for name, found in _listed(place, s3 or client("s3")))
    else:
        root = local_folder(place)
        files, problems = _files_in(root) if root.is_dir() else ({root.name: root}, [])
        if problems:
            raise InvalidConfiguration(problems)
        stats = [(file.as_posix(), file.stat()) for file in files.values()]
        seen = sorted((name, f"{stat.st_mtime_ns} {stat.st_size}") for name, stat in stats)
    return hashlib.sha256(repr(seen).encode()).hexdigest()


def _from_folder(place: Path) -> tuple[dict[str, str], list[Problem]]:
    if not place.exists():
        hint = "name a folder with service.toml, or the file itself; `forebay tables init` writes one"
        raise InvalidConfiguration.one(str(place), "does not exist", hint)
    if place.is_file() and place.suffix != ".toml":
        raise InvalidConfiguration.one(str(place), "is neither a folder nor a .toml file")
    around = place.parent if place.is_file() else place
    if around.name in ("tables", "rollups") and (around.parent / "service.toml").exists():
        raise InvalidConfiguration.one(str(place), "is a part of a service", f"name the folder {around.parent}")
    files, problems = ({"service.toml": place}, []) if place.is_file() else _files_in(place)
    texts, unreadable = _texts_of((name, file.read_bytes()) for name, file in files.items())
    return texts, [*problems, *unreadable]


def _from_s3(place: str, s3: Any) -> tuple[dict[str, str], list[Problem]]:
    bucket, _ = bucket_and_key(place)
    return _texts_of(
        (name, s3.get_object(Bucket=bucket, Key=found["Key"])["Body"].read()) for name, found in _listed(place, s3)
    )


def _texts_of(contents: Iterable[tuple[str, bytes]]) -> tuple[dict[str, str], list[Problem]]:
    texts: dict[str, str] = {}
    problems: list[Problem] = []
    for name, content in contents:
        try:
            texts[name] = text_of(name, content)
        except InvalidConfiguration as unreadable:
            problems += unreadable.problems
    return texts, problems


def _listed(place: str, s3: Any) -> Iterator[tuple[str, Mapping[str, Any]]]:
    """The declarations' objects, by their names under the place; the one object where the place names it."""
    bucket, prefix = bucket_and_key(place)
    if prefix.endswith(".toml"):
        # By its name alone: reading one object needs no permission to list the bucket.
        yield "service.toml", {"Key": prefix, "ETag": s3.head_object(Bucket=bucket, Key=prefix)["ETag"]}
        return
    prefix = f"{prefix}/" if prefix else ""
    for page in s3.get_paginator("list_objects_v2").paginate(Bucket=bucket, Prefix=prefix):
        for found in page.get("Contents", []):
            if is_declaration(name := found["Key"].removeprefix(prefix)):
                yield name, found
