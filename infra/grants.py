"""Rights, each said once and no wider than its use; the stack hands them out.

Written out rather than taken from `grant_*`. Those give whole families of actions (`s3:GetObject*`, `s3:List*`) on whole
buckets, and the assets' bucket belongs to every stack of the account.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, cast

from aws_cdk import Aws, Stack
from aws_cdk import aws_iam as iam
from aws_cdk import aws_kms as kms
from aws_cdk import aws_s3 as s3
from aws_cdk import aws_sqs as sqs
from constructs import IConstruct

from forebay.address import bucket_and_key
from forebay.lake.layout import CHECKPOINT, COMPLETE, HEALTH, LAST_RECONCILE, LEDGER, OWN
from forebay.upkeep.complete.tell import SOURCE
from infra.lake import DECLARATIONS, LISTS, PAGE, Lake
from infra.review import acknowledge_wildcards
from lambdas.start_job.waiting import PREFIX as WAITING_RUNS

TABLES_ARRIVE = "tables are made as their records arrive"


def arn(service: str, place: str) -> str:
    """The ARN of a resource in this account and region."""
    return f"arn:{Aws.PARTITION}:{service}:{Aws.REGION}:{Aws.ACCOUNT_ID}:{place}"


def allow(
    role: iam.IGrantable,
    sid: str,
    actions: Sequence[str],
    resources: Sequence[str],
    conditions: Any = None,
    *,
    because: str = "",
) -> None:
    """`because` is why a resource may end with a star; without it the review at synth refuses one."""
    statement = iam.PolicyStatement(sid=sid, actions=list(actions), resources=list(resources), conditions=conditions)
    principal = role.grant_principal
    principal.add_to_principal_policy(statement)
    if because:
        acknowledge_wildcards(cast(IConstruct, principal), resources, because)


def take_messages(role: iam.IGrantable, *queues: sqs.IQueue, more: Sequence[str] = ()) -> None:
    actions = ("sqs:ReceiveMessage", "sqs:DeleteMessage", "sqs:ChangeMessageVisibility", "sqs:GetQueueAttributes")
    allow(role, "TakeMessages", [*actions, *more], [queue.queue_arn for queue in queues])


def count_messages(role: iam.IGrantable, *queues: sqs.IQueue) -> None:
    allow(role, "CountMessages", ["sqs:GetQueueAttributes"], [queue.queue_arn for queue in queues])


def announce_landed_files(role: iam.IGrantable, bucket_arns: Sequence[str], prefix: str, lists_arn: str) -> None:
    """To list files, to look one up by its name, and to read a list of them. A HEAD needs the permission s3:GetObject, too."""
    allow(role, "ListLandedFiles", ["s3:ListBucket", "s3:ListBucketVersions"], bucket_arns)
    because, files = "any file under the prefix may be announced", [f"{arn}/{prefix}*" for arn in bucket_arns]
    allow(role, "LookAtLandedFiles", ["s3:GetObject"], files, because=because)
    allow(role, "ReadLists", ["s3:GetObject"], [f"{lists_arn}/{LISTS}*"], because="a person names the list")


def find_landed_files(role: iam.IGrantable, bucket_arns: Sequence[str]) -> None:
    allow(role, "FindLandedFiles", ["s3:ListBucketVersions"], bucket_arns)


def keep_periods(role: iam.IGrantable, lake: Lake) -> None:
    """The table of the hours and days that are complete."""
    _write(
        role, "Periods", lake.bucket.bucket_arn, lake.arn_of(f"{COMPLETE}/*"), because="its files have names by chance"
    )


def tell_of_periods(role: iam.IGrantable) -> None:
    """Only as ourselves: others may have rules about events of other sources."""
    bus = f"arn:{Aws.PARTITION}:events:{Aws.REGION}:{Aws.ACCOUNT_ID}:event-bus/default"
    allow(role, "TellOfPeriods", ["events:PutEvents"], [bus], {"StringEquals": {"events:source": SOURCE}})


def clear_landed_files(role: iam.IGrantable, bucket_arns: Sequence[str], prefix: str, key_arns: Sequence[str]) -> None:
    """To remove erased subjects' records from landed objects, with all their versions. `key_arns` are of adopted buckets."""
    actions = ["s3:PutObject", "s3:DeleteObject", "s3:DeleteObjectVersion"]
    files = [f"{arn}/{prefix}*" for arn in bucket_arns]
    allow(role, "ClearLandedFiles", actions, files, because="any file under the prefix may hold records of a person")
    if key_arns:
        allow(role, "WriteWithAdoptedKey", ["kms:GenerateDataKey"], key_arns)


