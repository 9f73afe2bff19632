"""Landed objects lose the records of erased persons as declared; others keep every byte, and the job knows what was written."""

from __future__ import annotations

import gzip
import json
import uuid
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from itertools import product
from pathlib import Path
from typing import Any, get_args

import boto3
import pyarrow as pa
import pytest
from deltalake import DeltaTable, write_deltalake

from forebay.content.end import hash_of
from forebay.declaration.kept.in_force import keep_in_force
from forebay.declaration.loading import parse_service
from forebay.declaration.service import Overwritten
from forebay.landed_file import LandedFile
from forebay.ledger.claim import Claim
from forebay.ledger.decision import decide_files, files_to_read
from forebay.ledger.versions import Earlier
from forebay.operate.people import landing
from forebay.operate.people.rewriting import IN_NO_TABLE, NOT_LOADED, WOULD_BE_LOADED, KeyInLedger, Version
from forebay.privacy.secret import make_secret
from tests.operate.command import given, ran
from tests.operate.ledger import entry, write_ledger

SERVICE = """
name = "games"
[privacy]
subject = "user_id"
secret = "{place}/secret"
landing = "{how}"
[[tables]]
name = "alpha"
"""
ANNA, BEN = b'{"user_id": "anna-4711", "n": 1}\n', b'{"user_id":"ben-4712",  "n": 2.50}\n'


class Bucket:
    """The landing bucket, and the lake that its files were loaded into."""

    def __init__(self, client: Any, place: Path) -> None:
        self.client, self.place, self.name = client, place, f"landing-{uuid.uuid4().hex[:8]}"
        client.create_bucket(Bucket=self.name, CreateBucketConfiguration={"LocationConstraint": "eu-west-1"})
        make_secret(f"{place}/secret")

    def keep_versions(self) -> None:
        self.client.put_bucket_versioning(Bucket=self.name, VersioningConfiguration={"Status": "Enabled"})

    def put(self, key: str, content: bytes, *, loaded: bool = True, **more: Any) -> None:
        put = self.client.put_object(Bucket=self.name, Key=key, Body=content, **more)
        if loaded:
            self.load((key, content, put))

    def put_all(self, *objects: tuple[str, bytes]) -> None:
        """One batch loads them all."""
        self.load(*((key, body, self.client.put_object(Bucket=self.name, Key=key, Body=body)) for key, body in objects))

    def load(self, *objects: tuple[str, bytes, Any]) -> None:
        entries, users, file_ids = [], [], []
        for key, content, put in objects:
            told = {"etag": put["ETag"].strip('"'), "version_id": put.get("VersionId"), "bucket": self.name}
            text = gzip.decompress(content) if content[:2] == b"\x1f\x8b" else content
            rows = text.count(b"user_id")
            row = entry(key, **told, tables={"alpha": rows}, content_hash=hash_of(content))
            entries.append(row)
            users += ["anna-4711" if b"anna" in text else "ben-4712"] * rows
            file_ids += [row["file_id"]] * rows
        write_ledger(self.place / "lake", *entries)
        table = pa.table({"user_id": users, "_file_id": file_ids})
        write_deltalake(self.place / "lake" / "alpha", table, mode="append")

    def erase(self, how: str, *more: str) -> list[tuple[str, bool, str]]:
        (self.place / "service.toml").write_text(SERVICE.format(place=self.place, how=how))
        where = ("--lake", f"{self.place}/lake", "--service", f"{self.place}/service.toml")
        status, _, said = given(("privacy", "erase", *(more or ("anna-4711",)), "--yes", *where), "")
        assert status == 0, said
        (report,) = map(json.loads, ran("privacy", "report", "1", *where, "--json").splitlines())
        return [(one["key"], one["cleared"], one["why"]) for one in report["landing"]]

    def now(self, key: str) -> bytes | None:
        try:
            return bytes(self.client.get_object(Bucket=self.name, Key=key)["Body"].read())
        except self.client.exceptions.NoSuchKey:
            return None

    def everything(self) -> bytes:
        found = self.client.list_object_versions(Bucket=self.name).get("Versions", ())
        return b"".join(
            self.client.get_object(Bucket=self.name, Key=one["Key"], VersionId=one["VersionId"])["Body"].read()
            for one in found
        )

    def versions(self, key: str) -> int:
        found = self.client.list_object_versions(Bucket=self.name, Prefix=key).get("Versions", ())
        return sum(one["Key"] == key for one in found)


