"""The declaration of an expectation: a predicate over each row, and the treatment of rows that violate it."""

from __future__ import annotations

from typing import Any, Literal

from pydantic import Field, model_validator
from pydantic.annotated_handlers import GetJsonSchemaHandler
from pydantic.json_schema import JsonSchemaValue
from pydantic_core import CoreSchema

from forebay.declaration.column import Declared


class Expectation(Declared):
    """A predicate over the declared columns. As with SQL's CHECK, only false is a violation; null is not."""

    check: str = Field(min_length=1, description='SQL over the declared columns, such as "level between 0 and 100"')
    on_violation: Literal["warn", "drop", "quarantine", "fail"] = Field(
        "warn",
        description="warn: count it; drop: leave the row out, and count it; quarantine: quarantine the record; "
        "fail: quarantine all of the table's records in this batch",
    )
    fail_above_percent: float | None = Field(
        None,
        ge=0,
        lt=100,
        description="if more than this share of a table's rows in a batch violate it, act as with fail",
    )
    alarm_above_percent: float | None = Field(
        None,
        ge=0,
        lt=100,
        description="if more than this share of a table's rows in a batch violate it, ring the alarm `expectation-violated`; "
        "an expectation that fails always rings",
    )

    @classmethod
    def __get_pydantic_json_schema__(cls, core: CoreSchema, handler: GetJsonSchemaHandler) -> JsonSchemaValue:
        return {"anyOf": [{"type": "string"}, handler(core)]}

    @model_validator(mode="before")
    @classmethod
    def _only_a_predicate(cls, given: Any) -> Any:
        return {"check": given} if isinstance(given, str) else given

    @property
    def fails_above(self) -> float | None:
        """The share above which the table fails; None for never."""
        return 0.0 if self.on_violation == "fail" else self.fail_above_percent
