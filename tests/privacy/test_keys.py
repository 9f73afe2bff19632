"""Keys of a vault: KMS and a file answer alike, a rotation loses no key, and what is bound to a name opens under no other."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import boto3
import pytest
from moto import mock_aws

from forebay.errors import ForebayError, Halt, InvalidConfiguration
from forebay.privacy import wrapping
from forebay.privacy.keys import KmsKey, VaultKey, add_local_key, vault_key
from forebay.privacy.vault import wrapping_of
from forebay.privacy.wrapping import WrappingKey, _made, encrypt_again, opened

NOW = datetime(2026, 1, 2, tzinfo=UTC)


@pytest.fixture(params=["kms", "file"])
def key(request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[VaultKey]:
    if request.param == "file":
        add_local_key(f"{tmp_path}/key")
        yield vault_key(f"{tmp_path}/key")
        return
    for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"):
        monkeypatch.setenv(name, "testing")
    monkeypatch.delenv("AWS_ENDPOINT_URL", raising=False)
    with mock_aws():
        kms = boto3.client("kms", region_name="eu-west-1")
        yield KmsKey(kms.create_key()["KeyMetadata"]["Arn"], kms)


def test_a_wrapping_key_opens_again_under_its_own_name_alone(key: VaultKey) -> None:
    plain, wrapped = key.made("one")
    assert len(plain) == 32
    assert plain not in wrapped
    assert key.decrypted(wrapped, "one") == plain
    assert key.made("one")[0] != plain
    with pytest.raises(ForebayError):
        key.decrypted(wrapped, "two")


def test_a_wrapping_key_is_stored_encrypted_and_opens_again(key: VaultKey, tmp_path: Path) -> None:
    made = _made(str(tmp_path / "vault"), key)
    assert opened(str(tmp_path / "vault"), made.name, key) == made.plain
    assert str(made.plain) not in repr(made)
    with pytest.raises(Halt, match="is missing"):
        opened(str(tmp_path / "vault"), "another", key)


def test_a_process_uses_one_wrapping_key_for_an_hour_and_then_another(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    add_local_key(f"{tmp_path}/key")
    now = [1000.0]
    monkeypatch.setattr(wrapping, "time", SimpleNamespace(monotonic=lambda: now[0]))
    monkeypatch.setattr(wrapping, "_OF_THIS_PROCESS", {})

    def key(vault: str = "vault") -> str:
        return wrapping.wrapping_key(f"{tmp_path}/{vault}", f"{tmp_path}/key").name

    first = key()
    assert key("another") != first
    now[0] += wrapping.LASTS_S
    assert key() == first
    now[0] += 0.001
    assert key() != first
    assert key() == key()
    assert len(list(Path(wrapping_of(f"{tmp_path}/vault")).iterdir())) == 2


def test_a_subject_has_one_data_key_as_long_as_its_wrapping_key_lasts() -> None:
    key = WrappingKey("one", b"k" * 32, until=0)
    assert key.data_key(("anna",)) == key.data_key(("anna",)) != key.data_key(("ben",))


def test_data_keys_are_not_shown_and_only_so_many_are_remembered(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(wrapping, "MOST_SUBJECTS", 2)
    key = WrappingKey("one", b"k" * 32, until=0)
    first = key.data_key(("anna",))
    assert str(first[0]) not in repr(key)
    key.data_key(("ben",))
    assert key.data_key(("anna",)) == first
    key.data_key(("cleo",))
    assert len(key.data_keys) == 1
    assert key.data_key(("anna",)) != first


def test_a_rotation_that_was_interrupted_goes_on_and_what_is_done_stays(key: VaultKey, tmp_path: Path) -> None:
    vault = str(tmp_path / "vault")
    made = [_made(vault, key) for _ in range(3)]

    def stored() -> dict[str, bytes]:
        return {path.name: path.read_bytes() for path in Path(wrapping_of(vault)).iterdir()}

    before = stored()
    interrupted = encrypt_again(vault, key, NOW)
    assert next(interrupted) == 1
    halfway = stored()
    assert sum(halfway[name] != before[name] for name in before) == 1
    assert list(encrypt_again(vault, key, NOW + timedelta(days=1))) == [1, 2]
    after = stored()
    assert all(after[name] != before[name] for name in before)
    assert {name for name in before if after[name] == halfway[name]} == {n for n in before if halfway[n] != before[n]}
    assert [opened(vault, one.name, key) for one in made] == [one.plain for one in made]
    assert list(encrypt_again(vault, key, NOW + timedelta(days=2))) == [1, 2, 3]


def test_a_rotation_after_one_by_a_clock_that_was_ahead_leaves_no_key_out(tmp_path: Path) -> None:
    """What it left out could not be read any more, once the earlier key is gone."""
    place, vault = f"{tmp_path}/key", str(tmp_path / "vault")
    add_local_key(place)
    made = _made(vault, vault_key(place))
    for at in (NOW + timedelta(hours=1), NOW):
        add_local_key(place)
        assert list(encrypt_again(vault, vault_key(place), at)) == [1]
    mark, *_, new = Path(place).read_bytes().splitlines(keepends=True)
    Path(place).write_bytes(mark + new)
    assert opened(vault, made.name, vault_key(place)) == made.plain


def test_a_file_keeps_its_earlier_keys_until_all_is_encrypted_again(tmp_path: Path) -> None:
    place, vault = f"{tmp_path}/key", str(tmp_path / "vault")
    add_local_key(place)
    made = _made(vault, vault_key(place))
    first = Path(place).read_bytes()
    add_local_key(place)
    assert opened(vault, made.name, vault_key(place)) == made.plain
    assert list(encrypt_again(vault, vault_key(place), NOW)) == [1]
    mark, _, new = Path(place).read_bytes().splitlines(keepends=True)
    Path(place).write_bytes(mark + new)
    assert opened(vault, made.name, vault_key(place)) == made.plain
    Path(place).write_bytes(first)
    with pytest.raises(InvalidConfiguration, match="has no key that decrypts"):
        opened(vault, made.name, vault_key(place))


@pytest.mark.parametrize("content", [None, b"", b"does not hold", b"forebay vault key 1\nshort\n"])
def test_what_is_no_file_of_keys_is_refused_by_its_name(tmp_path: Path, content: Any) -> None:
    if content is not None:
        (tmp_path / "key").write_bytes(content)
    with pytest.raises(InvalidConfiguration, match=f"{tmp_path}/key: has no vault key"):
        vault_key(f"{tmp_path}/key").made("one")
    if content:
        with pytest.raises(InvalidConfiguration, match="does not hold"):
            add_local_key(f"{tmp_path}/key")


def test_a_key_that_kms_does_not_have_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"):
        monkeypatch.setenv(name, "testing")
    monkeypatch.delenv("AWS_ENDPOINT_URL", raising=False)
    with mock_aws(), pytest.raises(InvalidConfiguration, match="vault_key alias/none: cannot make a key with it"):
        KmsKey("alias/none", boto3.client("kms", region_name="eu-west-1")).made("one")
