"""Files that are no data, or of no feed: none of them vanishes, each ends in the ledger with the rule that says why."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import get_args

import pytest

from forebay.declaration.loading import parse_service
from forebay.declaration.service import Ignorable, Service
from forebay.landed_file import LandedFile
from forebay.ledger.claim import Key
from forebay.ledger.decision import decide_files
from forebay.ledger.ignored import NO_FEED, why_ignored
from forebay.ledger.ledger import Ledger
from forebay.ledger.versions import Earlier, Sorted
from forebay.notification import REASONS

TABLES = '[[tables]]\nname = "t"\n'
AT = datetime(2026, 11, 21, 10, tzinfo=UTC)
FEEDS = '[[feeds]]\nname = "trail"\nprefix = "AWSLogs/"\n[[feeds]]\nname = "app"\nprefix = "app/"\nbucket = "ours"\n'


def service_of(text: str = "") -> Service:
    return parse_service({"service.toml": f'name = "s"\n{text}\n{TABLES}'})


class Known(Ledger):
    """With rows that a test says."""

    def __init__(self, *earlier: Earlier) -> None:
        self.earlier = earlier

    def _versions_of(self, files: object) -> dict[Key, list[Earlier]]:
        found: dict[Key, list[Earlier]] = {}
        for one in self.earlier:
            found.setdefault((one.file.bucket, one.file.key), []).append(one)
        return found


def decided(service: Service, *files: LandedFile, earlier: tuple[Earlier, ...] = ()) -> Sorted:
    return decide_files(Known(*earlier).claim(files, service), {file.file_id: "" for file in files})


def row_of(file: LandedFile, outcome: str, reason: str | None = None) -> Earlier:
    return Earlier(file, {"outcome": outcome, "reason": reason, "tables": {}, "records": 0, "written": 0, "tries": 1})


def file(key: str, bucket: str = "landing", size: int = 10) -> LandedFile:
    return LandedFile(bucket, key, size, f"etag of {key}")


@pytest.mark.parametrize(
    ("key", "rule"),
    [
        ("in/.x.json", "hidden"),
        ("in/_started_7", "commit-marker"),
        ("in/_committed_7", "commit-marker"),
        ("in/_SUCCESS", "success-marker"),
        ("in/_temporary/0/part-0.json", "temporary"),
    ],
)
def test_a_file_that_is_no_data_ends_as_ignored_with_the_rule(key: str, rule: str) -> None:
    found = decided(service_of(), file(key), file("in/a.json"))
    assert [f.key for f in found.fresh] == ["in/a.json"]
    (entry,) = found.left_out
    assert (entry.file.key, entry.outcome, entry.reason, entry.detail) == (key, "ignored", rule, REASONS[rule])


def test_what_is_ignored_is_declared() -> None:
    service = service_of('ignored = ["commit-marker"]')
    found = decided(service, file("in/.x.json"), file("in/_started_7"))
    assert ([f.key for f in found.fresh], [e.file.key for e in found.left_out]) == (["in/.x.json"], ["in/_started_7"])


def test_a_service_can_declare_every_kind_that_is_told_by_its_name() -> None:
    assert set(get_args(Ignorable)) < set(REASONS)
    assert set(service_of().ignored) == set(get_args(Ignorable))


def test_a_file_of_no_feed_is_ignored_and_each_other_one_has_its_feed() -> None:
    service = service_of(FEEDS)
    files = [file("AWSLogs/a.json"), file("app/a.json", "ours"), file("app/a.json", "theirs"), file("other/a.json")]
    assert [why_ignored(service, one) for one in files] == ["", "", NO_FEED, NO_FEED]
    assert {entry.reason for entry in decided(service, *files).left_out} == {NO_FEED}


def test_a_file_that_is_announced_again_is_ignored_once() -> None:
    hidden = file("in/.x.json")
    found = decided(service_of(), hidden, hidden, earlier=(row_of(hidden, "ignored", "hidden"),))
    assert (found.known, found.left_out, found.retried) == ((hidden, hidden), (), ())


def test_a_file_that_is_no_longer_ignored_is_loaded_when_it_is_announced_again() -> None:
    hidden = file("in/.x.json")
    found = decided(service_of("ignored = []"), hidden, earlier=(row_of(hidden, "ignored", "hidden"),))
    assert (found.fresh, found.retried) == ((hidden,), (hidden,))


@pytest.mark.parametrize("outcome", ["loaded", "replay"])
def test_what_was_loaded_before_it_would_be_ignored_stays_as_it_is(outcome: str) -> None:
    hidden = file("in/.x.json")
    found = decided(service_of(), hidden, earlier=(row_of(hidden, outcome),))
    assert (found.known, found.left_out, found.superseded) == ((hidden,), (), ())


def test_a_file_that_was_denied_and_is_ignored_now_ends_so() -> None:
    hidden = file("in/.x.json")
    found = decided(service_of(), hidden, earlier=(row_of(hidden, "denied"),))
    assert ([entry.outcome for entry in found.left_out], found.retried) == (["ignored"], (hidden,))


@pytest.mark.parametrize(
    ("key", "outcome", "reason"),
    [("in/.x.json", "ignored", "hidden"), ("in/x.json", "skipped", "by-operator"), ("in/x.json", "replay", None)],
)
def test_a_file_that_stays_left_out_has_the_time_at_which_its_bytes_were_put_last(
    key: str, outcome: str, reason: str | None
) -> None:
    """It may be read later, when a notice from before comes once more: other bytes came in between."""
    first = replace(file(key), sequencer=f"{2:016X}", event_time=AT)
    again = replace(first, sequencer=f"{6:016X}", event_time=AT + timedelta(seconds=4))
    claim = Known(row_of(first, outcome, reason)).claim([again], service_of(), [again.file_id])
    found = decide_files(claim, {})
    assert found.known == (again,)
    assert [seen.row["sequencer"] for seen in found.put_again] == [again.sequencer]


@pytest.mark.parametrize(
    ("key", "outcome", "reason", "is_put_again"),
    [("in/x.json", "loaded", None, True), ("in/.x.json", "ignored", "hidden", False)],
)
def test_a_row_keeps_its_time_if_its_file_is_loaded_or_if_only_its_notice_came_again(
    key: str, outcome: str, reason: str | None, is_put_again: bool
) -> None:
    first = replace(file(key), sequencer=f"{2:016X}", event_time=AT)
    again = replace(first, sequencer=f"{6:016X}", event_time=AT + timedelta(seconds=4)) if is_put_again else first
    found = decide_files(Known(row_of(first, outcome, reason)).claim([again], service_of()), {})
    assert (found.known, found.put_again) == ((again,), ())
