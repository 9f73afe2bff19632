"""What personal values were is in the vault: each once, for whoever may decrypt it, and nowhere else."""

from __future__ import annotations

import gzip
import json
from base64 import b64encode
from pathlib import Path
from secrets import token_bytes
from typing import Any

import pyarrow.parquet as pq
import pytest
from deltalake import DeltaTable
from pyspark.sql import SparkSession

from forebay.batch.events import BatchReadTwice
from forebay.batch.retrying.plan import Choice
from forebay.batch.retrying.retry import Retry
from forebay.declaration.loading import parse_service
from forebay.declaration.service import Service
from forebay.errors import Halt
from forebay.operate.lake_view import LakeView
from forebay.operate.people.person import vault_values
from forebay.privacy import wrapping
from forebay.privacy.keys import add_local_key
from forebay.privacy.secret import make_secret, secret_at
from forebay.privacy.vault import VALUES, data_key, wrapping_of
from tests.batch.world import Died, World, unread

SERVICE = """
name = "studio"
overwritten = "replace"
[privacy]
subject = "user_id"
secret = "{place}/secret"
vault = "{place}/vault"
vault_key = "{place}/key"
personal = [
    {{ path = "user_id", become = "token" }},
    {{ path = "email", become = "masked", vault = true }},
    {{ path = "device", vault = true }},
    {{ path = "phone" }},
]
[[tables]]
name = "{{game}}"
columns = [{{ name = "n", type = "long" }}]
expectations = {{ few = {{ check = "n < 90", on_violation = "quarantine" }} }}
"""
ANNA, BEN, PHONE = "anna@example.org", "ben@example.org", "0301234567"


def line(user: str | None, email: str | None, **fields: object) -> str:
    about = {"user_id": user} if user else {}
    about |= {"email": email, "device": {"id": f"device of {user}"}, "phone": PHONE} if email else {}
    return json.dumps({**about, **fields}) + "\n"


