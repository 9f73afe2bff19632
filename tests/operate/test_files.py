"""What became of a file: `forebay files list|show` and `forebay where`, without a JVM."""

from __future__ import annotations

import json
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from pathlib import Path

import pyarrow as pa
import pytest
from deltalake import CommitProperties, DeltaTable, Transaction, write_deltalake

from forebay.batch.one_pass.held import COLUMNS
from forebay.lake.layout import AFTER_LOAD, LEDGER, skips_of
from forebay.lake.objects import open_objects
from forebay.landed_file import LandedFile
from forebay.ledger.skips import Skips
from forebay.operate.lake_view import LakeView
from forebay.operate.looking.files import FileChoice, follow
from forebay.upkeep.after_load.notes import DAY
from tests.operate.command import failed, given, ran
from tests.operate.ledger import AT, entry, schema_of, write_ledger


@pytest.fixture
def lake(tmp_path: Path) -> str:
    """Three files: one in two tables and partly quarantined, one torn, and one of a day later."""
    whole = entry("in/a b.json", tables={"alpha": 2, "beta": 1}, records=4, quarantined=1)
    torn = entry("in/torn_.gz", outcome="unreadable", reason="corrupt", detail="ends early", batch=2)
    late = entry("in/tornX.gz", at=AT + timedelta(days=1), batch=3, tables={"alpha": 1})
    write_ledger(tmp_path, whole, torn, late)
    files = [whole["file_id"], whole["file_id"], late["file_id"]]
    brought = CommitProperties(app_transactions=[Transaction("forebay/games/g1", 1)])
    rows = pa.table({"_file_id": files, "event_id": ["x", "y", "z"]})
    write_deltalake(tmp_path / "alpha", pa.table({"_file_id": ["0"], "event_id": ["w"]}))
    write_deltalake(tmp_path / "alpha", rows, mode="append", commit_properties=brought)
    write_deltalake(tmp_path / "beta", rows.slice(0, 1), commit_properties=brought)
    DeltaTable(tmp_path / "alpha").optimize.compact()
    kept = {**dict.fromkeys(schema_of(COLUMNS).names), "file_id": files[0], "line": 3, "reason": "not-json", "at": AT}
    write_deltalake(tmp_path / "_forebay" / "quarantine", pa.Table.from_pylist([kept], schema_of(COLUMNS)))
    return str(tmp_path)


def keys(*arguments: str) -> list[str]:
    return [json.loads(line)["key"] for line in ran("files", "list", *arguments, "--json").splitlines()]


def test_files_are_listed_the_newest_first_and_by_what_is_said_of_them(lake: str) -> None:
    assert keys("--lake", lake) == ["in/tornX.gz", "in/a b.json", "in/torn_.gz"]
    assert keys("--lake", lake, "--outcome", "unreadable", "--reason", "corrupt") == ["in/torn_.gz"]
    assert keys("--lake", lake, "--table", "beta") == ["in/a b.json"]
    assert keys("--lake", lake, "--key", "in/torn_*") == ["in/torn_.gz"]
    assert keys("--lake", lake, "--batch", "3") == ["in/tornX.gz"]
    assert keys("--lake", lake, "--since", "2026-11-21T10:02") == ["in/tornX.gz"]
    assert keys("--lake", lake, "--until", "2026-11-21T10:01:01") == ["in/a b.json", "in/torn_.gz"]
    assert keys("--lake", lake, "--reason", "it's") == []
    assert ran("files", "list", "--lake", lake).splitlines()[1].split()[-1] == "s3://landing/in/tornX.gz"


