"""Loaded files leave the landing bucket, and nothing else changes: not the rows, the accounts, or what a late notice does."""

from __future__ import annotations

from pathlib import Path

import pytest

from forebay.settings import MaintainSettings, ReconcileSettings
from forebay.upkeep.after_load.job import Cleared
from forebay.upkeep.maintenance.job import maintain
from forebay.upkeep.reconcile.job import reconcile
from tests.journey.story import Story, event, lines
from tests.operate.command import failed, ran

DECLARED = """
name = "studio"
after_load = {{ move = "s3://{archive}/old/", after_days = 0 }}
[[tables]]
name = "{{game}}"
"""


def declare_archive(told: Story, folder: Path) -> str:
    archive = f"archive-{told.name}"
    where = {"LocationConstraint": told.twin.region}
    told.twin.client("s3").create_bucket(Bucket=archive, CreateBucketConfiguration=where)
    (folder / "service.toml").write_text(DECLARED.format(archive=archive))
    told.service = str(folder)
    return archive


def move_loaded(told: Story) -> Cleared:
    settings = MaintainSettings(lake=told.lake, service=told.service, vacuum="none")
    landed = maintain(settings, emit=told.events.append).landed
    assert landed is not None
    return landed


def test_loaded_files_move_to_the_archive_and_are_neither_missed_nor_loaded_again(told: Story, tmp_path: Path) -> None:
    s3, archive = told.twin.client("s3"), declare_archive(told, tmp_path)
    told.put("a.json", lines([event("alpha", 1), event("alpha", 2)]))
    told.put("bad.json", lines([event("alpha", 3), "{broken"]))
    assert told.run().differences() == []
    etag = s3.head_object(Bucket=told.bucket, Key="in/a.json")["ETag"]
    landed = move_loaded(told)
    assert (dict(landed.actions), landed.waiting, landed.left) == ({"moved": 1}, 1, {})

    def keys(bucket: str) -> list[str]:
        return [one["Key"] for one in s3.list_objects_v2(Bucket=bucket).get("Contents", ())]

    assert keys(told.bucket) == ["in/bad.json"]  # a replay may need it
    (key,) = keys(archive)
    assert s3.get_object(Bucket=archive, Key=key)["Body"].read() == lines([event("alpha", 1), event("alpha", 2)])

    said = ran("where", f"s3://{told.bucket}/in/a.json", "--lake", told.lake)
    assert f"to s3://{archive}/{key}" in said
    warned = failed(0, "replay", "--file", f"s3://{told.bucket}/in/a.json", "--dry-run", "--lake", told.lake)
    assert f"was moved to s3://{archive}/{key}" in warned

    found = reconcile(
        ReconcileSettings(
            lake=told.lake,
            service=told.service,
            landing=f"s3://{told.bucket}/in/",
            queue_url=told.queue_url,
            settle_hours=0,
        ),
        emit=told.events.append,
    )
    assert found.missed == ()
    s3.copy_object(CopySource={"Bucket": archive, "Key": key}, Bucket=told.bucket, Key="in/a.json")
    told.announce("a.json", 100, etag)
    assert told.run().differences() == []
    assert len(told.rows("alpha")) == 3


@pytest.mark.deep
def test_a_replay_reads_the_copy_of_a_moved_file_also_beside_a_later_object_of_its_key(
    told: Story, tmp_path: Path
) -> None:
    archive = declare_archive(told, tmp_path)
    told.put("a.json", lines([event("alpha", 1), event("alpha", 2)]))
    told.take_in()
    move_loaded(told)
    told.put("a.json", lines([event("alpha", 3)]))
    told.take_in()
    before = {row["_file_id"]: row["_batch"] for row in told.rows("alpha")}
    file = ("--file", f"s3://{told.bucket}/in/a.json", "--lake", told.lake)
    said = failed(0, "replay", *file, "--queue-url", told.queue_url, "--yes")
    assert f"was moved to s3://{archive}/old/{told.bucket}/in/" in said
    assert "Such a file is read from there" in said
    assert told.run().differences() == []
    assert sorted(row["event_id"] for row in told.rows("alpha")) == ["alpha-1", "alpha-2", "alpha-3"]
    after = {row["_file_id"]: row["_batch"] for row in told.rows("alpha")}
    assert after.keys() == before.keys()
    assert min(after.values()) > max(before.values()), "every row was read again"
    shown = ran("where", "alpha-1", "--row", "alpha", "--by", "event_id", "--text", *file[2:])
    assert '"event_id": "alpha-1"' in shown

    # The lake is gone, and begins again from what is in the landing bucket and in the archive.
    told.place = f"s3://{told.twin.lake_bucket}/{told.name}-again"
    s3 = told.twin.client("s3")
    for copy in s3.list_objects_v2(Bucket=archive)["Contents"]:
        key = copy["Key"].removeprefix(f"old/{told.bucket}/")
        s3.copy_object(CopySource={"Bucket": archive, "Key": copy["Key"]}, Bucket=told.bucket, Key=key)
    for one in s3.list_objects_v2(Bucket=told.bucket)["Contents"]:
        told.announce(one["Key"].removeprefix("in/"), one["Size"], one["ETag"])
    assert told.run().differences() == []
    assert sorted(row["event_id"] for row in told.rows("alpha")) == ["alpha-1", "alpha-2", "alpha-3"]
