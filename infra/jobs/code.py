"""The code of all jobs: the package, the JVM libraries and the declarations.

Code goes to the account's asset bucket under the hash of its content, so a changed line or declaration changes a job's
arguments, and `cdk diff` shows it.
"""

from __future__ import annotations

import hashlib
import shutil
from pathlib import Path
from tempfile import TemporaryDirectory

from aws_cdk import FileAssetLocation, FileAssetPackaging, IStackSynthesizer, Stack, Stage
from aws_cdk import aws_s3_assets as assets
from constructs import Construct

from forebay.declaration.service import Service
from infra.bundle import KERNEL_JARS, LOG_STORE_JAR, built, package_zip
from infra.declarations import one_text
from infra.wheels import SUFFIX, wheels_zip


class JobCode(Construct):
    def __init__(
        self,
        scope: Construct,
        construct_id: str,
        *,
        service: Service,
        functions: Path | None = None,
        log_store_jar: Path = LOG_STORE_JAR,
    ) -> None:
        """`functions` is the folder of Python functions beside the declarations, if there is one."""
        super().__init__(scope, construct_id)
        self.jars = [
            assets.Asset(self, name, path=str(built(jar)))
            for name, jar in zip(
                ("LogStore", "KernelApi", "KernelDefaults"), (log_store_jar, *KERNEL_JARS), strict=True
            )
        ]
        with TemporaryDirectory() as folder:
            self.package = assets.Asset(
                self, "Package", path=str(package_zip(Path(folder, "forebay.zip"), functions=functions))
            )
            self.wheels = _named(self, wheels_zip(Path(folder, f"packages{SUFFIX}")))
            written = Path(folder, "service.toml")
            written.write_text(one_text(service))
            self.declarations = assets.Asset(self, "Declarations", path=str(written))

    @property
    def arguments(self) -> dict[str, str]:
        """The arguments of every job. Jobs follow the declarations in the lake, which `forebay tables push` changes; those of
        the deployment replace them if they are newer."""
        return {
            "--deployed_service": self.declarations.s3_object_url,
            "--extra-py-files": self.package.s3_object_url,
            "--extra-jars": ",".join(jar.s3_object_url for jar in self.jars),
        }

    @property
    def packages(self) -> dict[str, str]:
        """Packages that Glue lacks, installed from our own wheels: a job needs no package index and no internet."""
        return {
            "--additional-python-modules": self.wheels.s3_object_url,
            "--python-modules-installer-option": "--no-index",
        }


def _named(scope: Construct, file: Path) -> FileAssetLocation:
    """An asset whose place ends as the file's name does. `Asset` would keep the last suffix alone."""
    digest = hashlib.sha256(file.read_bytes()).hexdigest()
    staged = Path(Stage.of(scope).outdir, f"asset.{digest}{SUFFIX}")  # type: ignore[union-attr]  # an app is a stage
    shutil.copyfile(file, staged)
    return _synthesizer(Stack.of(scope)).add_file_asset(
        source_hash=f"{digest}{SUFFIX.removesuffix('.zip')}", file_name=staged.name, packaging=FileAssetPackaging.FILE
    )


def _synthesizer(stack: Stack) -> IStackSynthesizer:
    """Through jsii `stack.synthesizer` is the one that was given to the stack, not the copy which is bound to it. Where none
    was given it is the bound one."""
    try:
        stack.synthesizer.bind(stack)
    except RuntimeError as refused:
        if "StackSynthesizerOneStack" not in str(refused):
            raise
    return stack.synthesizer
