"""The net changes of a table between two of its versions, as files for other clouds and tools.

In: a table with a change feed, a place, and the version to begin after. Out: a `Manifest` for each step, which names the files
of its changes. Only files that a manifest names count. It is written last, once, under the version that it begins after: so an
interrupted export continues where it stopped, and of two that run at once, one wins each step.

Rows of a state are identified by their keys: `upsert` and `delete`. Rows of another table are identified by files: first
remove all rows of the files (`_file_id`) with a `delete`, then add the rows of `insert`. A consumer that applies the steps in
order has the table.
"""

from __future__ import annotations

import json
import uuid
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import asdict, replace
from datetime import UTC, datetime
from typing import Any, cast

import pyarrow as pa
import pyarrow.parquet as pq
from deltalake import DeltaTable
from deltalake.exceptions import DeltaError

from forebay.address import overlap
from forebay.content.formats.json_text import documents, json_of, spelt
from forebay.declaration.properties import CHANGE_FEED
from forebay.declaration.service import Service
from forebay.errors import Halt, InvalidConfiguration
from forebay.lake.layout import DERIVED_FROM, table_path
from forebay.lake.log.listing import commit_name, committed_at
from forebay.lake.objects import Objects, open_objects
from forebay.operate.exporting.manifest import Format, Manifest, Part, manifests_of, name_of
from forebay.operate.exporting.rows import changed_rows, whole_rows
from forebay.operate.lake_view import LakeView, known_table
from forebay.upkeep.after_load.readers import must_not_be_landed

STEP_BYTES = 256 << 20
"""The bytes of files that one step reads, unless one commit has more."""
PART_BYTES = 64 << 20


def export(
    view: LakeView,
    service: Service,
    name: str,
    to: str,
    *,
    since: int | datetime | None = None,
    form: Format = "parquet",
) -> Iterator[Manifest]:
    """Writes what the place lacks, a step at a time. `since` is for an empty place; without it the whole table comes first."""
    if overlap(to, view.lake):
        raise InvalidConfiguration.one(f"--to {to}", "is a part of this lake", "name another place")
    must_not_be_landed(view.lake, to)
    table = view.table(known_table(view, name))
    assert table is not None
    configuration = table.metadata().configuration
    _must_have_feed(service, name, configuration)
    target = open_objects(table_path(to, name))
    done = manifests_of(to, name)
    at = _begin(view, name, table, done, since)
    keys = _keys(service, name, configuration)
    newest, named = table.version(), keys or ("_file_id",)
    before = done[-1].keys if done else None
    if since is not None and at >= 0:
        _load(name, table, at)
        before = _typed(table, named)
    plain = Manifest(name, str(table.metadata().id), at, at, form, {}, (), "")
    while at < newest:
        last, size = newest, 0
        if at >= 0:
            _load(name, table, at)
            last, size = _end_of_step(view, name, table, newest)
        _load(name, table, last)
        now = _typed(table, named)
        _must_be_of(name, before or now, now)
        whole = at < 0
        rows = whole_rows(table, unique=keys is not None) if whole else changed_rows(name, table, at, size, keys)
        step = _write(target, replace(plain, since=at, version=last, keys=now), rows)
        if not target.write_once(name_of(at), json.dumps(asdict(step), indent=1).encode()):
            raise Halt(
                f"another export of {name} to {to} was faster: its files count, and this export's last step does not"
            )
        yield step
        at, before = last, now


def _must_have_feed(service: Service, name: str, configuration: Mapping[str, str]) -> None:
    if name in {rollup.name for rollup in service.rollups}:
        what = "is a rollup, whose groups are recomputed, so it has no change feed"
        raise InvalidConfiguration.one(
            f"table {name}", what, "export one of its source tables, or read the whole rollup"
        )
    if configuration.get(CHANGE_FEED) != "true":
        hint = f'declare properties = {{ "{CHANGE_FEED}" = "true" }}, or for a state change_feed = true under [merge]'
        raise InvalidConfiguration.one(f"table {name}", "has no change feed", hint)


def _begin(view: LakeView, name: str, table: DeltaTable, done: list[Manifest], since: int | datetime | None) -> int:
    what = f"table {name}"
    if done:
        if done[-1].table_id != str(table.metadata().id):
            raise InvalidConfiguration.one(what, "is not the table whose export is there", "name another folder")
        if done[-1].version > table.version():
            raise InvalidConfiguration.one(what, "is older than the export there", "name another folder")
        if since is not None:
            raise InvalidConfiguration.one(
                what, f"has been exported up to version {done[-1].version}", "leave --since out, or name another folder"
            )
        return done[-1].version
    if since is None:
        return -1
    then = view.table(name)
    assert then is not None
    try:
        then.load_as_version(since)
    except (DeltaError, ValueError) as refused:
        raise InvalidConfiguration.one(what, f"has no version of {since}", str(refused)) from None
    made = committed_at(open_objects(table_path(view.lake, name)), then.version())
    if isinstance(since, datetime) and made is not None and made > since:
        # delta-rs names the oldest version that it has.
        if then.version() == 0:
            return -1
        raise InvalidConfiguration.one(
            what, f"has no version of {since}", f"its oldest version is from {made:%Y-%m-%d %H:%M}"
        )
    return then.version()