@pytest.fixture(params=["plain", "versioned", "versioned-later"])
def bucket(request: pytest.FixtureRequest, s3: str, tmp_path: Path) -> Bucket:
    made = Bucket(boto3.client("s3", endpoint_url=s3, region_name="eu-west-1"), tmp_path)
    if request.param == "versioned":
        made.keep_versions()
    made.put("mixed.json", ANNA + BEN + ANNA, ContentType="x/y", Metadata={"from": "sdk"})
    made.put_all(
        ("mixed.json.more", BEN),
        ("only.json", ANNA),
        ("packed.gz", gzip.compress(BEN + ANNA)),
        ("odd.json", b"[" + ANNA + b"," + BEN + b"]"),
        ("others.json", BEN),
    )
    if request.param == "versioned-later":
        made.keep_versions()
    return made


whatever_it_keeps = pytest.mark.parametrize(
    "bucket",
    ["versioned-later", *(pytest.param(other, marks=pytest.mark.deep) for other in ("plain", "versioned"))],
    indirect=True,
)
"""Of tests to which versions make no difference."""


@whatever_it_keeps
def test_by_default_objects_are_only_listed(bucket: Bucket) -> None:
    before = bucket.everything()
    assert bucket.erase("list") == [(key, False, "") for key in ("mixed.json", "odd.json", "only.json", "packed.gz")]
    assert bucket.everything() == before


@whatever_it_keeps
def test_objects_stay_if_the_rows_of_others_would_leave_with_them(bucket: Bucket) -> None:
    """The deletion of an object, or of one of its versions, is announced to every service that loads it."""
    forgets = parse_service({"service.toml": 'name = "games"\non_delete = "forget"\n[[tables]]\nname = "alpha"\n'})
    keep_in_force(f"{bucket.place}/lake", forgets)
    before = bucket.everything()
    stays = landing.FORGOTTEN.format("games")
    keys = ("mixed.json", "odd.json", "only.json", "packed.gz")
    assert bucket.erase("rewrite") == [(key, False, stays) for key in keys]
    assert bucket.everything() == before


def test_delete_takes_what_holds_nothing_else(bucket: Bucket) -> None:
    others = "has records of others"
    assert bucket.erase("delete") == [
        ("mixed.json", False, others),
        ("odd.json", False, "has records of other people, and its format does not allow removing single records"),
        ("only.json", True, ""),
        ("packed.gz", False, others),
    ]
    assert (bucket.now("only.json"), bucket.versions("only.json")) == (None, 0)
    assert "DeleteMarkers" not in bucket.client.list_object_versions(Bucket=bucket.name, Prefix="only.json")
    assert bucket.now("mixed.json") == ANNA + BEN + ANNA


def test_rewrite_leaves_every_byte_of_others_and_what_is_said_of_the_object(bucket: Bucket) -> None:
    assert [cleared for _, cleared, _ in bucket.erase("rewrite")] == [True, False, True, True]
    assert (bucket.now("mixed.json"), bucket.now("only.json")) == (BEN, None)
    assert gzip.decompress(bucket.now("packed.gz") or b"") == BEN
    assert bucket.now("mixed.json.more") == bucket.now("others.json") == BEN
    assert [bucket.versions(key) for key in ("mixed.json", "only.json", "packed.gz")] == [1, 0, 1]
    told = bucket.client.head_object(Bucket=bucket.name, Key="mixed.json")
    assert (told["ContentType"], told["Metadata"]) == ("x/y", {"from": "sdk"})
    assert bucket.everything().count(b"anna-4711") == 1  # of the document, which is listed


def test_the_notice_of_what_was_rewritten_is_a_duplicate_and_so_is_what_a_producer_sends_again(bucket: Bucket) -> None:
    bucket.erase("rewrite")
    file, earlier = notice_of(bucket, "mixed.json"), versions_of(bucket, "mixed.json")
    rules: tuple[Overwritten, ...] = get_args(Overwritten)
    for rule, content in product(rules, (bucket.now("mixed.json") or b"", ANNA + BEN + ANNA)):
        claim = Claim([file], {(file.bucket, file.key): earlier}, lambda key, rule=rule: rule)
        (left_out,) = decide_files(claim, {file.file_id: hash_of(content)}).left_out
        assert left_out.outcome == "duplicate"


