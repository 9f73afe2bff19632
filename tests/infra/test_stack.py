"""What the template promises, by its properties."""

from __future__ import annotations

import dataclasses
import importlib
import itertools
import json
import re
import zipfile
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from forebay.settings import CompactSettings, IngestSettings, MaintainSettings, ReconcileSettings
from forebay.spark import runtime
from forebay.spark.session import job_settings
from infra.clocked import OF_FUNCTIONS
from infra.metrics import published
from infra.principals import TABLE, markdown
from infra.runbook import place_in_runbook, runbook_text
from infra.settings import Settings
from lambdas import environment
from tests.infra.conftest import BOUNDARY, KEY, REPLICA_KEY, SHAPES, THAT_FORGETS, TOPIC
from tests.infra.synthesized import Synthesized, listed, synthesized, text

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture(params=["made", "adopted"])
def service(request: pytest.FixtureRequest) -> Synthesized:
    found = request.getfixturevalue(request.param)
    assert isinstance(found, Synthesized)
    return found


# --- of every service ------------------------------------------------------------------------------------------------


def test_nothing_is_a_custom_resource(service: Synthesized) -> None:
    kinds = {r["Type"] for r in service.template["Resources"].values()}
    assert not {kind for kind in kinds if kind.startswith("Custom::") or "CustomResource" in kind}


@pytest.mark.parametrize("rules", ["AwsSolutions", "NIST.800.53.R5"])
@pytest.mark.parametrize("shape", SHAPES)
def test_awss_rules_find_nothing_and_each_exception_has_its_reason(
    request: pytest.FixtureRequest, shape: str, rules: str
) -> None:
    service = request.getfixturevalue(shape)
    (report,) = [r for r in service.report["pluginReports"] if r["pluginName"] == rules]
    assert report["violations"] == []
    assert report["suppressedViolations"], "the rules were not asked"
    assert not [v for v in report["suppressedViolations"] if len(v["reason"]) < 10]


@pytest.mark.parametrize(
    ("kind", "policy", "field"),
    [("S3::Bucket", "S3::BucketPolicy", "Bucket"), ("SQS::Queue", "SQS::QueuePolicy", "Queues")],
)
def test_every_bucket_and_queue_refuses_plain_http(service: Synthesized, kind: str, policy: str, field: str) -> None:
    refusing = set()
    for found in service.of(policy).values():
        for statement in found["Properties"]["PolicyDocument"]["Statement"]:
            if (
                statement["Effect"] == "Deny"
                and statement.get("Condition") == {"Bool": {"aws:SecureTransport": "false"}}
                and statement["Action"] in ("s3:*", "sqs:*")
            ):
                refusing |= {text(of).strip("<>")[:-8] for of in listed(found["Properties"][field])}
    assert refusing == set(service.of(kind))


def test_every_topic_refuses_plain_http(service: Synthesized) -> None:
    refusing = {
        text(topic).strip("<>")[:-8]
        for policy in service.of("SNS::TopicPolicy").values()
        for topic in policy["Properties"]["Topics"]
        if any(
            s["Effect"] == "Deny" and s["Condition"] == {"Bool": {"aws:SecureTransport": "false"}}
            for s in policy["Properties"]["PolicyDocument"]["Statement"]
        )
    }
    assert refusing == set(service.of("SNS::Topic"))


def test_no_bucket_is_public_and_all_but_the_access_logs_have_our_key(service: Synthesized) -> None:
    for name, bucket in service.of("S3::Bucket").items():
        properties = bucket["Properties"]
        assert set(properties["PublicAccessBlockConfiguration"].values()) == {True}, name
        (rule,) = properties["BucketEncryption"]["ServerSideEncryptionConfiguration"]
        key = rule["ServerSideEncryptionByDefault"].get("KMSMasterKeyID")
        wanted = None if name == "AccessLogs" else "KeysData"
        assert (text(key).strip("<>").split(".")[0][:-8] if key else None) == wanted, name


def test_queues_topics_and_logs_are_encrypted_with_our_key(service: Synthesized) -> None:
    for kind, field in (
        ("SQS::Queue", "KmsMasterKeyId"),
        ("SNS::Topic", "KmsMasterKeyId"),
        ("Logs::LogGroup", "KmsKeyId"),
    ):
        for name, resource in service.of(kind).items():
            if name.startswith("Untold"):  # what is told when our key is disabled
                assert resource["Properties"]["SqsManagedSseEnabled"] is True
                continue
            assert text(resource["Properties"][field]).startswith("<KeysData"), name


def test_every_log_is_kept_for_a_while_only_and_the_key_knows_its_name(service: Synthesized) -> None:
    groups = service.of("Logs::LogGroup")
    assert {g["Properties"]["RetentionInDays"] for g in groups.values()} == {30}
    (allowed,) = [s for s in key_statements(service) if s["Sid"] == "LogGroupsOfThisService"]
    pattern = text(listed(allowed["Condition"]["ArnLike"]["kms:EncryptionContext:aws:logs:arn"])[0])
    prefix = pattern.partition(":log-group:")[2].removesuffix("*")
    assert all(g["Properties"]["LogGroupName"].startswith(prefix) for g in groups.values())


def test_no_lifecycle_rule_can_touch_a_delta_log_or_live_data(service: Synthesized) -> None:
    rules = service.one("S3::Bucket", "Lake")["LifecycleConfiguration"]["Rules"]
    allowed = ({"AbortIncompleteMultipartUpload"}, {"NoncurrentVersionExpiration", "ExpiredObjectDeleteMarker"})
    assert [r for r in rules if set(r) - {"Id", "Status"} not in allowed] == []
    for rule in service.one("S3::Bucket", "LakeArtefacts")["LifecycleConfiguration"]["Rules"]:
        if "ExpirationInDays" in rule:
            assert rule["Prefix"] in ("scratch/", "spark-events/")


def test_the_lake_is_copied_where_a_setting_says_so_with_marks_of_deletion(made: Synthesized) -> None:
    bucket = made.one("S3::Bucket", "Lake")
    assert bucket["VersioningConfiguration"] == {"Status": "Enabled"}
    (rule,) = bucket["ReplicationConfiguration"]["Rules"]
    assert rule["Filter"] == {"Prefix": ""}
    assert rule["DeleteMarkerReplication"] == {"Status": "Enabled"}
    assert rule["SourceSelectionCriteria"] == {"SseKmsEncryptedObjects": {"Status": "Enabled"}}
    assert rule["Destination"]["EncryptionConfiguration"] == {"ReplicaKmsKeyID": REPLICA_KEY}
    assert text(rule["Destination"]["Bucket"]).endswith(":::studio-copies")
    rights = {action: names(on) for action, on in made.policies()["LakeReplication"].items()}
    assert rights == {
        **{key: {"Lake"} for key in ("s3:GetReplicationConfiguration", "s3:ListBucket")},
        **{f"s3:GetObjectVersion{what}": {"Lake/*"} for what in ("Acl", "ForReplication", "Tagging")},
        **{f"s3:Replicate{what}": {"s3:studio-copies/*"} for what in ("Delete", "Object", "Tags")},
        "kms:Decrypt": {"KeysData"},
        "kms:Encrypt": {REPLICA_KEY},
    }


def test_a_commit_of_a_writer_that_would_overwrite_is_refused_and_nothing_else(service: Synthesized) -> None:
    statements = service.one("S3::BucketPolicy", "LakePolicy")["PolicyDocument"]["Statement"]
    (refusal,) = [s for s in statements if s.get("Sid") == "CommitsAreConditional"]
    assert (refusal["Effect"], refusal["Action"], refusal["Principal"]) == ("Deny", "s3:PutObject", {"AWS": "*"})
    assert refusal["Condition"] == {
        "Null": {"s3:if-none-match": "true"},
        "Bool": {"s3:ObjectCreationOperation": "true"},
    }
    glob = text(refusal["Resource"]).partition(">/")[2]
    pattern = re.escape(glob).replace(r"\*", ".*").replace(r"\?", ".")
    commit = f"{7:020}"
    refused = [f"orders/_delta_log/{commit}.json", f"_forebay/ledger/_delta_log/{commit}.json"]
    free = [
        "orders/_delta_log/_last_checkpoint",
        f"orders/_delta_log/{commit}.checkpoint.parquet",
        f"orders/_delta_log/{commit}.checkpoint.0b5c.json",
        f"orders/_delta_log/{commit}.crc",
        "orders/day=2026-05-01/part-0.parquet",
        "_forebay/checkpoints/ingest/lease.json",
    ]
    assert [key for key in [*refused, *free] if re.fullmatch(pattern, key)] == refused