def test_the_list_shows_which_files_after_load_moved_or_deleted(lake: str) -> None:
    """In a column of its own, only where there is one of them."""
    assert ran("files", "list", "--lake", lake).splitlines()[0].split() == [
        "at",
        "outcome",
        "records",
        "written",
        "why",
        "file",
    ]
    assert [json.loads(line)["away"] for line in ran("files", "list", "--lake", lake, "--json").splitlines()] == [
        None
    ] * 3
    one, last, other = LakeView(lake).query(LEDGER, "select * from t order by committed_at desc, key")
    moved = {"action": "moved", "place": "s3://archive/landing/in/tornX.gz/id", "at": AT + timedelta(days=2)}
    notes = [
        {"file_id": one["file_id"], **moved, "action": "started"},
        {"file_id": one["file_id"], **moved},
        {"file_id": other["file_id"], "action": "started", "at": AT + timedelta(days=2)},
        {"file_id": last["file_id"], "action": "deleted", "at": AT + timedelta(days=2)},
    ]
    write_deltalake(f"{lake}/{AFTER_LOAD}", pa.Table.from_pylist([{DAY: "2026-11-21", **note} for note in notes]))
    title, *lines = ran("files", "list", "--lake", lake).splitlines()
    assert title.split() == ["at", "outcome", "records", "written", "landed", "file", "why", "file"]
    assert [line.split()[5] for line in lines] == ["moved", "deleted", "-"]
    told = [json.loads(line) for line in ran("files", "list", "--lake", lake, "--json").splitlines()]
    assert [one["away"] and one["away"]["action"] for one in told] == ["moved", "deleted", None]
    assert told[0]["away"]["place"] == moved["place"]
    assert "landed file" not in ran("files", "list", "--lake", lake, "--outcome", "unreadable")


