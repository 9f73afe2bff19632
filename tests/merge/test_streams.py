"""Whoever copies a state with the block of docs/query.md: the copy equals the state, whatever changes it."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.batch.downstream import read_block, values_of
from tests.merge.story import GROWING, Story


@pytest.mark.deep
def test_a_copy_follows_a_state_through_late_changes_deletes_and_corrections(story: Story, tmp_path: Path) -> None:
    state, copy = f"{story.lake}/players", f"{tmp_path}/copy"
    story.bring()
    computed = []
    for events in (
        [],
        [story.bring, story.replace_one],
        [story.forget_one],
        [story.bring, story.bring, story.roll_back],
        [lambda: setattr(story, "declared", GROWING)],
    ):
        for happens in events:
            happens()
        computed.append(bool(story.merge().recomputed))
        read_block(story.spark, state, copy, ("id", "world"))
        assert values_of(copy) == values_of(state), story.said
    assert computed == [True, False, False, False, True]
