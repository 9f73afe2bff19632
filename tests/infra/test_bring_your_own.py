"""A deployment into what already exists: buckets, a queue, a key, a database, roles, a VPC; and who may read."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest

from forebay.errors import InvalidConfiguration
from forebay.settings import IngestSettings, ReconcileSettings
from infra.context import settings_in
from infra.looks import WITHOUT_RESOURCE
from infra.network import CALLED, CALLED_WITH_EMR
from infra.roles import JOBS, role_names
from infra.settings import Settings
from tests.infra.conftest import BROUGHT, IN_A_VPC, PRODUCER, PYTHON
from tests.infra.synthesized import Synthesized, listed, synthesized, text

pytestmark = pytest.mark.xdist_group("cdk")


def statements(service: Synthesized, kind: str, name: str, document: str = "PolicyDocument") -> dict[str, Any]:
    """By Sid."""
    found = service.one(kind, name)[document]["Statement"]
    return {one["Sid"]: one for one in found if "Sid" in one}


def of_role(service: Synthesized, role: str) -> dict[str, Any]:
    return statements(service, "IAM::Policy", f"{role}DefaultPolicy")


def arguments(service: Synthesized, job: str) -> dict[str, str]:
    found = service.one("Glue::Job", f"{job}Job")["DefaultArguments"]
    return {name: text(value) for name, value in found.items()}


# --- EventBridge, several buckets, a VPC without internet, Lake Formation, readers ---


def test_events_of_several_buckets_reach_our_queue_by_a_rule(in_vpc: Synthesized) -> None:
    rule = in_vpc.one("Events::Rule", "LandingLanded")
    assert rule["EventPattern"] == {
        "source": ["aws.s3"],
        "detail-type": ["Object Created"],
        "detail": {"bucket": {"name": ["studio-drops", "studio-more"]}, "object": {"key": [{"prefix": "in/"}]}},
    }
    (target,) = rule["Targets"]
    assert text(target["Arn"]).startswith("<LandingQueue")
    assert text(target["DeadLetterConfig"]["Arn"]).startswith("<LandingUndelivered")
    for queue in ("LandingQueuePolicy", "LandingUndeliveredPolicy"):
        lets_in = statements(in_vpc, "SQS::QueuePolicy", queue)["RuleDelivers"]
        assert lets_in["Principal"] == {"Service": "events.amazonaws.com"}
        assert text(lets_in["Condition"]["ArnEquals"]["aws:SourceArn"]).endswith(f":rule/{rule['Name']}")
    key = statements(in_vpc, "KMS::Key", "KeysData", "KeyPolicy")
    assert key["RuleFillsQueues"]["Principal"] == {"Service": "events.amazonaws.com"}
    assert not {"TopicFillsQueues", "LandingBucketPublishes"} & key.keys()
    assert in_vpc.of("SNS::Subscription") == {}


def test_jobs_take_from_all_buckets_and_look_for_missed_files_in_all_of_them(in_vpc: Synthesized) -> None:
    ingest, reconcile = arguments(in_vpc, "Ingest"), arguments(in_vpc, "Reconcile")
    assert ingest["--landing_buckets"] == "studio-drops,studio-more"
    assert reconcile["--landing"] == "s3://studio-drops/in/,s3://studio-more/in/"
    for settings, told in ((IngestSettings, ingest), (ReconcileSettings, reconcile)):
        settings.from_argv([word for pair in told.items() for word in pair])
    reads = of_role(in_vpc, "IngestRole")["ReadLandedFiles"]["Resource"]
    assert [text(one).rpartition(":::")[2] for one in reads] == ["studio-drops/in/*", "studio-more/in/*"]
    lists = of_role(in_vpc, "ReconcileRole")["FindLandedFiles"]["Resource"]
    assert [text(one).rpartition(":::")[2] for one in lists] == ["studio-drops", "studio-more"]


def test_jobs_and_functions_run_in_the_subnets(in_vpc: Synthesized) -> None:
    connections = in_vpc.of("Glue::Connection")
    reached = [one["Properties"]["ConnectionInput"] for one in connections.values()]
    zones = {
        (one["PhysicalConnectionRequirements"]["SubnetId"], one["PhysicalConnectionRequirements"]["AvailabilityZone"])
        for one in reached
    }
    assert zones == {("subnet-0a1b2c3d", "eu-west-1a"), ("subnet-0a1b2c3e", "eu-west-1b")}
    assert {one["ConnectionType"] for one in reached} == {"NETWORK"}
    names = [one["Name"] for one in reached]
    for name, job in in_vpc.of("Glue::Job").items():
        assert job["Properties"]["Connections"] == {"Connections": names}, name
        assert any(on.startswith("NetworkConnection") for on in job["DependsOn"]), name
        role = of_role(in_vpc, name.replace("Job", "Role"))
        assert role["EnterVpc"]["Action"] == "ec2:CreateNetworkInterface"
        assert len(role["ReadConnections"]["Resource"]) == 1 + len(names)
    for name, function in in_vpc.of("Lambda::Function").items():
        wanted = {"SubnetIds": ["subnet-0a1b2c3d", "subnet-0a1b2c3e"], "SecurityGroupIds": ["sg-0a1b2c3d"]}
        assert function["Properties"]["VpcConfig"] == wanted, name
        assert "ec2:DescribeNetworkInterfaces" in of_role(in_vpc, f"{name}Role")["EnterVpc"]["Action"], name


def test_without_internet_each_service_that_is_called_has_an_endpoint(in_vpc: Synthesized) -> None:
    found = {
        text(_elsewhere(one["Properties"]["ServiceName"])).rpartition(".")[2]: one["Properties"]
        for one in in_vpc.of("EC2::VPCEndpoint").values()
    }
    assert set(found) == {"s3", *CALLED}
    assert (found["s3"]["VpcEndpointType"], found["s3"]["RouteTableIds"]) == ("Gateway", ["rtb-0a1b2c3d"])
    assert all(found[name]["PrivateDnsEnabled"] for name in CALLED)
    assert called_by_us(in_vpc) <= set(CALLED), "something is called without an endpoint"


def test_each_module_of_ones_own_in_s3_may_be_read(adopted: Synthesized) -> None:
    """Glue takes addresses and names of packages, side by side."""
    for name, job in adopted.of("Glue::Job").items():
        assert job["Properties"]["DefaultArguments"]["--additional-python-modules"].count(",") == 2
        statement = of_role(adopted, f"{name.removesuffix('Job')}Role")["ReadModules"]
        modules = [text(one).rpartition(":::")[2] for one in listed(statement["Resource"])]
        assert modules == ["studio-tools/a.whl", "studio-tools/more/b.whl"]


def test_in_china_an_endpoint_has_the_name_that_it_has_there(in_vpc: Synthesized) -> None:
    """https://github.com/aws/aws-cdk/pull/25333 lists them."""
    (china,) = in_vpc.template["Conditions"]
    assert in_vpc.template["Conditions"][china] == {"Fn::Equals": [{"Ref": "AWS::Partition"}, "aws-cn"]}
    names = [one["Properties"]["ServiceName"] for one in in_vpc.of("EC2::VPCEndpoint").values()]
    chosen = [name["Fn::If"] for name in names if "Fn::If" in name]
    assert {which for which, *_ in chosen} == {china}
    assert {tuple(map(text, of)) for _, *of in chosen} == {
        (f"cn.com.amazonaws.<AWS::Region>.{name}", f"com.amazonaws.<AWS::Region>.{name}")
        for name in ("monitoring", "sqs")
    }


