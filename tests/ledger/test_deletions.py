"""Deletions of keys: which versions they take out, in whatever order notices arrive."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest

from forebay.declaration.service import Overwritten
from forebay.landed_file import DELETED, LandedFile
from forebay.ledger.claim import Claim
from forebay.ledger.decision import decide_files
from forebay.ledger.deletions import as_written_last, put_again
from forebay.ledger.versions import Earlier, Sorted
from forebay.notification.order import listed_at
from tests.ledger.test_claim import AT, loaded, version

KEY = ("landing", "in/a.json")
LISTED = listed_at(AT + timedelta(seconds=1), 0, is_latest=True)
NOTHING = {"written": 0, "quarantined": 0, "parked": 0, "tables": {}, "dropped": 10}
RULES: tuple[Overwritten, ...] = ("append", "replace")


def deletion(n: int, version_id: str | None = None) -> LandedFile:
    at = AT + timedelta(seconds=n)
    return LandedFile(*KEY, None, f"{DELETED}{n:016X}", version_id, f"{n:016X}", at)


def plain(n: int, etag: str = "etag1") -> LandedFile:
    """A put into a bucket without versions."""
    return replace(version(n), version_id=None, etag=etag)


def done(one: LandedFile) -> Earlier:
    return loaded(one, outcome="deleted", records=0, written=0, quarantined=0, parked=0, tables={})


def superseded(file: LandedFile, **more: Any) -> Earlier:
    return loaded(file, outcome="superseded", **{**NOTHING, **more})


def decided(files: list[LandedFile], earlier: list[Earlier], rule: Overwritten = "append") -> Sorted:
    files = as_written_last(files, {KEY: earlier})
    return decide_files(
        Claim(files, put_again(files, {KEY: earlier}), lambda key: rule), {file.file_id: "" for file in files}
    )


def leaving(found: Sorted) -> list[tuple[LandedFile, LandedFile]]:
    return [(one.earlier.file, one.by) for one in found.superseded]


@pytest.mark.parametrize("rule", RULES)
def test_a_deletion_takes_every_earlier_version_out_and_is_known_afterwards(rule: Overwritten) -> None:
    earlier = [loaded(version(1)), loaded(version(2))]
    found = decided([deletion(3)], earlier, rule)
    assert found.fresh == (deletion(3),)
    assert leaving(found) == [(version(1), deletion(3)), (version(2), deletion(3))]
    again = decided([deletion(3)], [*(superseded(one.file) for one in earlier), done(deletion(3))], rule)
    assert (again.fresh, again.known, again.superseded) == ((), (deletion(3),), ())


@pytest.mark.parametrize("rule", RULES)
def test_a_deletion_that_arrives_late_leaves_newer_versions(rule: Overwritten) -> None:
    found = decided([deletion(2)], [loaded(version(1)), loaded(version(3))], rule)
    assert leaving(found) == [(version(1), deletion(2))]


@pytest.mark.parametrize("rule", RULES)
@pytest.mark.parametrize("in_one_batch", [False, True])
@pytest.mark.parametrize("order", [1, -1])
def test_a_version_older_than_a_deletion_is_not_read(rule: Overwritten, in_one_batch: bool, order: int) -> None:
    files = [version(1), deletion(2)][::order] if in_one_batch else [version(1)]
    for readable in ({}, {file.file_id: "" for file in files}):
        earlier = [] if in_one_batch else [done(deletion(2))]
        found = decide_files(Claim(files, {KEY: earlier}, lambda key: rule), readable)
        assert version(1) not in found.fresh
        assert [(one.file, one.outcome, one.reason) for one in found.left_out] == [
            (version(1), "superseded", "announced-late")
        ]


@pytest.mark.parametrize("rule", RULES)
@pytest.mark.parametrize("make", [version, plain])
def test_a_key_that_comes_back_after_its_deletion_is_loaded(rule: Overwritten, make: Any) -> None:
    other = replace(make(3), etag="etag3")
    same = replace(make(3), etag="etag1")
    for file in (other, same):
        found = decided([file], [superseded(make(1)), done(deletion(2))], rule)
        assert (found.fresh, found.superseded) == ((file,), ())
        in_one = decided([deletion(2), file], [loaded(make(1))], rule)
        if file.file_id != make(1).file_id:
            assert file in in_one.fresh
            assert leaving(in_one) == [(make(1), deletion(2))]


@pytest.mark.parametrize("rule", RULES)
def test_a_redelivered_notice_of_a_deleted_file_loads_nothing(rule: Overwritten) -> None:
    found = decided([plain(1)], [superseded(plain(1)), done(deletion(2))], rule)
    assert (found.fresh, found.known) == ((), (plain(1),))
    twice_deleted = [superseded(plain(1)), done(deletion(2)), done(deletion(4))]
    assert decided([plain(3)], twice_deleted, rule).fresh == ()


@pytest.mark.parametrize("rule", RULES)
def test_the_same_bytes_put_again_before_a_late_deletion_stay(rule: Overwritten) -> None:
    """Without versions it is the same file, and only its row's time says that the deletion is older."""
    found = decided([plain(3)], [loaded(plain(1))], rule)
    assert (found.fresh, found.known) == ((), (plain(3),))
    (again,) = found.put_again
    assert (again.row["sequencer"], again.row["outcome"]) == (f"{3:016X}", "loaded")
    assert decided([deletion(2)], [again], rule).superseded == ()
    assert decided([deletion(2), plain(3)], [loaded(plain(1))], rule).superseded == ()
    gone = decided([plain(3), deletion(4)], [loaded(plain(1))], rule)
    assert ([one.by for one in gone.superseded], gone.put_again) == ([deletion(4)], ())


