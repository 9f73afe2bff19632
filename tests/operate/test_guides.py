"""The transcripts of the how-tos that end at a table of forebay's own: typed as on the page, they print what it shows."""

from __future__ import annotations

import os
import re
import shlex
import subprocess
import sys
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import boto3
import pyarrow as pa
import pytest
from deltalake import DeltaTable, write_deltalake

from forebay.declaration.kept.in_force import keep_in_force
from forebay.declaration.loading import parse_service
from forebay.lake.layout import LEDGER
from forebay.lake.objects import open_objects
from forebay.landed_file import LandedFile
from forebay.ledger.periods import FeedPeriod, Periods
from forebay.operate.looking import wait
from tests.operate.command import given
from tests.operate.ledger import AT, entry, write_ledger

DOCS = Path(__file__).parents[2] / "docs"
PAGE = DOCS / "how-to.md"
HISTORY = "forebay history"
TEN = datetime(2026, 11, 24, 10, tzinfo=UTC)
SERVICE = """
name = "games"
[[feeds]]
name = "clicks"
prefix = "in/"
complete = { folder = "in/%Y/%m/%d/%H/", marker = "_DONE" }
[[tables]]
name = "pages"
"""
STATE = """
name = "games"
[[tables]]
name = "player_changes"
mode = "merge"
columns = [{ name = "id" }, { name = "at", type = "long" }]
merge = { into = "players", keys = ["id"], sequence_by = ["at"] }
"""
FEED = {"delta.enableChangeDataFeed": "true"}


def transcript_of(title: str, page: Path = PAGE) -> list[tuple[str, list[str]]]:
    """The commands of a how-to, each with the lines that it shows below."""
    (section,) = re.findall(rf"^## {title}\n(.*?)(?=^## )", page.read_text(), re.S | re.M)
    blocks = "".join(re.findall(r"```console\n(.*?)```", section, re.S))
    steps = re.findall(r"^\$ (.*)\n((?:(?!\$ ).*\n)*)", blocks, re.M)
    return [(line.partition("  #")[0], shown.splitlines()) for line, shown in steps]


