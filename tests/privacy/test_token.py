"""Tokens stand for values, and only who has the secret can tell for which."""

from __future__ import annotations

import stat
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from forebay.errors import InvalidConfiguration
from forebay.privacy.secret import make_secret, secret_at
from forebay.privacy.token import PREFIX, token_of

ONE, OTHER = b"1" * 32, b"2" * 32


@given(st.text(), st.text())
def test_equal_values_have_equal_tokens_and_others_others(value: str, other: str) -> None:
    token = token_of(value, ONE)
    assert token.startswith(PREFIX)
    assert (token == token_of(other, ONE)) == (value == other)
    assert token != token_of(value, OTHER)


@given(st.text())
def test_a_token_is_its_own_token_and_what_only_looks_like_one_is_not(value: str) -> None:
    token = token_of(value, ONE)
    assert token_of(token, ONE) == token
    assert token_of(token, OTHER) != token
    forged = token[:-1] + ("A" if token[-1] != "A" else "B")
    assert token_of(forged, ONE) != forged


def test_half_of_a_pair_of_surrogates_has_a_token() -> None:
    assert token_of("\ud800", ONE) != token_of("\ud801", ONE)


def test_a_secret_is_made_once_and_only_its_owner_reads_it(tmp_path: Path) -> None:
    address = f"{tmp_path}/apart/secret"
    assert make_secret(address)
    secret = secret_at(address)
    assert len(secret) == 32
    assert not make_secret(address)
    secret_at.cache_clear()
    assert secret_at(address) == secret
    assert stat.S_IMODE(Path(address).stat().st_mode) == 0o600


def test_what_is_no_secret_is_named(tmp_path: Path) -> None:
    with pytest.raises(InvalidConfiguration, match="holds no secret for tokens"):
        secret_at(f"{tmp_path}/none")
    (tmp_path / "some").write_text("hello")
    with pytest.raises(InvalidConfiguration, match="holds something else"):
        secret_at(f"{tmp_path}/some")
