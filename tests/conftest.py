"""What all tests share: one warm Spark session a worker process, and one twin.

Tests that need a JVM are marked `jvm`, by themselves or because they ask for `spark`; `make quick` leaves them out. Costly ones
are marked `deep`; `make test` leaves them out, and `tests/cost.py` keeps the mark true.
"""

from __future__ import annotations

import gc
import os
import tempfile
from collections.abc import Iterator
from contextlib import ExitStack
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

import botocore.session
import pytest
from botocore.loaders import create_loader
from hypothesis import settings
from xdist.scheduler import LoadScopeScheduling

from tests.cost import uncounted

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from forebay_local.twin.twin import Twin

# A shared machine is slow at times; time never fails a test. More examples find more, when somebody has the time for them.
settings.register_profile("forebay", deadline=None, max_examples=int(os.environ.get("FOREBAY_EXAMPLES", "50")))
settings.load_profile("forebay")

# What a person set to have quiet runs is not what tests are about.
for name in ("FOREBAY_LOG", "FOREBAY_LAKE", "FOREBAY_SERVICE"):
    os.environ.pop(name, None)

# Tests are short: a second compiler that makes long runs quicker would only take their time. Without it the JVM reserves 48 MB
# for compiled code, which a suite fills: then it spends a quarter of its time on throwing code away and compiling it again.
# Spark compiles each plan that it has not seen to Java code. Nearly every plan of a suite is new and runs on a few rows, which
# takes its interpreter three quarters of the time. Tests about values ask for `compiled`.
# Adaptive execution and a second shuffle partition cost a fifth of the time and change nothing for a few rows. Tests of how
# large tables are written ask for `as_on_a_cluster`.
# Spark prints each plan for its UI, which is off: 3 % of the time in the long form, which is the default.
SMALL = {
    "spark.sql.adaptive.enabled": "false",
    "spark.sql.shuffle.partitions": "1",
    "spark.sql.ui.explainMode": "simple",
}
INTERPRETED = {"spark.sql.codegen.wholeStage": "false", "spark.sql.codegen.factoryMode": "NO_CODEGEN"}
os.environ["FOREBAY_JAVA_OPTIONS"] = " ".join(
    [
        "-XX:TieredStopAtLevel=1",
        "-XX:ReservedCodeCacheSize=256m",
        *(f"-D{name}={value}" for name, value in (INTERPRETED | SMALL).items()),
    ]
)

# Each session of boto3 reads and parses the descriptions of the services that it is asked for, which takes 30 to 150 ms. Tests
# make thousands of sessions.
botocore.session.create_loader = cache(create_loader)

AWS = (
    "AWS_ENDPOINT_URL",
    "AWS_ENDPOINT_URL_S3",
    "AWS_ENDPOINT_URL_SQS",
    "AWS_REGION",
    "AWS_DEFAULT_REGION",
    "AWS_PROFILE",
)


ONE_WORKER = ("tests/infra/", "tests/logstore/")
"""Folders whose files share something costly: a synthesized template, a driver."""


class ByFile(LoadScopeScheduling):
    """Files stay together on one worker, which has one session and one twin for all of them; and so do some folders.

    As many workers have a session as there are cores. To start one and to warm it up takes some 20 s of a core, which another
    worker uses better: it has the files without a JVM, as long as there are any.
    """

    def __init__(self, config: pytest.Config, log: Any) -> None:
        super().__init__(config, log)
        self.files_with_jvm = config.stash[FILES_WITH_JVM]

    def _split_scope(self, nodeid: str) -> str:
        file = nodeid.partition("::")[0]
        return next((folder for folder in ONE_WORKER if file.startswith(folder)), file)

    def _assign_work_unit(self, node: Any) -> None:
        if int(node.gateway.id.removeprefix("gw")) >= (os.cpu_count() or 1):
            with_jvm = {self._split_scope(file) for file in self.files_with_jvm.read_text().splitlines()}
            without = next((scope for scope in self.workqueue if scope not in with_jvm), None)
            if without is not None:
                self.workqueue.move_to_end(without, last=False)
        super()._assign_work_unit(node)


