"""The walks of docs/disasters.md that take a job: what was lost is put back, or begun anew, and each file is loaded once."""

from __future__ import annotations

from pathlib import Path

import pytest

from forebay.lake.layout import CHECKPOINT
from forebay_local.twin.twin import Twin
from tests.journey.story import Story, event, lines
from tests.operate.command import failed, given


def landed(told: Story, name: str, first: int) -> None:
    told.put(name, lines([event("alpha", first + n) for n in range(2)]))


def keys_below(told: Story, prefix: str) -> list[str]:
    pages = (
        told.twin.client("s3").get_paginator("list_objects_v2").paginate(Bucket=told.twin.lake_bucket, Prefix=prefix)
    )
    return [one["Key"] for page in pages for one in page.get("Contents", ())]


def announced_again(told: Story, name: str) -> None:
    head = told.twin.client("s3").head_object(Bucket=told.bucket, Key=f"in/{name}")
    told.announce(name, head["ContentLength"], head["ETag"], head.get("VersionId"))


def test_a_job_whose_checkpoint_was_lost_loads_nothing_twice_and_goes_on(told: Story) -> None:
    landed(told, "a.json", 0)
    told.run()
    s3 = told.twin.client("s3")
    lost = keys_below(told, f"{told.name}/{CHECKPOINT}")
    assert lost, "there was one"
    for key in lost:
        s3.delete_object(Bucket=told.twin.lake_bucket, Key=key)
    announced_again(told, "a.json")
    landed(told, "b.json", 2)
    sums = told.run()
    assert (sums.rows["alpha"], sums.files) == (4, {"loaded": 2})
    assert sums.apart == ()


@pytest.mark.deep
def test_a_table_that_was_deleted_is_loaded_again_by_a_replay_also_where_new_rows_began_it_anew(told: Story) -> None:
    landed(told, "a.json", 0)
    told.put("b.json", lines([event("alpha", 7), event("beta", 8)]))
    told.run()
    s3 = told.twin.client("s3")
    for key in keys_below(told, f"{told.name}/alpha/"):
        s3.delete_object(Bucket=told.twin.lake_bucket, Key=key)
    lost = "alpha: lost: the ledger counts 3 rows, and there is no Delta log; "
    assert told.accounts().differences()[0].startswith(lost)
    landed(told, "c.json", 2)
    assert told.run().differences() == ["alpha: the ledger says 5 rows, the table has 2; " + such_as(told, a=2, b=1)]
    failed(0, "replay", "--table", "alpha", "--lake", told.lake, "--queue-url", told.queue_url, "--yes")
    sums = told.run()
    assert (sums.rows["alpha"], sums.rows["beta"], sums.differences()) == (5, 1, [])


def such_as(told: Story, **rows: int) -> str:
    files = (f"s3://{told.bucket}/in/{name}.json ({n} in the ledger, 0 in the table)" for name, n in rows.items())
    return f"such as {', '.join(files)}"


@pytest.mark.deep
def test_a_copy_of_a_lake_goes_on_elsewhere_and_knows_what_it_has(told: Story, twin: Twin) -> None:
    """As after the loss of a bucket or a region: the copy, a new checkpoint, and what landed since."""
    landed(told, "a.json", 0)
    told.run()
    s3, before = twin.client("s3"), told.name
    for key in keys_below(told, f"{before}/"):
        if not key.startswith(f"{before}/{CHECKPOINT}"):
            source = {"Bucket": twin.lake_bucket, "Key": key}
            s3.copy_object(Bucket=twin.lake_bucket, Key=key.replace(before, f"{before}-copy", 1), CopySource=source)
    told.place = f"s3://{twin.lake_bucket}/{before}-copy"
    announced_again(told, "a.json")
    landed(told, "b.json", 2)
    sums = told.run()
    assert (sums.rows["alpha"], sums.files) == (4, {"loaded": 2})
    assert sums.apart == ()


@pytest.mark.deep
def test_a_lake_whose_ledger_is_lost_for_good_is_loaded_anew_beside_it(told: Story, twin: Twin) -> None:
    landed(told, "a.json", 0)
    told.run()
    landed(told, "b.json", 2)
    told.place = f"s3://{twin.lake_bucket}/{told.name}-anew"
    for name in ("a.json", "b.json"):
        announced_again(told, name)
    sums = told.run()
    assert (sums.rows["alpha"], sums.files) == (4, {"loaded": 2})


PRIVATE = """
name = "studio"
[privacy]
subject = "event_id"
secret = "{place}/secret"
[[tables]]
name = "{{game}}"
columns = [{{ name = "event_id" }}]
"""


@pytest.mark.deep
def test_a_lake_that_is_gone_is_loaded_again_from_the_landed_files_without_the_people_that_were_erased(
    told: Story, tmp_path: Path
) -> None:
    told.declare_private(PRIVATE, tmp_path)
    landed(told, "a.json", 0)
    landed(told, "b.json", 2)
    told.run()
    at = ("--lake", told.lake)
    assert given(("privacy", "erase", "alpha-0", "--service", told.service, *at, "--yes"), "")[0] == 0
    for key in keys_below(told, f"{told.name}/"):
        if "/_forebay/erased/" not in key and "/_forebay/tokens/" not in key:
            told.twin.client("s3").delete_object(Bucket=told.twin.lake_bucket, Key=key)
    assert given(("backfill", f"s3://{told.bucket}/in/", *at, "--queue-url", told.queue_url), "")[0] == 0
    sums = told.run()
    assert (sums.files, sums.differences()) == ({"loaded": 2}, [])
    assert sorted(row["event_id"] for row in told.rows("alpha")) == ["alpha-1", "alpha-2", "alpha-3"]
