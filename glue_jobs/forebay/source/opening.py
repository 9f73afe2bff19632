"""Opens the intake of a stream, with clients of its own. Only the process that polls the queue imports this.

In: the options. Out: the `Intake`, and a client for its metrics. `InvalidConfiguration` where no region is known.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import Any

from botocore.config import Config
from botocore.exceptions import NoRegionError

from forebay.aws.client import client
from forebay.errors import InvalidConfiguration
from forebay.events import Emit
from forebay.lake.objects import open_objects
from forebay.source.intake import Intake
from forebay.source.options import SourceOptions
from forebay.source.queue import Queue

_PATIENCE = Config(connect_timeout=2, read_timeout=5, retries={"total_max_attempts": 1, "mode": "standard"})
"""A metric must not delay a batch; numbers that could not be sent go with the next one."""


def open_intake(options: SourceOptions, *, emit: Emit, told_to_end: Callable[[], bool] = lambda: False) -> Intake:
    """The intake of one stream, with clients of its own. Nothing is asked before its first batch."""
    # One connection for each parallel request, and some for the first look, the renewing of visibility and the count.
    connections = Config(
        max_pool_connections=options.fetch_parallelism + 4,
        retries={"mode": "standard", "max_attempts": 3},
        read_timeout=60,
        connect_timeout=10,
        parameter_validation=False,  # a few percent of each request; ours are built in one place, and SQS checks them too
    )
    try:
        sqs = client("sqs", region=options.region_of_queue, endpoint_url=options.endpoint or None, config=connections)
    except NoRegionError as error:
        raise InvalidConfiguration.one("region", "is neither set nor in the environment", "an AWS region") from error
    queue = Queue(sqs, options.queue_url, visibility_timeout_s=options.visibility_timeout_s)
    started_by = os.getppid()  # the JVM; when it dies, its children get another parent
    return Intake(
        options,
        queue,
        open_objects(options.manifest_path),
        emit=emit,
        driver_lives=lambda: os.getppid() == started_by and not told_to_end(),
    )


def client_of_metrics() -> Any:
    return client("cloudwatch", config=_PATIENCE)