@pytest.mark.parametrize("rule", RULES)
@pytest.mark.parametrize("outcome", ["missing", "denied", "unavailable"])
def test_a_version_that_nobody_could_read_ends_with_the_deletion(rule: Overwritten, outcome: str) -> None:
    """Otherwise an hour that has it would never be complete."""
    unread = loaded(plain(1), outcome=outcome, records=0, written=0, tables={}, quarantined=0, parked=0, dropped=0)
    (left,) = decided([deletion(2)], [unread], rule).superseded
    assert (left.row(())["outcome"], left.row(())["dropped"]) == ("superseded", 0)
    beside = decided([plain(1), deletion(2)], [unread], rule)
    assert ([entry.outcome for entry in beside.left_out], beside.superseded) == (["superseded"], ())
    waits = loaded(deletion(2), outcome="unavailable", records=0, written=0, tables={})
    assert decided([deletion(3)], [waits], rule).superseded == ()


@pytest.mark.parametrize("rule", RULES)
def test_a_file_that_is_to_be_replayed_stays_where_its_bytes_were_put_again_after_the_deletion(
    rule: Overwritten,
) -> None:
    marked = loaded(plain(1), outcome="replay")
    found = decided([plain(3), deletion(2), plain(1)], [marked], rule)
    assert ([one.is_replay for one in found.superseded], found.left_out) == ([True], ())
    assert plain(3) in found.fresh
    assert decided([deletion(2), plain(1)], [marked], rule).superseded[0].by == deletion(2)


@pytest.mark.parametrize(
    "again",
    [replace(version(1), event_time=AT + timedelta(days=1)), replace(plain(1), sequencer=None, event_time=LISTED)],
    ids=["a version is written once", "a listing shows the same put"],
)
def test_a_known_file_that_comes_again_is_not_always_put_again(again: LandedFile) -> None:
    known = version(1) if again.version_id else plain(1)
    announced = replace(known, event_time=LISTED.replace(microsecond=123_000))
    found = decided([again], [loaded(announced)])
    assert (found.known != (), found.put_again) == (True, ())


@pytest.mark.parametrize("rule", RULES)
@pytest.mark.parametrize("outcome", ["denied", "missing", "loaded"])
def test_a_notice_from_before_the_deletion_that_comes_again_is_of_the_bytes_put_after_it(
    rule: Overwritten, outcome: str
) -> None:
    """The bytes were put at 1, deleted at 2 and put again at 3, which S3 did not give at first."""
    found = decided([plain(1), deletion(2)], [loaded(plain(3), outcome=outcome)], rule)
    assert (plain(3) in found.fresh) is (outcome != "loaded")
    assert (found.left_out, found.superseded) == ((), ())
    in_one_batch = decided([plain(3), plain(1), deletion(2)], [], rule)
    assert (in_one_batch.fresh[0], in_one_batch.left_out) == (plain(3), ())


