"""The job's own notes of how fast it works, which outlive its run."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from forebay.batch.events import BatchCommitted, BatchRepeated
from forebay.capacity.pace import NAME, Done, Pace
from forebay.jobs.pacing import Pacing, pacing_of
from forebay.lake.objects import open_objects
from forebay.settings import CompactSettings, IngestSettings

NUMBERS = dict.fromkeys(("bytes", "records", "written", "quarantined", "parked", "tables"), 0)
SECONDS = dict.fromkeys(("claim_seconds", "read_seconds", "write_seconds", "ledger_seconds"), 0.0)
BATCH = BatchCommitted(service="games", batch=1, files=7, seconds=4.0, **NUMBERS, **SECONDS)


def test_batches_and_the_first_one_of_each_run_are_noted_and_found_by_the_next_run(tmp_path: Path) -> None:
    store, now = open_objects(str(tmp_path)), [1000.0]

    def noted() -> Pace:
        return Pace.of(store.read(NAME))

    first = Pacing(store, clock=lambda: now[0])
    first(BatchRepeated(service="games", batch=0))
    first.flush()
    assert store.read(NAME) is None
    first(BATCH)
    assert noted() == Pace((996.0,), (Done(1000, 7, 4),))
    now[0] = 1010
    first(replace(BATCH, batch=2, files=3))
    assert len(noted().batches) == 1, "the notes are not written after each batch"
    first.flush()
    now[0] = 2000
    Pacing(store, clock=lambda: now[0])(BATCH)
    assert noted() == Pace((996.0, 1996.0), (Done(1000, 7, 4), Done(1010, 3, 4), Done(2000, 7, 4)))


def test_the_ingest_job_alone_has_a_pace(tmp_path: Path) -> None:
    assert pacing_of(CompactSettings(lake=str(tmp_path))) is None
    assert isinstance(pacing_of(IngestSettings(lake=str(tmp_path), queue_url="q")), Pacing)
