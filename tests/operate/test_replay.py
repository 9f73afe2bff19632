"""`forebay replay`: what would be replaced is shown first; then the ledger says so, and the files are announced."""

from __future__ import annotations

import json
import uuid
from collections.abc import Iterator
from datetime import timedelta
from functools import partial
from pathlib import Path
from typing import Any

import boto3
import pyarrow as pa
import pytest
from deltalake import DeltaTable, write_deltalake

from forebay.aws.announce import announce_paced
from forebay.batch.plan import Plan, Plans
from forebay.declaration.kept.in_force import keep_in_force
from forebay.declaration.loading import parse_service
from forebay.lake.layout import DERIVED_FROM, LEDGER, PLANS
from forebay.lake.objects import open_objects
from forebay.lake.paused import ALL, pause, resume
from forebay.operate.changing.replay import later_versions, mark, replay_of, waiting
from forebay.operate.lake_view import LakeView
from forebay.operate.looking.files import FileChoice
from forebay.privacy.erased import add_erased
from forebay.privacy.secret import make_secret, secret_at
from forebay.privacy.token import token_of
from forebay.upkeep.erase.plan import ErasePlan, Erasures
from tests.operate.command import failed, given, ran
from tests.operate.ledger import AT, entry, write_ledger, write_tables


@pytest.fixture
def lake(tmp_path: Path) -> str:
    write_ledger(
        tmp_path,
        entry("in/a.json", tables={"alpha": 3, "beta": 2}, batch=1, quarantined=1, records=6, sequencer="0A"),
        entry("in/b.json", tables={"alpha": 1}, batch=2, at=AT + timedelta(days=1)),
        entry("in/empty.json", outcome="empty", batch=2),
        entry("in/torn.json", outcome="unreadable", batch=2),
        entry("in/old.json", outcome="skipped", batch=2),
    )
    write_tables(tmp_path, "alpha", "beta")
    return str(tmp_path)


@pytest.fixture
def queue(s3: str) -> str:
    sqs = boto3.client("sqs", endpoint_url=s3, region_name="eu-west-1")
    return str(sqs.create_queue(QueueName=f"replay-{uuid.uuid4()}")["QueueUrl"])


def outcomes(lake: str) -> dict[str, str]:
    rows = DeltaTable(f"{lake}/_forebay/ledger").to_pyarrow_table().to_pylist()
    return {row["key"]: row["outcome"] for row in rows}


def test_what_would_be_replaced_is_shown_and_nothing_is_changed(lake: str) -> None:
    told = json.loads(ran("replay", "--table", "alpha", "--lake", lake, "--dry-run", "--json"))
    assert told == {
        "files": 2,
        "records": 7,
        "rows": {"alpha": 4, "beta": 2},
        "quarantined": 1,
        "parked": 0,
        "left_out": {},
        "dry_run": True,
    }
    said = ran("replay", "--batch", "2", "--lake", lake, "--dry-run")
    assert "3 files of 1 record to read again" in said
    assert "left out, because none of their rows are in the lake: 1 skipped" in said
    assert "replay" not in outcomes(lake).values()


def test_a_mark_reads_no_day_of_the_ledger_before_those_of_its_files(tmp_path: Path) -> None:
    """A ledger may have years. What a batch writes of these files is of the same days, or of later ones."""
    write_ledger(tmp_path, entry("in/old.json", at=AT - timedelta(days=3)), entry("in/a.json", tables={"alpha": 1}))
    view = LakeView(str(tmp_path))
    found = replay_of(view, FileChoice(key="in/a.json"))
    (old,) = (tmp_path / LEDGER).glob(f"day={(AT - timedelta(days=3)).date()}/*.parquet")
    old.unlink()
    assert mark(view, found) == 1
    assert later_versions(view, found.files) == []


