"""Makes Lambda functions: one asset for all of them, a role and a log each.

The asset is put together from this repository alone, so that synth needs no network and the function runs what was tested.
Lambda brings boto3.
"""

from __future__ import annotations

import shutil
from collections.abc import Iterator
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
from infra.network import Network
from infra.review import acknowledge, acknowledge_nist
from infra.settings import Settings

ROOT = Path(__file__).resolve().parents[2]
MINUTES_AT_MOST = {"announce_files": 15, "plan_compaction": 5, "status_page": 5}
"""One minute for the others. Functions that read an object for each table take 15 s for a thousand tables: 2 ms of a processor
for each, and a function of 256 MB has a seventh of one."""
TICKS = ("start_ingest", "plan_compaction", "publish_freshness", "status_page")
"""They are called again soon, and what they missed is not worth doing late: Lambda itself would try twice more."""
OF_THE_PACKAGE = (
    "__init__.py",
    "address.py",
    "counted.py",
    "errors.py",
    "events.py",
    "landed_file.py",
    "nesting.py",
    "aws/__init__.py",
    "aws/announce.py",
    "aws/cloudwatch.py",
    "aws/console.py",
    "aws/emr.py",
    "aws/prices.py",
    "aws/prices.toml",
    "batch/__init__.py",
    "batch/events.py",
    "batch/reasons.py",
    "capacity/__init__.py",
    "capacity/pace.py",
    "capacity/rules.py",
    "capacity/waiting.py",
    "lake/__init__.py",
    "lake/layout.py",
    "operate/__init__.py",
    "operate/page/__init__.py",
    "operate/page/content.py",
    "operate/page/pictures.py",
    "operate/page/rendering.py",
    "operate/page/style.py",
    "operate/stack/__init__.py",
    "operate/stack/aws_answers.py",
    "operate/stack/cost.py",
)


class Functions(Construct):
    """Makes functions from the shared code."""

    def __init__(self, scope: Construct, construct_id: str, *, settings: Settings, key: kms.IKey) -> None:
        super().__init__(scope, construct_id)
        self._settings, self._key = settings, key
        self.all: list[lam.Function] = []
        with TemporaryDirectory() as folder:
            gather_code(Path(folder))
            self._code = lam.Code.from_asset(folder)
            self._code.bind(self)  # while the folder is there; functions take what was staged

    def make(self, name: str, **environment: str) -> lam.Function:
        """The function whose handler is in the folder of this name."""
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
            code=self._code,
            role=role,
            log_group=log,
            environment=environment,
            timeout=Duration.minutes(MINUTES_AT_MOST.get(name, 1)),
            memory_size=256,
            retry_attempts=0 if name in TICKS else None,
        )
        if network := Network.of(self._settings):
            network.put(function)
        else:
            acknowledge_nist(function, "LambdaInsideVPC", "the setting vpc_subnets puts it into a VPC")
        alone = "it runs for seconds, and a new account has too few concurrent runs to reserve any"
        acknowledge_nist(function, "LambdaConcurrency", alone)
        acknowledge_nist(
            function, "LambdaDLQ", "the clock calls it again, a caller waits for it, or a destination keeps it"
        )
        acknowledge(function, "L1", f"the Python that Glue {runtime.GLUE} runs, and that the tests run on")
        self.all.append(function)
        return function


def gather_code(folder: Path) -> None:
    """Everything a function imports, save what Lambda brings. Lambda keeps the modes of files, and a checkout made under a
    strict umask has modes that it cannot read."""
    for source, name in sorted(_sources()):
        to = folder / name
        to.parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(source, to)
        to.chmod(0o644)
    for place in (folder, *(path for path in folder.rglob("*") if path.is_dir())):
        place.chmod(0o755)


def _sources() -> Iterator[tuple[Path, Path]]:
    """Files, and where they go."""
    for file in (ROOT / "lambdas").rglob("*.py"):
        yield file, file.relative_to(ROOT)
    package = ROOT / "glue_jobs"
    for name in OF_THE_PACKAGE:
        yield package / "forebay" / name, Path("forebay", name)
