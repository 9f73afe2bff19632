"""Lists the landing bucket.

In: a bucket, prefixes, a span of time, and a function over a page of files. Out: its results, for every version of every object
that was written in the span. S3 lists by key alone, so everything under a prefix is listed. If versions were written in the
same second, the order of the listing decides which is later. Prefixes are listed in parallel, and so are the folders directly
under them. Memory holds a few pages of files at most.
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
) -> Iterator[Said]:
    """`say` is called by several threads at once."""

    def below(prefix: str, **more: str) -> tuple[list[Said], list[str]]:
        results, folders, before = [], list[str](), _Before()
        for page in _pages(s3, bucket, prefix, **more):
            results.append(say(list(_files(bucket, page, since, until, before))))
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


def _key_and_second(one: dict[str, Any]) -> tuple[str, datetime]:
    return one["Key"], one["LastModified"]


def _files(
    bucket: str, page: dict[str, Any], since: datetime, until: datetime, before: _Before
) -> Iterator[LandedFile]:
    versions = page.get("Versions", ())
    for one, after in zip_longest(versions, versions[1:]):
        newer_ones = before.count_for(one)
        alone = not newer_ones and (_key_and_second(after) != _key_and_second(one) if after else not _goes_on(page))
        if since <= one["LastModified"] < until:
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
