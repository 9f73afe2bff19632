"""What S3 answers to a commit is not always what became of it. The log store asks the object; Delta then does right."""

from __future__ import annotations

import pytest

from forebay.spark.session import LOG_STORE
from tests.fault_proxy import Action, after, answered, drop_answer, drop_request
from tests.logstore.conftest import Bucket, DriverProcess, Failed

# One worker for all of them: they share three JVMs.
pytestmark = pytest.mark.jvm

COMMITS = r"_delta_log/\d+\.json$"
REFUSED, UNKNOWN = f"{LOG_STORE}$CommitRefused", f"{LOG_STORE}$CommitUnknown"
ALREADY_THERE = "java.nio.file.FileAlreadyExistsException"


@pytest.mark.deep
def test_a_commit_whose_answer_is_lost_is_made_once(bucket: Bucket, driver: DriverProcess) -> None:
    driver.ask("configure", settings=bucket.through_proxy)
    table = f"{bucket.lake}/table"
    driver.ask("append", table=table, times=1, writer="before")
    lost = bucket.proxy.on("PUT", COMMITS, then=drop_answer)

    driver.ask("append", table=table, times=1, writer="ours")

    assert lost.taken == 1
    # S3A repeated the PUT by itself, and was told that the object exists.
    assert bucket.proxy.statuses["PUT", 412] >= 1
    assert driver.ask("state", table=table) == {"rows": 20, "distinct": 20, "commits": 2, "transactions": 2}


@pytest.mark.deep
def test_a_commit_whose_answer_is_lost_for_good_is_found_and_made_once(bucket: Bucket, driver: DriverProcess) -> None:
    driver.ask("configure", settings=bucket.through_proxy | bucket.impatient())
    table = f"{bucket.lake}/table"
    driver.ask("append", table=table, times=1, writer="before")
    lost = bucket.proxy.on("PUT", COMMITS, then=drop_answer, times=None)

    driver.ask("append", table=table, times=1, writer="ours")

    assert lost.taken >= 1
    assert driver.ask("state", table=table) == {"rows": 20, "distinct": 20, "commits": 2, "transactions": 2}


@pytest.mark.deep
@pytest.mark.parametrize(
    ("fault", "times"),
    [
        pytest.param(answered(409, "ConditionalRequestConflict"), 2, id="409 twice"),
        pytest.param(answered(503, "SlowDown"), 2, id="503 twice"),
        pytest.param(answered(500, "InternalError"), 2, id="500 twice"),
        pytest.param(drop_request, 2, id="connection lost before S3 heard"),
    ],
)
def test_a_commit_that_s3_did_not_take_is_tried_again(
    bucket: Bucket, driver: DriverProcess, fault: Action, times: int
) -> None:
    driver.ask("configure", settings=bucket.through_proxy)
    rule = bucket.proxy.on("PUT", COMMITS, then=fault, times=times)

    driver.ask("append", table=f"{bucket.lake}/table", times=1, writer="ours")

    assert rule.taken == times
    state = driver.ask("state", table=f"{bucket.lake}/table")
    assert state == {"rows": 10, "distinct": 10, "commits": 1, "transactions": 1}


@pytest.mark.deep
def test_a_version_that_another_driver_took_first_is_followed_by_ours(
    bucket: Bucket, drivers: list[DriverProcess]
) -> None:
    ours, anothers = drivers[:2]
    ours.ask("configure", settings=bucket.through_proxy)
    table = f"{bucket.lake}/table"
    ours.ask("append", table=table, times=1, writer="before")
    overtaken = bucket.proxy.on(
        "PUT", COMMITS, then=after(lambda _: anothers.ask("append", table=table, times=1, writer="another"))
    )

    ours.ask("append", table=table, times=1, writer="ours")

    assert overtaken.taken == 1
    # More than one where the machine was so slow that S3A lost its patience and asked again.
    assert bucket.proxy.statuses["PUT", 412] >= 1
    assert ours.ask("state", table=table) == {"rows": 30, "distinct": 30, "commits": 3, "transactions": 3}


def test_other_bytes_at_the_path_are_another_writers(bucket: Bucket, driver: DriverProcess) -> None:
    path = f"{bucket.lake}/_delta_log/00000000000000000000.json"
    driver.ask("write", path=path, lines=["theirs"])

    with pytest.raises(Failed) as failed:
        driver.ask("write", path=path, lines=["theirs", "and more"])

    assert failed.value.classes[0] == ALREADY_THERE
    assert driver.ask("read", path=path) == ["theirs"]


def test_the_same_bytes_at_the_path_are_our_own_earlier_attempt(bucket: Bucket, driver: DriverProcess) -> None:
    path = f"{bucket.lake}/_delta_log/00000000000000000000.json"
    driver.ask("write", path=path, lines=["the same", "é\u2028"])
    driver.ask("write", path=path, lines=["the same", "é\u2028"])
    assert driver.ask("read", path=path) == ["the same", "é\u2028"]


