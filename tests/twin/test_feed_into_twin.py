"""What the feed drops into the twin is announced, put for put, and the account holds for what the queue says."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from pathlib import Path
from typing import Any
from urllib.parse import unquote_plus

from forebay_local.fabricate import Message
from forebay_local.feed import Recipe, drop, plan, send_messages
from forebay_local.twin.twin import Twin
from tests.operate.command import failed, ran


def announced(twin: Twin) -> list[dict[str, Any]]:
    sqs = twin.client("sqs")
    found: list[dict[str, Any]] = []
    while got := sqs.receive_message(QueueUrl=twin.queue_url, MaxNumberOfMessages=10, WaitTimeSeconds=0).get(
        "Messages", []
    ):
        for message in got:
            found += [record["s3"]["object"] for record in json.loads(message["Body"])["Records"]]
            sqs.delete_message(QueueUrl=twin.queue_url, ReceiptHandle=message["ReceiptHandle"])
    return found


def test_every_put_is_announced_and_every_version_is_there(twin: Twin) -> None:
    recipe = Recipe(datetime(2026, 11, 21, 13, tzinfo=UTC), files=60, games=4, mean_records=20, seed=11)
    s3 = twin.client("s3")
    dropped = drop(s3, twin.landing_bucket, plan(recipe))
    assert dropped.different < len(dropped.versions) == dropped.files  # the bucket is versioned

    said = announced(twin)
    assert len(said) == dropped.files
    assert {(unquote_plus(about["key"]), about["versionId"], about["size"]) for about in said} == {
        (file.key, file.version_id, file.size) for file in dropped.versions
    }
    for file in dropped.versions[:10]:
        assert s3.head_object(Bucket=file.bucket, Key=file.key)["ContentLength"] == file.size

    again = drop(s3, twin.landing_bucket, plan(recipe))
    assert (again.tally, again.different) == (dropped.tally, dropped.different)  # the same bytes under the same keys


def test_messages_by_hand_come_off_the_queue_beside_the_others(twin: Twin) -> None:
    assert send_messages(twin.client("sqs"), twin.queue_url, [Message(f"junk {n}") for n in range(12)]) == 12
    seen = set()
    while (
        got := twin.client("sqs")
        .receive_message(QueueUrl=twin.queue_url, MaxNumberOfMessages=10, WaitTimeSeconds=0)
        .get("Messages")
    ):
        seen |= {message["Body"] for message in got}
    assert seen == {f"junk {n}" for n in range(12)}


def test_files_of_ones_own_land_below_the_prefix_and_are_announced(twin: Twin, tmp_path: Path) -> None:
    (tmp_path / "day").mkdir()
    (tmp_path / "a.json").write_text('{"n": 1}')
    (tmp_path / "day" / "b.json").write_text('{"n": 2}')
    put = ("local", "put", "--state", str(twin.state))
    said = ran(*put, str(tmp_path)).splitlines()
    assert said[:2] == [f"s3://{twin.landing_bucket}/in/{name}" for name in ("a.json", "day/b.json")]
    for below in ("mine/", "own/10"):
        ran(*put, str(tmp_path / "a.json"), "--below", below)
    keys = ["in/a.json", "in/day/b.json", "in/mine/a.json", "in/own/10/a.json"]
    assert sorted(about["key"] for about in announced(twin)) == keys
    assert "nowhere: does not exist" in failed(2, *put, str(tmp_path / "nowhere"))
    (tmp_path / "empty").mkdir()
    assert "empty: holds no file" in failed(2, *put, str(tmp_path / "a.json"), str(tmp_path / "empty"))
    assert announced(twin) == []


def test_samples_that_are_laid_out_for_try_land_under_the_keys_that_it_read(twin: Twin, tmp_path: Path) -> None:
    (tmp_path / "in" / "clicks").mkdir(parents=True)
    (tmp_path / "in" / "clicks" / "a.json").write_text('{"n": 1}')
    said = ran("local", "put", "--state", str(twin.state), str(tmp_path))
    assert said.splitlines()[0] == f"s3://{twin.landing_bucket}/in/clicks/a.json"
    assert [about["key"] for about in announced(twin)] == ["in/clicks/a.json"]
