"""Checks at the start of a job, before it receives anything from the queue, that everything it needs is available.

In: a session, or none for a job without Spark. Out: an event with the versions that were found, or `InvalidConfiguration` with
every missing class and module. Without this, the first batch would report a missing class as `'JavaPackage' object is not
callable`.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from importlib import metadata
from typing import TYPE_CHECKING, Any

from forebay.errors import InvalidConfiguration, Problem
from forebay.events import Emit, Event
from forebay.spark.session import CHECKPOINT_FILES, LOG_STORE

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

MODULES = {
    "boto3": "boto3",
    "delta.tables": "delta-spark",
    "numpy": "numpy",
    "pyarrow": "pyarrow",
    "pydantic": "pydantic",
}
"""Each with the distribution that has it."""
OF_SPARK = ("delta.tables",)
CLASSES = {
    "Delta Kernel's tables": "io.delta.kernel.Table",
    "Delta Kernel's engine": "io.delta.kernel.defaults.engine.DefaultEngine",
    "Delta for Spark": "io.delta.sql.DeltaSparkSessionExtension",
    "the log store": LOG_STORE,
    "the checkpoint's files": CHECKPOINT_FILES,
    "S3A": "org.apache.hadoop.fs.s3a.S3AFileSystem",
}
OF_JOB = (
    "the job's arguments name it: deploy again, or see --extra-jars, --datalake-formats and --additional-python-modules"
)


@dataclass(frozen=True, kw_only=True)
class StockTaken(Event):
    """The software of a job: versions of its modules, and the jars of its classes. A job without Spark has neither Spark nor
    classes."""

    spark: str | None = None
    modules: dict[str, str]
    classes: dict[str, str] | None = None


def take_stock(spark: SparkSession, emit: Emit, *, module: Callable[[str], Any] = importlib.import_module) -> None:
    modules = {name: _version(name, module) for name in MODULES}
    classes = {name: _jar(spark._jvm, name) for name in CLASSES.values()}
    problems = list(_missing(modules, classes))
    if problems:
        raise InvalidConfiguration(problems)
    emit(
        StockTaken(
            spark=spark.version,
            modules={name: version for name, version in modules.items() if version},
            classes={name: jar for name, jar in classes.items() if jar},
        )
    )


def stock_of_modules() -> StockTaken:
    """For a job that starts no Spark. To be called before what needs the modules is imported."""
    modules = {name: _version(name, importlib.import_module) for name in MODULES if name not in OF_SPARK}
    problems = list(_missing_modules(modules))
    if problems:
        raise InvalidConfiguration(problems)
    return StockTaken(modules=modules)


def _missing(modules: dict[str, str], classes: dict[str, str]) -> Iterator[Problem]:
    yield from _missing_modules(modules)
    for what, name in CLASSES.items():
        if not classes[name]:
            yield Problem(f"Java class {name}", f"is not on the class path, and {what} is needed", OF_JOB)


def _missing_modules(modules: dict[str, str]) -> Iterator[Problem]:
    for name, version in modules.items():
        if not version:
            yield Problem(f"Python module {name}", "cannot be imported by this job", OF_JOB)


def _version(name: str, load: Callable[[str], Any]) -> str:
    try:
        load(name)
    except ImportError:
        return ""
    try:
        return metadata.version(MODULES[name])
    except metadata.PackageNotFoundError:  # a platform may bring a module without saying which
        return "unknown"


def _jar(jvm: Any, name: str) -> str:
    """Looks the class up as our code will: py4j treats an unknown name as a package, and complains later."""
    from py4j.java_gateway import JavaClass

    found = jvm
    for part in name.split("."):
        found = getattr(found, part)
    if not isinstance(found, JavaClass):
        return ""
    of_class = jvm.java.lang.Class.forName(name, False, jvm.Thread.currentThread().getContextClassLoader())
    source = of_class.getProtectionDomain().getCodeSource()
    return str(source.getLocation()).rpartition("/")[2] if source is not None else "unknown"