def key_statements(service: Synthesized) -> list[dict[str, Any]]:
    statements = service.one("KMS::Key", "KeysData")["KeyPolicy"]["Statement"]
    return [s for s in statements if "Sid" in s]


def test_a_service_uses_the_key_for_our_things_alone(made: Synthesized) -> None:
    found = {
        text(s["Principal"]["Service"]): text(
            s["Condition"].get("ArnLikeIfExists", s["Condition"].get("ArnLike", {})).get("aws:SourceArn", "")
        )
        for s in key_statements(made)
        if "Service" in s["Principal"]
    }
    mine = "<AWS::Region>:<AWS::AccountId>"
    assert found == {
        "s3.amazonaws.com": "arn:<AWS::Partition>:s3:::forebay-dev-landing-ACCOUNT",
        "sns.amazonaws.com": f"arn:<AWS::Partition>:sns:{mine}:forebay-dev-arrivals",
        "cloudwatch.amazonaws.com": f"arn:<AWS::Partition>:cloudwatch:{mine}:alarm:forebay-dev-*",
        "logs.<AWS::Region>.<AWS::URLSuffix>": "",  # in China KMS refuses a key whose policy has it without .cn
    }


@pytest.mark.parametrize("shape", SHAPES)
def test_no_service_is_asked_for_what_aws_does_not_document_that_it_sends(
    request: pytest.FixtureRequest, shape: str
) -> None:
    """Of every trust and policy: a fact of the source is asked plainly only where the table says so."""
    asked = list(asked_of_services(request.getfixturevalue(shape)))
    wrong = [one for one in asked if one.fact and one.is_plain != TABLE[one.service, one.use].is_conditional]
    assert wrong == []
    assert asked, "the alarm topic asks CloudWatch in every shape"


def test_a_job_starts_and_an_event_is_kept_where_the_service_names_no_source(in_vpc: Synthesized) -> None:
    """AWS's pages show Glue's trust and EventBridge's use of a key without a condition: a plain one would refuse them."""
    (trust,) = in_vpc.one("IAM::Role", "IngestRole")["AssumeRolePolicyDocument"]["Statement"]
    (fills,) = [one for one in key_statements(in_vpc) if one["Sid"] == "RuleFillsQueues"]
    assert (set(trust["Condition"]), set(fills["Condition"])) == ({"StringEqualsIfExists"}, {"ArnLikeIfExists"})


def test_the_table_has_each_service_that_some_shape_lets_in_and_no_other(request: pytest.FixtureRequest) -> None:
    asked = list(itertools.chain(*(asked_of_services(request.getfixturevalue(shape)) for shape in SHAPES)))
    assert {(one.service, one.use) for one in asked} == set(TABLE)
    without = {(one.service, one.use) for one in asked if not one.fact}
    assert without == {place for place, one in TABLE.items() if one.why}, "whom nothing is asked, and why not"


@dataclasses.dataclass(frozen=True)
class Asked:
    """A fact of the source that a policy asks of a service; without one, the service is let in all the same."""

    service: str
    use: str
    fact: str
    is_plain: bool


SOURCES = ("aws:source", "kms:encryptioncontext:")


def asked_of_services(service: Synthesized) -> Iterator[Asked]:
    uses = {
        "IAM::Role": ("AssumeRolePolicyDocument", "takes a role on"),
        "KMS::Key": ("KeyPolicy", "uses a key"),
        "S3::BucketPolicy": ("PolicyDocument", "writes access logs"),
        "SQS::QueuePolicy": ("PolicyDocument", "sends to a queue"),
        "SNS::TopicPolicy": ("PolicyDocument", "publishes to a topic"),
    }
    for kind, (where, use) in uses.items():
        for one in service.of(kind).values():
            for statement in one["Properties"][where]["Statement"]:
                principal = statement["Principal"]
                if not isinstance(principal, dict) or "Service" not in principal:
                    continue
                name = (
                    text(principal["Service"])
                    .removesuffix(".amazonaws.com")
                    .removesuffix(".<AWS::Region>.<AWS::URLSuffix>")
                )
                facts = [
                    (fact, not operator.endswith("IfExists"))
                    for operator, asked in statement.get("Condition", {}).items()
                    for fact in asked
                    if fact.lower().startswith(SOURCES)
                ]
                yield from (Asked(name, use, *fact) for fact in facts or [("", True)])
    for one in service.of("Lambda::Permission").values():
        name = one["Properties"]["Principal"].removesuffix(".amazonaws.com")
        yield Asked(name, "calls a function", "SourceArn" if "SourceArn" in one["Properties"] else "", is_plain=True)


def test_the_page_about_services_in_policies_has_the_condition_of_each() -> None:
    assert markdown() in (ROOT / "docs" / "design" / "service-principals.md").read_text()


def test_only_our_queue_may_use_its_dead_letter_queue(made: Synthesized) -> None:
    allowed = made.one("SQS::Queue", "LandingDead")["RedriveAllowPolicy"]
    assert allowed["redrivePermission"] == "byQueue"
    assert [text(arn).rpartition(":")[2] for arn in allowed["sourceQueueArns"]] == ["forebay-dev-arrivals"]


def test_nothing_is_deployed_for_personal_data_that_no_declaration_keeps_apart(service: Synthesized) -> None:
    assert set(service.of("KMS::Key")) == {"KeysData"}
    assert not [name for name in service.of("S3::Bucket") if "Vault" in name]


# --- who may do what -------------------------------------------------------------------------------------------------


def names(resources: list[str]) -> set[str]:
    """Resources without hashes and without the account."""
    short = [re.sub(r"arn:<AWS::Partition>:(\w+):(<AWS::Region>)?:(<AWS::AccountId>)?:", r"\1:", r) for r in resources]
    return {re.sub(r"<(\w+)\w{8}(\.Arn)?>", r"\1", r) for r in short}


