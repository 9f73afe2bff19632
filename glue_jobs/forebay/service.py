"""The declarations: what a service is, which tables exist and which records belong to them.

Enters: `service.toml` and `tables/*.toml` beside it, from a folder or an s3:// prefix. Leaves: a frozen `Service` with
a version (a hash of the text), so that the ledger can say which declarations loaded a file. Every problem of every file
is reported at once, with file, key and a suggestion (`Misdeclared`).
"""

from __future__ import annotations

import difflib
import hashlib
import re
import tomllib
from collections.abc import Iterable, Iterator, Mapping
from importlib import resources
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import AfterValidator, BaseModel, Field, ValidationError, field_validator, model_validator

from forebay import object_key
from forebay.aws import client
from forebay.column import Column, Declared, Dedupe, RecordPath, Undeclared, path_in_record
from forebay.errors import Misdeclared, Problem
from forebay.event_time import EventTime
from forebay.expectation import Expectation
from forebay.settings import problems_of

__all__ = [
    "Column",
    "Compaction",
    "Envelope",
    "Service",
    "Table",
    "builtin_service",
    "fingerprint",
    "load_service",
    "parse_service",
]

TABLE_NAME = re.compile(r"[a-z0-9][a-z0-9_]{0,126}")


class Envelope(Declared):
    """Where each record says what it is: dotted paths into the JSON document."""

    event: RecordPath = Field("event", description="what happened, such as purchase")
    event_time: RecordPath = Field("event_time", description="when it happened")
    id: RecordPath = Field("event_id", description="what makes a record the same record")
    key: Annotated[str, AfterValidator(object_key.checked)] = Field(
        "", description="what the objects' keys say of their records: in/{game}/ makes a field @key.game"
    )


class Compaction(Declared):
    """How a table's small files are made into large ones. Only types are checked here: a number out of range is for the
    compaction job to name, and no reason to take no files in."""

    group: str = Field(
        "default", description="the set of tables that it is compacted with, which may have its own schedule"
    )
    way: Literal["optimize", "rewrite"] = Field(
        "optimize", description="optimize: pack the small files; rewrite: the whole partition, into `files` files"
    )
    files: int | None = Field(None, description="for rewrite: how many; computed from the bytes where not given")
    target_file_mib: int | None = Field(
        None, description="how large files should be, in MiB; by the table's size where not given"
    )
    min_small_files: int = Field(8, description="so many small files in a partition are reason enough")
    cold_after_minutes: int = Field(60, description="a partition with a younger file is left alone")
    hot_small_files: int = Field(200, description="unless it has so many small files; 0: never, as fits merge tables")
    every_batches: int = Field(
        0,
        ge=0,
        description="compact inside the stream after so many batches, as fits merge tables; 0: only the job does",
    )
    order_by: tuple[str, ...] = Field((), description="columns by which the second, weekly round orders the rows")


