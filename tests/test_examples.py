"""The declarations in examples/ take the samples beside them: nothing is refused or rescued, each table is as it should be."""

from __future__ import annotations

import inspect
import json
import textwrap
from pathlib import Path

import pytest

from forebay.declaration.loading import load_service
from forebay.operate.trying.samples import read_samples
from forebay.operate.trying.trial import Trial, try_out
from tests.source.notebook import NOTEBOOK

EXAMPLES = Path(__file__).resolve().parents[1] / "examples"

ROWS = {
    "amplitude-export": {"purchases": 2, "events": 4},
    "cloudtrail": {"denied": 1, "events": 5},
    "cloudwatch-logs": {"log_lines": 6},
    "current-state": {"player_changes": 3, "purchase_changes": 4},
    "daily-snapshot": {"product_days": 6},
    "debezium": {"order_changes": 4},
    "debezium-mysql": {"order_changes": 5},
    "dimension": {"profile_changes": 5, "purchases": 5},
    "elastic-common-schema": {"errors": 2, "logs": 2},
    "csv-export": {"orders": 5},
    "eventbridge-archive": {"matches": 2, "others": 2},
    "gold-rollup": {"sessions": 4, "level_ups": 5, "purchase_changes": 5},
    "github-webhooks": {"pull_requests": 2, "issues": 2, "pushes": 1},
    "one-bucket-many-games": {"alpha_events": 2, "beta_events": 2},
    "python-step": {"orders": 3},
    "sdk-batches": {"move_events": 6, "purchase_events": 6},
    "several-feeds": {"alpha_events": 2, "audit": 2, "invoices": 2},
    "segment": {"identify_calls": 2, "page_calls": 2, "track_calls": 2},
    "shop-orders": {"orders": 3, "order_lines": 3},
    "snowplow-enriched": {"events": 6},
    "stripe-webhooks": {"invoices": 4, "others": 2},
    "warehouse-unload": {"players": 10},
}
PARKED = {"cloudwatch-logs": 1}
"""A control message."""
DUPLICATES = {"segment": 1, "stripe-webhooks": 1}
"""Sent again, as it was not acknowledged."""


def tried(name: str) -> Trial:
    service = load_service(str(EXAMPLES / name))
    return try_out(service, read_samples([str(EXAMPLES / name / "samples")], service))


def test_every_example_is_tried() -> None:
    assert sorted(folder.name for folder in EXAMPLES.iterdir() if folder.is_dir()) == sorted(ROWS)


@pytest.mark.parametrize("name", ROWS)
def test_an_example_takes_its_samples(name: str) -> None:
    trial = tried(name)
    assert {table.name: table.rows for table in trial.tables} == ROWS[name]
    assert (len(trial.parked), trial.refused, trial.is_clean) == (PARKED.get(name, 0), (), True)
    assert sum(len(table.duplicates) for table in trial.tables) == DUPLICATES.get(name, 0)
    assert [(table.name, table.examples) for table in trial.tables if table.rescued] == []
    columns = [column for table in trial.tables for column in table.columns if column.filled is not None]
    never_filled = {column.name for column in columns} - {column.name for column in columns if column.filled}
    assert not never_filled, "a column that no sample fills is perhaps misspelt"


def test_what_surrounds_records_is_theirs() -> None:
    (lines,) = tried("cloudwatch-logs").tables
    assert {c.name: c.filled for c in lines.columns if c.source is not None} == dict.fromkeys(
        ("id", "timestamp", "message", "log_group", "log_stream"), 6
    )


def test_the_notebook_reads_as_the_one_that_is_tested() -> None:
    """`tests/source/test_contents.py` runs the cell that reads, against a queue. The others are not run here: they need a lake
    on AWS, so they must at least be Python that names what there is."""
    notebook = json.loads((EXAMPLES / "s3-sqs.ipynb").read_text())
    code = ["".join(cell["source"]) for cell in notebook["cells"] if cell["cell_type"] == "code"]
    assert textwrap.dedent(NOTEBOOK).strip() in code
    for cell in code:
        compile(cell, "s3-sqs.ipynb", "exec")
    assert all(cell.get("outputs", []) == [] for cell in notebook["cells"])
    imports = [line for line in code[0].splitlines() if line.startswith("from forebay")]
    exec("\n".join(imports), found := {})
    inspect.signature(found["register"]).bind("spark", manifests="s3://my-lake/manifests")
    inspect.signature(found["session"]).bind("notebook")


def test_the_function_of_an_example_is_the_one_that_the_documents_show() -> None:
    shown = (EXAMPLES.parent / "docs" / "declarations.md").read_text().split("```python\n")[1].partition("```")[0]
    assert shown in (EXAMPLES / "python-step" / "transforms" / "shop.py").read_text()