def test_earlier_versions_with_their_records_go_and_others_stay(bucket: Bucket) -> None:
    bucket.keep_versions()
    bucket.put("mixed.json", BEN + BEN, loaded=False)
    bucket.put("only.json", BEN, loaded=False)
    bucket.put("only.json", ANNA + ANNA, loaded=False)
    bucket.erase("rewrite")
    assert (bucket.now("mixed.json"), bucket.versions("mixed.json")) == (BEN + BEN, 1)
    assert (bucket.now("only.json"), bucket.versions("only.json")) == (None, 1), "no earlier version is the object now"
    assert len(bucket.client.list_object_versions(Bucket=bucket.name, Prefix="only.json")["DeleteMarkers"]) == 1


def versions_of(bucket: Bucket, key: str) -> list[Earlier]:
    rows = DeltaTable(bucket.place / "lake/_forebay/ledger").to_pyarrow_table().to_pylist()
    return [
        Earlier(LandedFile(row["bucket"], row["key"], row["size"], row["etag"], row["version_id"]), row)
        for row in rows
        if row["key"] == key
    ]


def notice_of(bucket: Bucket, key: str) -> LandedFile:
    new = bucket.client.head_object(Bucket=bucket.name, Key=key)
    return LandedFile(bucket.name, key, 1, new["ETag"].strip('"'), new.get("VersionId"))


def test_what_no_job_has_loaded_yet_stays_until_one_has(bucket: Bucket) -> None:
    """Rewritten, it would be a duplicate of nothing that was loaded, or of an earlier version with other records."""
    new = ANNA + BEN + BEN + BEN
    bucket.put("mixed.json", new, loaded=False)
    assert bucket.erase("rewrite")[0] == ("mixed.json", False, NOT_LOADED)
    assert bucket.now("mixed.json") == new
    bucket.put("mixed.json", new + BEN, loaded=False)
    assert bucket.erase("rewrite", "--now")[0] == ("mixed.json", False, NOT_LOADED)
    if bucket.versions("mixed.json") > 1:
        assert new in bucket.everything(), "a version that is not the object now"
    bucket.put("mixed.json", new)
    left = bucket.erase("rewrite", "--now")[0]
    assert bucket.now("mixed.json") == BEN + BEN + BEN
    stays = bucket.versions("mixed.json") > 1
    assert left == ("mixed.json", not stays, NOT_LOADED if stays else "")


def test_an_earlier_version_with_other_records_is_no_equal_of_what_was_rewritten(bucket: Bucket) -> None:
    """A replay of it would take the rewritten object in its place."""
    bucket.put("mixed.json", ANNA + BEN + BEN + BEN)
    bucket.erase("rewrite")
    file = notice_of(bucket, "mixed.json")
    first, second = sorted(versions_of(bucket, "mixed.json"), key=lambda one: one.row["content_hash"].count(" "))
    new = hash_of(bucket.now("mixed.json") or b"")
    assert (new in first.row["content_hash"], new in second.row["content_hash"]) == (False, True)
    again = Earlier(file, {**second.row, "outcome": "duplicate", "reason": "same-key-same-bytes", "content_hash": new})
    wanted = Earlier(first.file, {**first.row, "outcome": "replay"})
    claim = Claim([first.file], {(file.bucket, file.key): [wanted, second, again]}, lambda key: "append")
    assert not files_to_read(claim).stand_ins


OUT: dict[str, dict[str, Any]] = {
    "denied": {"outcome": "denied"},
    "dropped": {"reason": "table-dropped", "records": 2, "dropped": 2},
    "rolled-back": {"reason": "rolled-back", "records": 2, "dropped": 2},
    "skipped": {"outcome": "skipped", "reason": "by-operator"},
}
"""Rows of files whose records are in no table, and would be loaded from a later version of their keys."""


@whatever_it_keeps
def test_an_object_whose_other_records_would_be_loaded_anew_stays(bucket: Bucket) -> None:
    for key, row in OUT.items():
        other(bucket, f"out-{key}", ANNA + BEN, **row)
    found = bucket.erase("rewrite", "anna-4711", "--search-landing")
    stay = [one for one in found if one[0].startswith("out-")]
    assert stay == [(f"out-{key}", False, WOULD_BE_LOADED) for key in OUT]
    assert {bucket.now(key) for key, _, _ in stay} == {ANNA + BEN}


