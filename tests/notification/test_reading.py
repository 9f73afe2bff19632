"""What each kind of message says: the recorded ones, and what is wrong with the wrong ones."""

from __future__ import annotations

import copy
import json
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from forebay.landed_file import DELETED, LandedFile
from forebay.notification import REASONS, Filter, Ignored, Reading, read_message
from forebay_local.fabricate import Wrapping, body, file_named, versions
from tests.fabricated import full_bodies

EVENTS = Path(__file__).parents[1] / "events"
KEY = "in/game=chess/day 1/part-0001.json"
URI = f"s3://studio-landing/{KEY}"


def recorded(name: str) -> str:
    return (EVENTS / f"{name}.json").read_text()


def changed(path: str, value: Any, name: str = "s3_put") -> str:
    """A recorded body with one value replaced; `...` removes it."""
    document = json.loads(recorded(name))
    *parents, last = [int(part) if part.isdigit() else part for part in path.split(".")]
    place = document
    for part in parents:
        place = place[part]
    if value is ...:
        del place[last]
    else:
        place[last] = value
    return json.dumps(document)


def in_object(field: str, value: Any) -> str:
    return changed(f"Records.0.s3.object.{field}", value)


# name of the recorded body: keys of its files, reasons of what it ignores, number of refusals
RECORDED: dict[str, tuple[list[str], list[str], int]] = {
    "s3_put": ([KEY], [], 0),
    "s3_put_version_2_6": ([KEY], [], 0),
    "s3_put_unversioned": ([KEY], [], 0),
    "s3_post": ([KEY], [], 0),
    "s3_copy": ([KEY], [], 0),
    "s3_complete_multipart_upload": ([KEY], [], 0),
    "s3_two_records": (["in/a.json", "in/b.json"], [], 0),
    "s3_delete": ([], ["delete"], 0),
    "s3_delete_marker_created": ([], ["delete"], 0),
    "s3_lifecycle_expiration": ([], ["lifecycle"], 0),
    "s3_lifecycle_transition": ([], ["lifecycle"], 0),
    "s3_intelligent_tiering": ([], ["tiering"], 0),
    "s3_restore_completed": ([], ["restore"], 0),
    "s3_tagging_put": ([], ["tagging"], 0),
    "s3_acl_put": ([], ["acl"], 0),
    "s3_annotation_put": ([], ["annotation"], 0),
    "s3_replication_missed_threshold": ([], ["replication"], 0),
    "s3_reduced_redundancy_lost_object": ([], ["lost-object"], 0),
    "s3_folder_marker": ([], ["folder-marker"], 0),
    "s3_test_event": ([], ["test-event"], 0),
    "sns_s3_put": ([KEY], [], 0),
    "sns_s3_two_records": (["in/a.json", "in/b.json"], [], 0),
    "sns_s3_test_event": ([], ["test-event"], 0),
    "sns_subscription_confirmation": ([], [], 1),
    "sns_cloudwatch_alarm": ([], [], 1),
    "eventbridge_object_created": ([KEY], [], 0),
    "eventbridge_object_created_by_multipart": ([KEY], [], 0),
    "eventbridge_object_deleted": ([], ["delete"], 0),
    "eventbridge_object_expired": ([], ["lifecycle"], 0),
    "eventbridge_object_restore_completed": ([], ["restore"], 0),
    "eventbridge_object_storage_class_changed": ([], ["lifecycle"], 0),
    "eventbridge_object_access_tier_changed": ([], ["tiering"], 0),
    "eventbridge_object_tags_added": ([], ["tagging"], 0),
    "eventbridge_object_acl_updated": ([], ["acl"], 0),
    "eventbridge_cloudtrail_api_call": ([], [], 1),
    "eventbridge_in_sns": ([KEY], [], 0),
    "lambda_sns": ([KEY], [], 0),
    "lambda_sqs": ([KEY, KEY], [], 0),
    "pipes_sqs": ([KEY], [], 0),
    "minio_put": ([KEY], [], 0),
    "ceph_put": ([KEY], [], 0),
    "moto_put": ([KEY], [], 0),
    "mixed_sources": ([KEY], ["delete"], 1),
    "s3_major_version_3": ([], [], 1),
}


