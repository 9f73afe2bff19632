"""Very many tables in one batch, and every kind of duplicate."""

from __future__ import annotations

from pathlib import Path

import pytest

from forebay.landed_file import LandedFile
from forebay_local.fabricate import Wrapping, body
from tests.journey.story import Story, event, lines


@pytest.mark.deep
def test_three_hundred_tables_in_one_batch_each_get_their_rows(told: Story, tmp_path: Path) -> None:
    told.place = f"file://{tmp_path}/lake"
    games = [f"game_{n:04}" for n in range(300)]
    for part in range(4):
        told.put(f"first-{part}.json", lines(event(game, part) for game in games))
    sums = told.run()
    assert sums.differences() == []
    assert sums.rows == {**dict.fromkeys(games, 4), "_forebay/quarantine": 0, "_forebay/parked": 0}
    told.put("second.json", lines(event(game, 9) for game in games[::25]))
    sums = told.run()
    assert sums.differences() == []
    assert {game for game, rows in sums.rows.items() if rows == 5} == set(games[::25])
    assert sums.records == 4 * 300 + 12


@pytest.mark.deep
def test_every_kind_of_duplicate_is_loaded_once(told: Story) -> None:
    content = lines([event("alpha", n) for n in range(4)])
    told.put("a.json", content)
    etag = told.twin.client("s3").head_object(Bucket=told.bucket, Key="in/a.json")["ETag"].strip('"')
    file = LandedFile(told.bucket, "in/a.json", len(content), etag)
    sqs = told.twin.client("sqs")

    def say(text: str) -> None:
        sqs.send_message(QueueUrl=told.queue_url, MessageBody=text)

    say(body([file]))  # S3 announces at least once
    say(body([file, file]))  # and what forwards it may put it twice into one message
    for shape in Wrapping:
        say(body([file], shape))  # by another way, as when a topic and a bus both lead here
    say(body([file], event="ObjectCreated:Copy"))
    assert told.run().rows["alpha"] == 4

    say(body([file]))  # long after
    told.put("a.json", content)  # the same bytes put again
    told.put("b.json", content)  # the same bytes under another key are another file
    sums = told.run()
    assert sums.differences() == []
    assert sums.rows["alpha"] == 8
    assert sums.files == {"loaded": 2}
    assert told.waiting() == (0, 0)
