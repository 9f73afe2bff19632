"""Whether the KMS keys can be used. Where one cannot, nothing else here may be measured, and few other messages arrive."""

from __future__ import annotations

from typing import Any

from lambdas.publish_freshness.events import KeysChecked

__all__ = ["check_keys"]


def check_keys(service: str, arns: list[str], kms: Any) -> KeysChecked:
    states = {arn: str(kms.describe_key(KeyId=arn)["KeyMetadata"]["KeyState"]) for arn in arns}
    bad = [f"{arn} is {state}" for arn, state in states.items() if state != "Enabled"]
    return KeysChecked(service=service, unusable=len(bad), which=", ".join(bad) or None)
