"""The declaration of the personal fields in a service's records, and of their treatment."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Annotated, Any, Literal

from pydantic import BeforeValidator, Field, StrictBool, field_validator, model_validator
from pydantic.annotated_handlers import GetJsonSchemaHandler
from pydantic.json_schema import JsonSchemaValue
from pydantic_core import CoreSchema

from forebay.declaration.column import Declared, RecordPath
from forebay.declaration.path import parse_path
from forebay.declaration.personal import ANY_KEY, Become, PersonalField, begins

MADE_BY = ': secret = "s3://BUCKET/KEY", which `forebay privacy secret s3://BUCKET/KEY` makes'


class Personal(Declared):
    """One field, at any depth of a record."""

    path: RecordPath = Field(
        description="the field, such as email, device.id or players.*.email: the elements of arrays are included, and * is "
        "any key"
    )
    become: Become = Field(
        "dropped",
        description="dropped: the field is removed; masked: its values become ***; truncated: an IP address becomes its "
        "network (/24, or /48 for IPv6), a date the first of its year, and any other value ***; token: a stand-in, equal for "
        "equal values in all tables, from which nobody can find the value without the secret",
    )

    vault: StrictBool = Field(
        False, description="whether the original value is kept in the vault, encrypted, for authorised people"
    )

    @field_validator("path")
    @classmethod
    def _of_the_record(cls, value: str) -> str:
        path = parse_path(value)
        if not path.of_record:
            raise ValueError(f"{value} belongs to the file and not to the record, so it cannot be treated")
        if path.has_position:
            raise ValueError(f"{value}: a personal field is treated in all elements, so leave out the position")
        return value

    @classmethod
    def __get_pydantic_json_schema__(cls, core: CoreSchema, handler: GetJsonSchemaHandler) -> JsonSchemaValue:
        return {"anyOf": [{"type": "string"}, handler(core)]}

    @property
    def field(self) -> PersonalField:
        return PersonalField(parse_path(self.path).keys, self.become, self.vault)


def is_address(text: str) -> bool:
    """Whether it is the address of an object. Tasks may run elsewhere, so a path must be absolute."""
    return re.fullmatch(r"(s3a?://[^/]+/|file:/|/).*[^/]", text) is not None


def _as_table(value: Any) -> Any:
    return {"path": value} if isinstance(value, str) else value


class Privacy(Declared):
    """The personal fields of every record of the service."""

    personal: tuple[Annotated[Personal, BeforeValidator(_as_table)], ...] = Field(
        (),
        description="fields that are treated before anything is stored, in tables, in the quarantine and among parked "
        "records; a path alone means dropped",
    )

    secret: str = Field(
        "",
        description="the address of the secret of tokens, such as s3://studio-secrets/forebay-tokens; `forebay privacy secret` "
        "makes it",
    )

    subject: RecordPath | None = Field(
        None,
        description="the field that identifies the person, such as user_id: `forebay privacy erase` finds a person's records "
        "by it",
    )
    erased_rows: Literal["deleted", "anonymised"] = Field(
        "deleted",
        description="how an erasure treats a person's rows in tables: deleted; or anonymised: the columns of the subject and "
        "of personal fields become null",
    )

    landing: Literal["list", "delete", "rewrite"] = Field(
        "list",
        description="how an erasure treats landed objects with records of the person: list: the report names them; delete: "
        "those that hold nothing else go; rewrite: the others lose these records, too",
    )

    vault: str = Field(
        "",
        description="the address of the vault, apart from the lake, such as s3://studio-vault/forebay: the original values "
        "of fields with vault = true, encrypted by keys of their subjects",
    )
    vault_key: str = Field(
        "",
        description="what encrypts the vault's keys: the ARN or the alias of a key of KMS, such as alias/forebay-vault; on one "
        "machine a file, which `forebay privacy rotate` makes",
    )

    vault_keep_days: int = Field(
        0, ge=0, description="days for which the vault keeps values; maintenance deletes older ones. 0: for ever"
    )

    @model_validator(mode="after")
    def _has_a_vault(self) -> Privacy:
        if any(one.vault for one in self.personal):
            if missing := [name for name in ("subject", "vault", "vault_key") if not getattr(self, name)]:
                raise ValueError(f"has a field for the vault, so it needs {' and '.join(missing)}")
        elif self.vault or self.vault_key or self.vault_keep_days:
            raise ValueError("has a vault, but no field uses it: give a field vault = true")
        return self

    @field_validator("vault")
    @classmethod
    def _is_a_place(cls, value: str) -> str:
        if value and not is_address(value):
            raise ValueError(f"{value} is not the address of a vault, such as s3://bucket/forebay")
        return value.rstrip("/")

    @field_validator("vault_key")
    @classmethod
    def _is_a_key(cls, value: str) -> str:
        if value and not re.fullmatch(r"arn:aws[a-z-]*:kms:.+|alias/.+|(file:)?/.+", value):
            raise ValueError(f"{value} is neither the ARN nor the alias of a key of KMS, such as alias/forebay-vault")
        return value

    @property
    def without_vault(self) -> Privacy:
        personal = tuple(one.model_copy(update={"vault": False}) for one in self.personal)
        return self.model_copy(update={"personal": personal, "vault": "", "vault_key": "", "vault_keep_days": 0})

    @model_validator(mode="after")
    def _has_a_secret_for_tokens(self) -> Privacy:
        has_tokens = any(one.become == "token" for one in self.personal)
        if self.subject is not None:
            self._must_know_the_subject_again(parse_path(self.subject).keys)
            return self
        if has_tokens and not self.secret:
            raise ValueError(f"has a token field, so it needs a secret{MADE_BY}")
        if self.secret and not has_tokens:
            raise ValueError("has a secret, but no field becomes a token")
        return self

    @model_validator(mode="after")
    def _clears_by_the_subject(self) -> Privacy:
        if self.landing != "list" and self.subject is None:
            raise ValueError(f"says landing = {self.landing}, but has no subject, which identifies the person")
        return self

    def _must_know_the_subject_again(self, subject: tuple[str, ...]) -> None:
        for one in self.personal:
            if begins(one.field.path, subject) and one.become != "token":
                raise ValueError(
                    f"the subject {self.subject} is {one.become}, so nobody could search for it: make it a token"
                )
        if not self.secret:
            raise ValueError(
                f"has a subject, so it needs a secret, because erased subjects are remembered by tokens{MADE_BY}"
            )

    @model_validator(mode="after")
    def _says_something(self) -> Privacy:
        if not self.personal and self.subject is None:
            raise ValueError("names no field: remove the section")
        return self

    @field_validator("subject")
    @classmethod
    def _is_one_field(cls, value: str | None) -> str | None:
        path = None if value is None else parse_path(value)
        if path is not None and (not path.of_record or path.has_position or ANY_KEY in path.keys):
            raise ValueError(f"{value}: the subject is one field of the record, such as user_id")
        return value

    @field_validator("secret")
    @classmethod
    def _is_an_address(cls, value: str) -> str:
        if value and not is_address(value):
            raise ValueError(f"{value} is not the address of an object, such as s3://bucket/forebay-tokens")
        return value

    @field_validator("personal")
    @classmethod
    def _each_once(cls, value: tuple[Personal, ...]) -> tuple[Personal, ...]:
        if wrong := list(_within_each_other(value)):
            raise ValueError("\n".join(wrong))
        return value

    @property
    def fields(self) -> tuple[PersonalField, ...]:
        return tuple(one.field for one in self.personal)


def _within_each_other(personal: tuple[Personal, ...]) -> Iterator[str]:
    for number, one in enumerate(personal):
        for other in (*personal[:number], *personal[number + 1 :]):
            if other.path == one.path and other is not one:
                yield f"{one.path} is named twice"
            elif begins(other.field.path, one.field.path) and not begins(one.field.path, other.field.path):
                yield f"{one.path} is inside {other.path}, which is treated as a whole"