@pytest.fixture
def world(spark: SparkSession, lake: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> World:
    make_secret(f"{tmp_path}/secret")
    add_local_key(f"{tmp_path}/key")
    return World(spark, lake, monkeypatch, service=SERVICE.format(place=tmp_path))


def service_of(world: World) -> Service:
    return parse_service({"service.toml": world.service})


def held(world: World, subject: str) -> list[tuple[str, object]]:
    values = vault_values(LakeView(world.lake), service_of(world), subject)
    return sorted(((value.path, value.value) for value in values), key=str)


def of(user: str, email: str, times: int = 1) -> list[tuple[str, object]]:
    return sorted([("email", email), ("device", {"id": f"device of {user}"})] * times, key=str)


def everything(folder: Path) -> bytes:
    """All that lies there, with the pages of Parquet unpacked."""
    found = []
    for path in sorted(folder.rglob("*")):
        if path.is_file():
            found.append(path.read_bytes())
            if path.suffix == ".parquet":
                found.append(repr(pq.ParquetFile(path).read().to_pylist()).encode())
    return b"\n".join(found)


@pytest.mark.deep
def test_whatever_became_of_a_record_its_values_are_in_the_vault_once_and_nowhere_plain(
    world: World, tmp_path: Path
) -> None:
    world.paused = ("b",)
    world.answers = {
        "a.json": (
            line("anna", ANNA, game="a", n=1)
            + line("anna", ANNA, game="a", n=99)
            + line("ben", BEN, event="homeless")
            + line("ben", BEN, game="b", n=1)
            + line("carl", None, game="a", n=2)
            + line(None, "nobody@example.org", game="a", n=3)
        ).encode()
    }
    world.try_batch(0, [world.file("a.json")])
    assert held(world, "anna") == of("anna", ANNA, 2)
    assert held(world, "ben") == of("ben", BEN, 2)
    assert held(world, "carl") == held(world, "nobody") == []
    (token,) = {row["user_id"] for row in LakeView(world.lake).query("a", "select user_id from t where n = 1")}
    assert held(world, token) == held(world, "anna")
    world.paused = ()
    retry = Retry(world.spark, service_of(world), lake=world.lake, emit=world.events.append)
    retry.run(Choice("quarantine", reason="paused"))
    retry.logs.close()
    assert held(world, "ben") == of("ben", BEN, 2)
    stored = everything(tmp_path)
    for plain in (ANNA, BEN, PHONE, "device of", "nobody@"):
        assert plain.encode() not in stored
    (told,) = {value.file for value in vault_values(LakeView(world.lake), service_of(world), "anna")}
    assert told == "s3://landing/a.json"


def queries(world: World) -> dict[int, Any]:
    """Those that Spark remembers: it forgets the oldest of a thousand."""
    found = world.spark._jsparkSession.sharedState().statusStore().executionsList()
    return {one.executionId(): one for one in map(found.apply, range(found.size()))}


def test_no_key_is_in_any_plan_event_setting_log_or_object(
    world: World, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    made: list[bytes] = [secret_at(f"{tmp_path}/secret")]

    def drawn(count: int) -> bytes:
        made.append(token_bytes(count))
        return made[-1]

    def derived(*of: Any) -> bytes:
        made.append(data_key(*of))
        return made[-1]

    monkeypatch.setattr("secrets.token_bytes", drawn)
    monkeypatch.setattr(wrapping, "data_key", derived)
    world.answers = {"a.json": (line("anna", ANNA, game="a", n=1) + line("ben", BEN, game="a", n=99)).encode()}
    before = queries(world)
    world.try_batch(0, [world.file("a.json")])
    ran = [one for number, one in queries(world).items() if number not in before]
    assert ran, "Spark encrypts the values"
    settings = [*world.spark.sparkContext.getConf().getAll(), *world.spark.conf.getAll.items()]
    told = [one.physicalPlanDescription() + one.details() for one in ran]
    told += [repr(world.events), repr(settings), *capfd.readouterr()]
    told += [gzip.decompress(plan.read_bytes()).decode() for plan in world.plans()]
    text = "\n".join(told).encode()
    stored = everything(tmp_path / "vault") + everything(Path(world.lake.removeprefix("file://")))
    keys = [key for key in made if len(key) == 32]
    assert len(keys) > 3  # the secret, a wrapping key, and those of two subjects
    for key in keys:
        for spelt in (key, key.hex().encode(), key.hex().upper().encode(), b64encode(key), repr(key)[2:-1].encode()):
            assert spelt not in text
            assert spelt not in stored


@pytest.mark.deep
@pytest.mark.parametrize("commits", range(5))
def test_a_driver_that_dies_after_any_commit_leaves_each_value_once(world: World, commits: int) -> None:
    """A table, the quarantine, the vault, the ledger."""
    world.answers = {"a.json": (line("anna", ANNA, game="a", n=1) + line("ben", BEN, game="a", n=99)).encode()}
    with pytest.raises(Died):
        world.try_batch(0, [world.file("a.json")], dies_after=commits)
    world.answers["a.json"] = unread("missing")
    world.try_batch(0, [world.file("a.json")])
    assert held(world, "anna") == of("anna", ANNA)
    assert held(world, "ben") == of("ben", BEN)


def test_values_of_many_people_are_in_the_vault_once_each(world: World, tmp_path: Path) -> None:
    people = [(f"user-{n}", f"user-{n}@example.org") for n in range(30)]
    lines = {
        key: "".join(line(user, email, game="a", n=96 if n % 10 == 0 else n) for n, (user, email) in some)
        for key, some in {"a.json": [*enumerate(people)][:20], "b.json": [*enumerate(people)][20:]}.items()
    }
    world.answers = {key: content.encode() for key, content in lines.items()}
    world.try_batch(0, [world.file("a.json"), world.file("b.json")])
    assert DeltaTable(f"{tmp_path}/vault/{VALUES}").to_pyarrow_table().num_rows == len(people)
    assert all(held(world, user) == of(user, email) for user, email in people[::7])
    assert world.kept("quarantine") == {"a.json": 2, "b.json": 1}


def test_the_values_of_a_duplicate_are_in_the_vault_once(world: World) -> None:
    world.service += 'dedupe = { by = ["n"] }\n'
    world.answers = {
        "a.json": (line("anna", ANNA, game="a", n=1) * 2 + line("ben", BEN, game="a", n=2)).encode(),
        "b.json": (line("anna", ANNA, game="a", n=1) + line("ben", BEN, game="a", n=2) * 2).encode(),
    }
    for number, key in enumerate(world.answers):
        world.try_batch(number, [world.file(key)])
    assert (held(world, "anna"), held(world, "ben")) == (of("anna", ANNA), of("ben", BEN))
    assert [world.ledger()[key]["dropped"] for key in world.answers] == [1, 3]
    assert not [event for event in world.events if isinstance(event, BatchReadTwice)]


@pytest.mark.deep
def test_values_of_another_version_take_the_place_of_those_before(world: World) -> None:
    world.answers = {"a.json-1": line("anna", ANNA, game="a", n=1).encode()}
    world.answers |= {"a.json-2": line("ben", BEN, game="a", n=1).encode()}
    world.try_batch(0, [world.file("a.json")])
    world.etags["a.json"] = "a.json-2"
    for dies_after in (2, None):
        try:
            world.try_batch(1, [world.file("a.json", 2)], dies_after=dies_after)
        except Died:
            assert dies_after
    assert held(world, "anna") == []
    assert held(world, "ben") == of("ben", BEN)


def test_a_row_of_the_vault_that_was_moved_to_another_subject_does_not_open(world: World, tmp_path: Path) -> None:
    world.answers = {"a.json": line("anna", ANNA, game="a", n=1).encode()}
    world.try_batch(0, [world.file("a.json")])
    table = DeltaTable(f"{tmp_path}/vault/{VALUES}")
    table.update(updates={"service": "'studio2'"})
    other = service_of(world).model_copy(update={"name": "studio2"})
    with pytest.raises(Halt, match="is not the one that was written"):
        vault_values(LakeView(world.lake), other, "anna")
    assert len(list(Path(wrapping_of(f"{tmp_path}/vault")).iterdir())) == 1
