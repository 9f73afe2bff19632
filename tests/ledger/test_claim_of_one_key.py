"""Only the rows that concern a file decide about it: others of its key say nothing."""

from __future__ import annotations

from dataclasses import replace

import pytest

from forebay.landed_file import LandedFile
from forebay.ledger.claim import Claim
from forebay.ledger.decision import decide_files
from forebay.ledger.versions import Earlier
from tests.ledger.test_claim import decided, duplicate, loaded, replayed, stand_in, version
from tests.ledger.test_deletions import decided as decided_later
from tests.ledger.test_deletions import deletion, done, leaving, plain, superseded


def twin(n: int, of: int = 1) -> LandedFile:
    """A version with the bytes of another one."""
    return replace(version(n), etag=f"etag{of}")


@pytest.mark.parametrize(("said", "tries"), [({"tries": 4}, 4), ({"tries": None}, 1), ({}, 1)])
def test_a_file_that_comes_again_brings_the_number_of_its_tries(said: dict[str, int | None], tries: int) -> None:
    withheld = Earlier(version(1), {"file_id": version(1).file_id, "outcome": "denied", **said})
    assert decided([version(1)], [withheld], "append").tries == {version(1).file_id: tries}


def test_files_whose_etag_nobody_knows_are_not_the_same() -> None:
    earlier = loaded(replace(version(1), etag=""))
    assert decided([replace(version(2), etag="")], [earlier], "append").fresh == (replace(version(2), etag=""),)


# --- deletions ---


def test_another_deletion_of_the_key_does_not_make_a_new_one_known() -> None:
    found = decided_later([version(4), deletion(5)], [done(deletion(2))])
    assert found.fresh == (deletion(5),)
    assert [(entry.file, entry.outcome) for entry in found.left_out] == [(version(4), "superseded")]


def test_a_deletion_that_was_carried_out_says_nothing_against_a_replay_if_its_notice_comes_again() -> None:
    found = decided_later([version(1), deletion(2)], [replayed(version(1)), done(deletion(2))])
    assert (found.fresh, found.known) == ((version(1),), (deletion(2),))


def test_a_deletion_between_two_new_versions_is_carried_out_and_not_outdone() -> None:
    """No one reads a deletion, so it is not among the files that could be read."""
    found = decided([version(1), deletion(2), version(3)], [loaded(version(0))], "replace", broken=[deletion(2)])
    assert deletion(2) in found.fresh
    assert (version(0), deletion(2)) in leaving(found)


def test_beside_other_versions_a_file_that_is_put_again_after_a_deletion_is_loaded() -> None:
    """Only under `replace` would a later version stand in its way."""
    earlier = [superseded(plain(1)), done(deletion(2)), loaded(plain(4, "etag4"))]
    assert decided_later([plain(3)], earlier, "append").fresh == (plain(3),)


def test_a_file_that_was_outdone_is_not_back_where_nothing_replaces_and_nothing_deleted_it() -> None:
    earlier = [superseded(plain(1)), loaded(plain(2, "etag2"))]
    assert decided_later([plain(3)], earlier, "append").known == (plain(3),)


def test_a_file_that_is_put_again_before_a_version_that_stands_is_not_back() -> None:
    earlier = [superseded(plain(1)), done(deletion(2)), loaded(plain(5, "etag2"))]
    found = decided_later([plain(3)], earlier, "replace")
    assert (found.fresh, found.known, found.left_out) == ((), (plain(3),), ())


@pytest.mark.parametrize("deleted", [True, False])
def test_a_duplicate_is_read_again_if_it_was_deleted_and_put_again(deleted: bool) -> None:
    first, other, again = plain(1), plain(2, "etag2"), plain(4, "etag2")
    rows = [loaded(first, content_hash="h"), duplicate(other, content_hash="h")]
    gone = [superseded(first, content_hash="h"), rows[1], done(deletion(3))]
    found = decided([again], gone if deleted else rows, "replace")
    assert (found.fresh, found.known) == (((again,), ()) if deleted else ((), (again,)))


def test_a_deletion_takes_a_version_out_whatever_duplicates_other_versions_have() -> None:
    """A duplicate keeps the rows of the version that it equals until it is deleted, too."""
    standing = [loaded(version(1)), loaded(version(2)), duplicate(twin(5, of=2))]
    assert leaving(decided_later([deletion(3)], standing)) == [(version(1), deletion(3))]


# --- what stands in for a replay ---


def test_two_replays_of_equal_bytes_are_both_loaded_if_neither_stands_in_for_the_other() -> None:
    files = [version(1), twin(2)]
    assert decided(files, [*map(replayed, files)], "append").fresh == tuple(files)


def test_a_replay_and_what_stands_in_for_another_one_are_both_loaded() -> None:
    files = [version(1), twin(3, of=2)]
    found = decided(files, [replayed(version(1)), loaded(version(2)), stand_in(files[1])], "append")
    assert found.fresh == tuple(files)


def test_what_stands_in_for_a_replay_is_loaded_in_its_place_also_if_it_is_older() -> None:
    older = twin(1, of=2)
    assert decided([older, version(2)], [replayed(version(2)), stand_in(older)], "append").fresh == (older,)


def test_an_operator_who_forgets_another_version_keeps_nothing_from_standing_in() -> None:
    marked = [replayed(version(1)), stand_in(twin(2)), loaded(version(5), outcome="forget")]
    assert decided([version(1), twin(2)], marked, "append").fresh == (twin(2),)


def test_what_stands_in_takes_out_only_rows_of_its_own_bytes() -> None:
    known = [loaded(version(1)), stand_in(twin(2)), loaded(version(4))]
    found = decided([twin(2)], known, "append")
    assert {one.earlier.file for one in found.superseded} == {version(1), twin(2)}


def test_the_latest_duplicate_stands_in_also_if_another_one_was_tried_before() -> None:
    known = [replayed(version(1)), stand_in(twin(2)), duplicate(twin(3))]
    found = decided([version(1)], known, "append")
    assert {one: seen.file for one, seen in found.stand_ins.items()} == {version(1).file_id: twin(3)}


def test_the_first_version_of_a_key_that_ignores_others_is_the_one_that_was_written_first() -> None:
    """Each key by its own rule: the order of arrival decides elsewhere."""
    late = [version(2), version(1), version(2, "in/b.json"), version(1, "in/b.json")]
    claim = Claim(late, {}, lambda key: "ignore" if key == "in/a.json" else "append")
    assert decide_files(claim, {file.file_id: "" for file in late}).fresh == (version(1), *late[2:])