@pytest.mark.parametrize("rule", RULES)
def test_rows_stay_while_a_duplicate_of_their_version_stands(rule: Overwritten) -> None:
    twin = replace(version(2), etag="etag1")
    duplicate = loaded(
        twin, outcome="duplicate", reason="same-key-same-bytes", **{**NOTHING, "records": 0, "dropped": 0}
    )
    earlier = [loaded(version(1)), duplicate]
    first = deletion(3, "v1")
    assert decided([first], earlier, rule).superseded == ()
    assert leaving(decided([deletion(4, "v2")], [*earlier, done(first)], rule)) == [(version(1), deletion(4, "v2"))]
    assert leaving(decided([deletion(5)], earlier, rule)) == [(version(1), deletion(5))]


@pytest.mark.parametrize("rule", RULES)
def test_a_duplicate_in_the_batch_of_the_deletion_is_loaded_instead(rule: Overwritten) -> None:
    twin = replace(version(3), etag="etag1")
    found = decided([twin, deletion(2)], [loaded(version(1))], rule)
    assert (twin in found.fresh, leaving(found)) == (True, [(version(1), deletion(2))])


@pytest.mark.parametrize("rule", RULES)
def test_a_duplicate_that_was_deleted_is_loaded_when_it_comes_back(rule: Overwritten) -> None:
    twin = plain(2, "etag2")
    duplicate = loaded(twin, outcome="duplicate", reason="same-key-same-bytes", content_hash="x")
    earlier = [superseded(plain(1), content_hash="x"), duplicate, done(deletion(3))]
    assert decided([plain(4, "etag2")], earlier, rule).fresh == (plain(4, "etag2"),)


def test_the_deletion_of_one_version_takes_out_no_other_one() -> None:
    earlier = [loaded(version(1)), loaded(version(2)), loaded(version(3))]
    assert leaving(decided([deletion(4, "v2")], earlier)) == [(version(2), deletion(4, "v2"))]
    assert decided([deletion(4, "v9")], earlier).superseded == ()


def test_the_deletion_of_the_version_null_takes_out_the_contents_before_it() -> None:
    earlier = [loaded(plain(1)), loaded(version(2)), loaded(replace(plain(5, "etag5"), version_id="null"))]
    assert leaving(decided([deletion(4, "null")], earlier)) == [(plain(1), deletion(4, "null"))]


@pytest.mark.parametrize("outcome", ["denied", "unavailable", "missing"])
def test_a_withheld_file_that_was_deleted_is_not_read_when_it_comes_again(outcome: str) -> None:
    found = decided([version(1)], [loaded(version(1), outcome=outcome, tries=3), done(deletion(2))])
    assert (found.fresh, found.retried) == ((), (version(1),))
    assert [one.outcome for one in found.left_out] == ["superseded"]


@pytest.mark.parametrize(("mark", "ends"), [("replay", "superseded"), ("forget", "forgotten")])
def test_a_file_that_an_operator_marked_leaves_with_the_deletion(mark: str, ends: str) -> None:
    found = decided([version(1), deletion(2)], [loaded(version(1), outcome=mark)])
    assert (found.fresh, found.retried, found.left_out) == ((deletion(2),), (), ())
    (one,) = found.superseded
    assert one.left({}, AT)["outcome"] == ends


def test_a_key_that_comes_back_takes_the_place_of_its_rows_in_a_table_that_could_not_be_written() -> None:
    left = superseded(plain(1), written=3, tables={"beta": 3}, dropped=7)
    found = decided([plain(3)], [left, done(deletion(2))])
    assert (found.fresh, leaving(found)) == ((plain(3),), [(plain(1), plain(3))])
    assert found.superseded[0].not_replayed("missing", "gone") == left.row


def test_an_operators_word_counts_more_than_a_deletion_that_was_carried_out() -> None:
    wanted = loaded(version(1), outcome="forgotten", reason="wanted-again", **NOTHING)
    assert decided([version(1)], [wanted, done(deletion(2))]).fresh == (version(1),)
    assert decided([version(1), deletion(2)], [wanted]).fresh == (deletion(2),)


def test_a_deletion_that_a_rule_or_an_operator_leaves_out_takes_nothing_out() -> None:
    files, earlier = [deletion(2), replace(version(3), etag="etag1")], {KEY: [loaded(version(1))]}
    skipped = decide_files(Claim(files, earlier, lambda key: "append", skipped={deletion(2).file_id}), {})
    ignored = decide_files(Claim(files, earlier, lambda key: "append", ignored=lambda f: "delete" * f.is_deletion), {})
    for found, outcome in ((skipped, "skipped"), (ignored, "ignored")):
        assert (found.fresh, found.superseded) == ((), ())
        assert [one.outcome for one in found.left_out] == [outcome, "duplicate"]
