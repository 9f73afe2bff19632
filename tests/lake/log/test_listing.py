"""Names and moments of commits, as every reader of a log has them."""

from __future__ import annotations

import os
from datetime import UTC, datetime
from pathlib import Path

from forebay.lake.log.listing import commit_name, committed_at, version_of_commit
from forebay.lake.objects import open_objects


def test_a_commit_is_found_by_its_version_and_its_moment_is_in_utc(tmp_path: Path) -> None:
    assert version_of_commit(commit_name(7)) == 7
    commit = tmp_path / commit_name(7)
    commit.parent.mkdir()
    commit.write_text("{}")
    os.utime(commit, (1_000_000_000, 1_000_000_000))
    at = committed_at(open_objects(str(tmp_path)), 7)
    assert (at, at and at.tzinfo) == (datetime.fromtimestamp(1_000_000_000, UTC), UTC)
    assert committed_at(open_objects(str(tmp_path)), 8) is None
