"""The form of a file: its format, and where its records are. A service declares it, and the reader of contents uses it.

In: the declarations of feeds, or their JSON, as the tasks get it. Out: frozen `Forms`, which give the form of each file. Other
text is `InvalidConfiguration`.
"""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass, replace
from typing import Any, Literal, get_args

from forebay.declaration.personal import Become, PersonalField
from forebay.declaration.place import Place, deciding
from forebay.errors import InvalidConfiguration

__all__ = [
    "EXPLODED",
    "FOUND",
    "ORDINAL",
    "PARENT",
    "Explosion",
    "Form",
    "Format",
    "Forms",
    "Keys",
]

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
        """Their tokens are not real."""
        return replace(self, forms=tuple(replace(form, secret="", erased="", vault="") for form in self.forms))

    def to_json(self) -> str:
        return json.dumps([[asdict(place), asdict(form)] for place, form in zip(self.places, self.forms, strict=True)])

    @classmethod
    def from_json(cls, text: str) -> Forms:
        try:
            pairs = [(Place(**place), _checked(**form)) for place, form in json.loads(text)]
        except (ValueError, TypeError, KeyError) as error:
            raise InvalidConfiguration.one(
                "forms", f"not the forms of files: {error}", f"such as {cls().to_json()}"
            ) from error
        return cls(tuple(place for place, _ in pairs), tuple(form for _, form in pairs))


def _checked(
    *,
    inside: Any = (),
    header: Any = (),
    exploded: Any = (),
    personal: Any = (),
    subject: Any = (),
    joints: Any = (),
    **others: Any,
) -> Form:
    form = Form(
        inside=tuple(map(_keys, inside)),
        header=tuple(header),
        exploded=tuple(Explosion(_keys(one["path"]), tuple(map(str, one["kept"]))) for one in exploded),
        personal=tuple(PersonalField(_keys(one["path"]), one["become"], bool(one["vault"])) for one in personal),
        subject=_keys(subject) if subject else (),
        joints=tuple(map(str, joints)),
        **others,
    )
    if form.format not in get_args(Format):
        raise ValueError(f"there is no format {form.format!r}")
    if unknown := {one.become for one in form.personal} - set(get_args(Become)):
        raise ValueError(f"a personal field cannot become {sorted(unknown)}")
    return form


def _keys(given: Any) -> Keys:
    if isinstance(given, str) or not given or not all(isinstance(key, str) for key in given):
        raise ValueError("a path is an array of keys")
    return tuple(given)