class Table(Declared):
    """A destination, or a family of them: a name with {fields} makes one table for each value that arrives."""

    name: str = Field(description="the table's name; {field} stands for that field of the record")
    where: dict[str, str] = Field(default_factory=dict, description="fields that a record must have, with these values")
    columns: tuple[Column, ...] = Field(
        (), description="columns whose type is declared; the other fields become what `undeclared` says"
    )
    undeclared: Undeclared = Field(
        default_factory=lambda: Undeclared(), description="what becomes of the fields that are not declared"
    )
    event_time: EventTime | None = Field(
        None, description="which column says when a record happened, and how old it may be"
    )
    partitions: tuple[str, ...] = Field(
        (), description="declared columns by whose values the table's files are put apart"
    )
    partition_values: dict[str, str] = Field(
        default_factory=dict,
        description="patterns that values of partition columns must match; else the record is refused",
    )
    expectations: dict[str, Expectation] = Field(
        default_factory=dict, description="what must hold of each row, by name; a text is a predicate to warn about"
    )
    dedupe: Dedupe | None = Field(None, description="drop records that came before, by what makes them the same")
    keep_record: bool = Field(False, description="keep each record's text as it came, in _record")
    values: str = Field(
        "[a-z0-9][a-z0-9_]{0,62}", description="the pattern that each {field} must match before it may name a table"
    )
    compaction: Compaction = Field(
        default_factory=Compaction, description="how its small files are made into large ones"
    )
    time_travel_days: int = Field(
        7, ge=1, le=3650, description="versions so old can be read, and maintenance deletes nothing that they need"
    )

    @property
    def glob(self) -> str:
        """The pattern of the names that it may give: * for each {field}."""
        return re.sub(r"\{[^{}]*\}", "*", self.name)

    @property
    def fields(self) -> tuple[str, ...]:
        """The record's fields that the name is made of."""
        return tuple(re.findall(r"\{([^{}]*)\}", self.name))

    @field_validator("values")
    @classmethod
    def _is_a_pattern(cls, value: str) -> str:
        try:
            re.compile(value)
        except re.error as problem:
            raise ValueError(f"is not a regular expression: {problem}") from None
        return value

    @model_validator(mode="after")
    def _names_a_table(self) -> Table:
        plain = re.sub(r"\{[^{}]*\}", "x", self.name)
        if not TABLE_NAME.fullmatch(plain):
            raise ValueError(
                f"name {self.name!r} must be small letters, digits and _, with {{field}} for a value of the record"
            )
        for field in self.fields:
            path_in_record(field)
        twice = [c.name.lower() for c in self.columns]
        if len(set(twice)) < len(twice):
            raise ValueError("names a column twice (upper and lower case are the same to Spark)")
        return self

    @model_validator(mode="after")
    def _is_put_apart_by_its_columns(self) -> Table:
        kinds = {column.name: column.type for column in self.columns}
        for name in self.partitions:
            if name not in kinds:
                raise ValueError(f"partitions: {name} is no declared column")
            if kinds[name] in ("map", "binary", "json"):
                raise ValueError(f"partitions: {name} is {kinds[name]}, which names no folder")
        for name, pattern in self.partition_values.items():
            if name not in self.partitions:
                raise ValueError(f"partition_values: {name} is none of the partitions")
            try:
                re.compile(pattern)
            except re.error as problem:
                raise ValueError(f"partition_values: {name} is not a regular expression: {problem}") from None
        if self.partitions and len(set(self.partitions)) < len(self.partitions):
            raise ValueError("partitions: names a column twice")
        for name in self.dedupe.by if self.dedupe else ():
            if name not in kinds:
                raise ValueError(f"dedupe: {name} is no declared column")
        for name in self.expectations:
            if name.startswith("_"):
                raise ValueError(f"expectations: {name} begins with _, as forebay's own names do")
        if self.event_time is not None and kinds.get(self.event_time.column) != "timestamp":
            raise ValueError(f"event_time: {self.event_time.column} is no declared column of type timestamp")
        return self


class Service(Declared):
    """Everything that one ingest job serves."""

    name: str = Field(description="the service's name; it is part of every transaction id, so it must not change")
    envelope: Envelope = Field(default_factory=lambda: Envelope(), description="where each record says what it is")
    tables: tuple[Table, ...] = Field(
        description="the destinations, tried in order: the first that fits takes the record"
    )
    overwritten: Literal["append", "ignore", "replace"] = Field(
        "append",
        description="when a key gets other bytes: load them too, ignore them, or let them take the place of the earlier ones",
    )
    new_tables_per_day: int = Field(
        2000, ge=0, description="records of further new tables go to the quarantine that day"
    )
    keep_aside_days: int = Field(
        0, ge=0, le=36_500, description="days that quarantined and parked records are kept; 0: for ever"
    )
    version: str = Field("", description="filled by forebay: a hash of the declarations' text")

    @field_validator("name")
    @classmethod
    def _plain_name(cls, value: str) -> str:
        if not re.fullmatch(r"[a-z][a-z0-9\-]{0,30}", value):
            raise ValueError("must be a small letter, then up to 30 small letters, digits or -")
        return value


def builtin_service() -> Service:
    """The example that is used when nothing is declared: game telemetry, one table for each game."""
    text = (resources.files("forebay") / "example" / "service.toml").read_text()
    return parse_service({"service.toml": text})


def load_service(place: str, *, s3: Any = None) -> Service:
    """Reads the declarations from a folder, a service.toml or an s3:// prefix; the built-in example where `place` is empty."""
    if not place:
        return builtin_service()
    texts = (
        _from_s3(place, s3)
        if place.startswith(("s3://", "s3a://"))
        else _from_folder(Path(place.removeprefix("file:")))
    )
    if "service.toml" not in texts:
        raise Misdeclared.one(place, "has no service.toml", "`forebay tables init` writes one to begin with")
    return parse_service(texts)


def fingerprint(place: str, *, s3: Any = None) -> str:
    """Another one when a file of the declarations was changed, came or went; without reading them."""
    if place.startswith(("s3://", "s3a://")):
        seen = sorted((name, found["ETag"]) for name, found in _listed(place, s3 or client("s3")))
    else:
        root = Path(place.removeprefix("file:"))
        stats = [(file.as_posix(), file.stat()) for file in (_files_of(root) if root.is_dir() else [root])]
        seen = sorted((name, f"{stat.st_mtime_ns} {stat.st_size}") for name, stat in stats)
    return hashlib.sha256(repr(seen).encode()).hexdigest()


