"""The main story: files in S3 become rows in Delta tables, and every number adds up."""

from __future__ import annotations

from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from forebay.batch.events import BatchCommitted, BatchReadTwice
from forebay.batch.retrying.plan import Choice
from forebay.batch.retrying.retry import Retry
from forebay.declaration.loading import load_service
from tests.journey.story import Story, event, lines

ODD = [
    '{"game": "../x"}',
    '{"game": "alpha"},{"game": "alpha"}',
    '{"game": "alpha"}}',
    '{"game": "alpha", "player": "a text where an object is declared"}',
]


@pytest.mark.usefixtures("compiled")
def test_nothing_is_dropped_silently(told: Story) -> None:
    told.put("a.json", lines([*(event("alpha", n) for n in range(5)), "{broken", '{"event": "no game"}', "", *ODD]))
    told.put("b.json.gz", lines([event("beta", n, player={"id": "p", "level": n}) for n in range(3)], gz=True))
    told.put("empty.json", b"")
    told.put("torn.json.gz", lines([event("alpha", 9)] * 100, gz=True)[:-20])
    told.put("picture.json", b"\x89PNG\r\n\x1a\n" + bytes(range(256)) * 4)
    told.announce("gone.json", 10, "0" * 32)

    sums = told.run()

    assert [event.why for event in told.events if isinstance(event, BatchReadTwice)] == []
    assert sums.differences() == []
    assert sums.files == {"loaded": 2, "empty": 1, "missing": 1, "unreadable": 2}
    assert (sums.records, sums.written, sums.quarantined, sums.parked) == (14, 9, 4, 1)
    assert sums.rows == {"alpha": 6, "beta": 3, "_forebay/quarantine": 4, "_forebay/parked": 1}
    assert told.waiting() == (0, 0)
    quarantined = told.rows(
        "_forebay/quarantine", "select reason, line, record from t where line is not null order by line"
    )
    assert [(q["reason"], q["line"]) for q in quarantined] == [
        ("not-json", 6),
        ("bad-table-name", 9),
        ("several-documents", 10),
        ("not-json", 11),
    ]
    assert quarantined[0]["record"].strip() == "{broken"
    levels = told.rows("beta", "select level, country, player, game from t order by level")
    assert [row["level"] for row in levels] == [0, 1, 2]
    assert all((row["country"], row["player"], row["game"]) == (None, {"id": "p"}, "beta") for row in levels)
    # Nobody has seen an object there yet, so it is a column of text.
    (odd,) = told.rows("alpha", "select player from t where player is not null")
    assert odd["player"] == "a text where an object is declared"


def test_a_file_announced_twice_is_loaded_once(told: Story) -> None:
    body = lines([event("alpha", n) for n in range(4)])
    told.put("a.json", body)
    told.announce("a.json", len(body), _etag(told, "a.json"))
    told.run()
    told.announce("a.json", len(body), _etag(told, "a.json"))
    sums = told.run()
    assert sums.rows["alpha"] == 4
    assert sums.files == {"loaded": 1}
    assert told.waiting() == (0, 0)


@pytest.mark.deep
@pytest.mark.parametrize("versioned", [True, False])
def test_on_a_bucket_with_a_key_the_same_bytes_are_a_duplicate_and_others_are_loaded(
    told: Story, versioned: bool
) -> None:
    """Each put has an etag of its own there, in the twin as in S3."""
    s3, rule = told.twin.client("s3"), {"ApplyServerSideEncryptionByDefault": {"SSEAlgorithm": "aws:kms"}}
    s3.put_bucket_encryption(Bucket=told.bucket, ServerSideEncryptionConfiguration={"Rules": [rule]})
    if versioned:
        s3.put_bucket_versioning(Bucket=told.bucket, VersioningConfiguration={"Status": "Enabled"})
    told.put("a.json", lines([event("alpha", 1)]))
    told.run()
    told.put("a.json", lines([event("alpha", 1)]))
    told.run()
    told.put("a.json", lines([event("alpha", 2), event("alpha", 3)]))
    sums = told.run()
    assert sums.rows["alpha"] == 3
    assert sums.files == {"loaded": 2, "duplicate": 1}
    assert sums.differences() == []


@pytest.mark.deep
def test_a_stopped_job_goes_on_where_it_was(told: Story) -> None:
    for number in range(6):
        told.put(f"{number}.json", lines([event("alpha", number)]))
    told.run(max_files_per_batch=2)
    told.put("late.json", lines([event("alpha", 99)]))
    sums = told.run()
    assert (sums.rows["alpha"], sums.files) == (7, {"loaded": 7})
    batches = [e.batch for e in told.events if isinstance(e, BatchCommitted)]
    assert batches == sorted(set(batches))


