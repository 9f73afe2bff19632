"""A lake knows the secret of its tokens. Another one would give equal values other tokens, and let the erased back in."""

from __future__ import annotations

from pathlib import Path

import pytest

from forebay.declaration.loading import load_service
from forebay.declaration.service import Service
from forebay.errors import InvalidConfiguration
from forebay.privacy.erased import add_erased
from forebay.privacy.known_secret import keep_secret, must_be_known_secret
from forebay.privacy.secret import make_secret, secret_at
from forebay.privacy.token import token_of

SERVICE = """
name = "games"
[[tables]]
name = "alpha"
"""
TOKENS = '[privacy]\npersonal = [{{ path = "user", become = "token" }}]\nsecret = "{}"\n'


@pytest.fixture
def service(tmp_path: Path) -> Service:
    make_secret(f"{tmp_path}/secret")
    return declared(tmp_path, TOKENS.format(f"{tmp_path}/secret"))


def declared(folder: Path, privacy: str) -> Service:
    (folder / "service.toml").write_text(SERVICE + privacy)
    return load_service(str(folder))


def test_the_secret_of_a_lake_is_recognised_wherever_it_lies_now(tmp_path: Path, service: Service) -> None:
    lake = f"{tmp_path}/lake"
    must_be_known_secret(lake, service)
    keep_secret(lake, service)
    keep_secret(lake, service)
    must_be_known_secret(lake, service)
    (tmp_path / "secret").rename(tmp_path / "moved")
    must_be_known_secret(lake, declared(tmp_path, TOKENS.format(f"{tmp_path}/moved")))


def test_a_new_secret_in_the_place_of_a_lost_one_is_refused_until_somebody_accepts_it(
    tmp_path: Path, service: Service
) -> None:
    """What the lake keeps of the secret is one token, and nobody can compute the secret from it."""
    lake, address = f"{tmp_path}/lake", tmp_path / "secret"
    keep_secret(lake, service)
    first = address.read_bytes()
    address.unlink()
    secret_at.cache_clear()
    with pytest.raises(InvalidConfiguration, match=r"holds no secret.*restore it.*for a new lake.*privacy secret"):
        must_be_known_secret(lake, service)
    make_secret(str(address))
    refused = r"privacy: secret: .* is not the secret .* erased people .*docs/disasters.md.*_forebay/tokens/games"
    with pytest.raises(InvalidConfiguration, match=refused):
        must_be_known_secret(lake, service)
    with pytest.raises(InvalidConfiguration, match="is not the secret"):
        keep_secret(lake, service)
    kept = tmp_path / "lake" / "_forebay" / "tokens" / "games"
    assert kept.read_text().startswith("tok_")
    again = address.read_bytes()
    address.write_bytes(first)
    secret_at.cache_clear()
    must_be_known_secret(lake, service)
    kept.unlink()
    address.write_bytes(again)
    secret_at.cache_clear()
    keep_secret(lake, service)
    must_be_known_secret(lake, service)


def test_a_lake_that_keeps_no_token_yet_knows_its_secret_by_the_people_who_were_erased(
    tmp_path: Path, service: Service
) -> None:
    """An earlier version loaded it, or somebody deleted the token to go on with a new secret."""
    lake = f"{tmp_path}/lake"
    erased = add_erased(lake, "games", [token_of("anna", secret_at(f"{tmp_path}/secret"))])
    make_secret(f"{tmp_path}/other")
    other = declared(tmp_path, TOKENS.format(f"{tmp_path}/other"))
    for refuses in (must_be_known_secret, keep_secret):
        with pytest.raises(InvalidConfiguration, match=rf"is not the secret .* {erased} has a token of it"):
            refuses(lake, other)
    must_be_known_secret(lake, other.model_copy(update={"name": "others"}))
    keep_secret(lake, service)
    must_be_known_secret(lake, service)


def test_people_erased_under_an_earlier_secret_do_not_stop_a_lake_that_went_on(
    tmp_path: Path, service: Service
) -> None:
    """Earlier versions accepted a new secret, and then erased people under it, too."""
    lake = f"{tmp_path}/lake"
    make_secret(f"{tmp_path}/first")
    for place in ("first", "secret"):
        add_erased(lake, "games", [token_of(name, secret_at(f"{tmp_path}/{place}")) for name in ("anna", "ben")])
    keep_secret(lake, service)
    must_be_known_secret(lake, service)


def test_a_service_without_tokens_asks_for_no_secret(tmp_path: Path) -> None:
    lake = f"{tmp_path}/lake"
    for privacy in ('[privacy]\npersonal = ["email"]\n', ""):
        keep_secret(lake, service := declared(tmp_path, privacy))
        must_be_known_secret(lake, service)
    assert not Path(lake).exists()


def test_another_service_of_the_lake_has_a_secret_of_its_own(tmp_path: Path, service: Service) -> None:
    lake = f"{tmp_path}/lake"
    keep_secret(lake, service)
    make_secret(f"{tmp_path}/other")
    other = declared(tmp_path, TOKENS.format(f"{tmp_path}/other")).model_copy(update={"name": "others"})
    must_be_known_secret(lake, other)
    keep_secret(lake, other)
    must_be_known_secret(lake, service)


@pytest.mark.parametrize("content", [b"", b"\xff\xfe", b"tok_", b"tok_" + b"a" * 31, b"tok_" + b"a" * 31 + b"\xc3\xa9"])
def test_a_token_that_somebody_edited_is_not_taken_for_that_of_another_secret(
    tmp_path: Path, service: Service, content: bytes
) -> None:
    lake = f"{tmp_path}/lake"
    keep_secret(lake, service)
    kept = tmp_path / "lake" / "_forebay" / "tokens" / "games"
    kept.write_bytes(content)
    refused = r"_forebay/tokens/games: does not hold a token of the secret.*restore it.*delete it"
    for refuses in (must_be_known_secret, keep_secret):
        with pytest.raises(InvalidConfiguration, match=refused):
            refuses(lake, service)
    kept.unlink()
    keep_secret(lake, service)
    kept.write_text(f"{kept.read_text()}\n")
    keep_secret(lake, service)
    must_be_known_secret(lake, service)


def test_a_secret_at_the_root_of_a_machine_is_not_looked_for_in_the_present_folder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    make_secret(f"{tmp_path}/forebay-secret-of-a-test")
    monkeypatch.chdir(tmp_path)
    with pytest.raises(InvalidConfiguration, match="holds no secret"):
        secret_at("/forebay-secret-of-a-test")
