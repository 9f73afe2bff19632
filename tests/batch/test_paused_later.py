"""A table that was paused after it got a batch is not paused for it, and one that cannot be read stops no other."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from forebay.batch.batch import with_begun_tables
from forebay.declaration.loading import builtin_service
from forebay.lake.paused import ALL
from forebay.table.commit import LogFailed, Txn

TXN = Txn("forebay/s/g", 7)


class Logs:
    """`alpha` has the batch, `broken` asks for a feature that nobody here knows."""

    def has(self, path: str, txn: Txn) -> bool:
        assert txn == TXN
        if path.endswith("/broken"):
            raise LogFailed("UnsupportedTableFeatureException", "broken has the feature of tomorrow")
        return path.endswith("/alpha")


@pytest.mark.parametrize(
    ("tables", "paused", "left"),
    [
        (["alpha", "beta"], {"alpha", "beta"}, ("beta",)),
        (["alpha", "beta", "broken"], {"broken"}, ("broken",)),
        (["alpha", "beta", "broken"], {"alpha", "broken"}, ("broken",)),
        (["alpha", "beta", "broken"], {ALL}, ()),
        (["alpha", "beta", "broken"], {ALL, "beta"}, ("beta",)),
        (["beta", "broken"], {ALL}, (ALL,)),
        (["alpha"], set(), ()),
    ],
)
def test_only_a_table_that_has_the_batch_is_no_longer_paused_for_it(
    tables: list[str], paused: set[str], left: tuple[str, ...], tmp_path: Path
) -> None:
    for name in tables:
        (tmp_path / name / "_delta_log").mkdir(parents=True)
        (tmp_path / name / "_delta_log" / f"{0:020}.json").touch()
    logs: Any = Logs()
    service = builtin_service().with_paused(paused)
    assert with_begun_tables(service, str(tmp_path), TXN, logs, at_once=2).paused == left
