"""Doctor names the tables whose name in the Glue database is another's."""

from __future__ import annotations

from typing import Any

import boto3
import pytest
from moto import mock_aws

from forebay.operate.doctor.lake import catalog
from forebay.operate.stack.deployment import Deployment

REGION = "eu-west-1"


def entry(name: str, place: str) -> dict[str, Any]:
    return {"Name": name, "StorageDescriptor": {"Location": place, "Columns": []}}


def test_a_table_of_the_lake_whose_entry_is_of_another_place_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("AWS_ENDPOINT_URL", "AWS_ENDPOINT_URL_S3"):
        monkeypatch.delenv(name, raising=False)
    with mock_aws():
        s3, glue = (boto3.client(name, region_name=REGION) for name in ("s3", "glue"))
        s3.create_bucket(Bucket="lake", CreateBucketConfiguration={"LocationConstraint": REGION})
        for table in ("alpha", "beta"):
            s3.put_object(Bucket="lake", Key=f"games/{table}/_delta_log/{0:020}.json", Body=b"{}")
        glue.create_job(
            Name="games-ingest",
            Role="ingest",
            Command={"Name": "gluestreaming"},
            DefaultArguments={"--catalog": "studio"},
        )
        glue.create_database(DatabaseInput={"Name": "studio"})
        places = {"alpha": "s3a://lake/games/alpha/", "beta": "s3://other/beta", "theirs": "s3://other/theirs"}
        for table, place in places.items():
            glue.create_table(DatabaseName="studio", TableInput=entry(table, place))
        outputs = {"LakeUri": "s3://lake/games", "IngestJob": "games-ingest"}
        clients = {"s3": s3, "glue": glue}
        on = Deployment(
            client=clients.__getitem__, stack="games", account="123456789012", region=REGION, outputs=outputs
        )
        (found,) = catalog(on)
    assert found.what == "the entry beta of the Glue database studio points to s3://other/beta"
