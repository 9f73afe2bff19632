"""Random records through a declared function that changes keys, refuses some rows and raises an error on others: each record
has one fate, and no row is in a table as it was before. Without Spark."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Sequence

import pyarrow as pa
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from forebay.declaration.loading import load_service
from tests.batch.tasks import spec_of
from tests.batch.test_places import ways
from tests.test_examples import EXAMPLES

SERVICE = """
name = "s"
[[tables]]
name = "{game}"
transform = "shop:changed"
columns = [{ name = "id" }]
"""
KINDS = ("fine", "raise", "refuse", "fine", "homeless", "dirty")
kinds = st.lists(st.sampled_from(KINDS), min_size=1, max_size=30)


def text_of(kind: str, number: int, game: str) -> str:
    if kind == "dirty":
        return "{broken"
    return json.dumps({"id": f"{kind}-{number}"} | ({} if kind == "homeless" else {"game": game}))


def changed(rows: pa.Table) -> pa.Table:
    ids: list[str] = rows["id"].to_pylist()
    if any(one.startswith("raise") for one in ids):
        raise ValueError("what is this?")
    refused = ["not this one" if one.startswith("refuse") else None for one in ids]
    return pa.table({"id": [f"{one}, changed" for one in ids], "_refused": pa.array(refused, pa.string())})


DEPLOYED = {
    "good": changed,
    "drops rows": lambda rows: rows.slice(1),
    "multiplies rows": lambda rows: pa.concat_tables([rows, rows]),
}


@settings(max_examples=30, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.lists(kinds, min_size=1, max_size=4), st.sampled_from([*DEPLOYED]))
def test_each_record_has_one_fate_whatever_the_function_does(
    monkeypatch: pytest.MonkeyPatch, files: Sequence[list[str]], deployed: str
) -> None:
    load_service(str(EXAMPLES / "python-step"))
    monkeypatch.setattr("transforms.shop.changed", DEPLOYED[deployed], raising=False)
    games = ("alpha", "beta")
    texts = {
        f"{n}.json": "\n".join(
            ['{"id": "fine-x", "game": "alpha"}', *(text_of(one, at, games[n % 2]) for at, one in enumerate(some))]
        )
        for n, some in enumerate(files)
    }
    drawn = Counter(kind for some in files for kind in some) + Counter({"fine": len(files)})
    batch, storage = spec_of(SERVICE, {key: text.encode() for key, text in texts.items()}, monkeypatch)
    for answer in ways(batch):
        assert answer.odd is None
        fates = Counter[tuple[str, str | None]]()
        for one, count in answer.fates.items():
            fates[one.fate, one.reason] += count
        held = Counter(row["reason"] for row in storage.rows(answer, "_forebay/quarantine"))
        ids = [row["id"] for game in games for row in storage.rows(answer, game)]
        assert fates.total() == drawn.total()
        assert fates["write", None] == len(ids) + held["table-failed"]
        assert fates["quarantine", "transform"] == held["transform"]
        assert fates["park", None] == drawn["homeless"]
        assert all(one.startswith("fine") and one.count(", changed") == 1 for one in ids)
        if deployed == "good":
            assert (len(ids), held["transform"]) == (drawn["fine"], drawn["raise"] + drawn["refuse"])
            assert answer.broken == {}
        else:
            assert (ids, held["transform"], bool(answer.broken)) == ([], 0, True)
