"""A vault lies apart from the lake."""

from __future__ import annotations

import pytest

from forebay.errors import InvalidConfiguration
from forebay.privacy.vault import must_lie_apart


@pytest.mark.parametrize(
    ("vault", "lake"),
    [
        ("s3://studio/lake/vault", "s3://studio/lake"),
        ("s3a://studio/lake/", "s3://studio/lake"),
        ("s3://studio/lake", "s3://studio/lake/games"),
        ("/data/lake/../lake/vault", "file:///data/lake"),
    ],
)
def test_a_vault_within_a_lake_is_refused(vault: str, lake: str) -> None:
    with pytest.raises(InvalidConfiguration, match="is not apart from the lake"):
        must_lie_apart(vault, lake)


def test_a_vault_may_be_a_neighbour() -> None:
    must_lie_apart("s3://studio/lake-vault", "s3://studio/lake")
    must_lie_apart("/data/vault", "file:///data/lake")
