"""The files that are asked for, page by page, each as its present version: S3's own facts, so that a file which the ledger
knows is recognised. A request that cannot be is `InvalidConfiguration`, before anything is announced."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any

from botocore.exceptions import ClientError

from forebay.errors import InvalidConfiguration
from forebay.landed_file import LandedFile

AT_ONCE = 16
A_PAGE = 1000


@dataclass(frozen=True)
class Page:
    """`last` is the key up to which the bucket was listed, or how many of the given names were looked for; empty at the end."""

    files: list[LandedFile]
    missing: list[str] = field(default_factory=list)
    last: str = ""


def bucket_of(event: dict[str, Any], buckets: Sequence[str]) -> str:
    """The one that is named; nobody needs to name the only one."""
    named = event.get("bucket") or (buckets[0] if len(buckets) == 1 else "")
    if named not in buckets:
        raise InvalidConfiguration.one("event.bucket", "names no landing bucket", f"give one of {', '.join(buckets)}")
    return str(named)


def asked_for(event: dict[str, Any], bucket: str, within: str, s3: Any) -> Iterator[Page]:
    ways = [name for name in ("prefix", "keys", "manifest") if event.get(name)]
    if len(ways) != 1:
        raise InvalidConfiguration.one("event", "does not say which files", 'give one of "prefix", "keys", "manifest"')
    if ways == ["prefix"]:
        return _below(_within([str(event["prefix"])], within)[0], bucket, s3, event)
    keys = _listed(event["keys"]) if ways == ["keys"] else _lines(s3, str(event["manifest"]))
    return _named(_within(keys, within), bucket, s3, _names_done(event))


def _listed(keys: Any) -> list[str]:
    """The letters of a single name would each be looked for."""
    if not isinstance(keys, list) or not all(isinstance(key, str) for key in keys):
        raise InvalidConfiguration.one("event.keys", f"is not a list of keys: {keys!r}", 'such as ["in/a.json"]')
    return keys


def _within(keys: Sequence[str], prefix: str) -> Sequence[str]:
    """The ingest job may read what lands, and nothing else of the bucket."""
    for key in keys:
        if not key.startswith(prefix):
            raise InvalidConfiguration.one(f"key {key!r}", "is not a landed file", f"keys begin with {prefix}")
    return keys


def _below(prefix: str, bucket: str, s3: Any, event: dict[str, Any]) -> Iterator[Page]:
    since, until = (_moment(event, name) for name in ("since", "until"))
    more = {"KeyMarker": event["after"]} if event.get("after") else {}
    for page in s3.get_paginator("list_object_versions").paginate(Bucket=bucket, Prefix=prefix, **more):
        present = [one for one in page.get("Versions", ()) if one["IsLatest"] and not one["Key"].endswith("/")]
        chosen = [one for one in present if _between(since, one["LastModified"], until)]
        yield Page([_found(bucket, one["Key"], one, one["Size"]) for one in chosen], last=page.get("NextKeyMarker", ""))


def _between(since: datetime | None, written: datetime, until: datetime | None) -> bool:
    return (since is None or written >= since) and (until is None or written < until)


def _names_done(event: dict[str, Any]) -> int:
    after = str(event.get("after") or "0")
    if not after.isdecimal():
        hint = "give what the last call answered"
        raise InvalidConfiguration.one("event.after", f"is not a number of names: {after!r}", hint)
    return int(after)


def _named(keys: Sequence[str], bucket: str, s3: Any, done: int) -> Iterator[Page]:
    def look(key: str) -> LandedFile | str:
        try:
            head = s3.head_object(Bucket=bucket, Key=key)
        except ClientError as refusal:
            if refusal.response["Error"]["Code"] not in ("404", "NoSuchKey", "NotFound"):
                raise
            return key
        return _found(bucket, key, head, head["ContentLength"])

    with ThreadPoolExecutor(AT_ONCE) as threads:
        for at in range(done, len(keys), A_PAGE):
            looked = list(threads.map(look, keys[at : at + A_PAGE]))
            found = [one for one in looked if isinstance(one, LandedFile)]
            last = str(at + A_PAGE) if at + A_PAGE < len(keys) else ""
            yield Page(found, [one for one in looked if isinstance(one, str)], last)


def _found(bucket: str, key: str, head: dict[str, Any], size: int) -> LandedFile:
    version = head.get("VersionId")
    version = version if version != "null" else None
    return LandedFile(bucket, key, size, head["ETag"].strip('"'), version, event_time=head["LastModified"])


def _lines(s3: Any, place: str) -> list[str]:
    if not place.startswith("s3://"):
        raise InvalidConfiguration.one(
            "event.manifest", f"is not the address of a list: {place!r}", "such as s3://bucket/announce/today.txt"
        )
    bucket, _, key = place.removeprefix("s3://").partition("/")
    lines = s3.get_object(Bucket=bucket, Key=key)["Body"].iter_lines()  # a long list is not held twice
    return [line.decode() for line in lines if line.strip()]


def _moment(event: dict[str, Any], name: str) -> datetime | None:
    if not event.get(name):
        return None
    try:
        found = datetime.fromisoformat(event[name])
    except (TypeError, ValueError) as why:
        raise InvalidConfiguration.one(
            f"event.{name}", f"is not a time: {event[name]!r}", "such as 2026-05-01T00:00:00Z"
        ) from why
    return found if found.tzinfo else found.replace(tzinfo=UTC)
