"""One ingest job at a time takes in a service's files into a lake, whatever its checkpoint."""

from __future__ import annotations

import threading
from functools import partial
from pathlib import Path
from unittest.mock import MagicMock, Mock

import pytest

from forebay.declaration.loading import parse_service
from forebay.declaration.service import Service
from forebay.errors import Halt
from forebay.jobs import ingest
from forebay.jobs.gate import Gate
from forebay.jobs.ingest import alone
from forebay.lake.layout import ROLLBACK_PLAN, rollback_of
from forebay.lake.lease_holder import LeaseHeld
from forebay.lake.objects import open_objects
from forebay.lake.stop import StopRequest
from forebay.settings import IngestSettings


def service(name: str) -> Service:
    return parse_service({"service.toml": f'name = "{name}"\n[[tables]]\nname = "{{game}}"\n'})


def settings(lake: Path, checkpoint: str) -> IngestSettings:
    return IngestSettings(lake=str(lake), queue_url="q", checkpoint=str(lake / checkpoint), lease_wait_s=0)


def test_a_second_job_with_another_checkpoint_is_refused_and_welcome_afterwards(tmp_path: Path) -> None:
    with alone(service("studio"), settings(tmp_path, "one")) as still_ours:
        still_ours()
        second = alone(service("studio"), settings(tmp_path, "two"))
        with pytest.raises(LeaseHeld, match="writers/studio is in use by process"), second:
            pass
    with alone(service("studio"), settings(tmp_path, "two")):
        pass


def test_a_job_that_is_refused_leaves_its_own_checkpoint_free(tmp_path: Path) -> None:
    with alone(service("studio"), settings(tmp_path, "one")):
        with pytest.raises(LeaseHeld, match="one is in use"), alone(service("other"), settings(tmp_path, "one")):
            pass
        with alone(service("other"), settings(tmp_path, "two")):
            pass


def test_an_older_request_to_stop_is_forgotten_and_one_to_a_job_that_starts_ends_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It may finish batches and retry records for a quarter of an hour, before its stream begins."""
    monkeypatch.setattr(ingest, "StopRequest", partial(StopRequest, every_s=0))
    request = StopRequest(open_objects(str(tmp_path / "one")), every_s=0)
    request.ask()
    with alone(service("studio"), settings(tmp_path, "one")):
        assert not request.asked()
        request.ask()
        files, gate, looks = MagicMock(), Gate(Mock()), iter([False] * 9)
        started = files.writeStream.queryName().foreachBatch().option().trigger().start()
        started.awaitTermination.side_effect = lambda seconds: started.stop.called or next(looks)
        ingest.run(files, gate, settings(tmp_path, "one"), threading.Event(), Mock(), Mock())
    assert gate.closed
    assert not StopRequest(open_objects(str(tmp_path / "one")), every_s=0).asked()


def test_no_job_starts_while_a_rollback_is_half_done(tmp_path: Path) -> None:
    plan = open_objects(rollback_of(str(tmp_path)))
    plan.write(ROLLBACK_PLAN, b'{"tables": [{"table": "alpha", "to": 1}]}')
    with pytest.raises(Halt, match="is unfinished: repeat `forebay rollback"):
        alone(service("studio"), settings(tmp_path, "one")).__enter__()
    plan.delete([ROLLBACK_PLAN])
    with alone(service("studio"), settings(tmp_path, "one")):
        pass
