"""The walk of docs/upgrade.md on a laptop: a copy of a lake whose ledger an earlier version wrote, and a file for it."""

from __future__ import annotations

import json
import re
import shlex
import shutil
from pathlib import Path

import pyarrow as pa
import pytest
from deltalake import CommitProperties, DeltaTable, Transaction, write_deltalake

from forebay.lake.layout import LEDGER
from forebay.lake.log.snapshot import read_snapshot
from forebay.lake.objects import open_objects
from forebay_local.twin.twin import Twin
from tests.journey.story import Story, lines
from tests.operate.command import given

PAGE = Path(__file__).parents[2] / "docs" / "upgrade.md"
SERVICE = """
name = "shop"
[[tables]]
name = "orders"
columns = [{ name = "order_id" }]
"""
LATE_COLUMNS = ["sequencer", "superseded_by", "tries", "content_hash"]
"""Those that came to the ledger last."""


def steps() -> list[tuple[str, list[str]]]:
    """The commands of the section, each with the lines that it shows below."""
    (section,) = re.findall(r"^## On a laptop first\n(.*?)(?=^## )", PAGE.read_text(), re.S | re.M)
    blocks = "".join(re.findall(r"```console\n(.*?)```", section, re.S))
    found = re.findall(r"^\$ (.*)\n((?:(?!\$ ).*\n)*)", blocks, re.M)
    return [(line.partition("  #")[0].rstrip(), shown.splitlines()) for line, shown in found]


def copied(told: Story, sync: str) -> None:
    """As the `aws` command does it."""
    _, _, _, source, place, _, leaves_out = shlex.split(sync)
    assert (source, leaves_out[-1]) == ("s3://LAKE-BUCKET", "*")
    s3, prefix = told.twin.client("s3"), f"{told.name}/"
    for page in s3.get_paginator("list_objects_v2").paginate(Bucket=told.twin.lake_bucket, Prefix=prefix):
        for key in (one["Key"] for one in page["Contents"]):
            name = key.removeprefix(prefix)
            if not name.startswith(leaves_out[:-1]) and not name.endswith("/"):
                Path(place, name).parent.mkdir(parents=True, exist_ok=True)
                s3.download_file(told.twin.lake_bucket, key, f"{place}/{name}")


def written_by_an_earlier_version(ledger: Path) -> None:
    """The same rows and transactions, without the columns that came last."""
    table, before = DeltaTable(str(ledger)), read_snapshot(open_objects(str(ledger)))
    rows = pa.table(table.to_pyarrow_table()).drop_columns(LATE_COLUMNS)
    done = [Transaction(app, number) for app, number in before.transactions.items()]
    shutil.rmtree(ledger)
    write_deltalake(
        str(ledger),
        rows,
        partition_by=table.metadata().partition_columns,
        configuration=table.metadata().configuration,
        commit_properties=CommitProperties(app_transactions=done),
    )


def test_a_new_version_loads_a_file_into_a_copy_of_the_lake_of_an_earlier_one(
    told: Story, twin: Twin, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("shop").mkdir()
    Path("shop", "service.toml").write_text(SERVICE)
    told.service = "shop"
    told.put("old.jsonl", lines([{"order_id": "o-1"}, {"order_id": "o-2"}]))
    told.run()
    Path("new.jsonl").write_bytes(lines([{"order_id": "o-3"}]))
    (sync, _), (up, _), (env, _), (names_lake, _), *typed = steps()

    copied(told, sync)
    written_by_an_earlier_version(Path("lake-copy", LEDGER))
    assert set(LATE_COLUMNS).isdisjoint(field.name for field in DeltaTable(f"lake-copy/{LEDGER}").schema().fields)

    monkeypatch.setenv("FOREBAY_LOCAL", str(twin.state))  # one runs already
    assert "the twin is up" in said_by(up)
    assert env == 'eval "$(forebay local env)"'
    for name, value in json.loads(said_by("forebay local env --json")).items():
        monkeypatch.setenv(name, value)
    twin.client("sqs").purge_queue(QueueUrl=twin.queue_url)  # of what other tests put
    assert names_lake == "export FOREBAY_LAKE=$PWD/lake-copy"
    monkeypatch.setenv("FOREBAY_LAKE", str(tmp_path / "lake-copy"))

    audits = []
    for line, shown in typed:
        said = said_by(line)
        audits += [said] if line == "forebay audit" else []
        assert not shown or said.splitlines() == shown
    assert [audit.splitlines()[0] for audit in audits] == [
        "files    1 in the ledger (1 loaded)",
        "files    2 in the ledger (2 loaded)",
    ]
    assert {row["order_id"] for row in told.rows("orders")} == {"o-1", "o-2"}, "the lake itself stays as it was"


def said_by(line: str) -> str:
    status, out, err = given(tuple(shlex.split(line)[1:]), "")
    assert status == 0, out + err
    return out