def _elsewhere(name: Any) -> Any:
    """Outside of China."""
    return name["Fn::If"][2] if "Fn::If" in name else name


def test_without_internet_functions_reach_emr_and_the_definitions_of_its_jobs(tmp_path: Path) -> None:
    service = synthesized(tmp_path, **{**IN_A_VPC, "engine": "emr-serverless", "python_modules": PYTHON})
    ends = [text(_elsewhere(one["Properties"]["ServiceName"])) for one in service.of("EC2::VPCEndpoint").values()]
    assert {one.rpartition(".")[2] for one in ends} == {"s3", *CALLED, *CALLED_WITH_EMR}
    assert called_by_us(service) <= {*CALLED, *CALLED_WITH_EMR}


def called_by_us(service: Synthesized) -> set[str]:
    """The services that jobs and functions call, by the names of their endpoints. S3 has a gateway, Lambda itself makes the
    interfaces of functions, and a role is passed within a call of EMR."""
    ours = ("Functions", *(job.capitalize() for job in JOBS))
    rights = [found for role, found in service.policies().items() if role.startswith(ours)]
    named = {"cloudwatch": "monitoring"}
    called = {action.partition(":")[0] for found in rights for action in found} - {"s3", "ec2", "iam"}
    assert {"sqs", "glue"} <= called, "the roles have other names"
    return {named.get(one, one) for one in called}


