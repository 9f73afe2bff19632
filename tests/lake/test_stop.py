"""A request to stop reaches a job that runs, and no job that starts later."""

from __future__ import annotations

from pathlib import Path

import pytest

from forebay.errors import Halt, TryAgain
from forebay.lake.folder_objects import FolderObjects
from forebay.lake.lease import Lease, hold, holder
from forebay.lake.objects import open_objects
from forebay.lake.stop import StopRequest
from forebay.operate.changing.stop import stop


def request(folder: Path, now: list[float]) -> StopRequest:
    return StopRequest(open_objects(str(folder)), every_s=5, clock=lambda: now[0])


def test_a_wish_is_seen_within_five_seconds_and_stands_until_it_is_forgotten(tmp_path: Path) -> None:
    now = [0.0]
    job = request(tmp_path, now)
    request(tmp_path, [0.0]).ask()
    now[0] = 4.9
    assert not job.asked()
    now[0] = 5.0
    assert job.asked()
    job.forget()
    later = request(tmp_path, now)
    now[0] = 60.0
    assert not later.asked()


def test_a_look_that_fails_ends_no_job_and_the_next_one_sees_the_wish(tmp_path: Path) -> None:
    class Silent(FolderObjects):
        def read(self, name: str) -> bytes | None:
            if now[0] < 10:
                raise Halt("S3 does not answer")
            return super().read(name)

    now = [0.0]
    job = StopRequest(Silent(tmp_path), every_s=5, clock=lambda: now[0])
    request(tmp_path, [0.0]).ask()
    now[0] = 5.0
    assert not job.asked()
    now[0] = 10.0
    assert job.asked()


def test_where_nobody_runs_no_wish_is_left_behind(tmp_path: Path) -> None:
    assert stop(str(tmp_path), wait_s=0) is None
    assert open_objects(str(tmp_path)).read("stop") is None


def test_stopping_waits_until_the_job_has_ended(tmp_path: Path) -> None:
    lease = hold(str(tmp_path), wait_s=0)
    runs = holder(str(tmp_path))
    assert runs is not None
    naps: list[float] = []

    def nap(seconds: float) -> None:
        naps.append(seconds)
        if len(naps) == 3:
            lease.let_go()

    assert stop(str(tmp_path), wait_s=60, sleep=nap) == runs
    assert len(naps) == 3
    assert holder(str(tmp_path)) is None


def test_stopping_does_not_wait_for_a_job_that_began_since(tmp_path: Path) -> None:
    lease, naps = hold(str(tmp_path), wait_s=0), list[float]()
    runs = holder(str(tmp_path))

    def nap(seconds: float) -> None:
        naps.append(seconds)
        lease.let_go()
        later.append(hold(str(tmp_path), wait_s=0))

    later: list[Lease] = []
    assert stop(str(tmp_path), wait_s=60, sleep=nap) == runs
    assert len(naps) == 1
    later[0].let_go()


def test_a_job_that_takes_too_long_is_named_and_the_wish_stands(tmp_path: Path) -> None:
    lease = hold(str(tmp_path), wait_s=0)
    with pytest.raises(
        TryAgain, match=r"process .* is still working on its batch after 0 s.* If it was killed, its lease ends"
    ):
        stop(str(tmp_path), wait_s=0)
    assert open_objects(str(tmp_path)).read("stop") is not None
    lease.let_go()
