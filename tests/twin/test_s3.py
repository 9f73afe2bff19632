"""The twin's buckets: one winner of a conditional put, and notifications as S3 writes them."""

from __future__ import annotations

import json
import threading
from concurrent.futures import ThreadPoolExecutor
from types import SimpleNamespace
from typing import Any
from uuid import uuid4

from botocore.exceptions import ClientError

from forebay.landed_file import LandedFile
from forebay.notification.reading import read_message
from forebay_local.twin import s3 as mended
from forebay_local.twin.twin import Twin

OF_NOTHING = "d41d8cd98f00b204e9800998ecf8427e"


def records(twin: Twin) -> list[dict[str, Any]]:
    return [record for body in bodies(twin) for record in body["Records"]]


def bodies(twin: Twin) -> list[dict[str, Any]]:
    """What the queue holds; an announcement is there when the put has been answered."""
    sqs = twin.client("sqs")
    found = []
    while got := sqs.receive_message(QueueUrl=twin.queue_url, MaxNumberOfMessages=10, WaitTimeSeconds=0).get(
        "Messages", []
    ):
        for message in got:
            found.append(json.loads(message["Body"]))
            sqs.delete_message(QueueUrl=twin.queue_url, ReceiptHandle=message["ReceiptHandle"])
    return found


def test_of_writers_that_all_want_to_be_first_one_is(twin: Twin) -> None:
    s3 = twin.client("s3")

    def put(key: str, condition: dict[str, str]) -> str:
        try:
            s3.put_object(Bucket=twin.lake_bucket, Key=key, Body=b"mine", **condition)
        except ClientError as refusal:
            return str(refusal.response["Error"]["Code"])
        return "won"

    with ThreadPoolExecutor(8) as pool:
        for round_ in range(15):
            got = list(pool.map(put, [f"log/{round_}"] * 8, [{"IfNoneMatch": "*"}] * 8))
            assert sorted(got) == ["PreconditionFailed"] * 7 + ["won"]
    assert put("log/0", {"IfMatch": '"0123"'}) == "PreconditionFailed"
    assert put("log/0", {"IfMatch": s3.head_object(Bucket=twin.lake_bucket, Key="log/0")["ETag"]}) == "won"


def test_with_a_key_an_etag_says_nothing_of_the_content(twin: Twin) -> None:
    s3, bucket = twin.client("s3"), f"with-a-key-{uuid4().hex[:8]}"
    s3.create_bucket(Bucket=bucket, CreateBucketConfiguration={"LocationConstraint": twin.region})
    s3.put_bucket_versioning(Bucket=bucket, VersioningConfiguration={"Status": "Enabled"})

    def put(key: str, body: bytes) -> LandedFile:
        got = s3.put_object(Bucket=bucket, Key=key, Body=body)
        return LandedFile(bucket, key, len(body), got["ETag"].strip('"'), got["VersionId"])

    plain = [put("plain", b"same"), put("plain", b"same"), put("plain", b"else")]
    assert plain[0].etag == plain[1].etag
    rule = {"ApplyServerSideEncryptionByDefault": {"SSEAlgorithm": "aws:kms"}}
    s3.put_bucket_encryption(Bucket=bucket, ServerSideEncryptionConfiguration={"Rules": [rule]})
    first, again, other = put("a", b"same"), put("a", b"same"), put("a", b"else")
    assert len({first.etag, again.etag, other.etag}) == 3


def test_a_write_holds_off_the_others_from_its_check_to_its_end() -> None:
    writing = threading.Semaphore(1)
    alone: list[bool] = []

    @mended.one_at_a_time
    def write() -> None:
        alone.append(writing.acquire(blocking=False))
        threading.Event().wait(0.01)
        writing.release()

    writers = [threading.Thread(target=write) for _ in range(6)]
    for writer in writers:
        writer.start()
    for writer in writers:
        writer.join()
    assert alone == [True] * 6


def test_a_put_is_announced_as_s3_does(twin: Twin) -> None:
    key = "in/pixelfarm/büro 1+2/x=1.json"
    put = twin.client("s3").put_object(Bucket=twin.landing_bucket, Key=key, Body=b"12345")
    (record,) = records(twin)
    assert record["eventName"] == "ObjectCreated:Put"
    assert record["s3"]["bucket"]["name"] == twin.landing_bucket
    about = record["s3"]["object"]
    assert about.pop("sequencer")
    key = "in/pixelfarm/b%C3%BCro+1%2B2/x%3D1.json"
    assert about == {"key": key, "size": 5, "eTag": put["ETag"].strip('"'), "versionId": put["VersionId"]}
    assert {"eventTime", "userIdentity", "requestParameters", "responseElements"} <= record.keys()