def test_analysts_read_tables_and_nothing_of_forebays_own(in_vpc: Synthesized) -> None:
    role = of_role(in_vpc, "Analyst")
    refused = role["NothingOfForebaysOwn"]
    assert (refused["Effect"], refused["Action"]) == ("Deny", "s3:GetObject")
    places = [text(one) for one in refused["Resource"]]
    assert [place.endswith("/*/_forebay/*") for place in places].count(True) == 1, (
        "also of lakes in folders of this one's bucket"
    )
    assert all(place.endswith("/_forebay/*") for place in places)
    allowed = {action for one in role.values() if one["Effect"] == "Allow" for action in listed(one["Action"])}
    writes = ("Put", "Create", "Delete", "Update", "Send", "Start", "Invoke", "GenerateDataKey")
    of_queries = {"s3:PutObject", "athena:StartQueryExecution", "kms:GenerateDataKey"}
    of_queries |= {f"athena:{change}NamedQuery" for change in ("Create", "Update", "Delete")}
    assert {action for action in allowed if action.partition(":")[2].startswith(writes)} == of_queries
    trusts = in_vpc.one("IAM::Role", "Analyst")["AssumeRolePolicyDocument"]["Statement"]
    assert [one["Principal"] for one in trusts] == [{"AWS": IN_A_VPC["analysts"]}]


def test_analysts_query_in_a_workgroup_whose_results_are_encrypted_and_go_after_a_week(in_vpc: Synthesized) -> None:
    group = in_vpc.one("Athena::WorkGroup", "QueriesWorkgroup")
    said = group["WorkGroupConfiguration"]
    assert (group["Name"], said["EnforceWorkGroupConfiguration"]) == ("forebay-dev", True)
    result = said["ResultConfiguration"]
    assert result["EncryptionConfiguration"]["EncryptionOption"] == "SSE_KMS"
    assert text(result["EncryptionConfiguration"]["KmsKey"]).startswith("<KeysData")
    assert text(result["OutputLocation"]).startswith("s3://<QueriesResults")
    rules = in_vpc.one("S3::Bucket", "QueriesResults")["LifecycleConfiguration"]["Rules"]
    assert 7 in [rule.get("ExpirationInDays") for rule in rules]
    encrypted = in_vpc.one("S3::Bucket", "QueriesResults")["BucketEncryption"]["ServerSideEncryptionConfiguration"]
    assert [text(one["ServerSideEncryptionByDefault"]["KMSMasterKeyID"])[:9] for one in encrypted] == ["<KeysData"]


def test_analysts_with_a_workgroup_of_their_own_get_none(chosen: Synthesized) -> None:
    assert chosen.of("Athena::WorkGroup") == {}
    assert not [action for action in chosen.policies()["Analyst"] if action.startswith("athena:")]


def test_operators_may_do_what_commands_do(in_vpc: Synthesized) -> None:
    role = of_role(in_vpc, "Operator")
    rights = {action for one in role.values() for action in listed(one["Action"])}
    assert {"sqs:ReceiveMessage", "s3:PutObject", "glue:BatchStopJobRun", "lambda:InvokeFunction"} <= rights
    called = [text(one).strip("<>").partition(".")[0][:-8] for one in role["CallFunctions"]["Resource"]]
    assert called == ["FunctionsAnnounceFiles", "FunctionsStartJob"], "those that the runbook names"
    of_jobs = {f"glue:{do}" for do in ("StartJobRun", "BatchStopJobRun", "GetJob", "GetJobRuns")}
    assert set(role["StartAndStopJobs"]["Action"]) == of_jobs
    jobs = [text(one).rpartition("/")[2] for one in role["StartAndStopJobs"]["Resource"]]
    assert set(jobs) == {f"forebay-dev-{job}" for job in JOBS}, (
        "a star would reach the jobs of a service forebay-dev-eu"
    )


def test_operators_see_the_parts_of_their_own_service_alone(in_vpc: Synthesized) -> None:
    rights = in_vpc.policies()["Operator"]
    narrow = ("s3:GetObject", "ssm:GetParameter", "logs:FilterLogEvents", "lambda:GetFunction", "kms:GetKeyPolicy")
    assert set(narrow) <= rights.keys()
    wide = {
        (action, on)
        for action, places in rights.items()
        for on in places
        if action not in WITHOUT_RESOURCE and "forebay-dev" not in on and not is_ours(on)
    }
    assert {(action, on.rpartition(":")[0].rpartition(":")[2]) for action, on in wide} == {
        ("cloudwatch:DescribeAlarmHistory", "alarm"),
        ("cloudwatch:DescribeAlarms", "alarm"),
        ("cloudwatch:GetDashboard", "alarm"),
        ("events:PutEvents", "AccountId>"),
    }, "CloudWatch lists all alarms or none, and an event is told under a name of ours"


