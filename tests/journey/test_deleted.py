"""A landed file is deleted, and S3 announces it: with `on_delete = "forget"` its rows leave, and come back with the file.

The bucket has no versions; one with versions is in `test_deployed`.
"""

from __future__ import annotations

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


def announce(told: Story) -> None:
    """From here on, S3 itself tells the queue of each upload and each deletion."""
    sqs = told.twin.client("sqs")
    arn = sqs.get_queue_attributes(QueueUrl=told.queue_url, AttributeNames=["QueueArn"])["Attributes"]["QueueArn"]
    wanted = {"QueueArn": arn, "Events": ["s3:ObjectCreated:*", "s3:ObjectRemoved:*"]}
    told.twin.client("s3").put_bucket_notification_configuration(
        Bucket=told.bucket, NotificationConfiguration={"QueueConfigurations": [wanted]}
    )


def in_queue(told: Story, event_name: str) -> list[str]:
    """The messages of this kind, which stay in the queue."""
    sqs, where = told.twin.client("sqs"), {"QueueUrl": told.queue_url}
    found = sqs.receive_message(**where, MaxNumberOfMessages=10, WaitTimeSeconds=0).get("Messages", [])
    for one in found:
        sqs.change_message_visibility(**where, ReceiptHandle=one["ReceiptHandle"], VisibilityTimeout=0)
    return [one["Body"] for one in found if event_name in one["Body"]]


@pytest.mark.deep
def test_rows_of_a_deleted_file_leave_and_come_back_with_it_and_those_of_others_stay(
    told: Story, tmp_path: Path
) -> None:
    (tmp_path / "service.toml").write_text(DECLARED)
    told.service = str(tmp_path)
    s3, here = told.twin.client("s3"), {"Bucket": told.bucket}
    body = lines([event("alpha", 1), event("beta", 1), "{broken"])
    s3.put_object(**here, Key="in/never-announced.json", Body=body)
    announce(told)
    s3.put_object(**here, Key="in/a.json", Body=body)
    s3.put_object(**here, Key="in/b.json", Body=lines([event("alpha", 2)]))
    assert told.run().differences() == []
    assert (len(told.rows("alpha")), len(told.rows("beta"))) == (2, 1)

    s3.delete_object(**here, Key="in/a.json")
    s3.delete_object(**here, Key="in/never-announced.json")
    notices = in_queue(told, "ObjectRemoved:Delete")
    assert len(notices) == 2
    assert told.run().differences() == []
    assert [row["event_id"] for row in told.rows("alpha")] == ["alpha-2"]
    assert (told.rows("beta"), told.rows("_forebay/quarantine")) == ([], [])
    assert told.waiting() == (0, 0)
    said = ran("where", f"s3://{told.bucket}/in/a.json", "--lake", told.lake)
    assert "superseded" in said

    s3.put_object(**here, Key="in/a.json", Body=body)
    for notice in notices:  # SQS may deliver a message twice
        told.twin.client("sqs").send_message(QueueUrl=told.queue_url, MessageBody=notice)
    assert told.run().differences() == []
    assert sorted(row["event_id"] for row in told.rows("alpha")) == ["alpha-1", "alpha-2"]
    assert (len(told.rows("beta")), len(told.rows("_forebay/quarantine"))) == (1, 1)
