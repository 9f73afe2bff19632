"""The declaration of a rollup: a table of aggregates over the rows of other tables."""

from __future__ import annotations

import re

from pydantic import Field, model_validator

from forebay.declaration.column import Declared

__all__ = ["Rollup"]

COLUMN = re.compile(r"[a-z][a-z0-9_]{0,126}")


class Rollup(Declared):
    """A row for each group of rows, kept up to date as the rows change."""

    name: str = Field(description="the rollup's name: that of its table")
    tables: tuple[str, ...] = Field(
        min_length=1, description="the tables or states whose rows are counted, all of them together"
    )
    where: str | None = Field(None, min_length=1, description="SQL that must hold of a row that counts; null is no")
    group_by: dict[str, str] = Field(
        min_length=1, description='columns that name a group, as SQL over a row, such as day = "date(at)"'
    )
    columns: dict[str, str] = Field(
        min_length=1, description='columns with aggregates, as SQL, such as revenue = "sum(amount)"'
    )

    @model_validator(mode="after")
    def _agrees_with_itself(self) -> Rollup:
        wrong = []
        if not COLUMN.fullmatch(self.name):
            wrong.append(f"name {self.name!r} must be small letters, digits and _, and begin with a letter")
        for what, names in (("group_by", self.group_by), ("columns", self.columns)):
            wrong += [
                f"{what}: {name!r} must be small letters, digits and _" for name in names if not COLUMN.fullmatch(name)
            ]
        wrong += [f"columns: {name} is a column of group_by, too" for name in self.columns if name in self.group_by]
        if len(set(self.tables)) < len(self.tables):
            wrong.append("tables: names a table twice")
        if wrong:
            raise ValueError("\n".join(wrong))
        return self
