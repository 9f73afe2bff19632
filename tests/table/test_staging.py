"""Data files that tasks wrote before anybody looked at their tables: taken only where they hold all of the records."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import pytest

from forebay.record.growth import Rules, grown
from forebay.record.kind import Field, Struct, json_of
from forebay.record.shape import Shape
from forebay.record.walk import parsed
from forebay.table.data_files.data_file import TableFolder, Written, collect_answers
from forebay.table.shaping import Shaping
from forebay.table.staging import FilesDoNotFit, StagingFromTasks

KNOWN = Struct({name: Field(name, "long") for name in ("a", "b")})


def staged(
    rules: Rules, record: dict[str, Any], *, told: Struct, known: Struct = KNOWN, broken: str | None = None
) -> Written:
    """Files of tasks that were `told` of these columns, for a table that has the `known` ones. It may be `broken`, too."""
    shape = Shape()
    shape.observe(parsed(json.dumps(record), rules), rules.depth + 1)
    answer = dict.fromkeys(("error", "shape"))
    answer |= {"table": "t", "path": "p", "partitions": "[]", "size": 1, "rows": 1, "modified_ms": 1, "stats": "{}"}
    answer |= {"columns": json.dumps(json_of(grown(told, shape, rules))), "rescued": 0}
    written = collect_answers([_Answer(answer), _Answer(answer | {"shape": shape.as_json()})])
    if broken is not None:
        written = replace(written, failed={"t": broken})
    tasks: Any = StagingFromTasks
    return tasks(None, None, None, None, None, {}, written)._write(
        {"t": TableFolder("/t", (), Shaping(known, rules))}, ()
    )


class _Answer:
    def __init__(self, values: dict[str, Any]) -> None:
        self.__dict__ |= values


RECORD = {"a": 1, "b": 2, "c": 3}


@pytest.mark.parametrize(
    "rules",
    [
        Rules(undeclared="ignore"),
        Rules(undeclared="rescue"),
        Rules(new_columns=1),
        Rules(columns=1),
    ],
)
def test_values_of_a_column_that_a_task_did_not_know_are_not_left_out(rules: Rules) -> None:
    with pytest.raises(FilesDoNotFit, match="did not know"):
        staged(rules, RECORD, told=Struct())
    assert staged(rules, RECORD, told=KNOWN).files


def test_a_task_that_takes_all_fields_for_new_leaves_out_none(  # the first batch of a driver
) -> None:
    assert staged(Rules(), RECORD, told=Struct()).files
    assert staged(Rules(), {"c": 3}, told=Struct()).files


def test_a_table_that_is_broken_in_one_task_has_no_files_of_others() -> None:
    """They would be committed, without the rows of that task."""
    written = staged(Rules(), RECORD, told=KNOWN, broken="transform shop:clean returned 1 of 2 rows")
    assert (written.files, set(written.failed)) == ({}, {"t"})
