"""What each command asks of AWS, held against the role of the person who types it.

A new command, or a request of a new kind, fails here until somebody says what it is done to: then the role must allow it.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from fnmatch import fnmatchcase
from pathlib import Path

import botocore.session
from botocore import xform_name

from forebay.cli.main import COMMANDS
from forebay.operate.doctor.rights import NEEDED, rights_to_look
from tests.infra.conftest import IN_A_VPC
from tests.infra.synthesized import Synthesized
from tests.infra.test_stack import names

FOREBAY = Path(__file__).resolve().parents[2] / "glue_jobs" / "forebay"
SERVICES = (
    *("cloudformation", "cloudwatch", "emr-serverless", "events", "glue", "iam", "kms", "lambda", "logs", "s3"),
    *("scheduler", "service-quotas", "sns", "sqs", "ssm", "sts"),
)
ACTIONS = {
    **{xform_name(operation): action for operation, action in NEEDED.items()},
    "abort_multipart_upload": "s3:AbortMultipartUpload",
    "change_message_visibility_batch": "sqs:ChangeMessageVisibility",
    "complete_multipart_upload": "s3:PutObject",
    "copy_object": "s3:PutObject",
    "create_multipart_upload": "s3:PutObject",
    "decrypt": "kms:Decrypt",
    "delete_message_batch": "sqs:DeleteMessage",
    "delete_objects": "s3:DeleteObject",
    "delete_table": "glue:DeleteTable",
    "describe_alarm_history": "cloudwatch:DescribeAlarmHistory",
    "describe_stack_events": "cloudformation:DescribeStackEvents",
    "generate_data_key": "kms:GenerateDataKey",
    "get_metric_statistics": "cloudwatch:GetMetricStatistics",
    "get_object_tagging": "s3:GetObjectTagging",
    "get_queue_url": "sqs:GetQueueUrl",
    "get_table": "glue:GetTable",
    "head_bucket": "s3:ListBucket",
    "list_job_runs": "emr-serverless:ListJobRuns",
    "list_object_versions": "s3:ListBucketVersions",
    "put_events": "events:PutEvents",
    "re_encrypt": "kms:ReEncryptFrom",
    "receive_message": "sqs:ReceiveMessage",
    "send_message_batch": "sqs:SendMessage",
    "upload_part_copy": "s3:PutObject",
}
"""By boto3's name of a request."""
OF_JOBS = {"create_table", "update_table", "put_metric_data"}
"""Requests that are made with `--catalog` and `--metrics` alone, which jobs have."""
NOT_OF_AWS = {"copy", "get_group", "invoke"}
"""Methods of Python's and of the command line's own that have the name of a request."""


def requests() -> Iterator[tuple[str, str]]:
    """Of the whole package: a name of boto3's, and the module that has it."""
    models = [botocore.session.get_session().get_service_model(name) for name in SERVICES]
    known = {xform_name(operation) for model in models for operation in model.operation_names}
    for module in FOREBAY.rglob("*.py"):
        for node in ast.walk(ast.parse(module.read_text())):
            found = (
                node.attr if isinstance(node, ast.Attribute) else node.value if isinstance(node, ast.Constant) else None
            )
            if found in known:
                yield str(found), str(module.relative_to(FOREBAY))


LAKE, KEY, QUEUE, ARTEFACTS = "Lake/*", "KeysData", "LandingQueue", "LakeArtefacts"
DROPS, ARCHIVE = "s3:studio-drops", "s3:studio-archive"
KEY_OF_DROPS = "arn:aws:kms:eu-west-1:210987654321:key/1234abcd-12ab-34cd-56ef-1234567890ac"
ALL_QUEUES = (QUEUE, "LandingDead", "LandingUndelivered")
Needs = set[tuple[str, str]]