def delete_landed_files(role: iam.IGrantable, bucket_arns: Sequence[str], prefix: str) -> None:
    """To delete files that were loaded, as `after_load` declares. A delete with a condition needs s3:GetObject, too. It leaves
    a mark in a bucket with versions, so s3:DeleteObjectVersion is not needed."""
    files, because = [f"{arn}/{prefix}*" for arn in bucket_arns], "any file under the prefix may have been loaded"
    allow(role, "DeleteLandedFiles", ["s3:DeleteObject"], files, because=because)


def archive_landed_files(
    role: iam.IGrantable, archive: str, bucket_arns: Sequence[str], prefix: str, key_arns: Sequence[str]
) -> None:
    """To copy them to the archive, with their tags. If a KMS key encrypts it, that key's policy is its owner's."""
    files, because = [f"{arn}/{prefix}*" for arn in bucket_arns], "any file under the prefix may have been loaded"
    allow(role, "ReadTagsOfLandedFiles", ["s3:GetObjectTagging", "s3:GetObjectVersionTagging"], files, because=because)
    actions = ["s3:PutObject", "s3:PutObjectTagging", "s3:GetObject", "s3:AbortMultipartUpload"]
    _use_archives(role, "ArchiveLandedFiles", actions, [archive])
    if key_arns:
        allow(role, "CopyWithAdoptedKey", ["kms:GenerateDataKey"], key_arns)


def read_archives(role: iam.IGrantable, archives: Sequence[str]) -> None:
    """To read a moved file again, as a replay does."""
    if archives:
        _use_archives(role, "ReadArchive", ["s3:GetObject"], archives)


def _use_archives(role: iam.IGrantable, sid: str, actions: Sequence[str], archives: Sequence[str]) -> None:
    places = [bucket_and_key(archive) for archive in archives]
    arns = [f"arn:{Aws.PARTITION}:s3:::{bucket}" for bucket, _ in places]
    copies = [f"{arn}/{below}/*" if below else f"{arn}/*" for arn, (_, below) in zip(arns, places, strict=True)]
    allow(role, sid, actions, copies, because="copies have the keys of the files")
    _tell_missing_from_forbidden(role, f"For{sid}", *dict.fromkeys(arns))


def delete_old_versions(role: iam.IGrantable, sid: str, bucket_arn: str, objects: str, *, because: str) -> None:
    """To delete erased subjects' records for good, also in a bucket that keeps versions of deleted and replaced objects."""
    allow(role, f"{sid}ListVersions", ["s3:ListBucketVersions"], [bucket_arn])
    actions = ["s3:GetObjectVersion", "s3:DeleteObjectVersion"]
    allow(role, f"{sid}Versions", actions, [objects], because=because)


def send_messages(role: iam.IGrantable, *queues: sqs.IQueue) -> None:
    allow(role, "SendMessages", ["sqs:SendMessage"], [queue.queue_arn for queue in queues])


def register_tables(role: iam.IGrantable, database: str) -> None:
    actions = ("glue:GetTable", "glue:CreateTable", "glue:UpdateTable")
    allow(role, "RegisterTables", actions, _places_of_tables(database), because=TABLES_ARRIVE)


def remove_entries_of_tables(role: iam.IGrantable, database: str) -> None:
    """As `forebay tables drop` does."""
    actions = ("glue:GetTable", "glue:DeleteTable")
    allow(role, "RemoveEntriesOfTables", actions, _places_of_tables(database), because=TABLES_ARRIVE)


