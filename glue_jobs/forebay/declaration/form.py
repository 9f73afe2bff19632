"""The form of a file: how its records lie in it, as a service declares it and the reader of contents takes it.

In: what an envelope declares, or the JSON of a form, as it travels to the tasks. Out: a frozen `Form`. A text that is no
form is `InvalidConfiguration`.
"""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass
from typing import Any, Literal, get_args

from forebay.errors import InvalidConfiguration

__all__ = ["FOUND", "Form", "Format", "Keys"]

Keys = tuple[str, ...]

Format = Literal[
    "auto",  # found by looking at the first bytes; CSV and TSV by the suffix .csv or .tsv
    "parquet",
    "avro",
    "json",  # in any layout
    "csv",
    "tsv",
    "lines",  # plain text: a line is a record with the field `text`
]


@dataclass(frozen=True, slots=True)
class Form:
    """`inside` are the paths of arrays of documents, key by key, in which the records lie. The others are of CSV: where no
    `delimiter` is named, it is a comma, of TSV a tab; a file has its header unless it is given."""

    format: Format = "auto"
    inside: tuple[Keys, ...] = ()
    delimiter: str = ""
    quote: str = '"'
    header: Keys = ()

    @property
    def may_be_json(self) -> bool:
        return self.format in ("auto", "json")

    def to_json(self) -> str:
        return json.dumps(asdict(self))

    @classmethod
    def from_json(cls, text: str) -> Form:
        try:
            return _checked(**json.loads(text))
        except (ValueError, TypeError) as error:
            raise InvalidConfiguration.one(
                "form", f"not the form of a file: {error}", f"such as {FOUND.to_json()}"
            ) from error


def _checked(*, inside: Any = (), header: Any = (), **others: Any) -> Form:
    paths = tuple(tuple(keys) for keys in inside if not isinstance(keys, str))
    if len(paths) < len(inside) or not all(keys and all(isinstance(key, str) for key in keys) for keys in paths):
        raise ValueError("a path of `inside` is an array of keys")
    form = Form(inside=paths, header=tuple(header), **others)
    if form.format not in get_args(Format):
        raise ValueError(f"there is no format {form.format!r}")
    return form


FOUND = Form()
"""Nothing is declared: what a file is, is found by looking."""
