"""The stream's own writes, from the very first one: the driver dies right after each, and the next run goes on from there.

Spark writes its logs through S3A, which a proxy stands before. Once the chosen write is done, the proxy refuses everything, as
to a driver that is gone: nothing is tidied up in S3.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

from forebay import declaration
from forebay_local.twin.twin import Twin
from tests.fault_proxy import Answer, FaultProxy, Forward, Request, answered
from tests.journey.story import Story, event, lines, story

EXAMPLE = Path(declaration.__file__).parent / "example"
WRITES = [
    ("PUT", r"/stream/metadata$"),
    ("PUT", r"/stream/offsets/0$"),
    ("PUT", r"/stream/commits/0$"),
]
"""In the order in which a new stream makes them."""


class Driver:
    """Dies after a write. `died` says whether it came to that."""

    def __init__(self, method: str, pattern: str) -> None:
        self._method, self._pattern, self.died = method, re.compile(pattern), False

    def __call__(self, request: Request, forward: Forward) -> Answer | None:
        if self.died:
            return answered(403, "AccessDenied")(request, forward)
        answer = forward(request)
        self.died = request.method == self._method and self._pattern.search(request.path) is not None
        return answer


@pytest.mark.deep
def test_killed_after_each_write_of_the_stream_every_row_stands_exactly_once(twin: Twin, spark: SparkSession) -> None:
    with story(twin) as told, FaultProxy(int(twin.endpoint.rsplit(":", 1)[1])) as proxy:
        bucket = f"lake-{told.name}"
        where = {"CreateBucketConfiguration": {"LocationConstraint": twin.region}}
        twin.client("s3").create_bucket(Bucket=bucket, **where)
        told.place, told.service = f"s3://{bucket}/lake", str(EXAMPLE)
        jvm: Any = spark.sparkContext
        jvm._jsc.hadoopConfiguration().set(f"fs.s3a.bucket.{bucket}.endpoint", proxy.url)
        for number in range(4):
            told.put(f"{number}.json", lines([event("alpha", number)]))
        for write in WRITES:
            dies_after(told, proxy, *write)
        proxy.forget()
        told.take_in(wait_s=1, max_files_per_batch=2, visibility_timeout_s=10)

        sums = told.accounts()
        assert sums.differences() == []
        assert sums.files == {"loaded": 4}
        assert sorted(row["event_id"] for row in told.rows("alpha")) == [f"alpha-{number}" for number in range(4)]
        assert told.waiting() == (0, 0)


def dies_after(told: Story, proxy: FaultProxy, method: str, pattern: str) -> None:
    driver = Driver(method, pattern)
    proxy.forget()
    proxy.on("*", ".", then=driver, times=None)
    with pytest.raises(Exception, match=r"AccessDenied|403|Forbidden"):
        told.take_in(wait_s=1, max_files_per_batch=2, visibility_timeout_s=10)
    assert driver.died, f"no {method} of {pattern} came"
