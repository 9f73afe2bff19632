"""What the stories share."""

from __future__ import annotations

from pathlib import Path

import pytest

from infra.emr_environment import emr_environment
from tests.cluster.relocatable_python import glibc_of_this_machine, relocatable_python


@pytest.fixture(scope="session")
def packed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The environment for EMR, with an interpreter in it, for an image whose glibc is this machine's."""
    folder = tmp_path_factory.mktemp("dist")
    return emr_environment(folder, interpreter=relocatable_python(), glibc=glibc_of_this_machine())
