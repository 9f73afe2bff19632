"""One driver at a time, whoever crashes, sleeps or has a wrong clock."""

from __future__ import annotations

import io
import subprocess
import sys
import time
from datetime import UTC, datetime, timedelta
from email.utils import format_datetime
from pathlib import Path
from typing import Any

import pytest
from botocore.exceptions import ClientError

from forebay.errors import Halt
from forebay.lake.lease import hold
from forebay.lake.s3_lease import S3Lease

FOLDER = "s3://lake/checkpoint"


class FakeS3:
    """One bucket that honours If-Match and If-None-Match, with a clock of its own; `before_put` may interfere."""

    def __init__(self) -> None:
        self.objects: dict[str, tuple[bytes, str, datetime]] = {}
        self.now = datetime(2026, 1, 1, tzinfo=UTC)
        self.writes = 0
        self.drop_answers = 0

    def get_object(self, *, Bucket: str, Key: str) -> dict[str, Any]:  # noqa: N803 (boto3's names)
        if Key not in self.objects:
            raise refusal("NoSuchKey", 404)
        body, etag, when = self.objects[Key]
        headers = {"HTTPHeaders": {"date": format_datetime(self.now, usegmt=True)}}
        return {"Body": io.BytesIO(body), "ETag": etag, "LastModified": when, "ResponseMetadata": headers}

    def put_object(self, *, Bucket: str, Key: str, Body: bytes, **condition: str) -> dict[str, str]:  # noqa: N803
        there = self.objects.get(Key)
        if "IfNoneMatch" in condition and there:
            raise refusal("PreconditionFailed", 412)
        if "IfMatch" in condition and (not there or there[1] != condition["IfMatch"]):
            raise refusal("PreconditionFailed", 412)
        self.writes += 1
        self.objects[Key] = (Body, f'"{self.writes}"', self.now)
        if self.drop_answers:
            self.drop_answers -= 1
            raise refusal("RequestTimeout", 500)
        return {"ETag": f'"{self.writes}"'}


def refusal(code: str, status: int) -> ClientError:
    return ClientError({"Error": {"Code": code}, "ResponseMetadata": {"HTTPStatusCode": status}}, "Call")


def test_a_second_driver_leaves_with_a_sentence_that_says_who_is_there() -> None:
    s3 = FakeS3()
    first = hold(FOLDER, wait_s=0, s3=s3)
    with pytest.raises(Halt, match=r"in use by process \d+ on .*one driver at a time"):
        hold(FOLDER, wait_s=0, s3=s3)
    first.check()
    first.let_go()


def test_a_lease_that_was_let_go_is_free_at_once() -> None:
    s3 = FakeS3()
    first = hold(FOLDER, wait_s=0, s3=s3)
    first.let_go()
    second = hold(FOLDER, wait_s=0, s3=s3)
    assert (first.epoch, second.epoch) == (1, 2)
    second.let_go()


def test_the_lease_of_a_crashed_driver_is_free_when_it_has_run_out_by_the_servers_clock() -> None:
    s3 = FakeS3()
    crashed = hold(FOLDER, wait_s=0, lasts_s=60, s3=s3)
    s3.now += timedelta(seconds=59)
    with pytest.raises(Halt):
        hold(FOLDER, wait_s=0, s3=s3)
    s3.now += timedelta(seconds=2)
    second = hold(FOLDER, wait_s=0, s3=s3)
    assert second.epoch == 2
    crashed._renew()  # type: ignore[attr-defined]
    with pytest.raises(Halt, match=r"was lost: process .* holds it"):
        crashed.check()
    crashed.let_go()
    second.check()
    second.let_go()


def test_a_second_driver_waits_until_the_first_leaves() -> None:
    s3, pauses = FakeS3(), []
    first = hold(FOLDER, wait_s=0, s3=s3)

    def sleep(seconds: float) -> None:
        pauses.append(seconds)
        first.let_go()

    second = S3Lease.take(s3, FOLDER, wait_s=30, lasts_s=60, sleep=sleep)
    assert len(pauses) == 1
    second.let_go()


def test_a_driver_that_waits_says_once_for_whom_and_how_long() -> None:
    s3, told = FakeS3(), []
    first = hold(FOLDER, wait_s=0, lasts_s=60, s3=s3)

    def sleep(_: float) -> None:
        s3.now += timedelta(seconds=20)

    second = S3Lease.take(s3, FOLDER, wait_s=90, lasts_s=60, sleep=sleep, emit=told.append)
    assert [(e.place, e.seconds) for e in told] == [(FOLDER, 60)]
    assert told[0].holder.startswith("process ")
    first.let_go()
    second.let_go()