READ: Needs = {("s3:GetObject", LAKE), ("s3:ListBucket", "Lake"), ("kms:Decrypt", KEY)}
WRITE: Needs = READ | {("s3:PutObject", LAKE), ("s3:DeleteObject", LAKE), ("kms:GenerateDataKey", KEY)}
WRITE |= {(f"s3:{part}", LAKE) for part in ("AbortMultipartUpload", "ListMultipartUploadParts")}
READ_LANDED: Needs = {(f"s3:{get}", f"{DROPS}/in/*") for get in ("GetObject", "GetObjectVersion")}
READ_LANDED |= {("s3:ListBucket", DROPS), ("kms:Decrypt", KEY_OF_DROPS)}
LIST_LANDED: Needs = {("s3:ListBucketVersions", DROPS), ("s3:ListBucket", DROPS)}
COUNT: Needs = {(f"sqs:{get}", queue) for get in ("GetQueueAttributes", "GetQueueUrl") for queue in ALL_QUEUES}
TAKE: Needs = COUNT | {
    (f"sqs:{take}", queue)
    for take in ("ReceiveMessage", "DeleteMessage", "ChangeMessageVisibility")
    for queue in ALL_QUEUES
}
SEND: Needs = COUNT | {("sqs:SendMessage", QUEUE), ("kms:GenerateDataKey", KEY)}
OF_GLUE = {"glue:GetJob", "glue:GetJobRuns"}
"""`test_bring_your_own` has those: on EMR Serverless there are no such jobs."""
LOOK: Needs = {(right, "") for right in rights_to_look() if right not in OF_GLUE}
PERIODS: Needs = {("events:PutEvents", "events:event-bus/default")}
STATE: Needs = {("cloudwatch:GetMetricStatistics", "*"), ("emr-serverless:ListJobRuns", "EngineApplication")}
TOLD: Needs = {("cloudwatch:DescribeAlarmHistory", "cloudwatch:alarm:*")}
TOLD |= {("cloudformation:DescribeStackEvents", "cloudformation:stack/forebay-prod/*")}
READ_ARCHIVE: Needs = {("s3:GetObject", f"{ARCHIVE}/old/*"), ("s3:ListBucket", ARCHIVE)}
AFTER_LOAD: Needs = READ_LANDED | {
    ("s3:DeleteObject", f"{DROPS}/in/*"),
    *((f"s3:Get{of}Tagging", f"{DROPS}/in/*") for of in ("Object", "ObjectVersion")),
    *((f"s3:{do}", f"{ARCHIVE}/old/*") for do in ("PutObject", "PutObjectTagging", "AbortMultipartUpload")),
    *READ_ARCHIVE,
    ("kms:GenerateDataKey", KEY_OF_DROPS),
}
TABLES = ("glue:catalog", "glue:database/forebay_prod", "glue:table/forebay_prod/*")
REMOVE_ENTRIES: Needs = {(f"glue:{do}Table", on) for do in ("Get", "Delete") for on in TABLES}
NOTHING: Needs = set()
ASKED_OF: dict[str, Needs] = {
    "ingest": WRITE | READ_LANDED | READ_ARCHIVE | LIST_LANDED | TAKE | SEND | PERIODS,
    **dict.fromkeys(("audit", "export", "lineage", "plan-capacity", "quality", "query", "tail", "wait"), READ),
    **dict.fromkeys(
        (
            "compact",
            "lease",
            "merge",
            "parked",
            "pause",
            "quarantine",
            "resume",
            "rollback",
            "schema",
            "stop",
        ),
        WRITE,
    ),
    "tables": WRITE | REMOVE_ENTRIES,
    **dict.fromkeys(("report", "status"), READ | COUNT | LOOK | STATE),
    "doctor": READ | COUNT | LOOK,
    "history": READ | LOOK | STATE | TOLD,
    "where": READ | READ_LANDED | READ_ARCHIVE,
    "try": READ_LANDED,
    "replay-into": READ | READ_LANDED | READ_ARCHIVE,
    "files": WRITE | SEND,
    "queue": WRITE | TAKE | SEND,
    "replay": WRITE | SEND,
    "backfill": WRITE | LIST_LANDED | SEND,
    "find-missed": WRITE | LIST_LANDED | READ_LANDED | SEND | PERIODS,
    "maintain": WRITE | AFTER_LOAD,
    **dict.fromkeys(("demo", "local"), NOTHING),
}
"""By command. `privacy` is below, and `export` and `replay-into` also write to places that a person names."""
BY_HAND: Needs = {
    *((f"sqs:{take}", "Untold") for take in ("ReceiveMessage", "DeleteMessage")),
    ("s3:GetObject", f"{ARTEFACTS}/status/index.html"),
    *((f"s3:{do}", f"{ARTEFACTS}/announce/*") for do in ("GetObject", "PutObject")),
    *(("lambda:InvokeFunction", f"Functions{name}") for name in ("AnnounceFiles", "StartJob")),
    ("emr-serverless:CancelJobRun", "EngineApplication/jobruns/*"),
    ("cloudwatch:GetDashboard", "cloudwatch:dashboard/forebay-prod-<AWS::Region>"),
    ("cloudwatch:GetMetricData", "*"),
    *((f"logs:{read}", "logs:log-group:/forebay-prod/*") for read in ("FilterLogEvents", "GetLogEvents", "StartQuery")),
    ("logs:GetQueryResults", "*"),
}
"""What the runbook, the page of the functions and the dashboard ask a person to do."""


