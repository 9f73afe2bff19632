"""The environment for EMR starts clean: unpacked where its Python is and nothing else, it imports all that jobs do."""

from __future__ import annotations

import subprocess
import tarfile
from pathlib import Path

import pytest

from forebay.errors import InvalidConfiguration
from forebay.spark import runtime
from infra.bundle import package_zip
from infra.emr_environment import INTERPRETER, emr_environment, pack_interpreter
from tests.cluster.glue_python import ROOT, glue_python
from tests.cluster.relocatable_python import relocatable_python

WITHOUT_SPARK = (
    "import boto3, numpy, pyarrow.parquet, pydantic, sys, importlib.metadata as m\n"
    "from forebay.settings import CompactSettings, IngestSettings\n"
    "import forebay.aws.client, forebay.ledger.entry, forebay.upkeep.reconcile.job, forebay.content.reading\n"
    "assert m.version('delta-spark')\n"
    "print(sys.version_info[:2], [p for p in sys.path if 'site-packages' in p])"
)


def test_the_environment_starts_clean_and_imports_what_jobs_import(tmp_path: Path) -> None:
    packed = emr_environment(tmp_path / "dist")
    with tarfile.open(packed) as archive:
        archive.extractall(tmp_path / "environment", filter="data")
    interpreter = tmp_path / "bin" / f"python{runtime.PYTHON}"
    interpreter.parent.mkdir()
    interpreter.write_text(f'#!/bin/sh\nexec {glue_python().resolve()} -S "$@"\n')  # without anything installed there
    interpreter.chmod(0o755)
    package = package_zip(tmp_path / "forebay.zip")
    ran = subprocess.run(
        [str(tmp_path / "environment" / "bin" / "python"), "-c", WITHOUT_SPARK],
        cwd=tmp_path,
        env={"PATH": f"{interpreter.parent}:/usr/bin:/bin", "PYTHONPATH": str(package)},
        capture_output=True,
        text=True,
        check=False,
    )
    wanted = tuple(map(int, runtime.PYTHON.split(".")))
    assert (ran.stdout.strip(), ran.returncode) == (f"{wanted} []", 0), ran.stderr
    assert str(ROOT) not in ran.stderr


def test_an_environment_with_its_interpreter_needs_no_python_on_the_path(packed: Path, tmp_path: Path) -> None:
    """As in an image that has another Python, or none. The interpreter was built on another machine."""
    with tarfile.open(packed) as archive:
        archive.extractall(tmp_path / "environment", filter="data")
    package = package_zip(tmp_path / "forebay.zip")
    ran = subprocess.run(
        [str(tmp_path / "environment" / "bin" / "python"), "-c", f"{WITHOUT_SPARK}; import ssl; print(sys.prefix)"],
        cwd=tmp_path,
        env={"PATH": "/nowhere", "PYTHONPATH": str(package)},
        capture_output=True,
        text=True,
        check=False,
    )
    wanted = tuple(map(int, runtime.PYTHON.split(".")))
    said = f"{wanted} []\n{tmp_path / 'environment' / INTERPRETER}"
    assert (ran.stdout.strip(), ran.returncode) == (said, 0), ran.stderr


def test_an_interpreter_for_a_newer_linux_than_emrs_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InvalidConfiguration, match=r"needs glibc 2\.35, and the image has 2\.34"):
        pack_interpreter(relocatable_python(), tmp_path / INTERPRETER)