def test_a_state_or_a_rollup_is_not_replayed_itself(lake: str) -> None:
    write_deltalake(f"{lake}/best", pa.table({"n": [1]}), configuration={"delta.checkpointInterval": "9"})
    first, known = Path(lake, "best", "_delta_log", f"{0:020}.json"), '"delta.checkpointInterval":"9"'
    first.write_text(first.read_text().replace(known, f'"{DERIVED_FROM}":"alpha,beta"'))
    said = failed(2, "replay", "--table", "best", "--lake", lake, "--dry-run")
    hint = "replay alpha or beta; the next merge updates best"
    assert said == f"forebay: table best: is computed from alpha,beta ({hint})\n"


@pytest.mark.parametrize(
    ("choice", "keys"),
    [
        (("--quarantined",), ["in/a.json"]),
        (("--since", "2026-11-22"), ["in/b.json"]),
        (("--file", "s3://landing/in/empty.json"), ["in/empty.json"]),
        (("--key", "in/*", "--table", "beta"), ["in/a.json"]),
    ],
)
def test_chosen_files_are_marked_then_announced_with_all_that_tells_their_order(
    lake: str, queue: str, choice: tuple[str, ...], keys: list[str]
) -> None:
    status, _, said = given(("replay", *choice, "--lake", lake, "--queue-url", queue, "--yes"), "")
    assert (status, "announced: 1 of 1 file" in said) == (0, True)
    assert [key for key, outcome in outcomes(lake).items() if outcome == "replay"] == keys
    (message,) = boto3.client("sqs", region_name="eu-west-1").receive_message(QueueUrl=queue)["Messages"]
    (record,) = json.loads(message["Body"])["Records"]
    assert record["s3"]["object"]["key"] == keys[0]
    assert record["s3"]["object"].get("sequencer") == ("0A" if keys == ["in/a.json"] else None)
    told = [json.loads(line) for line in ran("history", "--lake", lake, "--days", "9999", "--json").splitlines()]
    of_batch = {"in/a.json": "1, 6 records in alpha, beta", "in/b.json": "2, ", "in/empty.json": "2, "}[keys[0]]
    (what,) = (one["what"] for one in told if one["kind"] == "verb")
    assert what.startswith(f"replay: 1 file of batch {of_batch}")
    assert "replays     1 file to be read again" in ran("status", "--lake", lake)
    status, _, said = given(("replay", "--resume", "--lake", lake, "--queue-url", queue), "")
    assert (status, "announced: 1 of 1 file" in said) == (0, True)


@pytest.mark.parametrize(("batches", "named"), [(2, "batches 0, 1"), (5, "batches 0, 1, 2, 3, 4"), (6, "6 batches")])
def test_the_record_of_a_replay_names_the_batches_that_counted_the_files(
    batches: int, named: str, tmp_path: Path, queue: str
) -> None:
    write_ledger(tmp_path, *(entry(f"in/{n}.json", tables={"alpha": 1}, batch=n % batches) for n in range(7)))
    given(("replay", "--key", "in/*", "--lake", str(tmp_path), "--queue-url", queue, "--yes"), "")
    assert f"replay: 7 files of {named}, 7 records in alpha" in ran("history", "--lake", str(tmp_path))


def test_wrong_use_is_told_before_anything_is_marked(lake: str) -> None:
    assert "choose files, or --resume" in failed(2, "replay", "--lake", lake, "--dry-run")
    assert "s3://landing/in/c.json: it is not in the ledger" in failed(
        2, "replay", "--file", "s3://landing/in/c.json", "--lake", lake, "--dry-run"
    )
    mistyped = failed(2, "replay", "--table", "alpah", "--lake", lake, "--dry-run")
    assert "table alpah: is not in" in mistyped
    of_nobody = failed(2, "replay", "--table", "alpha", "--of", "gamse", "--lake", lake, "--dry-run")
    assert "--of gamse: never loaded files here" in of_nobody
    for paused, says in (("beta", "table beta: is paused"), (ALL, "table alpha: is paused")):
        pause(lake, [paused])
        assert says in failed(2, "replay", "--table", "beta", "--lake", lake, "--dry-run")
        resume(lake, [paused])