def test_each_function_may_do_what_it_does_and_no_more(made: Synthesized) -> None:
    policies = {role: {a: names(r) for a, r in rights.items()} for role, rights in made.policies().items()}
    logs = ("logs:CreateLogStream", "logs:PutLogEvents")
    assert policies["FunctionsStartIngestRole"] == {
        **{action: {"FunctionsStartIngestLog"} for action in logs},
        "sqs:GetQueueAttributes": {"LandingQueue"},
        "glue:StartJobRun": {"glue:job/forebay-dev-ingest"},
        "glue:GetJobRuns": {"glue:job/forebay-dev-ingest"},
        "glue:GetJob": {"glue:job/forebay-dev-ingest"},
        "s3:PutObject": {
            f"Lake/_forebay/checkpoints/ingest/{name}" for name in ("stop", "last-good.json", "waiting.json")
        },
        "s3:GetObject": {
            *(f"Lake/_forebay/checkpoints/ingest/{name}" for name in ("last-good.json", "waiting.json", "pace.json")),
            "Lake/_forebay/ledger/_delta_log/*.json",
            "Lake/_forebay/ledger/_delta_log/_last_checkpoint",
        },
        "s3:ListBucket": {"Lake"},
        "sns:Publish": {"AlarmTopic"},
        "kms:Decrypt": {"KeysData"},
        "kms:GenerateDataKey": {"KeysData"},
    }
    assert policies["FunctionsPublishFreshnessRole"] == {
        **{action: {"FunctionsPublishFreshnessLog"} for action in logs},
        "sqs:GetQueueAttributes": {"LandingQueue", "LandingDead", "LandingUndelivered"},
        "s3:GetObject": {"Lake/_forebay/ledger/_delta_log/_last_checkpoint"},
        "s3:ListBucket": {"Lake"},
        "kms:Decrypt": {"KeysData"},
        "cloudwatch:PutMetricData": {"*"},
        "cloudwatch:GetMetricData": {"*"},
        "kms:DescribeKey": {"KeysData"},
        "scheduler:GetSchedule": {"scheduler:schedule/forebay-dev/*"},
        "glue:GetJobRuns": {f"glue:job/forebay-dev-{job}" for job in ("compact", "maintain", "reconcile")},
    }
    assert policies["FunctionsPlanCompactionRole"] == {
        **{action: {"FunctionsPlanCompactionLog"} for action in logs},
        "s3:GetObject": {"Lake/_forebay/health/*"},
        "s3:ListBucket": {"Lake"},
        "kms:Decrypt": {"KeysData"},
        "glue:StartJobRun": {"glue:job/forebay-dev-compact"},
    }
    assert policies["FunctionsAnnounceFilesRole"] == {
        **{action: {"FunctionsAnnounceFilesLog"} for action in logs},
        "s3:ListBucket": {"s3:forebay-dev-landing-ACCOUNT"},
        "s3:ListBucketVersions": {"s3:forebay-dev-landing-ACCOUNT"},
        "s3:GetObject": {"s3:forebay-dev-landing-ACCOUNT/in/*", "LakeArtefacts/announce/*"},
        "sqs:SendMessage": {"LandingQueue"},
        "kms:Decrypt": {"KeysData"},
        "kms:GenerateDataKey": {"KeysData"},
    }
    jobs = {f"glue:job/forebay-dev-{job}" for job in ("ingest", "compact", "maintain", "reconcile")}
    assert policies["FunctionsStatusPageRole"] == {
        **{action: {"FunctionsStatusPageLog"} for action in logs},
        "sqs:GetQueueAttributes": {"LandingQueue", "LandingDead", "LandingUndelivered"},
        "s3:GetObject": {"Lake/_forebay/health/*", "Lake/_forebay/ledger/_delta_log/_last_checkpoint"},
        "s3:ListBucket": {"Lake"},
        "s3:PutObject": {"LakeArtefacts/status/index.html"},
        "glue:GetJobRuns": jobs,
        "cloudwatch:DescribeAlarms": {"cloudwatch:alarm:*"},
        "cloudwatch:GetMetricData": {"*"},
        "kms:Decrypt": {"KeysData"},
        "kms:GenerateDataKey": {"KeysData"},
    }
    ended = policies["FunctionsJobEndedRole"]
    assert "glue:job/forebay-dev-ingest" in ended.pop("glue:GetJobRun")
    assert ended == {
        **{action: {"FunctionsJobEndedLog"} for action in logs},
        "sns:Publish": {"AlarmTopic"},
        "sqs:SendMessage": {"Untold"},
        "cloudwatch:PutMetricData": {"*"},
        "kms:Decrypt": {"KeysData"},
        "kms:GenerateDataKey": {"KeysData"},
    }
    assert policies["FunctionsStartJobRole"] == {
        **{action: {"FunctionsStartJobLog"} for action in logs},
        "glue:StartJobRun": jobs,
        **{f"s3:{verb}Object": {"LakeArtefacts/waiting-runs/*"} for verb in ("Get", "Put", "Delete")},
        "s3:ListBucket": {"LakeArtefacts"},
        "kms:Decrypt": {"KeysData"},
        "kms:GenerateDataKey": {"KeysData"},
    }
    ticked = ("StartIngest", "PublishFreshness", "PlanCompaction", "StatusPage", "StartJob")
    assert policies["SchedulesRole"] == {"lambda:InvokeFunction": {f"Functions{name}" for name in ticked}}


def test_a_tick_is_not_tried_again_and_the_end_of_a_job_is_kept_until_a_person_knows(made: Synthesized) -> None:
    found = {
        re.sub(r"^<Functions(\w+?)\w{8}>$", r"\1", text(one["Properties"]["FunctionName"])): one["Properties"]
        for one in made.of("Lambda::EventInvokeConfig").values()
    }
    ticks = {"StartIngest", "PublishFreshness", "PlanCompaction", "StatusPage"}
    assert {name for name, one in found.items() if one.get("MaximumRetryAttempts") == 0} == ticks
    assert found.keys() - ticks == {"JobEnded"}
    kept = text(found["JobEnded"]["DestinationConfig"]["OnFailure"]["Destination"])
    assert kept.startswith("<Untold")
    (rule,) = [one for name, one in made.of("Events::Rule").items() if name.startswith("JobEnded")]
    assert [text(target["DeadLetterConfig"]["Arn"]) for target in rule["Properties"]["Targets"]] == [kept]
    retries = {
        one["Properties"]["Name"]: one["Properties"]["Target"]["RetryPolicy"]["MaximumRetryAttempts"]
        for one in made.of("Scheduler::Schedule").values()
    }
    assert retries == {name: 3 if name in cron_schedules(made) else 0 for name in retries}


def test_the_rule_of_ended_jobs_alone_calls_a_function_and_fills_the_queue_of_what_was_not_told(
    service: Synthesized,
) -> None:
    (called,) = [one["Properties"] for one in service.of("Lambda::Permission").values()]
    assert called["Principal"] == "events.amazonaws.com"
    assert text(called["SourceArn"]).startswith("<JobEnded")
    (fills,) = [
        one
        for one in service.one("SQS::QueuePolicy", "UntoldPolicy")["PolicyDocument"]["Statement"]
        if one["Effect"] == "Allow"
    ]
    assert text(fills["Condition"]["ArnEquals"]["aws:SourceArn"]).startswith("<JobEnded")


def test_the_ingest_job_may_do_what_it_does_and_no_more(made: Synthesized) -> None:
    rights = {action: names(resources) for action, resources in made.policies()["IngestRole"].items()}
    written = {"Lake/*", "LakeArtefacts/scratch/*", "LakeArtefacts/spark-events/*"}
    assets = {"s3:cdk-hnb659fds-assets-ACCOUNT/forebay-dev/*"}
    landed = {"s3:forebay-dev-landing-ACCOUNT/in/*"}
    catalog = {"glue:catalog", "glue:database/forebay_dev", "glue:table/forebay_dev/*"}
    taking = ("sqs:ReceiveMessage", "sqs:DeleteMessage", "sqs:ChangeMessageVisibility", "sqs:GetQueueAttributes")
    announcing = "sqs:SendMessage"
    for writing in ("s3:PutObject", "s3:AbortMultipartUpload", "s3:ListMultipartUploadParts"):
        assert rights.pop(writing) == written
    assert rights.pop("s3:DeleteObject") == written - {"Lake/*"} | {
        "Lake/_forebay/*",
        "Lake/*/_delta_log/*",
        "Lake/declarations/*.toml",
    }
    assert rights.pop("s3:GetObject") == written | landed | assets
    assert rights.pop("s3:GetObjectVersion") == landed
    assert rights.pop("s3:ListBucket") == {"Lake", "LakeArtefacts", "s3:forebay-dev-landing-ACCOUNT"}
    assert rights == {
        "s3:GetBucketLocation": {"Lake", "LakeArtefacts"},
        "s3:ListBucketMultipartUploads": {"Lake", "LakeArtefacts"},
        "s3:ListBucketVersions": {"s3:forebay-dev-landing-ACCOUNT"},
        "events:PutEvents": {"events:event-bus/default"},
        **{action: {"LandingQueue"} for action in (*taking, announcing)},
        **{f"glue:{action}Table": catalog for action in ("Get", "Create", "Update")},
        **common_rights("Ingest"),
    }


def common_rights(job: str) -> dict[str, set[str]]:
    """What every job may do besides its work."""
    logs = {f"{job}OutputLog", f"{job}ErrorLog", "logs:log-group:/aws-glue/jobs/*"}
    return {
        "kms:Decrypt": {"KeysData"},
        "kms:GenerateDataKey": {"KeysData"},
        **{f"logs:{action}": logs for action in ("CreateLogGroup", "CreateLogStream", "PutLogEvents")},
        "cloudwatch:PutMetricData": {"*"},
    }


