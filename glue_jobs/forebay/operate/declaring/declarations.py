"""An operator's work with declarations: inspect, compare, and put in force.

In: a folder with declarations (`declaration.kept.files`), and the place of those in force. Out: the effects of a change, as
sentences; a folder to start from; a JSON Schema, with which an editor completes and checks the files. `push` uploads only
valid declarations: `service.toml` last, so that no job reads a service without its tables.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from importlib import resources
from pathlib import Path
from typing import Any

from pydantic import BaseModel

from forebay.declaration.column import widens
from forebay.declaration.feed import Feed
from forebay.declaration.kept.files import is_declaration, text_of, texts_at
from forebay.declaration.loading import parse_service
from forebay.declaration.mistakes.common_name import common_name
from forebay.declaration.order import family_before
from forebay.declaration.rollup import Rollup
from forebay.declaration.service import FILLED, Service
from forebay.declaration.table import Table
from forebay.errors import InvalidConfiguration
from forebay.lake.layout import HOME
from forebay.lake.objects import Objects

MODELS: dict[str, type[BaseModel]] = {"service": Service, "table": Table, "rollup": Rollup}
"""The models of the files that declare something."""

SCHEMAS = ".schema"
"""The folder of their JSON Schemas, from that of service.toml."""

WHO_READS_WIDENED = (
    "after widening, only Spark with Delta Lake 4.0 or newer (Glue 6.0) and Databricks Runtime 15.4 or newer read it",
    "delta-rs reads its log but not its rows; other readers must support the reader feature typeWidening",
    "ALTER TABLE ... DROP FEATURE typeWidening makes it readable for the others again, and rewrites files for that",
)


FAILS_IF_OTHER = (
    "a table whose column is not of type {type} fails until `forebay schema settle`; --lake shows these tables"
)


def texts_in_folder(folder: Path) -> dict[str, str]:
    """The declarations' files, by name."""
    _must_be_no_file(folder)
    return texts_at(str(folder))


def _must_be_no_file(folder: Path) -> None:
    if folder.is_file():
        raise InvalidConfiguration.one(str(folder), "is a file", f"name its folder, {folder.parent}")


def texts_in_place(place: Objects) -> dict[str, str]:
    """The texts that are in force there, or none. The root of a lake is refused: no job reads declarations there."""
    names = [found.name for found in place.found() if is_declaration(found.name)]
    if not names and HOME in place.folders():
        hint = f"write {place.place}/declarations"
        raise InvalidConfiguration.one(place.place, "is a lake, and no job reads declarations there", hint)
    return {name: text_of(name, place.read(name) or b"") for name in sorted(names)}


def impact(before: Service | None, after: Service, *, compared: bool = False) -> list[str]:
    """The effects on records and tables; empty where there are none. `compared`: the caller compares with the lake as well,
    so no sentence guesses about tables that exist. They may equal `after` already."""
    if before is None:
        effects = [effect for table in after.tables for effect in (f"table {table.name}: is new", *who_reads(table))]
        return [*effects, *_of_all(after)]
    known = _of_all(before)
    few = [effect for effect in _of_all(after) if effect not in known]
    return [*_of_service(before, after, compared), *_of_tables(before, after, compared), *few]


def _of_all(service: Service) -> list[str]:
    return [*gets_few(service), *shares_names(service), *shares_columns(service)]


def who_reads(table: Table) -> list[str]:
    """The readers of a table with a feature that not every reader knows; empty for an ordinary table."""
    return [f"table {table.name}: {note}" for note in WHO_READS_WIDENED] if table.type_widening else []


def gets_few(service: Service) -> list[str]:
    """The tables whose records a family of tables takes first, where a record has its fields."""
    return [
        f"table {table.name}: gets no record that has {' and '.join(family.fields)}, because {family.name} comes first"
        for at, table in enumerate(service.tables)
        if (family := family_before(service.tables, at)) is not None
    ]


def tried_before(service: Service, name: str) -> list[str]:
    """The position of a new table in the order, for the person who added it."""
    names = [table.name for table in service.tables]
    later = names[names.index(name) + 1 :]
    return [f"table {name}: comes before {' and '.join(later)}"] if later else []


