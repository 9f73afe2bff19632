"""What all jobs ship with: the package, the JVM libraries and the declarations.

Code goes to the account's asset bucket under the hash of its content, so a changed line or declaration changes a job's
arguments, and `cdk diff` shows it.
"""

from __future__ import annotations

from pathlib import Path
from tempfile import TemporaryDirectory

from aws_cdk import aws_s3_assets as assets
from constructs import Construct

from forebay.declaration.service import Service
from infra.bundle import KERNEL_JARS, LOG_STORE_JAR, built, package_zip
from infra.declarations import one_text

__all__ = ["JobCode"]


class JobCode(Construct):
    def __init__(
        self, scope: Construct, construct_id: str, *, service: Service, log_store_jar: Path = LOG_STORE_JAR
    ) -> None:
        super().__init__(scope, construct_id)
        self.jars = [
            assets.Asset(self, name, path=str(built(jar)))
            for name, jar in zip(
                ("LogStore", "KernelApi", "KernelDefaults"), (log_store_jar, *KERNEL_JARS), strict=True
            )
        ]
        with TemporaryDirectory() as folder:
            self.package = assets.Asset(self, "Package", path=str(package_zip(Path(folder, "forebay.zip"))))
            written = Path(folder, "service.toml")
            written.write_text(one_text(service))
            self.declarations = assets.Asset(self, "Declarations", path=str(written))

    @property
    def assets(self) -> tuple[assets.Asset, ...]:
        return self.package, *self.jars, self.declarations
