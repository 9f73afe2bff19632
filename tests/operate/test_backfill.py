"""`forebay backfill` as it is typed, against S3 and SQS."""

from __future__ import annotations

from pathlib import Path

import boto3

from tests.operate.command import failed, given, ran
from tests.operate.ledger import write_ledger


def test_a_bucket_of_old_files_is_counted_then_announced_then_done(s3: str, tmp_path: Path) -> None:
    client = boto3.client("s3", endpoint_url=s3, region_name="us-east-1")
    client.create_bucket(Bucket="old-drops")
    for n in range(5):
        client.put_object(Bucket="old-drops", Key=f"in/{n}.json", Body=b"{}")
    queue = boto3.client("sqs", endpoint_url=s3, region_name="eu-west-1").create_queue(QueueName="backfill")["QueueUrl"]
    write_ledger(tmp_path)
    asked = ("backfill", "s3://old-drops/in/", "--lake", str(tmp_path), "--queue-url", queue)
    assert ran(*asked, "--dry-run").startswith("5 files, 10 B, would be announced\n")
    assert ran(*asked).startswith("5 files, 10 B, were announced\n")
    status, _, err = given(asked, "")
    assert (status, "an earlier run got as far as 5 files" in err) == (0, True)


def test_wrong_use_is_told_before_anything_is_listed(s3: str, tmp_path: Path) -> None:
    lake = ("--lake", str(tmp_path))
    assert "is not an S3 address" in failed(2, "backfill", "in/", *lake, "--dry-run")
    assert "backfill: --queue-url is missing" in failed(2, "backfill", "s3://old-drops/in/", *lake)
    assert "there is no bucket odl-drops" in failed(2, "backfill", "s3://odl-drops/in/", *lake, "--dry-run")
    for place in ("s3://studio-lake/", "s3://studio-lake/games/alpha/"):
        said = failed(2, "backfill", place, "--lake", "s3://studio-lake/games", "--dry-run")
        assert "overlaps with the lake s3://studio-lake/games, whose own files would be loaded" in " ".join(
            said.split()
        )
