"""Who works on the lake, and how a job that is gone is relieved."""

from __future__ import annotations

import json
import re
from dataclasses import replace
from pathlib import Path

import pytest

from forebay.errors import Halt
from forebay.lake import lease
from forebay.lake.lease import hold, renewed_lately
from tests.operate.command import failed, ran

LAKE = "s3://studio-lake/leases"


def test_the_lease_of_a_job_that_is_gone_is_broken_and_the_next_one_takes_it(s3: str) -> None:
    gone = hold(f"{LAKE}/_forebay/checkpoints/ingest", wait_s=0)
    assert "holds its lease, number 1" in ran("lease", "show", "--lake", LAKE)
    assert "nothing was done" in failed(1, "lease", "break", "--lake", LAKE, typed="n\n")
    assert "has ended; the next job may take it" in failed(0, "lease", "break", "--lake", LAKE, "--yes")
    assert "no job holds a lease" in failed(0, "lease", "break", "--lake", LAKE, "--yes")
    following = hold(f"{LAKE}/_forebay/checkpoints/ingest", wait_s=0)
    told = json.loads(ran("lease", "show", "--lake", LAKE, "--json"))
    assert told["holder"]["epoch"] == following.epoch == 2
    # The one that was thought gone finds out before it marks a batch as done, also before it renews its lease.
    with pytest.raises(Halt, match="was lost"):
        gone.check()
    for one in (gone, following):
        one.let_go()


def test_whoever_breaks_the_lease_of_a_job_that_lives_is_warned(s3: str, monkeypatch: pytest.MonkeyPatch) -> None:
    place = f"{LAKE}/_forebay/writers/warned"
    lives = hold(place, wait_s=0)
    command = ("lease", "break", "--lake", LAKE, "--of", "warned")
    said = failed(1, *command, typed="n\n")
    warning = r"renewed its lease \d s ago, so it runs or has just ended\. To end a running job, use `forebay stop`"
    assert re.search(warning, said)
    assert renewed_lately(place) is not None
    lives.let_go()
    assert renewed_lately(place) is None
    gone = hold(place, wait_s=0, lasts_s=60)
    real = lease.look
    later = {"age_s": 21.0}  # one renewal was missed
    monkeypatch.setattr(lease, "look", lambda *where: (there := real(*where)) and replace(there, **later))
    assert "renewed" not in failed(1, *command, typed="n\n")
    gone.let_go()


def test_a_job_whose_lease_was_broken_halts_at_once_also_before_another_one_comes(s3: str) -> None:
    lives = hold(f"{LAKE}/_forebay/writers/halts", wait_s=0)
    lives.check()
    failed(0, "lease", "break", "--lake", LAKE, "--of", "halts", "--yes")
    with pytest.raises(Halt, match="was lost: somebody ended it"):
        lives.check()
    lives.let_go()


def test_a_tables_lease_is_another_one(s3: str) -> None:
    held = hold(f"{LAKE}/_forebay/maintenance/alpha", wait_s=0)
    hold(f"{LAKE}/_forebay/maintenance/beta", wait_s=0).let_go()
    assert "no job holds its lease" in ran("lease", "show", "--lake", LAKE, "--table", "beta")
    assert "holds its lease" in ran("lease", "show", "--lake", LAKE, "--table", "alpha")
    held.let_go()


def test_both_leases_of_an_ingest_job_that_is_gone_are_shown_and_broken(s3: str) -> None:
    lake = "s3://studio-lake/writers"
    places = [f"{lake}/_forebay/checkpoints/ingest", f"{lake}/_forebay/writers/studio"]
    gone = [hold(place, wait_s=0) for place in places]
    told = [json.loads(line) for line in ran("lease", "show", "--lake", lake, "--json").splitlines()]
    assert [one["lease"] for one in told if one["holder"]] == places
    assert failed(0, "lease", "break", "--lake", lake, "--yes").count("has ended") == 2
    for one in (*gone, *(hold(place, wait_s=0) for place in places)):
        one.let_go()


def test_of_two_services_jobs_only_the_one_that_is_gone_loses_its_lease(
    s3: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    lake = "s3://studio-lake/two-services"
    gone = hold(f"{lake}/_forebay/writers/studio", wait_s=0)
    monkeypatch.setattr("socket.gethostname", lambda: "another-machine")
    lives = hold(f"{lake}/_forebay/writers/casual", wait_s=0)
    said = failed(2, "lease", "break", "--lake", lake, "--yes")
    assert "writers/studio" in said
    assert "name one with --of" in said
    assert "has ended" in failed(0, "lease", "break", "--lake", lake, "--of", "studio", "--yes")
    lives.check()
    assert "no job holds its lease" in ran("lease", "show", "--lake", lake, "--of", "studio")
    assert "holds its lease" in ran("lease", "show", "--lake", lake, "--of", "casual")
    for one in (gone, lives):
        one.let_go()


def test_a_lock_in_a_folder_cannot_be_broken_while_its_process_lives(tmp_path: Path) -> None:
    held = hold(str(tmp_path / "_forebay" / "checkpoints" / "ingest"), wait_s=0)
    said = failed(2, "lease", "break", "--lake", str(tmp_path), "--yes")
    assert "end the process: its lock ends with it" in said
    held.let_go()
