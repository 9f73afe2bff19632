"""A synthesized cloud assembly (`cdk.out`), and its deployment into a twin: assets published, then the unchanged template.

Enters the folder; leaves the stack's outputs. `deploy` makes or updates the stack, as `cdk deploy` would. A folder without an
assembly, or without exactly one stack, is `InvalidConfiguration`; a refusal of CloudFormation is a `Halt` with its reason.
"""

from __future__ import annotations

import io
import json
import zipfile
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from botocore.exceptions import ClientError

from forebay.errors import Halt, InvalidConfiguration

ROLLED_BACK = "ROLLBACK_COMPLETE"
"""A stack whose creation failed. It can only be deleted."""
LARGEST_BODY = 51_200
"""The largest template in the request itself; a larger one goes through S3."""


@dataclass(frozen=True)
class Asset:
    """A file, or a folder to be zipped, and where it goes."""

    source: Path
    zipped: bool
    bucket: str
    key: str

    def body(self) -> bytes:
        return _zipped(self.source) if self.zipped else self.source.read_bytes()


@dataclass(frozen=True)
class Assembly:
    """One stack."""

    folder: Path
    stack: str
    template: str
    assets: tuple[Asset, ...]


def read(folder: Path) -> Assembly:
    try:
        artifacts = json.loads((folder / "manifest.json").read_text())["artifacts"]
        stacks = [(name, one) for name, one in artifacts.items() if one["type"] == "aws:cloudformation:stack"]
    except (OSError, ValueError, KeyError) as why:
        raise InvalidConfiguration.one(
            str(folder), f"is not a cloud assembly: {why}", "`make synth` writes one, cdk.out"
        ) from why
    if len(stacks) != 1:
        raise InvalidConfiguration.one(str(folder), f"has {len(stacks)} stacks", "the twin takes an assembly with one")
    ((name, stack),) = stacks
    properties = stack["properties"]
    template = (folder / properties["templateFile"]).read_text()
    files = json.loads((folder / f"{name}.assets.json").read_text())["files"]
    assets = tuple(_assets(folder, files.values()))
    return Assembly(folder, properties.get("stackName", name), template, assets)


def deploy(assembly: Assembly, *, client: Callable[[str], Any], account: str = "123456789012") -> Mapping[str, str]:
    """The outputs of the stack."""
    s3, cloudformation = client("s3"), client("cloudformation")
    region = s3.meta.region_name
    here = {"${AWS::AccountId}": account, "${AWS::Region}": region, "${AWS::Partition}": "aws"}
    bucket = ""
    for asset in assembly.assets:
        bucket = _resolved(asset.bucket, here)
        _make_bucket(s3, bucket)
        s3.put_object(Bucket=bucket, Key=_resolved(asset.key, here), Body=asset.body())
    _make_or_update(cloudformation, assembly, f"https://s3.{region}.amazonaws.com/{bucket}")
    (made,) = cloudformation.describe_stacks(StackName=assembly.stack)["Stacks"]
    return {output["OutputKey"]: output["OutputValue"] for output in made.get("Outputs", [])}


def _assets(folder: Path, files: Any) -> Any:
    for file in files:
        source = file["source"]
        for to in file["destinations"].values():
            yield Asset(folder / source["path"], source["packaging"] == "zip", to["bucketName"], to["objectKey"])


def _resolved(name: str, here: Mapping[str, str]) -> str:
    for placeholder, value in here.items():
        name = name.replace(placeholder, value)
    return name


def _make_bucket(s3: Any, name: str) -> None:
    where = {"CreateBucketConfiguration": {"LocationConstraint": s3.meta.region_name}}
    try:
        s3.create_bucket(Bucket=name, **where)
    except ClientError as refusal:
        if refusal.response["Error"]["Code"] != "BucketAlreadyOwnedByYou":
            raise


def _make_or_update(cloudformation: Any, assembly: Assembly, bucket_url: str) -> None:
    """The template is among the assets, under its hash."""
    arguments: dict[str, Any] = {"StackName": assembly.stack, "Capabilities": ["CAPABILITY_NAMED_IAM"]}
    if len(assembly.template.encode()) > LARGEST_BODY:
        (key,) = (asset.key for asset in assembly.assets if asset.source.name.endswith(".template.json"))
        arguments["TemplateURL"] = f"{bucket_url}/{key}"
    else:
        arguments["TemplateBody"] = assembly.template
    try:
        if _status(cloudformation, assembly.stack) == ROLLED_BACK:
            cloudformation.delete_stack(StackName=assembly.stack)
        try:
            cloudformation.create_stack(**arguments)
        except cloudformation.exceptions.AlreadyExistsException:
            _update(cloudformation, arguments)
    except ClientError as refusal:
        raise _failed(assembly, refusal.response["Error"]["Message"]) from refusal
    if _status(cloudformation, assembly.stack) == ROLLED_BACK:
        events = cloudformation.describe_stack_events(StackName=assembly.stack)["StackEvents"]
        raise _failed(assembly, next(one["ResourceStatusReason"] for one in events if one.get("ResourceStatusReason")))


def _update(cloudformation: Any, arguments: dict[str, Any]) -> None:
    try:
        cloudformation.update_stack(**arguments)
    except ClientError as why:
        if "No updates" not in str(why):
            raise


def _status(cloudformation: Any, stack: str) -> str:
    try:
        (found,) = cloudformation.describe_stacks(StackName=stack)["Stacks"]
    except ClientError:
        return ""
    return str(found["StackStatus"])


def _failed(assembly: Assembly, why: str) -> Halt:
    return Halt(f"{assembly.folder} cannot be deployed into the twin: {why}")


def _zipped(folder: Path) -> bytes:
    """The same bytes each time."""
    body = io.BytesIO()
    with zipfile.ZipFile(body, "w", zipfile.ZIP_DEFLATED) as archive:
        for file in sorted(path for path in folder.rglob("*") if path.is_file()):
            entry = zipfile.ZipInfo(file.relative_to(folder).as_posix(), (1980, 1, 1, 0, 0, 0))
            entry.external_attr = 0o644 << 16
            archive.writestr(entry, file.read_bytes(), zipfile.ZIP_DEFLATED)
    return body.getvalue()
