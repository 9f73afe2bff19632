"""The ingest job, as Glue, EMR and the laptop run it: file names from the queue become rows in tables, batch after
batch.

In: `IngestSettings`. It returns when it was asked to stop (`stop`, an interrupt, a termination, `forebay stop`), or, in a
drain, when the queue is empty. Settings that cannot work (a queue that does not exist, a lake that cannot be written safely)
are refused before anything is received from the queue.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from functools import partial
from typing import TYPE_CHECKING, Any

from forebay.aws.announce import announce
from forebay.aws.client import client, queue_client
from forebay.aws.preflight import check_lake, check_queue
from forebay.batch.batch import Batch
from forebay.content.limits import Limits
from forebay.declaration.kept.in_force import service_for
from forebay.declaration.kept.newest import Declarations
from forebay.declaration.service import Service
from forebay.declared_sql.check import check_expressions
from forebay.events import Emit
from forebay.jobs.declarations import DeclarationsChosen, keep_in_lake, loaded, place_of, take_up, with_deployed
from forebay.jobs.failures import plainly
from forebay.jobs.first_batch import begun_batch, first_batch, remove_unfinished_entries
from forebay.jobs.gate import Gate
from forebay.jobs.generation import generation_of
from forebay.jobs.lost_ledger import must_have_its_ledger
from forebay.jobs.lost_plan import must_have_its_plans
from forebay.jobs.merging import merging
from forebay.jobs.retry_at_start import retry_at_start
from forebay.jobs.service_name import must_be_of_service, must_fill_own_tables
from forebay.jobs.withheld import Announcer
from forebay.lake.layout import LEDGER, table_path, writer_of
from forebay.lake.lease import hold
from forebay.lake.objects import open_objects
from forebay.lake.paused import paused_tables
from forebay.lake.rollback_plan import must_not_be_half_rolled_back
from forebay.lake.s3_objects import s3_client
from forebay.lake.safety import session_for
from forebay.lake.stop import StopRequest
from forebay.ledger.ledger import Ledger
from forebay.merge.job import Merger
from forebay.settings import IngestSettings, names_in
from forebay.source.drain import Drain
from forebay.source.source import register
from forebay.spark.python_worker import freeze
from forebay.spark.signals import stopping_on_signals
from forebay.table.catalog import Catalog
from forebay.threads import in_threads
from forebay.upkeep.complete.look import Landing, Looker, periods_of
from forebay.upkeep.complete.tell import sender
from forebay.upkeep.complete.watch import Watch
from forebay.upkeep.erase.keeping import must_fit_lake

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.streaming.query import StreamingQuery

MERGED_AT_ONCE = 8
"""States, beside the batches. Most steps are small, and wait for S3 and for the driver."""


def ingest(settings: IngestSettings, *, emit: Emit, stop: threading.Event) -> None:
    """Runs until `stop` is set or the queue is drained. A batch that has begun is finished first."""
    try:
        _ingest(settings, emit, stop)
    except Exception as failure:
        if (plain := plainly(failure)) is failure:
            raise
        raise plain from failure


def _ingest(settings: IngestSettings, emit: Emit, stop: threading.Event) -> None:
    # A mistake in declarations that are named is found without AWS.
    named = service_for(settings.service, settings.lake, settings.deployed_service) if settings.service else None
    check_queue(settings.queue_url)
    check_lake(settings.lake)
    service = named or service_for("", settings.lake)
    must_fit_lake(settings.lake, service)
    spark = session_for(settings.lake, "forebay-ingest", emit=emit)
    check_expressions(spark, service)

    with alone(service, settings, emit) as still_ours, stopping_on_signals(stop):
        service = with_deployed(spark, service, settings, emit)
        emit(DeclarationsChosen(service=service.name, version=service.version, place=place_of(service, settings)))
        keep_in_lake(settings.lake, service)
        watch = watch_of(settings, emit)
        batch = batch_of(spark, service, settings, still_ours, emit, watch)
        try:
            watch.begin(service)
            batch.finish_earlier()
            retry_at_start(batch)
            again = announcer(batch, settings)
            merger = Merger(
                spark, settings.lake, logs=batch.logs, emit=emit, at_once=MERGED_AT_ONCE, catalog=batch.catalog
            )
            every_s, drain = settings.merge_every_s, settings.drain
            freeze()
            with merging(merger, lambda: batch.service, every_s, once_more=drain, emit=emit):
                run(names(spark, service, settings), Gate(batch, watch.batch_ended), settings, stop, again, watch)
            watch.look(at_once=True)
        finally:
            batch.close()


@contextmanager
def alone(service: Service, settings: IngestSettings, emit: Emit = lambda _: None) -> Iterator[Callable[[], None]]:
    """Makes this the only driver that loads this service's files into this lake, and the only one that uses this checkpoint.
    Yields a check."""
    with ExitStack() as leases:
        held = []
        for place in (writer_of(settings.lake, service.name), settings.checkpoint_folder):
            held.append(hold(place, wait_s=settings.lease_wait_s, emit=emit))
            leases.callback(held[-1].let_go)
        checkpoint = open_objects(settings.checkpoint_folder)
        StopRequest(checkpoint).forget()  # from now on, they are for this driver
        must_not_be_half_rolled_back(settings.lake)
        must_be_of_service(checkpoint, service.name)
        must_have_its_ledger(settings.lake, first_batch(checkpoint, service.name))
        must_have_its_plans(settings.lake, service.name, checkpoint)
        must_fill_own_tables(settings.lake, service)

        def still_ours() -> None:
            in_threads(lambda lease: lease.check(), held)

        yield still_ours


def watch_of(settings: IngestSettings, emit: Emit) -> Watch:
    """Looks whether hours and days are complete, where a feed declares when they are."""
    periods, landing = periods_of(settings.lake), Landing(s3_client, names_in(settings.landing_buckets))
    send = sender(partial(client, "events"))
    return Watch(settings.lake, periods, Looker(settings.lake, periods, landing, emit=emit), send, emit=emit)


def batch_of(
    spark: SparkSession,
    service: Service,
    settings: IngestSettings,
    still_ours: Callable[[], None],
    emit: Emit,
    watch: Watch,
) -> Batch:
    store = open_objects(settings.checkpoint_folder)
    ledger = Ledger(spark, settings.lake, service.name, service.shares_files_with)
    begun = begun_batch(store)
    return Batch(
        spark,
        service,
        lake=settings.lake,
        generation=partial(generation_of, store),
        ledger=ledger,
        emit=emit,
        limits=limits_of(settings),
        tables_at_once=settings.tables_at_once,
        still_ours=still_ours,
        late_commit_wait_s=settings.late_commit_wait_s,
        arriving=watch.arriving,
        may_have_begun=lambda batch: batch == begun,
        catalog=Catalog(client("glue"), settings.catalog, emit=emit) if settings.catalog else None,
        declarations=Declarations(
            service,
            settings.service,
            emit=emit,
            check=partial(take_up, spark, settings.lake),
            load=loaded,
            paused=partial(paused_tables, settings.lake),
        ),
    )


def limits_of(settings: IngestSettings) -> Limits:
    most = settings.max_file_bytes
    return Limits(task_memory_bytes=settings.task_memory_bytes, max_file_bytes=most, max_expanded_bytes=most)


def announcer(batch: Batch, settings: IngestSettings) -> Announcer:
    """The announcer of files that S3 withheld. It uses the queue, so that they arrive like all files."""
    ledger = open_objects(table_path(settings.lake, LEDGER))
    into_queue = partial(announce, queue_client(settings.queue_url), settings.queue_url)
    return Announcer(batch.service.name, batch.ledger.withheld, ledger, into_queue, emit=batch.emit)


def names(spark: SparkSession, service: Service, settings: IngestSettings) -> DataFrame:
    """The stream of file names."""
    register(spark)
    options: dict[str, Any] = {
        "queueUrl": settings.queue_url,
        "manifestPath": manifest_path(settings),
        "bucketAllowList": settings.landing_buckets,
        "withDebris": "true",  # the ledger says of each that it is ignored
        "withDeletes": str(service.on_delete == "forget").lower(),
        "maxFilesPerBatch": settings.max_files_per_batch,
        "visibilityTimeoutS": settings.visibility_timeout_s,
        "waitS": settings.wait_s,
        "everyS": 0 if settings.drain else round(settings.trigger_s),
        "drain": str(settings.drain).lower(),
        "drainCapS": settings.drain_cap_s,
        "metrics": settings.metrics,
        "service": service.name,
    }
    return spark.readStream.format("s3-sqs").options(**options).load()


def run(
    files: DataFrame,
    gate: Gate,
    settings: IngestSettings,
    stop: threading.Event,
    withheld: Announcer,
    watch: Watch,
) -> None:
    checkpoint = open_objects(settings.checkpoint_folder)
    request = StopRequest(checkpoint)
    remove_unfinished_entries(checkpoint)
    drain = Drain(open_objects(manifest_path(settings)))
    drain.begin()
    withheld.look()  # a drain takes in what is due now, and does not wait for what is due later
    writer = files.writeStream.queryName("forebay").foreachBatch(gate.process)
    writer = writer.option("checkpointLocation", f"{settings.checkpoint_folder}/stream")
    query = writer.trigger(processingTime="0 seconds").start()  # the source waits, unless a batch was full
    try:
        while not query.awaitTermination(1):
            if not settings.drain:
                withheld.look()
            watch.look()
            if stop.is_set() or request.asked() or (settings.drain and drain.over()):
                gate.close()
                query.stop()
    except Exception:
        # A termination of all processes ends Spark's planner, too, perhaps before anybody looks at `stop` here.
        if gate.failed or not (gate.closed or stop.is_set()):
            raise
    finally:
        gate.close()
        _stop_quietly(query)
    if request.asked():
        request.forget()


def manifest_path(settings: IngestSettings) -> str:
    return f"{settings.checkpoint_folder}/manifests"


def _stop_quietly(query: StreamingQuery) -> None:
    try:
        query.stop()
    except Exception:  # it ended with an error that is reported already
        pass
