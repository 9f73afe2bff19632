"""Histories made at random, of tables with a declared function: it changes the keys of rows, refuses some, raises an error on
others, and deployments break and mend it. Files are replayed and forgotten, and tables go back. When all is mended, each record
is counted once, and no row is in a table as it was before the function.

FOREBAY_HISTORIES=300 plays so many of them; the suite plays a few.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pyspark.sql import SparkSession

from forebay.errors import InvalidConfiguration
from forebay.operate.changing.forget import to_forget
from forebay.operate.changing.replay import mark
from forebay.operate.named_lake import view_of
from forebay.transforms import use_folder
from tests.batch import test_histories
from tests.batch.test_histories import TABLES, keys, some_histories, steps
from tests.batch.world import SERVICE, World

FUNCTION = """
from pathlib import Path
import pyarrow as pa

def changed(rows):
    deployed = Path(__file__).with_name("deployed").read_text()
    if deployed == "drops rows":
        return rows.slice(1)
    if deployed == "multiplies rows":
        return pa.concat_tables([rows, rows])
    ids = rows["event_id"].to_pylist()
    if "raise" in ids:
        raise ValueError("what is this?")
    refused = ["not this one" if one == "refuse" else None for one in ids]
    return pa.table({"event_id": [f"{one}, changed" for one in ids], "_refused": pa.array(refused, pa.string())})
"""
WITH_FUNCTION = SERVICE.replace('name = "{game}"', 'name = "{game}"\ntransform = "steps:changed"')
ODD = 2
"""Records of each file that the function refuses, or raises an error on."""


class Play(test_histories.Play):
    held = 1 + ODD

    def __init__(self, world: World, code: Path) -> None:
        self.code = code
        self.deploy("good")
        super().__init__(world)

    def deeds(self) -> dict[str, Callable[..., None]]:
        return super().deeds() | {"deploy": self.deploy, "forget": self.forget}

    def lines(self, version: int) -> bytes:
        odd = (json.dumps({"game": "alpha", "event_id": one}) for one in ("raise", "refuse"))
        return super().lines(version) + "".join(f"{line}\n" for line in odd).encode()

    def deploy(self, what: str) -> None:
        (self.code / "deployed").write_text(what)

    def forget(self, key: str) -> None:
        try:
            view = view_of(self.world.lake)
            chosen = to_forget(view, [f"s3://landing/{key}"])
        except InvalidConfiguration:
            return  # before the first batch
        mark(view, chosen, "forget")
        self.model.forgotten |= {file.file_id for file in chosen.files}
        self.waiting += [file.landed for file in chosen.files]

    def replay(self, key: str) -> None:
        """A file that was forgotten would come back, and so it would in a table that goes back."""
        if not self.model.forgotten:
            super().replay(key)

    def roll_back(self, table: str, versions: int) -> None:
        if not self.model.forgotten:
            super().roll_back(table, versions)

    def end(self) -> None:
        self.deploy("good")
        super().end()

    def check(self) -> None:
        super().check()
        ids = {row["event_id"] for table in TABLES for row in self.world._table(table)}
        assert all(one.endswith(", changed") for one in ids)


more_steps = st.one_of(
    steps,
    st.tuples(st.just("deploy"), st.sampled_from(["good", "drops rows", "multiplies rows"])),
    st.tuples(st.just("forget"), keys),
)


@pytest.fixture
def play_in(spark: SparkSession, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Callable[[], Play]:
    made: list[int] = []
    code = tmp_path / "transforms"
    code.mkdir()
    (code / "steps.py").write_text(FUNCTION)
    use_folder(str(tmp_path))

    def play() -> Play:
        made.append(1)
        lake = f"file://{tmp_path}/{len(made)}"
        return Play(World(spark, lake, monkeypatch, service=WITH_FUNCTION, generation="generation-1"), code)

    return play


@pytest.mark.deep
@some_histories
@given(history=st.lists(more_steps, min_size=4, max_size=12))
def test_whatever_happens_each_record_is_counted_once_and_no_row_escapes_the_function(
    play_in: Callable[[], Play], history: list[tuple[object, ...]]
) -> None:
    play_in().whole(history)