def test_files_that_are_marked_already_are_announced_again_while_a_batch_is_at_work_on_them(lake: str) -> None:
    view = LakeView(lake)
    mark(view, replay_of(view, FileChoice(table="alpha")))
    marked, there = waiting(view), view.facts(LEDGER)
    nothing = {"began_at": AT, "service": {}, "ends": (), "fates": ()}
    plan = Plan(generation="g1", batch=7, files=(marked.files[0].landed,), **nothing)  # type: ignore[arg-type]
    Plans(open_objects(f"{lake}/{PLANS}"), "games").pin(plan)
    assert (mark(view, marked), view.facts(LEDGER)) == (2, there)


def test_a_file_with_a_table_that_could_not_be_written_is_announced_again(lake: str, queue: str) -> None:
    write_ledger(lake, entry("in/half.json", tables={"alpha": 1}, reason="partly-replayed", detail="alpha"))
    assert "replays     1 file in part: a table has earlier rows; `forebay replay --resume`" in ran(
        "status", "--lake", lake
    )
    status, _, said = given(("replay", "--resume", "--lake", lake, "--queue-url", queue), "")
    assert (status, "announced: 1 of 1 file" in said, outcomes(lake)["in/half.json"]) == (0, True, "replay")
    assert "replays     1 file to be read again" in ran("status", "--lake", lake)
    assert "replay: 1 file" in ran("history", "--lake", lake, "--days", "9999")


def test_a_file_of_a_table_that_is_still_paused_does_not_keep_the_others_from_being_announced(
    lake: str, queue: str
) -> None:
    write_ledger(lake, entry("in/half.json", tables={"gamma": 1}, reason="partly-replayed", detail="gamma"))
    view, command = LakeView(lake), ("replay", "--resume", "--lake", lake, "--queue-url", queue)
    pause(lake, ["gamma"])
    assert "table gamma: is paused" in failed(2, *command)
    mark(view, replay_of(view, FileChoice(table="beta")))
    assert ran(*command, "--dry-run", "--json") == ran(
        "replay", "--table", "beta", "--lake", lake, "--dry-run", "--json"
    )
    resume(lake, ["gamma"])
    assert "in/half.json" in {file.key for file in waiting(view).files}


def test_a_file_that_could_not_be_read_is_read_again_and_never_taken_for_one_with_rows(lake: str, queue: str) -> None:
    torn = ("--lake", lake, "--queue-url", queue)
    shown = ran("replay", "--file", "s3://landing/in/torn.json", "--lake", lake, "--dry-run")
    assert shown == "1 file of 0 records to read again: none has rows\n"
    status, _, said = given(("replay", "--since", "2026-05-01", "--yes", *torn), "")
    assert (status, "announced: 4 of 4 files" in said) == (0, True)
    rows = DeltaTable(f"{lake}/_forebay/ledger").to_pyarrow_table().to_pylist()
    (row,) = [row for row in rows if row["key"] == "in/torn.json"]
    assert (row["outcome"], row["reason"]) == ("unreadable", "wanted-again")
    assert "announced: 4 of 4 files" in given(("replay", "--resume", *torn), "")[2]
    assert "replays     4 files to be read again" in ran("status", "--lake", lake)


