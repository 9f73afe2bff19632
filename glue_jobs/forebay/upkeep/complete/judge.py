"""Decides whether a period is complete, and what else it waits for. Pure.

In: the declaration, the files that the landing bucket lists, the ledger's rows of the period, and the markers' contents.
Out: a `Judgement`. Age alone never makes a period complete: each file that is listed has a row, and each row is final. A file
that is unreadable, missing or withheld counts as done only if an operator skipped or forgot it.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from typing import Any

from forebay.counted import agreed, counted
from forebay.declaration.complete import Complete, Period
from forebay.landed_file import LandedFile
from forebay.ledger.entry import IGNORED, SKIPPED_BY_OPERATOR, UNREADABLE, is_final

COUNTED = ("loaded", "empty")
GONE = ("superseded", "deleted")
BATCH_ENDS = timedelta(minutes=2)
"""When to look again at a period that an unfinished batch delays. If it only has known files of the period, nobody looks when
it ends."""
_SUCH_AS = ", such as "


@dataclass(frozen=True, kw_only=True)
class Known:
    """`listed`: data files in the bucket; `markers`: by folder, the content of its marker or manifest, or the code when S3 does
    not give it; `rows`: of the ledger, by file id, `of_period` those of the period among them; `skipped`: ids that an operator
    wants left out; `on_their_way`: keys of batches that have not ended."""

    services: tuple[str, ...]
    listed: Sequence[LandedFile] = ()
    markers: Mapping[str, bytes | str] = field(default_factory=dict)
    rows: Mapping[str, Mapping[str, Any]] | None = None
    of_period: Collection[str] = ()
    skipped: Collection[str] = ()
    on_their_way: Collection[str] = ()


@dataclass(frozen=True, kw_only=True)
class Judgement:
    """Complete unless it says `why` not. `not_before`: when it may change although no file of the period arrives. Counts are
    None without the ledger."""

    why: str = ""
    files: int | None = None
    rows: int | None = None
    refused: int | None = None
    first_arrival: datetime | None = None
    last_arrival: datetime | None = None
    not_before: datetime | None = None


def folder_uri(rule: Complete, file: LandedFile) -> str:
    return f"s3://{file.bucket}/{rule.folder_of(file)}"


def judge(rule: Complete, period: Period, known: Known, now: datetime) -> Judgement:
    mine = [row for one in known.of_period if (row := (known.rows or {})[one])["outcome"] != IGNORED]
    counted = [row for row in mine if row["outcome"] in COUNTED]
    came = [at for row in mine if (at := row["event_time"])] + [at for one in known.listed if (at := one.event_time)]
    found = Judgement(first_arrival=min(came, default=None), last_arrival=max(came, default=None))
    if known.rows is not None:
        refused = sum(row["quarantined"] + row["parked"] for row in counted)
        written = sum(row["written"] for row in counted)
        found = replace(found, files=len(counted), rows=written, refused=refused)
    quiet = max([period.end, *came]) + timedelta(minutes=rule.quiet_minutes)
    if rule.quiet_minutes and now < quiet:
        return replace(found, why=f"waits until {quiet:%Y-%m-%dT%H:%M:%SZ}, if no more files arrive", not_before=quiet)
    why = next(_missing(rule, known, mine, counted), "")
    return replace(found, why=why, not_before=now + BATCH_ENDS if known.on_their_way else None)


def _missing(
    rule: Complete, known: Known, mine: Sequence[Mapping[str, Any]], counted: Sequence[Mapping[str, Any]]
) -> Iterator[str]:
    if rule.marker or rule.manifest:
        yield from _unsaid(rule, known, mine)
    if known.rows is None:
        return
    if rule.quiet_minutes and not mine:
        yield "waits for its first file"
    unread = [one.uri for one in known.listed if not _ids(one, known) & (known.rows.keys() | set(known.skipped))]
    if unread:
        yield _such_as(unread, "not loaded yet")
    if known.on_their_way:
        yield _such_as([*known.on_their_way], "in an unfinished batch")
    open_rows = [row for row in mine if not _is_done(row, known)]
    for outcome in sorted({row["outcome"] for row in open_rows}):
        uris = [f"s3://{row['bucket']}/{row['key']}" for row in open_rows if row["outcome"] == outcome]
        yield _such_as(uris, f"{outcome} in the ledger")
    if rule.manifest:
        yield from _uncounted(rule, known, counted)


def _ids(file: LandedFile, known: Known) -> set[str]:
    """By which the services whose files count know it."""
    return {replace(file, service=service).file_id for service in ("", *known.services)}


def _is_done(row: Mapping[str, Any], known: Known) -> bool:
    if row["reason"] == SKIPPED_BY_OPERATOR or row["file_id"] in known.skipped:
        return True
    return is_final(row["outcome"], row["reason"]) and row["outcome"] != UNREADABLE


def _such_as(uris: Sequence[str], what: str) -> str:
    return f"waits for {counted(len(uris), 'file')} that {agreed(len(uris), 'is')} {what}{_SUCH_AS}{min(uris)}"


def waits_for_files(why: str) -> bool:
    """Whether this reason names a file by its address: not one of an unfinished batch, which has only keys."""
    return f"{_SUCH_AS}s3://" in why


def _unsaid(rule: Complete, known: Known, mine: Sequence[Mapping[str, Any]]) -> Iterator[str]:
    """Each folder that has files needs its own, also if `after_load` moved them."""
    had = [LandedFile(row["bucket"], row["key"]) for row in mine if row["outcome"] not in GONE]
    lacking = sorted({folder_uri(rule, one) for one in [*known.listed, *had]} - known.markers.keys())
    name = rule.marker or rule.manifest
    if lacking:
        yield f"waits for {lacking[0]}{name}"
    elif not known.markers:
        yield f"waits for {name}"
    for folder, content in sorted(known.markers.items()):
        if isinstance(content, str):
            yield f"waits for {folder}{name}, which S3 does not give: {content}"
        elif rule.manifest and _counts_in(content) is None:
            yield f'{folder}{name} must say {{"files": 12}}, {{"records": 3400}}, or both'


def _uncounted(rule: Complete, known: Known, counted: Sequence[Mapping[str, Any]]) -> Iterator[str]:
    for folder, content in sorted(known.markers.items()):
        objects = {(one.bucket, one.key) for one in known.listed if folder_uri(rule, one) == folder}
        inside = [row for row in counted if folder_uri(rule, LandedFile(row["bucket"], row["key"])) == folder]
        there = {"files": len(objects), "records": sum(row["records"] for row in inside)}
        for what, wanted in (_counts_in(content) or {}).items():
            if there[what] != wanted:
                yield f"{folder}{rule.manifest} names {wanted:,} {what}, and there are {there[what]:,}"


def _counts_in(content: bytes | str) -> dict[str, int] | None:
    try:
        manifest = json.loads(content)
    except (ValueError, RecursionError):
        return None
    counts = (
        {name: manifest[name] for name in ("files", "records") if name in manifest}
        if isinstance(manifest, dict)
        else {}
    )
    whole = all(isinstance(count, int) and not isinstance(count, bool) for count in counts.values())
    return counts if counts and whole else None
