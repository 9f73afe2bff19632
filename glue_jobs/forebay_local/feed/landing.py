"""A plan carried out: its files put into the landing bucket, and, for chaos, messages sent to the queue by hand.

Errors of S3 or SQS are boto3's, raised after the puts under way have ended.
"""

from __future__ import annotations

import hashlib
import time
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from itertools import islice
from typing import TYPE_CHECKING, Any

from forebay.counted import counted
from forebay.errors import TryAgain
from forebay.landed_file import Identity, LandedFile
from forebay_local.feed.plan import DroppedFile
from forebay_local.feed.tally import Dropped, Tally

if TYPE_CHECKING:
    from forebay_local.fabricate import Message

ENTRIES = 10


def drop(
    s3: Any,
    bucket: str,
    files: Iterable[DroppedFile],
    *,
    rate: float | None = None,
    at_once: int = 4,
    on_put: Callable[[DroppedFile], None] = lambda file: None,
    clock: Callable[[], float] = time.monotonic,
    sleep: Callable[[float], None] = time.sleep,
) -> Dropped:
    """Put the files, `rate` a second or as quick as it goes, and say what landed.

    Dropping the same plan again puts the same bytes under the same keys: without versioning nothing new lands.
    """
    versions: dict[Identity, LandedFile] = {}
    contents: set[tuple[str, str]] = set()
    puts = put_bytes = 0
    tally = Tally()
    for file, landed in _put_all(s3, bucket, _paced(files, rate, clock, sleep), at_once):
        puts += 1
        put_bytes += len(file.body)
        versions.setdefault(landed.identity, landed)
        content = landed.key, hashlib.sha256(file.body).hexdigest()
        if content not in contents:
            contents.add(content)
            tally += file.tally
        on_put(file)
    return Dropped(puts, tuple(versions.values()), put_bytes, len(contents), tally)


def send_messages(sqs: Any, queue_url: str, messages: Iterable[Message]) -> int:
    """Send these to the queue beside what S3 sends by itself, and say how many; `forebay_local.fabricate.Chaos` makes them
    from `Dropped.versions`."""
    waiting, sent = iter(messages), 0
    while group := list(islice(waiting, ENTRIES)):
        entries = [
            {"Id": str(at), "MessageBody": message.body, "DelaySeconds": message.delay_s}
            for at, message in enumerate(group)
        ]
        refused = sqs.send_message_batch(QueueUrl=queue_url, Entries=entries).get("Failed", [])
        if refused:
            raise TryAgain(f"{queue_url} refused {counted(len(refused), 'message', of=len(group))}: {refused[0]}")
        sent += len(group)
    return sent


def _paced(
    files: Iterable[DroppedFile], rate: float | None, clock: Callable[[], float], sleep: Callable[[float], None]
) -> Iterator[DroppedFile]:
    began = clock()
    for at, file in enumerate(files):
        if rate:
            sleep(max(0.0, began + at / rate - clock()))
        yield file


def _put_all(
    s3: Any, bucket: str, files: Iterable[DroppedFile], at_once: int
) -> Iterator[tuple[DroppedFile, LandedFile]]:
    """In the order of the plan, with a few on their way; never more than those in memory."""
    under_way: deque[tuple[DroppedFile, Future[LandedFile]]] = deque()
    pool = ThreadPoolExecutor(at_once, thread_name_prefix="feed")
    try:
        for file in files:
            under_way.append((file, pool.submit(_put, s3, bucket, file)))
            while under_way and (len(under_way) >= at_once or under_way[0][1].done()):
                yield _landed(under_way)
        while under_way:
            yield _landed(under_way)
    finally:
        pool.shutdown(cancel_futures=True)


def _landed(under_way: deque[tuple[DroppedFile, Future[LandedFile]]]) -> tuple[DroppedFile, LandedFile]:
    file, put = under_way.popleft()
    return file, put.result()


def _put(s3: Any, bucket: str, file: DroppedFile) -> LandedFile:
    answer = s3.put_object(Bucket=bucket, Key=file.key, Body=file.body, ContentType="application/json")
    version = answer.get("VersionId")
    return LandedFile(bucket, file.key, len(file.body), answer["ETag"].strip('"'), version)
