"""A landed file is deleted, and S3 announces it: with `on_delete = "forget"` its rows leave, and come back with the file."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.journey.story import Story, event, lines
from tests.operate.command import ran

DECLARED = """
name = "studio"
on_delete = "forget"
[[tables]]
name = "{game}"
"""


def delete(told: Story, name: str, sequencer: str) -> None:
    """As a producer does, and S3 announces."""
    told.twin.client("s3").delete_object(Bucket=told.bucket, Key=f"in/{name}")
    s3 = {"bucket": {"name": told.bucket}, "object": {"key": f"in/{name}", "sequencer": sequencer}}
    removed = {"eventVersion": "2.1", "eventSource": "aws:s3", "eventName": "ObjectRemoved:Delete", "s3": s3}
    removed["eventTime"] = "2100-01-01T00:00:00.000Z"
    told.twin.client("sqs").send_message(QueueUrl=told.queue_url, MessageBody=json.dumps({"Records": [removed]}))


@pytest.mark.deep
def test_rows_of_a_deleted_file_leave_and_those_of_others_stay(told: Story, tmp_path: Path) -> None:
    (tmp_path / "service.toml").write_text(DECLARED)
    told.service = str(tmp_path)
    told.put("a.json", lines([event("alpha", 1), event("beta", 1), "{broken"]))
    told.put("b.json", lines([event("alpha", 2)]))
    assert told.run().differences() == []
    assert (len(told.rows("alpha")), len(told.rows("beta"))) == (2, 1)

    delete(told, "a.json", "FF")
    delete(told, "never-landed.json", "FF")
    assert told.run().differences() == []
    assert [row["event_id"] for row in told.rows("alpha")] == ["alpha-2"]
    assert (told.rows("beta"), told.rows("_forebay/quarantine")) == ([], [])
    assert told.waiting() == (0, 0)
    said = ran("where", f"s3://{told.bucket}/in/a.json", "--lake", told.lake)
    assert "superseded" in said
