"""The tables are in the Glue Data Catalog, with the columns that they have."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import boto3
import pytest
from moto import mock_aws
from pyspark.sql.types import LongType, StringType, StructField, StructType

from forebay.events import Event
from forebay.table.catalog import Catalog
from forebay.table.events import CatalogNotUpdated

PATH = "s3a://lake/alpha"


def schema(text: str) -> StructType:
    kinds = {"long": LongType(), "string": StringType()}
    pairs = (field.split() for field in text.split(", "))
    return StructType([StructField(name, kinds[kind]) for name, kind in pairs])


@pytest.fixture
def glue(monkeypatch: pytest.MonkeyPatch) -> Iterator[Any]:
    for name in ("AWS_ENDPOINT_URL", "AWS_ENDPOINT_URL_S3", "AWS_ENDPOINT_URL_SQS"):
        monkeypatch.delenv(name, raising=False)
    with mock_aws():
        made = boto3.client("glue", region_name="eu-west-1")
        made.create_database(DatabaseInput={"Name": "games"})
        yield made


class Counting:
    """Counts what is asked of Glue."""

    def __init__(self, glue: Any) -> None:
        self._glue, self.calls = glue, 0

    def __getattr__(self, name: str) -> Any:
        if name != "exceptions":
            self.calls += 1
        return getattr(self._glue, name)


def columns(glue: Any) -> dict[str, str]:
    found = glue.get_table(DatabaseName="games", Name="alpha")["Table"]
    return {column["Name"]: column["Type"] for column in found["StorageDescriptor"]["Columns"]}


def test_a_table_is_registered_and_its_columns_kept_in_step(glue: Any) -> None:
    catalog = Catalog(glue, "games")
    catalog.keep("alpha", PATH, schema("id long"))
    found = glue.get_table(DatabaseName="games", Name="alpha")["Table"]
    assert found["StorageDescriptor"]["Location"] == "s3://lake/alpha"
    assert found["Parameters"]["table_type"] == "DELTA"
    assert columns(glue) == {"id": "bigint"}
    catalog.keep("alpha", PATH, schema("id long, Name string"))
    assert columns(glue) == {"id": "bigint", "name": "string"}


def test_what_is_in_step_is_not_asked_about(glue: Any) -> None:
    counting = Counting(glue)
    catalog = Catalog(counting, "games")
    for _ in range(5):
        catalog.keep("alpha", PATH, schema("id long"))
    assert counting.calls == 2
    Catalog(counting, "games").keep("alpha", PATH, schema("id long"))
    assert columns(glue) == {"id": "bigint"}


def test_what_others_wrote_into_the_entry_stays(glue: Any) -> None:
    Catalog(glue, "games").keep("alpha", PATH, schema("id long"))
    entry = {"Name": "alpha", "Description": "the first game", "Parameters": {"owner": "me"}}
    glue.update_table(DatabaseName="games", TableInput=entry)
    Catalog(glue, "games").keep("alpha", PATH, schema("id long"))
    found = glue.get_table(DatabaseName="games", Name="alpha")["Table"]
    assert (found["Description"], found["Parameters"]["owner"]) == ("the first game", "me")
    assert columns(glue) == {"id": "bigint"}


def test_a_catalog_that_refuses_stops_nothing_and_is_told_once(glue: Any) -> None:
    told: list[Event] = []
    catalog = Catalog(glue, "nowhere", emit=told.append)
    for _ in range(3):
        catalog.keep("alpha", PATH, schema("id long"))
    assert [type(event) for event in told] == [CatalogNotUpdated]