@pytest.mark.parametrize("job", ["Compact", "Maintain"])
def test_a_job_that_keeps_the_tables_may_touch_them_and_nothing_that_lands(made: Synthesized, job: str) -> None:
    rights = {action: names(resources) for action, resources in made.policies()[f"{job}Role"].items()}
    written = {"Lake/*", "LakeArtefacts/scratch/*", "LakeArtefacts/spark-events/*"}
    assets = {"s3:cdk-hnb659fds-assets-ACCOUNT/forebay-dev/*"}
    writing = ("s3:PutObject", "s3:DeleteObject", "s3:AbortMultipartUpload", "s3:ListMultipartUploadParts")
    listing = ("s3:ListBucket", "s3:GetBucketLocation", "s3:ListBucketMultipartUploads")
    assert rights == {
        **dict.fromkeys(writing, written),
        **{action: {"Lake", "LakeArtefacts"} for action in listing},
        "s3:GetObject": written | assets,
        **common_rights(job),
    }


def test_the_job_that_looks_for_missed_files_may_read_the_lake_and_change_no_table(made: Synthesized) -> None:
    rights = {action: names(resources) for action, resources in made.policies()["ReconcileRole"].items()}
    written = {"LakeArtefacts/scratch/*", "LakeArtefacts/spark-events/*"}
    assets = {"s3:cdk-hnb659fds-assets-ACCOUNT/forebay-dev/*"}
    writing = ("s3:PutObject", "s3:DeleteObject", "s3:AbortMultipartUpload", "s3:ListMultipartUploadParts")
    assert rights == {
        **dict.fromkeys(writing, written | {"Lake/_forebay/complete/*"}),
        "s3:PutObject": written | {"Lake/_forebay/complete/*", "Lake/_forebay/last-reconcile.json"},
        "s3:GetObject": written
        | assets
        | {"Lake/*", "Lake/_forebay/complete/*", "s3:forebay-dev-landing-ACCOUNT/in/*"},
        "s3:GetObjectVersion": {"s3:forebay-dev-landing-ACCOUNT/in/*"},
        "s3:ListBucket": {"Lake", "LakeArtefacts", "s3:forebay-dev-landing-ACCOUNT"},
        "s3:GetBucketLocation": {"Lake", "LakeArtefacts"},
        "s3:ListBucketMultipartUploads": {"Lake", "LakeArtefacts"},
        "events:PutEvents": {"events:event-bus/default"},
        "s3:ListBucketVersions": {"s3:forebay-dev-landing-ACCOUNT"},
        "sqs:SendMessage": {"LandingQueue"},
        "sqs:GetQueueAttributes": {"LandingQueue"},
        **common_rights("Reconcile"),
    }


def test_every_role_is_among_those_whose_rights_are_said_here(service: Synthesized) -> None:
    jobs = {"IngestRole", "CompactRole", "MaintainRole", "ReconcileRole"}
    functions = {f"{name}Role" for name in service.of("Lambda::Function")}
    others = {"SchedulesRole"} | (
        {"AlarmTopicSlackRole"} if service.of("Chatbot::SlackChannelConfiguration") else set()
    )
    others |= {"LakeReplication"} if "ReplicationConfiguration" in service.one("S3::Bucket", "Lake") else set()
    assert set(service.of("IAM::Role")) == jobs | functions | others


def test_no_role_has_all_actions_of_anything(service: Synthesized) -> None:
    assert not [a for rights in service.policies().values() for a in rights if "*" in a]


def test_metrics_are_published_to_the_namespace_of_this_environment_only(service: Synthesized) -> None:
    ours = {"FunctionsPublishFreshness": service.one("Lambda::Function", "FunctionsPublishFreshness")}
    namespace = ours["FunctionsPublishFreshness"]["Environment"]["Variables"]["NAMESPACE"]
    for job in service.of("Glue::Job").values():
        assert job["Properties"]["DefaultArguments"]["--metrics"] == f"cloudwatch:{namespace}"
    for policy in service.of("IAM::Policy").values():
        for statement in policy["Properties"]["PolicyDocument"]["Statement"]:
            if "cloudwatch:PutMetricData" in listed(statement["Action"]):
                namespaces = set(listed(statement["Condition"]["StringEquals"]["cloudwatch:namespace"]))
                assert namespaces == {namespace}
            elif "cloudwatch:GetMetricData" not in listed(statement["Action"]):  # which knows no resources
                assert "*" not in listed(statement["Resource"])


# --- landing ---------------------------------------------------------------------------------------------------------


CREATED, REMOVED = "s3:ObjectCreated:*", "s3:ObjectRemoved:*"


def test_a_landed_file_is_announced_to_the_queue_and_to_nobody_else(made: Synthesized) -> None:
    bucket = made.of("S3::Bucket")["Landing"]
    (announced,) = bucket["Properties"]["NotificationConfiguration"]["TopicConfigurations"]
    assert announced["Event"] == "s3:ObjectCreated:*"
    assert text(announced["Topic"]).startswith("<LandingArrivals")
    assert announced["Filter"]["S3Key"]["Rules"] == [{"Name": "prefix", "Value": "in/"}]
    (subscription,) = made.of("SNS::Subscription").values()
    properties = subscription["Properties"]
    assert text(properties["Endpoint"]).startswith("<LandingQueue")
    assert properties["RawMessageDelivery"] is True


def test_each_waits_for_the_policy_that_lets_it_in(made: Synthesized) -> None:
    assert any(d.startswith("LandingArrivalsPolicy") for d in made.of("S3::Bucket")["Landing"]["DependsOn"])
    waits = made.of("SNS::Subscription")["LandingSubscription"]["DependsOn"]
    assert {d[:-8] for d in waits} == {"LandingQueuePolicy", "LandingUndeliveredPolicy"}


def test_messages_are_kept_for_days_and_dead_ones_longer_for_they_keep_their_age(made: Synthesized) -> None:
    queue = made.one("SQS::Queue", "LandingQueue")
    dead, undelivered = (made.one("SQS::Queue", name) for name in ("LandingDead", "LandingUndelivered"))
    assert text(queue["RedrivePolicy"]["deadLetterTargetArn"]).startswith("<LandingDead")
    subscription = made.one("SNS::Subscription", "LandingSubscription")
    assert text(subscription["RedrivePolicy"]["deadLetterTargetArn"]).startswith("<LandingUndelivered")
    assert queue["MessageRetentionPeriod"] == 13 * 86400
    assert {one["MessageRetentionPeriod"] for one in (dead, undelivered)} == {14 * 86400}


def test_landed_files_are_versioned_and_age_as_declared(made: Synthesized) -> None:
    bucket = made.one("S3::Bucket", "Landing")
    assert bucket["VersioningConfiguration"] == {"Status": "Enabled"}
    rules = {r["Id"]: r for r in bucket["LifecycleConfiguration"]["Rules"]}
    assert rules["landed-files"]["Prefix"] == "in/"
    assert rules["landed-files"]["ExpirationInDays"] == 400
    moved = rules["large-landed-files"]
    assert moved["Transitions"] == [{"StorageClass": "STANDARD_IA", "TransitionInDays": 60}]
    assert moved["ObjectSizeGreaterThan"] == "131072", "a small file pays for the move, and then for 128 KB"
    assert [name for name, rule in rules.items() if "Transitions" in rule] == ["large-landed-files"]


def test_a_deleted_files_mark_goes_with_its_last_version(made: Synthesized) -> None:
    rules = {r["Id"]: r for r in made.one("S3::Bucket", "Landing")["LifecycleConfiguration"]["Rules"]}
    assert rules["old-versions"]["NoncurrentVersionExpiration"] == {"NoncurrentDays": 30}
    assert rules["old-versions"]["ExpiredObjectDeleteMarker"], "the nightly search lists marks, too"


def test_deletions_are_announced_where_the_service_forgets_deleted_files(
    made: Synthesized, chosen: Synthesized, in_vpc: Synthesized, tmp_path: Path
) -> None:
    for service, events in ((made, {CREATED}), (chosen, {CREATED, REMOVED})):
        announced = service.one("S3::Bucket", "Landing")["NotificationConfiguration"]["TopicConfigurations"]
        assert {one["Event"] for one in announced} == events
    (tmp_path / "service.toml").write_text(THAT_FORGETS)
    adopted = {"landing_bucket": "studio-drops", "landing_eventbridge": True}
    ruled = synthesized(tmp_path / "ruled", env="dev", service=str(tmp_path / "service.toml"), **adopted)
    for service, kinds in ((in_vpc, ["Object Created"]), (ruled, ["Object Created", "Object Deleted"])):
        assert service.one("Events::Rule", "LandingLanded")["EventPattern"]["detail-type"] == kinds


