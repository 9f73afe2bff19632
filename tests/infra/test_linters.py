"""What the linter of CloudFormation finds in the template. An exception has its reason here, and no other may be."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = pytest.mark.xdist_group("cdk")

CFN_EXCEPTIONS = {
    "W3005": "the CDK names a role with the policy that a run must find there; the role alone would be enough",
}


@pytest.mark.parametrize("which", ["made", "adopted"])
def test_cfn_lint_finds_nothing_in_any_region_where_the_service_is(
    request: pytest.FixtureRequest, which: str, tmp_path: Path
) -> None:
    service = request.getfixturevalue(which)
    (template,) = service.outdir.glob("*.template.json")
    cfn_lint = str(Path(sys.executable).with_name("cfn-lint"))
    command = [cfn_lint, "-t", str(template), "-f", "json", "-r", *REGIONS]
    ran = subprocess.run(command, capture_output=True, text=True, check=False, cwd=tmp_path)
    found = json.loads(ran.stdout)
    assert {one["Rule"]["Id"] for one in found} <= set(CFN_EXCEPTIONS), [
        f"{one['Rule']['Id']} {one['Message']}" for one in found if one["Rule"]["Id"] not in CFN_EXCEPTIONS
    ]


REGIONS = ("us-east-1", "us-west-2", "eu-west-1", "eu-central-1", "ap-northeast-1", "ap-southeast-2")
"""One of each kind; a region that lacks a type of resource would be named."""
