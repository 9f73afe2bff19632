"""Expectations on the whole way: each row ends where its declaration says, and every number adds up."""

from __future__ import annotations

from pathlib import Path

from forebay.batch.events import ExpectationFailed, ExpectationViolated
from forebay.operate.lake_view import LakeView
from forebay.operate.looking.quality import quality_of
from tests.journey.story import Story, event, lines

SERVICE = """
name = "studio"
[[tables]]
name = "{game}"
columns = [{ name = "level", type = "long" }, { name = "event_id" }]
[tables.expectations]
known = "level is not null"
positive = { check = "level >= 0", on_violation = "drop" }
possible = { check = "level <= 100", on_violation = "quarantine", fail_above_percent = 60 }
"""


def test_violations_are_counted_dropped_or_quarantined_and_a_table_with_too_many_fails(
    told: Story, tmp_path: Path
) -> None:
    (tmp_path / "service.toml").write_text(SERVICE)
    told.service = str(tmp_path)
    alpha = [event("alpha", n, level=level) for n, level in enumerate([1, 2, -1, 101, None, 100])]
    beta = [event("beta", n, level=level) for n, level in enumerate([1, 101, 102, -5])]
    gamma = [event("gamma", n, level=level) for n, level in enumerate([101, 102, 3, 500])]
    told.put("a.json", lines([*alpha, *beta, *gamma]))

    sums = told.run()

    assert sums.differences() == []
    assert (sums.records, sums.written, sums.quarantined, sums.dropped) == (14, 5, 7, 2)
    # Of gamma three of four are impossible: its fourth is kept beside as well.
    assert sums.rows == {"alpha": 4, "beta": 1, "_forebay/quarantine": 7, "_forebay/parked": 0}
    kept = told.rows("_forebay/quarantine", 'select "table", reason, detail from t')
    assert sorted((row["table"], row["reason"], str(row["detail"])) for row in kept) == [
        ("alpha", "expectation", "possible"),
        *[("beta", "expectation", "possible")] * 2,
        *[("gamma", "expectation", "possible")] * 3,
        ("gamma", "expectation-failed", "None"),
    ]
    quality = told.rows("_forebay/quality", 'select "table", expectation, rows, violated, failed from t')
    assert {(q["table"], q["expectation"]): (q["rows"], q["violated"], q["failed"]) for q in quality} == {
        ("alpha", "known"): (6, 1, False),
        ("alpha", "positive"): (6, 1, False),
        ("alpha", "possible"): (6, 1, False),
        ("beta", "known"): (4, 0, False),
        ("beta", "positive"): (4, 1, False),
        ("beta", "possible"): (4, 2, False),
        ("gamma", "known"): (4, 0, False),
        ("gamma", "positive"): (4, 0, False),
        ("gamma", "possible"): (4, 3, True),
    }
    assert [(q.expectation, q.violated, q.failed) for q in quality_of(LakeView(told.lake), "gamma")] == [
        ("possible", 3, 1),
        ("known", 0, 0),
        ("positive", 0, 0),
    ]
    assert [e.table for e in told.events if isinstance(e, ExpectationFailed)] == ["gamma"]
    assert sum(isinstance(e, ExpectationViolated) for e in told.events) == 5