def test_files_that_are_deleted_early_are_not_moved_before(chosen: Synthesized) -> None:
    rules = {r["Id"]: r for r in chosen.one("S3::Bucket", "Landing")["LifecycleConfiguration"]["Rules"]}
    assert rules["landed-files"]["ExpirationInDays"] == 20
    assert not [name for name, rule in rules.items() if "Transitions" in rule or "ObjectSizeGreaterThan" in rule]


def test_an_adopted_bucket_and_its_topic_are_used_and_not_changed(adopted: Synthesized) -> None:
    assert "Landing" not in adopted.of("S3::Bucket")
    assert set(adopted.of("SNS::Topic")) == {"AlarmTopic"}
    subscription = adopted.one("SNS::Subscription", "LandingSubscription")
    assert subscription["TopicArn"] == TOPIC
    (delivers,) = [
        s
        for s in adopted.one("SQS::QueuePolicy", "LandingQueuePolicy")["PolicyDocument"]["Statement"]
        if s["Effect"] == "Allow"
    ]
    assert delivers["Condition"] == {"ArnEquals": {"aws:SourceArn": TOPIC}}
    rights = adopted.policies()["IngestRole"]
    assert "s3:studio-drops/*" in names(rights["s3:GetObjectVersion"])
    assert KEY in rights["kms:Decrypt"]
    assert KEY not in rights["kms:GenerateDataKey"]


# --- the job ---------------------------------------------------------------------------------------------------------


def test_the_jobs_arguments_are_those_that_the_job_understands(made: Synthesized) -> None:
    job = made.one("Glue::Job", "IngestJob")
    argv = [word for name, value in job["DefaultArguments"].items() for word in (name, text(value))]
    settings = IngestSettings.from_argv(argv)
    assert settings.lake.startswith("s3://<Lake")
    assert settings.queue_url.startswith("<LandingQueue")
    assert settings.landing_buckets.startswith("forebay-dev-landing-"), "a message may name any bucket"
    assert (settings.metrics, settings.drain, settings.trigger_s) == ("cloudwatch:forebay-dev", False, 60)


def test_the_compaction_job_understands_its_arguments(made: Synthesized) -> None:
    job = made.one("Glue::Job", "CompactJob")
    argv = [word for name, value in job["DefaultArguments"].items() for word in (name, text(value))]
    settings = CompactSettings.from_argv([*argv, "--tables", "alpha,beta"])
    assert settings.lake.startswith("s3://<Lake")
    assert (settings.metrics, settings.table_names) == ("cloudwatch:forebay-dev", ["alpha", "beta"])


def test_the_job_that_looks_for_missed_files_is_told_where_they_land(made: Synthesized, chosen: Synthesized) -> None:
    def arguments(service: Synthesized) -> dict[str, str]:
        job = service.one("Glue::Job", "ReconcileJob")
        assert job["NumberOfWorkers"] == 2
        return {name: text(value) for name, value in job["DefaultArguments"].items()}

    settings = ReconcileSettings.from_argv(
        ["--landing", "s3://named-at-deploy/in/"]
        + [word for name, value in arguments(made).items() if name != "--landing" for word in (name, value)]
    )
    assert settings.queue_url.startswith("<LandingQueue")
    assert arguments(made)["--landing"] == "s3://forebay-dev-landing-ACCOUNT/in/"
    assert arguments(chosen)["--landing"] == "s3://forebay-dev-landing-ACCOUNT/in/%Y/%m/%d/"


def test_jobs_follow_the_declarations_in_the_lake_and_know_those_of_the_deployment(adopted: Synthesized) -> None:
    for name in ("IngestJob", "CompactJob", "MaintainJob", "ReconcileJob"):
        arguments = adopted.one("Glue::Job", name)["DefaultArguments"]
        assert re.fullmatch(r"s3://<Lake\w+>/declarations", text(arguments["--service"]))
        assert 'name = "orders"' in adopted.asset(arguments["--deployed_service"]).read_text()


def test_a_job_installs_what_glue_lacks_from_our_own_wheels_and_asks_no_index(made: Synthesized) -> None:
    arguments = made.one("Glue::Job", "IngestJob")["DefaultArguments"]
    place = text(arguments["--additional-python-modules"])
    assert re.search(r"/forebay-dev/[0-9a-f]{64}\.gluewheels\.zip$", place), place
    assert arguments["--python-modules-installer-option"] == "--no-index"
    with zipfile.ZipFile(made.asset(place)) as wheels:
        pinned = wheels.read("wheels/requirements.txt").decode().split()
        inside = [name for name in wheels.namelist() if name.endswith(".whl")]
    assert {line.partition("==")[0].replace("_", "-") for line in pinned} == set(runtime.GLUE_LACKS)
    assert len(inside) == len(pinned)
    assert [name for name in inside if "-cp" in name and f"-cp{runtime.PYTHON.replace('.', '')}-" not in name] == []
    uploaded = json.loads((made.outdir / "forebay-dev.assets.json").read_text())["files"].values()
    keys = [to["objectKey"] for file in uploaded for to in file["destinations"].values()]
    assert [key for key in keys if key.endswith(".gluewheels.zip")] == [place.partition("ACCOUNT/")[2]]
    assert [key for key in keys if not key.startswith("forebay-dev/")] == []


def test_jobs_may_decrypt_their_code_where_the_cdks_bucket_has_a_key(auto: Synthesized) -> None:
    policies = auto.policies()
    for job in ("Ingest", "Compact", "Maintain", "Reconcile"):
        assert REPLICA_KEY in policies[f"{job}Role"]["kms:Decrypt"]


def test_a_lake_whose_deleted_objects_are_kept_lets_them_go_in_time(made: Synthesized) -> None:
    lake = made.one("S3::Bucket", "Lake")
    assert lake["VersioningConfiguration"] == {"Status": "Enabled"}
    (rule,) = [rule for rule in lake["LifecycleConfiguration"]["Rules"] if rule["Id"] == "deleted"]
    assert rule["NoncurrentVersionExpiration"] == {"NoncurrentDays": 30}
    assert "ExpirationInDays" not in rule


def test_versions_that_a_lake_kept_before_go_where_none_are_kept_any_more(adopted: Synthesized) -> None:
    """S3 suspends versions and never takes them back: without a rule, each stays, and is paid for, for ever."""
    lake = adopted.one("S3::Bucket", "Lake")
    (rule,) = [rule for rule in lake["LifecycleConfiguration"]["Rules"] if rule["Id"] == "deleted"]
    assert "VersioningConfiguration" not in lake
    assert rule["NoncurrentVersionExpiration"] == {"NoncurrentDays": 1}


def test_a_changed_declaration_is_a_changed_argument(made: Synthesized, adopted: Synthesized) -> None:
    one, other = (s.one("Glue::Job", "IngestJob")["DefaultArguments"]["--deployed_service"] for s in (made, adopted))
    assert one != other


def test_a_job_logs_into_groups_that_are_there_encrypted_and_kept_for_a_while(service: Synthesized) -> None:
    """By the only argument of Glue 5.0 and later that moves them."""
    groups = {group["Properties"]["LogGroupName"] for group in service.of("Logs::LogGroup").values()}
    shown = json.dumps([w for w in dashboard_body(service)["widgets"] if w["type"] == "log"])
    for job in service.of("Glue::Job").values():
        arguments = job["Properties"]["DefaultArguments"]
        assert not [name for name in arguments if name.startswith("--continuous-log")]
        for kind in ("output", "error"):
            assert f"{arguments['--custom-logGroup-prefix']}/{kind}" in groups
    assert shown.count("Log") >= 2 * len(service.of("Glue::Job"))


def test_the_spark_settings_are_those_of_all_engines(service: Synthesized) -> None:
    for job in service.of("Glue::Job").values():
        conf = job["Properties"]["DefaultArguments"]["--conf"].split(" --conf ")
        quiet = {"spark.log.level": "WARN", "spark.executor.syncLogLevel.enabled": "true"}
        assert dict(setting.split("=", 1) for setting in conf) == {**job_settings(), **quiet}