def _load(name: str, table: DeltaTable, version: int) -> None:
    """Maintenance, or an erasure, may have deleted the log of that version."""
    try:
        table.load_as_version(version)
    except DeltaError as refused:
        raise InvalidConfiguration.one(
            f"table {name}",
            f"no longer has version {version}: {refused}",
            "try it again; if the log of that version no longer exists, export it to another folder, from the start",
        ) from None


def _typed(table: DeltaTable, keys: tuple[str, ...]) -> dict[str, str]:
    kinds = {field.name: str(getattr(field.type, "type", "none")) for field in table.schema().fields}
    return {key: kinds.get(key, "none") for key in keys}


def _must_be_of(name: str, before: Mapping[str, str], now: Mapping[str, str]) -> None:
    """With other keys, consumers would not find the rows that they have."""
    if before != now:
        here, there = (", ".join(f"{key} {kind}" for key, kind in keys.items()) for keys in (now, before))
        what = f"has the keys {here}, but the export there has {there}"
        raise InvalidConfiguration.one(f"table {name}", what, "export it to another folder, from the start")


def _keys(service: Service, name: str, configuration: Mapping[str, str]) -> tuple[str, ...] | None:
    """None for a table that is not a state."""
    log = configuration.get(DERIVED_FROM)
    if log is None:
        return None
    declared = service.maker_of(log)
    if declared is None or declared.merge is None:
        what = f"is computed from {log}, which is not declared as a merge here"
        raise InvalidConfiguration.one(f"table {name}", what, "name the declarations with --service")
    return declared.merge.row_keys


def _end_of_step(view: LakeView, name: str, table: DeltaTable, newest: int) -> tuple[int, int]:
    """The last version whose change files still fit into a step, and the bytes of those up to it. The step begins where the
    `table` is. Nobody reads a feed across other partitions: delta-rs cannot, and rows from before would have none."""
    log, size, at, partitions = open_objects(table_path(view.lake, name)), 0, table.version(), _partitions(table)
    for version in range(at + 1, newest + 1):
        content = log.read(commit_name(version))
        if content is None:
            raise InvalidConfiguration.one(
                f"table {name}", f"no longer has commit {version}", "export it to another folder, from the start"
            )
        lines = content.splitlines()
        its, same = sum(map(_size, lines)), all(_partitions_said(line) in (None, partitions) for line in lines)
        if version > at + 1 and (size + its > STEP_BYTES or not same):
            return version - 1, size
        if not same:
            what = f"got other partition columns than {list(partitions)} with version {version}"
            raise InvalidConfiguration.one(f"table {name}", what, "export it to another folder, from the start")
        size += its
    return newest, size


def _partitions(table: DeltaTable) -> tuple[str, ...]:
    return tuple(table.metadata().partition_columns)


def _partitions_said(line: bytes) -> tuple[str, ...] | None:
    if not line.startswith(b'{"metaData"'):
        return None
    return tuple(json.loads(line)["metaData"]["partitionColumns"])


def _size(line: bytes) -> int:
    if not line.startswith((b'{"add"', b'{"cdc"', b'{"remove"')):
        return 0
    return int(next(iter(json.loads(line).values())).get("size") or 0)


def _write(target: Objects, step: Manifest, rows: Iterable[pa.Table]) -> Manifest:
    """Writes files with names that no other attempt uses."""
    folder, parts = f"{step.since + 1:020}-{uuid.uuid4().hex[:8]}", list[Part]()
    for some in _of_size(rows):
        content = _as_json(some) if step.format == "json" else _as_parquet(some)
        name = f"{folder}/{len(parts):05}.{step.format}"
        target.write(name, content)
        parts.append(Part(name, some.num_rows, len(content)))
    return replace(step, files=tuple(parts), made_at=datetime.now(UTC).isoformat(timespec="seconds"))


def _of_size(rows: Iterable[pa.Table]) -> Iterator[pa.Table]:
    held: list[pa.Table] = []
    for some in (one for one in rows if one.num_rows):
        held.append(some)
        if sum(one.nbytes for one in held) >= PART_BYTES:
            yield pa.concat_tables(held)
            held = []
    if held:
        yield pa.concat_tables(held)


def _as_parquet(rows: pa.Table) -> bytes:
    sink = pa.BufferOutputStream()
    pq.write_table(rows, sink, compression="zstd")
    return cast(bytes, sink.getvalue().to_pybytes())


def _as_json(rows: pa.Table) -> bytes:
    """A line for each row."""
    columns: list[Any] = [json_of(column.combine_chunks(), strict=True) for column in rows.columns]
    texts = documents([spelt(name) for name in rows.schema.names], columns, rows.num_rows)
    return b"".join(text + b"\n" for text in texts.to_pylist())