def look_up_tables(role: iam.IGrantable, database: str) -> None:
    actions = ("GetDatabase", "GetDatabases", "GetTable", "GetTables", "GetPartition", "GetPartitions")
    asked, places = [f"glue:{action}" for action in actions], _places_of_tables(database)
    allow(role, "LookUpTables", asked, places, because=TABLES_ARRIVE)


def _places_of_tables(database: str) -> list[str]:
    """Glue needs the permission on the catalog, on the database and on the table."""
    ours = f"arn:{Aws.PARTITION}:glue:{Aws.REGION}:{Aws.ACCOUNT_ID}"
    return [f"{ours}:catalog", f"{ours}:database/{database}", f"{ours}:table/{database}/*"]


def read_landed_files(role: iam.IGrantable, bucket_arns: Sequence[str], prefix: str) -> None:
    allow(
        role,
        "ReadLandedFiles",
        ["s3:GetObject", "s3:GetObjectVersion"],
        [f"{bucket_arn}/{prefix}*" for bucket_arn in bucket_arns],
        because="any file under the prefix may be announced",
    )
    _tell_missing_from_forbidden(role, "LandedFiles", *bucket_arns)


def _tell_missing_from_forbidden(role: iam.IGrantable, what: str, *bucket_arns: str) -> None:
    """Without s3:ListBucket, S3 answers 403 for a missing object. A condition on the prefix would remove the permission,
    because a GET has no prefix. Statements of one policy need names of their own."""
    allow(role, f"TellMissing{what}", ["s3:ListBucket"], bucket_arns)


def write_objects(
    role: iam.IGrantable, sid: str, bucket_arn: str, prefix: str, *, because: str, deletes: Sequence[str] = ()
) -> None:
    _write(role, sid, bucket_arn, f"{bucket_arn}/{prefix}*", because=because, deletes=deletes)


def write_tables(role: iam.IGrantable, lake: Lake) -> None:
    _write(role, "Lake", lake.bucket.bucket_arn, lake.arn_of("*"), because=TABLES_ARRIVE)


def delete_old_versions_of_tables(role: iam.IGrantable, lake: Lake) -> None:
    delete_old_versions(role, "Lake", lake.bucket.bucket_arn, lake.arn_of("*"), because=TABLES_ARRIVE)


def append_to_tables(role: iam.IGrantable, lake: Lake) -> None:
    """Whoever appends deletes no data file: only the jobs' own state, what a checkpoint makes superfluous in a log, and files
    of declarations that newer ones replace."""
    deletes = [lake.arn_of(f"{OWN}*"), lake.arn_of("*/_delta_log/*"), lake.arn_of(f"{DECLARATIONS}/*.toml")]
    _write(role, "Lake", lake.bucket.bucket_arn, lake.arn_of("*"), because=TABLES_ARRIVE, deletes=deletes)


def _write(
    role: iam.IGrantable, sid: str, bucket_arn: str, objects: str, *, because: str, deletes: Sequence[str] = ()
) -> None:
    """`deletes` may be less than the objects that can be written."""
    on_objects = ("GetObject", "PutObject", "AbortMultipartUpload", "ListMultipartUploadParts")
    on_bucket = ("ListBucket", "GetBucketLocation", "ListBucketMultipartUploads")
    allow(role, f"{sid}Objects", [f"s3:{action}" for action in on_objects], [objects], because=because)
    allow(role, f"{sid}Delete", ["s3:DeleteObject"], deletes or [objects], because=because)
    allow(role, f"{sid}List", [f"s3:{action}" for action in on_bucket], [bucket_arn])


def read_ledger_log(role: iam.IGrantable, lake: Lake) -> None:
    allow(role, "ReadLedgerLog", ["s3:GetObject"], [lake.arn_of(f"{LEDGER}/_delta_log/_last_checkpoint")])
    _tell_missing_from_forbidden(role, "LedgerLog", lake.bucket.bucket_arn)