def test_a_driver_that_waits_for_a_lock_says_once_for_whom(tmp_path: Path) -> None:
    told: list[Any] = []
    first = hold(str(tmp_path), wait_s=0)
    with pytest.raises(Halt):
        hold(str(tmp_path), wait_s=0.25, emit=told.append)
    assert [(e.place, e.seconds) for e in told] == [(str(tmp_path), None)]
    first.let_go()


def test_of_two_drivers_that_find_it_free_one_wins() -> None:
    s3 = FakeS3()
    real, racing = s3.put_object, []

    def put_object(**request: Any) -> dict[str, str]:
        if not racing:
            racing.append(True)
            racing.append(hold(FOLDER, wait_s=0, s3=s3))
        return real(**request)

    s3.put_object = put_object  # type: ignore[method-assign]
    with pytest.raises(Halt):
        hold(FOLDER, wait_s=0, s3=s3)
    racing[1].let_go()  # type: ignore[attr-defined]


def test_a_renewal_whose_answer_was_lost_is_still_ours() -> None:
    s3 = FakeS3()
    lease = hold(FOLDER, wait_s=0, s3=s3)
    s3.drop_answers = 1
    lease._renew()  # type: ignore[attr-defined]
    lease._renew()  # type: ignore[attr-defined]
    lease.check()
    lease.let_go()


def test_a_renewal_that_was_refused_and_finds_s3_slow_is_tried_again_until_the_lease_is_over() -> None:
    s3 = FakeS3()
    lease = hold(FOLDER, wait_s=0, lasts_s=60, s3=s3)
    s3.objects.clear()

    def get_object(**_: str) -> dict[str, Any]:
        raise refusal("SlowDown", 503)

    s3.get_object = get_object  # type: ignore[method-assign]
    lease._renew()  # type: ignore[attr-defined]
    lease.check()
    lease._renewed -= 61  # type: ignore[attr-defined]
    with pytest.raises(Halt, match="could not be renewed"):
        lease.check()
    lease.let_go()


@pytest.mark.parametrize("repeated", [True, False], ids=["boto3 repeats it", "the error reaches us"])
@pytest.mark.parametrize("after_another", [True, False])
def test_a_driver_that_never_heard_that_it_took_the_lease_has_it(repeated: bool, after_another: bool) -> None:
    s3 = FakeS3()
    if after_another:
        hold(FOLDER, wait_s=0, s3=s3).let_go()
    real = s3.put_object

    def put_object(**request: Any) -> dict[str, str]:
        s3.put_object = real  # type: ignore[method-assign]
        s3.drop_answers = 1
        with pytest.raises(ClientError):
            real(**request)
        if repeated:
            return real(**request)
        raise refusal("RequestTimeout", 500)

    s3.put_object = put_object  # type: ignore[method-assign]
    lease = hold(FOLDER, wait_s=0, s3=s3)
    lease._renew()  # type: ignore[attr-defined]
    lease.check()
    lease.let_go()


def test_it_renews_itself(monkeypatch: pytest.MonkeyPatch) -> None:
    s3 = FakeS3()
    lease = hold(FOLDER, wait_s=0, lasts_s=0.15, s3=s3)
    until = time.monotonic() + 10
    while s3.writes < 3 and time.monotonic() < until:
        time.sleep(0.01)
    assert s3.writes >= 3
    lease.let_go()


def test_a_folder_is_free_when_its_driver_is_dead_and_not_before(tmp_path: Path) -> None:
    code = (
        "import sys, time; from forebay.lake.lease import hold; lease = hold(sys.argv[1], wait_s=0);"
        "print('held', flush=True); time.sleep(60)"
    )
    driver = subprocess.Popen([sys.executable, "-c", code, str(tmp_path)], stdout=subprocess.PIPE, text=True)
    assert driver.stdout is not None
    with driver:
        assert driver.stdout.readline() == "held\n"
        try:
            with pytest.raises(Halt, match=f"in use by process {driver.pid}"):
                hold(str(tmp_path), wait_s=0.2)
        finally:
            driver.kill()
        driver.wait()
        mine = hold(str(tmp_path), wait_s=0)
        assert mine.epoch == 2
        mine.let_go()