def test_a_file_means_its_versions_in_force_and_an_id_any_version(lake: str, queue: str) -> None:
    """Rows of a version that was forgotten, and then corrected, must not come back with a replay of the corrected one."""
    later = {"at": AT + timedelta(hours=1), "etag": "e2", "tables": {"alpha": 1}}
    first, torn = entry("in/fixed.json", outcome="forgotten"), entry("in/torn.json", etag="e0", outcome="unreadable")
    write_ledger(lake, first, entry("in/fixed.json", **later), torn, entry("in/torn.json", **later))
    both = ("--file", "s3://landing/in/fixed.json", "--file", "s3://landing/in/torn.json", "--lake", lake)
    status, out, said = given(("replay", *both, "--dry-run"), "")
    assert (status, out.splitlines()[0]) == (0, "2 files of 2 records to read again. Their rows will be replaced:")
    assert "left out, because none of their rows are in the lake: 1 forgotten, 2 unreadable" in out
    assert "3 earlier versions are left out, because a later one was loaded. To read such a version, too, add " in said
    assert f"add --file-id {first['file_id']}" in said
    to = ("--lake", lake, "--queue-url", queue, "--yes")
    assert given(("replay", "--file-id", first["file_id"], *to), "")[0] == 0
    (marked,) = LakeView(lake).query(LEDGER, "select * from t where reason = 'wanted-again'")
    assert (marked["file_id"], marked["outcome"]) == (first["file_id"], "forgotten")
    assert f"{'0' * 32}: it is not in the ledger" in failed(2, "replay", "--file-id", "0" * 32, *to)
    assert "is not the id of a file" in failed(2, "replay", "--file-id", "0", *to)


def test_both_versions_of_a_file_are_in_force_if_both_have_rows(lake: str) -> None:
    """Under `overwritten = "append"`. One that was refused and is the latest may be readable by now."""
    later = AT + timedelta(days=2)
    write_ledger(lake, entry("in/a.json", etag="e2", at=later, tables={"alpha": 1}))
    write_ledger(lake, entry("in/b.json", etag="e2", at=later, outcome="unreadable"))
    view = LakeView(lake)
    for key, versions in (("in/a.json", ["e1", "e2"]), ("in/b.json", ["e1", "e2"])):
        found = replay_of(view, FileChoice(), [f"s3://landing/{key}"])
        assert ([one.etag for one in found.files], found.left_out) == (versions, {})


def test_files_of_two_services_are_not_announced_into_one_queue(lake: str, queue: str) -> None:
    """The one whose queue it is would load the other's files by its own declarations, and take their rows away."""
    write_ledger(lake, entry("in/c.json", tables={"alpha": 1}, service="casual"))
    choose = ("replay", "--table", "alpha", "--lake", lake, "--queue-url", queue, "--yes")
    assert "are of the services casual, games: choose one with --of" in given(choose, "")[2].replace(" (", ": ")
    assert "replay" not in outcomes(lake).values()
    for service, keys in (("casual", ["in/c.json"]), ("games", ["in/a.json", "in/b.json"])):
        status, _, said = given((*choose, "--of", service), "")
        assert (status, f"announced: {len(keys)} of {len(keys)} file" in said) == (0, True)
    assert "choose one with --of" in failed(2, "replay", "--resume", "--lake", lake, "--queue-url", queue)
    _, _, said = given(("replay", "--resume", "--of", "casual", "--lake", lake, "--queue-url", queue), "")
    assert "announced: 1 of 1 file" in said
    DeltaTable(f"{lake}/_forebay/ledger").update(updates={"outcome": "'denied'"})
    retry = ("files", "retry", "--lake", lake, "--queue-url", queue, "--dry-run")
    assert "choose one with --of" in failed(2, *retry)
    assert "1 file to announce" in ran(*retry, "--of", "casual")


def test_a_number_that_several_batches_have_is_no_choice(lake: str) -> None:
    write_ledger(lake, entry("in/c.json", tables={"alpha": 1}, batch=1, generation="g2"))
    write_ledger(lake, entry("in/d.json", tables={"alpha": 1}, batch=1, service="casual"))
    asked = ("replay", "--batch", "1", "--lake", lake, "--dry-run")
    said = failed(2, *asked)
    assert "--batch 1: is 3 batches (--of casual --generation g1 ended 2026-11-21 10:01; --of games" in said
    assert "is 2 batches" in failed(2, *asked, "--of", "games")
    assert "1 file of 1 record" in ran(*asked, "--of", "games", "--generation", "g2")
    assert "name the batch" in failed(2, "replay", "--generation", "g2", "--lake", lake, "--dry-run")


