"""Are all files of an hour in? From the files to the answer that a scheduler gets, and the event that starts what follows."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from tests.journey.story import Story, event, lines
from tests.operate.command import failed, ran

DECLARED = """
name = "studio"
[[feeds]]
name = "clicks"
prefix = "in/"
complete = { folder = "in/%Y-%m-%d/%H/", marker = "_DONE" }
[[tables]]
name = "{game}"
"""
HOUR = "2026-11-24/10"


def listen(told: Story) -> str:
    """A queue that gets forebay's events."""
    events, sqs = told.twin.client("events"), told.twin.client("sqs")
    queue_url = sqs.create_queue(QueueName=f"periods-{told.name}")["QueueUrl"]
    arn = sqs.get_queue_attributes(QueueUrl=queue_url, AttributeNames=["QueueArn"])["Attributes"]["QueueArn"]
    pattern = {"source": ["forebay"], "detail": {"lake": [told.lake]}}
    events.put_rule(Name=f"periods-{told.name}", EventPattern=json.dumps(pattern))
    events.put_targets(Rule=f"periods-{told.name}", Targets=[{"Id": "queue", "Arn": arn}])
    return str(queue_url)


def heard(told: Story, queue_url: str) -> list[tuple[str, int, int]]:
    answer = told.twin.client("sqs").receive_message(QueueUrl=queue_url, MaxNumberOfMessages=10)
    said: list[dict[str, Any]] = [json.loads(one["Body"]) for one in answer.get("Messages", [])]
    for one in answer.get("Messages", []):
        told.twin.client("sqs").delete_message(QueueUrl=queue_url, ReceiptHandle=one["ReceiptHandle"])
    return sorted((one["detail-type"], one["detail"]["revision"], one["detail"]["files"]) for one in said)


def test_an_hour_is_complete_when_all_of_its_files_are_in_and_again_after_a_late_one(
    told: Story, tmp_path: Path
) -> None:
    (tmp_path / "service.toml").write_text(DECLARED)
    told.service = str(tmp_path)
    queue_url, s3 = listen(told), told.twin.client("s3")
    asked = ("wait", "clicks", "--until", "2026-11-24T11:00", "--lake", told.lake)
    told.put(f"{HOUR}/a.json", lines([event("alpha", 1), "{broken"]))
    unannounced = s3.put_object(Bucket=told.bucket, Key=f"in/{HOUR}/b.json", Body=b'{"game": "alpha"}')
    told.put(f"{HOUR}/_DONE", b"")
    told.take_in(landing_buckets=told.bucket)
    said = failed(4, *asked)
    assert f"waits for 1 file that is not loaded yet, such as s3://{told.bucket}/in/{HOUR}/b.json" in said
    assert heard(told, queue_url) == []

    told.announce(f"{HOUR}/b.json", 17, unannounced["ETag"])
    told.take_in(landing_buckets=told.bucket)
    assert ran(*asked) == "clicks is complete from 2026-11-24T10:00Z until 2026-11-24T11:00Z\n"
    assert heard(told, queue_url) == [("Period Complete", 1, 2)]

    told.put(f"{HOUR}/late.json", lines([event("alpha", 3)]))
    assert told.run(landing_buckets=told.bucket).differences() == []
    assert ran(*asked) == "clicks is complete from 2026-11-24T10:00Z until 2026-11-24T11:00Z\n"
    assert heard(told, queue_url) == [("Period Complete", 2, 3), ("Period Reopened", 1, 2)]
    (row,) = told.rows("_forebay/complete")
    assert (row["feed"], row["revision"], row["files"], row["rows"], row["refused"]) == ("clicks", 2, 3, 3, 1)
    (rows,) = json.loads("[" + ran("query", "select why, files from complete", "--lake", told.lake, "--json") + "]")
    assert rows == {"why": "", "files": 3}
