"""OpenLineage events of the batches in the ledger.

In: a view of the lake, and a choice of batches. Out: a `BatchLineage` for each, the oldest first. A batch has a run of its own,
without datasets, and a run for each table that got rows. So an input leads to the tables that its files filled, and to no
others. The same ledger gives the same events, with the same ids of runs, so it is safe to send them twice.

The runs of tables have no `parent` facet: releases of DataHub refuse it with status 500, unless an Airflow or a client of
OpenLineage is the producer. Their tags name the batch.

The ledger is read day by day: however long it is, one day's batches are in memory. A batch is of one day, because all its rows
have the time of its commit. Names and facets follow OpenLineage's specification 2-0-2 and its naming conventions.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime
from importlib.metadata import version
from typing import Any
from uuid import NAMESPACE_URL, uuid5

from forebay.address import bucket_and_key, is_s3, local_folder
from forebay.declaration.kept.in_force import kept_services
from forebay.declaration.place import most_specific_first
from forebay.declaration.service import Service
from forebay.lake.layout import LEDGER, PARKED, QUARANTINE, table_path
from forebay.lake.log.definition import definition_of
from forebay.lake.log.listing import BrokenLog, NoTable
from forebay.lake.objects import open_objects
from forebay.operate.lake_view import LakeView, quoted, rows_of
from forebay.operate.looking.files import FileChoice
from forebay.threads import answers_by

VERSION = version("forebay")
PRODUCER = f"urn:forebay:{VERSION}"
SPEC = "https://openlineage.io/spec"
FACETS = {
    "processing_engine": "1-1-1/ProcessingEngineRunFacet",
    "tags": "1-0-0/TagsRunFacet",
    "jobType": "2-0-4/JobTypeJobFacet",
    "schema": "1-2-0/SchemaDatasetFacet",
    "storage": "1-0-1/StorageDatasetFacet",
    "inputStatistics": "1-0-0/InputStatisticsInputDatasetFacet",
    "outputStatistics": "1-0-2/OutputStatisticsOutputDatasetFacet",
}
"""The version and the definition of each facet."""

BATCH = "service, generation, batch"
Row = Mapping[str, Any]
Event = dict[str, Any]


@dataclass(frozen=True)
class BatchLineage:
    """The events of one batch, in the order in which they are sent; `at` is when the batch ended."""

    at: datetime
    events: tuple[Event, ...]


def lineage_of(view: LakeView, choice: FileChoice, *, namespace: str = "") -> Iterator[BatchLineage]:
    """`namespace` is that of the jobs; the lake's address if it is empty."""
    ledger = view.table(LEDGER)
    if ledger is None:
        return
    where, telling = choice.where() or "where true", _Telling(view.lake, namespace)
    prefix = _prefix(kept_services(view.lake))
    for row in rows_of(ledger, f"select distinct day from t {where} order by day"):
        of_day = f"{where} and day = date '{row['day']}'"
        edges: dict[tuple[Any, ...], list[Row]] = defaultdict(list)
        for edge in rows_of(ledger, _edges(prefix, of_day)):
            edges[_key(edge)].append(edge)
        for batch in rows_of(ledger, _batches(of_day)):
            yield BatchLineage(batch["ended"], tuple(telling.events(batch, edges.pop(_key(batch), []))))


def _key(row: Row) -> tuple[Any, ...]:
    return row["service"], row["generation"], row["batch"]


def _batches(where: str) -> str:
    return (
        f"select {BATCH}, coalesce(min(claimed_at), max(committed_at)) began, max(committed_at) ended, "
        f"max(service_version) declared from t {where} group by {BATCH} order by ended, {BATCH}"
    )


def _edges(prefix: str, where: str) -> str:
    """Rows by batch, input and table. A file that was quarantined as a whole is a row there."""
    file = f"select {BATCH}, bucket, size, records, {prefix} prefix"
    kept = {QUARANTINE: "quarantined + case outcome when 'unreadable' then 1 else 0 end", PARKED: "parked"}
    parts = [f"{file}, unnest(map_keys(tables)) name, unnest(map_values(tables)) n from t {where}"]
    parts += [f"{file}, {quoted(name)} name, {count} n from t {where}" for name, count in kept.items()]
    sums = "count(*) files, count(size) sized, sum(size) bytes, sum(records) records, sum(n) written"
    grouped = f"{BATCH}, name, bucket, prefix"
    return (
        f"select {grouped}, {sums} from ({' union all '.join(parts)}) where n > 0 group by {grouped} order by {grouped}"
    )


def _prefix(services: Iterable[Service]) -> str:
    """In SQL over the ledger: the prefix of the feed that a file belongs to, by the declarations in force, as datasets are
    named; empty for a file of no feed, and where no feeds are declared."""
    cases = ""
    for service in services:
        places = [feed.place for feed in service.all_feeds]
        for place in (places[n] for n in most_specific_first(places)):
            of_bucket = f" and bucket = {quoted(place.bucket)}" if place.bucket else ""
            fits = f"service = {quoted(service.name)} and starts_with(key, {quoted(place.prefix)}){of_bucket}"
            cases += f" when {fits} then {quoted(place.prefix.strip('/'))}"
    return f"case{cases} else '' end" if cases else "''"


