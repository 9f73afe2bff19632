"""What the vault holds is shown to who may decrypt it, and its keys are encrypted anew."""

from __future__ import annotations

import json
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from cryptography.hazmat.primitives.ciphers.aead import AESGCM
from deltalake import DeltaTable, write_deltalake

from forebay.declaration.loading import load_service
from forebay.lake.folder_objects import FolderObjects
from forebay.operate.people.person import known_to_vault
from forebay.privacy.keys import add_local_key, vault_key
from forebay.privacy.known_secret import keep_secret
from forebay.privacy.secret import make_secret, secret_at
from forebay.privacy.token import token_of
from forebay.privacy.vault import data_key, packed, value_data, values_of
from forebay.privacy.wrapping import _made
from forebay.upkeep.erase.plan import ErasePlan
from forebay.upkeep.erase.vault import forget
from tests.operate.command import failed, ran
from tests.walk import telling

SERVICE = """
name = "studio"
[privacy]
subject = "user_id"
secret = "{place}/secret"
vault = "{place}/vault"
vault_key = "{place}/key"
personal = [{{ path = "email", vault = true }}]
[[tables]]
name = "events"
"""


@pytest.fixture
def place(tmp_path: Path) -> Path:
    """A vault with one value of Anna's, as a batch leaves it."""
    make_secret(f"{tmp_path}/secret")
    add_local_key(f"{tmp_path}/key")
    (tmp_path / "service.toml").write_text(SERVICE.format(place=tmp_path))
    wrapping = _made(f"{tmp_path}/vault", vault_key(f"{tmp_path}/key"))
    token = token_of("anna", secret_at(f"{tmp_path}/secret"))

    key, bound_to = data_key(wrapping.plain, b"s" * 32, [token]), value_data("studio", wrapping.name).encode()
    content = packed([("email", '"anna@example.org"')]).encode()
    row = {
        "at": datetime(2026, 1, 2, tzinfo=UTC),
        "service": "studio",
        "file_id": "f1",
        "byte_offset": 7,
        "subjects": [token],
        "key_id": wrapping.name,
        "salt": b"s" * 32,
        "content": b"n" * 12 + AESGCM(key).encrypt(b"n" * 12, content, bound_to),
    }
    write_deltalake(values_of(f"{tmp_path}/vault"), pa.Table.from_pylist([row]))
    ledger = [{"file_id": "f1", "bucket": "landing", "key": "a.json"}]
    write_deltalake(f"{tmp_path}/lake/_forebay/ledger", pa.Table.from_pylist(ledger))
    return tmp_path


def show(place: Path, subject: str) -> str:
    return ran("privacy", "show", subject, "--lake", f"{place}/lake", "--service", f"{place}/service.toml", "--json")


def test_the_values_of_a_person_are_shown_with_their_places_also_after_rotations(place: Path) -> None:
    expected = {"path": "email", "value": "anna@example.org", "file": "s3://landing/a.json", "byte_offset": 7}
    assert json.loads(show(place, "anna")) == {**expected, "at": "2026-01-02T00:00:00+00:00"}
    assert show(place, token_of("anna", secret_at(f"{place}/secret"))) == show(place, "anna")
    assert show(place, "ben") == ""
    for keys in (2, 3):
        assert "encrypted 1 wrapping key" in ran("privacy", "rotate", "--service", f"{place}/service.toml")
        assert len((place / "key").read_bytes().splitlines()) == 1 + keys
    assert "anna@example.org" in show(place, "anna")


def test_a_new_secret_in_the_place_of_a_lost_one_is_refused_and_not_that_nothing_is_kept(place: Path) -> None:
    keep_secret(f"{place}/lake", load_service(f"{place}/service.toml"))
    assert "anna@example.org" in show(place, "anna")
    (place / "secret").unlink()
    make_secret(f"{place}/secret")
    secret_at.cache_clear()
    asked = ("privacy", "show", "anna", "--lake", f"{place}/lake", "--service", f"{place}/service.toml")
    assert "is not the secret that made the tokens in this lake" in failed(2, *asked)


def test_a_service_without_a_vault_is_told_so(place: Path) -> None:
    (place / "service.toml").write_text('name = "studio"\n[[tables]]\nname = "events"\n')
    assert "no vault is declared" in failed(2, "privacy", "rotate", "--service", f"{place}/service.toml")