def test_a_file_that_became_something_else_since_the_plan_is_left(lake: str) -> None:
    view = LakeView(lake)
    found = replay_of(view, FileChoice(table="alpha"))
    DeltaTable(f"{lake}/_forebay/ledger").update(
        predicate="key = 'in/b.json'", updates={"outcome": "'superseded'", "superseded_by": "'x'"}
    )
    assert mark(view, found) == 1
    assert (outcomes(lake)["in/a.json"], outcomes(lake)["in/b.json"]) == ("replay", "superseded")
    assert [file.key for file in waiting(view).files] == ["in/a.json"]


def test_files_for_another_lake_are_shown_and_loaded_and_this_ledger_stays(
    lake: str, tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch
) -> None:
    side = str(tmp_path_factory.mktemp("side"))
    command = ("replay-into", side, "--table", "alpha", "--lake", lake)
    assert "have these rows here" in ran(*command, "--dry-run")
    assert "files: must be chosen" in failed(2, "replay-into", side, "--lake", lake)
    keep_in_force(lake, parse_service({"service.toml": 'name = "studio"\n[[tables]]\nname = "alpha"\n'}))
    assert "--service: is missing" not in ran(*command, "--dry-run")
    assert "nowhere: does not exist" in failed(2, *command, "--service", f"{side}/nowhere", "--dry-run")
    read: list[str] = []

    def load(spark: Any, files: Any, service: Any, place: str, **_: Any) -> Iterator[int]:
        assert service.name == "studio", "without --service, the declarations that this lake's job uses"
        read.extend(file.key for file in files)
        yield len(files)

    monkeypatch.setattr("forebay.operate.changing.aside.load_aside", load)
    for name in ("forebay.lake.safety.session_for", "forebay.declared_sql.check.check_expressions"):
        monkeypatch.setattr(name, lambda *_, **__: None)
    status, out, err = given((*command, "--yes"), "")
    assert (status, err) == (0, "read: 2 of 2 files\n")
    assert f"forebay audit --lake {side}" in out
    assert read == ["in/a.json", "in/b.json"]
    assert "replay" not in outcomes(lake).values()
    told = json.loads(ran("history", "--lake", lake, "--json").splitlines()[0])
    assert (told["what"][:27], told["undo"]) == ("replay-into: 2 files into " + side[:1], f"delete {side}")


@pytest.mark.parametrize(
    ("name", "subject", "secret", "refused"),
    [
        ("games", "user.id", "secret", ""),
        ("trial", "user.id", "secret", "--service: is trial, and the service games loaded these files"),
        ("games", "", "secret", "privacy: subject: must not change: people were erased by the subject user.id"),
        ("games", "user.id", "other", "other is not the secret that made the tokens in this lake"),
    ],
)
def test_no_record_of_an_erased_person_is_loaded_into_another_lake(
    lake: str, tmp_path_factory: pytest.TempPathFactory, name: str, subject: str, secret: str, refused: str
) -> None:
    """Their list has tokens, by service: it finds nobody under another name, by another field, or with another secret."""
    there = tmp_path_factory.mktemp("new")
    declared = f'name = "{name}"\n[privacy]\nsubject = "{subject}"\nsecret = "{there}/{secret}"\n'
    table = '[[tables]]\nname = "alpha"\n'
    (there / "service.toml").write_text((declared if subject else f'name = "{name}"\n') + table)
    for made in ("secret", "other"):
        make_secret(f"{there}/{made}")
    command = ("replay-into", f"{there}/side", "--table", "alpha", "--lake", lake, "--service", str(there), "--dry-run")
    assert "2 files" in ran(*command), "nobody was erased yet"
    token = token_of("anna", secret_at(f"{there}/secret"))
    Erasures(lake, "games").begin(ErasePlan(0, AT.isoformat(), "games", (token,), subject="user.id"))
    add_erased(lake, "games", [token])
    status, out, err = given(command, "")
    assert (status, refused in out + err) == (2 if refused else 0, True)