class _Telling:
    """Makes events of rows. A table's columns are read once."""

    def __init__(self, lake: str, namespace: str) -> None:
        whole = "s3://" + "/".join(bucket_and_key(lake)) if is_s3(lake) else f"file:{local_folder(lake).resolve()}"
        self._lake = whole.rstrip("/")
        self._namespace = namespace or self._lake
        self._columns: dict[str, list[dict[str, Any]]] = {}

    def events(self, batch: Row, edges: Iterable[Row]) -> Iterator[Event]:
        by_table: dict[str, list[Row]] = defaultdict(list)
        for edge in edges:
            by_table[edge["name"]].append(edge)
        self._columns |= answers_by(self._columns_of, by_table.keys() - self._columns.keys())
        start, complete = (self._event(batch, state) for state in ("START", "COMPLETE"))
        yield start
        for table, inputs in by_table.items():
            yield self._event(batch, "START", table, inputs)
            yield self._event(batch, "COMPLETE", table, inputs)
        yield complete

    def _event(self, batch: Row, state: str, table: str = "", inputs: Iterable[Row] = ()) -> Event:
        """Both events of a run name its datasets: Marquez and DataHub take those of the last event for all of them."""
        tags = {"batch": batch["batch"], "generation": batch["generation"], "declarations": batch["declared"]}
        pairs = [{"key": name, "value": str(value), "source": "FOREBAY"} for name, value in tags.items()]
        facets = _facet("processing_engine", name="forebay", version=VERSION) | _facet("tags", tags=pairs)
        kind = _facet("jobType", processingType="BATCH", integration="FOREBAY", jobType="TASK" if table else "JOB")
        ended = state == "COMPLETE"
        return {
            "eventType": state,
            "eventTime": batch["ended" if ended else "began"].isoformat(),
            "producer": PRODUCER,
            "schemaURL": f"{SPEC}/2-0-2/OpenLineage.json#/$defs/RunEvent",
            "run": {"runId": self._run(batch, table), "facets": facets},
            "job": {**self._job(batch, table), "facets": kind},
            "inputs": [_input(one, ended) for one in inputs],
            "outputs": [self._output(table, sum(one["written"] for one in inputs), ended)] if table else [],
        }

    def _run(self, batch: Row, table: str = "") -> str:
        return str(uuid5(NAMESPACE_URL, "/".join([self._lake, *map(str, _key(batch)), table])))

    def _job(self, batch: Row, table: str = "") -> dict[str, str]:
        """DataHub shows `service.table` as the task `table` of the flow `service`."""
        name = f"{batch['service']}.{table}" if table else batch["service"]
        return {"namespace": self._namespace, "name": name}

    def _output(self, table: str, rows: int, ended: bool) -> dict[str, Any]:
        facets = _facet("storage", storageLayer="delta", fileFormat="parquet")
        if columns := self._columns[table]:
            facets |= _facet("schema", fields=columns)
        statistics = {"outputFacets": _facet("outputStatistics", rowCount=rows)} if ended else {}
        return {**_dataset(table_path(self._lake, table)), "facets": facets, **statistics}

    def _columns_of(self, table: str) -> list[dict[str, Any]]:
        """Those that the table has now; none if it is gone."""
        try:
            schema = definition_of(open_objects(table_path(self._lake, table))).schema
        except (NoTable, BrokenLog):
            return []
        return [_column(field["name"], field["type"]) for field in schema["fields"]]


def _input(edge: Row, ended: bool) -> dict[str, Any]:
    """The files of one place that brought rows of the table."""
    of_files = {"rowCount": edge["records"], "fileCount": edge["files"]}
    if edge["sized"] == edge["files"]:
        of_files["size"] = edge["bytes"]
    statistics = {"inputFacets": _facet("inputStatistics", **of_files)} if ended else {}
    return {**_dataset(f"s3://{edge['bucket']}/{edge['prefix']}"), **statistics}


def _dataset(address: str) -> dict[str, Any]:
    if is_s3(address):
        bucket, key = bucket_and_key(address)
        return {"namespace": f"s3://{bucket}", "name": key or "/"}
    return {"namespace": "file", "name": str(local_folder(address))}


def _facet(facet: str, /, **values: Any) -> dict[str, Any]:
    definition = FACETS[facet].partition("/")[2]
    url = f"{SPEC}/facets/{FACETS[facet]}.json#/$defs/{definition}"
    return {facet: {"_producer": PRODUCER, "_schemaURL": url, **values}}


def _column(name: str, kind: Any) -> dict[str, Any]:
    """Of a column or a part of it, from Delta's JSON; parts of arrays and maps have the names of the specification."""
    if isinstance(kind, str):
        return {"name": name, "type": kind}
    if kind["type"] == "struct":
        parts = [(field["name"], field["type"]) for field in kind["fields"]]
    elif kind["type"] == "array":
        parts = [("_element", kind["elementType"])]
    else:
        parts = [("key", kind["keyType"]), ("value", kind["valueType"])]
    return {"name": name, "type": kind["type"], "fields": [_column(*part) for part in parts]}
