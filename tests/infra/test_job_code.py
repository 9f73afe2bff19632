"""What jobs ship with must be there before the app is synthesized."""

from __future__ import annotations

from pathlib import Path

import aws_cdk as cdk
import pytest

from forebay.declaration.service import builtin_service
from forebay.errors import Misdeclared
from infra.jobs.code import JobCode


def test_without_the_built_log_store_the_app_says_what_to_run(tmp_path: Path) -> None:
    with pytest.raises(Misdeclared, match="make setup"):
        JobCode(cdk.Stack(), "Code", service=builtin_service(), log_store_jar=tmp_path / "missing.jar")
