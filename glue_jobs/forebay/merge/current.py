"""Whether a state or a rollup has all rows of its tables, from their logs alone, without Spark.

In: a declaration, and its tables with their versions. Out: yes, or perhaps not. A starting job knows nothing about its states,
and most of a hundred have not changed. Spark would need seconds to find that out for each of them.
"""

from __future__ import annotations

from collections.abc import Mapping

from forebay.declaration.merge import Merge
from forebay.declaration.rollup import Rollup
from forebay.errors import ForebayError
from forebay.lake.layout import DERIVED_BY, table_path
from forebay.lake.log.commit import newest_transactions
from forebay.lake.log.definition import Definition, definition_of
from forebay.lake.objects import open_objects
from forebay.merge.rollup import app_id_of
from forebay.merge.rollup import way_of as way_of_rollup
from forebay.merge.state import way_of


def state_has_all(lake: str, state: str, log: str, merge: Merge, version: int) -> bool:
    """Whether a state has all rows of this version of its log, merged in this way."""
    try:
        by = _computed_by(lake, state)
        is_right = by.rpartition("#")[0] == way_of(merge, _definition(lake, log).id)
        return is_right and _has(lake, state, {by: version})
    except ForebayError:  # a merge will tell
        return False


def rollup_has_all(lake: str, rollup: Rollup, versions: Mapping[str, int]) -> bool:
    """Whether a rollup has all rows of these versions of the existing tables."""
    try:
        by = _computed_by(lake, rollup.name)
        ids = {name: _definition(lake, name).id for name in versions}
        wanted = {app_id_of(name, its, by): versions[name] for name, its in ids.items()}
        return by.rpartition("#")[0] == way_of_rollup(rollup, list(ids.values())) and _has(lake, rollup.name, wanted)
    except ForebayError:
        return False


def _definition(lake: str, table: str) -> Definition:
    return definition_of(open_objects(table_path(lake, table)))


def _computed_by(lake: str, table: str) -> str:
    return _definition(lake, table).configuration.get(DERIVED_BY, "")


def _has(lake: str, table: str, transactions: Mapping[str, int]) -> bool:
    return newest_transactions(open_objects(table_path(lake, table)), transactions) == transactions
