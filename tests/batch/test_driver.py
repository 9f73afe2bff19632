"""The driver's side of a pass, with tasks whose answers are made up: what it asks again, and what it gives up."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from types import SimpleNamespace
from typing import Any

import pyarrow as pa
import pytest

import forebay.batch.one_pass.driver as driver
from forebay.batch.one_pass.answers import Answer, Judged
from forebay.batch.one_pass.driver import FUNCTIONS_APART, OnePass
from forebay.batch.one_pass.jobs import Jobs
from forebay.batch.one_pass.landed import HeldFile
from forebay.batch.one_pass.outcome import Pass, ReadAgain
from forebay.batch.one_pass.spec import Held, PassSpec
from forebay.content.end import PieceEnd
from forebay.content.limits import Limits
from forebay.declaration.loading import parse_service
from forebay.landed_file import LandedFile
from tests.batch.tasks import AT

PLAIN = 'name = "s"\n[[tables]]\nname = "alpha"\ncolumns = [{ name = "n" }]\n'
DEDUPED = PLAIN + 'dedupe = { by = ["n"] }\n'
TRANSFORMED = PLAIN + 'transform = "shop:clean"\n'
PRIVATE = PLAIN + '[privacy]\npersonal = [{ path = "email", become = "dropped" }]\n'
A, B = (LandedFile("landing", key, 9, key, None, f"{n:016X}", AT) for n, key in enumerate(("a.json", "b.json")))
KILLED = "Job aborted due to stage failure: Task 0 in stage 1.0 failed 4 times: Python worker exited unexpectedly"
HELD = {HeldFile("landing", "a", version_id=None, event_time=AT, held_id="a"): 2}
ONE_SHORT = "gave different records when it was read again"


@dataclass
class Tasks:
    """`answer` is called with the spec of the tasks."""

    answer: Callable[[PassSpec], Answer]
    asked: list[PassSpec] = field(default_factory=list)

    def __call__(self, jobs: Jobs, spec: PassSpec, *_: Any) -> list[Answer]:
        self.asked.append(spec)
        return [self.answer(spec)]


def answered(spec: PassSpec, documents: int = 2, rows: int = 2, **more: Any) -> Answer:
    """Two records of each file, and their rows in alpha."""
    ends = [PieceEnd(piece=piece.number, outcome="loaded", documents=documents) for piece in spec.pieces]
    fates = Counter({Judged(piece.file.file_id, "write", "alpha", 0): rows for piece in spec.pieces})
    return Answer(ends=ends, fates=fates, **more)


@pytest.fixture
def one_pass(monkeypatch: pytest.MonkeyPatch) -> OnePass:
    monkeypatch.setattr(driver, "arrow_schema", lambda _: pa.schema([]))  # its columns are in Spark's words
    logs: Any = SimpleNamespace(remembered=list)
    spark: Any = SimpleNamespace(sparkContext=SimpleNamespace(defaultParallelism=2))
    return OnePass(spark, "file:///lake", Limits(), logs)


@pytest.fixture
def tasks(monkeypatch: pytest.MonkeyPatch) -> Tasks:
    made = Tasks(answered)
    monkeypatch.setattr(Jobs, "of_pieces", lambda jobs, *spec: made(jobs, *spec))
    monkeypatch.setattr(Jobs, "of_held", lambda jobs, *spec: made(jobs, *spec))
    return made


def passed(one_pass: OnePass, service: str = PLAIN, **more: Any) -> Pass:
    declared = parse_service({"service.toml": service})
    return one_pass.of([A, B], declared, **({"shared": {}, "unwritten": {}, "standing": {}} | more))


def test_no_file_starts_no_job(one_pass: OnePass, tasks: Tasks) -> None:
    declared = parse_service({"service.toml": PLAIN})
    assert one_pass.of([], declared, shared={}, unwritten={}, standing={}).ends == []
    assert tasks.asked == []
    made = passed(one_pass)
    assert [(end.file.key, end.documents) for end in made.ends] == [("a.json", 2), ("b.json", 2)]
    assert len(tasks.asked) == 1
    assert (tasks.asked[0].only_unwritten, tasks.asked[0].functions_apart) == (False, False)


def test_tasks_are_told_the_tables_that_are_known(
    one_pass: OnePass, tasks: Tasks, monkeypatch: pytest.MonkeyPatch
) -> None:
    paths = ("file:///lake/alpha", "file:///lake/stray", "file:///lake/_forebay/alpha", "file:///elsewhere/alpha")
    one_pass.logs = SimpleNamespace(remembered=lambda: [SimpleNamespace(path=path) for path in paths])  # type: ignore[assignment]
    monkeypatch.setattr(
        driver, "_known_of", lambda name, seen, _: seen.path if name.rpartition("/")[2] == "alpha" else None
    )
    passed(one_pass)
    passed(one_pass, known={"beta": "of the pass before"})
    remembered = {"alpha": "file:///lake/alpha"}
    assert [spec.known for spec in tasks.asked] == [remembered, remembered | {"beta": "of the pass before"}]


def test_sql_is_parsed_once_for_each_set_of_tables(
    one_pass: OnePass, tasks: Tasks, monkeypatch: pytest.MonkeyPatch
) -> None:
    parsed: list[bool] = []
    monkeypatch.setattr(driver, "questions_of", lambda service: parsed.append(service.drops_duplicates) or parsed[-1])
    monkeypatch.setattr(driver, "conditions_of", lambda service: "conditions")
    for service in (PLAIN, PLAIN, DEDUPED, PLAIN):
        spec = one_pass._spec([], parse_service({"service.toml": service}), {}, {})
        assert (spec.questions, spec.conditions) == (service == DEDUPED, "conditions")
    assert parsed == [False, True, False]


@pytest.mark.parametrize("most", [4, 5])
def test_a_task_with_most_of_the_ids_may_answer_with_all(
    one_pass: OnePass, tasks: Tasks, monkeypatch: pytest.MonkeyPatch, most: int
) -> None:
    monkeypatch.setattr(driver, "IDS_AT_MOST", most)
    tasks.answer = lambda spec: answered(spec, lacks_ids=spec.ids_at_most <= 2 * most)
    assert passed(one_pass, DEDUPED).read_twice == "one task had most of the ids"
    assert [spec.ids_at_most > 2 * most for spec in tasks.asked] == [False, True]


def test_a_batch_with_too_many_ids_leaves_files_out(
    one_pass: OnePass, tasks: Tasks, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(driver, "IDS_AT_MOST", 3)
    tasks.answer = lambda spec: answered(spec, lacks_ids=True)
    with pytest.raises(ReadAgain, match="4 rows have ids, and the limit is 3") as again:
        passed(one_pass, DEDUPED)
    assert ([end.file for end in again.value.files], len(tasks.asked)) == ([B], 1)


def test_a_table_whose_file_cannot_be_put_is_tried_twice_and_fails_alone(one_pass: OnePass, tasks: Tasks) -> None:
    tasks.answer = lambda spec: answered(spec, files=[{"table": "alpha", "error": "no space"}])
    made = passed(one_pass)
    assert (made.written.failed, made.read_twice, len(tasks.asked)) == ({"alpha": "no space"}, "no space", 2)


def test_a_table_of_ours_that_cannot_be_put_ends_the_pass(one_pass: OnePass, tasks: Tasks) -> None:
    tasks.answer = lambda spec: answered(spec, files=[{"table": "_forebay/quarantine", "error": "no space"}])
    with pytest.raises(ReadAgain, match="no space"):
        passed(one_pass)


def test_a_table_whose_function_is_broken_is_not_tried_again(one_pass: OnePass, tasks: Tasks) -> None:
    tasks.answer = lambda spec: answered(spec, broken={"alpha": "no such function"})
    made = passed(one_pass)
    assert (made.written.failed, made.read_twice, len(tasks.asked)) == ({"alpha": "no such function"}, "", 1)


def test_an_odd_answer_ends_the_pass_at_once(one_pass: OnePass, tasks: Tasks) -> None:
    tasks.answer = lambda spec: answered(spec, odd="twins", files=[{"table": "alpha", "error": "no space"}])
    with pytest.raises(ReadAgain, match="twins"):
        passed(one_pass)
    assert len(tasks.asked) == 1


def test_a_record_without_a_fate_ends_the_pass_except_where_others_are_written(one_pass: OnePass, tasks: Tasks) -> None:
    tasks.answer = lambda spec: answered(spec, rows=1)
    with pytest.raises(ReadAgain, match=f"s3://landing/a.json {ONE_SHORT}"):
        passed(one_pass)
    assert len(passed(one_pass, only_unwritten=True).ends) == 2
    tasks.answer = answered
    assert len(passed(one_pass).ends) == 2


@pytest.mark.parametrize(("service", "is_private"), [(PLAIN, False), (PRIVATE, True)], ids=["plain", "private"])
def test_a_file_that_kills_its_task_alone_is_refused(
    one_pass: OnePass, tasks: Tasks, service: str, is_private: bool
) -> None:
    quoting = f"{KILLED}\nValueError: player@example.org"

    def kills(spec: PassSpec) -> Answer:
        if any(piece.file == B for piece in spec.pieces):
            raise RuntimeError(quoting)
        return answered(spec)

    tasks.answer = kills
    made = passed(one_pass, service)
    assert [(end.file, end.outcome) for end in made.ends] == [(A, "loaded"), (B, "unreadable")]
    assert ("player@example.org" in (made.ends[1].detail or "")) != is_private
    assert {tuple(piece.file.key for piece in spec.pieces) for spec in tasks.asked} >= {("a.json",), ("b.json",)}


def test_functions_run_apart_before_a_file_is_blamed(one_pass: OnePass, tasks: Tasks) -> None:
    def kills(spec: PassSpec) -> Answer:
        if not spec.functions_apart:
            raise RuntimeError(KILLED)
        return answered(spec)

    tasks.answer = kills
    made = passed(one_pass, TRANSFORMED)
    assert ([end.outcome for end in made.ends], made.read_twice) == (["loaded", "loaded"], FUNCTIONS_APART)
    tasks.answer = lambda spec: replace(kills(spec), read_twice="memory is running short")
    assert passed(one_pass, TRANSFORMED).read_twice == "memory is running short"


def test_functions_run_apart_once_memory_is_short(
    one_pass: OnePass, tasks: Tasks, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A row that needs too much memory is then refused alone."""
    lean = Tasks(answered)
    monkeypatch.setattr(driver, "Lean", lambda spec, *_: SimpleNamespace(answer=lambda: lean(one_pass.jobs, spec)[0]))
    tasks.answer = crowded
    assert passed(one_pass).read_twice == "no room"
    assert [spec.functions_apart for spec in lean.asked] == [True]


