"""The arguments of a job: Glue's way of passing them, and what is wrong with them, all at once."""

from __future__ import annotations

import pytest

from forebay.errors import Misdeclared
from forebay.settings import IngestSettings

GOOD = ["--queue_url", "https://sqs/q", "--lake", "s3://lake"]


def test_arguments_are_read_as_glue_passes_them() -> None:
    argv = [*GOOD, "--drain", "--trigger_s", "5", "--JOB_NAME", "x", "--TempDir", "s3://t", "--enable-metrics", "true"]
    settings = IngestSettings.from_argv(argv)
    assert (settings.queue_url, settings.drain, settings.trigger_s) == ("https://sqs/q", True, 5)


def test_both_spellings_and_the_equals_sign_are_understood() -> None:
    settings = IngestSettings.from_argv(["--queue-url=https://sqs/q?a=b", "--lake", "/tmp/lake/", "--drain=false"])
    assert (settings.queue_url, settings.lake, settings.drain) == ("https://sqs/q?a=b", "/tmp/lake", False)


@pytest.mark.parametrize(
    ("argv", "says"),
    [
        ([], "--queue_url: is missing"),
        ([*GOOD, "--trigger_s", "-1"], "--trigger_s: .* greater than or equal to 0; got '-1'"),
        ([*GOOD, "--trigger"], r"--trigger: is unknown \(did you mean --trigger_s\?\)"),
        ([*GOOD, "--wait_s"], "--wait_s: has no value"),
        ([*GOOD, "stray"], "'stray': is not an argument"),
        (["--queue_url", "q", "--lake", "lake"], "--lake: must be s3://bucket"),
        (["--queue_url", "q", "--lake", "s3://"], "--lake: must be s3://bucket"),
        ([*GOOD, "--metrics", "statsd"], "--metrics: .*got 'statsd'"),
    ],
)
def test_a_wrong_argument_is_named(argv: list[str], says: str) -> None:
    with pytest.raises(Misdeclared, match=says):
        IngestSettings.from_argv(argv)


def test_all_wrong_arguments_are_named_at_once() -> None:
    with pytest.raises(Misdeclared) as refused:
        IngestSettings.from_argv(["--lake", "x", "--wait_s", "99", "--qeue_url", "q"])
    assert [problem.where for problem in refused.value.problems] == ["--qeue_url", "--lake", "--queue_url", "--wait_s"]


def test_the_checkpoint_is_in_the_lake_unless_it_is_named() -> None:
    assert IngestSettings.from_argv(GOOD).checkpoint_folder == "s3://lake/_forebay/checkpoints/ingest"
    assert IngestSettings.from_argv([*GOOD, "--checkpoint", "s3://c/x/"]).checkpoint_folder == "s3://c/x"
