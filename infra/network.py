"""An existing VPC for jobs and functions: the configuration of Glue, EMR and Lambda, and the permissions.

With `vpc_endpoints` its subnets need no internet: the services that jobs and functions call get endpoints there. A VPC has one
endpoint with private DNS for a service. Where some are there already, leave the setting out and make the others.
"""

from __future__ import annotations

from dataclasses import dataclass

from aws_cdk import Aws, CfnCondition, Fn
from aws_cdk import aws_ec2 as ec2
from aws_cdk import aws_glue as glue
from aws_cdk import aws_iam as iam
from aws_cdk import aws_lambda as lam
from constructs import Construct

from infra import grants
from infra.forms import listed
from infra.settings import Settings

CALLED = ("sqs", "sns", "glue", "logs", "monitoring", "kms", "scheduler", "events")
"""The services that jobs and functions call, by the names of their endpoints. S3 has a gateway."""
CALLED_WITH_EMR = ("emr-serverless", "ssm")
OTHERWISE_IN_CHINA = ("monitoring", "sqs")
"""Names of endpoints that begin with `cn.` there. https://github.com/aws/aws-cdk/pull/25333"""
GLUES_TAG = "aws-glue-service-resource"


@dataclass(frozen=True)
class Network:
    """`zones`: of each subnet its zone."""

    name: str
    zones: dict[str, str]
    security_groups: tuple[str, ...]

    @classmethod
    def of(cls, settings: Settings) -> Network | None:
        if not settings.vpc_subnets:
            return None
        zones = dict(pair.split(":") for pair in listed(settings.vpc_subnets))
        return cls(settings.name, zones, tuple(listed(settings.vpc_security_groups)))

    @property
    def subnets(self) -> list[str]:
        return list(self.zones)

    @property
    def one_subnet_of_each_zone(self) -> list[str]:
        """As an endpoint has it; the others of a zone reach it there.
        https://docs.aws.amazon.com/vpc/latest/privatelink/create-interface-endpoint.html"""
        first: dict[str, str] = {}
        for subnet, zone in self.zones.items():
            first.setdefault(zone, subnet)
        return list(first.values())

    def connections(self, scope: Construct) -> list[glue.CfnConnection]:
        """One for each subnet: Glue takes the next where one has no addresses left."""
        network = Construct(scope, "Network")
        return [
            glue.CfnConnection(
                network,
                f"Connection{number or ''}",
                catalog_id=Aws.ACCOUNT_ID,
                connection_input=glue.CfnConnection.ConnectionInputProperty(
                    name=f"{self.name}-{subnet}",
                    connection_type="NETWORK",
                    physical_connection_requirements=glue.CfnConnection.PhysicalConnectionRequirementsProperty(
                        availability_zone=zone,  # the API requires it, although the subnet implies it
                        subnet_id=subnet,
                        security_group_id_list=list(self.security_groups),
                    ),
                ),
            )
            for number, (subnet, zone) in enumerate(self.zones.items())
        ]

    def let_glue_in(self, role: iam.IGrantable, connections: list[str]) -> None:
        """https://docs.aws.amazon.com/glue/latest/dg/create-service-policy.html"""
        here = f"{Aws.PARTITION}:ec2:{Aws.REGION}:{Aws.ACCOUNT_ID}"
        interfaces = f"arn:{here}:network-interface/*"
        places = [f"arn:{here}:subnet/{one}" for one in self.subnets]
        places += [f"arn:{here}:security-group/{one}" for one in self.security_groups]
        because = "an interface has its number when it is there"
        allow = grants.allow
        allow(role, "EnterVpc", ["ec2:CreateNetworkInterface"], [interfaces, *places], because=because)
        allow(role, "LeaveVpc", ["ec2:DeleteNetworkInterface"], [interfaces], because=because)
        tagged = {"ForAllValues:StringEquals": {"aws:TagKeys": [GLUES_TAG]}}
        allow(role, "TagInterfaces", ["ec2:CreateTags", "ec2:DeleteTags"], [interfaces], tagged, because=because)
        kinds = ("NetworkInterfaces", "RouteTables", "SecurityGroups", "Subnets", "VpcAttribute", "VpcEndpoints")
        looks = [f"ec2:Describe{kind}" for kind in kinds]
        allow(role, "LookAtVpc", looks, ["*"], because="what EC2 describes knows no resources")
        ours = f"arn:{Aws.PARTITION}:glue:{Aws.REGION}:{Aws.ACCOUNT_ID}"
        places = [f"{ours}:catalog", *(f"{ours}:connection/{name}" for name in connections)]
        allow(role, "ReadConnections", ["glue:GetConnection"], places)

    def put(self, function: lam.Function) -> None:
        """Lambda requires these permissions on all interfaces when the function is created.
        https://docs.aws.amazon.com/lambda/latest/dg/configuration-vpc.html"""
        raw = function.node.default_child
        assert isinstance(raw, lam.CfnFunction)
        raw.vpc_config = lam.CfnFunction.VpcConfigProperty(
            subnet_ids=self.subnets, security_group_ids=list(self.security_groups)
        )
        actions = ("Create", "Delete", "Describe")
        named = [f"ec2:{action}NetworkInterface{'s' if action == 'Describe' else ''}" for action in actions]
        named += ["ec2:DescribeSubnets", "ec2:AssignPrivateIpAddresses", "ec2:UnassignPrivateIpAddresses"]
        grants.allow(function, "EnterVpc", named, ["*"], because="Lambda refuses a role without these permissions")


def make_endpoints(scope: Construct, settings: Settings) -> None:
    network = Network.of(settings)
    if network is None or not settings.vpc_endpoints:
        return
    endpoints = Construct(scope, "Endpoints")
    china = CfnCondition(endpoints, "InChina", expression=Fn.condition_equals(Aws.PARTITION, "aws-cn"))
    ec2.CfnVPCEndpoint(
        endpoints,
        "S3",
        vpc_endpoint_type="Gateway",
        vpc_id=settings.vpc_endpoints,
        service_name=_service("s3"),
        route_table_ids=listed(settings.vpc_route_tables),
    )
    for name in (*CALLED, *(CALLED_WITH_EMR if settings.engine == "emr-serverless" else ())):
        ec2.CfnVPCEndpoint(
            endpoints,
            name.title().replace("-", ""),
            vpc_endpoint_type="Interface",
            vpc_id=settings.vpc_endpoints,
            service_name=_service(name, china),
            subnet_ids=network.one_subnet_of_each_zone,
            security_group_ids=list(network.security_groups),
            private_dns_enabled=True,
        )


def _service(name: str, china: CfnCondition | None = None) -> str:
    usual = f"com.amazonaws.{Aws.REGION}.{name}"
    if china is None or name not in OTHERWISE_IN_CHINA:
        return usual
    return Fn.condition_if(china.logical_id, f"cn.{usual}", usual).to_string()
