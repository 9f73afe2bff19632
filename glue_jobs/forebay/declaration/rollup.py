"""The declaration of a rollup: a table of aggregates over the rows of other tables."""

from __future__ import annotations

import re

from pydantic import Field, model_validator

from forebay.declaration.column import Declared
from forebay.lake.layout import OWN_NAMES

COLUMN = re.compile(r"[a-z][a-z0-9_]{0,126}")
QUOTED = re.compile(r"""'(?:[^'\\]|\\.)*'|"(?:[^"\\]|\\.)*"|`[^`]*`""", re.DOTALL)
"""Texts and names, in SQL."""


class Rollup(Declared):
    """A row for each group of rows, kept up to date as the rows change."""

    name: str = Field(description="the name of the rollup and of its table")
    tables: tuple[str, ...] = Field(min_length=1, description="the tables or states whose rows are counted together")
    where: str | None = Field(
        None, min_length=1, description="SQL that must be true for a row to count; null means false"
    )
    group_by: dict[str, str] = Field(
        min_length=1, description='columns that identify a group, as SQL over a row, such as day = "date(at)"'
    )
    columns: dict[str, str] = Field(
        min_length=1, description='columns with aggregates, as SQL, such as revenue = "sum(amount)"'
    )

    @property
    def sql(self) -> dict[str, str]:
        """All expressions, by where they are declared."""
        asked = {f"group_by.{name}": sql for name, sql in self.group_by.items()}
        asked |= {"where": self.where} if self.where is not None else {}
        return asked | {f"columns.{name}": sql for name, sql in self.columns.items()}

    @model_validator(mode="after")
    def _agrees_with_itself(self) -> Rollup:
        wrong = []
        if not COLUMN.fullmatch(self.name):
            wrong.append(f"name {self.name!r} must be lowercase letters, digits and _, and begin with a letter")
        for what, names in (("group_by", self.group_by), ("columns", self.columns)):
            wrong += [
                f"{what}: {name!r} must be lowercase letters, digits and _"
                for name in names
                if not COLUMN.fullmatch(name)
            ]
        wrong += [f"columns: {name} is a column of group_by, too" for name in self.columns if name in self.group_by]
        if len(set(self.tables)) < len(self.tables):
            wrong.append("tables: names a table twice")
        if self.name in OWN_NAMES:
            wrong.append(f"name {self.name!r} is reserved for forebay: give the rollup another name")
        for where, sql in self.sql.items():
            if (why := _not_closed(sql)) is not None:
                wrong.append(f"{where}: {why}: {sql}")
            elif where.startswith("columns.") and "(" not in sql:
                wrong.append(f"{where}: is not an aggregate, such as sum({sql})")
        if wrong:
            raise ValueError("\n".join(wrong))
        return self


def _not_closed(sql: str) -> str | None:
    """A parenthesis that is wrong by the text alone. Spark checks raw strings and comments."""
    rest = QUOTED.sub("", sql)
    if re.search(r"['\"`]|--|/\*", rest):
        return None
    depth = 0
    for sign in rest:
        depth += {"(": 1, ")": -1}.get(sign, 0)
        if depth < 0:
            return "closes a parenthesis that was not opened"
    return "does not close a parenthesis" if depth else None