def rights_of(service: Synthesized, role: str) -> Needs:
    found = {(action, on) for action, places in service.policies()[role].items() for on in names(places)}
    return found | {(action, "") for action, _ in found}


def test_an_operator_has_the_rights_of_every_command_and_of_the_runbook(emr: Synthesized) -> None:
    """Files of an adopted bucket, which has a key, move to an archive."""
    has = rights_of(emr, "Operator")
    assert COMMANDS.keys() - {"privacy"} == ASKED_OF.keys(), "ASKED_OF has what each command asks of AWS"
    lacks = {command: sorted(asked - has) for command, asked in {**ASKED_OF, "by hand": BY_HAND}.items() if asked - has}
    assert lacks == {}


OF_ANOTHER = (
    *("lambda:function:forebay-prod-eu-start-ingest", "events:rule/forebay-prod-eu-job-ended"),
    *("logs:log-group:/forebay-prod-eu/ingest/output", "scheduler:schedule/forebay-prod-eu/start-ingest"),
    *("glue:database/forebay_prod_eu", "cloudformation:stack/forebay-prod-eu/1234"),
)
"""Of a service whose prefix begins as this one's does."""


def test_an_operator_looks_at_nothing_of_a_service_with_a_longer_name(emr: Synthesized, in_vpc: Synthesized) -> None:
    for service, others in ((emr, OF_ANOTHER), (in_vpc, [one.replace("prod", "dev") for one in OF_ANOTHER])):
        wide = {
            on
            for action, on in rights_of(service, "Operator")
            for other in others
            if on != "*" and fnmatchcase(other, on)
        }
        assert wide == set()
        assert any(on.endswith("-job-ended") and on.startswith("events:") for _, on in rights_of(service, "Operator"))


SECRET, VAULT = "s3:studio-secrets/tokens", "Vault/shop/*"
LANDED = "s3:forebay-prod-landing-ACCOUNT"
ERASE: Needs = WRITE | {
    ("s3:GetObject", SECRET),
    ("s3:ListBucketVersions", "Lake"),
    *((f"s3:{do}ObjectVersion", LAKE) for do in ("Get", "Delete")),
    ("s3:ListBucketVersions", LANDED),
    *((f"s3:{do}", f"{LANDED}/in/*") for do in ("GetObject", "GetObjectVersion", "PutObject", "DeleteObject")),
    ("s3:DeleteObjectVersion", f"{LANDED}/in/*"),
}
OF_VAULT: Needs = {
    *((f"s3:{do}Object", VAULT) for do in ("Get", "Put", "Delete")),
    *((f"s3:{do}ObjectVersion", VAULT) for do in ("Get", "Delete")),
    *((f"s3:{do}", "Vault") for do in ("ListBucket", "ListBucketVersions")),
    *((f"kms:{do}", "VaultKey") for do in ("Decrypt", "ReEncryptFrom", "ReEncryptTo")),
}


def test_people_are_erased_in_one_role_also_from_a_vault(auto: Synthesized) -> None:
    """A person has the rights of one role at a time."""
    assert rights_of(auto, "VaultUser") >= ERASE | OF_VAULT
    operator = rights_of(auto, "Operator")
    assert operator >= ERASE
    of_vault = {("s3:GetBucketVersioning", "Vault"), ("s3:GetLifecycleConfiguration", "Vault")}
    assert {one for one in operator if one[1].startswith("Vault/") or one[1] == "Vault"} == of_vault, "of the doctor"
    deletes = {on for action, on in operator if action == "s3:DeleteObject"}
    assert f"{LANDED}/in/*" in deletes, "after_load deletes what was loaded"