def see_batches(role: iam.IGrantable, lake: Lake) -> None:
    """Which commits of the ledger are batches' only they themselves say."""
    read_ledger_log(role, lake)
    commits = [lake.arn_of(f"{LEDGER}/_delta_log/*.json")]
    allow(role, "SeeBatches", ["s3:GetObject"], commits, because="commits are numbered as they come")


def read_tables(role: iam.IGrantable, lake: Lake) -> None:
    because = "the accounts hold the ledger against every table"
    allow(role, "ReadTables", ["s3:GetObject"], [lake.arn_of("*")], because=because)
    _tell_missing_from_forbidden(role, "Tables", lake.bucket.bucket_arn)


def ask_to_stop(role: iam.IGrantable, lake: Lake) -> None:
    allow(role, "AskToStop", ["s3:PutObject"], [lake.arn_of(f"{CHECKPOINT}/stop")])


def read_secret(role: iam.IGrantable, address: str) -> None:
    """Grants reading the secret of tokens. If a KMS key encrypts it, that key's policy is its owner's responsibility."""
    bucket, key = bucket_and_key(address)
    allow(role, "ReadSecret", ["s3:GetObject"], [f"arn:{Aws.PARTITION}:s3:::{bucket}/{key}"])


def remember_code(role: iam.IGrantable, lake: Lake) -> None:
    kept = [lake.arn_of(f"{CHECKPOINT}/{name}") for name in ("last-good.json", "waiting.json")]
    allow(role, "RememberCode", ["s3:PutObject", "s3:GetObject"], kept)
    allow(role, "ReadPace", ["s3:GetObject"], [lake.arn_of(f"{CHECKPOINT}/pace.json")])
    _tell_missing_from_forbidden(role, "Code", lake.bucket.bucket_arn)


def remember_reconcile(role: iam.IGrantable, lake: Lake) -> None:
    allow(role, "RememberReconcile", ["s3:PutObject"], [lake.arn_of(LAST_RECONCILE)])


def look_at_key(role: iam.IGrantable, key: kms.IKey) -> None:
    allow(role, "LookAtKey", ["kms:DescribeKey"], [key.key_arn])


def look_at_schedules(role: iam.IGrantable, group: str) -> None:
    schedules = f"arn:{Aws.PARTITION}:scheduler:{Aws.REGION}:{Aws.ACCOUNT_ID}:schedule/{group}/*"
    because = "the group is this service's own, and its schedules are declared"
    allow(role, "LookAtSchedules", ["scheduler:GetSchedule"], [schedules], because=because)


def keep_waiting_runs(role: iam.IGrantable, bucket_arn: str) -> None:
    because = "there is one small object for each run that waits"
    actions = ["s3:GetObject", "s3:PutObject", "s3:DeleteObject"]
    allow(role, "KeepWaitingRuns", actions, [f"{bucket_arn}/{WAITING_RUNS}*"], because=because)
    allow(role, "ListWaitingRuns", ["s3:ListBucket"], [bucket_arn])


def publish_messages(role: iam.IGrantable, topic_arn: str) -> None:
    allow(role, "PublishMessages", ["sns:Publish"], [topic_arn])


def write_page(role: iam.IGrantable, bucket_arn: str) -> None:
    allow(role, "WritePage", ["s3:PutObject"], [f"{bucket_arn}/{PAGE}"])


def read_page_and_keep_lists(role: iam.IGrantable, bucket_arn: str) -> None:
    """The status page, and lists of files for `announce_files`."""
    allow(role, "ReadPage", ["s3:GetObject"], [f"{bucket_arn}/{PAGE}"])
    because = "a person names the list"
    allow(role, "KeepLists", ["s3:GetObject", "s3:PutObject"], [f"{bucket_arn}/{LISTS}*"], because=because)


def see_alarms(role: iam.IGrantable, name: str) -> None:
    """CloudWatch lists alarms only for those who may see all of them."""
    alarms = f"arn:{Aws.PARTITION}:cloudwatch:{Aws.REGION}:{Aws.ACCOUNT_ID}:alarm:*"
    allow(role, "SeeAlarms", ["cloudwatch:DescribeAlarms"], [alarms], because="the list is of all alarms, by prefix")


