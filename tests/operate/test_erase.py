"""`forebay privacy erase`: nobody finds an erased person again, and nobody else loses anything."""

from __future__ import annotations

import json
import re
import shutil
import uuid
from collections.abc import Callable, Iterator
from contextlib import nullcontext
from dataclasses import replace
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import Any

import boto3
import pyarrow as pa
import pytest
from botocore.exceptions import ClientError
from deltalake import DeltaTable, write_deltalake
from deltalake.exceptions import DeltaError

from forebay.batch.plan import Plan, Plans
from forebay.batch.retrying.plan import PLAN, Choice, RetryPlan
from forebay.cli.people.report import _gone_from_disk
from forebay.declaration.kept.in_force import keep_in_force
from forebay.declaration.loading import load_service
from forebay.errors import InvalidConfiguration
from forebay.jobs.declarations import check_in_lake, keep_in_lake
from forebay.lake.folder_objects import FolderObjects
from forebay.lake.layout import SERVICES, plans_of
from forebay.lake.lease import hold
from forebay.lake.listed import OldVersion
from forebay.lake.objects import open_objects
from forebay.lake.s3_objects import RIGHTS_ON_VERSIONS, S3Objects
from forebay.landed_file import LandedFile
from forebay.operate.changing import rollback
from forebay.operate.changing.rollback import finish_earlier, plan_rollback, roll_back
from forebay.operate.lake_view import LakeView
from forebay.operate.looking.accounts import accounts
from forebay.operate.people import erase
from forebay.privacy.erased import add_erased, newest_list
from forebay.privacy.known_secret import keep_secret
from forebay.privacy.secret import make_secret, secret_at
from forebay.privacy.token import token_of
from forebay.upkeep.erase.due import gone_from
from forebay.upkeep.erase.keeping import must_keep_subject
from forebay.upkeep.erase.plan import Done, ErasePlan, Erasures
from tests.operate.command import failed, given, ran
from tests.operate.ledger import entry, write_ledger
from tests.walk import telling

SERVICE = """
name = "games"
[privacy]
subject = "user.id"
personal = [{{ path = "email", become = "masked" }}]
secret = "{secret}"
{more}
[[tables]]
name = "alpha"
columns = [{{ name = "who", path = "user.id" }}, {{ name = "n", type = "long" }}]
[[tables]]
name = "beta"
"""
ANNA, BEN = "anna-4711", "ben-4712"


def file_id(key: str) -> str:
    return LandedFile("landing", key, 100, "e1").file_id


def append(lake: Path, table: str, key: str, **columns: list[Any]) -> None:
    rows = len(next(iter(columns.values())))
    found = pa.table({**columns, "_file_id": [file_id(key)] * rows})
    properties = {"delta.enableChangeDataFeed": "true"} if table == "beta" else {}
    write_deltalake(f"{lake}/{table}", found, mode="append", configuration=properties)


def keep(lake: Path, name: str, key: str, *records: dict[str, Any] | str) -> None:
    texts = [one if isinstance(one, str) else json.dumps(one) for one in records]
    rows = {
        "service": ["games"] * len(texts),
        "file_id": [file_id(key)] * len(texts),
        "line": list(range(1, len(texts) + 1)),
        "record": texts,
        "at": [datetime(2026, 11, 21, tzinfo=UTC)] * len(texts),
    }
    write_deltalake(f"{lake}/_forebay/{name}", pa.table(rows), mode="append")


