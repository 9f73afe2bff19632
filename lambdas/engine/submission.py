"""One definition of a job, as Glue has it, becomes what EMR Serverless is asked to run.

In: the definition and a run's own arguments, under Glue's names. Out: StartJobRun's request, save the application and the
token. EMR knows no definitions of jobs: the stack keeps them as parameters of Systems Manager.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any

from forebay.aws.emr import BEFORE

STREAMING = "gluestreaming"
FAILED_ATTEMPTS_AN_HOUR = 5
OF_GLUE = re.compile(
    r"--(conf|extra-.*|additional-.*|datalake-formats|enable-.*|custom-log.*|spark-event-logs-path|job-.*|class"
    r"|scriptLocation|TempDir)"
)
"""Arguments that Glue acts on; here they become something else, or nothing."""
DELTA = ("/usr/share/aws/delta/lib/delta-spark.jar", "/usr/share/aws/delta/lib/delta-storage.jar")
"""Where EMR has them."""
PYTHON = "./environment/bin/python"
VCPUS_OF_A_WORKER = {"G.1X": 4, "G.2X": 8, "G.4X": 16}
GB_OF_A_VCPU = 4
HEAP_GB_OF_A_VCPU = 2.5
"""As in a worker of Glue. The rest is Python's, which reads the files; EMR would leave it a tenth.
https://docs.aws.amazon.com/emr/latest/EMR-Serverless-UserGuide/jobs-spark.html"""
AT_FIRST = 3
"""Executors that EMR starts with, if it may have so many."""


def submission(definition: Mapping[str, Any], arguments: Mapping[str, str]) -> dict[str, Any]:
    given = {**definition["DefaultArguments"], **arguments}
    # A drain ends on its own; EMR restarts only continuous jobs, in another zone if necessary.
    streams = definition["Command"]["Name"] == STREAMING and given.get("--drain") != "true"
    driver = {
        "entryPoint": given.get("--scriptLocation", definition["Command"]["ScriptLocation"]),
        "entryPointArguments": [word for pair in _of_the_script(given) for word in pair],
        "sparkSubmitParameters": " ".join([*_parameters(given), *_workers(definition)]),
    }
    log = {"enabled": True, "logGroupName": f"{given['--custom-logGroup-prefix']}/output"}
    asked: dict[str, Any] = {
        "name": definition["Name"] + (BEFORE if "--scriptLocation" in arguments else ""),
        "executionRoleArn": definition["Role"],
        "mode": "STREAMING" if streams else "BATCH",
        "retryPolicy": {"maxFailedAttemptsPerHour": FAILED_ATTEMPTS_AN_HOUR} if streams else {"maxAttempts": 1},
        "jobDriver": {"sparkSubmit": driver},
        "configurationOverrides": {"monitoringConfiguration": {"cloudWatchLoggingConfiguration": log}},
    }
    if definition.get("Timeout"):
        asked["executionTimeoutMinutes"] = int(definition["Timeout"])
    return asked


def _of_the_script(given: Mapping[str, str]) -> Iterator[tuple[str, str]]:
    yield from ((name, value) for name, value in given.items() if not OF_GLUE.fullmatch(name))


def _parameters(given: Mapping[str, str]) -> Iterator[str]:
    jars = ",".join((*DELTA, given["--extra-jars"]))
    yield f"--conf spark.jars={jars} --conf spark.submit.pyFiles={given['--extra-py-files']}"
    yield f"--conf spark.archives={given['--additional-python-modules']}#environment"
    for name in ("PYSPARK_DRIVER_PYTHON", "PYSPARK_PYTHON"):
        yield f"--conf spark.emr-serverless.driverEnv.{name}={PYTHON}"
    yield f"--conf spark.executorEnv.PYSPARK_PYTHON={PYTHON}"
    yield from (f"--conf {pair.strip()}" for pair in given["--conf"].split(" --conf "))


def _workers(definition: Mapping[str, Any]) -> Iterator[str]:
    """One of them is the driver."""
    vcpus, executors = VCPUS_OF_A_WORKER[definition["WorkerType"]], max(1, int(definition["NumberOfWorkers"]) - 1)
    for role in ("driver", "executor"):
        yield f"--conf spark.{role}.cores={vcpus} --conf spark.{role}.memory={vcpus * HEAP_GB_OF_A_VCPU:.0f}g"
    yield f"--conf spark.emr-serverless.memoryOverheadFactor={GB_OF_A_VCPU / HEAP_GB_OF_A_VCPU - 1:g}"
    yield f"--conf spark.dynamicAllocation.maxExecutors={executors}"
    yield f"--conf spark.executor.instances={min(executors, AT_FIRST)}"