def test_sequencers_are_in_the_order_of_the_writes(twin: Twin) -> None:
    s3 = twin.client("s3")
    for number in range(12):
        s3.put_object(Bucket=twin.landing_bucket, Key="in/again.json", Body=str(number).encode())
    announced = [record["s3"]["object"] for record in records(twin)]
    written = sorted(announced, key=lambda about: about["sequencer"])
    assert len({len(about["sequencer"]) for about in announced}) == 1
    assert len({about["sequencer"] for about in announced}) == 12
    newest = s3.head_object(Bucket=twin.landing_bucket, Key="in/again.json")["ETag"].strip('"')
    assert written[-1]["eTag"] == newest


def test_a_multipart_upload_is_announced_once_as_such(twin: Twin) -> None:
    s3, where = twin.client("s3"), {"Bucket": twin.landing_bucket, "Key": "in/big.json"}
    upload = s3.create_multipart_upload(**where)["UploadId"]
    parts = [
        {"PartNumber": number, "ETag": s3.upload_part(**where, UploadId=upload, PartNumber=number, Body=body)["ETag"]}
        for number, body in ((1, b"x" * (5 << 20)), (2, b"y"))
    ]
    done = s3.complete_multipart_upload(**where, UploadId=upload, MultipartUpload={"Parts": parts})
    (record,) = records(twin)
    assert record["eventName"] == "ObjectCreated:CompleteMultipartUpload"
    assert record["s3"]["object"]["size"] == (5 << 20) + 1
    assert record["s3"]["object"]["eTag"] == done["ETag"].strip('"')


def test_a_copy_is_announced_as_a_copy(twin: Twin) -> None:
    s3 = twin.client("s3")
    s3.put_object(Bucket=twin.landing_bucket, Key="elsewhere/a.json", Body=b"{}")
    source = {"Bucket": twin.landing_bucket, "Key": "elsewhere/a.json"}
    s3.copy_object(Bucket=twin.landing_bucket, Key="in/copy.json", CopySource=source)
    assert [record["eventName"] for record in records(twin)] == ["ObjectCreated:Copy"]


def test_in_a_versioned_bucket_each_put_has_its_version(twin: Twin) -> None:
    s3 = twin.client("s3")
    puts = [s3.put_object(Bucket=twin.landing_bucket, Key="in/a.json", Body=b"same")["VersionId"] for _ in range(2)]
    announced = [record["s3"]["object"]["versionId"] for record in records(twin)]
    assert len(set(puts)) == 2
    assert sorted(announced) == sorted(puts)


def test_when_the_notification_is_set_again_a_test_event_comes(twin: Twin) -> None:
    s3 = twin.client("s3")
    there = s3.get_bucket_notification_configuration(Bucket=twin.landing_bucket)["TopicConfigurations"]
    s3.put_bucket_notification_configuration(
        Bucket=twin.landing_bucket, NotificationConfiguration={"TopicConfigurations": there}
    )
    assert [body["Event"] for body in bodies(twin)] == ["s3:TestEvent"]


def test_an_announcement_leaves_when_the_write_has_ended_and_shows_what_was_written() -> None:
    happened: list[str] = []

    class Announced:
        id = arn = "topic"

        def matches(self, event: str, key: str) -> bool:
            happened.append(f"{event} of {key} announced")
            return False

    class Configuration:
        cloud_function = queue = ()
        topic = (Announced(),)
        event_bridge = None

    bucket = SimpleNamespace(notification_configuration=Configuration())
    key = SimpleNamespace(name="in/a.json")

    @mended.one_at_a_time
    def write() -> None:
        mended.send_event("123456789012", "Put", bucket, key)
        key.name = "disposed of"
        happened.append("written")

    write()
    assert happened == ["written", "Put of in/a.json announced"]


