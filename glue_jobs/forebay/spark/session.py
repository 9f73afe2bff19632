"""The Spark, Delta and S3A settings, as data; one place for Glue, EMR and laptop.

`job_settings()` has what every engine needs for a correct and fast lake. `aws_settings(env)` makes S3A honour the standard AWS
environment variables that boto3 also honours, so that one command runs against AWS, the twin or any compatible server.
`laptop_settings()` is what two cores need. `session()` puts them together for local use. On Glue and EMR the first set comes
from the job's `--conf` arguments, and `session()` joins the existing session.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from forebay.address import S3_SCHEMES
from forebay.errors import InvalidConfiguration
from forebay.spark.jvm import launch
from forebay.spark.libraries import LOCK, NotFetched, fetched_once
from forebay.spark.machine import cores, jvm_gigabytes
from forebay.spark.runtime import CLASSES
from forebay.spark.signals import interrupts_wait

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

LOG_STORE = "io.forebay.logstore.S3ConditionalLogStore"
LOCAL_FILES = "io.forebay.local.LocalFiles"
CHECKPOINT_FILES = "io.forebay.stream.CheckpointFiles"
"""Our own Java: one jar, compiled from `glue_jobs/java`."""

VACUUM_TASKS = "spark.sql.sources.parallelPartitionDiscovery.parallelism"

CALLED_ALL_THE_TIME = ("org.apache.spark.sql.functions", "functions", "PythonUtils", "PythonSQLUtils", "PythonRDD")
"""Classes that PySpark names with each column."""

_PACKAGE_ROOT = Path(__file__).resolve().parents[2]

_MALLOC = {"MALLOC_ARENA_MAX": "1", "MALLOC_MMAP_THRESHOLD_": str(1 << 30), "MALLOC_TRIM_THRESHOLD_": str(1 << 30)}
"""Python workers keep freed memory for the next file. New memory for a file of tens of MB costs more, in page faults, than
reading the file."""


def session(name: str, *, env: Mapping[str, str] = os.environ, extra: Mapping[str, str] | None = None) -> SparkSession:
    """The session of this process: the one that is there, else a local one. Called twice, it gives the same one."""
    from pyspark.sql import SparkSession

    active = SparkSession.getActiveSession()
    if active is None and not on_a_cluster(env):
        # The planner of a Python data source and all workers must run this interpreter and find this package.
        os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
        os.environ.setdefault("PYSPARK_DRIVER_PYTHON", sys.executable)
        os.environ.setdefault("SPARK_LOCAL_IP", "127.0.0.1")
        settings = {**job_settings(), **aws_settings(env), **laptop_settings(env), **(extra or {})}
        active = _local_session({"spark.app.name": name, **settings})
    elif active is None:
        active = SparkSession.builder.appName(name).getOrCreate()
    _put_package_on_worker_path(active)
    for name, value in _MALLOC.items():
        active.sparkContext.environment.setdefault(name, value)
    _remember_classes(active)
    return active


def _remember_classes(session: Any) -> None:
    """py4j asks the JVM for a class each time that it is named, three hundred times in a small batch, and the JVM may then
    search all jars."""
    for name in CALLED_ALL_THE_TIME:
        vars(session._jvm).setdefault(name, getattr(session._jvm, name))


def job_settings() -> dict[str, str]:
    """The settings that every engine needs. Each line that is not plain Delta says why it is here."""
    return {
        "spark.sql.extensions": "io.delta.sql.DeltaSparkSessionExtension",
        "spark.sql.catalog.spark_catalog": "org.apache.spark.sql.delta.catalog.DeltaCatalog",
        # Two writers on S3 lose commits with Delta's default log store: see ARCHITECTURE.md, "The log store".
        **{f"spark.delta.logStore.{scheme}.impl": LOG_STORE for scheme in S3_SCHEMES},
        # Spark writes each file of a stream's checkpoint aside and renames it, which takes twelve requests to S3.
        "spark.sql.streaming.checkpointFileManagerClass": CHECKPOINT_FILES,
        "spark.hadoop.fs.s3.impl": "org.apache.hadoop.fs.s3a.S3AFileSystem",
        # One-partition snapshots: our tables' logs are small, and a shuffle for each of a thousand appends is not.
        "spark.databricks.delta.snapshotPartitions": "1",
        # An event may say 24:00, or a local time that a zone skipped; UTC has no such hours.
        "spark.sql.session.timeZone": "UTC",
        # Spark's default is INT96, which Arrow and delta-rs read in nanoseconds: they fail at years after 2262, such as 9999.
        "spark.sql.parquet.outputTimestampType": "TIMESTAMP_MICROS",
        "spark.sql.execution.arrow.pyspark.enabled": "true",
        # VACUUM lists a table's folders with this many tasks, also where there is one folder. The default is 10,000.
        VACUUM_TASKS: "64",
        # Without it Delta writes a VACUUM into the log on HDFS and in folders only. On S3 nobody could say what was deleted.
        "spark.databricks.delta.vacuum.logging.enabled": "true",
        # For each column, PySpark asks the JVM for the line of Python code: two of three calls of a small batch.
        "spark.python.sql.dataFrameDebugging.enabled": "false",
        # foreachBatch is our exactly-once protocol; speculative copies of a task would only read files twice.
        "spark.speculation": "false",
    }


def aws_settings(env: Mapping[str, str]) -> dict[str, str]:
    """The standard AWS variables, in S3A's words. Credentials follow the SDK's own chain (environment, profile, role)."""
    settings = {
        "spark.hadoop.fs.s3a.aws.credentials.provider": (
            "software.amazon.awssdk.auth.credentials.DefaultCredentialsProvider"
        ),
    }
    region = env.get("AWS_REGION") or env.get("AWS_DEFAULT_REGION")
    endpoint = env.get("AWS_ENDPOINT_URL_S3") or env.get("AWS_ENDPOINT_URL")
    if region:
        settings["spark.hadoop.fs.s3a.endpoint.region"] = region
    if endpoint:
        settings["spark.hadoop.fs.s3a.endpoint"] = endpoint
        # A server on a plain address has no DNS names for its buckets.
        settings["spark.hadoop.fs.s3a.path.style.access"] = "true"
        settings["spark.hadoop.fs.s3a.connection.ssl.enabled"] = str(endpoint.startswith("https")).lower()
    return settings


def laptop_settings(env: Mapping[str, str]) -> dict[str, str]:
    """The machine's cores and some of its memory: few shuffle partitions, no UI, no noise."""
    jar_folder = jars(env)
    found = sorted(str(jar) for jar in jar_folder.glob("*.jar"))
    if not found:
        raise InvalidConfiguration.one(
            str(jar_folder), "the JVM libraries are missing", "run `make setup`, or set FOREBAY_JARS to their folder"
        )
    log4j = _PACKAGE_ROOT / "forebay" / "spark" / "log4j2.properties"
    options = [f"-Dlog4j2.configurationFile=file:{log4j}", "-XX:+UseParallelGC"]
    if (jar_folder / CLASSES).exists():
        # Made for another classpath, it is of no use, and not worth a word.
        options += [f"-XX:SharedArchiveFile={jar_folder / CLASSES}", "-Xlog:cds=off", "-Xlog:cds+dynamic=off"]
    return {
        "spark.master": f"local[{cores()}]",
        "spark.driver.memory": f"{jvm_gigabytes()}g",
        "spark.driver.bindAddress": "127.0.0.1",
        "spark.driver.host": "127.0.0.1",
        "spark.driver.extraClassPath": os.pathsep.join(found),
        "spark.driver.defaultJavaOptions": env.get("FOREBAY_JAVA_OPTIONS", ""),
        "spark.driver.extraJavaOptions": " ".join(options),
        "spark.sql.shuffle.partitions": str(cores()),
        "spark.sql.warehouse.dir": str(Path(os.environ.get("TMPDIR", "/tmp")) / "forebay-warehouse"),
        VACUUM_TASKS: str(cores()),
        "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": "false",
        # Hadoop's own starts a process to see whether a file is a link, and another to set its permissions.
        "spark.hadoop.fs.file.impl": LOCAL_FILES,
        "spark.hadoop.fs.AbstractFileSystem.file.impl": f"{LOCAL_FILES}$Context",
        # Each thread of S3A's default pools costs memory, and a moto server has one core to answer them.
        "spark.hadoop.fs.s3a.threads.max": "16",
        "spark.hadoop.fs.s3a.connection.maximum": "64",
        # Without Hive's metastore the JVM starts a second sooner.
        "spark.sql.catalogImplementation": "in-memory",
    }


