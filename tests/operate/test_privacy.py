"""The secret of tokens is made once, and is never written over."""

from __future__ import annotations

from pathlib import Path

import pytest

from forebay.privacy.secret import secret_at
from tests.operate.command import failed, ran


def test_a_secret_is_made_and_stays(tmp_path: Path, s3: str) -> None:
    for address in (f"{tmp_path}/apart/tokens", "s3://studio-lake/apart/tokens"):
        said = ran("privacy", "secret", address)
        made = secret_at(address)
        assert f"made {address}" in said
        assert made.hex() not in said
        assert "holds a secret already, and it stays" in failed(1, "privacy", "secret", address)
        secret_at.cache_clear()
        assert secret_at(address) == made


def test_what_lies_there_already_and_what_is_no_address_is_named(tmp_path: Path) -> None:
    (tmp_path / "other").write_text("a shopping list")
    assert "does not hold a secret" in failed(2, "privacy", "secret", f"{tmp_path}/other")
    assert (tmp_path / "other").read_text() == "a shopping list"
    assert "is neither s3://BUCKET/KEY nor an absolute path" in failed(2, "privacy", "secret", "tokens")


def test_a_secret_is_not_made_in_the_lake(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FOREBAY_LAKE", f"{tmp_path}/lake")
    assert f"is in the lake {tmp_path}/lake, or around it" in failed(2, "privacy", "secret", f"{tmp_path}/lake/tokens")
    assert not (tmp_path / "lake").exists()
    ran("privacy", "secret", f"{tmp_path}/tokens")