def test_files_that_s3_did_not_give_are_announced_again_as_the_ledger_knows_them(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    withheld = [
        entry(f"in/{outcome}.json", outcome=outcome, version_id="v1")
        for outcome in ("denied", "missing", "unavailable")
    ]
    write_ledger(tmp_path, *withheld, entry("in/torn.gz", outcome="unreadable"), entry("in/a.json"))
    announced: list[LandedFile] = []
    monkeypatch.setattr("forebay.aws.announce.announce", lambda sqs, url, files: announced.extend(files) or [])
    monkeypatch.setattr("forebay.aws.client.queue_client", lambda url: None)
    monkeypatch.setattr("forebay.aws.preflight.check_queue", lambda url: None)
    retry = ("files", "retry", "--lake", str(tmp_path), "--queue-url", "q")
    assert ran(*retry, "--dry-run").splitlines()[-1] == "3 files to announce"
    assert announced == []
    assert ran(*retry).splitlines()[-1] == "3 files announced again"
    assert [file.file_id for file in announced] == [row["file_id"] for row in withheld]
    assert ran(*retry, "--key", "in/den*").splitlines() == [
        "s3://landing/in/denied.json",
        "1 file announced again",
    ]


def test_a_file_is_left_out_until_an_operator_takes_that_back(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    left_out = entry("in/deadly[1].json", outcome="skipped", reason="by-operator", version_id="v1")
    poison = entry("in/poison.json", outcome="unreadable", reason="poison", version_id="v1")
    write_ledger(tmp_path, left_out, poison, entry("in/a.json", outcome="skipped", reason="overwritten"))
    announced: list[LandedFile] = []
    monkeypatch.setattr("forebay.aws.announce.announce", lambda sqs, url, files: announced.extend(files) or [])
    monkeypatch.setattr("forebay.aws.client.queue_client", lambda url: None)
    monkeypatch.setattr("forebay.aws.preflight.check_queue", lambda url: None)
    skips, of_lake = Skips(open_objects(skips_of(str(tmp_path)))), ("--lake", str(tmp_path))
    deadly = LandedFile("landing", "in/deadly[1].json", etag="e9", version_id="v9")
    other = LandedFile("landing", "in/other.json", etag="e9")
    for _ in range(2):
        said = ran("files", "skip", "s3://landing/in/deadly[1].json", *of_lake)
        undo = "forebay files retry --skipped --key 's3://landing/in/deadly[1].json'"
        assert (
            said
            == f"s3://landing/in/deadly[1].json is skipped from the next batch on, also later versions: `{undo}` ends it\n"
        )
    ran("files", "skip", "--file-id", other.file_id, *of_lake)
    assert skips.among([deadly, other, LandedFile("landing", "in/b.json")]) == {deadly.file_id, other.file_id}
    assert "files retry --skipped --key 's3://landing/in/deadly[1].json'" in ran("history", *of_lake)

    retry = ("files", "retry", *of_lake, "--queue-url", "q")
    assert ran(*retry).splitlines() == ["s3://landing/in/poison.json", "1 file announced again"]
    ran(*retry, "--skipped", "--dry-run")
    assert "no such skip" in given((*retry, "--skipped", "--key", "in/other*"), "")[2]
    assert "no such skip" in given((*retry, "--skipped", "--key", "s3://elsewhere/in/deadly[1].json"), "")[2]
    assert len(skips.list()) == 2
    announced.clear()
    assert ran(*retry, "--skipped", "--key", "in/deadly[1].json").splitlines() == [
        "s3://landing/in/deadly[1].json is no longer skipped",
        "s3://landing/in/deadly[1].json",
        "1 file announced again",
    ]
    assert [file.file_id for file in announced] == [left_out["file_id"]]
    ran(*retry, "--skipped", "--file-id", other.file_id)
    assert skips.list() == []


def test_a_mistyped_skip_is_refused(tmp_path: Path) -> None:
    assert "is it spelled correctly?" in failed(2, "files", "skip", "s3://landing/in/a.json", "--lake", str(tmp_path))
    assert "is not the address of an object" in failed(2, "files", "skip", "in/a.json", "--lake", str(tmp_path))
    for arguments, says in (((), "names no file"), (("s3://landing/in/a.json", "--file-id", "x"), "not both")):
        assert says in failed(2, "files", "skip", *arguments, "--lake", str(tmp_path))
    write_ledger(tmp_path)
    for command in (("skip",), ("retry", "--skipped", "--queue-url", "q")):
        said = failed(2, "files", *command, "--file-id", "3f", "--lake", str(tmp_path))
        assert "--file-id 3f: is not the id of a file" in said, "it would skip nothing, or take back others' skips"


def test_the_life_of_a_file_is_told_from_its_landing_to_its_rows(lake: str) -> None:
    said = ran("where", "s3://landing/in/a b.json", "--lake", lake)
    assert said.splitlines() == [
        "s3://landing/in/a b.json  100 B",
        "  landed      2026-11-21 10:00:00",
        "  claimed     2026-11-21 10:00:50  batch 1 of games, declarations v1",
        "  loaded      2026-11-21 10:01:00  4 records",
        "  table       alpha: 2 rows, version 1, compacted 1 time since",
        "  table       beta: 1 row, version 0",
        "  quarantine  not-json: 1",
    ]
    torn = ran("where", "s3://landing/in/torn_.gz", "--lake", lake)
    assert "unreadable  2026-11-21 10:01:00  0 records  (corrupt: ends early)" in torn


def test_rows_that_a_retry_wrote_are_not_taken_for_ones_whose_commit_is_gone(lake: str) -> None:
    late = entry("in/held.json", at=AT + timedelta(days=1), batch=4, tables={"gamma": 1}, reason="table-failed")
    write_ledger(Path(lake), late)
    table = Path(lake) / "gamma"
    retried = CommitProperties(app_transactions=[Transaction("forebay/games/retry", 0)])
    write_deltalake(table, pa.table({"_file_id": [late["file_id"]]}), commit_properties=retried)
    assert "  table       gamma: 1 row, version 0, by a retry\n" in ran(
        "where", "s3://landing/in/held.json", "--lake", lake
    )
    again = CommitProperties(app_transactions=[Transaction("forebay/games/retry", 1)])
    write_deltalake(table, pa.table({"_file_id": ["0"]}), mode="append", commit_properties=again)
    assert "  table       gamma: 1 row, by a retry\n" in ran("where", "s3://landing/in/held.json", "--lake", lake)


def test_rows_whose_commit_is_gone_are_not_taken_for_ones_that_a_retry_wrote(lake: str) -> None:
    """Another file's records came with the retry that the log still has."""
    first = entry("in/old.json", at=AT + timedelta(days=1), batch=4, tables={"gamma": 1})
    write_ledger(Path(lake), first)
    table = Path(lake) / "gamma"
    for file_id, app in ((first["file_id"], "forebay/games/g0"), ("0", "forebay/games/retry")):
        txn = CommitProperties(app_transactions=[Transaction(app, 4)])
        write_deltalake(table, pa.table({"_file_id": [file_id]}), mode="append", commit_properties=txn)
    DeltaTable(table).create_checkpoint()
    (table / "_delta_log" / f"{0:020}.json").unlink()
    said = ran("where", "s3://landing/in/old.json", "--lake", lake)
    assert "  table       gamma: 1 row, version unknown: its log no longer has it\n" in said


def test_rows_that_are_gone_from_a_table_are_missed(lake: str) -> None:
    DeltaTable(f"{lake}/alpha").delete("event_id = 'x'")
    said = failed(1, "where", "s3://landing/in/a b.json", "--lake", lake)
    assert "table       alpha: 1 of 2 rows is there" in said


def test_a_list_says_why_a_file_was_not_loaded(tmp_path: Path) -> None:
    lost = entry("in/a.json", outcome="denied", reason="key-denied", detail="403 KMS.DisabledException")
    write_ledger(tmp_path, lost, entry("in/b.json"))
    lines = ran("files", "list", "--lake", str(tmp_path)).splitlines()[1:]
    assert sorted("key-denied: 403 KMS.DisabledException  s3://landing/in/a.json" in line for line in lines) == [
        False,
        True,
    ]


@pytest.mark.parametrize("span", [("--since", "0001-01-01"), ("--until", "9999-12-31"), ("--limit", "9" * 9)])
def test_moments_and_limits_may_be_far_off(lake: str, span: tuple[str, str]) -> None:
    assert ran("files", "list", *span, "--lake", lake) == ran("files", "list", "--lake", lake)


def test_a_row_leads_to_its_file(lake: str) -> None:
    told = json.loads(ran("where", "z", "--row", "alpha", "--lake", lake, "--json"))
    assert (told["uri"], told["well"]) == ("s3://landing/in/tornX.gz", True)
    assert "no row has nothing" in failed(1, "where", "nothing", "--row", "alpha", "--lake", lake)
    assert "did you mean alpha?" in failed(2, "where", "z", "--row", "alhpa", "--lake", lake)


@pytest.mark.parametrize("kind", [pa.struct([("x", pa.string())]), pa.map_(pa.string(), pa.string()), pa.binary()])
def test_a_column_whose_values_have_no_text_names_no_row(lake: str, kind: pa.DataType) -> None:
    for name, of in (("plain", kind), ("listed", pa.list_(kind))):
        rows = {"_file_id": pa.array(["f"]), "_line": pa.array([1]), "it": pa.nulls(1, of)}
        write_deltalake(f"{lake}/{name}", pa.table(rows))
        said = failed(2, "where", "x", "--row", name, "--by", "it", "--lake", lake)
        assert said == "forebay: --by it: has values without a text (choose a column of texts, numbers or times)\n"


def test_a_row_is_found_by_each_value_as_a_query_shows_it(lake: str) -> None:
    file_id = json.loads(ran("files", "show", "s3://landing/in/a b.json", "--lake", lake, "--json"))["file_id"]
    values: dict[str, tuple[pa.DataType, object]] = {
        "at": (pa.timestamp("us", "UTC"), datetime(2026, 11, 24, 10, 0, 0, 250_000, tzinfo=UTC)),
        "day": (pa.date32(), date(2026, 11, 24)),
        "price": (pa.decimal128(10, 2), Decimal("1.50")),
        "ok": (pa.bool_(), True),
        "share": (pa.float64(), 1e22),
        "it's": (pa.string(), "o'\"x"),
    }
    rows = {name: pa.array([value, None], kind) for name, (kind, value) in values.items()}
    write_deltalake(f"{lake}/kinds", pa.table({"_file_id": pa.array([file_id, "other"]), **rows}))
    for name in values:
        shown = ran("query", f'select "{name}" from kinds where "{name}" is not null', "--lake", lake).splitlines()[1]
        told = given(("where", shown, "--row", "kinds", "--by", name, "--lake", lake), "")
        assert told[1].startswith("s3://landing/in/a b.json"), (shown, *told)


def test_of_a_file_that_the_ledger_does_not_know_the_ways_to_look_on_are_told(lake: str) -> None:
    for command in ("where", "files show"):
        said = failed(1, *command.split(), "s3://landing/in/other.json", "--lake", lake)
        assert "forebay queue peek" in said
    assert "is not the address of an object" in failed(2, "where", "in/other.json", "--lake", lake)


def test_everything_that_the_ledger_says_is_shown(lake: str) -> None:
    told = json.loads(ran("files", "show", "s3://landing/in/a b.json", "--lake", lake, "--json"))
    assert (told["tables"], told["batch"], told["claimed_at"]) == (
        {"alpha": 2, "beta": 1},
        1,
        "2026-11-21T10:00:50+00:00",
    )
    assert "reason           corrupt" in ran("files", "show", "s3://landing/in/torn_.gz", "--lake", lake)


def test_files_are_followed_as_they_are_loaded_each_told_once(lake: str) -> None:
    later = [
        entry("in/new.json", at=AT + timedelta(days=1, minutes=2), batch=4, tables={"beta": 2}),
        entry("in/beside.json", at=AT + timedelta(days=1, minutes=1, seconds=30), batch=9, tables={"beta": 1}),
    ]

    class Ended(Exception):
        pass

    def sleep(seconds: float) -> None:
        if not later:
            raise Ended
        write_ledger(lake, later.pop(0))

    told: list[str] = []
    with pytest.raises(Ended):
        told.extend(file.key for file in follow(LakeView(lake), FileChoice(), last=2, every_s=1, sleep=sleep))
    assert told == ["in/a b.json", "in/tornX.gz", "in/new.json", "in/beside.json"]


def test_a_mistyped_outcome_gets_a_suggestion(tmp_path: Path) -> None:
    write_ledger(tmp_path)
    for command in (("files", "list"), ("tail",)):
        said = failed(2, *command, "--lake", str(tmp_path), "--outcome", "unredable")
        assert "--outcome unredable: is not an outcome of a file (did you mean unreadable?)" in said


def test_a_skip_of_a_refused_file_says_how_it_leaves_the_quarantine(tmp_path: Path) -> None:
    """By its id: a replay of the key would read a corrected version in its place."""
    torn = entry("in/torn it.gz", outcome="unreadable", reason="corrupt-archive", version_id="v1")
    mixed = entry("in/mixed.gz", outcome="unreadable", reason="corrupt-archive", version_id="v1")
    write_ledger(tmp_path, torn, mixed, entry("in/mixed.gz", outcome="loaded", version_id="v2"))
    skip = ("files", "skip", "--lake", str(tmp_path))
    for file in (torn, mixed):
        then = f"`forebay replay --file-id {file['file_id']}` lets the job see it again, and take it out unread"
        for which in (("--file-id", file["file_id"]), (f"s3://landing/{file['key']}",)):
            said = ran(*skip, *which).splitlines()
            assert said[1:] == [f"The quarantine has it as a whole file. {then}"]
    assert "replay" not in ran(*skip, "s3://landing/in/unknown.gz")
