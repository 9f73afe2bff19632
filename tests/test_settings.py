"""The arguments of a job: Glue's way of passing them, and what is wrong with them, all at once."""

from __future__ import annotations

import json
from contextlib import nullcontext
from pathlib import Path

import pytest

from forebay.errors import InvalidConfiguration
from forebay.jobs.journal import journal
from forebay.settings import CompactSettings, IngestSettings, MaintainSettings, ReconcileSettings

GOOD = ["--queue_url", "https://sqs/q", "--lake", "s3://lake"]


def test_arguments_are_read_as_glue_passes_them() -> None:
    argv = [*GOOD, "--drain", "--trigger_s", "5", "--JOB_NAME", "x", "--TempDir", "s3://t", "--enable-metrics", "true"]
    settings = IngestSettings.from_argv(argv)
    assert (settings.queue_url, settings.drain, settings.trigger_s) == ("https://sqs/q", True, 5)


@pytest.mark.parametrize(
    ("landing", "refused"), [("drops,lake", True), ("lake", True), ("drops", False), ("", False), ("a-lake", False)]
)
def test_a_lake_in_a_landing_bucket_is_refused(landing: str, refused: bool) -> None:
    """S3 would announce every data file of a batch, and the next batch would load it."""
    with pytest.raises(InvalidConfiguration, match="where the lake is") if refused else nullcontext():
        IngestSettings.from_argv([*GOOD, "--landing_buckets", landing])


@pytest.mark.parametrize(
    ("lake", "refused"),
    [
        ("s3://drops/in/lake", True),
        ("s3://drops/in", True),
        ("s3://drops", True),
        ("s3://drops/lake", False),
        ("s3://lake/in", False),
    ],
)
def test_a_search_for_missed_files_never_looks_into_the_lake(lake: str, refused: bool) -> None:
    with pytest.raises(InvalidConfiguration, match="must not overlap") if refused else nullcontext():
        ReconcileSettings.from_argv(["--queue_url", "q", "--lake", lake, "--landing", "s3://more/x/,s3://drops/in/"])


def test_both_spellings_and_the_equals_sign_are_understood() -> None:
    settings = IngestSettings.from_argv(["--queue-url=https://sqs/q?a=b", "--lake", "/tmp/lake/", "--drain=false"])
    assert (settings.queue_url, settings.lake, settings.drain) == ("https://sqs/q?a=b", "/tmp/lake", False)


def test_a_lake_may_be_a_folder_that_is_relative_to_the_current_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "here").mkdir()
    monkeypatch.chdir(tmp_path / "here")
    for text, lake in (("./lake/", "here/lake"), ("../lake", "lake"), (".", "here"), ("./..", ".")):
        assert IngestSettings.from_argv(["--queue_url", "q", "--lake", text]).lake == str(tmp_path / lake)


@pytest.mark.parametrize(
    ("argv", "says"),
    [
        ([], "--queue_url: is missing"),
        ([*GOOD, "--trigger_s", "-1"], "--trigger_s: must be at least 0; got '-1'"),
        ([*GOOD, "--trigger"], r"--trigger: is unknown \(did you mean --trigger_s\?\)"),
        ([*GOOD, "--wait_s"], "--wait_s: has no value"),
        ([*GOOD, "--custom-metrics", "x", "--metric", "none"], r"--metric: is unknown \(did you mean --metrics\?\)"),
        (["--queue_url", "q", "--lake", "lake"], r"--lake: is not a folder here \(write s3://lake for a bucket"),
        (["--queue_url", "q", "--lake", ".lake"], "--lake: is not a folder here"),
        (["--queue_url", "q", "--lake", "s3://"], "--lake: is not the address of a lake"),
        (["--queue_url", "q", "--lake", "s3n://lake"], "--lake: is not the address of a lake"),
        (["--queue_url", "q", "--lake", "/lakes/100%25"], "--lake: has '%25' in its name"),
        ([*GOOD, "--metrics", "statsd"], "--metrics: .*got 'statsd'"),
    ],
)
def test_a_wrong_argument_is_named(argv: list[str], says: str) -> None:
    with pytest.raises(InvalidConfiguration, match=says):
        IngestSettings.from_argv(argv)


OF_GLUE = """
additional-python-modules auto-scale-within-microbatch class conf custom-logGroup-prefix custom-logStream-prefix
datalake-formats disable-proxy-v2 enable-auto-scaling enable-continuous-cloudwatch-log enable-glue-datacatalog
enable-job-insights enable-lakeformation-fine-grained-access enable-metrics enable-observability-metrics
enable-s3-parquet-optimized-committer enable-spark-ui encryption-type executor-cores extra-files extra-jars extra-py-files
job-bookmark-option job-language python-modules-installer-option python-virtual-env python-virtual-env-storage-prefix
scriptLocation spark-event-logs-path TempDir user-jars-first write-shuffle-files-to-s3 JOB_NAME JOB_RUN_ID
"""


def test_no_argument_of_glue_stops_a_job_with_a_value_or_without() -> None:
    for cls, own in ((IngestSettings, GOOD), (CompactSettings, GOOD[2:]), (MaintainSettings, GOOD[2:])):
        for name in OF_GLUE.split():
            for argv in ([*own, f"--{name}", "true"], [f"--{name}", *own]):
                assert cls.from_argv(argv).model_dump() == cls.from_argv(own).model_dump(), argv


def test_an_argument_that_nobody_knows_is_passed_over_and_named_in_an_event(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    new = ["--from-aws-in-2027", "on", "stray", "--python-modules-installer-option", "--no-index"]
    settings = IngestSettings.from_argv([*GOOD[:2], "--lake", str(tmp_path), *new])
    assert settings.passed_over == ("from_aws_in_2027", "stray"), (
        "and what the stack itself passes to pip is no surprise"
    )
    with journal(settings):
        pass
    said = json.loads(capsys.readouterr().err)
    assert (said["event"], said["level"]) == ("ArgumentsPassedOver", "warning")
    assert said["arguments"] == ["--from_aws_in_2027", "--stray"]


def test_all_wrong_arguments_are_named_at_once() -> None:
    with pytest.raises(InvalidConfiguration) as refused:
        IngestSettings.from_argv(["--lake", "x", "--wait_s", "99", "--qeue_url", "q"])
    assert [problem.where for problem in refused.value.problems] == ["--qeue_url", "--lake", "--queue_url", "--wait_s"]


def test_the_checkpoint_is_in_the_lake_unless_it_is_named() -> None:
    assert IngestSettings.from_argv(GOOD).checkpoint_folder == "s3://lake/_forebay/checkpoints/ingest"
    assert IngestSettings.from_argv([*GOOD, "--checkpoint", "s3://c/x/"]).checkpoint_folder == "s3://c/x"
