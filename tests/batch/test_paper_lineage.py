"""Histories on paper whose lineage is sent: between batches, right before any effect of one, and after deaths. A batch is told
if and only if the ledger has committed it, always under the same runs, and with the rows that the tables have.

FOREBAY_PAPER_HISTORIES and FOREBAY_PAPER_HISTORY are those of `test_paper_histories`. Each event is read from a ledger that is
written as a Delta table, which takes a while: a tenth of the histories is played.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from deltalake import write_deltalake

from forebay.declaration.kept.in_force import keep_in_force
from forebay.declaration.loading import parse_service
from forebay.lake.layout import LEDGER, application, is_own
from forebay.ledger.entry import COLUMNS
from forebay.operate.lake_view import LakeView
from forebay.operate.looking.files import FileChoice
from forebay.operate.looking.lineage import lineage_of
from tests.batch.paper import FIRST
from tests.batch.test_paper_deletions import Deletions
from tests.batch.test_paper_histories import HELD, HISTORIES, OTHER, Play, in_time, play_all
from tests.operate.ledger import schema_of

Batch = tuple[str, str, int]
"""Service, generation, number."""
FEEDS = {FIRST: 'feeds = [{ name = "add", prefix = "add/" }, { name = "new", prefix = "new/" }]', OTHER: ""}


@pytest.fixture(scope="module")
def real(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A lake with the declarations in force. The ledger of each history is written into it, over that of the one before."""
    lake = tmp_path_factory.mktemp("lake")
    for name, feeds in FEEDS.items():
        keep_in_force(
            str(lake), parse_service({"service.toml": f'name = "{name}"\n{feeds}\n[[tables]]\nname = "{{game}}"\n'})
        )
    return lake


class Told(Play):
    """With an endpoint that keeps all that it gets."""

    real: Path

    def __init__(self, seed: int, patch: pytest.MonkeyPatch) -> None:
        super().__init__(seed, patch)
        self.runs: dict[str, tuple[str, Batch]] = {}
        """What each run is about: its job and its batch."""

    def more_deeds(self) -> dict[Callable[[str], None], int]:
        return {**super().more_deeds(), self.send: 2}

    def attempt(self, dies_after: int | None = None) -> None:
        if not self.ending and self.draw.random() < 0.4:
            self.lake.meanwhile = (self.draw.randint(0, 20), lambda: self.send(""))
        super().attempt(dies_after)
        self.lake.meanwhile = None

    def send(self, key: str) -> None:
        """As `forebay lineage` does on a schedule."""
        self.sent()

    def sent(self) -> dict[tuple[Batch, str], dict[str, Any]]:
        """The last event of each batch and table."""
        rows = self.lake.rows(LEDGER)
        committed = {*self.committed()}
        last: dict[tuple[Batch, str], dict[str, Any]] = {}
        for events in self.events(rows):
            assert [one["eventType"] for one in (events[0], events[-1])] == ["START", "COMPLETE"]
            assert {*Counter(one["eventType"] for one in events).values()} == {len(events) // 2}
            for event in events:
                job, tags = (
                    event["job"]["name"],
                    {one["key"]: one["value"] for one in event["run"]["facets"]["tags"]["tags"]},
                )
                service, _, table = job.partition(".")
                batch = (service, tags["generation"], int(tags["batch"]))
                assert batch in committed, f"{event['eventType']} of {batch}, which is not committed"
                run = event["run"]["runId"]
                assert self.runs.setdefault(run, (job, batch)) == (job, batch), f"{run} is about two things"
                if event["eventType"] == "START":
                    assert (batch, table) not in last, f"{batch} of {job} is told twice"
                else:
                    assert last[batch, table]["run"] == event["run"]
                    assert last[batch, table]["eventTime"] <= event["eventTime"]
                last[batch, table] = event
        assert len({*self.runs.values()}) == len(self.runs), "a batch has two runs of one job"
        assert {batch for batch, _ in last} == {batch_of(row) for row in rows}
        return last

    def committed(self) -> Iterator[Batch]:
        """By the transactions in the log of the ledger, which are no columns of its rows."""
        generations = [f"g{number}" for number in range(int(self.generation[1:]) + 1)]
        names = {application(name, one): (name, one) for name in (FIRST, OTHER) for one in generations}
        for carried in self.lake.tables[LEDGER].carried if LEDGER in self.lake.tables else ():
            yield from ((*names[app], number) for app, number in carried.items() if app in names)

    def events(self, rows: list[dict[str, Any]]) -> Iterator[tuple[dict[str, Any], ...]]:
        if not rows:
            return
        table = pa.Table.from_pylist([{**row, "tables": [*row["tables"].items()]} for row in rows], schema_of(COLUMNS))
        write_deltalake(f"{self.real}/{LEDGER}", table, mode="overwrite")
        for one in lineage_of(LakeView(str(self.real)), FileChoice()):
            yield one.events

    def check(self) -> None:
        super().check()
        last = self.sent()
        told = {
            (batch, table): (event["outputs"][0]["outputFacets"]["outputStatistics"]["rowCount"], inputs_of(event))
            for (batch, table), event in last.items()
            if table
        }
        assert told == self.there()

    def there(self) -> dict[tuple[Batch, str], tuple[int, dict[str, tuple[int, int]]]]:
        """The rows in the tables themselves, by the batch of their file, and its files and records by their prefix."""
        ledger = {row["file_id"]: row for row in self.lake.rows(LEDGER)}
        rows, files = Counter[tuple[Batch, str]](), defaultdict[tuple[Batch, str], set[str]](set)
        for name in (name for name in self.lake.tables if not is_own(name) or name in HELD):
            for row in self.lake.rows(name):
                of = (batch_of(ledger[row["_file_id"]]), name)
                rows[of] += 1
                files[of].add(row["_file_id"])
        found = {}
        for of, number in rows.items():
            inputs = defaultdict[str, list[int]](list)
            for one in files[of]:
                prefix = ledger[one]["key"].partition("/")[0] if ledger[one]["service"] == FIRST else "/"
                inputs[prefix].append(ledger[one]["records"])
            found[of] = (number, {prefix: (len(records), sum(records)) for prefix, records in inputs.items()})
        return found


class ToldDeletions(Told, Deletions):
    """The same of a service that forgets what is deleted."""

    def play(self) -> None:
        Deletions.play(self)

    def do(self, deeds: dict[Callable[[str], None], int], most: int) -> None:
        super().do({**deeds, self.send: 3}, most)


def batch_of(row: Mapping[str, Any]) -> Batch:
    return row["service"], row["generation"], row["batch"]


def inputs_of(event: Mapping[str, Any]) -> dict[str, tuple[int, int]]:
    """Files and records, by the prefix in the landing bucket."""
    found = {one["name"]: one["inputFacets"]["inputStatistics"] for one in event["inputs"]}
    assert {one["namespace"] for one in event["inputs"]} == {"s3://landing"}
    return {name: (said["fileCount"], said["rowCount"]) for name, said in found.items()}


@in_time
@pytest.mark.parametrize("kind", [Told, ToldDeletions])
def test_lineage_tells_of_each_committed_batch_once_and_of_no_other(kind: type[Told], real: Path) -> None:
    kind.real = real
    play_all(kind, max(1, HISTORIES // 10))
