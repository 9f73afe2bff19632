"""Who works on the lake, and how a job that is gone is relieved."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from forebay.errors import Halt
from forebay.lake.lease import hold
from tests.operate.command import failed, ran

LAKE = "s3://studio-lake/leases"


def test_the_lease_of_a_job_that_is_gone_is_broken_and_the_next_one_takes_it(s3: str) -> None:
    gone = hold(f"{LAKE}/_forebay/checkpoints/ingest", wait_s=0)
    assert "holds it, as number 1" in ran("lease", "show", "--lake", LAKE)
    assert "Aborted" in failed(1, "lease", "break", "--lake", LAKE, typed="n\n")
    assert "has ended; the next job may take it" in ran("lease", "break", "--lake", LAKE, "--yes")
    assert "nobody holds it" in ran("lease", "break", "--lake", LAKE, "--yes")
    following = hold(f"{LAKE}/_forebay/checkpoints/ingest", wait_s=0)
    told = json.loads(ran("lease", "show", "--lake", LAKE, "--json"))
    assert told["holder"]["epoch"] == following.epoch == 2
    # The one that was thought gone finds out before it marks a batch as done.
    gone._renew()  # type: ignore[attr-defined]
    with pytest.raises(Halt, match="was lost"):
        gone.check()
    following.let_go()


def test_a_tables_lease_is_another_one(s3: str) -> None:
    held = hold(f"{LAKE}/_forebay/maintenance/alpha", wait_s=0)
    assert "nobody holds it" in ran("lease", "show", "--lake", LAKE, "--table", "beta")
    assert "holds it" in ran("lease", "show", "--lake", LAKE, "--table", "alpha")
    held.let_go()


def test_a_lock_in_a_folder_cannot_be_broken_while_its_process_lives(tmp_path: Path) -> None:
    held = hold(str(tmp_path / "_forebay" / "checkpoints" / "ingest"), wait_s=0)
    said = failed(2, "lease", "break", "--lake", str(tmp_path), "--yes")
    assert "end the process: the lock goes with it" in said
    held.let_go()