def test_an_earlier_version_stays_if_its_other_records_are_in_no_table(bucket: Bucket) -> None:
    """It may still be loaded, and once it is deleted, nothing brings the records of others back."""
    bucket.keep_versions()
    replayed = {"outcome": "replay", "reason": "rolled-back", "records": 2, "dropped": 2}
    for key, row in {**OUT, "replay": replayed}.items():
        other(bucket, f"out-{key}", ANNA + BEN, **row)
        bucket.put(f"out-{key}", ANNA + BEN + BEN)
    stay = [one for one in bucket.erase("rewrite") if one[0].startswith("out-")]
    assert stay == [(f"out-{key}", False, IN_NO_TABLE) for key in sorted((*OUT, "replay"))]
    assert {(bucket.now(key), bucket.versions(key)) for key, _, _ in stay} == {(BEN + BEN, 2)}


@pytest.mark.parametrize("row", OUT.values(), ids=OUT)
def test_an_object_stays_if_another_service_of_the_lake_would_load_it_anew(row: dict[str, Any]) -> None:
    games, shop = (
        parse_service({"service.toml": f'name = "{name}"\n[[tables]]\nname = "t"\n'}) for name in ("games", "shop")
    )
    told: dict[str, Any] = {"version_id": "1", "content_hash": "old"}
    its = LandedFile("landing", "a.json", version_id="1", service="shop").file_id
    ours, shops = entry("a.json", **told, tables={"t": 2}), told | {"service": "shop", "file_id": its}
    loaded: dict[str, Any] = {"tables": {"u": 2}}
    version = Version("1", "e1", "old")
    for theirs, stays in ((loaded, False), (row, True)):
        found = KeyInLedger(games, [ours, entry("a.json", **shops, **theirs)], [shop])
        assert found.why_not(version, "new") == (WOULD_BE_LOADED if stays else "")
        assert found.why_kept(version) == (IN_NO_TABLE if stays else "")


@whatever_it_keeps
def test_what_an_erasure_left_is_cleared_when_it_is_said_again(bucket: Bucket) -> None:
    """By then the declaration, or who may do what, can be another one."""
    assert not any(cleared for _, cleared, _ in bucket.erase("list"))
    assert [cleared for _, cleared, _ in bucket.erase("rewrite", "--now")] == [True, False, True, True]
    assert (bucket.now("mixed.json"), bucket.now("only.json")) == (BEN, None)
    assert [cleared for _, cleared, _ in bucket.erase("rewrite", "--now")] == [True, False, True, True]


def is_gone(bucket: Bucket, number: int = 1) -> tuple[bool, bool]:
    where = ("--lake", f"{bucket.place}/lake", "--service", f"{bucket.place}/service.toml")
    (report,) = map(json.loads, ran("privacy", "report", str(number), *where, "--json").splitlines())
    return report["is_gone_from_tables"], report["is_gone"]


def test_nobody_is_gone_while_an_object_holds_them(bucket: Bucket) -> None:
    bucket.erase("list", "anna-4711", "--now")
    assert is_gone(bucket) == (True, False)
    for key in ("mixed.json", "odd.json", "only.json", "packed.gz"):
        for one in bucket.client.list_object_versions(Bucket=bucket.name, Prefix=key)["Versions"]:
            bucket.client.delete_object(Bucket=bucket.name, Key=one["Key"], VersionId=one["VersionId"])
        before = bucket.erase("list", "--search-landing")
        assert [one for one, cleared, _ in before if not cleared] == [
            one for one in ("mixed.json", "odd.json", "only.json", "packed.gz") if one > key
        ]
    assert is_gone(bucket) == (True, True)


@whatever_it_keeps
def test_nobody_is_gone_while_an_object_was_not_read(bucket: Bucket) -> None:
    for one in bucket.client.list_object_versions(Bucket=bucket.name, Prefix="odd.json")["Versions"]:
        bucket.client.delete_object(Bucket=bucket.name, Key="odd.json", VersionId=one["VersionId"])
    bucket.erase("rewrite", "anna-4711", "--now")
    assert is_gone(bucket) == (True, True)
    other(bucket, "skipped.json", BEN, outcome="skipped")
    bucket.erase("rewrite", "anna-4711", "--now", "--force")
    assert is_gone(bucket, 2) == (True, False)


def other(bucket: Bucket, key: str, content: bytes, **row: Any) -> None:
    """An object of which no row stands."""
    put = bucket.client.put_object(Bucket=bucket.name, Key=key, Body=content)
    told = {"etag": put["ETag"].strip('"'), "version_id": put.get("VersionId"), "bucket": bucket.name}
    write_ledger(bucket.place / "lake", entry(key, **told, content_hash=hash_of(content), **row))