@pytest.fixture(scope="module")
def written(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Anna and Ben in every kind of place, in versions of before as well."""
    lake = tmp_path_factory.mktemp("written") / "lake"
    append(lake, "alpha", "a.json", who=[ANNA, BEN, ANNA], n=[1, 2, 3])
    append(lake, "alpha", "b.json", who=[BEN, None], n=[4, 5])
    DeltaTable(lake / "alpha").optimize.compact()
    append(lake, "alpha", "c.json", who=[ANNA], n=[6])
    users = [{"id": ANNA}, {"id": BEN}, None]
    rescued = [None, None, json.dumps({"user": {"id": ANNA, "x": 1}})]
    append(lake, "beta", "a.json", user=users, n=[7, 8, 9], _rescued=rescued)
    DeltaTable(lake / "beta").update(updates={"n": "n + 1"}, predicate="n = 7")
    DeltaTable(lake / "beta").create_checkpoint()
    keep(lake, "quarantine", "b.json", {"user": {"id": ANNA}}, {"user": {"id": BEN}}, "{broken")
    keep(lake, "parked", "c.json", {"User": {"ID": ANNA}})
    write_ledger(
        lake,
        entry("a.json", tables={"alpha": 3, "beta": 3}),
        entry("b.json", tables={"alpha": 2}, records=5, quarantined=3),
        entry("c.json", tables={"alpha": 1}, records=2, parked=1),
    )
    return lake


@pytest.fixture
def lake(written: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(written, tmp_path / "lake"))


@pytest.fixture
def declared(tmp_path: Path) -> Callable[..., str]:
    def write(more: str = "") -> str:
        make_secret(secret := f"{tmp_path}/secret")
        (tmp_path / "service.toml").write_text(SERVICE.format(secret=secret, more=more))
        return str(tmp_path / "service.toml")

    return write


def command(lake: Path, service: str, *more: str) -> tuple[str, ...]:
    return ("privacy", "erase", *more, "--lake", str(lake), "--service", service)


def told(lake: Path, name: str) -> list[str]:
    """Every object that tells the name."""
    return telling(lake, name.encode())


def rows(lake: Path, table: str) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = DeltaTable(f"{lake}/{table}").to_pyarrow_table().to_pylist()
    return sorted(found, key=lambda row: json.dumps(row, default=str))


def of_others(lake: Path, table: str) -> list[dict[str, Any]]:
    return [row for row in rows(lake, table) if ANNA not in json.dumps(row, default=str)]


def ledger(lake: Path) -> dict[str, tuple[Any, ...]]:
    names = ("records", "quarantined", "parked", "dropped")
    found = {row["key"]: row for row in rows(lake, "_forebay/ledger")}
    return {key: (*(row[name] for name in names), dict(row["tables"])) for key, row in found.items()}


def test_nobody_finds_an_erased_person_and_others_keep_all(lake: Path, declared: Callable[..., str]) -> None:
    tables = ("alpha", "beta", "_forebay/quarantine", "_forebay/parked")
    others = {table: of_others(lake, table) for table in tables}
    before = DeltaTable(lake / "alpha").version()
    service = declared()
    _, said, warned = given(command(lake, service, ANNA, "--dry-run", "--json"), "")
    assert "the newest file was loaded by declarations v1" in warned
    dry = [json.loads(line) for line in said.splitlines()]
    assert {one["table"]: one["rows"] for one in dry} == dict(zip(tables, (3, 2, 1, 1), strict=True))
    assert told(lake, ANNA)
    assert not (lake / "_forebay/erased").exists()

    status, said, _ = given(command(lake, service, ANNA, "--yes", "--now"), "")
    assert (status, "7 rows are deleted" in said) == (0, True)
    assert told(lake, ANNA) == []
    assert told(lake, BEN)
    assert {table: rows(lake, table) for table in tables} == others
    with pytest.raises(DeltaError):
        DeltaTable(lake / "alpha", version=before).to_pyarrow_table()

    assert ledger(lake) == {
        "a.json": (6, 0, 0, 4, {"alpha": 1, "beta": 1}),
        "b.json": (5, 2, 0, 1, {"alpha": 2}),
        "c.json": (2, 0, 0, 2, {}),
    }
    assert accounts(LakeView(str(lake))).differences() == []
    status, shown, said = given(command(lake, service, ANNA, "--yes"), "")
    assert (status, shown, "is erased already" in said) == (0, "no table has rows of these people\n", True)


def derive(lake: Path, name: str, of: str) -> None:
    """delta-rs makes no table with a property that it does not know."""
    first, known = lake / name / "_delta_log" / f"{0:020}.json", '"delta.appendOnly":"false"'
    first.write_text(first.read_text().replace(known, f'{known},"forebay.derivedFrom":"{of}"'))


MERGED = """
[[tables]]
name = "{game}_log"
mode = "merge"
merge = { into = "{game}_gamers", keys = ["who"], sequence_by = ["n"] }
columns = [{ name = "who", path = "user.id" }, { name = "n", type = "long" }]
"""
ROLLED_UP = 'name = "a_rollup"\ntables = ["chess_gamers"]\ngroup_by = { who = "who" }\ncolumns = { n = "count(*)" }\n'


def test_a_merge_between_the_tables_brings_nobody_back_into_the_log_of_a_state(
    lake: Path, declared: Callable[..., str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The bounds of a file that came and left after the erasure of the state would stay in its log."""
    folder = Path(declared(MERGED)).parent
    (folder / "rollups").mkdir()
    (folder / "rollups/a.toml").write_text(ROLLED_UP)
    append(lake, "chess_log", "a.json", who=[ANNA, BEN], n=[1, 2])

    computed = {"chess_gamers": "chess_log", "a_rollup": "chess_gamers"}

    def merge() -> None:
        """Computes each of them from the one before, from scratch."""
        for name, of in computed.items():
            found = DeltaTable(lake / of).to_pyarrow_table()
            write_deltalake(lake / name, found, mode="overwrite", configuration={"delta.appendOnly": "false"})

    def erase_from_one(*asked: Any) -> None:
        ours(*asked)
        merge()

    ours = erase._erase_from
    monkeypatch.setattr(erase, "_erase_from", erase_from_one)
    merge()
    for name, of in computed.items():
        derive(lake, name, of)
    status, _, said = given(command(lake, str(folder), ANNA, "--yes", "--now"), "")
    assert status == 0, said
    assert told(lake, ANNA) == []
    assert [row["who"] for row in rows(lake, "a_rollup")] == [BEN]


def test_a_state_or_a_rollup_that_is_no_longer_declared_is_searched(lake: Path, declared: Callable[..., str]) -> None:
    for name, of, column in (
        ("players", "alpha", "who"),
        ("counted", "players", "person"),
        ("foreign", "others", "who"),
    ):
        found = pa.table({column: [ANNA, BEN], "n": [1, 2]})
        write_deltalake(lake / name, found, configuration={"delta.appendOnly": "false"})
        derive(lake, name, of)
    status, _, said = given(command(lake, declared(), ANNA, "--yes", "--now"), "")
    assert (status, [row["who"] for row in rows(lake, "players")]) == (0, [BEN])
    assert "do not say whose their rows are, and stay: counted" in said
    assert {name.partition("/")[0] for name in told(lake, ANNA)} == {"counted", "foreign"}


def test_the_report_is_signed_and_says_what_is_left_where(lake: Path, declared: Callable[..., str]) -> None:
    service = declared()
    _, said, _ = given(command(lake, service, ANNA, "--yes"), "")
    assert re.search(r"gone from disk by \d{4}-\d\d-\d\d \d\d:\d\d:\d\d;", said)
    (report,) = map(
        json.loads, ran("privacy", "report", "1", "--lake", str(lake), "--service", service, "--json").splitlines()
    )
    assert [(one["table"], one["rows"], one["gone"]) for one in report["tables"]] == [
        ("_forebay/parked", 1, False),
        ("_forebay/quarantine", 1, False),
        ("alpha", 3, False),
        ("beta", 2, False),
    ]
    assert sorted(one["key"] for one in report["landing"]) == ["a.json", "b.json", "c.json"]
    assert (report["is_gone"], ANNA in json.dumps(report)) == (False, False)
    assert told(lake, ANNA)  # in older versions, for as long as they can be read
    given(command(lake, service, "--now"), "")
    (report,) = map(
        json.loads, ran("privacy", "report", "1", "--lake", str(lake), "--service", service, "--json").splitlines()
    )
    assert ([one["gone"] for one in report["tables"]], told(lake, ANNA)) == ([True] * 4, [])
    place = lake / "_forebay/erased/games/reports/0000000001.json"
    place.write_text(place.read_text().replace('"rows": 3', '"rows": 2'))
    assert "signature of report 1 does not hold" in failed(
        1, "privacy", "report", "1", "--lake", str(lake), "--service", service
    )


def test_a_person_reads_the_report_as_sentences(lake: Path, declared: Callable[..., str]) -> None:
    where = ("--lake", str(lake), "--service", declared())
    given(("privacy", "erase", ANNA, *where, "--yes"), "")
    first, head, *tables = ran("privacy", "report", *where).splitlines()
    assert re.fullmatch(r"erasure 1 of games, [\d-]{10} [\d:]{8}: 1 person", first)
    assert re.split(r"  +", head) == ["table", "rows deleted", "gone from disk"]
    assert re.fullmatch(r"alpha +3  on [\d-]{10} [\d:]{8}", tables[2])
    assert tables[4:] == [
        "not judged: 1 row and 0 data files (docs/personal-data.md, The report)",
        "3 landed objects hold their records:",
        "  s3://landing/a.json",
        "  s3://landing/b.json",
        "  s3://landing/c.json",
        "Rows of these people may be left in tables",
        "The signature is right",
    ]
    given(("privacy", "erase", *where, "--now"), "")
    assert re.search(r"^alpha +3  yes$", ran("privacy", "report", "1", *where), re.M)


def test_an_erasure_that_has_not_ended_has_no_report_yet(lake: Path, declared: Callable[..., str]) -> None:
    where = ("--lake", str(lake), "--service", declared())
    assert "service games has no erasure (" in failed(2, "privacy", "report", *where)
    assert "service games has no erasure 7 (" in failed(2, "privacy", "report", "7", *where)
    erasures = Erasures(str(lake), "games")
    begun = erasures.begin(ErasePlan(0, "2026-11-21T10:00:00+00:00", "games", ()))
    assert "erasure 1 has not ended, so it has no report yet" in failed(1, "privacy", "report", *where)
    assert "has no erasure 7; the newest is 1 (" in failed(2, "privacy", "report", "7", *where)
    erasures.keep(replace(begun, ended=True))
    assert "erasure 1 of games" in ran("privacy", "report", *where), "the run died between its end and its report"


def test_what_is_due_already_leaves_with_the_next_maintenance() -> None:
    one = {"refused": "", "dropped": False, "searched": True, "gone": None}
    assert _gone_from_disk({**one, "due_at": "2026-01-02T10:00:00+00:00"}) == "with the next maintenance"
    assert _gone_from_disk({**one, "due_at": "2226-01-02T10:00:00+00:00"}) == "on 2226-01-02 10:00:00"


def test_rows_become_anonymous_where_that_is_declared(lake: Path, declared: Callable[..., str]) -> None:
    given(command(lake, declared('erased_rows = "anonymised"'), ANNA, "--yes", "--now"), "")
    assert told(lake, ANNA) == []
    assert sorted((row["n"], row["who"]) for row in rows(lake, "alpha") if row["n"] != 5) == [
        (1, None),
        (2, BEN),
        (3, None),
        (4, BEN),
        (6, None),
    ]
    assert sorted((row["n"], str(row["user"])) for row in rows(lake, "beta")) == [
        (8, "None"),
        (8, str({"id": BEN})),
        (9, "None"),
    ]
    assert accounts(LakeView(str(lake))).differences() == []


def test_it_is_the_same_in_s3(lake: Path, declared: Callable[..., str], s3: str, tmp_path: Path) -> None:
    client = boto3.client("s3", endpoint_url=s3, region_name="us-east-1")
    for path in lake.rglob("*"):
        if path.is_file():
            client.upload_file(str(path), "studio-lake", f"erase/{path.relative_to(lake)}")
    status, said, _ = given(
        ("privacy", "erase", ANNA, "--lake", "s3://studio-lake/erase", "--service", declared(), "--yes", "--now"), ""
    )
    assert (status, "7 rows are deleted" in said) == (0, True)
    left = tmp_path / "left"
    for page in client.get_paginator("list_objects_v2").paginate(Bucket="studio-lake", Prefix="erase/"):
        for found in page["Contents"]:
            (left / found["Key"]).parent.mkdir(parents=True, exist_ok=True)
            client.download_file("studio-lake", found["Key"], str(left / found["Key"]))
    assert (told(left, ANNA), bool(told(left, BEN))) == ([], True)
    assert accounts(LakeView("s3://studio-lake/erase")).differences() == []


@pytest.fixture
def versioned(lake: Path, s3: str) -> str:
    """The lake in a bucket that keeps versions, with what maintenance deleted before anybody was erased."""
    client, name = boto3.client("s3", endpoint_url=s3, region_name="eu-west-1"), f"lake-{uuid.uuid4().hex[:8]}"
    client.create_bucket(Bucket=name, CreateBucketConfiguration={"LocationConstraint": "eu-west-1"})
    client.put_bucket_versioning(Bucket=name, VersioningConfiguration={"Status": "Enabled"})
    for path in (one for one in lake.rglob("*") if one.is_file()):
        client.upload_file(str(path), name, f"lake/{path.relative_to(lake)}")
    alpha = LakeView(f"s3://{name}/lake").table("alpha")
    assert alpha is not None
    alpha.vacuum(retention_hours=0, dry_run=False, enforce_retention_duration=False)
    for one in (lake / "beta").glob("*.parquet"):  # replaced by the same bytes
        client.upload_file(str(one), name, f"lake/beta/{one.name}")
    return name


def every_version(client: Any, bucket: str, into: Path) -> Path:
    for page in client.get_paginator("list_object_versions").paginate(Bucket=bucket):
        for one in page.get("Versions", ()):
            place = into / one["Key"] / str(one["VersionId"])
            place.parent.mkdir(parents=True, exist_ok=True)
            client.download_file(bucket, one["Key"], str(place), ExtraArgs={"VersionId": one["VersionId"]})
    return into


def test_a_versioned_lake_keeps_no_version_that_holds_them(
    versioned: str, declared: Callable[..., str], s3: str, tmp_path: Path
) -> None:
    client = boto3.client("s3", endpoint_url=s3, region_name="eu-west-1")
    assert told(every_version(client, versioned, tmp_path / "before"), ANNA)
    where = ("--lake", f"s3://{versioned}/lake", "--service", declared())
    status, said, _ = given(("privacy", "erase", ANNA, *where, "--yes", "--now"), "")
    assert (status, "7 rows are deleted" in said) == (0, True)
    left = every_version(client, versioned, tmp_path / "left")
    assert (told(left, ANNA), bool(told(left, BEN))) == ([], True)
    (report,) = map(json.loads, ran("privacy", "report", "1", *where, "--json").splitlines())
    assert [one["gone"] for one in report["tables"]] == [True] * 4
    assert accounts(LakeView(f"s3://{versioned}/lake")).differences() == []


def test_without_the_right_to_delete_versions_the_report_does_not_say_that_they_are_gone(
    versioned: str, declared: Callable[..., str], monkeypatch: pytest.MonkeyPatch
) -> None:
    denied = ClientError(
        {"Error": {"Code": "AccessDenied"}, "ResponseMetadata": {"HTTPStatusCode": 403}}, "ListObjectVersions"
    )

    def refuse(self: S3Objects) -> Iterator[OldVersion]:
        with self._refusals("list", "old versions", RIGHTS_ON_VERSIONS):
            raise denied
        yield

    where = ("--lake", f"s3://{versioned}/lake", "--service", declared())
    with monkeypatch.context() as patched:
        patched.setattr(S3Objects, "old_versions", refuse)
        said = failed(2, "privacy", "erase", ANNA, *where, "--yes", "--now")
    assert "s3:ListBucketVersions" in said
    (report,) = map(json.loads, ran("privacy", "report", "1", *where, "--json").splitlines())
    assert (report["is_gone"], [one["gone"] for one in report["tables"]]) == (False, [False] * 4)
    given(("privacy", "erase", *where, "--now"), "")
    (report,) = map(json.loads, ran("privacy", "report", "1", *where, "--json").splitlines())
    assert [one["gone"] for one in report["tables"]] == [True] * 4


def test_old_versions_of_a_table_that_was_dropped_before_keep_a_report_from_calling_them_gone(
    versioned: str, declared: Callable[..., str], s3: str
) -> None:
    client, lake = boto3.client("s3", endpoint_url=s3, region_name="eu-west-1"), f"s3://{versioned}/lake"
    table = open_objects(f"{lake}/alpha")
    table.delete([one.name for one in table.found()])
    where = ("--lake", lake, "--service", declared())
    status, out, err = given(("privacy", "erase", ANNA, *where, "--yes", "--now"), "")
    assert (status, "4 rows are deleted" in out) == (0, True)
    assert "the bucket keeps old versions of dropped tables, which are not searched: alpha" in err
    for gone in (False, True):
        (report,) = map(json.loads, ran("privacy", "report", "1", *where, "--json").splitlines())
        assert {one["table"]: one["gone"] for one in report["tables"] if one["dropped"]} == {"alpha": gone}
        assert report["is_gone_from_tables"] is False, "the quarantine has a record that nobody can read"
        found = client.list_object_versions(Bucket=versioned, Prefix="lake/alpha/")
        for one in (*found.get("Versions", ()), *found.get("DeleteMarkers", ())):
            client.delete_object(Bucket=versioned, Key=one["Key"], VersionId=one["VersionId"])
        given(("privacy", "erase", *where), "")


def test_a_table_that_is_dropped_before_an_erasure_continues_keeps_the_names_of_its_objects(
    versioned: str, declared: Callable[..., str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """They are in the landing bucket still."""
    lake, service = f"s3://{versioned}/lake", load_service(declared())
    view, erasures = LakeView(lake), Erasures(lake, "games")
    assert service.privacy is not None
    plan = erase.begin(view, service, [token_of(ANNA, secret_at(service.privacy.secret))])
    with monkeypatch.context() as patch:
        patch.setattr(erase, "_dropped_before", lambda *_: 1 / 0)
        with pytest.raises(ZeroDivisionError):
            erase.carry_out(view, service, plan, wait_s=0)
    before = erasures.done(plan)["alpha"]
    table = open_objects(f"{lake}/alpha")
    table.delete([one.name for one in table.found()])
    report = erase.carry_out(view, service, plan, wait_s=0)
    after = erasures.done(plan)["alpha"]
    assert (after.dropped, after.rows, after.files) == (True, 3, before.files)
    assert [one["key"] for one in report["landing"]] == ["a.json", "b.json", "c.json"]


def test_what_an_erasure_noted_is_read_as_often_for_many_dropped_tables_as_for_one(
    versioned: str, declared: Callable[..., str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each read takes a request for each table of the lake."""
    lake, service, reads = f"s3://{versioned}/lake", load_service(declared()), list[int]()
    view, done = LakeView(lake), Erasures.done
    assert service.privacy is not None
    plan = erase.begin(view, service, [token_of(ANNA, secret_at(service.privacy.secret))])

    def counted(self: Erasures, plan: ErasePlan) -> dict[str, Done]:
        reads.append(plan.number)
        return done(self, plan)

    monkeypatch.setattr(Erasures, "done", counted)
    for dropped in (["one"], [f"table_{number}" for number in range(30)]):
        monkeypatch.setattr(erase, "_dropped_before", lambda view, dropped=dropped: dropped)
        erase.carry_out(view, service, plan, wait_s=0)
        reads.append(-1)
    at = reads.index(-1)
    assert len(reads) - at - 1 <= at + 1
    assert {name for name, one in done(Erasures(lake, "games"), plan).items() if one.dropped} >= {"one", "table_29"}


def report_of(lake: Path, service: str) -> Any:
    (report,) = map(
        json.loads, ran("privacy", "report", "1", "--lake", str(lake), "--service", service, "--json").splitlines()
    )
    return report


def not_judged(report: Any) -> dict[str, tuple[int, int]]:
    found = {one["table"]: (one["rows_not_judged"], one["objects_not_judged"]) for one in report["tables"]}
    assert report["not_judged"] == {
        "rows": sum(r for r, _ in found.values()),
        "objects": sum(o for _, o in found.values()),
    }
    return {table: counts for table, counts in found.items() if any(counts)}


def test_what_nobody_can_judge_is_counted_and_then_nothing_is_called_gone(
    lake: Path, declared: Callable[..., str]
) -> None:
    """A text that is no JSON, a file that its writer did not finish, and a table that does not say whose its rows are."""
    service, other = declared('[[tables]]\nname = "gamma"\n'), str(uuid.uuid4())
    append(lake, "gamma", "a.json", n=[1, 2])
    append(lake, "beta", "a.json", user=[None], n=[1], _rescued=['{"user": {"id": "anna'])
    (lake / f"alpha/part-{other}.parquet").write_bytes(b"PAR1 torn")
    given(command(lake, service, ANNA, "--yes", "--now"), "")
    report = report_of(lake, service)
    assert not_judged(report) == {
        "_forebay/quarantine": (1, 0),
        "alpha": (0, 1),
        "beta": (1, 0),
        "gamma": (2, 0),
    }
    assert all(one["gone"] for one in report["tables"])
    assert (report["is_gone_from_tables"], report["is_gone"]) == (False, False)


def test_a_table_that_ignores_the_subject_does_not_say_whose_its_rows_are(
    lake: Path, declared: Callable[..., str]
) -> None:
    """Every table has a column of what did not fit, and there the field would be in other tables."""
    service = declared('[[tables]]\nname = "gamma"\ncolumns = [{ name = "n" }]\nundeclared = { become = "ignored" }\n')
    append(lake, "gamma", "a.json", n=["1", "2"], _rescued=[None, '{"n":{}}'])
    _, _, said = given(command(lake, service, ANNA, "--yes", "--now"), "")
    assert "do not say whose their rows are, and stay: gamma" in said
    report = report_of(lake, service)
    assert (not_judged(report)["gamma"], report["is_gone_from_tables"]) == ((2, 0), False)


def test_where_all_is_judged_they_are_gone_from_the_tables(lake: Path, declared: Callable[..., str]) -> None:
    service = declared()
    shutil.rmtree(lake / "_forebay/quarantine")
    given(command(lake, service, ANNA, "--yes", "--now"), "")
    report = report_of(lake, service)
    assert not_judged(report) == {}
    assert (report["is_gone_from_tables"], report["is_gone"]) == (True, False)  # objects that landed hold them


def test_records_of_other_services_are_not_this_ones_to_judge(lake: Path, declared: Callable[..., str]) -> None:
    service = declared()
    DeltaTable(lake / "_forebay/quarantine").update(updates={"service": "'else'"}, predicate="record like '{broken%'")
    given(command(lake, service, ANNA, "--yes", "--now"), "")
    assert not_judged(report_of(lake, service)) == {}


class Killed(BaseException):
    """The process is no more."""


class Dying:
    """Lets so many objects of erasures and logs be written, and then nothing more."""

    def __init__(self, patched: pytest.MonkeyPatch, allowed: int) -> None:
        self.left = allowed
        for name in ("write", "write_once", "write_over"):
            patched.setattr(FolderObjects, name, self.dying(getattr(FolderObjects, name)))

    def dying(self, write: Callable[..., Any]) -> Callable[..., Any]:
        def dies(objects: FolderObjects, name: str, *more: Any) -> Any:
            if self.left == 0:
                raise Killed
            self.left -= 1
            return write(objects, name, *more)

        return dies


def test_an_erasure_is_finished_wherever_it_was_stopped(
    lake: Path, declared: Callable[..., str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """After each object that it writes; the next run dies one later, and the last one not at all."""
    service, ended = declared(), False
    for allowed in range(100):
        with monkeypatch.context() as patched:
            Dying(patched, allowed)
            try:
                given(command(lake, service, *([] if allowed > 1 else [ANNA]), "--yes", "--now"), "")
                ended = True
            except Killed:
                continue
        break
    assert ended
    assert allowed > 3
    assert told(lake, ANNA) == []
    assert accounts(LakeView(str(lake))).differences() == []
    assert ledger(lake)["a.json"] == (6, 0, 0, 4, {"alpha": 1, "beta": 1})


def test_two_who_erase_at_once_have_plans_of_their_own(lake: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """By its number an erasure knows what it has done. With another one's it would leave tables out."""
    erasures = Erasures(str(lake), "games")
    there, stale = erasures.plans, [iter(()), iter(())]
    monkeypatch.setattr(erasures, "plans", lambda: stale.pop() if stale else there())
    plans = [erasures.begin(ErasePlan(0, "", "games", (token,))) for token in ("tok_a", "tok_b")]
    assert [*erasures.plans()] == plans == [replace(one, number=n) for n, one in enumerate(plans, 1)]


@pytest.mark.parametrize("ended", [True, False], ids=["ended", "killed"])
def test_an_erasure_that_another_one_followed_is_counted_once(
    lake: Path, declared: Callable[..., str], monkeypatch: pytest.MonkeyPatch, ended: bool
) -> None:
    """A command that waited for the lease knows the plan as it was; or it continues the plan of a process that was killed."""
    service, view, erasures = load_service(declared()), LakeView(str(lake)), Erasures(str(lake), "games")
    secret = secret_at(f"{lake.parent}/secret")
    append(lake, "alpha", "d.json", who=["cleo"], n=[7])
    write_ledger(lake, entry("d.json", tables={"alpha": 1}))
    one, two = (erase.begin(view, service, [token_of(who, secret)]) for who in (ANNA, "cleo"))
    with monkeypatch.context() as patch:
        if not ended:
            patch.setattr(erase, "_landing_cleared", lambda *_: 1 / 0)
        with nullcontext() if ended else pytest.raises(ZeroDivisionError):
            erase.carry_out(view, service, one, wait_s=0)
    erase.carry_out(view, service, two, wait_s=0)
    before = ledger(lake)
    assert accounts(view).differences() == []
    stale = one if ended else next(plan for plan in erasures.plans() if plan.number == one.number)
    report = erase.carry_out(view, service, stale, wait_s=0)
    assert (ledger(lake), accounts(view).differences()) == (before, [])
    assert sum(told["rows"] for told in report["tables"]) == 7
    assert all(plan.ended for plan in erasures.plans())


def test_a_batch_that_began_before_is_waited_for(lake: Path, declared: Callable[..., str]) -> None:
    service = declared()
    plans = Plans(open_objects(f"{lake}/_forebay/plans"), "games")
    plan = Plan(
        generation="g",
        batch=9,
        began_at=datetime(2026, 11, 21, tzinfo=UTC),
        service={"erased": ""},
        files=(),
        ends=(),
        fates=(),
    )
    plans.pin(plan)
    said = failed(1, *command(lake, service, ANNA, "--yes", "--wait-s", "0"))
    assert "batch 9 began before and is unfinished" in said
    assert "No row was changed" in said
    assert len(rows(lake, "alpha")) == 6
    plans.forget("g", 9)
    plans.pin(replace(plan, service={"erased": newest_list(str(lake), "games")}))
    status, _, said = given(command(lake, service, "--now"), "")
    assert (status, "continues erasure 1" in said, told(lake, ANNA)) == (0, True, [])


@pytest.mark.parametrize("before", ["/", "file:/", "s3a://b/"])
def test_a_batch_with_an_older_list_is_waited_for_however_its_job_spells_the_lake(
    lake: Path, declared: Callable[..., str], before: str
) -> None:
    """Or if it began where the lake was before a disaster."""
    service = declared()
    given(command(lake, service, BEN, "--yes", "--now"), "")
    spelt = f"{before}elsewhere{newest_list(str(lake), 'games').removeprefix(str(lake))}"
    plans = Plans(open_objects(f"{lake}/_forebay/plans"), "games")
    at = datetime(2026, 11, 21, tzinfo=UTC)
    plan = Plan(generation="g", batch=9, began_at=at, service={"erased": spelt}, files=(), ends=(), fates=())
    plans.pin(plan)
    assert "batch 9 began before" in failed(1, *command(lake, service, ANNA, "--yes", "--wait-s", "0"))
    plans.forget("g", 9)
    plans.pin(replace(plan, service={"erased": f"{spelt[:-1]}2"}))
    assert given(command(lake, service, "--wait-s", "0"), "")[0] == 0


def test_a_retry_that_began_before_is_waited_for(lake: Path, declared: Callable[..., str]) -> None:
    """One that goes by an older list could write the person's rows again; one that chose them could count them again."""
    service, tries = declared(), open_objects(plans_of(str(lake), "games"))

    def retry(erased: str) -> None:
        choice = Choice("quarantine")
        tries.write(PLAN, RetryPlan(1, 0, "2026-11-21T00:00:00+00:00", choice, {"erased": erased}).as_json())

    retry("")
    said = failed(1, *command(lake, service, ANNA, "--yes", "--wait-s", "0"))
    assert "a retry began before and is unfinished" in said
    assert len(rows(lake, "alpha")) == 6
    retry(newest_list(str(lake), "games"))
    assert "a retry is unfinished" in failed(1, *command(lake, service, "--wait-s", "0"))
    assert len(rows(lake, "_forebay/quarantine")) == 3
    tries.delete([PLAN])
    held = hold(plans_of(str(lake), "games"), wait_s=0)
    assert "is in use by" in failed(1, *command(lake, service, "--wait-s", "0"))
    held.let_go()
    status, _, said = given(command(lake, service, "--now"), "")
    assert (status, "continues erasure 1" in said, told(lake, ANNA)) == (0, True, [])


def test_a_commit_of_somebody_else_in_between_changes_nothing(
    lake: Path, declared: Callable[..., str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """New rows, and a compaction of the very files."""
    once, done = FolderObjects.write_once, []

    def first_others(self: FolderObjects, name: str, content: bytes) -> bool:
        if self.place.endswith("alpha") and name.endswith(".json") and len(done) < 2:
            done.append(name)
            if len(done) == 1:
                append(lake, "alpha", "c.json", who=[BEN], n=[10])
            else:
                DeltaTable(lake / "alpha").optimize.compact()
        return once(self, name, content)

    monkeypatch.setattr(FolderObjects, "write_once", first_others)
    given(command(lake, declared(), ANNA, "--yes", "--now"), "")
    assert len(done) == 2
    assert (told(lake, ANNA), sorted(row["n"] for row in rows(lake, "alpha"))) == ([], [2, 4, 5, 10])


@pytest.mark.parametrize("nobody", ["unknown", "0", "NULL", ""])
def test_who_is_nobody_is_not_erased_without_force(lake: Path, declared: Callable[..., str], nobody: str) -> None:
    append(lake, "alpha", "a.json", who=[nobody], n=[1])
    assert "identifies nobody" in failed(2, *command(lake, declared(), nobody, "--yes"))
    assert given(command(lake, declared(), nobody, "--yes", "--force"), "")[0] == 0


def test_who_has_a_large_share_of_a_table_is_not_erased_without_force(lake: Path, declared: Callable[..., str]) -> None:
    append(lake, "alpha", "a.json", who=["default"] * 2000, n=list(range(2000)))
    said = failed(2, *command(lake, declared(), "default", "--yes"))
    assert "it has 2,000 of 2,006 rows of alpha" in said


def test_a_person_is_found_in_arrays_and_in_records_that_were_rescued_whole(
    lake: Path, declared: Callable[..., str]
) -> None:
    """So nobody is hidden by an array in a column of text, or by one key that stands twice."""
    twice = f'{{"user":{{"id":"{ANNA}"}},"n":1,"n":2}}'
    append(lake, "alpha", "d.json", who=[json.dumps([BEN, ANNA]), json.dumps([BEN])], n=[1, 2])
    append(lake, "beta", "d.json", user=[None, None], n=[1, 2], _rescued=[json.dumps({"": twice}), None])
    status, said, _ = given(command(lake, declared(), ANNA, "--yes", "--now"), "")
    assert (status, "9 rows are deleted" in said) == (0, True)
    assert told(lake, ANNA) == []
    assert json.dumps([BEN]) in [row["who"] for row in rows(lake, "alpha")]


def test_an_unknown_person_is_told(lake: Path, declared: Callable[..., str], tmp_path: Path) -> None:
    assert "nobody-9: no row of this person is kept" in failed(1, *command(lake, declared(), "nobody-9", "--yes"))
    assert newest_list(str(lake), "games") == ""
    (tmp_path / "list").write_text(f"\ufeff{BEN}\r\n\r\nnobody-9\r\n")  # as Windows writes it
    status, _, said = given(command(lake, declared(), "--from", f"{tmp_path}/list", "--yes", "--now"), "")
    assert (status, "nobody-9: no row" in said, told(lake, BEN)) == (0, True, [])
    assert "cannot be read" in failed(2, *command(lake, declared(), "--from", f"{tmp_path}/none"))


def test_a_line_of_a_list_is_a_subject_as_it_stands(
    lake: Path, declared: Callable[..., str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Only a newline ends it, so a subject may have a blank, or a sign that Unicode calls the end of a line."""
    odd = [" anna", "ben ", "a\u2028b", "c\x85d", "e\x0bf", "g\u2029h\x1c"]
    append(lake, "alpha", "d.json", who=odd, n=list(range(len(odd))))
    before = len(rows(lake, "alpha"))
    content = "\n".join([*odd[:3], "", *odd[3:], "anna", "anna ", " "]).encode()
    (tmp_path / "list").write_bytes(content)
    found = command(lake, declared(), "--from", f"{tmp_path}/list", "--dry-run", "--json")
    status, said, warned = given(found, "")
    assert (status, json.loads(said)["people"]) == (0, len(odd))
    assert "\nanna: no row" in warned
    assert "'anna ': no row" in warned
    status, _, _ = given(command(lake, declared(), "--from", "-", "--yes"), content.decode())
    assert (status, before - len(rows(lake, "alpha"))) == (0, len(odd))


def test_a_subject_may_be_erased_by_its_token(lake: Path, declared: Callable[..., str]) -> None:
    service = declared()
    token = token_of(ANNA, secret_at(f"{lake.parent}/secret"))
    given(command(lake, service, token, "--yes", "--now"), "")
    assert told(lake, ANNA) == []


def test_a_table_that_cannot_be_rewritten_is_told_and_others_go_on(lake: Path, declared: Callable[..., str]) -> None:
    DeltaTable(lake / "alpha").alter.set_table_properties({"delta.appendOnly": "true"})
    said = failed(1, *command(lake, declared(), ANNA, "--yes"))
    assert "alpha: stays unchanged: it does not allow deleting rows" in said
    assert len(rows(lake, "beta")) == 1


def with_v2_checkpoints(table: Path) -> str:
    (table / f"_delta_log/{1:020}.checkpoint.{uuid.uuid4()}.json").write_text("{}")
    (table / f"_delta_log/{0:020}.json").unlink()
    return "it has V2 checkpoints (delta.checkpointPolicy=v2), which are not read"


def without_a_commit(table: Path) -> str:
    (table / f"_delta_log/{1:020}.json").unlink()
    return "the commit of version 1 is missing"


def without_a_data_file(table: Path) -> str:
    (path,) = DeltaTable(table).file_uris()[:1]
    Path(path).unlink()
    return f"lacks its data file {Path(path).name}"


@pytest.mark.parametrize("broken", [with_v2_checkpoints, without_a_commit, without_a_data_file])
def test_a_table_that_cannot_be_read_is_told_and_others_go_on(
    lake: Path, declared: Callable[..., str], broken: Callable[[Path], str]
) -> None:
    """Once it is repaired, the person is erased there as well."""
    shutil.copytree(lake / "alpha", lake.parent / "copy")
    why = broken(lake / "alpha")
    said = failed(1, *command(lake, declared(), ANNA, "--yes", "--now"))
    assert "alpha: stays unchanged" in said
    assert why in said
    assert (len(rows(lake, "beta")), telling(lake / "beta", ANNA.encode())) == (1, [])
    shutil.rmtree(lake / "alpha")
    shutil.copytree(lake.parent / "copy", lake / "alpha")
    assert given(command(lake, declared(), ANNA, "--yes", "--now"), "")[0] == 0
    assert told(lake, ANNA) == []
    assert accounts(LakeView(str(lake))).differences() == []


def test_a_repeated_command_tells_of_a_table_that_stays_and_deletes_old_files_at_once(
    lake: Path, declared: Callable[..., str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its first run was killed, so it finds nobody left to erase."""
    without_a_commit(lake / "alpha")
    asked = command(lake, declared(), ANNA, "--yes", "--now")
    with monkeypatch.context() as patch:
        patch.setattr(erase, "_landing_cleared", lambda *_: 1 / 0)
        with pytest.raises(ZeroDivisionError):
            given(asked, "")
    said = failed(1, *asked)
    assert "alpha: stays unchanged" in said
    assert "is erased already" in said
    assert telling(lake / "beta", ANNA.encode()) == []


def test_old_files_of_a_table_that_cannot_be_read_stay_and_others_go(lake: Path, declared: Callable[..., str]) -> None:
    given(command(lake, declared(), ANNA, "--yes"), "")
    why = without_a_commit(lake / "alpha")
    said = failed(1, *command(lake, declared(), "--now"))
    assert "alpha: its old files stay" in said
    assert why in said
    assert telling(lake / "beta", ANNA.encode()) == []


def test_a_table_that_is_partitioned_by_the_subject_is_told(lake: Path, declared: Callable[..., str]) -> None:
    found = pa.table({"who": [ANNA, BEN], "_file_id": [file_id("a.json")] * 2})
    write_deltalake(lake / "alpha", found, mode="overwrite", schema_mode="overwrite", partition_by=["who"])
    said = failed(1, *command(lake, declared(), ANNA, "--yes"))
    assert "alpha: stays unchanged: it is partitioned by its subject" in said


def test_a_table_that_does_not_say_whose_its_rows_are_is_told(lake: Path, declared: Callable[..., str]) -> None:
    found = pa.table({"n": [1], "_file_id": [file_id("a.json")]})
    write_deltalake(lake / "beta", found, mode="overwrite", schema_mode="overwrite")
    status, _, said = given(command(lake, declared(), ANNA, "--yes"), "")
    assert (status, "do not say whose their rows are, and stay: beta" in said) == (0, True)


def test_what_surrounds_a_record_may_say_whose_it_is(lake: Path, declared: Callable[..., str]) -> None:
    found = pa.table({"x_parent": [{"user": {"id": ANNA}}, {"user": {"id": BEN}}], "_file_id": [file_id("a.json")] * 2})
    write_deltalake(lake / "beta", found, mode="append", schema_mode="merge")
    given(command(lake, declared(), ANNA, "--yes", "--now"), "")
    assert told(lake, ANNA) == []


def test_a_rollback_brings_no_erased_person_back(lake: Path, declared: Callable[..., str]) -> None:
    given(command(lake, declared(), ANNA, "--yes"), "")
    said = failed(2, "rollback", "alpha", "--to", "0", "--lake", str(lake), "--dry-run")
    assert "has rows in version 0 of people who have been erased since" in said


def test_a_rollback_brings_nobody_back_whose_rows_had_left_before_the_erasure(
    lake: Path, declared: Callable[..., str]
) -> None:
    """The erasure found no row of hers there, and so it made no commit."""
    service = declared()
    keep_in_force(str(lake), load_service(service))
    DeltaTable(lake / "alpha").delete(f"who = '{ANNA}'")
    looked = DeltaTable(lake / "alpha").version()
    append(lake, "alpha", "b.json", who=[BEN], n=[9])
    back = ("rollback", "alpha", "--lake", str(lake), "--dry-run", "--to")
    assert "alpha" in ran(*back, f"{looked - 1}")
    given(command(lake, service, ANNA, "--yes"), "")
    assert DeltaTable(lake / "alpha").version() == looked + 1
    said = failed(2, *back, f"{looked - 1}")
    assert f"has rows in version {looked - 1} of people who have been erased since" in said
    assert "alpha" in ran(*back, f"{looked}")
    keep_secret(str(lake), load_service(service))
    (lake.parent / "secret").rename(lake.parent / "lost")
    make_secret(f"{lake.parent}/secret")
    secret_at.cache_clear()
    assert "this cannot be checked: privacy: secret: " in failed(2, *back, f"{looked - 1}")
    shutil.rmtree(lake / SERVICES)
    assert "this cannot be checked" in failed(2, *back, f"{looked - 1}")
    assert "alpha" in ran(*back, f"{looked}"), "all files of this version were searched"


def test_a_rollback_that_was_planned_before_an_erasure_brings_nobody_back(
    lake: Path, declared: Callable[..., str]
) -> None:
    """Somebody looked at the plan for long, or the rollback was killed, and its table did not change meanwhile."""
    service = declared()
    keep_in_force(str(lake), load_service(service))
    DeltaTable(lake / "alpha").delete(f"who = '{ANNA}'")
    view, to = LakeView(str(lake)), DeltaTable(lake / "alpha").version() - 1
    plan = plan_rollback(view, ["alpha"], to, replay=False)
    given(command(lake, service, ANNA, "--yes"), "")
    done = roll_back(view, plan)
    assert f"has rows in version {to} of people who have been erased since" in done.stay["alpha"]
    assert of_others(lake, "alpha") == rows(lake, "alpha")


def test_nobody_is_erased_while_a_rollback_is_half_done(
    lake: Path, declared: Callable[..., str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The ledger would count the rows of its plan, which the erasure had removed."""
    service, view = declared(), LakeView(str(lake))
    plan = plan_rollback(view, ["alpha"], DeltaTable(lake / "alpha").version() - 1, replay=False)
    with monkeypatch.context() as patched:
        patched.setattr(rollback, "_change_ledger", lambda *_: died())
        with pytest.raises(Killed):
            roll_back(view, plan)
    assert f"a rollback of {lake} is unfinished: repeat `forebay rollback alpha" in failed(
        1, *command(lake, service, ANNA, "--yes")
    )
    assert finish_earlier(view) is not None
    given(command(lake, service, "--now"), "")
    assert told(lake, ANNA) == []
    assert accounts(view).differences() == []


def died() -> None:
    raise Killed


def test_an_erasure_is_not_finished_with_another_secret(lake: Path, declared: Callable[..., str]) -> None:
    """It would find nobody, and report them gone."""
    service = declared()
    token = token_of(ANNA, secret_at(f"{lake.parent}/secret"))
    Erasures(str(lake), "games").begin(ErasePlan(0, "2026-11-21T10:00:00+00:00", "games", (token,)))
    make_secret(f"{lake.parent}/other")
    first = Path(service).read_text()
    Path(service).write_text(first.replace("/secret", "/other"))
    said = failed(2, *command(lake, service))
    assert "erasure 1: began with a different secret than these declarations name; no row was changed" in said
    assert told(lake, ANNA)
    Path(service).write_text(first)
    given(command(lake, service, "--now"), "")
    assert told(lake, ANNA) == []


def test_the_subject_stays_as_it_was_when_people_were_erased(lake: Path, declared: Callable[..., str]) -> None:
    """By another field an interrupted erasure would find nobody and report them gone, and a repeated one would find others."""
    service = declared()
    first, view = Path(service).read_text(), LakeView(str(lake))
    must_keep_subject(str(lake), load_service(service))
    erase.begin(view, load_service(service), [token_of(ANNA, secret_at(f"{lake.parent}/secret"))])
    nobody = 'name = "games"\n' + first[first.index("[[tables]]") :]
    others = (first.replace('"user.id"', '"player"'), nobody)
    for other in others:
        Path(service).write_text(other)
        for more in ((), (BEN, "--yes"), ("--now",), ("--search-landing", "--yes")):
            said = failed(2, *command(lake, service, *more))
            assert "people were erased by the subject user.id" in said
        with pytest.raises(InvalidConfiguration, match="by the subject user"):
            check_in_lake(None, str(lake), load_service(service))  # type: ignore[arg-type]
    assert told(lake, ANNA)
    Path(service).write_text(first)
    given(command(lake, service, "--now"), "")
    assert told(lake, ANNA) == []
    Path(service).write_text(others[0])
    assert "by the subject user.id" in failed(2, *command(lake, service, "--search-landing", "--yes"))
    Path(service).write_text(others[0].rpartition("[[tables]]")[0])
    assert "by the subject user.id" in failed(2, "tables", "check", service, "--lake", str(lake), "--no-sql")


def test_a_job_and_an_erasure_refuse_another_secret_than_that_of_the_lake(
    lake: Path, declared: Callable[..., str], tmp_path: Path
) -> None:
    """Somebody lost it, and made a new one in its place. No command would find anybody by it."""
    service = declared()
    keep_secret(str(lake), load_service(service))
    assert told(lake, ANNA)
    (tmp_path / "secret").unlink()
    make_secret(f"{tmp_path}/secret")
    secret_at.cache_clear()
    for more in ((ANNA, "--dry-run"), (ANNA, "--yes")):
        assert "is not the secret that made the tokens in this lake" in failed(2, *command(lake, service, *more))
    with pytest.raises(InvalidConfiguration, match="is not the secret"):
        keep_in_lake(str(lake), load_service(service))
    assert told(lake, ANNA)


def test_maintenance_needs_the_secret_only_where_files_of_an_erasure_are_due(
    lake: Path, declared: Callable[..., str], tmp_path: Path
) -> None:
    """It compares it then. Every other table is maintained although the secret is lost."""
    service = declared()
    keep_secret(str(lake), load_service(service))
    given(command(lake, service, ANNA, "--yes"), "")
    (tmp_path / "secret").unlink()
    secret_at.cache_clear()
    leave = partial(gone_from, str(lake), "alpha", load_service(service), write_checkpoint=lambda *_: None)
    assert leave() == 0
    make_secret(f"{tmp_path}/secret")
    with pytest.raises(InvalidConfiguration, match="is not the secret"):
        leave(now=datetime.max.replace(tzinfo=UTC))


def test_maintenance_with_the_newer_of_two_secrets_leaves_an_erasure_of_the_older_one(
    lake: Path, declared: Callable[..., str], tmp_path: Path
) -> None:
    """An earlier version accepted a new secret. It finds nobody by it, and would note that their files are gone."""
    service = declared()
    given(command(lake, service, ANNA, "--yes"), "")
    (tmp_path / "secret").unlink()
    make_secret(f"{tmp_path}/secret")
    secret_at.cache_clear()
    add_erased(str(lake), "games", [token_of(BEN, secret_at(f"{tmp_path}/secret"))])
    leave = partial(gone_from, str(lake), "alpha", load_service(service), write_checkpoint=lambda *_: None)
    with pytest.raises(InvalidConfiguration, match="erasure 1: began with a different secret"):
        leave(now=datetime.max.replace(tzinfo=UTC))
    (plan,) = (erasures := Erasures(str(lake), "games")).plans()
    assert erasures.done(plan)["alpha"].gone is None
    given(command(lake, service, BEN, "--yes"), "")
    assert told(lake, BEN), "the older files wait"
    assert "erasure 1: began with a different secret" in failed(1, *command(lake, service, "--now"))
    assert not told(lake, BEN), "the erasure of the newer secret does not wait for the other one"
    first, second = erasures.plans()
    assert not any(one.gone for one in erasures.done(first).values())
    assert second.gone_at


def test_a_declared_column_that_has_the_subject_stays(lake: Path, declared: Callable[..., str]) -> None:
    """Under another name or path, nobody would look for a person in its earlier rows."""
    service = declared()
    first, column = Path(service).read_text(), '{ name = "who", path = "user.id" }'
    keep_in_force(str(lake), load_service(service))
    for other in ('{ name = "player", path = "user.id" }', '{ name = "who", path = "user.name" }'):
        Path(service).write_text(first.replace(column, other))
        said = failed(2, *command(lake, service, ANNA, "--yes"))
        assert "table alpha: column who has the subject user.id of earlier rows" in said
        assert f"keep {column}" in said
        with pytest.raises(InvalidConfiguration, match="column who has the subject"):
            check_in_lake(None, str(lake), load_service(service))  # type: ignore[arg-type]
    Path(service).write_text(first.replace(column, column + ', { name = "player", path = "user.id" }'))
    given(command(lake, service, ANNA, "--yes", "--now"), "")
    assert told(lake, ANNA) == []


OF_DECLARATIONS = ["quarantine retry", "parked adopt alpha", "resume all", "schema settle alpha"]


@pytest.mark.parametrize("typed", OF_DECLARATIONS)
@pytest.mark.parametrize("what", ["subject", "column"])
def test_no_command_writes_rows_by_declarations_that_lose_the_subject(
    lake: Path, declared: Callable[..., str], typed: str, what: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nobody would be erased from the rows that it writes."""
    monkeypatch.setattr("forebay.lake.safety.session_for", None)
    service = declared()
    first = Path(service).read_text()
    keep_in_force(str(lake), load_service(service))
    if what == "subject":
        erase.begin(LakeView(str(lake)), load_service(service), [token_of(ANNA, secret_at(f"{lake.parent}/secret"))])
    old, new = ('"user.id"', '"player"') if what == "subject" else ('name = "who"', 'name = "player"')
    Path(service).write_text(first.replace(old, new))
    said = failed(2, *typed.split(), "--service", service, "--lake", str(lake))
    assert ("by the subject user.id" if what == "subject" else "column who has the subject user.id") in said


def test_a_service_without_a_subject_erases_nobody(lake: Path, tmp_path: Path) -> None:
    (tmp_path / "plain.toml").write_text('name = "games"\n[[tables]]\nname = "alpha"\n')
    assert "does not declare which field identifies a person" in failed(
        2, *command(lake, f"{tmp_path}/plain.toml", ANNA)
    )


def test_a_table_that_was_dropped_is_gone_once_nothing_of_it_is_left(lake: Path, declared: Callable[..., str]) -> None:
    service = declared()
    where = ("--lake", str(lake), "--service", service)
    given(command(lake, service, ANNA, "--yes"), "")
    shutil.rmtree(lake / "alpha/_delta_log")
    given(command(lake, service, "--now"), "")
    for is_gone in (False, True):
        (report,) = map(json.loads, ran("privacy", "report", "1", *where, "--json").splitlines())
        assert {one["table"]: one["gone"] for one in report["tables"]}["alpha"] is is_gone
        shutil.rmtree(lake / "alpha", ignore_errors=True)
        given(command(lake, service, "--now"), "")


@pytest.mark.usefixtures("s3")
def test_what_a_backup_brings_back_is_erased_again(lake: Path, declared: Callable[..., str], tmp_path: Path) -> None:
    service = declared()
    shutil.copytree(lake, tmp_path / "backup")
    given(command(lake, service, ANNA, "--yes", "--now"), "")
    for folder in ("alpha", "beta", "_forebay/quarantine", "_forebay/parked", "_forebay/ledger"):
        shutil.rmtree(lake / folder)
        shutil.copytree(tmp_path / "backup" / folder, lake / folder)
    assert told(lake, ANNA)
    status, _, said = given(command(lake, service, "--search-landing", "--yes", "--now"), "")
    assert (status, told(lake, ANNA), bool(told(lake, BEN))) == (0, [], True), said


def test_after_a_process_that_was_killed_the_next_one_waits_until_its_lease_runs_out(
    lake: Path, declared: Callable[..., str], s3: str
) -> None:
    client, place = boto3.client("s3", endpoint_url=s3, region_name="eu-west-1"), f"killed-{uuid.uuid4().hex[:8]}"
    for path in (one for one in lake.rglob("*") if one.is_file()):
        client.upload_file(str(path), "studio-lake", f"{place}/{path.relative_to(lake)}")

    def leave_a_lease(lasts_s: float) -> None:
        dead = json.dumps({"who": "process 9 on a-box", "epoch": 1, "lasts_s": lasts_s, "id": "x"}).encode()
        client.put_object(Bucket="studio-lake", Key=f"{place}/_forebay/erased/games/lease.json", Body=dead)

    where = ("--lake", f"s3://studio-lake/{place}", "--service", declared(), "--yes", "--now")
    leave_a_lease(600)
    assert "in use by process 9 on a-box" in failed(1, "privacy", "erase", ANNA, *where, "--wait-s", "0")
    assert "waiting for the erasure of process 9 on a-box" in failed(1, "privacy", "erase", *where, "--wait-s", "0.1")
    leave_a_lease(6)
    assert given(("privacy", "erase", *where), "")[0] == 0
    assert accounts(LakeView(f"s3://studio-lake/{place}")).differences() == []
