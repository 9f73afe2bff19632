"""Lists the landing bucket.

In: a bucket, prefixes, a span of time, and a function over a page of files. Out: its results, for every version of every object
that was written in the span; on request without those that a deletion followed. S3 lists by key alone, so everything under a
prefix is listed. If versions were written in the same second, the order of the listing decides which is later. Prefixes are
listed in parallel, and so are the folders directly under them. Memory holds a few pages of files at most, and the versions of
one key in the span.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from datetime import datetime, timedelta
from functools import partial
from typing import Any, TypeVar

from forebay.landed_file import LandedFile
from forebay.notification.order import listed_at

AT_ONCE = 16
KINDS = ("Versions", "DeleteMarkers")
Page = dict[str, Any]
"""As S3 answers `ListObjectVersions`."""
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
        results, folders = [], list[str]()
        for page in of_whole_keys(in_span(_pages(s3, bucket, prefix, **more), since, until)):
            results.append(say(list(files_in(bucket, page, since, until, without_deleted=without_deleted))))
            folders += [found["Prefix"] for found in page.get("CommonPrefixes", ())]
        return results, folders

    with ThreadPoolExecutor(AT_ONCE, "landed") as threads:
        folders: list[str] = []
        for results, found in threads.map(partial(below, Delimiter="/"), prefixes):
            yield from results
            folders += found
        for results, _ in threads.map(below, folders):
            yield from results


def in_span(pages: Iterable[Page], since: datetime, until: datetime) -> Iterator[Page]:
    """Without versions of other times, and with only the newest delete marker of each key. A key may have a million."""
    for page in pages:
        versions = [one for one in page.get("Versions", ()) if since <= one["LastModified"] < until]
        markers = {one["Key"]: one for one in _newest_last(page.get("DeleteMarkers", ()))}
        yield page | {"Versions": versions, "DeleteMarkers": [*markers.values()]}


def of_whole_keys(pages: Iterable[Page]) -> Iterator[Page]:
    """The same entries, with all versions and delete markers of a key in one page. Those of the last key wait for the next."""
    held: Page = {}
    for page in pages:
        entries = {kind: [*held.get(kind, ()), *page.get(kind, ())] for kind in KINDS}
        last = last_key(entries) if page.get("IsTruncated") else None
        held = {kind: [one for one in some if one["Key"] == last] for kind, some in entries.items()}
        yield page | {kind: [one for one in some if one["Key"] != last] for kind, some in entries.items()}


def last_key(page: Page) -> str | None:
    """None of an empty page."""
    return max((one["Key"] for kind in KINDS for one in page[kind][-1:]), default=None)


def files_in(
    bucket: str, page: Page, since: datetime, until: datetime, *, without_deleted: bool = False
) -> Iterator[LandedFile]:
    """The versions of a page of whole keys."""
    markers = _newest_last(page["DeleteMarkers"]) if without_deleted else []
    deleted, together = {one["Key"]: one for one in markers}, Counter(map(_key_and_second, page["Versions"]))
    before = Counter[tuple[str, datetime]]()
    for one in page["Versions"]:
        moment, version, at = _key_and_second(one), one.get("VersionId"), one["LastModified"]
        if since <= at < until and not _is_deleted(one, deleted.get(one["Key"])):
            latest = one.get("IsLatest", False)
            yield LandedFile(
                bucket,
                one["Key"],
                one["Size"],
                one["ETag"].strip('"'),
                version if version != "null" else None,
                event_time=at if together[moment] == 1 else listed_at(at, before[moment], is_latest=latest),
            )
        before[moment] += 1


def _pages(s3: Any, bucket: str, prefix: str, **more: str) -> Iterator[Page]:
    pages: Iterator[Page] = s3.get_paginator("list_object_versions").paginate(Bucket=bucket, Prefix=prefix, **more)
    return pages


def _newest_last(entries: Iterable[Page]) -> list[Page]:
    return sorted(entries, key=lambda one: (one["LastModified"], one["IsLatest"]))


def _is_deleted(version: Page, marker: Page | None) -> bool:
    """By the newest marker of its key. Of a version and a marker of one second, the older one is not known unless the marker is
    the latest of all."""
    return marker is not None and (marker["IsLatest"] or version["LastModified"] < marker["LastModified"])


def _key_and_second(one: Page) -> tuple[str, datetime]:
    return one["Key"], one["LastModified"]
