"""Streams that read a table, while verbs of every kind change it: who skips commits with removals gets every row that ever
came, once; who follows the change feed has the table, and so has who copies it with the block of docs/query.md.

FOREBAY_STREAM_HISTORIES=100 plays so many random histories; the suite plays a few.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable
from contextlib import suppress
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from deltalake import DeltaTable
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from pyspark.sql import SparkSession

from forebay.declaration.kept.in_force import keep_in_force
from forebay.declaration.loading import parse_service
from forebay.declaration.service import Service
from forebay.errors import Halt, InvalidConfiguration
from forebay.lake.layout import LEDGER, PARKED, QUARANTINE
from forebay.operate.changing.forget import to_forget
from forebay.operate.changing.replay import mark
from forebay.operate.declaring.settle import must_have_no_feed
from forebay.operate.exporting.export import export
from forebay.operate.lake_view import LakeView
from forebay.operate.people.erase import begin, carry_out, unfinished
from forebay.privacy.secret import make_secret, secret_at
from forebay.privacy.token import token_of
from forebay.upkeep.erase.age import drop_old_rows
from tests.batch.downstream import Downstream, values_of, versions_of
from tests.batch.test_histories import KEYS, Play
from tests.batch.test_histories import steps as of_all_histories
from tests.batch.world import Died, World, records
from tests.operate.test_export import applied, now

SERVICE = """
name = "studio"
overwritten = "replace"
[privacy]
subject = "event_id"
secret = "{secret}"
[[tables]]
name = "{{game}}"
columns = [{{ name = "event_id" }}]
keep_days = 10
properties = {{ "delta.enableChangeDataFeed" = "true" }}
"""
TABLES = ("alpha", "beta")

SPELLINGS = ("{}", '"{}"', "{}.0", '"0{}.00"', '["{}"]', "{}e0", '"{}", "event_id": null')
"""Of a person, as JSON; the last one says the field twice."""
NUMBERS = re.compile(r"(?<![\d.])0*(\d+)(?:\.0+|e0)?(?![\d.])")
PEOPLE = {"alpha": ("10", "11", "12"), "beta": ("20",)}
FOREIGN: dict[str, Callable[[DeltaTable], object]] = {
    "description": lambda table: table.alter.set_table_description("of somebody else"),
    "compaction": lambda table: table.optimize.compact(),
    "checkpoint": lambda table: table.create_checkpoint(),
}
"""Commits of another engine."""
steps = st.one_of(
    of_all_histories,
    st.tuples(st.just("erase"), st.sampled_from([*PEOPLE["alpha"], "11.00", *PEOPLE["beta"]])),
    st.tuples(st.just("foreign"), st.sampled_from(TABLES), st.sampled_from(sorted(FOREIGN))),
    st.tuples(st.just("settle"), st.sampled_from(TABLES)),
    st.tuples(st.just("export")),
    st.tuples(st.just("forget"), st.sampled_from(KEYS)),
    st.tuples(st.just("compact"), st.sampled_from(TABLES)),
    st.tuples(st.just("expire"), st.sampled_from(TABLES)),
    st.tuples(st.just("read")),
)


class StreamedPlay(Play):
    """With both kinds of consumers behind each table, and a copy elsewhere that an export keeps."""

    def __init__(self, world: World, folder: Path) -> None:
        super().__init__(world)
        self.erased = set[str]()
        self.elsewhere = folder / "elsewhere"
        paths = {table: f"{world.lake}/{table}" for table in TABLES}
        self.behind = {table: Downstream(world.spark, path, folder / table) for table, path in paths.items()}

    def do(self, step: tuple[object, ...]) -> None:
        deeds = {"forget": self.forget, "compact": self.compact, "expire": self.expire, "read": self.read}
        deeds |= {"foreign": self.foreign, "erase": self.erase, "settle": self.settle, "export": self.export}
        name, *arguments = step
        if (deed := deeds.get(str(name))) is None:
            super().do(step)
        else:
            deed(*arguments)  # type: ignore[operator]

    def lines(self, version: int) -> bytes:
        """Each person in another spelling each time."""
        of = [("alpha", number) for number in range(version)] + [("beta", 0)]
        people = (
            (game, PEOPLE[game][n % len(PEOPLE[game])], SPELLINGS[(version + n) % len(SPELLINGS)]) for game, n in of
        )
        texts = (f'{{"game": "{game}", "event_id": {how.format(person)}}}' for game, person, how in people)
        return "\n".join([*texts, "{broken", ""]).encode()

    def roll_back(self, table: str, versions: int) -> None:
        """Not to rows of people who have been erased since."""
        with suppress(InvalidConfiguration):
            super().roll_back(table, versions)

    def foreign(self, table: str, what: str) -> None:
        if (there := LakeView(self.world.lake).table(table)) is not None:
            FOREIGN[what](there)

    def forget(self, key: str) -> None:
        try:
            view = LakeView(self.world.lake)
            chosen = to_forget(view, [f"s3://landing/{key}"])
        except InvalidConfiguration:
            return  # nobody knows it yet, or a table is paused
        mark(view, chosen, "forget")
        self.waiting += [file.landed for file in chosen.files]

    def compact(self, table: str) -> None:
        if LakeView(self.world.lake).table(table) is not None:
            self.world.spark.sql(f"OPTIMIZE delta.`{self.world.lake}/{table}`")

    def expire(self, table: str) -> None:
        """All rows are too old, weeks later."""
        if LakeView(self.world.lake).table(table) is not None and not self.world.plans():
            service = parse_service({"service.toml": self.world.service})
            later = datetime.now(UTC) + timedelta(days=30)
            drop_old_rows(self.world.lake, table, service, keep=timedelta(days=365), now=later)

    def read(self) -> None:
        for one in self.behind.values():
            one.read()

    @property
    def service(self) -> Service:
        return parse_service({"service.toml": self.world.service})

    def erase(self, person: str) -> None:
        """An erasure that has to wait for a batch is finished by the next one, at the latest in the end."""
        view, service = LakeView(self.world.lake), self.service
        assert service.privacy is not None
        if view.table(LEDGER) is None:
            return
        begin(view, service, [token_of(person, secret_at(service.privacy.secret))])
        self.erased.add(person.partition(".")[0])
        self.finish_erasures()

    def finish_erasures(self) -> None:
        view, service = LakeView(self.world.lake), self.service
        for plan in unfinished(view, service):
            try:
                carry_out(view, service, plan, wait_s=0)
            except Halt:
                return

    def settle(self, table: str) -> None:
        """It would write rows again that a feed had told, so it refuses."""
        there = LakeView(self.world.lake).table(table)
        if there is not None:
            with pytest.raises(InvalidConfiguration, match="has a change feed"):
                must_have_no_feed(table, there.metadata().configuration)

    def export(self) -> None:
        for table in TABLES:
            if LakeView(self.world.lake).table(table) is not None:
                [*export(LakeView(self.world.lake), self.service, table, str(self.elsewhere))]

    def end(self) -> None:
        super().end()
        self.finish_erasures()
        assert unfinished(LakeView(self.world.lake), self.service) == []

    def nobody_finds_the_erased(self) -> None:
        texts = ", ".join(f"coalesce({name}, '')" for name in ("event_id", "_rescued"))
        for table, sql in [*((table, texts) for table in TABLES), *((kept, "record") for kept in (QUARANTINE, PARKED))]:
            view = LakeView(self.world.lake)
            rows = view.query(table, f"select concat_ws(' ', {sql}) as said from t") if view.table(table) else []
            assert {number for row in rows for number in NUMBERS.findall(row["said"])} & self.erased == set(), table

    def check_streams(self) -> None:
        self.nobody_finds_the_erased()
        self.read()
        self.export()
        self.world.tables_agree_with_the_ledger(*TABLES)
        for table, one in self.behind.items():
            versions = versions_of(one.path)
            assert all(set(rows.values()) <= {1} for rows in versions), "two rows are told alike"
            assert one.came == dict.fromkeys(set().union(*versions), 1), f"{table}: who wants every new row"
            assert +one.stands == (versions[-1] if versions else {}), f"{table}: who wants the table"
            assert -one.stands == {}, f"{table}: rows left that had not come"
            if versions:
                assert values_of(one.copy) == values_of(one.path), f"{table}: who copies it"
                assert applied(self.elsewhere, table) == now(Path(one.path.removeprefix("file://")).parent, table)


@pytest.fixture
def play_in(spark: SparkSession, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Callable[[], StreamedPlay]:
    made: list[int] = []

    def play() -> StreamedPlay:
        made.append(1)
        folder = tmp_path / str(len(made))
        make_secret(secret := f"{folder}/secret")
        service = SERVICE.format(secret=secret)
        world = World(spark, f"file://{folder}/lake", monkeypatch, service=service, generation="generation-1")
        keep_in_force(world.lake, parse_service({"service.toml": service}))
        return StreamedPlay(world, folder)

    return play


def test_rows_that_replace_others_reach_a_stream_that_skips_removals_and_a_death_in_between_doubles_none(
    play_in: Callable[[], StreamedPlay],
) -> None:
    play = play_in()
    world = play.world
    world.etags.clear()
    first, second = world.file("a.json", 1), world.file("a.json", 2)
    world.answers = {first.etag: records(alpha=2), second.etag: records(alpha=3)}
    world.try_batch(0, [first])
    with pytest.raises(Died):
        world.try_batch(1, [second], dies_after=1)
    assert world.rows_of("alpha") == {}, "the earlier rows have left, and the new ones are not there yet"
    world.try_batch(1, [second])
    assert sum(world.rows_of("alpha").values()) == 3
    play.behind.pop("beta")
    one = play.behind["alpha"]
    one.copies = False  # which runs many Spark jobs
    one.read()
    assert sorted(rows.total() for rows in versions_of(one.path)) == [0, 2, 3]
    assert (one.came.total(), set(one.came.values())) == (5, {1})
    assert +one.stands == versions_of(one.path)[-1]


@pytest.mark.deep
@settings(
    max_examples=int(os.environ.get("FOREBAY_STREAM_HISTORIES", "2")),
    derandomize="FOREBAY_STREAM_HISTORIES" not in os.environ,
    suppress_health_check=[HealthCheck.function_scoped_fixture],
)
@given(history=st.lists(steps, min_size=5, max_size=12))
def test_whatever_happens_streams_of_a_table_are_right_in_the_end(
    play_in: Callable[[], StreamedPlay], history: list[tuple[object, ...]]
) -> None:
    play = play_in()
    for step in [("try",), ("read",), *history]:
        play.do(step)
    play.end()
    play.check_streams()


@pytest.mark.deep
def test_every_verb_in_turn_leaves_the_streams_of_a_table_right(play_in: Callable[[], StreamedPlay]) -> None:
    play = play_in()
    story: list[tuple[object, ...]] = [
        *[("try",), ("read",), ("put", "a.json"), ("try",), ("replay", "b.json"), ("try",), ("read",)],
        *[("forget", "b.json"), ("try",), ("read",), ("roll back", "alpha", 1), ("read",), ("compact", "alpha")],
        *[("try",), ("pause", "alpha"), ("put", "a.json"), ("try",), ("resume", "alpha"), ("retry",), ("read",)],
        *[("export",), ("erase", "20.0"), ("read",), ("settle", "alpha"), ("put", "a.json"), ("try", 1)],
        *[("erase", "11"), ("read",), ("try",), ("export",), ("expire", "alpha"), ("put", "b.json"), ("try",)],
    ]
    for step in story:
        play.do(step)
    play.end()
    play.check_streams()