OF_DEV = ("glue:catalog", "glue:database/forebay_dev", "glue:table/forebay_dev/*")
ATHENA: Needs = {
    *((f"glue:Get{what}", on) for what in ("Database", "Table", "Tables", "Partitions") for on in OF_DEV),
    *(("glue:GetDatabase", on) for on in ("glue:catalog", "glue:database/default")),
    *((f"athena:{do}QueryExecution", "athena:workgroup/forebay-dev") for do in ("Get", "Start", "Stop")),
    *((f"athena:Get{what}", "athena:workgroup/forebay-dev") for what in ("QueryResults", "WorkGroup")),
    *(
        (f"athena:{do}", "athena:datacatalog/AwsDataCatalog")
        for do in ("GetDataCatalog", "GetDatabase", "ListDatabases")
    ),
    *((f"athena:{do}TableMetadata", "athena:datacatalog/AwsDataCatalog") for do in ("Get", "List")),
    *((f"athena:List{what}", "*") for what in ("DataCatalogs", "WorkGroups")),
    *((f"s3:{do}", "QueriesResults") for do in ("GetBucketLocation", "ListBucket")),
    *((f"s3:{do}", "QueriesResults/*") for do in ("GetObject", "PutObject", "AbortMultipartUpload")),
    *(("s3:GetBucketLocation", "Lake"), ("kms:GenerateDataKey", KEY)),
    *(("s3:ListMultipartUploadParts", "QueriesResults/*"), ("s3:ListBucketMultipartUploads", "QueriesResults")),
}
"""https://docs.aws.amazon.com/athena/latest/ug/example-policies-workgroup.html, and the pages on the catalog and on results"""


def test_an_analyst_has_what_a_query_takes_in_one_workgroup_alone(in_vpc: Synthesized) -> None:
    has = rights_of(in_vpc, "Analyst")
    assert has >= READ | ATHENA, sorted((READ | ATHENA) - has)
    of_groups = {on for action, on in has if action.startswith("athena:") and "workgroup" in on}
    assert of_groups == {"athena:workgroup/forebay-dev"}
    assert {on for action, on in has if action == "s3:PutObject"} == {"QueriesResults/*", ""}


def test_the_maintenance_job_has_what_after_load_takes(emr: Synthesized) -> None:
    assert rights_of(emr, "MaintainRole") >= AFTER_LOAD


def test_nobody_but_the_named_people_takes_on_a_role(in_vpc: Synthesized, auto: Synthesized) -> None:
    for service, named in ((in_vpc, ("Analyst", "Operator")), (auto, ("Analyst", "Operator", "VaultUser"))):
        for role in named:
            trusts = service.one("IAM::Role", role)["AssumeRolePolicyDocument"]["Statement"]
            who = IN_A_VPC["operators" if service is in_vpc and role == "Operator" else "analysts"]
            assert [(one["Action"], one["Principal"]) for one in trusts] == [("sts:AssumeRole", {"AWS": who})]


def test_whoever_tells_that_an_hour_is_complete_tells_it_as_forebay(emr: Synthesized) -> None:
    """Rules of others may ask for events of other sources."""
    for policy in emr.of("IAM::Policy").values():
        for statement in policy["Properties"]["PolicyDocument"]["Statement"]:
            if statement["Action"] == "events:PutEvents":
                assert statement["Condition"] == {"StringEquals": {"events:source": "forebay"}}


def test_every_request_of_the_package_is_one_that_a_command_is_known_to_make() -> None:
    """The scan sees names only, so a right that is missing on some resource is the table's to find."""
    asked = set().union(*ASKED_OF.values(), ERASE, OF_VAULT)
    allowed = {action for action, _ in asked} | OF_GLUE
    found = list(requests())
    assert len({name for name, _ in found}) > 40, "the scan has become blind"
    unknown = {
        (name, module)
        for name, module in found
        if name not in OF_JOBS | NOT_OF_AWS and ACTIONS.get(name) not in allowed
    }
    assert unknown == set()
