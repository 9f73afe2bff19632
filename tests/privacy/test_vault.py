"""A vault lies apart from the lake."""

from __future__ import annotations

import pytest

from forebay.declaration.privacy import Privacy
from forebay.errors import InvalidConfiguration
from forebay.privacy.vault import data_key, must_lie_apart, packed, unpacked


def privacy(**places: str) -> Privacy:
    kept = {"vault": "s3://apart/vault", "vault_key": "alias/v", "secret": "s3://apart/secret", **places}
    return Privacy(subject="user_id", personal=[{"path": "email", "vault": True}], **kept)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("place", "lake"),
    [
        ("s3://studio/lake/vault", "s3://studio/lake"),
        ("s3a://studio/lake/x", "s3://studio/lake"),
        ("s3://studio/lake", "s3://studio/lake/games"),
        ("/data/lake/../lake/vault", "file:///data/lake"),
    ],
)
@pytest.mark.parametrize("name", ["vault", "secret"])
def test_a_vault_or_a_secret_within_a_lake_is_refused(name: str, place: str, lake: str) -> None:
    with pytest.raises(InvalidConfiguration, match=rf"privacy\.{name}: {place} is in the lake"):
        must_lie_apart(privacy(**{name: place}), lake)


def test_a_key_in_a_file_of_the_lake_is_refused() -> None:
    with pytest.raises(InvalidConfiguration, match=r"privacy\.vault_key"):
        must_lie_apart(privacy(vault_key="/data/lake/key"), "/data/lake")


def test_they_may_be_neighbours() -> None:
    must_lie_apart(privacy(vault="s3://studio/lake-vault", secret="s3://studio/lake-secret"), "s3://studio/lake")
    must_lie_apart(privacy(vault="/data/vault", vault_key="/data/key"), "file:///data/lake")


def test_a_data_key_is_of_its_wrapping_key_its_salt_and_its_subjects() -> None:
    keys = {
        data_key(wrapping, salt, subjects)
        for wrapping in (b"w" * 32, b"v" * 32)
        for salt in (b"s" * 32, b"t" * 32)
        for subjects in (["anna"], ["ben"], ["anna", "ben"])
    }
    assert (len(keys), {len(key) for key in keys}) == (12, {32})


def test_values_are_unpacked_as_they_stood_in_the_record() -> None:
    stood = [('a."b"', '"x\ty"'), ("n", "1.50"), ("n", "true"), ("é", '"\\ud83d"')]
    assert unpacked(packed(stood)) == [('a."b"', "x\ty"), ("n", 1.5), ("n", True), ("é", "\ud83d")]
    assert unpacked(packed([])) == []
