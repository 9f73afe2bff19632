"""Which file ends its readers, found by halving. The readers are plain functions here."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from forebay.batch.accounting import entries_of
from forebay.batch.poison import MOST, MOST_ALONE, Apart, poison_end, read_apart
from forebay.errors import Halt
from forebay.landed_file import LandedFile

CRASH = """An error occurred while calling o87.collectToPython.
: org.apache.spark.SparkException: Job aborted due to stage failure: Task 3 in stage 8.0 failed 4 times, most recent failure: \
Lost task 3.3 in stage 8.0 (TID 41) (10.0.0.7 executor 2): org.apache.spark.SparkException: Python worker exited unexpectedly \
(crashed). Consider setting 'spark.sql.execution.pyspark.udf.faulthandler.enabled' for the better Python traceback.
\tat org.apache.spark.api.python.BasePythonRunner$ReaderIterator$$anonfun$1.applyOrElse(PythonRunner.scala:696)
Caused by: java.io.EOFException
"""
PYTHON = """Job aborted due to stage failure: Task 0 in stage 1.0 failed 4 times, most recent failure: Lost task 0.3 in stage \
1.0 (TID 3) (10.0.0.7 executor 2): org.apache.spark.api.python.PythonException: Traceback (most recent call last):
  File "/opt/forebay/content/splitting/split.py", line 7, in split
    raise {raised}
{raised}