def shares_names(service: Service) -> Iterator[str]:
    """States that may get the name of another table. Refused is only what every name of a family would meet: whether a value
    ever comes that makes two names the same, nobody knows."""
    for at, table in enumerate(service.tables):
        if table.merge is None or table.states is None:
            continue
        others = [(f"the table {other.name}", other.names) for other in service.tables]
        others += [
            (f"the state {other.merge.into}", other.states)
            for other in service.tables[at + 1 :]
            if other.merge is not None and other.states is not None
        ]
        for what, pattern in others:
            if (name := common_name(table.states, pattern)) is not None:
                yield (
                    f"table {table.name}: its state {table.merge.into} and {what} may have the same name, such as {name}; "
                    "the first one keeps it, records for the other are quarantined (derived-table), and its merge fails. "
                    "Give them different endings, or fields other `values`"
                )


def shares_columns(service: Service) -> Iterator[str]:
    """Families whose tables may belong to another family. A name that says more is another matter: few values would give it to
    the family that says less."""
    for at, number in enumerate(service.owners):
        table = service.tables[number]
        for other in (service.tables[n] for n in service.owners[:at]):
            if other.names.rank != table.names.rank or (other.columns, other.partitions) == (
                table.columns,
                table.partitions,
            ):
                continue
            if (name := common_name(other.names, table.names)) is not None:
                yield (
                    f"table {table.name}: {other.name} is declared earlier and may have a table of the same name, such as "
                    f"{name}; its columns and rules then hold for that table's records. Give them different endings, or "
                    "fields other `values`"
                )


def feeds_of(service: Service) -> list[str]:
    """The files of each feed; empty where all are one."""
    return [f"feed {feed.name}: {_files_of(feed)}{_lying(feed)}" for feed in service.feeds]


def _files_of(feed: Feed) -> str:
    return f"s3://{feed.bucket or '*'}/{feed.prefix}*"


def _lying(feed: Feed) -> str:
    arrays = f", records in {' and '.join(feed.records)}" if feed.records else ""
    return arrays + (f", key {feed.key}" if feed.key else "")


def push(texts: Mapping[str, str], place: Objects) -> None:
    """Files that are there and not in `texts` are deleted."""
    parse_service(texts, strict=True)
    gone = texts_in_place(place).keys() - texts.keys()
    for name in sorted(texts, key=lambda name: name == "service.toml"):
        place.write(name, texts[name].encode())
    place.delete(sorted(gone))


def begin(folder: Path, text: str | None = None) -> Path:
    """Writes this text, or the built-in example, as a beginning. Existing files stay."""
    _must_be_no_file(folder)
    file = folder / "service.toml"
    if file.exists():
        raise InvalidConfiguration.one(str(file), "already exists", "name another folder")
    text = text or (resources.files("forebay.declaration") / "example" / "service.toml").read_text()
    with _writing(folder):
        folder.mkdir(parents=True, exist_ok=True)
        file.write_text(f"#:schema ./{SCHEMAS}/service.json\n{text}")
    write_schemas(folder)
    return file


def write_schemas(folder: Path) -> list[Path]:
    """JSON Schemas beside the declarations: an editor completes and checks a file whose first line names one."""
    place = folder / SCHEMAS
    with _writing(folder):
        place.mkdir(exist_ok=True)
        for kind in MODELS:
            (place / f"{kind}.json").write_text(json.dumps(editor_schema(kind), indent=2) + "\n")
    return [place / f"{kind}.json" for kind in MODELS]


@contextmanager
def _writing(folder: Path) -> Iterator[None]:
    try:
        yield
    except OSError as refused:
        raise InvalidConfiguration.one(str(folder), f"cannot be written: {refused.strerror}") from None


def with_table(folder: Path, name: str, where: Mapping[str, str]) -> Path:
    """Adds `tables/<name>.toml`, if the declarations are right with it."""
    file = folder / "tables" / f"{re.sub(r'[{}]', '', name)}.toml"
    if file.exists():
        raise InvalidConfiguration.one(str(file), "already exists", "edit it, or choose another name")
    wanted = ", ".join(f"{json.dumps(key)} = {json.dumps(value)}" for key, value in where.items())
    text = f"#:schema ../{SCHEMAS}/table.json\nname = {json.dumps(name)}\n"
    text += f"where = {{ {wanted} }}\n" if where else ""
    parse_service({**texts_in_folder(folder), f"tables/{file.name}": text}, strict=True)
    with _writing(folder):
        file.parent.mkdir(exist_ok=True)
        file.write_text(text)
    write_schemas(folder)
    return file


