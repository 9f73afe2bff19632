"""What a process of a stream imports: Spark starts several for each stream."""

from __future__ import annotations

import subprocess
import sys


def test_only_the_process_that_polls_imports_boto3_and_only_one_that_reads_files_their_readers() -> None:
    heavy = "('botocore', 'boto3', 'forebay.content', 'forebay.declaration', 'pydantic')"
    code = f"import sys, forebay.source.source; print([name for name in sys.modules if name.startswith({heavy})])"
    said = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout
    assert said.strip() == "[]"