@pytest.mark.deep
@pytest.mark.usefixtures("compiled")
def test_own_declarations_route_and_shape_the_rows(told: Story, tmp_path: Path) -> None:
    (tmp_path / "service.toml").write_text(
        """
        name = "studio"
        [[tables]]
        name = "purchases"
        where = { event = "purchase" }
        columns = [
          { name = "price", type = "double", path = "purchase.price" },
          { name = "at", type = "timestamp", path = "ts" },
        ]
        [[tables]]
        name = "{game}_events"
        """
    )
    told.service = str(tmp_path)
    told.put(
        "a.json",
        lines(
            [
                {"game": "alpha", "event": "purchase", "purchase": {"price": 1.5}, "ts": "2026-11-21T10:00:00Z"},
                {"game": "alpha", "event": "purchase", "purchase": {"price": "free"}},
                {"game": "alpha", "event": "tick"},
                {"game": "Beta!", "event": "tick"},
                {"event": "tick"},
            ]
        ),
    )
    sums = told.run()
    assert sums.differences() == []
    assert sums.rows == {"purchases": 2, "alpha_events": 1, "_forebay/quarantine": 1, "_forebay/parked": 1}
    assert sorted(row["price"] or 0 for row in told.rows("purchases")) == [0, 1.5]


@pytest.mark.deep
def test_what_the_key_says_routes_and_becomes_a_column(told: Story, tmp_path: Path) -> None:
    (tmp_path / "service.toml").write_text(
        """
        name = "studio"
        [envelope]
        key = "in/{game}/{day}/"
        [[tables]]
        name = "{@key.game}_events"
        columns = [{ name = "day", type = "date", path = "@key.day" }, { name = "event" }]
        """
    )
    told.service = str(tmp_path)
    told.put("alpha/2026-11-20/a.json", lines([{"event": "tick"}, {"event": "tock", "game": "not this one"}]))
    told.put("beta/soon/a.json", lines([{"event": "tick"}]))
    told.put("Gamma!/2026-11-20/a.json", lines([{"event": "tick"}]))
    told.put("nowhere.json", lines([{"event": "tick"}]))
    sums = told.run()
    assert sums.differences() == []
    assert sums.rows == {"alpha_events": 2, "beta_events": 1, "_forebay/quarantine": 1, "_forebay/parked": 1}
    assert {str(row["day"]) for row in told.rows("alpha_events")} == {"2026-11-20"}
    assert told.rows("beta_events")[0]["day"] is None


@pytest.mark.deep
def test_what_an_object_was_put_with_routes_and_becomes_a_column_also_at_another_try(
    told: Story, spark: SparkSession, tmp_path: Path
) -> None:
    declared = """
        name = "studio"
        [[tables]]
        name = "{@metadata.game}_events"
        columns = [{ name = "build", type = "int", path = "@metadata.client-build" }, { name = "event" }]
        """
    (tmp_path / "service.toml").write_text(declared)
    told.service = str(tmp_path)
    told.put("a.json", lines([{"event": "tick"}, {"event": "tock"}]), Metadata={"Game": "alpha", "Client-Build": "17"})
    told.put("b.json", lines([{"event": "tick"}]), Metadata={"game": "beta"})
    told.put("c.json", lines([{"event": "tick"}]), Metadata={"game": "Gamma!"})
    told.put("d.json", lines([{"event": "tick"}]), Metadata={"studio": "north"})
    sums = told.run()
    assert sums.differences() == []
    assert sums.rows == {"alpha_events": 2, "beta_events": 1, "_forebay/quarantine": 1, "_forebay/parked": 1}
    assert {row["build"] for row in told.rows("alpha_events")} == {17}
    assert told.rows("beta_events")[0]["build"] is None

    more = '[[tables]]\nname = "of_{@metadata.studio}"\ncolumns = [{ name = "studio", path = "@metadata.studio" }]'
    (tmp_path / "service.toml").write_text(declared + more)
    tries = Retry(spark, load_service(told.service), lake=told.lake, emit=told.events.append)
    assert tries.run(Choice("parked")).tables == {"of_north": 1}
    assert told.rows("of_north")[0]["studio"] == "north"


def _etag(told: Story, name: str) -> str:
    return str(told.twin.client("s3").head_object(Bucket=told.bucket, Key=f"in/{name}")["ETag"])