def test_deletions_are_announced_as_s3_does(twin: Twin) -> None:
    s3, sqs, name = twin.client("s3"), twin.client("sqs"), f"deletes-{uuid4().hex[:8]}"
    queue = sqs.create_queue(QueueName=name)["QueueUrl"]
    arn = sqs.get_queue_attributes(QueueUrl=queue, AttributeNames=["QueueArn"])["Attributes"]["QueueArn"]
    wanted = {"QueueConfigurations": [{"QueueArn": arn, "Events": ["s3:ObjectRemoved:*"]}]}

    def heard() -> list[tuple[str, str | None]]:
        got = sqs.receive_message(QueueUrl=queue, MaxNumberOfMessages=10, WaitTimeSeconds=0).get("Messages", [])
        for one in got:
            sqs.delete_message(QueueUrl=queue, ReceiptHandle=one["ReceiptHandle"])
        said = [record for one in got for record in json.loads(one["Body"]).get("Records", ())]
        for one in said:
            marker = {"eTag": OF_NOTHING} if one["eventName"].endswith("MarkerCreated") else {}
            about = {name: said for name, said in one["s3"]["object"].items() if name in ("size", "eTag")}
            assert about == marker, "a deletion has no size, and only a delete marker an etag"
        return [(one["eventName"], one["s3"]["object"].get("versionId")) for one in said]

    for versioned in (False, True):
        bucket = f"{name}-{versioned}".lower()
        s3.create_bucket(Bucket=bucket, CreateBucketConfiguration={"LocationConstraint": twin.region})
        if versioned:
            s3.put_bucket_versioning(Bucket=bucket, VersioningConfiguration={"Status": "Enabled"})
        s3.put_bucket_notification_configuration(Bucket=bucket, NotificationConfiguration=wanted)
        heard()
        versions = [s3.put_object(Bucket=bucket, Key="in/a", Body=body).get("VersionId") for body in (b"1", b"2")]
        marker = s3.delete_object(Bucket=bucket, Key="in/a").get("VersionId")
        created = "ObjectRemoved:DeleteMarkerCreated" if versioned else "ObjectRemoved:Delete"
        assert heard() == [(created, marker)]
    s3.delete_object(Bucket=bucket, Key="in/a", VersionId=versions[0])
    assert heard() == [("ObjectRemoved:Delete", versions[0])]
    s3.put_object(Bucket=bucket, Key="in/b", Body=b"3")
    s3.delete_objects(Bucket=bucket, Delete={"Objects": [{"Key": "in/a", "VersionId": marker}, {"Key": "in/b"}]})
    assert [event for event, _ in heard()] == ["ObjectRemoved:Delete", "ObjectRemoved:DeleteMarkerCreated"]
    s3.delete_object(Bucket=bucket, Key="in/a", VersionId=versions[1])
    assert [event for event, _ in heard()] == ["ObjectRemoved:Delete"]


def test_deletions_are_told_to_eventbridge_as_s3_does(twin: Twin) -> None:
    """A delete marker and the deletion of one version mean different things, and only `deletion-type` says which it is."""
    s3, sqs, events = twin.client("s3"), twin.client("sqs"), twin.client("events")
    name = f"deletes-{uuid4().hex[:8]}"
    queue = sqs.create_queue(QueueName=name)["QueueUrl"]
    arn = sqs.get_queue_attributes(QueueUrl=queue, AttributeNames=["QueueArn"])["Attributes"]["QueueArn"]
    events.put_rule(Name=name, EventPattern=json.dumps({"source": ["aws.s3"], "detail-type": ["Object Deleted"]}))
    events.put_targets(Rule=name, Targets=[{"Id": "queue", "Arn": arn}])
    s3.create_bucket(Bucket=name, CreateBucketConfiguration={"LocationConstraint": twin.region})
    s3.put_bucket_notification_configuration(Bucket=name, NotificationConfiguration={"EventBridgeConfiguration": {}})
    s3.put_object(Bucket=name, Key="in/a", Body=b"1")
    s3.delete_object(Bucket=name, Key="in/a")
    s3.put_bucket_versioning(Bucket=name, VersioningConfiguration={"Status": "Enabled"})
    version = s3.put_object(Bucket=name, Key="in/a", Body=b"2")["VersionId"]
    marker = s3.delete_object(Bucket=name, Key="in/a")["VersionId"]
    s3.delete_object(Bucket=name, Key="in/a", VersionId=version)
    events.remove_targets(Rule=name, Ids=["queue"])
    events.delete_rule(Name=name)

    got = sqs.receive_message(QueueUrl=queue, MaxNumberOfMessages=10, WaitTimeSeconds=0)["Messages"]
    details = sorted((json.loads(one["Body"])["detail"] for one in got), key=lambda one: one["object"]["sequencer"])
    assert [one["deletion-type"] for one in details] == [
        "Permanently Deleted",
        "Delete Marker Created",
        "Permanently Deleted",
    ]
    assert [{k: v for k, v in one["object"].items() if k != "sequencer"} for one in details] == [
        {"key": "in/a"},
        {"key": "in/a", "etag": OF_NOTHING, "version-id": marker},
        {"key": "in/a", "version-id": version},
    ]
    assert {one["reason"] for one in details} == {"DeleteObject"}
    read = [one.deleted for body in got for one in read_message(body["Body"]).ignored]
    assert sorted(file.version_id or "" for file in read if isinstance(file, LandedFile)) == ["", "", version]