def parse_service(texts: Mapping[str, str]) -> Service:
    """Declarations from their texts, by file name; all problems of all files at once."""
    problems: list[Problem] = []
    parsed: dict[str, dict[str, Any]] = {}
    for name, text in sorted(texts.items()):
        try:
            parsed[name] = tomllib.loads(text)
        except tomllib.TOMLDecodeError as broken:
            problems.append(Problem(name, f"is not TOML: {broken}"))
    main = dict(parsed.get("service.toml", {}))
    tables = [(f"service.toml: tables.{i}", table) for i, table in enumerate(main.pop("tables", []))]
    tables += [(name, table) for name, table in parsed.items() if name != "service.toml"]
    good: list[Table] = []
    for where, table in tables:
        try:
            good.append(Table.model_validate(table))
        except ValidationError as refused:
            problems += _explained(refused, where, table, Table)
    version = hashlib.sha256("\0".join(f"{n}\0{t}" for n, t in sorted(texts.items())).encode()).hexdigest()[:12]
    try:
        service = Service.model_validate({**main, "tables": good, "version": version})
    except ValidationError as refused:
        problems += _explained(refused, "service.toml", main, Service)
    else:
        if not tables:
            problems.append(Problem("service.toml: tables", "no table is declared", "add a [[tables]] with a name"))
        problems += _twins(good)
        problems += _not_in_the_key(service)
    if problems:
        raise Misdeclared(problems)
    return service


def _explained(refused: ValidationError, where: str, given: Any, model: type[BaseModel]) -> Iterable[Problem]:
    for problem in problems_of(refused, lambda path: f"{where}: {path}" if path else where):
        key = problem.where.rsplit(": ", 1)[-1].rsplit(".", 1)[-1]
        near = difflib.get_close_matches(key, _all_keys(model), 1)
        if problem.what == "is unknown" and near:
            problem = Problem(problem.where, problem.what, f"did you mean {near[0]}?")
        yield problem


def _all_keys(model: type[BaseModel]) -> set[str]:
    return {key for m in (model, Envelope, Column, Compaction) for key in m.model_fields}


def _twins(tables: list[Table]) -> Iterable[Problem]:
    seen: dict[tuple[str, tuple[tuple[str, str], ...]], Table] = {}
    for table in tables:
        key = (table.name, tuple(sorted(table.where.items())))
        if key in seen:
            yield Problem(f"tables: {table.name}", "is declared twice with the same `where`", "remove one")
        seen[key] = table


def _not_in_the_key(service: Service) -> Iterable[Problem]:
    said = {f"{object_key.PREFIX}{name}" for name in object_key.names(service.envelope.key)}
    for table in service.tables:
        used = {*table.fields, *table.where, *(c.source for c in table.columns if c.expression is None)}
        for path in sorted(used):
            if path.startswith(object_key.PREFIX) and path not in said:
                name = path.removeprefix(object_key.PREFIX)
                yield Problem(
                    f"tables: {table.name}", f"{path} is not in the key", f'such as envelope.key = "in/{{{name}}}/"'
                )


def _from_folder(place: Path) -> dict[str, str]:
    if not place.exists():
        raise Misdeclared.one(
            str(place), "does not exist", "--service names a folder with service.toml, or the file itself"
        )
    if place.is_file():
        return {"service.toml": place.read_text()}
    return {file.relative_to(place).as_posix(): file.read_text() for file in _files_of(place)}


def _files_of(folder: Path) -> list[Path]:
    return [*folder.glob("service.toml"), *folder.glob("tables/*.toml")]


def _from_s3(place: str, s3: Any) -> dict[str, str]:
    s3 = s3 or client("s3")
    bucket = place.partition("://")[2].partition("/")[0]
    return {
        name: s3.get_object(Bucket=bucket, Key=found["Key"])["Body"].read().decode()
        for name, found in _listed(place, s3)
    }


def _listed(place: str, s3: Any) -> Iterator[tuple[str, Mapping[str, Any]]]:
    """The declarations' objects, by their names below the place."""
    bucket, _, prefix = place.partition("://")[2].partition("/")
    prefix = prefix.rstrip("/") + "/" if prefix else ""
    for page in s3.get_paginator("list_objects_v2").paginate(Bucket=bucket, Prefix=prefix):
        for found in page.get("Contents", []):
            name = found["Key"].removeprefix(prefix)
            if name == "service.toml" or re.fullmatch(r"tables/[^/]+\.toml", name):
                yield name, found