@pytest.mark.parametrize("name", RECORDED)
def test_a_recorded_message_says_what_aws_meant_by_it(name: str) -> None:
    reading = read_message(recorded(name))
    keys, reasons, refusals = RECORDED[name]
    assert [file.key for file in reading.files] == keys
    assert [thing.reason for thing in reading.ignored] == reasons
    assert len(reading.refused) == refusals, reading.refused


def test_every_recorded_message_is_in_the_table() -> None:
    assert {path.stem for path in EVENTS.glob("*.json")} == set(RECORDED)


def test_every_field_of_s3s_own_form_arrives() -> None:
    assert read_message(recorded("s3_put")) == Reading(
        files=(
            LandedFile(
                bucket="studio-landing",
                key=KEY,
                size=70123,
                etag="d41d8cd98f00b204e9800998ecf8427e",
                version_id="L4kqtJlcpXroDTDmpUMLUo",
                sequencer="0C0F6F405D6ED209E1",
                event_time=datetime(2024, 5, 1, 12, 0, 0, 123_000, tzinfo=UTC),
            ),
        )
    )


def test_every_field_of_eventbridges_form_arrives() -> None:
    assert read_message(recorded("eventbridge_object_created")).files == (
        LandedFile(
            bucket="studio-landing",
            key=KEY,
            size=70123,
            etag="d41d8cd98f00b204e9800998ecf8427e",
            version_id="L4kqtJlcpXroDTDmpUMLUo",
            sequencer="617f08299329d189",
            event_time=datetime(2024, 5, 1, 12, tzinfo=UTC),
        ),
    )


@pytest.mark.parametrize(
    "name", ["s3_put", "sns_s3_put", "eventbridge_object_created", "eventbridge_in_sns", "lambda_sns"]
)
def test_the_wrapping_does_not_change_the_identity(name: str) -> None:
    (file,) = read_message(recorded(name)).files
    assert file.identity == ("studio-landing", KEY, "v:L4kqtJlcpXroDTDmpUMLUo")


def test_bytes_and_text_say_the_same_with_a_byte_order_mark_or_without() -> None:
    text = recorded("s3_put")
    assert read_message(text.encode()) == read_message(text.encode("utf-8-sig")) == read_message(text)


def test_what_is_ignored_names_the_object_or_else_the_event() -> None:
    assert read_message(recorded("s3_delete")).ignored == (Ignored("delete", URI),)
    assert read_message(recorded("eventbridge_object_deleted")).ignored == (Ignored("delete", URI),)
    assert read_message(changed("Records.0.s3", ..., "s3_delete")).ignored == (Ignored("delete", "ObjectRemoved"),)
    assert read_message(recorded("s3_test_event")).ignored == (Ignored("test-event", "s3:TestEvent"),)


def test_no_event_at_all_is_counted_too() -> None:
    assert read_message('{"Records": []}').ignored == (Ignored("empty-records", "Records"),)
    assert read_message("[]").ignored == (Ignored("empty-records", "[]"),)


@pytest.mark.parametrize(
    ("encoded", "key"),
    [
        ("a+b", "a b"),
        ("a%2Bb", "a+b"),
        ("a%20b", "a b"),
        ("100%25", "100%"),
        ("a%2520b", "a%20b"),  # once, not twice
        ("gr%C3%B6%C3%9Fe%2F%F0%9F%8E%B2", "größe/🎲"),
        ("größe+1", "größe 1"),
        ("%00", "\0"),
        ("game%3Dchess/x", "game=chess/x"),
    ],
)
def test_a_key_of_s3s_own_form_is_decoded_once(encoded: str, key: str) -> None:
    assert [file.key for file in read_message(in_object("key", encoded)).files] == [key]


@pytest.mark.parametrize("key", ["a+b", "a%2Bb", "100%", "%FF", "größe 🎲"])
def test_a_key_of_eventbridge_is_never_decoded(key: str) -> None:
    assert [f.key for f in read_message(changed("detail.object.key", key, "eventbridge_object_created")).files] == [key]


