"""The Lambda functions: one asset for all of them, a role and a log each.

The asset is put together from this repository and from the installed powertools, so that synth needs no network and the
function runs what was tested.
"""

from __future__ import annotations

import shutil
from collections.abc import Mapping
from importlib import metadata
from pathlib import Path
from tempfile import TemporaryDirectory

from aws_cdk import Duration, RemovalPolicy
from aws_cdk import aws_iam as iam
from aws_cdk import aws_kms as kms
from aws_cdk import aws_lambda as lam
from aws_cdk import aws_logs as logs
from constructs import Construct

from forebay.spark import runtime
from infra import grants
from infra.logs import kept_for
from infra.review import acknowledge
from infra.settings import Settings

__all__ = ["Functions", "gather_code"]

ROOT = Path(__file__).resolve().parent.parent
MINUTES_AT_MOST = {"announce_files": 15}
"""One minute for the others."""
OF_THE_PACKAGE = (
    "__init__.py",
    "errors.py",
    "events.py",
    "landed_file.py",
    "aws/__init__.py",
    "aws/announce.py",
    "aws/cloudwatch.py",
)
DISTRIBUTIONS = ("aws-lambda-powertools", "jmespath", "typing-extensions")
"""boto3 is there already; everything here is pure Python, so it fits any processor."""


class Functions(Construct):
    """Makes functions from the shared code."""

    def __init__(self, scope: Construct, construct_id: str, *, settings: Settings, key: kms.IKey) -> None:
        super().__init__(scope, construct_id)
        self._settings, self._key = settings, key
        self.all: list[lam.Function] = []

    def make(self, environments: Mapping[str, Mapping[str, str]]) -> dict[str, lam.Function]:
        """One function for each name: the name is its folder's."""
        with TemporaryDirectory() as folder:
            gather_code(Path(folder))
            code = lam.Code.from_asset(folder)
            return {name: self._function(name, code, environment) for name, environment in environments.items()}

    def _function(self, name: str, code: lam.Code, environment: Mapping[str, str]) -> lam.Function:
        camel = name.title().replace("_", "")
        full_name = f"{self._settings.name}-{name.replace('_', '-')}"
        log = logs.LogGroup(
            self,
            f"{camel}Log",
            log_group_name=f"/{self._settings.name}/{name}",
            retention=kept_for(self._settings.log_days),
            encryption_key=self._key,
            removal_policy=RemovalPolicy.DESTROY,
        )
        role = iam.Role(self, f"{camel}Role", assumed_by=iam.ServicePrincipal("lambda.amazonaws.com"))
        grants.allow(role, "WriteLogs", ["logs:CreateLogStream", "logs:PutLogEvents"], [log.log_group_arn])
        function = lam.Function(
            self,
            camel,
            function_name=full_name,
            runtime=lam.Runtime(f"python{runtime.PYTHON}", lam.RuntimeFamily.PYTHON),
            architecture=lam.Architecture.ARM_64,
            handler=f"lambdas.{name}.handler.handle",
            code=code,
            role=role,
            log_group=log,
            environment={**environment},
            timeout=Duration.minutes(MINUTES_AT_MOST.get(name, 1)),
            memory_size=256,
        )
        acknowledge(function, "L1", f"the Python that Glue {runtime.GLUE} runs, and that the tests run on")
        self.all.append(function)
        return function


def gather_code(folder: Path) -> None:
    """Everything a function imports, save what Lambda brings."""
    skip = shutil.ignore_patterns("__pycache__", "*.pyc", "*.md")
    shutil.copytree(ROOT / "lambdas", folder / "lambdas", ignore=skip)
    for name in OF_THE_PACKAGE:
        (folder / "forebay" / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(ROOT / "glue_jobs" / "forebay" / name, folder / "forebay" / name)
    for distribution in DISTRIBUTIONS:
        for file in metadata.files(distribution) or ():
            if file.suffix == ".py" or file.name == "py.typed":
                (folder / file).parent.mkdir(parents=True, exist_ok=True)
                shutil.copy(file.locate(), folder / file)
