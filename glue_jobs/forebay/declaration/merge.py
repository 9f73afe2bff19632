"""The declaration of a merge: the table that keeps the current state of keys, from the changes in another table."""

from __future__ import annotations

import re
from typing import Literal

from pydantic import Field, StrictBool

from forebay.declaration.column import Declared
from forebay.lake.layout import OWN_NAMES

KEY_TYPES = ("string", "long", "int", "boolean", "date", "timestamp", "decimal")
"""Types whose values are equal or not, in every reader. A double does not: 0.1 + 0.2 cannot be a key."""
SEQUENCE_TYPES = ("string", "long", "int", "date", "timestamp", "decimal")
HISTORY_COLUMNS = ("valid_from", "valid_to")
"""Reserved for histories."""
FOLDER_TEXTS = r"(?!__HIVE_DEFAULT_PARTITION__$)[^\x00]{1,100}"
"""Texts that may name a folder of a state. Delta reads one without a name, or with Hive's name for none, as null."""


class Merge(Declared):
    """The rows of the declared table are changes. Another table holds, for each key, the row of its latest change."""

    into: str = Field(
        description="the name of the table with the current state; it has the same {fields} as the table's own name"
    )
    keys: tuple[str, ...] = Field(
        min_length=1, description="declared columns that together identify one thing, such as id"
    )
    sequence_by: tuple[str, ...] = Field(
        min_length=1,
        description="declared columns that order the changes to a key; the greatest wins, whenever it arrives",
    )
    delete_when: str | None = Field(
        None,
        min_length=1,
        description="SQL over the declared columns that is true for a change that deletes its key, such as op = 'd'",
    )
    ignore_null_updates: StrictBool = Field(
        False,
        description="a change leaves columns unchanged if it has no value for them; a delete clears all of them",
    )
    history: Literal["scd2"] | None = Field(
        None, description="scd2: the state has a row for each version of a key, in force from valid_from until valid_to"
    )
    snapshot: StrictBool = Field(
        False,
        description="only the rows with the greatest value in the first sequence_by column exist; other keys are deleted",
    )
    change_feed: StrictBool = Field(
        False,
        description="the state's commits record the rows that they changed, so that `forebay export` can follow it",
    )
    partitions: tuple[str, ...] = Field(
        (),
        description="keys by whose values the state is partitioned; a merge reads only the partitions that it changes",
    )
    tombstone_days: int = Field(
        90,
        ge=1,
        le=36_500,
        description="days for which a deleted key is remembered, so that an older change that arrives late does not revive it",
    )

    @property
    def row_keys(self) -> tuple[str, ...]:
        """The columns that together name one row of the state."""
        return self.keys if self.history is None else (*self.keys, HISTORY_COLUMNS[0])

    @property
    def own_columns(self) -> tuple[str, ...]:
        """Columns of the state that the changes do not fill. A field of theirs with such a name gets another column."""
        return () if self.history is None else HISTORY_COLUMNS

    @property
    def glob(self) -> str:
        """The pattern of the state's names: * for each {field}."""
        return re.sub(r"\{[^{}]*\}", "*", self.into)

    def problems(self, name: str, kinds: dict[str, str]) -> list[str]:
        """Its mistakes, in the table of this name with columns of these types."""
        return [*self._of_names(name), *self._of_columns(kinds)]

    def _of_names(self, name: str) -> list[str]:
        found = []
        if not re.fullmatch(r"[a-z0-9][a-z0-9_]{0,126}", re.sub(r"\{[^{}]*\}", "x", self.into)):
            found.append(
                f"merge.into: {self.into!r} must be lowercase letters, digits and _, with the {{fields}} of the name"
            )
        if sorted(_fields(self.into)) != sorted(_fields(name)):
            found.append(f"merge.into: {self.into!r} must have the same {{fields}} as the table's name {name!r}")
        if self.into in (own := {*OWN_NAMES, "declarations"}):
            found.append(f"merge.into: {self.into!r} is one of forebay's own names, which are {', '.join(sorted(own))}")
        if self.into == name:
            found.append("merge.into: names the table of changes itself; the state must be another table")
        return found

    def _of_columns(self, kinds: dict[str, str]) -> list[str]:
        found = []
        for what, names, types in (
            ("keys", self.keys, KEY_TYPES),
            ("sequence_by", self.sequence_by, SEQUENCE_TYPES),
        ):
            if len(set(names)) < len(names):
                found.append(f"merge.{what}: names a column twice")
            for name in names:
                if name not in kinds:
                    found.append(f"merge.{what}: {name} is not a declared column")
                elif kinds[name].partition("(")[0] not in types:
                    found.append(f"merge.{what}: {name} is {kinds[name]}; it must be one of {', '.join(types)}")
        if self.history is not None:
            taken = sorted({*HISTORY_COLUMNS} & {name.lower() for name in kinds})
            found += [f"merge.history: reserves the column {name}; give yours another name" for name in taken]
        if self.history is not None and self.ignore_null_updates:
            found.append("merge.ignore_null_updates: is for the current state only; leave it out, or leave out history")
        others = {"history": self.history is not None, "ignore_null_updates": self.ignore_null_updates}
        for name in (name for name, declared in others.items() if declared and self.snapshot):
            found.append(f"merge.snapshot: replaces all rows; leave it out, or leave out {name}")
        found += [
            f"merge.partitions: {name} is not one of the keys" for name in self.partitions if name not in self.keys
        ]
        if len(set(self.partitions)) < len(self.partitions) or set(self.partitions) == set(self.keys):
            found.append("merge.partitions: must be some of the keys, each once, but not all of them")
        return found

    def state_of(self, name: str, log: str, values: str) -> str | None:
        """The state's name for the table of changes `log`, which a declaration with this `name` made; None for another."""
        parts = re.split(r"\{[^{}]*\}", name)
        made = re.escape(parts[0])
        for at, part in enumerate(parts[1:]):
            made += f"(?P<_{at}>{values}){re.escape(part)}"
        fits = re.fullmatch(made, log)
        if fits is None:
            return None
        fields = {field: fits[f"_{at}"] for at, field in enumerate(_fields(name))}
        return re.sub(r"\{([^{}]*)\}", lambda found: fields[found[1]], self.into)


def _fields(name: str) -> list[str]:
    return re.findall(r"\{([^{}]*)\}", name)
