"""Which files of a batch are loaded, under each rule for keys that get other bytes."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from forebay.declaration.service import Overwritten
from forebay.landed_file import LandedFile
from forebay.ledger.claim import Claim
from forebay.ledger.decision import decide_files, files_to_read
from forebay.ledger.entry import PUT_AGAIN
from forebay.ledger.versions import FILE_COLUMNS, Earlier, Sorted, standing

KEY = ("landing", "in/a.json")
AT = datetime(2026, 11, 21, 10, tzinfo=UTC)


def version(n: int, key: str = "in/a.json") -> LandedFile:
    return LandedFile("landing", key, 10, f"etag{n}", f"v{n}", f"{n:016X}", AT + timedelta(seconds=n))


def loaded(file: LandedFile, **more: Any) -> Earlier:
    counts = {
        "records": 10,
        "written": 7,
        "quarantined": 1,
        "parked": 2,
        "dropped": 0,
        "tables": {"alpha": 4, "beta": 3},
    }
    return Earlier(file, {"file_id": file.file_id, "outcome": "loaded", **counts, **more})


def decided(
    files: list[LandedFile], earlier: list[Earlier], rule: Overwritten, *, broken: Sequence[LandedFile] = ()
) -> Sorted:
    """Once all files were read, but the `broken` ones."""
    readable = {file.file_id: "" for file in files if file not in broken}
    return decide_files(Claim(files, {("landing", "in/a.json"): earlier}, lambda key: rule), readable)


@pytest.mark.parametrize("rule", ["append", "ignore", "replace"])
def test_the_very_file_that_the_ledger_has_is_known(rule: Overwritten) -> None:
    found = decided([version(1)], [loaded(version(1))], rule)
    assert (found.fresh, found.known, found.left_out, found.superseded) == ((), (version(1),), (), ())


@pytest.mark.parametrize("rule", ["append", "ignore", "replace"])
def test_the_same_bytes_under_the_same_key_are_a_duplicate(rule: Overwritten) -> None:
    again = replace(version(2), etag="etag1")
    (entry,) = decided([again], [loaded(version(1))], rule).left_out
    assert (entry.outcome, entry.file) == ("duplicate", again)


def test_under_replace_a_key_that_gets_its_first_bytes_back_ends_with_them() -> None:
    back = replace(version(3), etag="etag1")
    found = decided([version(2), back], [loaded(version(1))], "replace")
    assert found.fresh == (back,)
    assert [(entry.file, entry.outcome) for entry in found.left_out] == [(version(2), "superseded")]
    assert [(s.earlier.file, s.by) for s in found.superseded] == [(version(1), back)]
    beside = decided([version(2), back], [loaded(version(1))], "append")
    assert (beside.fresh, [entry.outcome for entry in beside.left_out]) == ((version(2),), ["duplicate"])


def test_other_bytes_are_loaded_beside_the_earlier_ones_or_left_out_or_take_their_place() -> None:
    earlier = [loaded(version(1))]
    beside = decided([version(2)], earlier, "append")
    assert (beside.fresh, beside.superseded) == ((version(2),), ())
    assert [e.outcome for e in decided([version(2)], earlier, "ignore").left_out] == ["skipped"]
    instead = decided([version(2)], earlier, "replace")
    assert instead.fresh == (version(2),)
    assert [(s.earlier.file, s.by) for s in instead.superseded] == [(version(1), version(2))]


@pytest.mark.parametrize("order", [(1, 2, 3), (3, 1, 2), (2, 3, 1)])
def test_of_several_new_versions_the_latest_takes_the_place_of_all_in_whatever_order_they_come(
    order: tuple[int, ...],
) -> None:
    found = decided([version(n) for n in order], [loaded(version(0))], "replace")
    assert found.fresh == (version(3),)
    assert {e.file for e in found.left_out} == {version(1), version(2)}
    assert {e.outcome for e in found.left_out} == {"superseded"}
    assert [s.earlier.file for s in found.superseded] == [version(0)]


def test_an_older_version_that_is_announced_late_does_not_come_back() -> None:
    found = decided([version(1)], [loaded(version(2))], "replace")
    assert (found.fresh, found.superseded) == ((), ())
    assert [(e.outcome, e.reason) for e in found.left_out] == [("superseded", "announced-late")]


def test_without_sequencers_the_clock_of_s3_decides_and_without_a_clock_the_order_of_arrival() -> None:
    old, new = (replace(version(n), sequencer=None) for n in (1, 2))
    assert decided([old], [loaded(new)], "replace").fresh == ()
    old, new = (replace(file, event_time=None) for file in (old, new))
    assert decided([old], [loaded(new)], "replace").fresh == (old,)


def test_a_version_that_was_never_loaded_is_not_superseded_and_does_not_stand_in_the_way() -> None:
    gone = Earlier(version(1), {"file_id": version(1).file_id, "outcome": "missing"})
    for rule in ("append", "ignore", "replace"):
        found = decided([version(2)], [gone], rule)  # type: ignore[arg-type]
        assert (found.fresh, found.superseded) == ((version(2),), ())


def test_the_ledger_says_of_a_superseded_file_that_all_its_records_were_dropped_but_in_tables_that_failed() -> None:
    (superseded,) = decided([version(2)], [loaded(version(1))], "replace").superseded
    row = superseded.row(unwritten=["beta", "gamma"])
    assert (row["outcome"], row["superseded_by"]) == ("superseded", version(2).file_id)
    assert (row["tables"], row["written"], row["quarantined"], row["parked"], row["dropped"]) == (
        {"beta": 3},
        3,
        0,
        0,
        7,
    )
    assert superseded.row(unwritten=[])["dropped"] == row["records"]


def test_each_key_goes_by_its_own_rule_in_the_same_batch() -> None:
    rules: dict[str, Overwritten] = {"in/fixes.json": "replace", "in/first.json": "ignore", "in/log.json": "append"}
    earlier = {("landing", key): [loaded(version(1, key))] for key in rules}
    found = files_to_read(Claim([version(2, key) for key in rules], earlier, rules.__getitem__))
    assert [file.key for file in found.fresh] == ["in/fixes.json", "in/log.json"]
    assert [entry.file.key for entry in found.left_out] == ["in/first.json"]
    assert [one.by.key for one in found.superseded] == ["in/fixes.json"]


@pytest.mark.parametrize("outcome", ["missing", "denied", "unavailable"])
@pytest.mark.parametrize("rule", ["append", "ignore", "replace"])
def test_a_file_that_s3_did_not_give_is_read_again_when_it_is_announced_again(rule: Overwritten, outcome: str) -> None:
    withheld = Earlier(version(1), {"file_id": version(1).file_id, "outcome": outcome})
    found = decided([version(1)], [withheld], rule)
    assert (found.fresh, found.retried, found.known) == ((version(1),), (version(1),), ())


@pytest.mark.parametrize(
    ("outcome", "reason"), [("unreadable", "poison"), ("unreadable", "wanted-again"), ("skipped", "by-operator")]
)
def test_poison_and_what_an_operator_skipped_or_wants_again_is_read_when_it_is_announced_again(
    outcome: str, reason: str
) -> None:
    row = {"file_id": version(1).file_id, "outcome": outcome, "reason": reason}
    found = decided([version(1)], [Earlier(version(1), row)], "append")
    assert (found.fresh, found.retried, found.known) == ((version(1),), (version(1),), ())
    assert found.released == ((version(1),) if outcome == "unreadable" else ())


def test_a_refused_file_that_an_operator_skips_and_wants_again_leaves_the_quarantine_unread() -> None:
    """docs/troubleshooting.md takes it off the list of the quarantine in this way."""
    file = version(1)
    row = {"file_id": file.file_id, "outcome": "unreadable", "reason": "wanted-again"}
    claim = Claim([file], {(file.bucket, file.key): [Earlier(file, row)]}, lambda key: "append", {file.file_id})
    found = decide_files(claim, {})
    assert (files_to_read(claim).fresh, found.released) == ((), (file,))
    assert [(entry.outcome, entry.reason) for entry in found.left_out] == [("skipped", "by-operator")]


def test_what_an_operator_wants_left_out_gets_one_row_whatever_became_of_it_before() -> None:
    new, withheld, done, before, standing = (version(n, f"in/{n}.json") for n in range(5))
    ended = {withheld: ("denied", None), done: ("loaded", None), before: ("skipped", "by-operator")}
    ended |= {standing: ("replay", None)}  # its rows are in tables, and the ledger must go on to count them
    earlier = {
        (file.bucket, file.key): [Earlier(file, {"outcome": outcome, "reason": reason})]
        for file, (outcome, reason) in ended.items()
    }
    files = [new, withheld, done, before, standing]
    found = files_to_read(Claim(files, earlier, lambda key: "append", {file.file_id for file in files}))
    assert [(entry.file, entry.outcome, entry.reason) for entry in found.left_out] == [
        (new, "skipped", "by-operator"),
        (withheld, "skipped", "by-operator"),
    ]
    assert (found.fresh, found.retried, found.known) == ((), (withheld,), (done, before, standing))
    assert found.skipped == tuple(file.file_id for file in files)


@pytest.mark.parametrize("outcome", ["unreadable", "duplicate", "skipped", "superseded", "empty", "loaded"])
def test_what_became_of_any_other_file_is_final(outcome: str) -> None:
    done = Earlier(version(1), {"file_id": version(1).file_id, "outcome": outcome, "tables": {}})
    found = decided([version(1)], [done], "append")
    assert (found.fresh, found.retried, found.known) == ((), (), (version(1),))


def test_a_file_that_was_announced_twice_in_one_batch_has_one_row_in_the_ledger() -> None:
    found = decided([version(1), replace(version(1), sequencer=None)], [], "append")
    assert (found.fresh, len(found.known), found.left_out) == ((version(1),), 1, ())


# --- replays ---


def replayed(file: LandedFile) -> Earlier:
    return loaded(file, outcome="replay")


@pytest.mark.parametrize("rule", ["append", "ignore", "replace"])
def test_a_file_that_is_to_be_replayed_takes_its_own_place_under_every_rule(rule: Overwritten) -> None:
    found = decided([version(1)], [replayed(version(1))], rule)
    assert (found.fresh, found.retried, found.left_out) == ((version(1),), (version(1),), ())
    assert [(one.earlier.file, one.by, one.is_replay) for one in found.superseded] == [(version(1), version(1), True)]
    assert standing(found.superseded) == {version(1).file_id: {"alpha": 4, "beta": 3}}


def test_another_version_is_left_alone_by_a_replay_that_is_older() -> None:
    found = decided([version(1)], [replayed(version(1)), loaded(version(2))], "replace")
    assert [(one.earlier.file, one.by) for one in found.superseded] == [(version(1), version(1))]


def test_a_replay_that_was_announced_twice_in_one_batch_does_not_outdo_itself() -> None:
    for again in (version(1), replace(version(1), sequencer=None, event_time=None)):
        found = decided([version(1), again], [replayed(version(1))], "replace")
        assert (found.fresh, found.retried, found.known) == ((version(1),), (version(1),), (again,))


@pytest.mark.parametrize("order", [(1, 2), (2, 1)])
def test_a_replay_makes_room_for_a_later_version_of_the_same_batch(order: tuple[int, int]) -> None:
    found = decided([version(n) for n in order], [replayed(version(1))], "replace")
    assert (found.fresh, found.retried, found.left_out) == ((version(2),), (), ())
    assert [(one.earlier.file, one.by) for one in found.superseded] == [(version(1), version(2))]


def test_the_same_bytes_as_another_version_are_no_reason_against_a_replay() -> None:
    twin = replace(version(2), etag="etag1")
    assert decided([version(1)], [replayed(version(1)), loaded(twin)], "append").fresh == (version(1),)


def test_a_replay_that_was_asked_for_after_a_batch_began_is_none_of_it() -> None:
    found = decided([version(1), version(2, "in/b.json")], [replayed(version(1))], "append")
    begun = found.as_begun({version(2, "in/b.json").file_id})
    assert (begun.fresh, begun.known, begun.retried) == ((version(2, "in/b.json"),), (version(1),), ())
    assert begun.superseded == ()
    assert found.as_begun({file.file_id for file in found.fresh}) == found


@pytest.mark.parametrize(
    "is_now", [{"outcome": "skipped", "reason": "by-operator"}, {"outcome": "ignored"}, {"outcome": "missing"}]
)
def test_a_file_that_a_batch_did_not_read_when_it_began_keeps_its_row(is_now: dict[str, str]) -> None:
    """It is read again by now, as far as the ledger says, but only a plan gives it another row."""
    found = decided([version(1), version(2, "in/b.json")], [loaded(version(1), **is_now)], "append")
    assert found.retried == (version(1),)
    begun = found.as_begun({version(2, "in/b.json").file_id})
    assert (begun.fresh, begun.known, begun.retried) == ((version(2, "in/b.json"),), (version(1),), ())


@pytest.mark.parametrize(
    ("outcome", "becomes"), [("missing", "loaded"), ("denied", "replay"), ("unreadable", "loaded")]
)
def test_a_replay_that_cannot_be_read_is_what_it_was(outcome: str, becomes: str) -> None:
    (one,) = decided([version(1)], [replayed(version(1))], "append").superseded
    row = one.not_replayed(outcome, "gone")
    assert (row["outcome"], row["reason"], row["detail"]) == (becomes, "not-replayed", f"{outcome}: gone")
    assert (row["tables"], row["records"]) == ({"alpha": 4, "beta": 3}, 10)


def test_a_replay_of_a_file_without_records_that_cannot_be_read_is_empty_as_before() -> None:
    empty = loaded(version(1), outcome="replay", records=0, written=0, quarantined=0, parked=0, tables={})
    (one,) = decided([version(1)], [empty], "append").superseded
    assert one.not_replayed("missing", "gone")["outcome"] == "empty"


def test_what_happened_before_a_replay_stays_said() -> None:
    failed = loaded(version(1), outcome="replay", reason="table-failed", detail="alpha is closed")
    (one,) = decided([version(1)], [failed], "append").superseded
    row = one.not_replayed("missing", "gone")
    assert (row["reason"], row["detail"]) == ("table-failed", "alpha is closed; not-replayed: missing: gone")
    again = replace(one, earlier=Earlier(version(1), {**row, "outcome": "replay"}))
    assert again.not_replayed("missing", "gone")["detail"] == row["detail"]


@pytest.mark.parametrize("order", [(1, 2), (2, 1)])
def test_of_two_new_versions_of_which_the_later_is_broken_the_earlier_one_is_loaded(order: tuple[int, int]) -> None:
    files = [version(n) for n in order]
    found = decided(files, [loaded(version(0))], "replace", broken=[version(2)])
    assert (set(found.fresh), found.left_out) == ({version(1), version(2)}, ())
    assert version(1) in {one.by for one in found.superseded}


def test_equal_bytes_in_one_batch_are_no_duplicate_of_a_file_that_could_not_be_read() -> None:
    again = replace(version(2), etag="etag1")
    found = decided([version(1), again], [], "append", broken=[version(1)])
    assert (found.fresh, found.left_out) == ((version(1), again), ())
    both = decided([version(1), again], [], "append")
    assert (both.fresh, [entry.outcome for entry in both.left_out]) == ((version(1),), ["duplicate"])


@pytest.mark.parametrize("newest_first", [False, True])
def test_an_older_version_that_is_gone_is_superseded_by_the_newer_one_of_its_batch(newest_first: bool) -> None:
    files = [version(2), version(3)][:: -1 if newest_first else 1]
    found = decided(files, [loaded(version(1))], "replace", broken=[version(2)])
    assert found.fresh == (version(3),)
    assert [(entry.file, entry.outcome) for entry in found.left_out] == [(version(2), "superseded")]
    untold = [replace(file, sequencer=None, event_time=None) for file in (version(2), version(3))]
    assert decided(untold, [], "replace", broken=untold[:1]).fresh == (untold[1],)
    assert decided(untold, [], "replace", broken=untold[1:]).fresh == tuple(untold)
    newest_is_gone = decided(files, [loaded(version(1))], "replace", broken=[version(3)])
    assert set(newest_is_gone.fresh) == {version(2), version(3)}


def test_under_ignore_the_first_version_that_can_be_read_is_the_one() -> None:
    found = decided([version(1), version(2), version(3)], [], "ignore", broken=[version(1)])
    assert found.fresh == (version(1), version(2))
    assert [(entry.file, entry.outcome) for entry in found.left_out] == [(version(3), "skipped")]


@pytest.mark.parametrize("order", [(1, 2, 3), (3, 2, 1), (2, 3, 1)])
def test_under_ignore_the_version_that_s3_wrote_first_is_the_one_in_whatever_order_a_batch_has_them(
    order: tuple[int, ...],
) -> None:
    other = version(1, "in/b.json")
    found = decided([*[version(n) for n in order], other], [], "ignore")
    assert found.fresh == (version(1), other)
    assert {entry.file for entry in found.left_out} == {version(2), version(3)}


def test_all_new_versions_of_a_key_are_read_and_a_lone_duplicate_is_not() -> None:
    earlier = {("landing", "in/a.json"): [loaded(version(1))]}
    several = files_to_read(Claim([version(2), version(3)], earlier, lambda key: "replace"))
    assert (several.fresh, several.left_out) == ((version(2), version(3)), ())
    alone = files_to_read(Claim([replace(version(2), etag="etag1")], earlier, lambda key: "replace"))
    assert (alone.fresh, [entry.outcome for entry in alone.left_out]) == ((), ["duplicate"])


def unversioned(n: int, etag: str) -> LandedFile:
    return replace(version(n), version_id=None, etag=etag)


def test_without_versions_a_key_that_gets_its_first_bytes_back_ends_with_them() -> None:
    first, second, back = unversioned(1, "A"), unversioned(2, "B"), unversioned(3, "A")
    outdone = loaded(first, outcome="superseded", written=0, tables={}, quarantined=0, parked=0, dropped=10)
    found = decided([back], [outdone, loaded(second)], "replace")
    assert (found.fresh, found.retried, found.known) == ((back,), (back,), ())
    assert [(one.earlier.file, one.by) for one in found.superseded] == [(second, back)]
    first, second, back = (
        replace(file, version_id="null") for file in (first, second, back)
    )  # from before the versions
    outdone = Earlier(first, outdone.row)
    assert decided([back], [outdone, loaded(second)], "replace").fresh == (back,)
    for late in (first, replace(first, sequencer=None)):  # its first notice once more, and ours without a sequencer
        assert decided([late], [outdone, loaded(second)], "replace").known == (late,)


@pytest.mark.parametrize("outcome", ["superseded", "loaded"])
def test_what_tables_have_of_a_file_that_is_back_makes_room_for_it(outcome: str) -> None:
    """A table could not let its rows go, or a rollback restored them. Its first notice says nothing new."""
    first, second, back = unversioned(1, "A"), unversioned(2, "B"), unversioned(3, "A")
    there = {"outcome": outcome, "written": 3, "tables": {"beta": 3}, "superseded_by": second.file_id}
    earlier = [loaded(first, **there), loaded(second)]
    found = decided([back], earlier, "replace")
    assert (found.fresh, found.retried) == ((back,), (back,))
    assert {one.earlier.file.etag: one.is_replay for one in found.superseded} == {"A": True, "B": False}
    assert decided([first], earlier, "replace").known == (first,)


def test_with_dedupe_a_file_that_is_back_waits_while_a_table_has_rows_of_it() -> None:
    """Nothing else is decided meanwhile. Announced again, it still waits, and it does not once the rows have left."""
    first, second, back = unversioned(1, "A"), unversioned(2, "B"), unversioned(3, "A")
    left = {"outcome": "superseded", "written": 3, "tables": {"beta": 3}, "superseded_by": second.file_id}

    def found(file: LandedFile, seen: Earlier, *, dedupe: bool = True) -> Sorted:
        earlier = {("landing", "in/a.json"): [seen, loaded(second)]}
        return decide_files(Claim([file], earlier, lambda key: "replace", dedupe=dedupe), {file.file_id: ""})

    split = found(back, loaded(first, **left))
    assert (split.fresh, split.known, split.superseded) == ((), (back,), ())
    (waits,) = split.returning
    wait = {"sequencer": back.sequencer, "event_time": back.event_time, "reason": PUT_AGAIN, "tries": 1}
    assert (waits.wait, waits.row["outcome"]) == (wait, "superseded")
    marked = Earlier(back, {**waits.row, **wait})
    for again in (first, back):
        split = found(again, marked)
        assert (split.fresh, split.known) == ((), (again,))
        assert [seen.wait for seen in split.returning] == [{**wait, "tries": 2}]
    assert found(back, marked, dedupe=False).fresh == (back,)
    split = found(back, Earlier(back, {**marked.row, "written": 0, "tables": {}}))
    assert (split.fresh, split.returning) == ((back,), ())
    assert [one.earlier.file for one in split.superseded] == [second]
    assert found(first, loaded(first, **left)).returning == ()


def test_a_file_that_waits_is_outdone_by_later_bytes_and_not_by_a_replay_of_those_in_between() -> None:
    """Its rows leave with both. A replay cannot even be read: the object has other bytes."""
    first, second, back, third = (unversioned(n, etag) for n, etag in enumerate("ABAC", start=1))
    left = {"outcome": "superseded", "written": 3, "tables": {"beta": 3}, "superseded_by": second.file_id}
    of_object = {name: getattr(first, name) for name in FILE_COLUMNS}
    earlier = [loaded(first, **left, **of_object), loaded(second, outcome="replay", tries=1)]
    for by, waits in ((second, [back.sequencer]), (third, [])):
        claim = Claim([by, back], {KEY: earlier}, lambda key: "replace", dedupe=True)
        split = files_to_read(claim)
        assert first.file_id in {one.earlier.file.file_id for one in split.superseded}
        assert [seen.row["sequencer"] for seen in split.returning] == waits


@pytest.mark.parametrize("left_out", [{"skipped": True}, {"ignored": lambda file: "name"}], ids=["skipped", "ignored"])
@pytest.mark.parametrize("outcome", ["superseded", "loaded"])
def test_a_file_that_is_back_and_left_out_keeps_the_row_that_tells_of_its_rows(outcome: str, left_out: Any) -> None:
    """The row that replaced it would say that no table has any."""
    first, second, back = unversioned(1, "A"), unversioned(2, "B"), unversioned(3, "A")
    there = {"outcome": outcome, "written": 3, "tables": {"beta": 3}, "superseded_by": second.file_id}
    earlier = {("landing", "in/a.json"): [loaded(first, **there), loaded(second)]}
    told = {**left_out, "skipped": {first.file_id} if "skipped" in left_out else ()}
    split = decide_files(Claim([back], earlier, lambda key: "replace", **told), {})
    assert (split.fresh, split.known, split.left_out, split.retried) == ((), (back,), (), ())
    assert [seen.row["sequencer"] for seen in split.returning] == [back.sequencer]


@pytest.mark.parametrize(
    "left_out", [{"skipped": True}, {"ignored": lambda file: "hidden"}], ids=["skipped", "ignored"]
)
def test_a_file_that_is_back_and_left_out_still_names_the_version_that_took_its_place(left_out: Any) -> None:
    """A rollback may bring rows of it back, and that version has to replace them again."""
    first, second, back = unversioned(1, "A"), unversioned(2, "B"), unversioned(3, "A")
    gone = {"outcome": "superseded", "written": 0, "tables": {}, "superseded_by": second.file_id}
    told = {**left_out, "skipped": {first.file_id} if "skipped" in left_out else ()}
    claim = Claim([back], {KEY: [loaded(first, **gone), loaded(second)]}, lambda key: "replace", **told)
    (entry,) = decide_files(claim, {}).left_out
    assert entry.superseded_by == second.file_id


def test_a_file_is_not_back_by_its_first_notice_or_as_a_version_of_its_own() -> None:
    first, second = unversioned(1, "A"), unversioned(2, "B")
    gone = {"outcome": "superseded", "written": 0, "tables": {}, "quarantined": 0, "parked": 0, "dropped": 10}
    assert decided([first], [loaded(first, **gone), loaded(second, **gone)], "replace").known == (first,)
    told_late = replace(version(1), sequencer=f"{9:016X}")
    assert decided([told_late], [loaded(version(1), **gone), loaded(version(2))], "replace").known == (told_late,)


def test_a_version_that_left_all_tables_but_one_leaves_that_one_with_the_next_version() -> None:
    left = loaded(version(1), outcome="superseded", written=3, tables={"beta": 3})
    found = decided([version(3)], [left, loaded(version(2))], "replace")
    assert [one.earlier.file for one in found.superseded] == [version(1), version(2)]
    assert found.superseded[0].row(unwritten=[])["tables"] == {}
    assert decided([version(1)], [left, loaded(version(2))], "replace").known == (version(1),)


@pytest.mark.parametrize("rule", ["append", "replace"])
@pytest.mark.parametrize("versioned", [True, False])
def test_a_producers_retry_on_a_bucket_with_a_kms_key_is_a_duplicate(rule: Overwritten, versioned: bool) -> None:
    """Its etag is another one, and on a bucket without versions the first object is gone by then."""
    file, again, other = (version(n) if versioned else unversioned(n, f"etag{n}") for n in (1, 2, 3))
    hashes = {file.file_id: "same", again.file_id: "same", other.file_id: "else"}
    claim = Claim([again], {("landing", "in/a.json"): [loaded(file, content_hash="same")]}, lambda key: rule)
    assert files_to_read(claim).fresh == (again,)
    found = decide_files(claim, hashes)
    assert (found.fresh, [entry.outcome for entry in found.left_out], found.superseded) == ((), ["duplicate"], ())
    in_one_batch = decide_files(Claim([file, again, other], {}, lambda key: rule), hashes)
    assert (again in in_one_batch.fresh, len(in_one_batch.fresh)) == (False, 2 if rule == "append" else 1)


def duplicate(file: LandedFile, **more: Any) -> Earlier:
    row = {"file_id": file.file_id, "outcome": "duplicate", "reason": "same-key-same-bytes"}
    return Earlier(file, {**row, **more})


LATE = [("superseded", "announced-late")]


def test_a_later_duplicate_keeps_the_version_that_it_equals_in_force() -> None:
    """The bytes of the third version are those of the first: what S3 has now is what stands."""
    again = replace(version(3), etag="etag1")
    found = decided([version(2)], [loaded(version(1)), duplicate(again)], "replace")
    assert (found.fresh, found.superseded, [(e.outcome, e.reason) for e in found.left_out]) == ((), (), LATE)
    newest = decided([version(4)], [loaded(version(1)), duplicate(again)], "replace")
    assert [(one.earlier.file, one.by) for one in newest.superseded] == [(version(1), version(4))]
    withheld = Earlier(version(2), {"file_id": version(2).file_id, "outcome": "denied", "tries": 3})
    found = decided([version(2)], [loaded(version(1)), withheld, duplicate(again)], "replace")
    assert (found.fresh, found.retried, [(e.outcome, e.reason) for e in found.left_out]) == ((), (version(2),), LATE)


@pytest.mark.parametrize("order", [(2, 3), (3, 2)])
def test_a_duplicate_and_an_older_version_in_one_batch_end_with_the_bytes_of_the_duplicate(
    order: tuple[int, int],
) -> None:
    by_number = {2: version(2), 3: replace(version(3), etag="etag1")}
    found = decided([by_number[n] for n in order], [loaded(version(1))], "replace")
    assert found.fresh in ((), (by_number[3],))
    assert "superseded" in [entry.outcome for entry in found.left_out if entry.file == version(2)]


def test_a_duplicate_by_its_bytes_alone_is_kept_with_their_hash() -> None:
    first = loaded(version(1), content_hash="same")
    (entry,) = decide_files(
        Claim([version(3)], {KEY: [first]}, lambda key: "replace"), {version(3).file_id: "same"}
    ).left_out
    assert (entry.outcome, entry.content_hash) == ("duplicate", "same")
    later = duplicate(version(3), content_hash="same")
    assert decided([version(2)], [first, later], "replace").fresh == ()
    of_others = duplicate(version(3), content_hash="else")
    assert decided([version(2)], [first, of_others], "replace").fresh == (version(2),)


def test_duplicates_stand_in_for_a_replay_one_after_the_other_the_latest_first() -> None:
    twins = {n: replace(version(n), etag="etag1") for n in (2, 3, 4)}
    known = [duplicate(twins[2]), duplicate(twins[3])]
    found = decided([version(1)], [replayed(version(1)), *known, duplicate(version(5))], "append")
    assert {one: seen.file for one, seen in found.stand_ins.items()} == {version(1).file_id: twins[3]}
    marked = [
        duplicate(twins[2]),
        duplicate(twins[3], outcome="replay", records=0, tables={}, written=0, detail=None),
        duplicate(twins[4]),
    ]
    found = decided([twins[3]], [loaded(version(1)), *marked], "append")
    assert {one: seen.file for one, seen in found.stand_ins.items()} == {twins[3].file_id: twins[2]}
    assert (found.fresh, found.retried) == ((twins[3],), (twins[3],))
    assert {one.earlier.file for one in found.superseded} == {version(1), twins[3]}, "nothing stands twice"
    (itself,) = (one for one in found.superseded if one.is_replay)
    assert itself.not_replayed("missing", "gone")["outcome"] == "duplicate"
    assert itself.not_replayed("denied", "no")["outcome"] == "replay"


@pytest.mark.parametrize("rule", ["append", "ignore", "replace"])
@pytest.mark.parametrize("order", [(1, 2), (2, 1)])
@pytest.mark.parametrize("gone", [(), (1,), (2,)])
def test_a_replay_and_what_stands_in_for_it_in_one_batch_bring_their_rows_once(
    rule: Overwritten, order: tuple[int, int], gone: tuple[int, ...]
) -> None:
    """The object is back, and an operator asks for it again, before the batch that reads its duplicate."""
    files = {1: version(1), 2: replace(version(2), etag="etag1")}
    known = [replayed(files[1]), stand_in(files[2])]
    found = decided([files[n] for n in order], known, rule, broken=[files[n] for n in gone])
    landing = [file for file in found.fresh if file not in [files[n] for n in gone]]
    assert landing == ([files[1]] if gone == (2,) else [files[2]])
    leaving = Counter(one.earlier.file for one in replace(found, landed=frozenset({landing[0].file_id})).leaving)
    assert leaving == (Counter([files[1]]) if gone == (2,) else Counter([files[1], files[2]]))
    assert not (files[1] in found.fresh and gone == (1,)), "its row changes once"


@pytest.mark.parametrize("unknown", [{}, {"sequencer": None, "event_time": None}])
@pytest.mark.parametrize("order", [(2, 3), (3, 2)])
def test_two_files_that_stand_in_for_one_bring_its_rows_once(order: tuple[int, int], unknown: dict[str, Any]) -> None:
    twins = {n: replace(version(n), etag="etag1", **unknown) for n in (2, 3)}
    known = [loaded(version(1)), *map(stand_in, twins.values())]
    found = decided([twins[n] for n in order], known, "append")
    assert found.fresh == (twins[order[1] if unknown else 3],)
    assert Counter(one.earlier.file for one in found.superseded) == Counter([version(1), *twins.values()])


def test_what_stands_in_for_a_file_keeps_nobody_from_forgetting_it() -> None:
    again = replace(version(2), etag="etag1")
    found = decided([version(1), again], [loaded(version(1), outcome="forget"), stand_in(again)], "append")
    assert version(1) in found.fresh


def stand_in(file: LandedFile) -> Earlier:
    return duplicate(file, outcome="replay", records=0, tables={}, written=0, detail=None)


def test_a_duplicate_of_what_an_operator_forgot_keeps_nothing_in_force() -> None:
    again = duplicate(replace(version(3), etag="etag1"), reason="same-key-same-bytes-forgotten")
    assert decided([version(2)], [loaded(version(1)), again], "replace").fresh == (version(2),)


@pytest.mark.parametrize("rule", ["append", "ignore", "replace"])
@pytest.mark.parametrize(("sent", "taken"), [("was", False), ("became", False), ("is", False), ("else", True)])
def test_a_rewritten_object_is_known_by_all_bytes_that_it_ever_had(rule: Overwritten, sent: str, taken: bool) -> None:
    """A producer knows nothing of the erasure, and sends what he had."""
    key = ("landing", "in/a.json")
    claim = Claim([version(2)], {key: [loaded(version(1), content_hash="was became is")]}, lambda key: rule)
    found = decide_files(claim, {version(2).file_id: sent})
    assert found.fresh == ((version(2),) if taken and rule != "ignore" else ())
    assert [one.outcome for one in found.left_out if not taken] == ["duplicate"] * (not taken)


def test_files_that_were_read_without_a_hash_are_no_duplicates_of_each_other() -> None:
    rows = [loaded(version(1), content_hash=None), loaded(version(2))]
    found = decide_files(
        Claim([version(3)], {("landing", "in/a.json"): rows}, lambda key: "append"), {version(3).file_id: ""}
    )
    assert found.fresh == (version(3),)


@pytest.mark.parametrize("rule", ["append", "ignore", "replace"])
def test_bytes_whose_rows_left_with_a_rollback_are_loaded_when_they_are_put_again(rule: Overwritten) -> None:
    nothing: dict[str, Any] = {"written": 0, "quarantined": 0, "parked": 0, "dropped": 10, "tables": {}}
    gone = loaded(version(1), reason="rolled-back", **nothing)
    again = replace(version(2), etag="etag1")
    assert decided([again], [gone], rule).fresh == (again,)
    partly_replayed = loaded(version(1), reason="partly-replayed", **nothing)
    assert decided([again], [partly_replayed], rule).fresh == (again,)
    assert decided([version(1)], [gone], rule).known == (version(1),), "a redelivery brings nothing back"
    if rule == "replace":
        assert decided([version(0)], [gone], rule).left_out[0].reason == "announced-late"
    for held in ("quarantined", "parked"):
        rest = loaded(version(1), reason="rolled-back", **{**nothing, held: 1, "dropped": 9})
        assert decided([again], [rest], rule).fresh == (), f"what is {held} would land beside it"
    partly = loaded(version(1), reason="rolled-back")
    assert decided([again], [partly], rule).fresh == (), "what still stands elsewhere would be doubled"


def test_a_version_that_was_only_listed_is_not_older_than_one_announced_in_the_same_second() -> None:
    announced = replace(version(1), event_time=AT + timedelta(milliseconds=400))
    listed = replace(version(2), sequencer=None, event_time=AT)
    found = decided([listed], [loaded(announced)], "replace")
    assert (found.fresh, [one.earlier.file for one in found.superseded]) == ((listed,), [announced])
    in_one_batch = decided([announced, listed], [], "replace")
    assert in_one_batch.fresh == (listed,)
    a_second_before = replace(listed, event_time=AT - timedelta(seconds=1))
    assert decided([a_second_before], [loaded(announced)], "replace").left_out[0].reason == "announced-late"


def to_forget(file: LandedFile, **more: Any) -> Earlier:
    return loaded(file, outcome="forget", **more)


def forgotten(file: LandedFile, **more: Any) -> Earlier:
    nothing: dict[str, Any] = {"written": 0, "quarantined": 0, "parked": 0, "dropped": 10, "tables": {}}
    return loaded(file, outcome="forgotten", **nothing, **more)


@pytest.mark.parametrize("rule", ["append", "ignore", "replace"])
@pytest.mark.parametrize("skipped", [False, True])
def test_a_file_that_is_to_be_forgotten_makes_room_for_nothing_also_where_it_is_skipped(
    rule: Overwritten, skipped: bool
) -> None:
    key, ids = ("landing", "in/a.json"), [version(1).file_id] if skipped else []
    claim = Claim([version(1)], {key: [to_forget(version(1))]}, lambda key: rule, ids, lambda file: "no-feed")
    found = decide_files(claim, {version(1).file_id: ""})
    assert (found.fresh, [*found.to_forget], found.left_out) == ((version(1),), [version(1).file_id], ())
    gone = found.superseded[0].forgotten({}, AT)
    assert (gone["outcome"], gone["records"], gone["dropped"], gone["tables"]) == ("forgotten", 10, 10, {})
    assert gone["detail"] == "its rows left at 2026-11-21 10:00 UTC"


def test_a_file_is_not_forgotten_before_it_left_all_tables() -> None:
    (one,) = decided([version(1)], [to_forget(version(1))], "append").superseded
    row = one.forgotten({"beta": "paused"}, AT)
    assert (row["outcome"], row["reason"], row["tables"], row["dropped"]) == ("forget", "paused", {"beta": 3}, 7)
    waits = one.not_replayed("unavailable", "a retry")
    assert (waits["outcome"], waits["reason"], waits["written"]) == ("forget", "not-forgotten", 7)


@pytest.mark.parametrize("rule", ["append", "ignore", "replace"])
def test_what_was_forgotten_stays_out_and_so_do_the_same_bytes_but_no_others(rule: Overwritten) -> None:
    assert decided([version(1)], [forgotten(version(1))], rule).known == (version(1),)
    again = replace(version(2), etag="etag1")
    for gone in (forgotten(version(1)), to_forget(version(1))):
        (entry,) = decided([again], [gone], rule).left_out
        assert (entry.outcome, entry.reason) == ("duplicate", "same-key-same-bytes-forgotten")
        assert decided([version(2)], [gone], rule).fresh == (version(2),)
    hashed = forgotten(version(1), content_hash="h")
    claim = Claim([version(2)], {("landing", "in/a.json"): [hashed]}, lambda key: rule)
    assert decide_files(claim, {version(2).file_id: "h"}).left_out[0].outcome == "duplicate"


def test_no_earlier_version_comes_back_for_the_newest_one_that_was_forgotten() -> None:
    found = decided([version(1)], [forgotten(version(2))], "replace")
    assert [(entry.outcome, entry.reason) for entry in found.left_out] == [("superseded", "announced-late")]
    stands = loaded(version(1), reason="rolled-back")
    (one,) = decided([version(2)], [stands, to_forget(version(2))], "replace").superseded
    assert one.is_replay, "a version that a rollback brought back stays"


@pytest.mark.parametrize("rule", ["append", "ignore", "replace"])
def test_a_forgotten_file_that_an_operator_wants_again_is_read_like_a_new_one(rule: Overwritten) -> None:
    wanted = forgotten(version(1), reason="wanted-again")
    later_is_gone = decided([version(1)], [wanted, forgotten(version(2))], rule)
    assert (later_is_gone.fresh, later_is_gone.retried, later_is_gone.replays) == ((version(1),), (version(1),), {})
    beside = decided([version(1)], [wanted, loaded(version(2))], rule)
    ends = {"append": (), "ignore": (("skipped", "overwritten"),), "replace": (("superseded", "announced-late"),)}
    assert tuple((entry.outcome, entry.reason) for entry in beside.left_out) == ends[rule]


@pytest.mark.parametrize("order", [(1, 2), (2, 1)])
def test_a_later_version_of_the_same_batch_takes_the_place_of_one_that_is_to_be_forgotten(
    order: tuple[int, int],
) -> None:
    found = decided([version(n) for n in order], [to_forget(version(1))], "replace")
    assert (found.fresh, found.left_out) == ((version(2),), ())
    assert [(one.earlier.file, one.by) for one in found.superseded] == [(version(1), version(2))]


def test_a_batch_begins_later_than_the_readings_of_what_it_reads_again_and_not_than_those_of_what_comes_once_more() -> (
    None
):
    at, ahead = datetime(2026, 11, 21, 10, tzinfo=UTC), datetime(2036, 11, 21, 10, tzinfo=UTC)
    known, marked = loaded(version(1), claimed_at=ahead), loaded(version(1), claimed_at=ahead, outcome="replay")
    for earlier, begins in ((known, at), (marked, ahead + timedelta(microseconds=1))):
        files = [version(1), version(1, "in/b.json")]
        claim = Claim(files, {("landing", "in/a.json"): [earlier]}, lambda key: "replace")
        assert claim.begins(at, files_to_read(claim)) == begins