@pytest.mark.parametrize(
    ("text", "time"),
    [
        ("2024-05-01T12:00:00.000Z", datetime(2024, 5, 1, 12, tzinfo=UTC)),
        ("2024-05-01T14:00:00+02:00", datetime(2024, 5, 1, 12, tzinfo=UTC)),
        ("2024-05-01T12:00:00", datetime(2024, 5, 1, 12, tzinfo=UTC)),
        ("yesterday", None),
        ("0001-01-01T00:00:00+23:00", None),
        ("0001-01-01T00:00:00Z", None),  # what .NET has for no time
        ("9999-12-31T23:59:59.999Z", None),
        (1714564800.5, None),
        (None, None),
    ],
)
def test_a_time_that_cannot_be_read_costs_nobody_the_file(text: Any, time: datetime | None) -> None:
    reading = read_message(changed("Records.0.eventTime", text))
    assert [file.event_time for file in reading.files] == [time]
    assert reading.refused == ()


@pytest.mark.parametrize(
    ("field", "value", "attribute", "expected"),
    [
        ("size", "12", "size", 12),
        ("size", 0, "size", 0),
        ("size", 2**63 - 1, "size", 2**63 - 1),
        ("size", ..., "size", None),
        ("size", None, "size", None),
        ("eTag", '"abc-2"', "etag", "abc-2"),
        ("eTag", ..., "etag", ""),  # the version id is enough
        ("versionId", None, "version_id", None),
        ("versionId", "", "version_id", None),
        ("versionId", "null", "version_id", "null"),
        ("sequencer", ..., "sequencer", None),
        ("key", "k" * 1024, "key", "k" * 1024),
        ("key", "%C3%B6" * 512, "key", "ö" * 512),
    ],
)
def test_odd_but_honest_values_are_taken(field: str, value: Any, attribute: str, expected: Any) -> None:
    (file,) = read_message(in_object(field, value)).files
    assert getattr(file, attribute) == expected


REFUSED = {
    "a negative size": (in_object("size", -1), "size is -1"),
    "a fraction of a byte": (in_object("size", 1.5), "size is 1.5"),
    "a size that is true": (in_object("size", True), "size is true"),
    "a size that is no number": (in_object("size", float("nan")), "size is NaN"),
    "an endless size": (in_object("size", float("inf")), "size is Infinity"),
    "a size past 64 bits": (in_object("size", 2**63), "size is 9223372036854775808"),
    "a size in Arabic digits": (in_object("size", "١٢"), "size is '\\u0661"),
    "a size in a list": (in_object("size", [1]), "size is an array"),
    "an empty key": (in_object("key", ""), "key is ''"),
    "no key": (in_object("key", ...), "key is null"),
    "a key that is a number": (in_object("key", 7), "key is 7"),
    "a key of half a character": (in_object("key", "a\ud800"), "not Unicode text"),
    "a key of 1,025 bytes": (in_object("key", "k" * 1025), "1025 bytes"),
    "a key of 1,025 bytes in fewer characters": (in_object("key", "%C3%B6" * 512 + "k"), "1025 bytes"),
    "a key whose escapes are no UTF-8": (in_object("key", "in/%FF.json"), "escapes are not UTF-8"),
    "a key with half a character escaped": (in_object("key", "in/%C3.json"), "escapes are not UTF-8"),
    "a key with a bare percent sign": (in_object("key", "100%.json"), "does not begin an escape"),
    "an etag that is a number": (in_object("eTag", 7), "eTag is 7"),
    "an etag with a line break": (in_object("eTag", "a\nb"), "eTag is 'a\\nb'"),
    "a version id that is an object": (in_object("versionId", {}), "versionId is an object"),
    "an endless sequencer": (in_object("sequencer", "0" * 5000), "(5000 characters)"),
    "no bucket": (changed("Records.0.s3.bucket", ...), "bucket is null, not an object"),
    "a bucket without a name": (changed("Records.0.s3.bucket.name", ""), "bucket.name is ''"),
    "a bucket that is a path": (changed("Records.0.s3.bucket.name", "a/b"), "bucket.name is 'a/b'"),
    "no s3": (changed("Records.0.s3", ...), "s3 is null, not an object"),
    "no object": (changed("Records.0.s3.object", []), "object is an array"),
    "no event name": (changed("Records.0.eventName", ...), "eventName is null"),
    "a new event": (changed("Records.0.eventName", "ObjectPondered:Put"), "eventName is 'ObjectPondered:Put'"),
    "another major version": (changed("Records.0.eventVersion", "3.0"), "only 2.x"),
    "a version that is a number": (changed("Records.0.eventVersion", 2.1), "eventVersion is 2.1"),
    "another source": (changed("Records.0.eventSource", "aws:kinesis"), "eventSource is 'aws:kinesis'"),
    "Records that is an object": (changed("Records", {}), "Records: an object"),
    "a record that is null": (changed("Records.0", None), "Records[0]: null"),
    "EventBridge of another service": (
        changed("source", "aws.ec2", "eventbridge_object_created"),
        "source is 'aws.ec2'",
    ),
    "EventBridge of another version": (changed("version", "1", "eventbridge_object_created"), "version is '1'"),
    "a detail of another version": (
        changed("detail.version", "1", "eventbridge_object_created"),
        "detail.version is '1'",
    ),
    "a new detail-type": (changed("detail-type", "Object Seen", "eventbridge_object_created"), "'Object Seen'"),
    "no detail": (changed("detail", ..., "eventbridge_object_created"), "detail is null"),
    "SNS around a text": (changed("Message", "deployed", "sns_s3_put"), "Message: not JSON"),
    "SNS around nothing": (changed("Message", None, "sns_s3_put"), "Message: null is not an event"),
    "a subscription that waits": (recorded("sns_subscription_confirmation"), "a person must handle it"),
    "nothing": ("", "not JSON"),
    "an empty object": ("{}", "not an event of S3"),
    "a number": ("7", "7 is not an event"),
    "deep nesting": ("[" * 100_000, "nested too deeply"),
    "lists within lists": ("[" * 20 + "1" + "]" * 20, "wrapped more than 8 deep"),
    "a number of 5,000 digits": ('{"Records": ' + "1" * 5000 + "}", "thousands of digits"),
    "no UTF-8": (b'{"Records": [\xff]}', "not UTF-8: invalid start byte at byte 13"),
    "UTF-16": ('{"Records": []}'.encode("utf-16"), "not UTF-8"),
}