def test_the_ingest_job_runs_once_at_a_time_and_without_an_end(service: Synthesized) -> None:
    job = service.one("Glue::Job", "IngestJob")
    assert job["GlueVersion"] == runtime.GLUE
    assert job["Command"]["Name"] == "gluestreaming"
    assert job["ExecutionProperty"] == {"MaxConcurrentRuns": 1}
    assert job["MaintenanceWindow"] == "Sun:2"
    assert (job["WorkerType"], job["NumberOfWorkers"]) == ("G.1X", 2), "the least, which the page on costs explains"
    assert "Timeout" not in job


def test_upkeep_is_billed_as_work_without_haste_and_ended_when_it_hangs_and_ingest_is_not(
    service: Synthesized,
) -> None:
    found = {name: job["Properties"] for name, job in service.of("Glue::Job").items()}
    jobs = {name: (job.get("ExecutionClass"), job.get("Timeout")) for name, job in found.items()}
    assert jobs.pop("IngestJob") == (None, None), "start_ingest ends a drain that hangs"
    assert jobs == {"CompactJob": ("FLEX", 120), **dict.fromkeys(("MaintainJob", "ReconcileJob"), ("FLEX", 240))}


def test_the_jobs_package_is_forebay_alone(made: Synthesized) -> None:
    arguments = made.one("Glue::Job", "IngestJob")["DefaultArguments"]
    package = made.asset(arguments["--extra-py-files"])
    inside = zipfile.ZipFile(package).namelist()
    assert {name.partition("/")[0] for name in inside} == {"forebay"}
    assert "forebay/declaration/example/service.toml" in inside
    assert not [name for name in inside if name.startswith("forebay/cli/")], (
        "an edit of a command would restart production"
    )
    assert not [name for name in inside if "__pycache__" in name or name.endswith(".pyc")]


# --- functions -------------------------------------------------------------------------------------------------------


def test_every_function_is_there_in_its_asset_and_finds_its_settings(service: Synthesized) -> None:
    for name, function in service.of("Lambda::Function").items():
        properties = function["Properties"]
        module, _, handle = properties["Handler"].rpartition(".")
        code = service.asset(properties["Code"]["S3Key"])
        assert (code / f"{module.replace('.', '/')}.py").exists(), name
        found = importlib.import_module(module)
        assert callable(getattr(found, handle))
        given = {key: text(value) for key, value in properties["Environment"]["Variables"].items()}
        environment.read(found.Settings, given)
        assert set(given) == {field.name.upper() for field in dataclasses.fields(found.Settings)}, name
        assert properties["Runtime"] == f"python{runtime.PYTHON}"


# --- what a person sees ----------------------------------------------------------------------------------------------


NAMESPACES = ("forebay-dev", "forebay-prod")


def metrics_in(value: Any) -> set[tuple[str, tuple[str, ...]]]:
    """Metrics of ours that a dashboard's body or an alarm names, with their dimensions, in whichever way."""
    found = set()
    if isinstance(value, list) and value[:1] and value[0] in NAMESPACES:
        found.add((value[1], tuple(itertools.islice(value, 2, len(value) - 1, 2))))
    if isinstance(value, str):
        for name in re.findall(r'\{"forebay-\w+",service,table\} MetricName="(\w+)"', value):
            found.add((name, ("service", "table")))
        for name in re.findall(r'SELECT \w+\((\w+)\) FROM SCHEMA\("forebay-\w+", service, "table"\)', value):
            found.add((name, ("service", "table")))
    if isinstance(value, dict):
        if value.get("Namespace") in NAMESPACES:
            found.add((value["MetricName"], tuple(d["Name"] for d in value["Dimensions"])))
        return found.union(*map(metrics_in, value.values()))
    if isinstance(value, list):
        return found.union(*map(metrics_in, value))
    return found


def dashboard_body(service: Synthesized) -> Any:
    (page,) = service.of("CloudWatch::Dashboard").values()
    return json.loads(text(page["Properties"]["DashboardBody"]))


def test_a_function_that_reads_an_object_for_each_table_has_time_for_thousands(made: Synthesized) -> None:
    seconds = {name: one["Properties"]["Timeout"] for name, one in made.of("Lambda::Function").items()}
    reads = [role.removesuffix("Role") for role, rights in made.policies().items() if reads_health(rights)]
    assert sorted(reads) == ["FunctionsPlanCompaction", "FunctionsStatusPage"]
    assert all(seconds[name] == 300 for name in reads)
    assert seconds["FunctionsStartIngest"] == 60


def reads_health(rights: dict[str, list[str]]) -> bool:
    return any(place.endswith("_forebay/health/*") for place in rights.get("s3:GetObject", ()))


def test_every_metric_on_the_dashboard_is_one_that_an_event_carries(service: Synthesized) -> None:
    shown = metrics_in(dashboard_body(service))
    assert len(shown) > 20, "the reader of dashboards found too little to be right"
    assert {name: of for name, of in shown if sorted(published().get(name, ())) != sorted(of)} == {}


def test_every_alarm_watches_a_metric_that_an_event_carries(service: Synthesized) -> None:
    alarms = [a["Properties"] for a in service.of("CloudWatch::Alarm").values()]
    watched = set().union(*map(metrics_in, alarms))
    assert {"BatchCommittedRefusedFiles", "TroublesCountedFailed", "FreshnessMeasuredWaiting"} <= {
        n for n, _ in watched
    }
    assert {name: of for name, of in watched if published().get(name) != of} == {}


OF_AWS = {
    "AWS/SQS": "QueueName",
    "AWS/SNS": "TopicName",
    "AWS/Events": "RuleName",
    "AWS/Lambda": "FunctionName",
}
"""The dimension that AWS documents. Under another one there is no metric, and a missing metric rings no alarm."""


@pytest.mark.parametrize("shape", SHAPES)
def test_alarms_watch_each_thing_whose_trouble_aws_measures(request: pytest.FixtureRequest, shape: str) -> None:
    service = request.getfixturevalue(shape)
    watched = defaultdict[str, set[str]](set)
    for alarm in service.of("CloudWatch::Alarm").values():
        for metric in metrics_of_aws(alarm["Properties"]):
            (dimension,) = metric["Dimensions"]
            assert dimension["Name"] == OF_AWS[metric["Namespace"]]
            watched[metric["MetricName"]].add(text(dimension["Value"]))
    name = service.one("Scheduler::ScheduleGroup", "SchedulesGroup")["Name"]
    topics = {
        text(one["Properties"]["TopicArn"]).rpartition(":")[2]
        for place, one in service.of("SNS::Subscription").items()
        if place.startswith("Landing")
    }
    rules = {one["Properties"]["Name"] for one in service.of("Events::Rule").values()} - {f"{name}-job-ended"}
    assert {one.strip("<>")[:-8] for one in watched["Errors"]} == set(service.of("Lambda::Function"))
    assert watched["NumberOfNotificationsFailed"] == {f"{name}-alarms"}
    assert watched["NumberOfNotificationsFailedToRedriveToDlq"] == topics
    assert watched["InvocationsFailedToBeSentToDlq"] == rules


def metrics_of_aws(value: Any) -> Iterator[Any]:
    if isinstance(value, dict):
        if str(value.get("Namespace", "")).startswith("AWS/"):
            yield value
        value = list(value.values())
    if isinstance(value, list):
        for one in value:
            yield from metrics_of_aws(one)


def test_the_function_that_looks_for_overdue_schedules_knows_all_that_start_jobs(service: Synthesized) -> None:
    knows = service.one("Lambda::Function", "FunctionsPublishFreshness")["Environment"]["Variables"]
    (group,) = service.of("Scheduler::ScheduleGroup").values()
    assert set(knows["SCHEDULES"].split(",")) == set(cron_schedules(service))
    assert knows["SCHEDULE_GROUP"] == group["Properties"]["Name"]
    assert text(knows["KEYS"]).startswith("<KeysData")