def test_the_vault_forgets_a_person_whole_and_keeps_the_others(place: Path) -> None:
    service = load_service(f"{place}/service.toml")
    anna, ben = (token_of(name, secret_at(f"{place}/secret")) for name in ("anna", "ben"))
    values = values_of(f"{place}/vault")
    rows = DeltaTable(values).to_pyarrow_table()
    write_deltalake(values, rows.set_column(4, "subjects", pa.array([[ben]])), mode="append")
    assert known_to_vault(service, [anna, ben, "tok_nobody"]) == {anna, ben}
    plan = ErasePlan(1, "", "studio", (anna, "tok_nobody"))
    assert [forget(service, plan), forget(service, plan)] == [1, 0]
    assert known_to_vault(service, [anna, ben]) == {ben}
    assert show(place, "anna") == ""
    files = list(Path(values).rglob("*.parquet"))
    assert [pq.read_table(file)["subjects"].to_pylist() for file in files if "_delta_log" not in str(file)] == [[[ben]]]


def anna_and_ben(place: Path, *subjects: str, service: str = "studio") -> str:
    """More rows of the vault, like Anna's."""
    values = values_of(f"{place}/vault")
    row = DeltaTable(values).to_pyarrow_table().slice(0, 1).to_pylist()[0]
    tokens = [token_of(name, secret_at(f"{place}/secret")) for name in subjects]
    write_deltalake(values, pa.Table.from_pylist([{**row, "subjects": tokens, "service": service}]), mode="append")
    return values


def of_anna(place: Path) -> ErasePlan:
    return ErasePlan(1, "", "studio", (token_of("anna", secret_at(f"{place}/secret")),))


def test_keys_in_files_of_writers_that_died_are_forgotten_too(place: Path) -> None:
    values = anna_and_ben(place, "ben", "anna")
    live = next(Path(values).glob("*.parquet"))
    (Path(values) / "part-of-a-dead-writer.parquet").write_bytes(live.read_bytes())
    (Path(values) / "part-of-a-writer-at-work.parquet").write_bytes(b"PAR1")
    key = key_of_anna(place)
    assert forget(load_service(f"{place}/service.toml"), of_anna(place)) == 2
    (Path(values) / "part-of-a-writer-at-work.parquet").unlink()
    assert telling(place / "vault", key) == []


def test_another_service_in_the_same_vault_keeps_its_rows(place: Path) -> None:
    values = anna_and_ben(place, "anna", service="other")
    assert forget(load_service(f"{place}/service.toml"), of_anna(place)) == 1
    assert DeltaTable(values).to_pyarrow_table()["service"].to_pylist() == ["other"]


def test_a_batch_that_fills_the_vault_meanwhile_loses_nothing(place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    once, done = FolderObjects.write_once, []

    def first_others(self: FolderObjects, name: str, content: bytes) -> bool:
        if not done:
            done.append(anna_and_ben(place, "ben"))
        return once(self, name, content)

    monkeypatch.setattr(FolderObjects, "write_once", first_others)
    assert forget(load_service(f"{place}/service.toml"), of_anna(place)) == 1
    assert DeltaTable(done[0]).to_pyarrow_table().num_rows == 1


class Killed(BaseException):
    """The process is no more."""


def test_stopped_at_any_step_the_vault_forgets_in_the_end(place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    key, service = key_of_anna(place), load_service(f"{place}/service.toml")
    anna_and_ben(place, "ben", "anna")
    noted: list[int] = []
    for allowed in range(20):
        left = [allowed]
        with monkeypatch.context() as patched:
            for name in ("write", "write_once", "delete"):
                patched.setattr(FolderObjects, name, dying(getattr(FolderObjects, name), left))
            try:
                forget(service, of_anna(place), note=lambda done: noted.append(done.rows))
                break
            except Killed:
                continue
    assert (allowed > 1, max(noted), telling(place / "vault", key)) == (True, 2, [])


def key_of_anna(place: Path) -> bytes:
    return bytes(DeltaTable(values_of(f"{place}/vault")).to_pyarrow_table()["salt"][0].as_py())


def dying(effect: Callable[..., Any], left: list[int]) -> Callable[..., Any]:
    def dies(objects: FolderObjects, *more: Any) -> Any:
        if not left[0]:
            raise Killed
        left[0] -= 1
        return effect(objects, *more)

    return dies