@pytest.mark.parametrize("name", REFUSED)
def test_what_is_not_understood_is_refused_with_its_reason(name: str) -> None:
    sent, reason = REFUSED[name]
    reading = read_message(sent)
    assert reading.files == reading.ignored == ()
    (refused,) = reading.refused
    assert reason in refused


def test_a_file_whose_contents_could_not_be_told_apart_is_refused() -> None:
    """Without etag and version id, a second content of the key would pass for a repetition of the first."""
    bare = json.loads(in_object("eTag", ...))
    for version_id in ("null", None, ""):
        bare["Records"][0]["s3"]["object"]["versionId"] = version_id
        reading = read_message(json.dumps(bare))
        assert reading.files == ()
        assert "neither eTag nor versionId" in reading.refused[0]


def test_a_reason_says_where_in_the_message_the_fault_is() -> None:
    bad = json.loads(in_object("size", -1))["Records"][0]
    good = json.loads(recorded("s3_put"))["Records"][0]
    assert read_message(json.dumps({"Records": [good, bad]})).refused[0].startswith("Records[1]: size is -1")
    wrapped = {"Records": [{"eventSource": "aws:sqs", "body": json.dumps({"Type": "Notification", "Message": "no"})}]}
    assert read_message(json.dumps(wrapped)).refused[0].startswith("Records[0].body.Message: not JSON")


def test_one_bad_record_does_not_take_its_siblings_along() -> None:
    good = json.loads(recorded("s3_two_records"))["Records"]
    bad = copy.deepcopy(good[0])
    bad["s3"]["object"]["size"] = "many"
    reading = read_message(json.dumps({"Records": [good[0], bad, None, good[1]]}))
    assert [file.key for file in reading.files] == ["in/a.json", "in/b.json"]
    assert len(reading.refused) == 2


def test_one_bad_wrapping_does_not_take_its_siblings_along() -> None:
    document = json.loads(recorded("lambda_sqs"))
    document["Records"][0]["body"] = "{"
    reading = read_message(json.dumps(document))
    assert len(reading.files) == len(reading.refused) == 1