def jars(env: Mapping[str, str]) -> Path:
    """The folder of the JVM libraries: FOREBAY_JARS, or where set-up put them. A wheel fetches them at the first use."""
    if env.get("FOREBAY_JARS") or not LOCK.exists():
        return Path(env.get("FOREBAY_JARS") or _PACKAGE_ROOT.parent / ".forebay" / "jars")
    try:
        return fetched_once(env)
    except NotFetched as why:
        raise InvalidConfiguration.one("Spark", str(why)) from None


def on_a_cluster(env: Mapping[str, str]) -> bool:
    """True where spark-submit, Glue or EMR has already decided the settings."""
    return bool(env.get("GLUE_VERSION") or env.get("AWS_EMR_SERVERLESS") or env.get("SPARK_ENV_LOADED"))


def _local_session(settings: Mapping[str, str]) -> SparkSession:
    from pyspark import SparkConf, SparkContext
    from pyspark.sql import SparkSession

    if SparkContext._active_spark_context is None:
        conf = SparkConf().setAll(list(settings.items()))
        with interrupts_wait():
            SparkContext(conf=conf, gateway=launch(conf))
    return SparkSession.builder.config(map=dict(settings)).getOrCreate()


def _put_package_on_worker_path(spark: SparkSession) -> None:
    """A zip from `--py-files` is on the driver's path, but not on that of a data source's planner process. Spark's
    environment for new Python processes must name it before the source is registered."""
    environment = spark.sparkContext.environment
    paths = [str(_PACKAGE_ROOT), *filter(None, environment.get("PYTHONPATH", "").split(os.pathsep))]
    environment["PYTHONPATH"] = os.pathsep.join(dict.fromkeys(paths))
