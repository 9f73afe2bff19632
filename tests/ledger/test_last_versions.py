"""Somebody restores an older ledger or older ids: a job that starts or runs says so, and changes nothing."""

from __future__ import annotations

import json
import shutil
from dataclasses import asdict
from datetime import UTC, datetime
from pathlib import Path

import pyarrow as pa
import pytest
from deltalake import DeltaTable, write_deltalake

from forebay.errors import Halt
from forebay.lake.layout import last_versions_of
from forebay.lake.objects import Objects, open_objects
from forebay.landed_file import LandedFile
from forebay.ledger.last_versions import KeptVersions, Versions
from forebay.ledger.ledger import Ledger
from tests.operate.ledger import entry, write_ledger

LAST = Versions(ledger=7, ids=3, rows=40)


def kept(lake: Path, last: Versions = LAST) -> KeptVersions:
    store = open_objects(last_versions_of(str(lake)))
    store.write("games.json", json.dumps(asdict(last)).encode())
    return KeptVersions(store, "games")


@pytest.mark.parametrize(
    ("now", "says"),
    [
        (Versions(6, 3, 40), "ledger is at version 6, and was at 7 after its last batch: files .* loaded again"),
        (Versions(9, 3, 39), "ledger has 39 rows, and had 40 after its last batch: files .* loaded again"),
        (Versions(7, 2, 40), "ids is at version 2, and was at version 3 after its last batch: duplicates would pass"),
        (Versions(7, -1, 40), "ids is gone, and was at version 3"),
        (Versions(6, None, None), "ledger is at version 6"),
    ],
)
def test_older_versions_halt_and_say_what_to_do(tmp_path: Path, now: Versions, says: str) -> None:
    advice = (
        "Restore the version from before, and start again. To continue .* delete .*/_forebay/last-versions/games.json"
    )
    with pytest.raises(Halt, match=f"service games: _forebay/{says}.*{advice}"):
        kept(tmp_path).must_not_be_older(lambda: now)


@pytest.mark.parametrize(
    "now", [LAST, Versions(8, 4, 41), Versions(7, None, 40), Versions(7, 3, None), Versions(8, 3, 40)]
)
def test_what_others_added_is_no_loss(tmp_path: Path, now: Versions) -> None:
    kept(tmp_path).must_not_be_older(lambda: now)
    kept(tmp_path, Versions(7, None, None)).must_not_be_older(lambda: now)


def test_before_the_first_batch_nothing_is_older(tmp_path: Path) -> None:
    store = open_objects(last_versions_of(str(tmp_path)))
    KeptVersions(store, "games").must_not_be_older(lambda: Versions(-1, -1, 0))
    kept(tmp_path)
    KeptVersions(store, "others").must_not_be_older(lambda: Versions(0, -1, 0))


def test_older_code_reads_what_newer_code_kept(tmp_path: Path) -> None:
    store = open_objects(last_versions_of(str(tmp_path)))
    store.write("games.json", b'{"ledger": 7, "ids": 3, "rows": 40, "colour": "blue"}')
    assert KeptVersions(store, "games").last == LAST
    store.write("games.json", b'{"ledger": 7}')
    assert KeptVersions(store, "games").last == Versions(7, None, None)


@pytest.mark.parametrize("content", [b"{", b"[]", b"7", b'{"ledger": "seven"}'])
def test_an_object_that_is_something_else_halts_and_is_named(tmp_path: Path, content: bytes) -> None:
    store = open_objects(last_versions_of(str(tmp_path)))
    store.write("games.json", content)
    with pytest.raises(Halt, match=r"last-versions/games.json are not versions of the ledger.*delete it"):
        KeptVersions(store, "games").must_not_be_older(lambda: LAST)


@pytest.fixture
def ledger(tmp_path: Path) -> Ledger:
    """A driver's, after a batch of two files that came one after the other. It has read them."""
    write_ledger(tmp_path, entry("in/a.json"), entry("in/other.json"))
    shutil.copytree(tmp_path / "_forebay/ledger", tmp_path / "older")
    write_ledger(tmp_path, entry("in/b.json"))
    found = Ledger(None, str(tmp_path), "games")  # type: ignore[arg-type]
    found.last_versions.keep(Versions(1, None, found.rows))
    return found


def asks(ledger: Ledger, key: str) -> bool:
    return bool(ledger._versions_of([LandedFile("landing", key, 10, "e9")]))


def test_a_running_driver_asks_no_ledger_that_was_restored_beside_it(tmp_path: Path, ledger: Ledger) -> None:
    assert asks(ledger, "in/b.json")
    shutil.rmtree(tmp_path / "_forebay/ledger")
    shutil.move(tmp_path / "older", tmp_path / "_forebay/ledger")
    with pytest.raises(Halt, match="ledger is at version 0, and was at 1"):
        asks(ledger, "in/b.json")


def test_a_restore_by_hand_makes_a_newer_version_of_fewer_rows(tmp_path: Path, ledger: Ledger) -> None:
    DeltaTable(tmp_path / "_forebay/ledger").restore(0)
    with pytest.raises(Halt, match="ledger has 2 rows, and had 3"):
        asks(ledger, "in/b.json")
    with pytest.raises(Halt, match="ledger has 2 rows, and had 3"):
        asks(Ledger(None, str(tmp_path), "games"), "in/a.json")  # type: ignore[arg-type]


def test_changes_and_compactions_take_no_rows_from_the_ledger(tmp_path: Path, ledger: Ledger) -> None:
    DeltaTable(tmp_path / "_forebay/ledger").update({"outcome": "'forgotten'"}, predicate="key = 'in/a.json'")
    DeltaTable(tmp_path / "_forebay/ledger").optimize.compact()
    assert asks(ledger, "in/b.json")