def read_metrics(role: iam.IGrantable) -> None:
    because = "GetMetricData knows no resources, and no condition on a namespace"
    allow(role, "ReadMetrics", ["cloudwatch:GetMetricData"], ["*"], because=because)


def read_health(role: iam.IGrantable, lake: Lake) -> None:
    objects = [lake.arn_of(f"{HEALTH}/*")]
    allow(role, "ReadHealth", ["s3:GetObject"], objects, because="there is one small object for each table")
    _tell_missing_from_forbidden(role, "Health", lake.bucket.bucket_arn)


def read_assets(role: iam.IGrantable, bucket: s3.IBucket, prefix: str) -> None:
    """Assets of any version: a worker that joins a run fetches the code from the run's start, before a deployment. Without
    a `bucket_prefix`, the stack's synthesizer keeps its assets beside all others, under no known prefix."""
    because = "workers that join an older run fetch its older code, whose hash this template no longer knows"
    below = f"{prefix}/" if prefix else ""
    allow(role, "ReadCode", ["s3:GetObject"], [f"{arn_of_assets(bucket)}/{below}*"], because=because)


def arn_of_assets(bucket: s3.IBucket) -> str:
    return f"arn:{Aws.PARTITION}:s3:::{_spelt_out(bucket)}"


def _spelt_out(bucket: s3.IBucket) -> str:
    """The name of the assets' bucket, so that a report of policies for people can show it: a Fn::Sub it cannot."""
    name = Stack.of(bucket).resolve(bucket.bucket_name)
    if not isinstance(name, dict) or not isinstance(text := name.get("Fn::Sub"), str):
        return bucket.bucket_name
    known = {"AWS::Partition": Aws.PARTITION, "AWS::AccountId": Aws.ACCOUNT_ID, "AWS::Region": Aws.REGION}
    for pseudo, value in known.items():
        text = text.replace(f"${{{pseudo}}}", value)
    return text


def use_key(role: iam.IGrantable, sid: str, *keys: kms.IKey) -> None:
    allow(role, sid, ["kms:Decrypt", "kms:GenerateDataKey"], [key.key_arn for key in keys])


def read_with_key(role: iam.IGrantable, sid: str, key: kms.IKey) -> None:
    allow(role, sid, ["kms:Decrypt"], [key.key_arn])


def use_key_of_queue(role: iam.IGrantable, key_arn: str) -> None:
    """Grants the use of an adopted queue's key: to read its messages, and to send some."""
    if key_arn:
        allow(role, "UseKeyOfQueue", ["kms:Decrypt", "kms:GenerateDataKey"], [key_arn])


def use_keys_of_landed_files(role: iam.IGrantable, key_arns: Sequence[str]) -> None:
    """Grants the use of the keys of adopted buckets, if they have any."""
    if key_arns:
        allow(role, "ReadAdoptedKey", ["kms:Decrypt"], key_arns)


def publish_metrics(role: iam.IGrantable, *namespaces: str) -> None:
    """CloudWatch knows no resources; the namespace is what can be narrowed."""
    condition = {"StringEquals": {"cloudwatch:namespace": list(namespaces)}}
    allow(
        role,
        "PublishMetrics",
        ["cloudwatch:PutMetricData"],
        ["*"],
        condition,
        because="PutMetricData knows no resources; the namespace is a condition",
    )


def write_job_logs(role: iam.IGrantable, log_group_arns: Sequence[str]) -> None:
    """Glue makes the groups of a job if they are not there, and keeps groups of its own for what goes wrong before."""
    of_glue = f"arn:{Aws.PARTITION}:logs:{Aws.REGION}:{Aws.ACCOUNT_ID}:log-group:/aws-glue/jobs/*"
    actions = ("logs:CreateLogGroup", "logs:CreateLogStream", "logs:PutLogEvents")
    allow(role, "WriteGluesLogs", actions, [of_glue], because="Glue names these groups itself")
    allow(role, "WriteLogs", actions, log_group_arns)
