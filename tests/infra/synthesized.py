"""A synthesized template, to ask for its resources; intrinsic functions are written as short text, `<LogicalId.Arn>`."""

from __future__ import annotations

import json
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pytest

from infra.app import build
from infra.bundle import package_zip
from infra.jobs import code

Resource = dict[str, Any]

_CONTEXT = json.loads((Path(__file__).resolve().parents[2] / "cdk.json").read_text())["context"]
FLAGS = {key: value for key, value in _CONTEXT.items() if key.startswith("@")}
"""The CDK's flags as they are in force; the settings of its environments are not."""


@dataclass(frozen=True)
class Synthesized:
    outdir: Path
    template: dict[str, Any]
    report: dict[str, Any]

    def of(self, kind: str) -> dict[str, Resource]:
        """Resources of a type, by logical id without its hash."""
        found = {k: r for k, r in self.template["Resources"].items() if r["Type"] == f"AWS::{kind}"}
        return {logical_id[:-8]: r for logical_id, r in found.items()}

    def one(self, kind: str, name: str) -> Resource:
        properties = self.of(kind)[name]["Properties"]
        assert isinstance(properties, dict)
        return properties

    def asset(self, reference: Any) -> Path:
        """What was staged for a place such as s3://assets/<hash>.zip."""
        digest = text(reference).rsplit("/", 1)[-1].split(".")[0]
        (found,) = self.outdir.glob(f"asset.{digest}*")
        return found

    def policies(self) -> dict[str, dict[str, list[str]]]:
        """Of each role: action -> resources that it may be done on."""
        found: dict[str, dict[str, list[str]]] = {}
        written = {
            **self.of("IAM::Policy"),
            **self.of("IAM::ManagedPolicy"),
        }  # what is too long for one is in the others
        for policy in written.values():
            for role in policy["Properties"]["Roles"]:
                rights = found.setdefault(text(role).strip("<>")[:-8], {})
                for statement in policy["Properties"]["PolicyDocument"]["Statement"]:
                    if statement["Effect"] == "Deny":
                        continue
                    for action in listed(statement["Action"]):
                        rights.setdefault(action, []).extend(map(text, listed(statement["Resource"])))
        return found


def synthesized(outdir: Path, *, reviewed: bool = True, **context: Any) -> Synthesized:
    """A review takes 4 s of CPU the first time: what is only deployed into the twin goes without."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(code, "package_zip", package_zip_once)
        app, stack = build(FLAGS | context, outdir=str(outdir), reviewed=reviewed)
        app.synth()
    template = json.loads((outdir / f"{stack.artifact_id}.template.json").read_text())
    report = json.loads((outdir / "validation-report.json").read_text()) if reviewed else {}
    return Synthesized(outdir, template, report)


def package_zip_once(to: Path, *, functions: Path | None = None) -> Path:
    """The same package is in dozens of templates. To compress it takes a fifth of a synth."""
    if functions is not None:
        return package_zip(to, functions=functions)
    to.write_bytes(_package())
    return to


@cache
def _package() -> bytes:
    with TemporaryDirectory() as folder:
        return package_zip(Path(folder, "package.zip")).read_bytes()


def listed(value: Any) -> list[Any]:
    return value if isinstance(value, list) else [value]


def text(value: Any) -> str:
    """`{"Fn::GetAtt": ["LakeABCD1234", "Arn"]}` is `<LakeABCD1234.Arn>`, without the account, region and partition."""
    if isinstance(value, str):
        return value.replace("${AWS::AccountId}-${AWS::Region}", "ACCOUNT")
    ((function, of),) = value.items()
    if function == "Fn::Join":
        return str(of[0]).join(map(text, of[1])).replace("<AWS::AccountId>-<AWS::Region>", "ACCOUNT")
    if function == "Fn::Sub":
        return text(of)
    return f"<{of}>" if function == "Ref" else f"<{'.'.join(of)}>"
