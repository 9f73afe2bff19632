"""What the vault holds is shown to who may decrypt it, and its keys are encrypted anew."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from cryptography.hazmat.primitives.ciphers.aead import AESGCM
from deltalake import DeltaTable, write_deltalake

from forebay.declaration.service import load_service
from forebay.operate.person import forget, known_to_vault
from forebay.privacy.keys import add_local_key, vault_key
from forebay.privacy.secret import make_secret, secret_at
from forebay.privacy.token import token_of
from forebay.privacy.vault import key_data, value_data, values_of
from forebay.privacy.wrapping import _made
from tests.operate.command import failed, ran

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

    def sealed(content: bytes, key: bytes, data: str) -> bytes:
        return b"n" * 12 + AESGCM(key).encrypt(b"n" * 12, content, data.encode())

    key, email = b"k" * 32, value_data("studio", wrapping.name, "email")
    row = {
        "at": datetime(2026, 1, 2, tzinfo=UTC),
        "service": "studio",
        "file_id": "f1",
        "byte_offset": 7,
        "subjects": [token],
        "key_id": wrapping.name,
        "key": sealed(key, wrapping.plain, key_data("studio", wrapping.name, token)),
        "fields": [{"path": "email", "value": sealed(b'"anna@example.org"', key, email)}],
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
    assert forget(service, [anna, "tok_nobody"]) == 1
    assert forget(service, [anna, "tok_nobody"]) == 0
    assert known_to_vault(service, [anna, ben]) == {ben}
    assert show(place, "anna") == ""
    files = list(Path(values).rglob("*.parquet"))
    assert [pq.read_table(file)["subjects"].to_pylist() for file in files if "_delta_log" not in str(file)] == [[[ben]]]