@pytest.fixture
def lake(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Set up as the reader of a how-to has it."""
    place = tmp_path / "lake"
    monkeypatch.setenv("FOREBAY_LAKE", str(place))
    monkeypatch.delenv("FOREBAY_SERVICE", raising=False)
    return place


def typed(line: str) -> tuple[list[str], int]:
    status, out, err = given(tuple(shlex.split(line)[1:]), "")
    return [said.rstrip() for said in (out + err).splitlines()], status


def in_a_shell(*lines: str) -> list[str]:
    """What a terminal shows."""
    path = f"{Path(sys.executable).parent}:{os.environ['PATH']}"
    done = subprocess.run(
        ["bash"], input="\n".join(lines), env={**os.environ, "PATH": path}, capture_output=True, text=True, check=False
    )
    return [said.rstrip() for said in (done.stdout + done.stderr).splitlines()]


def tell(lake: Path, **more: object) -> None:
    row = FeedPeriod(service="games", feed="clicks", period=TEN, ends=TEN + timedelta(hours=1), since=TEN, **more)  # type: ignore[arg-type]
    Periods(open_objects(f"{lake}/_forebay/complete")).change(lambda _: [row])


def test_the_wait_for_an_hour_prints_what_the_guide_shows(lake: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (first, open_hour), (asks, (status,)), (again, complete), (asks_again, ended_well), (query, rows) = transcript_of(
        "Wait until all files of an hour are in"
    )
    keep_in_force(str(lake), parse_service({"service.toml": SERVICE}))
    write_ledger(lake, entry("in/2026/11/24/10/part-0.json"))
    late = "s3://landing/in/2026/11/24/10/part-1.json"
    tell(lake, why=f"waits for 1 file that is not loaded yet, such as {late}")
    waited: list[float] = []
    monkeypatch.setattr(wait.wait, "__kwdefaults__", {"clock": lambda: sum(waited), "sleep": waited.append})
    said, ended = typed(first)
    assert (said, sum(waited)) == (open_hour, 30 * 60)
    assert (asks, str(ended)) == ("echo $?", status)

    def arrives(_: float) -> None:
        tell(lake, files=2, rows=4, revision=1, complete_at=TEN)

    monkeypatch.setattr(wait.wait, "__kwdefaults__", {"clock": lambda: 0.0, "sleep": arrives})
    assert typed(first) == ([*complete, open_hour[0]], 0), "the file arrives while the command waits"
    assert typed(again) == (complete, 0)
    assert in_a_shell(again, asks_again) == [*complete, *ended_well]
    assert typed(query) == (rows, 0)


def test_a_deleted_file_is_shown_as_the_guide_shows_it(lake: Path) -> None:
    (line, shown), *_on_a_laptop = transcript_of("Remove the rows of deleted files")
    more = {"bucket": "my-drops", "service_version": "1ef9f375be7c"}
    deletion = entry("in/a.json", at=AT + timedelta(hours=1), etag="", outcome="deleted", batch=2, size=None, **more)  # type: ignore[arg-type]
    deletion["file_id"] = "of the deletion"
    file = entry(
        "in/a.json",
        outcome="superseded",
        reason="overwritten",
        dropped=2,
        superseded_by=deletion["file_id"],
        records=2,
        **more,
    )  # type: ignore[arg-type]
    write_ledger(lake, file, deletion)
    assert typed(line) == (shown, 0)


def test_the_export_of_a_table_prints_what_the_guide_shows(lake: Path, tmp_path: Path) -> None:
    (first, whole), (later, changes) = transcript_of("Follow a table from another system")
    keep_in_force(str(lake), parse_service({"service.toml": STATE}))
    write_ledger(lake, entry("in/a.json", tables={"players": 2}))
    feed = str(tmp_path / "feed")
    for line, shown, ids in ((first, whole, ["a", "b"]), (later, changes, ["c"])):
        rows = pa.table({"id": ids, "at": [1] * len(ids), "_file_id": ["f"] * len(ids)})
        write_deltalake(f"{lake}/players", rows, mode="append", configuration=FEED if ids[0] == "a" else None)
        assert typed(line.replace("s3://other-cloud/feed", feed)) == (shown, 0)


def test_the_drop_of_a_table_prints_what_the_guide_shows(lake: Path) -> None:
    (refused, why), *steps = transcript_of("Remove a table")
    files: dict[str, dict[str, int]] = {
        "in/a.json": {"refunds": 2, "orders": 1},
        "in/b.json": {"refunds": 1, "orders": 1},
    }
    for key, counts in files.items():
        for table, rows in counts.items():
            write_deltalake(
                f"{lake}/{table}",
                pa.table({"_file_id": [LandedFile("landing", key, 100, "e1").file_id] * rows}),
                mode="append",
            )
    write_ledger(lake, *(entry(key, tables=counts) for key, counts in files.items()))
    keep_in_force(str(lake), parse_service({"service.toml": 'name = "shop"\n[[tables]]\nname = "refunds"\n'}))
    assert typed(refused) == (why, 2)
    keep_in_force(str(lake), parse_service({"service.toml": 'name = "shop"\n[[tables]]\nname = "orders"\n'}))
    for line, shown in steps:
        said, ended = typed(line)
        assert ([*map(without_size, said)], ended) == ([*map(without_size, shown)], 0)
    replay = "forebay replay --table refunds"
    assert f"`{replay}`" in PAGE.read_text()
    assert typed(f"{replay} --dry-run")[0][0] == "2 files of 5 records to read again. Their rows will be replaced:"


def without_size(line: str) -> str:
    """That of a log depends on the release of delta-rs."""
    return re.sub(r"[\d.]+ KiB", "KiB", line)


def test_the_preview_of_landed_files_prints_what_the_guide_shows(
    lake: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    ((line, shown),) = transcript_of("Move or delete loaded files")
    (rule,) = re.findall(r"^after_load = .*$", PAGE.read_text(), re.M)[-1:]
    (tmp_path / "shop").mkdir()
    (tmp_path / "shop" / "service.toml").write_text(f'name = "games"\n{rule}\n[[tables]]\nname = "alpha"\n')
    monkeypatch.chdir(tmp_path)
    old = {"at": datetime.now(UTC) - timedelta(days=9), "bucket": "my-drops", "tables": {"alpha": 1}}
    files = [entry(f"in/2026/11/21/{name}.json.gz", **old, size=50_000) for name in "ab"]  # type: ignore[arg-type]
    write_ledger(lake, *files, entry("in/2026/11/21/c.json.gz", **old, quarantined=1, records=2))  # type: ignore[arg-type]
    assert typed(line) == (shown, 0)


def test_the_history_of_a_replay_prints_what_the_page_shows(
    lake: Path, s3: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    (shown,) = [shown for line, shown in transcript_of("Reading files again", DOCS / "operating.md") if line == HISTORY]
    now = datetime.now(UTC)

    def of_batch(number: int, at: datetime, key: str, **more: Any) -> dict[str, Any]:
        return entry(key, at=at, day=at.date(), committed_at=at, batch=number, service="shop", **more)

    good: dict[str, Any] = {"tables": {"orders": 4, "refunds": 2}}
    before, after = now - timedelta(hours=1), now + timedelta(minutes=1)
    write_ledger(
        lake, of_batch(0, before, "in/torn.json", outcome="unreadable"), of_batch(0, before, "in/a.json", **good)
    )
    queue = boto3.client("sqs", endpoint_url=s3, region_name="eu-west-1").create_queue(QueueName="guide")["QueueUrl"]
    assert typed(f"forebay replay --table orders --yes --queue-url {queue}")[1] == 0
    DeltaTable(f"{lake}/{LEDGER}").delete("key = 'in/a.json'")
    write_ledger(lake, of_batch(1, after, "in/a.json", tries=2, **good))
    monkeypatch.setattr("forebay.cli.looking.history.is_wide", lambda: False)
    assert [*map(without_times, typed(HISTORY)[0])] == [*map(without_times, shown)]


def without_times(line: str) -> str:
    """Nor the name of the caller, who is somebody else on each machine."""
    return re.sub(r"^( +by) .*", r"\1", re.sub(r"^\d{4}-\d\d-\d\d \d\d:\d\d:\d\d", "", line))