def test_every_alarm_does_something_and_leads_to_its_place_in_the_runbook(service: Synthesized) -> None:
    headings = set(re.findall(r"^### (.+)$", runbook_text(), re.M))
    (environment,) = {
        name.split("-")[1] for name in (a["Properties"]["AlarmName"] for a in service.of("CloudWatch::Alarm").values())
    }
    for alarm in service.of("CloudWatch::Alarm").values():
        properties = alarm["Properties"]
        assert properties["AlarmActions"], properties["AlarmName"]
        name = re.sub(r"^forebay-(dev|prod)-", "", properties["AlarmName"]).removesuffix("-orders")
        leads_to = text(properties["AlarmDescription"]).partition("Runbook: ")[2]
        assert leads_to.startswith("https://")
        assert leads_to.endswith(f"/forebay-{environment}-<AWS::Region> under {name}")
        assert name in headings
    body = json.dumps(dashboard_body(service))
    assert [name for name in headings if f"### {name}" not in body] == [], (
        "the page has the runbook that it is said to have"
    )


def test_alarms_lead_to_a_runbook_of_ones_own() -> None:
    of_ours = Settings(runbook_url="https://wiki.example.org/forebay")
    assert place_in_runbook(of_ours, "files-wait", "eu-west-1") == "https://wiki.example.org/forebay#files-wait"
    assert ".console.amazonaws-us-gov.com/" in place_in_runbook(Settings(), "files-wait", "us-gov-west-1")
    with pytest.raises(ValueError, match="https://"):
        Settings(runbook_url="docs/runbook.md")


def test_alarms_go_to_the_topic_and_its_policy_lets_them(service: Synthesized) -> None:
    wanted = "<AlarmTopic"
    for alarm in service.of("CloudWatch::Alarm").values():
        assert [text(a)[: len(wanted)] for a in alarm["Properties"]["AlarmActions"]] == [wanted]
    (policy,) = [p for n, p in service.of("SNS::TopicPolicy").items() if n.startswith("AlarmTopic")]
    lets = [s for s in policy["Properties"]["PolicyDocument"]["Statement"] if s["Effect"] == "Allow"]
    budgets = [{"Service": "budgets.amazonaws.com"}] if service.of("Budgets::Budget") else []
    assert [s["Principal"] for s in lets] == [{"Service": "cloudwatch.amazonaws.com"}, *budgets]


def test_a_watched_table_is_told_of_when_its_rows_stop_or_are_strangely_many(
    made: Synthesized, adopted: Synthesized
) -> None:
    stale = adopted.one("CloudWatch::Alarm", "AlarmsStaleTableorders")
    (watched,) = [one for one in stale["Metrics"] if "MetricStat" in one]
    metric = watched["MetricStat"]["Metric"]
    assert (metric["MetricName"], watched["MetricStat"]["Period"], stale["EvaluationPeriods"]) == (
        "RowsAppendedRows",
        300,
        12,
    )
    assert (stale["TreatMissingData"], stale["Threshold"]) == ("breaching", 1)
    assert {d["Name"]: d["Value"] for d in metric["Dimensions"]} == {"service": "shop", "table": "orders"}
    unusual = adopted.one("CloudWatch::Alarm", "AlarmsUnusualRowsorders")
    assert unusual["ComparisonOperator"] == "LessThanLowerOrGreaterThanUpperThreshold"
    (band,) = [metric for metric in unusual["Metrics"] if metric["Id"] == unusual["ThresholdMetricId"]]
    assert band["Expression"].startswith("ANOMALY_DETECTION_BAND(")
    assert not [name for name in made.of("CloudWatch::Alarm") if "Orders" in name]


def test_a_budget_tells_the_alarm_topic_and_counts_this_deployment_only(
    made: Synthesized, adopted: Synthesized
) -> None:
    (budget,) = [b["Properties"] for b in adopted.template["Resources"].values() if b["Type"] == "AWS::Budgets::Budget"]
    assert budget["Budget"]["BudgetLimit"] == {"Amount": 200, "Unit": "USD"}
    assert budget["Budget"]["CostFilters"] == {
        "TagKeyValue": ["user:deployment$forebay-prod"],
        "Region": [{"Ref": "AWS::Region"}],
    }
    manifest = json.loads((adopted.outdir / "manifest.json").read_text())["artifacts"]["forebay-prod"]
    assert manifest["properties"]["tags"]["deployment"] == "forebay-prod"
    for told in budget["NotificationsWithSubscribers"]:
        ((address),) = [subscriber["Address"] for subscriber in told["Subscribers"]]
        assert text(address).startswith("<AlarmTopic")
    key = json.dumps(adopted.of("KMS::Key")["KeysData"])
    assert "budgets.amazonaws.com" in key
    assert "budgets.amazonaws.com" not in json.dumps(made.template)


def test_the_dashboard_tells_what_jobs_cost_where_the_price_is_said(made: Synthesized, adopted: Synthesized) -> None:
    priced = [w for w in dashboard_body(adopted)["widgets"] if w["properties"].get("title") == "Cost of the jobs"]
    ((shown, *spent),) = [widget["properties"]["metrics"] for widget in priced]
    total = "FILL(spent0, 0) + FILL(spent1, 0) + FILL(spent2, 0) + FILL(spent3, 0)"
    assert shown[0]["expression"] == f"({total}) / 3600 * 0.44"
    assert {metric[1] for metric in spent} == {"JobEndedDpuSeconds"}
    assert {metric[3] for metric in spent} == {
        f"forebay-prod-{job}" for job in ("ingest", "compact", "maintain", "reconcile")
    }
    assert "Cost of the jobs" not in json.dumps(dashboard_body(made))


GLOBAL = {
    "IAM::Role": "RoleName",
    "IAM::ManagedPolicy": "ManagedPolicyName",
    "S3::Bucket": "BucketName",
    "CloudWatch::Dashboard": "DashboardName",
    "Budgets::Budget": "Budget.BudgetName",
    "Chatbot::SlackChannelConfiguration": "ConfigurationName",
}
"""Names that an account has once, whatever the region; or all accounts have."""


@pytest.mark.parametrize("which", ["made", "adopted", "in_vpc"])
def test_a_service_in_two_regions_of_an_account_shares_no_name(request: pytest.FixtureRequest, which: str) -> None:
    for kind, place in GLOBAL.items():
        for logical_id, one in request.getfixturevalue(which).of(kind).items():
            name: Any = one["Properties"]
            for step in place.split("."):
                name = name.get(step, {})
            assert not name or "AWS::Region" in json.dumps(name), f"{logical_id} {name}"


def test_only_watched_and_chosen_tables_have_metrics_of_their_own(made: Synthesized, adopted: Synthesized) -> None:
    arguments = [s.one("Glue::Job", "IngestJob")["DefaultArguments"] for s in (made, adopted)]
    assert [one.get("--metrics_of_tables") for one in arguments] == [None, "orders"]
    assert Settings(watched_tables="orders", table_metrics="*").measured_tables == "*"


def test_every_role_is_within_the_boundary_that_an_account_wants(chosen: Synthesized) -> None:
    boundaries = {name: role["Properties"].get("PermissionsBoundary") for name, role in chosen.of("IAM::Role").items()}
    assert len(boundaries) > 8
    assert set(boundaries.values()) == {BOUNDARY}


def test_a_quarter_worker_is_for_the_streaming_job_alone(auto: Synthesized) -> None:
    ingest = auto.one("Glue::Job", "IngestJob")
    assert (ingest["WorkerType"], ingest["Command"]["Name"]) == ("G.025X", "gluestreaming")
    assert int(ingest["DefaultArguments"]["--task_memory_bytes"]) == 1 << 30
    for name in ("CompactJob", "MaintainJob", "ReconcileJob"):
        job = auto.one("Glue::Job", name)
        assert (job["WorkerType"], job["ExecutionClass"]) == ("G.1X", "FLEX")
        assert "--task_memory_bytes" not in job["DefaultArguments"]


