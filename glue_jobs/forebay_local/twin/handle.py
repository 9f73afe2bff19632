"""Lambda's runtime for a handler, in a process that the twin starts: the event on stdin, the answer on stdout.

A script, not to be imported: it knows nothing of forebay, so that a function runs with what its own code brings.
"""

import importlib
import json
import os
import sys
import traceback
import uuid


class Context:
    function_name = os.environ["AWS_LAMBDA_FUNCTION_NAME"]
    function_version = os.environ["AWS_LAMBDA_FUNCTION_VERSION"]
    memory_limit_in_mb = os.environ["AWS_LAMBDA_FUNCTION_MEMORY_SIZE"]
    log_group_name = os.environ["AWS_LAMBDA_LOG_GROUP_NAME"]
    invoked_function_arn = os.environ["_FUNCTION_ARN"]
    aws_request_id = str(uuid.uuid4())

    def get_remaining_time_in_millis(self) -> int:
        return 60_000


def main() -> None:
    # In the place of this script's own folder, where an `s3.py` or a `glue.py` lies that nobody may import by mistake.
    sys.path[0] = os.environ["LAMBDA_TASK_ROOT"]
    answer = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)  # what a handler prints is its log
    module, _, name = os.environ["_HANDLER"].rpartition(".")
    try:
        handle = getattr(importlib.import_module(module.replace("/", ".")), name)
        result = {"answer": handle(json.load(sys.stdin), Context())}
        text = json.dumps(result)
    except Exception as failure:
        lines = traceback.format_exc().splitlines()
        text = json.dumps(
            {"error": {"errorType": type(failure).__name__, "errorMessage": str(failure), "stackTrace": lines}}
        )
    answer.write(text)
    answer.flush()


if __name__ == "__main__":
    main()