def not_read(bucket: Bucket, number: int = 1) -> Any:
    where = ("--lake", f"{bucket.place}/lake", "--service", f"{bucket.place}/service.toml")
    (report,) = map(json.loads, ran("privacy", "report", str(number), *where, "--json").splitlines())
    return report["landing_not_read"], [(one["key"], one["cleared"]) for one in report["landing"]]


@whatever_it_keeps
def test_objects_whose_records_are_in_no_table_are_counted_and_read_on_request(bucket: Bucket) -> None:
    dropped = {"records": 1, "dropped": 1}
    other(bucket, "twice.json", ANNA, **dropped)
    other(bucket, "twice-of-others.json", BEN, **dropped)
    other(bucket, "ruled.json", ANNA + BEN, records=2, dropped=2)
    listed = {one[0] for one in bucket.erase("rewrite")}
    assert "twice.json" not in listed
    assert not_read(bucket)[0] == {"objects": 3, "bytes": 300}
    other(bucket, "late.json", BEN + ANNA + ANNA, records=3, dropped=2, tables={})
    bucket.erase("rewrite", "--search-landing")
    assert not_read(bucket, 2) == (
        {"objects": 0, "bytes": 0},
        [("late.json", True), ("odd.json", False), ("ruled.json", True), ("twice.json", True)],
    )
    assert (bucket.now("twice.json"), bucket.now("ruled.json"), bucket.now("late.json")) == (None, BEN, BEN)
    assert bucket.now("twice-of-others.json") == BEN
    bucket.erase("rewrite", "--search-landing")
    assert not_read(bucket, 3) == ({"objects": 0, "bytes": 0}, [("odd.json", False)])


@whatever_it_keeps
def test_a_search_by_default_lists_and_says_of_what_nobody_can_tell(bucket: Bucket) -> None:
    other(bucket, "twice.json", ANNA, outcome="duplicate")
    other(bucket, "torn.json", b"{torn", outcome="unreadable")
    assert [one for one in bucket.erase("list", "anna-4711", "--search-landing") if one[0][0] == "t"] == [
        ("torn.json", False, "has records that cannot be read"),
        ("twice.json", False, ""),
    ]


@whatever_it_keeps
def test_an_object_that_somebody_writes_meanwhile_is_left_and_listed(
    bucket: Bucket, monkeypatch: pytest.MonkeyPatch
) -> None:
    ours = landing._Clearing._write

    def write(*asked: Any) -> str:
        bucket.put("mixed.json", ANNA + BEN + BEN, loaded=False)
        return ours(*asked)

    monkeypatch.setattr(landing._Clearing, "_write", write)
    assert bucket.erase("rewrite")[0] == ("mixed.json", False, "was overwritten in the meantime")
    assert bucket.now("mixed.json") == ANNA + BEN + BEN


class Killed(BaseException):
    """The process is no more."""


@dataclass
class Dying:
    """A client whose process is killed after so many writes."""

    client: Any
    writes: int

    def __getattr__(self, name: str) -> Any:
        call = getattr(self.client, name)
        return partial(self._write, call) if name in ("put_object", "delete_object") else call

    def _write(self, call: Callable[..., Any], **asked: Any) -> Any:
        if not self.writes:
            raise Killed
        self.writes -= 1
        return call(**asked)


def test_stopped_after_any_write_to_the_bucket_it_goes_on(bucket: Bucket, monkeypatch: pytest.MonkeyPatch) -> None:
    client = landing.s3_client()
    other(bucket, "twice.json", BEN + ANNA, records=2, dropped=2)
    for allowed in range(20):
        dying = Dying(client, allowed)
        monkeypatch.setattr(landing, "s3_client", lambda dying=dying: dying)
        try:
            bucket.erase("rewrite", *(["--now"] if allowed else ["anna-4711", "--search-landing"]))
            break
        except Killed:
            continue
    assert allowed > 1
    assert (bucket.now("mixed.json"), bucket.versions("mixed.json"), bucket.now("only.json")) == (BEN, 1, None)
    assert (bucket.now("twice.json"), not_read(bucket)[0]["objects"]) == (BEN, 0)
    assert gzip.decompress(bucket.now("packed.gz") or b"") == BEN