def held(one_pass: OnePass, service: str) -> Pass:
    declared, rows = parse_service({"service.toml": service}), SimpleNamespace()
    return one_pass.of_held(rows, HELD, declared, Held(), shared={}, known={})  # type: ignore[arg-type]


def crowded(spec: PassSpec) -> Answer:
    return Answer(odd="no room", is_crowded=True)


def killed(spec: PassSpec) -> Answer:
    raise RuntimeError(KILLED)


@pytest.mark.parametrize("fails", [crowded, killed])
def test_held_records_are_read_again_with_their_functions_apart(
    one_pass: OnePass, tasks: Tasks, fails: Callable[[PassSpec], Answer]
) -> None:
    tasks.answer = lambda spec: answered(spec) if spec.functions_apart else fails(spec)
    assert [end.outcome for end in held(one_pass, TRANSFORMED).ends] == ["loaded"]
    assert [spec.functions_apart for spec in tasks.asked] == [False, True]


@pytest.mark.parametrize("service", [PLAIN, TRANSFORMED], ids=["plain", "transformed"])
def test_held_records_that_cannot_be_read_end_the_retry(one_pass: OnePass, tasks: Tasks, service: str) -> None:
    tasks.answer = killed
    with pytest.raises(RuntimeError, match="exited unexpectedly"):
        held(one_pass, service)
    tasks.answer = crowded
    with pytest.raises(ReadAgain, match="no room"):
        held(one_pass, service)
    tried = 1 if service == PLAIN else 2
    assert len(tasks.asked) == 2 * tried


def test_a_fault_of_ours_is_not_tried_again_for_held_records(one_pass: OnePass, tasks: Tasks) -> None:
    def wrong(spec: PassSpec) -> Answer:
        raise KeyError("ours")

    tasks.answer = wrong
    with pytest.raises(KeyError):
        held(one_pass, TRANSFORMED)
    tasks.answer = lambda spec: answered(spec, odd="twins")
    with pytest.raises(ReadAgain, match="twins"):
        held(one_pass, TRANSFORMED)
    assert len(tasks.asked) == 2
