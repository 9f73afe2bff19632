"""`forebay backfill` as it is typed, against S3 and SQS."""

from __future__ import annotations

from pathlib import Path

import boto3

from forebay.declaration.kept.in_force import keep_in_force
from forebay.declaration.loading import load_service, parse_service
from tests.operate.command import failed, given, ran
from tests.operate.ledger import entry, write_ledger

GAMES = 'name = "games"\n[[tables]]\nname = "t"\n'


def test_a_bucket_of_old_files_is_counted_then_announced_then_done(s3: str, tmp_path: Path) -> None:
    client = boto3.client("s3", endpoint_url=s3, region_name="us-east-1")
    client.create_bucket(Bucket="old-drops")
    for n in range(5):
        client.put_object(Bucket="old-drops", Key=f"in/{n}.json", Body=b"{}")
    queue = boto3.client("sqs", endpoint_url=s3, region_name="eu-west-1").create_queue(QueueName="backfill")["QueueUrl"]
    write_ledger(tmp_path, entry("in/other"))
    asked = ("backfill", "s3://old-drops/in/", "--lake", str(tmp_path), "--queue-url", queue)
    keep_in_force(str(tmp_path), parse_service({"service.toml": GAMES}))
    assert ran(*asked, "--dry-run").startswith("5 files, 10 B, would be announced\n")
    assert ran(*asked).startswith("5 files, 10 B, were announced\n")
    status, _, err = given(asked, "")
    assert (status, "an earlier run got as far as 5 files" in err) == (0, True)


def test_older_and_deleted_versions_are_announced_as_the_service_declares(s3: str, tmp_path: Path) -> None:
    client = boto3.client("s3", endpoint_url=s3, region_name="us-east-1")
    client.create_bucket(Bucket="versions")
    client.put_bucket_versioning(Bucket="versions", VersioningConfiguration={"Status": "Enabled"})
    for key in ("in/a", "in/a", "in/b"):
        client.put_object(Bucket="versions", Key=key, Body=b"{}")
    client.delete_object(Bucket="versions", Key="in/b")
    lake, declared = tmp_path / "lake", {name: tmp_path / name for name in ("ignore", "forget")}
    for on_delete, folder in declared.items():
        folder.mkdir()
        (folder / "service.toml").write_text(f'on_delete = "{on_delete}"\n{GAMES}')
    write_ledger(lake)
    asked = ("backfill", "s3://versions/in/", "--lake", str(lake), "--dry-run")
    kept, forgotten = (
        "3 files, 6 B, would be announced\n2 of them were ",
        "2 files, 4 B, would be announced\n1 of them was ",
    )
    unknown = failed(0, *asked)
    assert unknown.startswith(forgotten)
    assert "deleted versions were left out: no job has used this lake yet" in unknown
    assert ran(*asked, "--service", str(declared["ignore"])).startswith(
        f"{kept}overwritten or deleted since; --current leaves these out\n"
    )
    assert ran(*asked, "--current").startswith("1 file, 2 B, would be announced\n3 versions were checked")
    assert ran(*asked, "--service", str(declared["forget"])).startswith(forgotten)
    assert "is not the service of" in failed(2, *asked, "--service", str(declared["forget"]), "--of", "others")
    keep_in_force(str(lake), load_service(str(declared["ignore"])))
    write_ledger(lake, entry("in/other"))
    assert ran(*asked).startswith(kept)


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
