"""Loaded files leave the landing bucket, and nothing else changes: not the rows, the accounts, or what a late notice does."""

from __future__ import annotations

from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from forebay.settings import MaintainSettings, ReconcileSettings
from forebay.upkeep.after_load.job import clear_landed
from forebay.upkeep.maintenance import job
from forebay.upkeep.reconcile.job import reconcile
from tests.journey.story import Story, event, lines
from tests.operate.command import failed, ran

DECLARED = """
name = "studio"
after_load = {{ move = "s3://{archive}/old/" }}
[[tables]]
name = "{{game}}"
"""


def test_loaded_files_move_to_the_archive_and_are_neither_missed_nor_loaded_again(
    told: Story, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    s3, archive = told.twin.client("s3"), f"archive-{told.name}"
    s3.create_bucket(Bucket=archive, CreateBucketConfiguration={"LocationConstraint": told.twin.region})
    (tmp_path / "service.toml").write_text(DECLARED.format(archive=archive))
    told.service = str(tmp_path)
    told.put("a.json", lines([event("alpha", 1), event("alpha", 2)]))
    told.put("bad.json", lines([event("alpha", 3), "{broken"]))
    assert told.run().differences() == []

    def a_week_later(*args: Any, now: Any, **more: Any) -> Any:
        return clear_landed(*args, now=now + timedelta(days=8), **more)

    monkeypatch.setattr(job, "clear_landed", a_week_later)
    settings = MaintainSettings(lake=told.lake, service=told.service, vacuum="none")
    landed = job.maintain(settings, emit=told.events.append).landed
    assert landed is not None
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
    etag = s3.head_object(Bucket=told.bucket, Key="in/a.json")["ETag"]
    told.announce("a.json", 100, etag)
    assert told.run().differences() == []
    assert len(told.rows("alpha")) == 3