def test_the_function_that_starts_runs_knows_the_freshness_and_what_the_budget_pays_for(chosen: Synthesized) -> None:
    variables = chosen.one("Lambda::Function", "FunctionsStartIngest")["Environment"]["Variables"]
    assert (variables["FRESHNESS_S"], variables["SHARE_PER_MILLE"]) == ("1800", "116")
    assert variables["DRAIN_MINUTES_AT_MOST"] == "90", "half an hour more than a drain takes files"
    schedules = [one["Properties"] for one in chosen.of("Scheduler::Schedule").values()]
    assert {one["ScheduleExpression"] for one in schedules if one["Name"] == "start-ingest"} == {"rate(2 minutes)"}
    assert "s3:ListBucket" in chosen.policies()["FunctionsStartIngestRole"]


def test_an_address_that_was_given_is_told(adopted: Synthesized) -> None:
    email = adopted.one("SNS::Subscription", "AlarmTopicEmail")
    assert (email["Protocol"], email["Endpoint"]) == ("email", "night@example.org")


def test_an_on_call_service_and_a_channel_are_told_and_the_channel_may_do_nothing(adopted: Synthesized) -> None:
    url = adopted.one("SNS::Subscription", "AlarmTopicUrl")
    assert (url["Protocol"], url["Endpoint"]) == ("https", "https://oncall.example.org/in")
    slack = adopted.one("Chatbot::SlackChannelConfiguration", "AlarmTopicSlack")
    assert (slack["SlackWorkspaceId"], slack["SlackChannelId"]) == ("T01234567", "C0123456789")
    assert [text(topic)[:11] for topic in slack["SnsTopicArns"]] == ["<AlarmTopic"]
    assert [text(policy).rpartition("/")[2] for policy in slack["GuardrailPolicies"]] == ["AWSDenyAll"]
    assert "AlarmTopicSlackRole" not in adopted.policies()


def test_the_end_of_every_job_is_heard_whatever_its_state(service: Synthesized) -> None:
    (rule,) = service.of("Events::Rule").values()
    pattern = rule["Properties"]["EventPattern"]
    jobs = {job["Properties"]["Name"] for job in service.of("Glue::Job").values()}
    assert set(pattern["detail"]["jobName"]) == jobs
    assert pattern["detail"]["state"] == [{"anything-but": ["STARTING", "RUNNING", "STOPPING", "WAITING"]}]


def test_the_start_is_looked_after_by_the_clock(service: Synthesized) -> None:
    schedules = service.of("Scheduler::Schedule").values()
    found = {s["Properties"]["Name"]: s["Properties"]["ScheduleExpression"] for s in schedules}
    found.pop("night", None)  # declared
    assert {name for name, when in found.items() if when.startswith("rate")} == set(OF_FUNCTIONS)
    assert found == {
        "start-ingest": "rate(1 minute)",
        "publish-freshness": "rate(5 minutes)",
        "measure-trend": "rate(60 minutes)",
        "status-page": "rate(20 minutes)",
        "plan-compaction": "rate(60 minutes)",
        "start-waiting": "rate(30 minutes)",
        "order-tables": "cron(30 2 ? * SUN *)",
        "vacuum": "cron(0 4 ? * MON-SAT *)",
        "vacuum-all": "cron(0 4 ? * SUN *)",
        "reconcile": "cron(0 1 * * ? *)",
    }


def test_the_clock_goes_by_the_declared_hours_of_a_zone(adopted: Synthesized, made: Synthesized) -> None:
    zones = {s["Properties"]["ScheduleExpressionTimezone"] for s in cron_schedules(made).values()}
    assert zones == {"UTC"}
    night = cron_schedules(adopted)["night"]["Properties"]
    assert (night["ScheduleExpression"], night["ScheduleExpressionTimezone"]) == ("cron(30 3 * * ? *)", "Asia/Tokyo")
    asked = json.loads(text(night["Target"]["Input"]))
    wanted = {"JobName": "forebay-prod-compact", "Arguments": {"--round": "first", "--group": "asia"}}
    assert asked == {**wanted, "Wait": True}
    planner = adopted.one("Lambda::Function", "FunctionsPlanCompaction")["Environment"]["Variables"]
    assert planner["TABLES_THAT_WAIT"] == "!_forebay/*,orders"


def cron_schedules(service: Synthesized) -> dict[str, Any]:
    found = {s["Properties"]["Name"]: s for s in service.of("Scheduler::Schedule").values()}
    return {n: s for n, s in found.items() if s["Properties"]["ScheduleExpression"].startswith("cron")}


UPKEEP = {"compact": CompactSettings, "maintain": MaintainSettings, "reconcile": ReconcileSettings}
LAKE = ("--lake", "s3://lake")
LEAST = {"compact": LAKE, "maintain": LAKE, "reconcile": (*LAKE, "--landing", "s3://drops/", "--queue_url", "q")}


def test_what_the_clock_starts_is_a_job_of_ours_with_arguments_that_it_understands(made: Synthesized) -> None:
    started = {}
    known = made.one("Lambda::Function", "FunctionsStartJob")["Environment"]["Variables"]["JOBS"].split(",")
    assert sorted(known) == [f"forebay-dev-{name}" for name in ("compact", "ingest", "maintain", "reconcile")]
    for schedule in made.of("Scheduler::Schedule").values():
        target = schedule["Properties"]["Target"]
        asked = json.loads(text(target.get("Input", "{}")))
        if "JobName" in asked:
            assert text(target["Arn"]).startswith("<FunctionsStartJob")
            assert asked["JobName"] in known, "it would be dropped if it had to wait"
            kind = asked["JobName"].removeprefix("forebay-dev-")
            argv = [word for pair in asked["Arguments"].items() for word in pair]
            started[schedule["Properties"]["Name"]] = UPKEEP[kind].from_argv([*LEAST[kind], *argv])
    assert started == {
        "order-tables": CompactSettings(lake="s3://lake", round="second"),
        "vacuum": MaintainSettings(lake="s3://lake", vacuum="lite"),
        "vacuum-all": MaintainSettings(lake="s3://lake", vacuum="full"),
        "reconcile": ReconcileSettings(lake="s3://lake", landing="s3://drops/", queue_url="q"),
    }


# --- removal ---------------------------------------------------------------------------------------------------------

DATA = ("S3::Bucket", "S3::BucketPolicy", "KMS::Key")
"""A kept bucket keeps its policy: else a lake that others still write to would take commits that overwrite one another."""


def test_data_and_keys_outlive_the_stack(made: Synthesized) -> None:
    for kind in DATA:
        assert {r["DeletionPolicy"] for r in made.of(kind).values()} == {"RetainExceptOnCreate"}
        assert {r["UpdateReplacePolicy"] for r in made.of(kind).values()} == {"Retain"}


def test_the_page_says_of_every_type_whether_it_outlives_the_stack(
    made: Synthesized, auto: Synthesized, emr: Synthesized
) -> None:
    told = dict[str, bool]()
    for line in (Path(__file__).parents[2] / "infra" / "README.md").read_text().splitlines():
        cells = [cell.strip() for cell in line.strip("|").split("|")]
        if len(cells) == 4 and (kinds := re.findall(r"`(\w+::\w+)`", cells[1])):
            told |= dict.fromkeys(kinds, cells[2].startswith("keeps"))
    there = [one for service in (made, auto, emr) for one in service.template["Resources"].values()]
    kinds = {one["Type"].removeprefix("AWS::") for one in there if "DeletionPolicy" in one} | {"Glue::Database"}
    kept = {one["Type"].removeprefix("AWS::") for one in there if one.get("DeletionPolicy") == "RetainExceptOnCreate"}
    assert told == {kind: kind in kept for kind in kinds - {"Scheduler::ScheduleGroup"}}


def test_with_both_switches_data_may_go(adopted: Synthesized) -> None:
    for kind in DATA:
        assert {r["DeletionPolicy"] for r in adopted.of(kind).values()} == {"Delete"}


def test_a_stack_is_protected_when_a_person_says_so_which_the_first_deployment_cannot_be(
    made: Synthesized, chosen: Synthesized
) -> None:
    assert not protected(made)
    assert protected(chosen)


def protected(service: Synthesized) -> bool:
    manifest = json.loads((service.outdir / "manifest.json").read_text())
    (stack,) = [a for a in manifest["artifacts"].values() if a["type"] == "aws:cloudformation:stack"]
    return bool(stack["properties"].get("terminationProtection", False))
