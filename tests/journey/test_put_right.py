"""An operator puts things right: a bad release, a paused table, files that were lost, poisoned or dead. All sums hold."""

from __future__ import annotations

import json
from importlib import resources
from pathlib import Path

import pytest

from forebay.landed_file import LandedFile
from forebay.operate.lake_view import LakeView
from forebay_local.fabricate import body
from tests.journey.story import Story, event, lines
from tests.operate.command import failed, given, ran

GOOD = """
name = "studio"
[[tables]]
name = "{game}"
columns = [{ name = "level", type = "long" }]
"""
BAD = GOOD.replace('"level", type', '"level", path = "no.such.field", type')


def levels(told: Story, table: str) -> list[object]:
    return sorted(row["level"] for row in told.rows(table, "select level from t"))


@pytest.mark.deep
def test_a_bad_release_is_taken_back_and_its_files_are_read_again(told: Story, tmp_path: Path) -> None:
    told.service = str(tmp_path)
    declared = tmp_path / "service.toml"
    declared.write_text(GOOD)
    told.put("1.json", lines([event("alpha", n, level=n) for n in range(3)]))
    told.run()
    before = LakeView(told.lake).facts("alpha")
    assert before is not None

    declared.write_text(BAD)
    for number in (2, 3):
        told.put(f"{number}.json", lines([event("alpha", n, level=n) for n in range(number * 10, number * 10 + 2)]))
    assert told.run().differences() == []
    assert len(told.rows("alpha")) == 7
    assert len([row for row in told.rows("alpha") if row["level"] is None]) == 4

    to = ("--to", str(before.version), "--and-replay", "--yes", "--queue-url", told.queue_url)
    status, out, _ = given(("rollback", "alpha", *to, "--lake", told.lake), "")
    assert (status, "4 rows left, 0 came" in out) == (0, True)
    assert (levels(told, "alpha"), told.accounts().differences()) == ([0, 1, 2], [])

    declared.write_text(GOOD)
    assert told.run().differences() == []
    assert levels(told, "alpha") == [0, 1, 2, 20, 21, 30, 31]
    assert told.accounts().files == {"loaded": 3}


@pytest.mark.deep
def test_a_paused_table_catches_up_and_what_is_replayed_or_forgotten_is_doubled_nowhere(
    told: Story, tmp_path: Path
) -> None:
    told.service = str(tmp_path)
    (tmp_path / "service.toml").write_text(GOOD)
    lake = ("--lake", told.lake)
    told.put("1.json", lines([event(game, n, level=n) for game in ("alpha", "beta") for n in range(2)]))
    told.run()
    ran("pause", "alpha", *lake)
    told.put("2.json", lines([event(game, n, level=n) for game in ("alpha", "beta") for n in (5, 6)]))
    sums = told.run()
    assert (sums.differences(), sums.quarantined, sums.rows["alpha"], sums.rows["beta"]) == ([], 2, 2, 4)
    said = ran("resume", "alpha", *lake, "--service", told.service)
    assert "2 rows wait" in said
    assert (levels(told, "alpha"), told.accounts().differences()) == ([0, 1, 5, 6], [])

    first, second = (f"s3://{told.bucket}/in/{number}.json" for number in (1, 2))
    to = (*lake, "--queue-url", told.queue_url)
    for command in (("replay", "--file", first, "--yes"), ("files", "forget", second, "--yes")):
        assert given((*command, *to), "")[0] == 0
    sums = told.run()
    assert (sums.differences(), sums.files, sums.quarantined) == ([], {"loaded": 1, "forgotten": 1}, 0)
    assert "1 file (1 moved here from an earlier batch), 4 records" in ran("history", *lake)
    assert levels(told, "alpha") == levels(told, "beta") == [0, 1]

    assert given(("files", "retry", "--forgotten", "--key", "*/2.json", *to), "")[0] == 0
    sums = told.run()
    assert (sums.differences(), sums.files, sums.quarantined) == ([], {"loaded": 2}, 0)
    assert levels(told, "alpha") == levels(told, "beta") == [0, 1, 5, 6]


@pytest.mark.deep
def test_a_lost_notification_a_poisoned_file_and_a_dead_letter_are_put_right(told: Story) -> None:
    s3, sqs, at = told.twin.client("s3"), told.twin.client("sqs"), ("--lake", told.lake, "--queue-url", told.queue_url)

    def land(name: str, games: int) -> LandedFile:
        content = lines([event("alpha", n) for n in range(games)])
        etag = s3.put_object(Bucket=told.bucket, Key=f"in/{name}", Body=content)["ETag"]
        return LandedFile(told.bucket, f"in/{name}", len(content), etag.strip('"'))

    told.announce_files(land("1.json", 1))
    told.run()
    land("lost.json", 2)
    example = str(resources.files("forebay.declaration") / "example" / "service.toml")  # other services share the lake
    said = ran("find-missed", "--landing", f"s3://{told.bucket}/in/", "--settle-hours", "0", "--service", example, *at)
    assert "2 files checked: 1 missed, and announced now" in said

    ran("files", "skip", f"s3://{told.bucket}/in/deadly.json", "--lake", told.lake)
    told.announce_files(land("deadly.json", 3))
    sums = told.run()
    assert (sums.files, sums.rows["alpha"], sums.differences()) == ({"loaded": 2, "skipped": 1}, 3, [])

    told.announce_files(land("deadly.json", 4))  # mended
    assert "1 file announced" in ran("files", "retry", "--skipped", *at)
    dead = sqs.create_queue(QueueName=f"dead-{told.name}")["QueueUrl"]
    arn = sqs.get_queue_attributes(QueueUrl=dead, AttributeNames=["QueueArn"])["Attributes"]["QueueArn"]
    policy = json.dumps({"deadLetterTargetArn": arn, "maxReceiveCount": 5})
    sqs.set_queue_attributes(QueueUrl=told.queue_url, Attributes={"RedrivePolicy": policy})
    sqs.send_message(QueueUrl=dead, MessageBody=body([land("dead.json", 5)]))
    assert "redrive it once the cause is fixed" in failed(1, "queue", "dlq", "--json", *at)
    assert "sent back: 1 of 1 dead letter" in ran("queue", "redrive", "--all", "--yes", *at)
    sums = told.run()
    assert (sums.files["loaded"], sums.rows["alpha"], sums.differences()) == (4, 1 + 2 + 4 + 5, [])