def is_ours(resource: str) -> bool:
    """By its logical id, its database, or because it was adopted."""
    made = re.match(r"<(Keys|Lake|Vault|Landing|Untold|AlarmTopic|Functions|\w+Role)", resource)
    adopted = re.search(r":s3:::(studio-(drops|more)(/in/\*)?|cdk-hnb659fds-assets-\w+)$", resource)
    of_catalog = re.search(r":(catalog|database/forebay_dev|table/forebay_dev/\*)$", resource)
    return bool(made or adopted or of_catalog) or resource.endswith("parameter/cdk-bootstrap/hnb659fds/version")


def test_lake_formation_grants_the_ingest_job_and_the_analysts_their_tables(in_vpc: Synthesized) -> None:
    granted = {
        name: (one["Properties"]["Permissions"], next(iter(one["Properties"]["Resource"])))
        for name, one in in_vpc.of("LakeFormation::PrincipalPermissions").items()
    }
    assert granted == {
        "LakeFormationIngestDatabase": (["CREATE_TABLE", "DESCRIBE"], "Database"),
        "LakeFormationIngestTables": (["ALTER", "DESCRIBE"], "Table"),
        "LakeFormationAnalystDatabase": (["DESCRIBE"], "Database"),
        "LakeFormationAnalystTables": (["DESCRIBE", "SELECT"], "Table"),
        "LakeFormationOperatorDatabase": (["DESCRIBE"], "Database"),
        "LakeFormationOperatorTables": (["DESCRIBE", "DROP"], "Table"),
    }


# --- all of it existing ---


def test_nothing_is_made_that_was_brought(brought: Synthesized) -> None:
    assert [name[:6] for name in brought.of("SQS::Queue")] == ["Untold"], "events whose message could not be sent"
    for kind in ("SNS::Subscription", "Glue::Database", "IAM::Role", "IAM::Policy"):
        assert brought.of(kind) == {}, kind
    assert set(brought.of("S3::Bucket")) == {"AccessLogs", "LakeArtefacts"}
    assert brought.of("KMS::Key") == {}


def test_jobs_and_functions_work_with_what_was_brought(brought: Synthesized) -> None:
    ingest = arguments(brought, "Ingest")
    assert ingest["--queue_url"].endswith("/studio-arrivals")
    assert ingest["--lake"] == "s3://studio-lake/games/eu"
    assert ingest["--catalog"] == "studio_games"
    measures = brought.one("Lambda::Function", "FunctionsPublishFreshness")["Environment"]["Variables"]
    assert text(measures["DEAD_URLS"]).endswith("/studio-dead")
    for group in brought.of("Logs::LogGroup").values():
        assert group["Properties"]["KmsKeyId"] == BROUGHT["data_key"]
    alarms = {one["Properties"]["AlarmName"] for one in brought.of("CloudWatch::Alarm").values()}
    assert "forebay-dev-dead-letters" in alarms
    assert "forebay-dev-undelivered" not in alarms


def test_no_role_reaches_what_other_services_keep_in_a_shared_lake_bucket(brought: Synthesized) -> None:
    roles = json.loads((brought.outdir / "iam-policy-report.json").read_text())["roles"]
    of_lake = [
        (one["roleName"], action, resource.partition(":::")[2])
        for one in roles
        for said in one["identityPolicyStatements"]
        for action in listed(said["Action"])
        for resource in map(text, listed(said["Resource"]))
        if ":::studio-lake" in resource
    ]
    on_bucket = {"s3:ListBucket", "s3:GetBucketLocation", "s3:ListBucketMultipartUploads"}
    beyond = [one for one in of_lake if not one[2].startswith("studio-lake/games/eu/") and one[1] not in on_bucket]
    assert of_lake
    assert beyond == []


