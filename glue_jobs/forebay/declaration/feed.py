"""A feed: the files under one prefix, the envelope of their records, and what becomes of loaded files (`AfterLoad`)."""

from __future__ import annotations

import re
from typing import Annotated, Any, Literal

from pydantic import (
    AfterValidator,
    BeforeValidator,
    Field,
    StrictBool,
    WithJsonSchema,
    field_validator,
    model_validator,
)

from forebay.address import bucket_and_key
from forebay.declaration import object_key
from forebay.declaration.column import Declared, RecordPath
from forebay.declaration.complete import Complete
from forebay.declaration.form import Form, Format
from forebay.declaration.path import parse_path
from forebay.declaration.place import Place

EVERYTHING = "all"
"""The name of the one feed of a service that declares none."""


ONE_OR_SEVERAL = {"anyOf": [{"type": "string"}, {"type": "array", "items": {"type": "string"}}]}


def _one_or_several(value: Any) -> Any:
    return (value,) if isinstance(value, str) else value


class Envelope(Declared):
    """The envelope of a file's records."""

    key: Annotated[str, AfterValidator(object_key.checked)] = Field(
        "", description="fields from the objects' keys: in/{game}/ adds a field @key.game"
    )
    records: Annotated[tuple[RecordPath, ...], BeforeValidator(_one_or_several), WithJsonSchema(ONE_OR_SEVERAL)] = (
        Field(
            (),
            description="arrays whose objects are the records, such as Records or detail.items; the rest of a document is each "
            "record's field @parent; a document without such an array is a record",
        )
    )

    format: Format = Field(
        "auto",
        description="json, csv, tsv, parquet, avro, or lines (each line becomes a record with the field text); auto: "
        "recognised by the content, csv and tsv by the suffix",
    )
    delimiter: str = Field("", description="for csv: the ASCII character between fields, if it is not a comma")
    quote: str = Field('"', description="for csv and tsv: the character around fields; empty: quotes are text")
    header: tuple[str, ...] = Field((), description="for csv and tsv: the columns, if files have no header")

    complete: Complete | None = Field(None, description="the hours or days of these files, and when one is complete")

    @property
    def form(self) -> Form:
        """The format of the files, and where their records are."""
        inside = tuple(parse_path(path).keys for path in self.records)
        return Form(self.format, inside, self.delimiter, self.quote, self.header)

    @field_validator("delimiter", "quote")
    @classmethod
    def _one_sign(cls, value: str) -> str:
        if len(value) > 1 or not value.isascii() or value in ("\n", "\r"):
            raise ValueError(f"{value!r} is not one ASCII character")
        return value

    @field_validator("header")
    @classmethod
    def _names_once(cls, value: tuple[str, ...]) -> tuple[str, ...]:
        twice = sorted({name for name in value if value.count(name) > 1})
        if twice or "" in value:
            raise ValueError(f"names {twice[0]!r} twice" if twice else "has a column without a name")
        return value

    @model_validator(mode="after")
    def _for_its_format(self) -> Envelope:
        if self.records and self.format not in ("auto", "json"):
            raise ValueError(f"records inside documents need format json, but the format is {self.format}")
        of_csv = (self.delimiter, self.quote, self.header) != ("", '"', ())
        if of_csv and self.format not in ("csv", "tsv"):
            raise ValueError(f'delimiter, quote and header are for CSV: format = "csv", not {self.format}')
        if self.delimiter and self.delimiter == self.quote:
            raise ValueError("the delimiter and the quote are the same")
        return self

    @field_validator("records")
    @classmethod
    def _made_of_keys(cls, value: tuple[str, ...]) -> tuple[str, ...]:
        for path in map(parse_path, value):
            if path.has_position or not path.of_record:
                raise ValueError(f"{path}: the array must be named by keys alone, such as detail.items")
        return value


