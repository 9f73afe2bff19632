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
from forebay.table.events import CatalogEntryForeign, CatalogNotUpdated

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


@pytest.mark.parametrize(
    ("kind", "location", "entry"),
    [
        ({"table_type": "ICEBERG"}, "s3://other/alpha", "ICEBERG at s3://other/alpha"),
        ({"table_type": "ICEBERG"}, "s3://lake/alpha", "ICEBERG at s3://lake/alpha"),
        ({"table_type": "DELTA"}, "s3://lake/shop/alpha/", "DELTA at s3://lake/shop/alpha"),
        ({}, "s3://exports/alpha", "EXTERNAL_TABLE at s3://exports/alpha"),
    ],
    ids=["iceberg", "iceberg at our place", "another service's", "hive"],
)
def test_an_entry_of_this_name_that_is_not_ours_stays_as_it_is_and_is_told_once(
    glue: Any, kind: dict[str, str], location: str, entry: str
) -> None:
    column = {"Name": "theirs", "Type": "int"}
    about = {"Location": location, "Columns": [column]}
    table = {"Name": "alpha", "TableType": "EXTERNAL_TABLE", "Parameters": kind, "StorageDescriptor": about}
    glue.create_table(DatabaseName="games", TableInput=table)
    told: list[Event] = []
    catalog = Catalog(glue, "games", emit=told.append)
    for _ in range(3):
        catalog.keep("alpha", PATH, schema("id long"))
    found = glue.get_table(DatabaseName="games", Name="alpha")["Table"]
    assert (found["StorageDescriptor"]["Location"], columns(glue)) == (location, {"theirs": "int"})
    assert told == [CatalogEntryForeign(table="alpha", database="games", entry=entry)]
    glue.delete_table(DatabaseName="games", Name="alpha")
    catalog.keep("alpha", PATH, schema("id long"))
    assert columns(glue) == {"id": "bigint"}


@pytest.mark.parametrize(
    ("theirs", "entry"),
    [
        (
            {
                "TableType": "VIRTUAL_VIEW",
                "ViewOriginalText": "/* Presto View: e30= */",
                "Parameters": {"presto_view": "true"},
                "StorageDescriptor": {"Location": "", "Columns": [{"Name": "theirs", "Type": "int"}]},
            },
            "VIRTUAL_VIEW at no place",
        ),
        (
            {"TargetTable": {"CatalogId": "210987654321", "DatabaseName": "studio", "Name": "alpha"}},
            "a link at no place",
        ),
    ],
    ids=["a view of Athena", "a link of Lake Formation"],
)
def test_a_view_or_a_link_of_this_name_has_no_place_and_stays_as_it_is(
    glue: Any, theirs: dict[str, Any], entry: str
) -> None:
    glue.create_table(DatabaseName="games", TableInput={"Name": "alpha", **theirs})
    told: list[Event] = []
    Catalog(glue, "games", emit=told.append).keep("alpha", PATH, schema("id long"))
    found = glue.get_table(DatabaseName="games", Name="alpha")["Table"]
    assert {name: found.get(name) for name in theirs} == theirs
    assert told == [CatalogEntryForeign(table="alpha", database="games", entry=entry)]


def test_an_entry_that_another_tool_wrote_for_the_same_table_is_ours(glue: Any) -> None:
    about = {"Location": "s3a://lake/alpha/", "Columns": []}
    parameters = {"spark.sql.sources.provider": "delta"}
    glue.create_table(
        DatabaseName="games", TableInput={"Name": "alpha", "Parameters": parameters, "StorageDescriptor": about}
    )
    Catalog(glue, "games").keep("alpha", PATH, schema("id long"))
    assert columns(glue) == {"id": "bigint"}


def test_a_catalog_that_refuses_stops_nothing_and_is_told_once(glue: Any) -> None:
    told: list[Event] = []
    catalog = Catalog(glue, "nowhere", emit=told.append)
    for _ in range(3):
        catalog.keep("alpha", PATH, schema("id long"))
    assert [type(event) for event in told] == [CatalogNotUpdated]
