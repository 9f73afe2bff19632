"""Lists the landing bucket.

In: a bucket, prefixes, a span of time, and a function over a page of files. Out: its results, for every version of every object
that was written in the span; on request without those that a deletion followed. S3 lists by key alone, so everything under a
prefix is listed. If versions were written in the same second, the order of the listing decides which is later. Prefixes are
listed in parallel, and so are the folders directly under them. Memory holds a few pages of files at most.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from datetime import datetime, timedelta
from functools import partial
from itertools import zip_longest
from typing import Any, TypeVar

from forebay.landed_file import LandedFile
from forebay.notification.order import listed_at

AT_ONCE = 16
Said = TypeVar("Said")


def prefixes_of(pattern: str, since: datetime, until: datetime) -> list[str]:
    """`in/%Y/%m/%d/` is one prefix for each day (in UTC); a pattern without a day is one prefix."""
    days = (until.date() - since.date()).days
    return list(dict.fromkeys((since + timedelta(days=n)).strftime(pattern) for n in range(days + 1)))


def landed_files(
    s3: Any,
    bucket: str,
    prefixes: Sequence[str],
    *,
    since: datetime,
    until: datetime,
    say: Callable[[list[LandedFile]], Said],
    without_deleted: bool = False,
) -> Iterator[Said]:
    """`say` is called by several threads at once."""

    def below(prefix: str, **more: str) -> tuple[list[Said], list[str]]:
        results, folders, before, deleted = [], list[str](), _Before(), _Deleted()
        for page in _pages(s3, bucket, prefix, **more):
            if without_deleted:
                deleted.see(page)
            results.append(say(list(_files(bucket, page, since, until, before, deleted))))
            folders += [found["Prefix"] for found in page.get("CommonPrefixes", ())]
        return results, folders

    with ThreadPoolExecutor(AT_ONCE, "landed") as threads:
        folders: list[str] = []
        for results, found in threads.map(partial(below, Delimiter="/"), prefixes):
            yield from results
            folders += found
        for results, _ in threads.map(below, folders):
            yield from results


def _pages(s3: Any, bucket: str, prefix: str, **more: str) -> Iterator[dict[str, Any]]:
    pages: Iterator[dict[str, Any]] = s3.get_paginator("list_object_versions").paginate(
        Bucket=bucket, Prefix=prefix, **more
    )
    return pages


class _Before:
    """For a version in a listing: how many of its key and second came before it. They are newer."""

    def __init__(self) -> None:
        self.key_and_second: tuple[str, datetime] | None = None
        self.count = 0

    def count_for(self, one: dict[str, Any]) -> int:
        same = self.key_and_second == _key_and_second(one)
        self.key_and_second, self.count = _key_and_second(one), self.count + 1 if same else 0
        return self.count


class _Deleted:
    """The newest delete marker of each key. A listing has it before the versions that it hides, perhaps a page before."""

    def __init__(self) -> None:
        self._before: dict[str, dict[str, Any]] = {}
        self._markers: dict[str, dict[str, Any]] = {}

    def see(self, page: dict[str, Any]) -> None:
        newest_last = sorted(page.get("DeleteMarkers", ()), key=lambda one: one["LastModified"])
        last_page, self._before = self._before, {one["Key"]: one for one in newest_last}
        self._markers = {**self._before, **last_page}

    def has(self, version: dict[str, Any]) -> bool:
        """Of a version and a marker of one second, the older one is not known unless the marker is the latest of all."""
        marker = self._markers.get(version["Key"])
        return marker is not None and (marker["IsLatest"] or version["LastModified"] < marker["LastModified"])


def _key_and_second(one: dict[str, Any]) -> tuple[str, datetime]:
    return one["Key"], one["LastModified"]


def _files(
    bucket: str, page: dict[str, Any], since: datetime, until: datetime, before: _Before, deleted: _Deleted
) -> Iterator[LandedFile]:
    versions = page.get("Versions", ())
    for one, after in zip_longest(versions, versions[1:]):
        newer_ones = before.count_for(one)
        alone = not newer_ones and (_key_and_second(after) != _key_and_second(one) if after else not _goes_on(page))
        if since <= one["LastModified"] < until and not deleted.has(one):
            version, at = one.get("VersionId"), one["LastModified"]
            file = LandedFile(
                bucket,
                one["Key"],
                one["Size"],
                one["ETag"].strip('"'),
                version if version != "null" else None,
                event_time=at if alone else listed_at(at, newer_ones, is_latest=one.get("IsLatest", False)),
            )
            yield file


def _goes_on(page: dict[str, Any]) -> bool:
    """Perhaps with more versions of the last key."""
    return bool(page.get("IsTruncated", False))