def test_what_may_be_overwritten_is(bucket: Bucket, driver: DriverProcess) -> None:
    path = f"{bucket.lake}/_delta_log/_last_checkpoint"
    driver.ask("write", path=path, lines=["old"], overwrite=True)
    driver.ask("write", path=path, lines=["new"], overwrite=True)
    assert driver.ask("read", path=path) == ["new"]


def test_a_commit_costs_one_request(bucket: Bucket, driver: DriverProcess) -> None:
    driver.ask("configure", settings=bucket.through_proxy)
    driver.ask("write", path=f"{bucket.lake}/_delta_log/00000000000000000000.json", lines=["first"])
    bucket.proxy.forget()
    driver.ask("write", path=f"{bucket.lake}/_delta_log/00000000000000000001.json", lines=["second"])
    assert bucket.proxy.counts == {"PUT": 1}


@pytest.mark.deep
@pytest.mark.parametrize(
    ("fault", "attempts", "error"),
    [
        pytest.param(drop_request, 3, UNKNOWN, id="no answer"),
        pytest.param(answered(503, "SlowDown"), 3, UNKNOWN, id="503"),
        pytest.param(answered(409, "ConditionalRequestConflict"), 12, UNKNOWN, id="409"),
        pytest.param(answered(403, "AccessDenied"), 1, REFUSED, id="403 is no use to repeat"),
        pytest.param(answered(501, "NotImplemented"), 1, REFUSED, id="501 neither"),
    ],
)
def test_a_store_that_never_takes_it_ends_in_its_own_error_and_not_in_a_lost_race(
    bucket: Bucket, driver: DriverProcess, fault: Action, attempts: int, error: str
) -> None:
    driver.ask("configure", settings=bucket.through_proxy | bucket.impatient())
    rule = bucket.proxy.on("PUT", COMMITS, then=fault, times=None)

    with pytest.raises(Failed) as failed:
        driver.ask("write", path=f"{bucket.lake}/_delta_log/00000000000000000000.json", lines=["never"])

    assert failed.value.classes[0] == error
    assert ALREADY_THERE not in failed.value.classes
    assert rule.taken == attempts


@pytest.mark.parametrize("patience", ["the SDK repeats", "we repeat"])
def test_a_refusal_after_a_request_without_an_answer_leaves_the_commit_unknown(
    bucket: Bucket, driver: DriverProcess, patience: str
) -> None:
    """The first request may still arrive; the refusal speaks of the second one only."""
    impatient = bucket.impatient() if patience == "we repeat" else {}
    driver.ask("configure", settings=bucket.through_proxy | impatient)
    bucket.proxy.on("PUT", COMMITS, then=drop_request)
    bucket.proxy.on("PUT", COMMITS, then=answered(403, "AccessDenied"), times=None)

    with pytest.raises(Failed) as failed:
        driver.ask("write", path=f"{bucket.lake}/_delta_log/00000000000000000000.json", lines=["never"])

    assert failed.value.classes[0] == UNKNOWN


def test_an_object_that_exists_but_cannot_be_read_is_not_taken_for_a_lost_race(
    bucket: Bucket, driver: DriverProcess
) -> None:
    """It may be our own: saying "another's" would make Delta commit the same files once more."""
    driver.ask("configure", settings=bucket.through_proxy | bucket.impatient())
    path = f"{bucket.lake}/_delta_log/00000000000000000000.json"
    driver.ask("write", path=path, lines=["there"])
    for method in ("GET", "HEAD"):
        bucket.proxy.on(method, COMMITS, then=answered(403, "AccessDenied"), times=None)

    with pytest.raises(Failed) as failed:
        driver.ask("write", path=path, lines=["ours"])

    assert failed.value.classes[:2] == [UNKNOWN, "org.apache.hadoop.fs.s3a.RemoteFileChangedException"]


def test_a_long_commit_is_one_conditional_multipart_upload(bucket: Bucket, driver: DriverProcess) -> None:
    own = f"fs.s3a.bucket.{bucket.name}"
    driver.ask("configure", settings=bucket.through_proxy | {f"{own}.multipart.size": "5M", f"{own}.block.size": "5M"})
    path = f"{bucket.lake}/_delta_log/00000000000000000000.json"
    lines = [str(i % 10) * 1000 for i in range(7000)]
    lost = bucket.proxy.on("POST", r"uploadId", then=drop_answer)

    driver.ask("write", path=path, lines=lines)
    with pytest.raises(Failed) as failed:
        driver.ask("write", path=path, lines=[*lines, "more"])

    assert lost.taken == 1
    assert failed.value.classes[0] == ALREADY_THERE
    assert len(driver.ask("read", path=path)) == 7000