def editor_schema(kind: str = "service") -> dict[str, Any]:
    """The schema of service.toml, of a table's own file, or of a rollup's."""
    schema = MODELS[kind].model_json_schema()
    if kind == "service":
        for name in FILLED:
            schema["properties"].pop(name)
        schema["required"] = [name for name in schema["required"] if name != "tables"]
    return {"$schema": "https://json-schema.org/draft/2020-12/schema", **schema}


def _of_service(before: Service, after: Service, compared: bool) -> Iterator[str]:
    for field in type(after).model_fields:
        if field not in ("tables", *FILLED):
            yield from _change("service", field, getattr(before, field), getattr(after, field))
    for archive in before.archives if not compared else ():
        if archive not in after.archives:
            yield f'service: a replay no longer looks for moved files in {archive}: add "{archive}" to former_archives'
    if before.schedules != after.schedules:
        yield "service: AWS uses the new hours only after `cdk deploy`"
    if before.name != after.name:
        yield "service: a running job refuses another name, since it is part of every transaction"


def _of_tables(before: Service, after: Service, compared: bool) -> Iterator[str]:
    old, new = _by_key(before), _by_key(after)
    for key in old.keys() - new.keys():
        yield f"table {old[key].name}: is no longer declared; it remains, its records go to the next match or are parked"
    for key, table in new.items():
        if key not in old:
            yield f"table {table.name}: is new; it can adopt matching parked records"
            yield from who_reads(table)
        else:
            yield from _of_table(old[key], table, compared)
    if [key for key in old if key in new] != [key for key in new if key in old]:
        yield "tables: are tried in a different order, so records that fit several may go elsewhere"


def _of_table(before: Table, after: Table, compared: bool) -> Iterator[str]:
    for field in type(after).model_fields:
        if field == "columns":
            yield from _of_columns(before, after, compared)
            continue
        yield from _change(f"table {after.name}", field, getattr(before, field), getattr(after, field))
    if after.type_widening and not before.type_widening:
        yield from who_reads(after)
    if before.partitions != after.partitions and not compared:
        yield f"table {after.name}: tables with other partitions keep them until `forebay schema settle`"
    if before.cluster_by != after.cluster_by and not compared:
        columns = f"({', '.join(after.cluster_by)})" if after.cluster_by else "NONE"
        yield f"table {after.name}: existing tables stay unchanged until ALTER TABLE ... CLUSTER BY {columns}"


def _of_columns(before: Table, after: Table, compared: bool) -> Iterator[str]:
    old, new = ({column.name.lower(): column for column in table.columns} for table in (before, after))
    for name in [*new, *(name for name in old if name not in new)]:
        where = f"table {after.name}: column {name}"
        if name not in new:
            yield f"{where}: is no longer declared; its field is treated as an undeclared one"
        elif name not in old:
            yield f"{where}: is new; `forebay schema settle` fills it for old rows"
        elif old[name] != new[name]:
            for field in type(new[name]).model_fields:
                yield from _change(where, field, getattr(old[name], field), getattr(new[name], field))
            if after.type_widening and widens(old[name].type, new[name].type) and name not in after.partitions:
                yield f"{where}: existing tables get the wider type with their next rows"
            elif old[name].type != new[name].type and not compared:
                yield f"{where}: {FAILS_IF_OTHER.format(type=new[name].type)}"


def _change(where: str, field: str, before: Any, after: Any) -> Iterator[str]:
    if before != after:
        yield f"{where}: {field} was {_shown(before)}, is {_shown(after)}"


def _shown(value: Any) -> str:
    plain = value.model_dump(exclude_defaults=True) if hasattr(value, "model_dump") else value
    return json.dumps(plain, default=lambda inner: inner.model_dump(exclude_defaults=True), ensure_ascii=False)


def _by_key(service: Service) -> dict[tuple[str | None, ...], Table]:
    return {
        (table.name, _shown(dict(sorted(table.where.items()))), table.where_sql, table.explode): table
        for table in service.tables
    }
