"""Checks at the start of every job whether the lake is safe for more than one writer. If not, the job ends with a message.

Two clusters may write the same table only where creating a file is atomic. On `file:` and `hdfs:`, Delta's own log stores do
this by renaming. On S3, it requires our log store (`glue_jobs/java`), an S3A that can create conditionally, and a server that
honours `If-None-Match`. If one of them is missing, commits are lost without an error. So this is not a warning, but
`InvalidConfiguration`, with every problem found.

`refuse_unsafe_settings` reads settings and needs no Spark. `probe` asks the file system itself. It creates one small object
twice, with this job's log store and credentials, and expects the second to be refused. Both may run any number of times; a
probe removes its object.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit
from uuid import uuid4

from forebay.address import S3_SCHEMES
from forebay.errors import InvalidConfiguration, Problem
from forebay.events import Emit
from forebay.lake.guard import tell_unguarded
from forebay.lake.layout import PROBES
from forebay.spark.java_failure import causes
from forebay.spark.session import LOG_STORE, session
from forebay.spark.stock import take_stock

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

RENAMING_SCHEMES = ("", "file", "hdfs")

# S3A's settings that decide how a file is created, without their prefix `fs.s3a.` or `fs.s3a.bucket.<bucket>.`
FLAGS = "performance.flags"
PERFORMANCE = "create.performance"
CONDITIONAL = "create.conditional.enabled"


def session_for(lake: str, name: str, *, emit: Emit) -> SparkSession:
    """The session of this process, for a lake that proved to be safe for several writers. Whatever writes begins here."""
    spark = session(name)
    take_stock(spark, emit)
    probe(spark, lake)
    tell_unguarded(lake, emit=emit)
    return spark


def refuse_unsafe_settings(conf: Mapping[str, str], lake: str) -> None:
    """Raises `InvalidConfiguration` where these Spark settings would let writers of this lake overwrite each other's commits.

    `conf` is Spark's; it may have Hadoop's keys with or without the prefix `spark.hadoop.`.
    """
    scheme, bucket = scheme_and_bucket(lake)
    if scheme in RENAMING_SCHEMES:
        return
    problems = list(unsafe_settings(conf, scheme, bucket)) if scheme in S3_SCHEMES else [unknown_scheme(lake)]
    if problems:
        raise InvalidConfiguration(problems)


def probe(spark: SparkSession, lake: str) -> None:
    """Raises `InvalidConfiguration` unless this session's settings are safe and the lake's own file system proves to be.

    A lake on `file:` or `hdfs:` is taken at its word: Delta's log stores for them rename, which is atomic there.
    """
    refuse_unsafe_settings(dict(spark.sparkContext.getConf().getAll()), lake)
    if scheme_and_bucket(lake)[0] in S3_SCHEMES:
        CreateTwice(spark, lake).run()


# --- settings --------------------------------------------------------------------------------------------------------


def scheme_and_bucket(lake: str) -> tuple[str, str]:
    parts = urlsplit(lake)
    return parts.scheme.lower(), parts.netloc


def unknown_scheme(lake: str) -> Problem:
    problem = "no known log store keeps the commits of two writers apart on this kind of storage"
    return Problem(f"lake {lake}", problem, "use s3://, s3a://, hdfs:// or file:")


def unsafe_settings(conf: Mapping[str, str], scheme: str, bucket: str) -> Iterator[Problem]:
    yield from wrong_log_store(conf, scheme)
    yield from s3a_problems(conf, bucket)


def s3a_problems(conf: Mapping[str, str], bucket: str) -> Iterator[Problem]:
    for key, value, why in dangerous_s3a_settings(conf, bucket):
        own = f"fs.s3a.bucket.{bucket}.{key.partition('fs.s3a.')[2]}"
        suggestion = "remove it" if f".{bucket}." in key else f"remove it, or set {own} for the lake's bucket"
        yield Problem(key, f"`{value}` {why}", suggestion)


def wrong_log_store(conf: Mapping[str, str], scheme: str) -> Iterator[Problem]:
    key = f"spark.delta.logStore.{scheme}.impl"
    if (found := conf.get(key)) != LOG_STORE:
        named = f"is {found}" if found else "is not set, so Delta uses its own"
        yield Problem(key, f"{named}; two writers would lose commits", f"set it to {LOG_STORE}")
    for_all = "spark.delta.logStore.class"
    if for_all in conf:
        yield Problem(
            for_all,
            "names one log store for all schemes, which Delta does not allow together with forebay's",
            "remove it",
        )


def dangerous_s3a_settings(conf: Mapping[str, str], bucket: str) -> Iterator[tuple[str, str, str]]:
    """Key, value and why, of what is in force for this bucket; a setting of its own comes before the general one."""
    overwrites = "lets S3A create a file without checking whether it exists, so commits would be overwritten"
    key, flags = in_force(conf, bucket, FLAGS)
    if {"create", "*"} & set(re.split(r"[,\s]+", flags.lower())):
        yield key, flags, overwrites
    key, value = in_force(conf, bucket, PERFORMANCE)
    if value.strip().lower() == "true":
        yield key, value, overwrites
    key, value = in_force(conf, bucket, CONDITIONAL)
    if value.strip().lower() == "false":
        yield key, value, "disables the conditional writes that commits need"


def in_force(conf: Mapping[str, str], bucket: str, name: str) -> tuple[str, str]:
    """The key that decides and its value; both the last looked at and empty when none is set."""
    key = ""
    for key in (f"fs.s3a.bucket.{bucket}.{name}", f"fs.s3a.{name}"):
        for full in (f"spark.hadoop.{key}", key):
            if full in conf:
                return full, conf[full]
    return key, ""


# --- the probe -------------------------------------------------------------------------------------------------------


class CreateTwice:
    """One object, created twice by the class that commits: the real place, the real credentials, a real answer."""

    def __init__(self, spark: SparkSession, lake: str) -> None:
        session: Any = spark
        self._lake = lake
        self._jvm = session._jvm
        self._conf = session._jsparkSession.sessionState().newHadoopConf()
        self._path = self._jvm.org.apache.hadoop.fs.Path(f"{lake.rstrip('/')}/{PROBES}/{uuid4().hex}")

    def run(self) -> None:
        from py4j.protocol import Py4JError, Py4JJavaError
        from pyspark.errors import PySparkException

        try:
            self._must_be_set_up_safely()
            self._must_be_refused_the_second_time()
        except Py4JJavaError as failure:
            chain = [(name, java.getMessage()) for name, java in causes(failure.java_exception)]
            raise self._refusal(*next((one for one in chain if one[0] in REFUSALS), chain[0])) from failure
        except PySparkException as failure:
            # Errors with a Python class in PySpark, such as an illegal name of a bucket.
            raise self._refusal("", str(failure)) from failure
        except (Py4JError, TypeError) as failure:
            # py4j treats a missing class as a package, and calling that is a TypeError.
            where, what = f"class {LOG_STORE}", "is not on Spark's class path"
            raise InvalidConfiguration.one(where, what, "add forebay-logstore.jar to spark.jars") from failure

    def _must_be_set_up_safely(self) -> None:
        """Settings come from site files too, so this checks the settings of this bucket's file system."""
        made_with = self._path.getFileSystem(self._conf).getConf()
        keys = [f"fs.s3a.{name}" for name in (FLAGS, PERFORMANCE, CONDITIONAL)]
        conf = {key: str(value) for key in keys if (value := made_with.get(key)) is not None}
        problems = list(s3a_problems(conf, scheme_and_bucket(self._lake)[1]))
        if problems:
            raise InvalidConfiguration(problems)

    def _must_be_refused_the_second_time(self) -> None:
        store = getattr(self._jvm, LOG_STORE)(self._conf)
        self._create(store, "first")
        try:
            second_was_refused = self._was_refused(store)
        finally:
            self._clean_up()
        if not second_was_refused:
            problem = (
                "its server ignores If-None-Match, so one object could be created twice; two writers would lose commits"
            )
            raise InvalidConfiguration.one(
                f"lake {self._lake}", problem, "use Amazon S3, or a server with conditional writes"
            )

    def _was_refused(self, store: Any) -> bool:
        from py4j.protocol import Py4JJavaError

        try:
            self._create(store, "second")
        except Py4JJavaError as failure:
            if class_name(failure.java_exception) == "java.nio.file.FileAlreadyExistsException":
                return True
            raise
        return False

    def _create(self, store: Any, text: str) -> None:
        lines = self._jvm.java.util.Collections.singletonList(text).iterator()
        store.write(self._path, lines, False, self._conf)

    def _clean_up(self) -> None:
        """A role without permission to delete leaves a few bytes behind; the lake is accepted all the same."""
        from py4j.protocol import Py4JJavaError

        try:
            self._path.getFileSystem(self._conf).delete(self._path, False)
        except Py4JJavaError:
            pass

    def _refusal(self, java_class: str, message: str | None) -> InvalidConfiguration:
        what, suggestion = REFUSALS.get(java_class, ("a test commit failed", ""))
        reason = (message or java_class).strip().splitlines()[0]
        return InvalidConfiguration.one(f"lake {self._lake}", f"{what}: {reason}", suggestion)


def class_name(failure: Any) -> str:
    return str(failure.getClass().getName())


REFUSALS = {
    f"{LOG_STORE}$CannotCreateConditionally": (
        "its file system cannot create a file only if it does not exist",
        "use S3A of Hadoop 3.4.2 or newer, as on Glue 6.0",
    ),
    "java.nio.file.AccessDeniedException": (
        "writing to it is denied",
        "check the credentials, and that they allow GetObject and PutObject there",
    ),
    "org.apache.hadoop.fs.s3a.UnknownStoreException": ("there is no such bucket", "check its name and the region"),
    "org.apache.hadoop.fs.UnsupportedFileSystemException": (
        "no file system is configured for it",
        "set spark.hadoop.fs.s3.impl to org.apache.hadoop.fs.s3a.S3AFileSystem",
    ),
}
"""Messages for a person, by the class of the JVM's exception."""