\tat org.apache.spark.api.python.BasePythonRunner$ReaderIterator.handlePythonException(PythonRunner.scala:581)
Driver stacktrace:
\tat java.base/java.lang.Thread.run(Thread.java:840)
"""


class TaskFailed(Exception):
    """What PySpark raises has this text, and other classes."""


def files(count: int) -> list[LandedFile]:
    return [LandedFile("landing", f"{n}.json", 10, f"etag-{n}") for n in range(count)]


class Cluster:
    """Reads files, but for those that kill its workers."""

    def __init__(self, poison: Collection[LandedFile], said: str = CRASH) -> None:
        self.poison, self.said = poison, said
        self.readings: list[Sequence[LandedFile]] = []

    def __call__(self, some: Sequence[LandedFile]) -> tuple[LandedFile, ...]:
        self.readings.append(some)
        if any(file in self.poison for file in some):
            raise TaskFailed(self.said)
        return tuple(some)


def landed(apart: Apart[tuple[LandedFile, ...]]) -> list[LandedFile]:
    return [file for part in apart.parts for file in part]


@settings(max_examples=60)
@given(st.integers(MOST_ALONE + 1, 200), st.data())
def test_poison_is_isolated_all_others_are_read_once_and_the_attempts_are_bounded(
    count: int, data: st.DataObject
) -> None:
    some = files(count)
    poison = data.draw(st.lists(st.sampled_from(some), max_size=min(MOST, count - 1), unique=True))
    cluster = Cluster(poison)
    found = read_apart(some, cluster)
    assert set(found.poison) == set(poison)
    assert sorted(landed(found), key=lambda f: f.key) == sorted(set(some) - set(poison), key=lambda f: f.key)
    assert len(cluster.readings) <= 1 + len(poison) * (2 * count.bit_length() + 1)


def test_a_batch_that_can_be_read_is_read_once() -> None:
    some, cluster = files(8), Cluster([])
    assert read_apart(some, cluster) == Apart([tuple(some)], {})
    assert len(cluster.readings) == 1


def test_a_file_that_is_alone_in_its_batch_is_blamed_if_a_worker_without_it_lives() -> None:
    (file,) = files(1)
    cluster = Cluster([file])
    found = read_apart([file], cluster)
    assert list(found.poison) == [file]
    assert cluster.readings == [[file], [file], []]


def test_a_worker_that_was_lost_once_blames_nobody() -> None:
    some, lost = files(4), [TaskFailed(CRASH)]

    def read(chosen: Sequence[LandedFile]) -> tuple[LandedFile, ...]:
        if lost:
            raise lost.pop()
        return tuple(chosen)

    found = read_apart(some, read)
    assert (sorted(landed(found), key=str), found.poison) == (sorted(some, key=str), {})


def test_where_there_is_another_way_to_read_all_files_are_read_that_way_before_one_is_blamed() -> None:
    some, first, careful = files(8), Cluster(files(8)), Cluster([])
    assert read_apart(some, first, careful) == Apart([tuple(some)], {})
    assert (first.readings, careful.readings) == ([some], [some])
    still = Cluster(some[:1])
    assert list(read_apart(some, Cluster(some), still).poison) == some[:1]
    with pytest.raises(Halt):
        read_apart(some, raises(Halt("the credentials are gone")), careful)


def test_files_that_are_too_much_together_are_read_apart() -> None:
    def read(chosen: Sequence[LandedFile]) -> tuple[LandedFile, ...]:
        if len(chosen) > 3:
            raise TaskFailed(CRASH)
        return tuple(chosen)

    some = files(10)
    found = read_apart(some, read)
    assert (landed(found), found.poison) == (some, {})


def sick(some: Sequence[LandedFile]) -> None:
    raise TaskFailed(f"{CRASH}{len(some)} files")


@pytest.mark.parametrize("count", [1, MOST_ALONE, MOST_ALONE + 1, 1000])
def test_a_sick_cluster_quarantines_nothing_and_says_what_it_said_first(count: int) -> None:
    with pytest.raises(TaskFailed, match=f"{count} files"):
        read_apart(files(count), sick)


def test_many_files_of_which_none_can_be_read_are_not_to_blame_although_workers_live() -> None:
    some = files(MOST_ALONE + 1)
    with pytest.raises(TaskFailed):
        read_apart(some, Cluster(some))


def test_more_poison_than_is_believable_is_a_fault_of_ours() -> None:
    some = files(100)
    cluster = Cluster(some[: MOST + 1])
    with pytest.raises(TaskFailed):
        read_apart(some, cluster)
    assert len(cluster.readings) < 100


def raises(failure: Exception) -> Callable[[Sequence[LandedFile]], None]:
    def read(some: Sequence[LandedFile]) -> None:
        calls.append(some)
        raise failure

    calls: list[Sequence[LandedFile]] = []
    read.calls = calls  # type: ignore[attr-defined]
    return read


@pytest.mark.parametrize(
    "failure",
    [
        Halt("2 pieces were read, but 1 end came back"),
        TaskFailed("SparkContext was shut down"),
        TaskFailed("Job 12 cancelled as part of cancellation of all jobs"),
        TaskFailed("[UNRESOLVED_COLUMN] A column cannot be resolved"),
        TaskFailed(PYTHON.format(raised="botocore.exceptions.ClientError: An error occurred (ExpiredToken)")),
        TaskFailed(PYTHON.format(raised="botocore.exceptions.NoCredentialsError: Unable to locate credentials")),
        TaskFailed(PYTHON.format(raised="forebay.errors.InvalidConfiguration: tasks: 'x' is not a whole number")),
    ],
    ids=str,
)
def test_what_is_wrong_with_us_ends_the_batch_at_once(failure: Exception) -> None:
    read = raises(failure)
    with pytest.raises(type(failure)) as raised:
        read_apart(files(3), read)
    assert raised.value is failure
    assert len(read.calls) == 1  # type: ignore[attr-defined]


def test_credentials_that_end_in_the_middle_of_the_search_blame_no_file() -> None:
    some = files(4)
    expired = PYTHON.format(raised="botocore.exceptions.ClientError: An error occurred (ExpiredToken)")
    said = iter([CRASH, CRASH, expired])

    def read(chosen: Sequence[LandedFile]) -> None:
        raise TaskFailed(next(said))

    with pytest.raises(TaskFailed, match="ExpiredToken"):
        read_apart(some, read)


@pytest.mark.parametrize(
    ("said", "shown"),
    [
        (CRASH, "Python worker exited unexpectedly (crashed)"),
        (PYTHON.format(raised="RecursionError: maximum recursion depth exceeded"), "RecursionError: maximum recursion"),
    ],
)
def test_the_ledger_says_of_a_poison_file_how_its_reading_ended(said: str, shown: str) -> None:
    (file,) = files(1)
    (entry,) = entries_of([poison_end(file, TaskFailed(said))], [])
    assert (entry.outcome, entry.reason, entry.records) == ("unreadable", "poison", 0)
    assert entry.detail is not None
    assert shown in entry.detail
    assert "\n" not in entry.detail


def test_the_ledger_keeps_no_text_of_an_error_where_a_service_declares_personal_data() -> None:
    """An error of Python often quotes the value that it could not take."""
    (file,) = files(1)
    said = PYTHON.format(raised="ValueError: invalid literal for int() with base 10: 'anna@example.org'")
    (entry,) = entries_of([poison_end(file, TaskFailed(said), private=True)], [])
    assert entry.detail == "the task ended twice while it read this file alone: ValueError (the job's log has its text)"
    (entry,) = entries_of([poison_end(file, TaskFailed(CRASH), private=True)], [])
    assert "Python worker exited unexpectedly" in str(entry.detail)