def test_what_each_existing_role_needs_is_in_a_report(brought: Synthesized) -> None:
    roles = json.loads((brought.outdir / "iam-policy-report.json").read_text())["roles"]
    report = {one["roleName"]: one for one in roles}
    assert report.keys() <= set(role_names(Settings(**BROUGHT)).values())
    assert "Token" not in json.dumps(roles), "a person makes policies of it, who cannot fill in what only the CDK knows"
    said = json.dumps(report["studio-forebay-ingest"]["identityPolicyStatements"])
    for right in ("sqs:ReceiveMessage", "s3:GetObjectVersion", BROUGHT["landing_queue_key"], BROUGHT["data_key"]):
        assert right in said, right
    for name, job in brought.of("Glue::Job").items():
        assert text(job["Properties"]["Role"]).endswith(f"role/studio-forebay-{name.removesuffix('Job').lower()}")


# --- other accounts put files into our bucket ---


def test_another_account_may_put_files_below_the_prefix_and_use_the_key_for_it_through_s3(made: Synthesized) -> None:
    put = statements(made, "S3::BucketPolicy", "LandingPolicy")["ProducersPut"]
    assert text(put["Principal"]["AWS"]).endswith(f":iam::{PRODUCER}:root")
    assert "s3:PutObject" in put["Action"]
    assert not [action for action in put["Action"] if action.startswith(("s3:Get", "s3:Delete"))]
    assert text(put["Resource"]).endswith("/in/*")
    key = statements(made, "KMS::Key", "KeysData", "KeyPolicy")["ProducersPut"]
    through = {text(one) for one in key["Condition"]["StringEquals"]["kms:ViaService"]}
    assert through == {"s3.<AWS::Region>.amazonaws.com", "s3.<AWS::Region>.<AWS::URLSuffix>"}
    contexts = key["Condition"]["StringLike"]["kms:EncryptionContext:aws:s3:arn"]
    assert [text(one).rpartition(":::")[2].partition("-landing-")[0] for one in contexts] == ["forebay-dev"] * 2
    owner = made.one("S3::Bucket", "Landing")["OwnershipControls"]["Rules"]
    assert owner == [{"ObjectOwnership": "BucketOwnerEnforced"}]


# --- what does not fit together ---

QUEUE = "arn:aws:sqs:eu-west-1:123456789012:q"
TOPIC = "arn:aws:sns:eu-west-1:123456789012:t"


@pytest.mark.parametrize(
    ("context", "said"),
    [
        ({"landing_bucket": "drops", "landing_topic": TOPIC, "landing_eventbridge": True}, "exactly one of"),
        ({"landing_eventbridge": True}, "exactly one of"),
        ({"landing_bucket": "drops", "landing_queue": QUEUE}, "landing_queue and landing_dead_queue"),
        ({"landing_dead_queue": QUEUE}, "landing_queue and landing_dead_queue"),
        ({"landing_bucket": "a-drop,forebay-dev-x", "landing_topic": TOPIC}, "'forebay-dev-x' has a name"),
        ({"lake_bucket": "forebay-dev-lake"}, "lake_bucket 'forebay-dev-lake' has a name"),
        ({"landing_bucket": "drops,lake", "landing_topic": TOPIC, "lake_bucket": "lake"}, "is a landing bucket, too"),
        ({"landing_bucket": "drops", "landing_topic": TOPIC, "producer_accounts": PRODUCER}, "is yours"),
        ({"existing_roles": "a-", "analysts": "arn:aws:iam::123456789012:root"}, "existing_roles creates no roles"),
        ({"vpc_subnets": "subnet-0a1b2c3d:eu-west-1a"}, "vpc_subnets and vpc_security_groups"),
        ({"vpc_endpoints": "vpc-0a1b2c3d"}, "vpc_endpoints and vpc_route_tables"),
        ({"vpc_endpoints": "vpc-0a1b2c3d", "vpc_route_tables": "rtb-0a1b2c3d"}, "give vpc_subnets, too"),
    ],
)
def test_what_does_not_fit_together_is_refused(context: dict[str, Any], said: str) -> None:
    with pytest.raises(InvalidConfiguration) as refused:
        settings_in(context)
    assert said in str(refused.value)


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("landing_bucket", "drops,,more"),
        ("landing_bucket", "drops, more"),
        ("vpc_subnets", "subnet-0a1b2c3d"),
        ("vpc_subnets", "subnet-0a1b2c3d:eu-west-1"),
        ("producer_accounts", "12345"),
        ("analysts", "*"),
        ("database", "Games"),
        ("lake_prefix", "games"),
        ("lake_prefix", "_forebay/"),
        ("lake_prefix", "games*/"),
        ("lake_prefix", "a//b/"),
    ],
)
def test_what_looks_wrong_is_refused(name: str, value: str) -> None:
    with pytest.raises(InvalidConfiguration, match=name):
        settings_in({name: value})
