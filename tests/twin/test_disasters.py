"""What docs/disasters.md and docs/upgrade.md tell an operator to do, done to a deployment on the twin, without a job.

The walks with a job are in `tests/journey/test_disasters.py`.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import jmespath
import pyarrow as pa
import pytest
from botocore.exceptions import ClientError
from deltalake import DeltaTable, write_deltalake

from forebay.lake.layout import LEDGER
from forebay.notification.reading import read_message
from forebay.operate.doctor.examination import examine
from forebay.operate.stack.deployment import Deployment, look_up
from forebay_local.twin import assembly, clients
from forebay_local.twin.twin import Twin
from tests.infra.synthesized import synthesized

COMMIT = f"alpha/_delta_log/{0:020}.json"
BACKUP = "studio-backup"
PAGE = (Path(__file__).resolve().parents[2] / "docs" / "disasters.md").read_text()
Deploy = Callable[..., Deployment]


def queried(answer: dict[str, Any], command: str, **said: str) -> Any:
    """What `aws COMMAND --query ...` of the page prints of this answer, with the words of the page replaced."""
    after = PAGE.partition(command)[2]
    assert after, f"the page has no {command}"
    found = re.search(r"""--query (["'])(.+?)\1( |\n)""", after, re.S)
    assert found, command
    query = found[2].replace("\\\n", "")
    for word, meant in said.items():
        assert word.replace("_", "-") in query
        query = query.replace(word.replace("_", "-"), meant)
    return jmespath.search(query, json.loads(json.dumps(answer, default=lambda at: at.isoformat())))


@pytest.fixture(scope="module")
def deploy(shared_twin: Twin, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Deploy]:
    """As `cdk deploy -c NAME=VALUE` does. What was synthesized once is deployed again."""
    made, folders = set(), dict[str, Path]()

    def deployed(name: str, **settings: Any) -> Deployment:
        if (asked := f"{name} {settings}") not in folders:
            folders[asked] = tmp_path_factory.mktemp(name)
            synthesized(folders[asked], reviewed=False, env=name, prefix=name, **settings)
        plan = assembly.read(folders[asked])
        assembly.deploy(plan, client=shared_twin.client)
        made.add(plan.stack)
        on = look_up(plan.stack, shared_twin.client)
        on.client("sns").subscribe(TopicArn=on.alarm_topic, Protocol="email", Endpoint="night@example.org")
        return on

    yield deployed
    for stack in made:
        shared_twin.client("cloudformation").delete_stack(StackName=stack)


@pytest.fixture(scope="module")
def administrator(shared_twin: Twin) -> Iterator[Any]:
    """S3, as somebody who may do everything that no bucket's policy forbids."""
    iam, everything = shared_twin.client("iam"), {"Effect": "Allow", "Action": "*", "Resource": "*"}
    iam.create_role(RoleName="administrator", AssumeRolePolicyDocument="{}")
    iam.put_role_policy(
        RoleName="administrator",
        PolicyName="all",
        PolicyDocument=json.dumps({"Version": "2012-10-17", "Statement": [everything]}),
    )
    yield clients.client("s3", shared_twin.endpoint, shared_twin.region, "administrator")
    iam.delete_role_policy(RoleName="administrator", PolicyName="all")
    iam.delete_role(RoleName="administrator")


def sync(s3: Any, source: str, to: str) -> None:
    """As `aws s3 sync s3://source s3://to` does: a copy of each object that the target has not."""
    there = {one["Key"] for one in s3.list_objects_v2(Bucket=to).get("Contents", ())}
    for one in s3.list_objects_v2(Bucket=source).get("Contents", ()):
        if one["Key"] not in there:
            s3.copy_object(Bucket=to, Key=one["Key"], CopySource={"Bucket": source, "Key": one["Key"]})


def test_a_lake_is_restored_by_a_sync_while_its_policy_lets_commits_in(
    shared_twin: Twin, deploy: Deploy, administrator: Any
) -> None:
    s3 = administrator
    s3.create_bucket(Bucket=BACKUP, CreateBucketConfiguration={"LocationConstraint": shared_twin.region})
    for key in (COMMIT, "alpha/part-0.parquet"):
        s3.put_object(Bucket=BACKUP, Key=key, Body=b"{}")
    lake = deploy("saved").lake_bucket
    with pytest.raises(ClientError, match="AccessDenied"):
        sync(s3, BACKUP, lake)
    on = deploy("saved", conditional_commits=False)
    sync(s3, BACKUP, lake)
    assert s3.get_object(Bucket=lake, Key=COMMIT)["Body"].read() == b"{}"
    assert [one.check for one in examine(on) if one.check == "lake.commits"] == [], "whoever declined it is not told"
    deploy("saved")
    with pytest.raises(ClientError, match="AccessDenied"):
        s3.copy_object(Bucket=lake, Key=COMMIT, CopySource={"Bucket": BACKUP, "Key": COMMIT})
    s3.put_object(Bucket=lake, Key=f"alpha/_delta_log/{1:020}.json", Body=b"{}", IfNoneMatch="*")


def test_what_was_deleted_of_a_lake_with_versions_is_back_and_nothing_else_is_touched(
    deploy: Deploy, administrator: Any
) -> None:
    s3, lake = administrator, deploy("versioned", keep_deleted_days=30).lake_bucket
    ours = [f"{LEDGER}/_delta_log/{n:020}.json" for n in range(3)]
    for key in ours:
        s3.put_object(Bucket=lake, Key=key, Body=key.encode(), IfNoneMatch="*")
    s3.put_object(Bucket=lake, Key="alpha/part-0.parquet", Body=b"old")
    s3.delete_object(Bucket=lake, Key="alpha/part-0.parquet")
    for key in ours[1:]:
        s3.delete_object(Bucket=lake, Key=key)
    versions, command = s3.list_object_versions(Bucket=lake, Prefix=f"{LEDGER}/"), "aws s3api list-object-versions"
    assert queried({}, command) == queried({"DeleteMarkers": []}, command) == []
    assert [key for key, _ in queried(versions, command)] == ours[1:]
    for key, version in queried(versions, command):
        s3.delete_object(Bucket=lake, Key=key, VersionId=version)
    assert [s3.get_object(Bucket=lake, Key=key)["Body"].read().decode() for key in ours] == ours
    with pytest.raises(ClientError, match="NoSuchKey"):
        s3.get_object(Bucket=lake, Key="alpha/part-0.parquet")


def test_a_plan_that_was_overwritten_comes_back_by_a_copy_of_the_version_before(
    deploy: Deploy, administrator: Any
) -> None:
    s3, lake = administrator, deploy("versioned", keep_deleted_days=30).lake_bucket
    key = "_forebay/plans/shop/g1/7.json"
    for body in (b"planned", b"by mistake"):
        s3.put_object(Bucket=lake, Key=key, Body=body)
    before = next(one for one in s3.list_object_versions(Bucket=lake, Prefix=key)["Versions"] if not one["IsLatest"])
    (source,) = re.findall(r"aws s3api copy-object --copy-source '(.*?)' --bucket LAKE --key KEY", PAGE)
    for word, meant in {"LAKE": lake, "KEY": key, "ID": before["VersionId"]}.items():
        source = source.replace(word, meant)
    s3.copy_object(CopySource=source, Bucket=lake, Key=key)
    assert s3.get_object(Bucket=lake, Key=key)["Body"].read() == b"planned"


def test_a_table_that_lost_a_data_file_is_readable_after_the_lines_of_the_page_and_keeps_its_other_rows(
    shared_twin: Twin, deploy: Deploy, administrator: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The policy of the lake's bucket lets their commit in."""
    lake = deploy("saved").lake_bucket
    who = clients.access_key("administrator", shared_twin.endpoint)
    there = {"AWS_ENDPOINT_URL": shared_twin.endpoint, "AWS_REGION": shared_twin.region, "AWS_ALLOW_HTTP": "true"}
    for name, value in {**who, **there}.items():
        monkeypatch.setenv(name, value)
    for number in range(2):
        write_deltalake(f"s3://{lake}/orders", pa.table({"n": [number]}), mode="append")
    _, gone = sorted(DeltaTable(f"s3://{lake}/orders", version=1).file_uris())
    administrator.delete_object(Bucket=lake, Key=gone.removeprefix(f"s3://{lake}/"))
    with pytest.raises(OSError, match="404"):
        DeltaTable(f"s3://{lake}/orders").to_pyarrow_table()
    (lines,) = re.findall(r"```python\n(.*?)```", PAGE, re.S)
    exec(lines.replace("LAKE", lake), {})
    assert DeltaTable(f"s3://{lake}/orders").to_pyarrow_table().num_rows == 1


def test_the_schedule_that_starts_the_job_is_disabled_and_enabled_by_the_commands_of_the_page(deploy: Deploy) -> None:
    on = deploy("saved")
    scheduler, start = on.client("scheduler"), {"GroupName": on.name, "Name": "start-ingest"}
    before = scheduler.get_schedule(**start)
    for state in ("DISABLED", "ENABLED"):
        scheduler.update_schedule(
            **queried(scheduler.get_schedule(**start), "aws scheduler get-schedule", DISABLED=state)
        )
        found = scheduler.get_schedule(**start)
        assert (found["State"], found["Target"]) == (state, before["Target"])
        assert found["ScheduleExpression"] == before["ScheduleExpression"]


def test_entries_of_a_lake_that_moved_are_removed_by_the_command_of_the_page_and_no_others(deploy: Deploy) -> None:
    on = deploy("saved")
    glue, (database,) = on.client("glue"), on.of("Glue::Database")
    for name, place in {"alpha": "s3://first/alpha", "beta": "s3://first-two/beta", "view": ""}.items():
        where = {"StorageDescriptor": {"Location": place}} if place else {}
        glue.create_table(DatabaseName=database, TableInput={"Name": name, **where})
    names = queried(glue.get_tables(DatabaseName=database), "aws glue get-tables", OLD_LAKE="first")
    assert names == ["alpha"]
    glue.batch_delete_table(DatabaseName=database, TablesToDelete=names)
    assert {one["Name"] for one in glue.get_tables(DatabaseName=database)["TableList"]} == {"beta", "view"}


def test_a_key_that_somebody_wanted_to_delete_is_usable_again_after_both_commands_of_the_page(deploy: Deploy) -> None:
    on = deploy("saved")
    kms, key = on.client("kms"), on.outputs["DataKey"].rpartition("/")[2]
    assert list(examine(on)) == []
    kms.schedule_key_deletion(KeyId=key, PendingWindowInDays=30)
    assert "keys.state" in {one.check for one in examine(on)}
    section = PAGE.partition("\n## A key\n")[2].partition("\n## ")[0]
    commands = re.findall(r"^\$ aws kms ([a-z-]+) --key-id KEY", section, re.M)
    assert commands == ["cancel-key-deletion", "enable-key"], "the first one leaves it disabled"
    for number, command in enumerate(commands):
        assert "keys.state" in {one.check for one in examine(on)}, f"before command {number}"
        getattr(kms, command.replace("-", "_"))(KeyId=key)
    assert list(examine(on)) == []


@pytest.mark.deep
def test_a_stack_that_was_removed_left_its_buckets_and_another_prefix_adopts_them(
    shared_twin: Twin, deploy: Deploy
) -> None:
    before = deploy("gone")
    s3, key = shared_twin.client("s3"), before.outputs["DataKey"]
    s3.put_object(Bucket=before.lake_bucket, Key="alpha/part-0.parquet", Body=b"kept")
    shared_twin.client("cloudformation").delete_stack(StackName=before.stack)
    assert s3.get_object(Bucket=before.lake_bucket, Key="alpha/part-0.parquet")["Body"].read() == b"kept"
    after = deploy("again", lake_bucket=before.lake_bucket, data_key=key)
    assert (after.lake_bucket, after.outputs["DataKey"]) == (before.lake_bucket, key)
    assert {one.check for one in examine(after)} <= {"keys.services"}, "the doctor names what the key's policy lacks"


@pytest.mark.deep
def test_a_second_service_on_the_topic_of_the_first_gets_the_same_files(shared_twin: Twin, deploy: Deploy) -> None:
    """Blue and green: the second one proves new code on all files, in a lake of its own."""
    blue = deploy("blue")
    (topic,) = blue.arrivals_topics
    (bucket,) = blue.landing_buckets
    green = deploy("green", landing_bucket=bucket, landing_topic=topic, landing_key=blue.outputs["DataKey"])
    assert list(examine(green)) == []
    shared_twin.client("s3").put_object(Bucket=bucket, Key="in/a.json", Body=b"{}")
    assert announced(shared_twin, blue.queue_url) == announced(shared_twin, green.queue_url) == [(bucket, "in/a.json")]
    assert green.lake_bucket != blue.lake_bucket


def announced(twin: Twin, url: str) -> list[tuple[str, str]]:
    got = twin.client("sqs").receive_message(QueueUrl=url, MaxNumberOfMessages=10, WaitTimeSeconds=1)
    return [(f.bucket, f.key) for message in got.get("Messages", ()) for f in read_message(message["Body"]).files]


def test_the_procedures_name_their_tests_and_they_exist() -> None:
    root = Path(__file__).resolve().parents[2]
    assert len(PAGE.split("\n## ")[1:]) == 12
    (named,) = re.findall(r"^These tests follow the procedures: (.*?)\.$", PAGE, re.S | re.M)
    assert len(re.findall(r"`tests/", named)) == 11
    for page in (PAGE, (root / "docs" / "upgrade.md").read_text()):
        for named in re.findall(r"`(tests/[\w/.]+)`", page):
            assert (root / named).is_file(), named


def test_the_pages_say_what_these_tests_do() -> None:
    docs = Path(__file__).resolve().parents[2] / "docs"
    disasters, upgrade = (docs / "disasters.md").read_text(), (docs / "upgrade.md").read_text()
    for said in ("-c conditional_commits=false", "aws s3 sync", "aws kms enable-key"):
        assert said in disasters, said
    for said in ("landing_topic", "landing_key", "forebay doctor", "cdk diff"):
        assert said in upgrade, said