class Feed(Envelope):
    """Files under one prefix, and the envelope of their records."""

    name: str = Field(description="the feed's name; its records have it as the field @feed")
    prefix: str = Field(
        "", description="the prefix of its files' keys; if several feeds match, the longest prefix wins"
    )
    bucket: str = Field("", description="the bucket of its files; empty: any bucket")

    @property
    def place(self) -> Place:
        return Place(self.prefix, self.bucket)

    @field_validator("name")
    @classmethod
    def _plain_name(cls, value: str) -> str:
        if not re.fullmatch(r"[a-z][a-z0-9_\-]{0,62}", value):
            raise ValueError("must be a lowercase letter, then up to 62 lowercase letters, digits, - or _")
        return value

    @field_validator("prefix")
    @classmethod
    def _begins_a_key(cls, value: str) -> str:
        if named := re.match(r"s3[an]?://([^/]*)", value):
            raise ValueError(
                f'{value!r} is an address; give a prefix of keys, and name the bucket with bucket = "{named[1]}"'
            )
        if re.search(r"[*{}]", value):
            raise ValueError(
                f"{value!r} must be a plain prefix of keys, not a pattern; use `key` to name parts of keys"
            )
        return value

    @field_validator("bucket")
    @classmethod
    def _names_a_bucket(cls, value: str) -> str:
        if value and not re.fullmatch(r"[A-Za-z0-9._\-]+", value):
            raise ValueError(f"{value!r} must be only the bucket's name, such as my-drops")
        return value

    @model_validator(mode="after")
    def _has_such_keys(self) -> Feed:
        begins = {"key": (self.key, re.split("[{]", self.key)[0])}
        if self.complete is not None:
            begins["complete"] = (self.complete.folder, re.split("[%*]", self.complete.folder)[0])
        for name, (pattern, fixed) in begins.items():
            if not (fixed.startswith(self.prefix) or self.prefix.startswith(fixed)):
                raise ValueError(
                    f"{name}: no file under {self.prefix} has such a key, because {pattern} begins with {fixed}"
                )
        return self


def archive_of(text: str) -> str:
    """A place for the copies of moved files, with a slash at its end."""
    if not re.fullmatch(r"s3://[A-Za-z0-9._\-]+(/[^*{}]*)?", text):
        raise ValueError("is not a place in S3, such as s3://studio-archive/landed/")
    return f"{text.rstrip('/')}/"


def copy_in(archive: str, bucket: str, key: str, file_id: str) -> tuple[str, str]:
    """Bucket and key of the copy of a moved file."""
    name_of_archive, prefix = bucket_and_key(archive)
    folder, slash, name = key.rpartition("/")
    return name_of_archive, f"{prefix}/" * bool(prefix) + f"{bucket}/{folder}{slash}{file_id}/{name}"


class AfterLoad(Declared):
    """The rule by which the daily maintenance moves or deletes a landed file after it was loaded."""

    move: str = Field(
        "",
        description="the place to which it is moved, such as s3://studio-archive/landed/; under it the copy has the bucket's "
        "name, then the key, with the file's id as the last folder",
    )
    delete: StrictBool = Field(False, description="whether it is deleted")
    after_days: int = Field(
        7, ge=0, le=36_500, description="days since it was loaded; 0: the next maintenance moves or deletes it"
    )
    only: tuple[Literal["loaded", "empty", "duplicate", "skipped"], ...] = Field(
        ("loaded", "duplicate"), min_length=1, description="the outcomes of these files in the ledger"
    )

    def place_of(self, bucket: str, key: str, file_id: str) -> tuple[str, str]:
        """Bucket and key of the copy; empty where files are deleted. Each version of an object has a place of its own."""
        return copy_in(self.move, bucket, key, file_id) if self.move else ("", "")

    @field_validator("move")
    @classmethod
    def _is_a_place(cls, value: str) -> str:
        return archive_of(value) if value else value

    @model_validator(mode="after")
    def _does_one_thing(self) -> AfterLoad:
        if bool(self.move) == self.delete:
            raise ValueError('needs either move = "s3://studio-archive/landed/", or delete = true')
        return self
