"""What lies in the landing bucket, by its own listing.

In: a bucket, prefixes, a span of time. Out: every version of every object that was written in it. S3 lists
by key alone, so all below a prefix is listed; the folders directly below it are listed at the same time.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from datetime import datetime, timedelta
from typing import Any

from forebay.landed_file import LandedFile

__all__ = ["landed_files", "prefixes_of"]

FOLDERS_AT_ONCE = 16


def prefixes_of(pattern: str, since: datetime, until: datetime) -> list[str]:
    """`in/%Y/%m/%d/` is one prefix for each day (in UTC); what names no day is itself."""
    days = (until.date() - since.date()).days
    return list(dict.fromkeys((since + timedelta(days=n)).strftime(pattern) for n in range(days + 1)))


def landed_files(
    s3: Any, bucket: str, prefixes: Sequence[str], *, since: datetime, until: datetime
) -> Iterator[LandedFile]:
    def below(prefix: str) -> list[LandedFile]:
        return [file for page in _pages(s3, bucket, prefix) for file in _files(bucket, page, since, until)]

    with ThreadPoolExecutor(FOLDERS_AT_ONCE, "landed") as threads:
        for prefix in prefixes:
            folders: list[str] = []
            for page in _pages(s3, bucket, prefix, Delimiter="/"):
                yield from _files(bucket, page, since, until)
                folders += [found["Prefix"] for found in page.get("CommonPrefixes", ())]
            for found in threads.map(below, folders):
                yield from found


def _pages(s3: Any, bucket: str, prefix: str, **more: str) -> Iterator[dict[str, Any]]:
    pages: Iterator[dict[str, Any]] = s3.get_paginator("list_object_versions").paginate(
        Bucket=bucket, Prefix=prefix, **more
    )
    return pages


def _files(bucket: str, page: dict[str, Any], since: datetime, until: datetime) -> Iterator[LandedFile]:
    for one in page.get("Versions", ()):
        if since <= one["LastModified"] < until:
            version = one.get("VersionId")
            file = LandedFile(
                bucket,
                one["Key"],
                one["Size"],
                one["ETag"].strip('"'),
                version if version != "null" else None,
                event_time=one["LastModified"],
            )
            yield file