def test_a_restore_of_the_ids_halts_until_it_is_taken_back(tmp_path: Path) -> None:
    """It makes a newer version, and ids may also leave otherwise: a rollback, or a window that is over."""
    place = f"{tmp_path}/_forebay/ids"
    for number in range(3):
        write_deltalake(place, pa.table({"n": [number]}), mode="append")
    ids, last = open_objects(place), Versions(ledger=7, ids=2, rows=40)
    DeltaTable(place).delete("n = 0")
    kept(tmp_path, last).must_not_be_older(lambda: Versions(7, 3, 40), ids)
    DeltaTable(place).restore(1)
    with pytest.raises(Halt, match="a RESTORE took _forebay/ids back from version 3: duplicates would pass"):
        kept(tmp_path, last).must_not_be_older(lambda: Versions(7, 4, 40), ids)
    kept(tmp_path, last).must_not_be_older(lambda: Versions(7, None, 40), ids)
    kept(tmp_path, Versions(7, 4, 40)).must_not_be_older(lambda: Versions(7, 4, 40), ids)
    DeltaTable(place).restore(0)
    with pytest.raises(Halt, match="back from version 3"):
        kept(tmp_path, last).must_not_be_older(lambda: Versions(7, 5, 40), ids)
    DeltaTable(place).restore(3)
    kept(tmp_path, last).must_not_be_older(lambda: Versions(7, 6, 40), ids)


def ids_of(lake: Path, count: int) -> tuple[str, Objects]:
    place = f"{lake}/_forebay/ids"
    for number in range(count):
        write_deltalake(place, pa.table({"n": [number]}), mode="append")
    return place, open_objects(place)


def test_a_restore_beside_a_driver_that_runs_halts_its_next_batch_and_every_start(tmp_path: Path) -> None:
    """Whether it came between two batches, or beside the batch's own commit: there is one more than that."""
    place, ids = ids_of(tmp_path, 3)
    running = kept(tmp_path, Versions(ledger=7, ids=1, rows=40))
    running.must_not_be_older(lambda: Versions(7, 1, 40), ids)
    running.ids_must_stand(1, ids)
    running.keep(Versions(8, 2, 41), own_commits=1)
    running.ids_must_stand(2, ids)
    DeltaTable(place).restore(0)
    write_deltalake(place, pa.table({"n": [7]}), mode="append")
    running.keep(Versions(9, 4, 42), own_commits=1)
    for again in (running, KeptVersions(open_objects(last_versions_of(str(tmp_path))), "games")):
        with pytest.raises(Halt, match="a RESTORE took _forebay/ids back from version 2: duplicates would pass"):
            again.ids_must_stand(4, ids)
    DeltaTable(place).restore(2)
    running.ids_must_stand(5, ids)


def test_commits_of_others_to_the_ids_are_looked_at_once(tmp_path: Path) -> None:
    _, ids = ids_of(tmp_path, 4)
    running = kept(tmp_path, Versions(ledger=7, ids=0, rows=40))
    running.keep(Versions(8, 3, 41), own_commits=1)
    assert running.last.ids == 0
    running.ids_must_stand(3, ids)
    running.keep(Versions(8, 3, 41))
    assert running.last.ids == 3


def test_services_that_share_the_ids_name_the_same_version_after_several_restores(tmp_path: Path) -> None:
    """One of them was idle since before the first one, which was taken back."""
    place, ids = ids_of(tmp_path, 3)
    for to in (0, 2):
        DeltaTable(place).restore(to)
    write_deltalake(place, pa.table({"n": [7]}), mode="append")
    DeltaTable(place).restore(4)
    for last in (2, 4, 5):
        with pytest.raises(Halt, match="back from version 5"):
            kept(tmp_path, Versions(ledger=7, ids=last, rows=40)).ids_must_stand(6, ids)
    DeltaTable(place).restore(5)
    for last in (2, 4, 5):
        kept(tmp_path, Versions(ledger=7, ids=last, rows=40)).ids_must_stand(7, ids)


def test_a_restore_is_named_where_the_log_before_it_was_cleaned_up(tmp_path: Path) -> None:
    place = f"{tmp_path}/_forebay/ids"
    for number in range(2):
        write_deltalake(place, pa.table({"n": [number]}), mode="append")
    DeltaTable(place).restore(0)
    DeltaTable(place).create_checkpoint()
    (Path(place) / "_delta_log" / f"{0:020}.json").unlink()
    last = Versions(ledger=7, ids=1, rows=40)
    with pytest.raises(Halt, match="a RESTORE took _forebay/ids back from version 1"):
        kept(tmp_path, last).must_not_be_older(lambda: Versions(7, 2, 40), open_objects(place))


def test_a_restore_that_leaves_more_rows_than_this_service_wrote_is_noticed_beside_another_service(
    tmp_path: Path, ledger: Ledger
) -> None:
    """The other one has added rows since this driver began, and this driver has seen them."""
    for number in range(3):
        write_ledger(tmp_path, entry(f"in/of-another-{number}.json", service="others"))
    assert asks(ledger, "in/b.json")
    write_ledger(tmp_path, entry("in/c.json"))
    ledger.remember([], datetime.now(UTC), more=1)
    ledger.last_versions.keep(Versions(5, None, ledger.rows))
    DeltaTable(tmp_path / "_forebay/ledger").restore(2)
    for driver in (ledger, Ledger(None, str(tmp_path), "games")):  # type: ignore[arg-type]
        with pytest.raises(Halt, match="ledger has 4 rows, and had 6 after its last batch"):
            asks(driver, "in/b.json")
