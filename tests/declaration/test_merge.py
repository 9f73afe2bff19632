"""The declaration of a merge: what it says, and what is refused."""

from __future__ import annotations

import pytest

from forebay.declaration.loading import parse_service
from forebay.errors import InvalidConfiguration

COLUMNS = """
columns = [
  { name = "id" }, { name = "at", type = "timestamp" }, { name = "op" }, { name = "score", type = "double" },
]
"""
MERGE = '\nmode = "merge"\nmerge = { into = "players", keys = ["id"], sequence_by = ["at"] }\n'
TABLE = 'name = "studio"\n[[tables]]\nname = "player_changes"' + COLUMNS


def problems(text: str) -> str:
    with pytest.raises(InvalidConfiguration) as refused:
        parse_service({"service.toml": text})
    return str(refused.value)


@pytest.mark.parametrize(
    ("merge", "said"),
    [
        ('mode = "merge"', "needs a section `merge`"),
        (MERGE.replace('mode = "merge"', ""), 'such a section needs mode = "merge"'),
        (MERGE.replace('"id"', '"nobody"'), "merge.keys: nobody is not a declared column"),
        (MERGE.replace('"id"', '"score"'), "merge.keys: score is double; it must be one of"),
        (MERGE.replace('["at"]', '["score"]'), "merge.sequence_by: score is double"),
        (MERGE.replace('["at"]', '["at", "at"]'), "merge.sequence_by: names a column twice"),
        (MERGE.replace("}", ', partitions = ["op"] }'), "merge.partitions: op is not one of the keys"),
        (MERGE.replace("}", ', partitions = ["id"] }'), "but not all of them"),
        (MERGE.replace('"players"', '"player_changes"'), "names the table of changes itself"),
        (MERGE.replace('"players"', '"{game}"'), "must have the same {fields}"),
        (MERGE.replace('"players"', '"Players"'), "must be lowercase letters"),
        (MERGE.replace("}", ', history = "scd9" }'), "merge.history: must be 'scd2'"),
        (MERGE.replace("}", ', history = "scd2", ignore_null_updates = true }'), "is for the current state only"),
        (MERGE.replace("}", ', snapshot = true, history = "scd2" }'), "merge.snapshot: replaces all rows"),
        (MERGE.replace("}", ", snapshot = true, ignore_null_updates = true }"), "leave out ignore_null_updates"),
        (MERGE.replace("into", "inot"), "did you mean into?"),
        (
            MERGE.replace('"players"', '"ledger"'),
            "merge.into: 'ledger' is one of forebay's own names, which are after_load, complete",
        ),
        (MERGE.replace('"players"', '"quarantine"'), "merge.into: 'quarantine' is one of forebay's own names"),
        (MERGE.replace('"players"', '"declarations"'), "merge.into: 'declarations' is one of forebay's own names"),
        (MERGE.replace("}", ', change_feed = "yes" }'), "must be true or false; got 'yes'"),
    ],
)
def test_what_makes_no_sense_is_refused_with_its_place(merge: str, said: str) -> None:
    assert said in problems(f"{TABLE}{merge}")


def test_a_state_that_something_else_writes_is_refused() -> None:
    other = '[[tables]]\nname = "{kind}"\n'
    assert "players is also a table that the declaration of {kind} writes" in problems(f"{TABLE}{MERGE}{other}")
    twice = TABLE.partition("[[tables]]")[2].replace("player_changes", "other_changes")
    assert "players is the state of two tables" in problems(f"{TABLE}{MERGE}[[tables]]{twice}{MERGE}")


def test_the_state_of_a_family_has_the_name_of_its_changes() -> None:
    text = f"{TABLE}{MERGE}".replace('"player_changes"', '"{game}_{world.id}_changes"')
    (table,) = parse_service({"service.toml": text.replace('"players"', '"{world.id}_of_{game}"')}).tables
    assert table.state_of("alpha_w1_changes") == "w1_of_alpha"
    assert table.state_of("alpha") is None
    assert table.globs == ("*_*_changes", "*_of_*")


def test_a_history_has_its_columns_for_itself() -> None:
    merge = MERGE.replace("}", ', history = "scd2" }')
    text = f"{TABLE}{merge}".replace('{ name = "op" }', '{ name = "valid_to" }')
    assert "merge.history: reserves the column valid_to" in problems(text)
