"""Lambda functions that run, without Docker: their deployed code, in a Python of its own, with their own environment.

Enters an invocation, from the API, a rule, a queue or a topic; leaves the handler's answer, or its error as Lambda words
it. Its output goes to the function's log group. The packages are this Python's, where Lambda would bring
boto3.

Fixed in moto 5.2.5: a function needs Docker, or answers without having run.
"""

from __future__ import annotations

import io
import json
import os
import subprocess
import sys
import tempfile
import threading
import zipfile
from functools import lru_cache
from pathlib import Path
from typing import Any

from moto.awslambda import models

from forebay_local.twin.clients import access_key, role_of
from forebay_local.twin.patch import Patch, apply

HANDLE = Path(__file__).with_name("handle.py")

_endpoint = ""
_unpacking = threading.Lock()


def install(endpoint: str) -> None:
    global _endpoint
    _endpoint = endpoint
    apply(PATCHES, relied_on)


def invoke_lambda(self: Any, event: Any = None) -> tuple[str, bool, str]:
    """The result that moto needs: the answer, whether it is an error, and the output."""
    with _unpacking:
        code = unpacked(self.code_sha_256, self.code_bytes)
    seconds = int(self.timeout or 3)
    try:
        ran = subprocess.run(
            [sys.executable, "-W", "ignore", str(HANDLE)],
            input=json.dumps(event or {}),
            env=environment(self, code),
            cwd=code,
            text=True,
            capture_output=True,
            timeout=seconds,
            check=False,
        )
        output = ran.stderr
        answer = json.loads(ran.stdout) if ran.stdout else _error("Runtime.ExitError", output[-500:])
    except subprocess.TimeoutExpired:
        output, answer = "", _error("Sandbox.Timedout", f"Task timed out after {seconds} seconds")
    self.logs_backend.ensure_log_group(self.logs_group_name)
    if answer.get("error"):
        # A rule or a topic has nobody to answer to; its log is the server's.
        print(
            f"{self.function_name}: {answer['error']['errorType']}: {answer['error']['errorMessage']}", file=sys.stderr
        )
        output += "\n".join(answer["error"].get("stackTrace", []))
    self.save_logs(output)
    return json.dumps(answer.get("error") or answer.get("answer")), bool(answer.get("error")), output


@lru_cache(maxsize=32)
def unpacked(sha_256: str, code: bytes) -> str:
    folder = tempfile.mkdtemp(prefix="forebay-function-")
    with zipfile.ZipFile(io.BytesIO(code)) as archive:
        archive.extractall(folder)
    return folder


def environment(function: Any, code: str) -> dict[str, str]:
    kept = ("PATH", "HOME", "LANG", "TMPDIR")
    return {
        **{name: os.environ[name] for name in kept if name in os.environ},
        **access_key(role_of(function.role), _endpoint),
        "AWS_ENDPOINT_URL": _endpoint,
        "AWS_REGION": function.region,
        "AWS_DEFAULT_REGION": function.region,
        "AWS_EC2_METADATA_DISABLED": "true",
        "AWS_LAMBDA_FUNCTION_NAME": function.function_name,
        "AWS_LAMBDA_FUNCTION_MEMORY_SIZE": str(function.memory_size),
        "AWS_LAMBDA_FUNCTION_VERSION": str(function.version),
        "AWS_LAMBDA_LOG_GROUP_NAME": function.logs_group_name,
        "LAMBDA_TASK_ROOT": code,
        "_HANDLER": function.handler,
        "_FUNCTION_ARN": function.function_arn,
        **{name: str(value) for name, value in function.environment_vars.items()},
    }


def _error(kind: str, message: str) -> dict[str, Any]:
    return {"error": {"errorType": kind, "errorMessage": message}}


PATCHES = (Patch(models.LambdaFunction, "_invoke_lambda", ("self", "event"), invoke_lambda),)


def relied_on() -> list[tuple[Any, str]]:
    return [(models.LambdaFunction, "save_logs")]
