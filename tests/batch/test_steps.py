"""The steps of a batch without Spark: which files of several versions are loaded, and that a repeated batch keeps to it."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path
from types import SimpleNamespace
from typing import Any, ClassVar, cast

import pytest

from forebay.batch.accounting import Fate
from forebay.batch.attempt.ending import Ending
from forebay.batch.attempt.turns import Turns
from forebay.batch.batch import Batch
from forebay.batch.one_pass.outcome import Pass
from forebay.batch.plan import Plan, Plans, Staged
from forebay.batch.retrying.plan import PLAN
from forebay.content.end import FileEnd
from forebay.content.outcome import ReadOutcome
from forebay.declaration.loading import parse_service
from forebay.declaration.service import Service
from forebay.lake.objects import open_objects
from forebay.landed_file import LandedFile
from forebay.ledger.claim import Claim
from forebay.ledger.skips import Skips
from forebay.ledger.versions import SAME_BYTES, Earlier, Sorted
from forebay.ledger.withheld import FIRST_PAUSE, Withheld
from forebay.table.commit import Txn
from forebay.table.data_files.data_file import Written
from forebay.table.staged import StagedTable

AT = datetime(2026, 11, 22, tzinfo=UTC)


class Died(BaseException):
    """The driver is no more."""


def version(n: int) -> LandedFile:
    return LandedFile("landing", "in/a.json", 10, f"e{n}", f"v{n}", f"{n:016X}", AT + timedelta(seconds=n))


@dataclass
class OneTable:
    """The files whose rows came to it, and those whose rows left."""

    rows: dict[str, int] = field(default_factory=dict)
    left: list[str] = field(default_factory=list)
    has_batch: bool = False
    dies: bool = False


@dataclass(frozen=True)
class Tables:
    """In the place of `Writing`."""

    service: Service
    table: OneTable = field(default_factory=OneTable)
    began_at: datetime = AT
    ahead: timedelta = timedelta()

    generation, txn, day, may_have_begun = "g", Txn("a", 7), AT.date(), False
    where: ClassVar[Mapping[str, Any]] = {"service": "studio", "batch": 7}
    shared: ClassVar[Mapping[str, Any]] = {"service": "studio", "generation": "g", "batch": 7}
    shared_beside: ClassVar[Mapping[str, Any]] = {"day": AT.date(), "at": AT, **shared}

    def stage(self, *_: object) -> Staged:
        return Staged(tables={"alpha": StagedTable("alpha", "", None, (), ())})

    def delete(self, staged: object) -> None:
        pass

    def must_have_files(self, staged: object, plan: str) -> None:
        pass

    def commit(self, plan: Plan, split: Sorted, *others: object) -> dict[str, str]:
        table = self.table
        if not table.has_batch:
            table.rows = {fate.file_id: fate.rows for fate in plan.fates}
            table.left = split.leaving_ids
            table.has_batch = True
        if table.dies:
            raise Died
        return {}


class Known:
    """In the place of the ledger."""

    def __init__(self, driver: Driver) -> None:
        self.driver, self.withheld = driver, Withheld()

    def own(self, files: Sequence[LandedFile]) -> Sequence[LandedFile]:
        return files

    def claim(
        self, files: Sequence[LandedFile], service: Service, skipped: Collection[str] = (), cleared: Any = None
    ) -> Claim:
        earlier = {("landing", "in/a.json"): self.driver.earlier}
        return Claim(files, earlier, service.rule_of, skipped)


class Driver(Batch):
    """Files end as a test says; what would go to the ledger is kept."""

    generation = "g"
    declarations = None

    def __init__(self, lake: Path, rule: str, earlier: Sequence[Earlier] = ()) -> None:
        text = f'name = "studio"\noverwritten = "{rule}"\n[[tables]]\nname = "{{game}}"\n'
        self.service = parse_service({"service.toml": text})
        self.lake, self.emit, none = str(lake), (lambda event: None), cast("Any", None)
        self.ledger, self.logs = Known(self), none  # type: ignore[assignment]
        self.plans = Plans(open_objects(str(lake)), "studio")
        self.one_pass: Any = SimpleNamespace(of=self.of, without_duplicates=lambda made, dedupe: made)
        self.ended: Any = SimpleNamespace(had_ledger=False, add=lambda ending, *_: self.commit(ending))
        self.spark = self.new_tables = self.recent_ids = self.late = none
        self.skips, self.turns = Skips(open_objects(f"{lake}/skips")), Turns(open_objects(f"{lake}/tries"))
        self.tables_at_once, self.catalog, self.clock = 1, None, lambda: AT
        self.still_ours, self.arriving = (lambda: None), (lambda service, files, to_read: None)
        self.may_have_begun = lambda batch: False
        self.takeover: Any = SimpleNamespace(complete=lambda generation: None)
        self.earlier, self.tables = earlier, Tables(self.service)
        self.ends: Mapping[str, ReadOutcome] = {}
        self.hashes: Mapping[str, str] = {}
        self.entries: dict[str, str] = {}

    def writing(self, *_: object) -> Any:
        return self.tables

    def writing_of(self, *_: object) -> Any:
        return self.tables

    def of(self, files: Sequence[LandedFile], *_: object, **__: object) -> Pass:
        ends = [self.end(file) for file in files]
        fates = [Fate(end.file.file_id, "write", 2, "alpha", 0) for end in ends if end.lands]
        return Pass(ends, fates, Written({}, {}), self.lake)

    def end(self, file: LandedFile) -> FileEnd:
        outcome = self.ends.get(file.etag, "loaded")
        counts: dict[str, int] = {"documents": 2 if outcome == "loaded" else 0, "refused": 0}
        counts |= dict.fromkeys(("bytes_read", "expanded_bytes", "requests"), 0)
        told: dict[str, Any] = {"reason": None, "detail": None, "head": "", **counts}
        return FileEnd(file=file, outcome=outcome, content_hash=self.hashes.get(file.etag, ""), **told)

    def commit(self, ending: Ending) -> None:
        self.entries = {entry.file.etag: entry.outcome for entry in ending.new}
        self.entries |= {row["etag"]: row["outcome"] for row in ending.changed}

    def runs(self, *files: LandedFile, dies: bool = False) -> dict[str, str]:
        self.tables.table.dies = dies
        plan = self.plans.of("g", 7)
        if plan is not None and plan.settled:
            self.go_on(plan)
        else:
            self.begin(files, self.tables.txn)
        return self.entries

    @property
    def loaded(self) -> set[str]:
        return {file.etag for file in map(version, range(9)) if file.file_id in self.tables.table.rows}


def loaded(file: LandedFile, content_hash: str = "") -> Earlier:
    counts = {"records": 2, "written": 2, "quarantined": 0, "parked": 0, "dropped": 0, "tables": {"alpha": 2}}
    return Earlier(file, {"etag": file.etag, "outcome": "loaded", "content_hash": content_hash, **counts})


def test_of_several_versions_the_newest_that_can_be_read_is_loaded_and_each_has_its_outcome(tmp_path: Path) -> None:
    driver = Driver(tmp_path, "replace", [loaded(version(0))])
    driver.ends = {"e3": "unreadable"}
    found = driver.runs(version(1), version(2), version(3))
    assert found == {"e0": "superseded", "e1": "superseded", "e2": "loaded", "e3": "unreadable"}
    assert (driver.loaded, driver.tables.table.left) == ({"e2"}, [version(0).file_id])


def test_a_repeated_batch_keeps_the_choice_although_its_files_read_otherwise(tmp_path: Path) -> None:
    driver = Driver(tmp_path, "replace")
    driver.ends = {"e3": "unavailable"}
    with pytest.raises(Died):
        driver.runs(version(1), version(2), version(3), dies=True)
    driver.ends = {"e1": "missing"}
    assert driver.runs(version(1), version(2), version(3)) == {
        "e1": "superseded",
        "e2": "loaded",
        "e3": "unavailable",
    }
    assert (driver.loaded, list(driver.plans.left())) == ({"e2"}, [])


@pytest.mark.parametrize("rule", ["append", "replace"])
def test_a_producers_retry_is_a_duplicate_by_its_bytes_and_no_row_of_it_is_written(tmp_path: Path, rule: str) -> None:
    driver = Driver(tmp_path, rule, [loaded(version(0), "same")])
    driver.hashes = {"e1": "same", "e2": "else"}
    assert driver.runs(version(1))["e1"] == "duplicate"
    assert (driver.loaded, driver.tables.table.left) == (set(), [])


def test_a_duplicate_whose_original_is_gone_when_the_files_are_read_again_is_loaded(tmp_path: Path) -> None:
    """It is left out of the second pass, which shows that it must not be."""
    driver, passes = Driver(tmp_path, "append"), list[int]()
    driver.hashes = {"e1": "same", "e2": "same"}

    def of(files: Sequence[LandedFile], *others: object, **more: object) -> Pass:
        passes.append(len(files))
        driver.ends = {"e1": "missing"} if len(passes) > 1 else {}
        return driver.of(files)

    driver.one_pass.of = of
    assert driver.runs(version(1), version(2)) == {"e1": "missing", "e2": "loaded"}
    assert (driver.loaded, passes) == ({"e2"}, [2, 1, 2])


def test_equal_bytes_of_a_file_that_could_not_be_read_are_loaded(tmp_path: Path) -> None:
    driver = Driver(tmp_path, "append")
    driver.hashes, driver.ends = {"e1": "same", "e2": "same", "e3": "same"}, {"e1": "denied"}
    assert driver.runs(version(1), version(2), version(3)) == {"e1": "denied", "e2": "loaded", "e3": "duplicate"}
    assert driver.loaded == {"e2"}


def test_a_replay_and_a_later_version_in_one_batch_end_as_the_later_one(tmp_path: Path) -> None:
    replay = loaded(version(1))
    driver = Driver(tmp_path, "replace", [Earlier(version(1), {**replay.row, "outcome": "replay"})])
    for unreadable in ({}, {"e1": "missing"}):
        driver.tables, driver.ends = Tables(driver.service), unreadable  # type: ignore[assignment]
        assert driver.runs(version(1), version(2)) == {"e1": "superseded", "e2": "loaded"}
        assert driver.loaded == {"e2"}
    driver.tables, driver.ends = Tables(driver.service), {"e2": "denied"}
    assert driver.runs(version(1), version(2)) == {"e1": "loaded", "e2": "denied"}
    assert driver.loaded == {"e1"}


def test_a_file_to_be_forgotten_waits_for_a_retry_that_may_be_moving_its_records(tmp_path: Path) -> None:
    about = {"bucket": "landing", "key": "in/a.json", "detail": None, "quarantined": 1}
    marked = Earlier(version(1), {**loaded(version(1)).row, **about, "outcome": "forget"})
    driver = Driver(tmp_path, "append", [marked])
    open_objects(f"{tmp_path}/tries").write(PLAN, b"{}")
    assert driver.runs(version(1)) == {}, "its row is the retry's to change"
    assert len(driver.ledger.withheld) == 1
    open_objects(f"{tmp_path}/tries").delete([PLAN])
    assert driver.runs(version(1)) == {"e1": "forgotten"}


def test_a_replay_that_s3_withholds_comes_again_by_itself_after_growing_pauses(tmp_path: Path) -> None:
    about = {"bucket": "landing", "key": "in/a.json", "detail": None}
    replay = Earlier(version(1), {**loaded(version(1)).row, **about, "outcome": "replay", "tries": 2})
    driver = Driver(tmp_path, "append", [replay])
    driver.ends = {"e1": "unavailable"}
    assert driver.runs(version(1)) == {"e1": "replay"}
    (waits,) = driver.ledger.withheld.take_due(AT + timedelta(days=1), 9)
    assert (waits.file, waits.tries, waits.due) == (version(1), 3, AT + 4 * FIRST_PAUSE)
    driver.ends = {"e1": "missing"}
    assert driver.runs(version(1)) == {"e1": "loaded"}
    assert len(driver.ledger.withheld) == 0, "what is gone for good is not asked for again"


def test_two_replays_that_are_gone_have_one_duplicate_of_theirs_read_and_the_ledger_has_it_once(tmp_path: Path) -> None:
    """The first one was replayed, and was gone. Its later duplicate waits to be read in its place when it is replayed again."""
    about = {"bucket": "landing", "key": "in/a.json", "detail": None, "content_hash": "same"}
    told = {1: ("replay", None), 2: ("duplicate", SAME_BYTES), 3: ("replay", SAME_BYTES)}
    rows = {n: {**loaded(version(n)).row, **about, "outcome": how, "reason": why} for n, (how, why) in told.items()}
    driver, changed = Driver(tmp_path, "append", [Earlier(version(n), row) for n, row in rows.items()]), list[str]()
    driver.commit = lambda ending: changed.extend(row["etag"] for row in ending.changed)  # type: ignore[method-assign]
    driver.ends = {"e1": "missing", "e3": "missing"}
    driver.runs(version(1), version(3))
    assert sorted(changed) == ["e1", "e2", "e3"]
    assert len(driver.ledger.withheld) == 1


@pytest.mark.parametrize("gone", ["", "e1"])
def test_a_replay_and_its_duplicate_that_is_read_in_its_place_have_one_row_each_in_the_ledger(
    tmp_path: Path, gone: str
) -> None:
    about = {"bucket": "landing", "key": "in/a.json", "detail": None, "content_hash": "same"}
    told = {1: ("replay", None), 2: ("replay", SAME_BYTES)}
    rows = {n: {**loaded(version(n)).row, **about, "outcome": how, "reason": why} for n, (how, why) in told.items()}
    driver, written = Driver(tmp_path, "append", [Earlier(version(n), row) for n, row in rows.items()]), list[str]()

    def commit(ending: Ending) -> None:
        written.extend([entry.file.etag for entry in ending.new] + [row["etag"] for row in ending.changed])

    driver.commit, driver.hashes = commit, {"e1": "same", "e2": "same"}  # type: ignore[method-assign]
    driver.ends = {gone: "missing"} if gone else {}
    with pytest.raises(Died):
        driver.runs(version(1), version(2), dies=True)
    driver.runs(version(1), version(2))
    assert (sorted(written), driver.loaded) == (["e1", "e2"], {"e2"})
