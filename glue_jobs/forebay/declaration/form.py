"""The form of a file: its format, and where its records are. A service declares it, and the reader of contents uses it.

In: the declarations of feeds. Out: frozen `Forms`, which give the form of each file.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Literal

from forebay.declaration.personal import PersonalField
from forebay.declaration.place import Place, deciding

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


PARENT, ORDINAL, EXPLODED = "@parent", "@ordinal", "@exploded"
"""Fields of a record from an array: the object around it; for an exploded array also its position and the array."""


@dataclass(frozen=True, slots=True)
class Explosion:
    """An array whose objects become records beside their parent; `kept` are the members of the parent that they keep."""

    path: Keys
    kept: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Form:
    """`inside` are the paths, key by key, of the arrays that contain the records; `exploded` are arrays of records.
    `personal` are the fields of a record that are treated, and `secret` is the address of their tokens' secret. `subject` is
    the field of the record's subject, and `erased` the address of the list of erased subjects. `joints` join the keys of
    objects in tables that flatten them. The others are for CSV: the default `delimiter` is a comma, or a tab for TSV, and
    a file has its own header unless one is given."""

    format: Format = "auto"
    inside: tuple[Keys, ...] = ()
    delimiter: str = ""
    quote: str = '"'
    header: Keys = ()
    exploded: tuple[Explosion, ...] = ()
    personal: tuple[PersonalField, ...] = ()
    secret: str = ""
    subject: Keys = ()
    erased: str = ""
    joints: tuple[str, ...] = ()
    vault: str = ""
    vault_key: str = ""

    @property
    def may_be_json(self) -> bool:
        return self.format in ("auto", "json")


FOUND = Form()
"""Nothing is declared: the format is detected."""


@dataclass(frozen=True, slots=True)
class Forms:
    """A form for each place. The format of other files is detected."""

    places: tuple[Place, ...] = (Place(),)
    forms: tuple[Form, ...] = (FOUND,)

    def of(self, bucket: str, key: str) -> Form:
        number = deciding(self.places, bucket, key)
        return FOUND if number is None else self.forms[number]

    @property
    def have_a_vault(self) -> bool:
        return any(form.vault for form in self.forms)

    @property
    def without_secrets(self) -> Forms:
        """The forms without secrets, for a trial. Their tokens are not real."""
        return replace(self, forms=tuple(replace(form, secret="", erased="", vault="") for form in self.forms))