FILES_WITH_JVM = pytest.StashKey[Path]()
"""Where workers write them: who hands out tests knows nothing but their names."""


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> ByFile:
    return ByFile(config, log)


@pytest.hookimpl(optionalhook=True)
def pytest_configure_node(node: Any) -> None:
    if FILES_WITH_JVM not in node.config.stash:
        folder = tempfile.TemporaryDirectory(prefix="forebay-tests-")
        node.config.add_cleanup(folder.cleanup)
        node.config.stash[FILES_WITH_JVM] = Path(folder.name) / "files-with-jvm"
    node.workerinput["files-with-jvm"] = str(node.config.stash[FILES_WITH_JVM])


@pytest.hookimpl(tryfirst=True)
def pytest_collection_finish(session: pytest.Session) -> None:
    if told := getattr(session.config, "workerinput", {}).get("files-with-jvm"):
        files = {item.nodeid.partition("::")[0] for item in session.items if item.get_closest_marker("jvm")}
        Path(told).write_text("".join(f"{file}\n" for file in sorted(files)))


@pytest.hookimpl(wrapper=True)
def pytest_collection() -> Iterator[None]:
    """What is imported and collected stays: the garbage collector need not look at it again and again."""
    gc.disable()
    try:
        return (yield)
    finally:
        gc.freeze()
        gc.enable()


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Those that need a JVM come first: they take longest, and the others fill what is left."""
    for item in items:
        if {"spark", "start_driver"} & set(getattr(item, "fixturenames", ())):
            item.add_marker("jvm")
    items.sort(key=lambda item: (item.get_closest_marker("jvm") is None, "infra" not in item.path.parts))


@pytest.fixture(scope="session")
def twin(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Twin]:
    """S3, SNS and SQS on this machine, as the environment says from here on: to boto3, to S3A, to delta-rs."""
    from forebay_local.twin.twin import running

    with ExitStack() as stack:
        with uncounted():
            twin = stack.enter_context(running(tmp_path_factory.mktemp("twin")))
        before = {name: os.environ.pop(name, None) for name in (*AWS, *twin.env)}
        os.environ.update(twin.env)
        yield twin
        for name, value in before.items():
            os.environ.pop(name, None)
            if value is not None:
                os.environ[name] = value


@pytest.fixture(scope="session")
def spark(twin: Twin) -> Iterator[SparkSession]:
    """The session of this worker; its S3 is the twin."""
    from forebay.spark.session import session

    with uncounted():
        spark = session("forebay-tests", extra=SMALL)
    yield spark
    spark.stop()


@pytest.fixture(autouse=True)
def session_stays(request: pytest.FixtureRequest) -> Iterator[None]:
    """A test leaves the session's settings as it found them: one that did not made each VACUUM after it run 10,000 tasks. Delta
    adds some of its own."""
    if "spark" not in request.fixturenames:
        yield
        return
    spark = request.getfixturevalue("spark")
    before = _set_in(spark)
    yield
    assert before <= _set_in(spark)


def _set_in(spark: Any) -> set[str]:
    """The session's settings, in one call of the JVM. `conf.getAll` makes one for each setting, which takes 30 ms."""
    settings = spark._jsparkSession.conf().getAll().mkString("\0").split("\0")
    return {line for line in settings if not line.startswith("spark.databricks.delta.lastCommitVersionInSession -> ")}


@pytest.fixture
def compiled(spark: SparkSession) -> Iterator[None]:
    """Spark compiles plans, as it does by default."""
    for name in INTERPRETED:
        spark.conf.unset(name)
    yield
    for name, value in INTERPRETED.items():
        spark.conf.set(name, value)


@pytest.fixture
def as_on_a_cluster(spark: SparkSession) -> Iterator[None]:
    """Spark distributes rows as it does by default."""
    spark.conf.set("spark.sql.adaptive.enabled", "true")
    spark.conf.set("spark.sql.shuffle.partitions", "2")
    yield
    for name, value in SMALL.items():
        spark.conf.set(name, value)


@pytest.fixture
def lake(tmp_path: Path) -> str:
    """An empty lake in a folder."""
    return f"file://{tmp_path}/lake"