def test_another_lake_knows_the_secret_that_its_first_files_were_loaded_with(
    lake: str, tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A repeated command with another one would give equal values other tokens, and so would a job that begins there."""
    there = tmp_path_factory.mktemp("new")
    for name in ("forebay.lake.safety.session_for", "forebay.declared_sql.check.check_expressions"):
        monkeypatch.setattr(name, lambda *_, **__: None)
    monkeypatch.setattr("forebay.operate.changing.aside.load_aside", lambda *_, **__: iter([2]))
    declared = 'name = "games"\n[privacy]\nsubject = "user"\nsecret = "{}"\n[[tables]]\nname = "alpha"\n'
    command = ("replay-into", f"{there}/side", "--table", "alpha", "--lake", lake, "--service", str(there), "--yes")
    for secret, status in (("first", 0), ("other", 2), ("first", 0)):
        make_secret(f"{there}/{secret}")
        (there / "service.toml").write_text(declared.format(there / secret))
        ended, out, err = given(command, "")
        assert (ended, f"{secret} is not the secret" in err) == (status, bool(status)), out + err


@pytest.mark.parametrize("part", ["", "/", "/side", "/.."])
def test_a_lake_within_this_one_is_refused(lake: str, part: str) -> None:
    place = str(Path(lake).parent) if part == "/.." else f"{lake}{part}"
    assert "is a part of this lake" in failed(2, "replay-into", place, "--table", "alpha", "--lake", lake)


@pytest.mark.parametrize(
    ("place", "feeds", "is_landed"),
    [
        ("s3://landing", "", True),
        ("s3://landing/tests", "", True),
        ("s3://landing/in/tests", 'feeds = [{ name = "all", prefix = "in/" }]', True),
        ("s3://landing/tests", 'feeds = [{ name = "all", prefix = "in/" }]', False),
        ("s3://other/in", "", False),
        ("s3://other/in", 'feeds = [{ name = "all", bucket = "other", prefix = "in/" }]', True),
    ],
)
def test_a_place_where_files_land_is_refused(lake: str, place: str, feeds: str, is_landed: bool) -> None:
    """S3 would announce the files of the other lake, and the job would load all of its rows."""
    text = f'name = "games"\n{feeds}\n[[tables]]\nname = "{{game}}"\n'
    keep_in_force(lake, parse_service({"service.toml": text}))
    command = ("replay-into", place, "--table", "alpha", "--lake", lake, "--dry-run")
    if is_landed:
        assert "service games takes in files: it would load what is written there" in failed(2, *command)
    else:
        ran(*command)


def test_live_files_pass(lake: str) -> None:
    depths: list[int] = [900, 300, 100]
    told: list[int] = []
    slept: list[float] = []
    sent: list[Any] = []

    class Queue:
        def get_queue_attributes(self, **_: Any) -> dict[str, dict[str, str]]:
            return {"Attributes": {"ApproximateNumberOfMessages": str(depths.pop(0))}}

        def send_message_batch(self, *, QueueUrl: str, Entries: list[Any]) -> dict[str, Any]:  # noqa: N803
            sent.extend(Entries)
            return {}

    files = [file.landed for file in replay_of(LakeView(lake), FileChoice(table="alpha")).files]
    paced = partial(announce_paced, Queue(), "q", files, most_waiting=200, repeat="again", sleep=slept.append)
    done = list(paced(rate=2, tell=told.append))
    assert (done, told, slept, len(sent)) == ([2], [900, 300], [5, 5, 1.0], 1)
    depths += [0, 0]
    done = list(paced(rate=0.5))
    assert (done, slept[3:], len(sent)) == ([1, 2], [2, 2], 3)