def test_honest_wrappings_stay_well_within_the_bound() -> None:
    text = body([file_named("a.json"), file_named("b.json")], Wrapping.EVENTBRIDGE_IN_SNS)
    sqs_in_lambda = json.dumps({"Records": [{"eventSource": "aws:sqs", "body": text}]})
    sns_in_lambda = json.dumps(
        {"Records": [{"EventSource": "aws:sns", "Sns": {"Type": "Notification", "Message": sqs_in_lambda}}]}
    )
    assert len(read_message(sns_in_lambda).files) == 2


def test_a_message_of_the_largest_size_is_read_whole() -> None:
    files = [file_named(f"in/{n}.json") for n in range(1000)]
    (sent,) = full_bodies(files, limit_bytes=1024 * 1024)
    assert len(sent) > 512 * 1024
    assert read_message(sent).files == tuple(files)


def test_two_versions_of_a_key_in_one_message_are_two_files() -> None:
    files = versions("in/a.json", 2)
    assert len({file.identity for file in read_message(body(files)).files}) == 2


def test_a_filter_counts_what_it_keeps_out() -> None:
    sent = body([file_named("in/a.json"), file_named("in/b.csv"), file_named("in/a.json", "elsewhere")])
    reading = read_message(sent, Filter(buckets=frozenset({"landing"}), suffix=".json"))
    assert [file.key for file in reading.files] == ["in/a.json"]
    assert reading.ignored == (
        Ignored("filtered", "s3://landing/in/b.csv"),
        Ignored("bucket-not-allowed", "s3://elsewhere/in/a.json"),
    )


def test_every_reason_of_the_recorded_messages_is_in_the_vocabulary() -> None:
    assert {reason for _, reasons, _ in RECORDED.values() for reason in reasons} <= set(REASONS)


WITH_DELETES = Filter(with_deletes=True)


@pytest.mark.parametrize(
    ("name", "version_id"),
    [
        ("s3_delete", None),
        ("s3_delete_marker_created", None),
        ("eventbridge_object_deleted", None),
    ],
)
def test_a_deletion_is_a_version_of_its_key_for_readers_that_want_deletions(name: str, version_id: str | None) -> None:
    (file,) = read_message(recorded(name), WITH_DELETES).files
    assert (file.is_deletion, file.uri, file.version_id) == (True, URI, version_id)
    assert file.etag == f"{DELETED}{file.sequencer}"
    assert read_message(recorded(name), Filter(with_deletes=True, prefix="other/")).ignored[0].reason == "filtered"


def test_the_permanent_deletion_of_a_version_names_that_version() -> None:
    (file,) = read_message(changed("Records.0.s3.object.versionId", "v1", "s3_delete"), WITH_DELETES).files
    assert file.version_id == "v1"
    body = changed("detail.deletion-type", "Permanently Deleted", "eventbridge_object_deleted")
    (file,) = read_message(body, WITH_DELETES).files
    assert file.version_id == "1QW9g1Z99LUNbvaaYVpW9xDlOLU.qxgF"


@pytest.mark.parametrize("kind", ["Delete", "DeleteMarkerCreated"])
def test_the_expiration_of_an_object_is_never_a_deletion(kind: str) -> None:
    by_s3 = changed("Records.0.eventName", f"LifecycleExpiration:{kind}", "s3_delete")
    for text in (by_s3, recorded("eventbridge_object_expired")):
        reading = read_message(text, WITH_DELETES)
        assert (reading.files, [one.reason for one in reading.ignored]) == ((), ["lifecycle"])


def test_a_deletion_whose_object_or_time_is_unknown_is_kept_by_readers_that_want_deletions() -> None:
    assert read_message(changed("Records.0.s3", ..., "s3_delete"), WITH_DELETES).refused
    body = json.loads(recorded("s3_delete"))
    del body["Records"][0]["s3"]["object"]["sequencer"]
    (file,) = read_message(json.dumps(body), WITH_DELETES).files
    assert file.etag == f"{DELETED}20240501T120000.123000"
    del body["Records"][0]["eventTime"]
    assert "unknown time" in read_message(json.dumps(body), WITH_DELETES).refused[0]
    assert read_message(json.dumps(body)).ignored == (Ignored("delete", URI),)
