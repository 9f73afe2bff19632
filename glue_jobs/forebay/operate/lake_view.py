"""Answers from the lake in a second, without a JVM, through delta-rs.

In: the lake's place; the standard AWS environment. Out: plain values. A table that is not there yet is an ordinary
answer.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
from deltalake import DeltaTable, QueryBuilder
from deltalake.exceptions import TableNotFoundError

from forebay.aws.client import client

__all__ = ["LakeView", "TableFacts"]


@dataclass(frozen=True)
class TableFacts:
    """What a table's log says of it."""

    name: str
    rows: int
    files: int
    bytes: int
    version: int
    newest: datetime | None = None


class LakeView:
    """Looks at the tables of one lake."""

    def __init__(self, lake: str, env: Mapping[str, str] = os.environ) -> None:
        self.lake = lake.replace("s3a://", "s3://")
        self._options = _storage_options(env) if self.lake.startswith("s3://") else None

    def table(self, name: str) -> DeltaTable | None:
        try:
            return DeltaTable(f"{self.lake}/{name}", storage_options=self._options)
        except TableNotFoundError:
            return None

    def query(self, name: str, sql: str) -> list[dict[str, Any]]:
        """Rows of `sql`, in which the table is called `t`; none where there is no such table."""
        table = self.table(name)
        if table is None:
            return []
        answer = pa.table(QueryBuilder().register("t", table).execute(sql))
        rows: list[dict[str, Any]] = answer.to_pylist()
        return rows

    def facts(self, name: str, *, newest_by: str | None = None) -> TableFacts | None:
        """From the log alone: no data file is opened."""
        table = self.table(name)
        if table is None:
            return None
        added = pa.table(table.get_add_actions(flatten=True))
        newest = None
        if newest_by and f"max.{newest_by}" in added.column_names:
            newest = pc.max(added[f"max.{newest_by}"]).as_py()
        rows, size = (pc.sum(added[column]).as_py() or 0 for column in ("num_records", "size_bytes"))
        return TableFacts(name, rows, added.num_rows, size, table.version(), newest)

    def tables(self) -> list[str]:
        """The names of all tables but our own."""
        found = _s3_folders(self.lake) if self.lake.startswith("s3://") else _local_folders(self.lake)
        return sorted(name for name in found if not name.startswith("_"))


def _storage_options(env: Mapping[str, str]) -> dict[str, str]:
    options = {"aws_region": env.get("AWS_REGION") or env.get("AWS_DEFAULT_REGION") or "us-east-1"}
    endpoint = env.get("AWS_ENDPOINT_URL_S3") or env.get("AWS_ENDPOINT_URL")
    if endpoint:
        options["aws_endpoint_url"] = endpoint
        options["aws_allow_http"] = str(endpoint.startswith("http:")).lower()
    return options


def _s3_folders(lake: str) -> list[str]:
    bucket, _, prefix = lake.removeprefix("s3://").partition("/")
    prefix = f"{prefix}/" if prefix else ""
    pages = client("s3").get_paginator("list_objects_v2").paginate(Bucket=bucket, Prefix=prefix, Delimiter="/")
    folders = (found["Prefix"] for page in pages for found in page.get("CommonPrefixes", []))
    return [folder.removeprefix(prefix).rstrip("/") for folder in folders]


def _local_folders(lake: str) -> list[str]:
    place = Path(lake.removeprefix("file://").removeprefix("file:"))
    return [folder.name for folder in place.iterdir() if (folder / "_delta_log").is_dir()] if place.is_dir() else []
