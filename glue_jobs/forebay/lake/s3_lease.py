"""A lease that is an object in S3.

It is written with If-Match, so that of two drivers one wins. Its age is taken from S3's own clock (the answer's Date against
the object's Last-Modified), so no driver's clock needs to be right.
"""

from __future__ import annotations

import json
import threading
import time
import uuid
from collections.abc import Callable
from contextlib import suppress
from dataclasses import asdict, dataclass
from email.utils import parsedate_to_datetime
from typing import Any

from botocore.exceptions import BotoCoreError, ClientError

from forebay.address import bucket_and_key
from forebay.errors import Halt
from forebay.events import Emit
from forebay.lake.lease_holder import OBJECT, Holder, LeaseAwaited, LeaseHeld

RENEWALS = 3
"""While a lease lasts."""


class S3Lease:
    """An object that is written again and again, each time only if it is as we left it."""

    def __init__(self, s3: Any, bucket: str, key: str, etag: str, holder: Holder) -> None:
        self._s3, self._bucket, self._key, self._etag, self._holder = s3, bucket, key, etag, holder
        self.epoch = holder.epoch
        self._lost = ""
        self._renewed = time.monotonic()
        self._gone, self._lock = threading.Event(), threading.Lock()
        self._thread = threading.Thread(target=self._renew_for_ever, name="lease", daemon=True)
        self._thread.start()

    @classmethod
    def take(
        cls,
        s3: Any,
        folder: str,
        *,
        wait_s: float,
        lasts_s: float,
        clock: Callable[[], float] = time.monotonic,
        sleep: Callable[[float], None] = time.sleep,
        emit: Emit = lambda _: None,
    ) -> S3Lease:
        (bucket, key), until, reported = place(folder), clock() + wait_s, False
        while True:
            there = look(s3, bucket, key)
            if there is None or there.left_s <= 0:
                holder = Holder.me(there.holder.epoch + 1 if there else 1, lasts_s)
                etag = _write_or_find(s3, bucket, key, holder, there.etag if there else None)
                if etag:
                    return cls(s3, bucket, key, etag, holder)
            if clock() >= until:
                raise LeaseHeld(folder, there.holder.who if there else "another driver", wait_s)
            if there and there.left_s > 0 and not reported:
                reported = True
                emit(LeaseAwaited(place=folder, holder=there.holder.who, seconds=round(there.left_s)))
            sleep(min(1.0, max(0.05, there.left_s if there else 0.05)))

    def check(self) -> None:
        """Asks S3 each time: a lease that was broken may be another driver's seconds later, long before it is renewed."""
        if time.monotonic() - self._renewed > self._holder.lasts_s:
            self._renew()
        else:
            self._look_again()
        if self._lost:
            raise Halt(
                f"the lease on s3://{self._bucket}/{self._key} was lost: {self._lost}; the new holder processes this batch"
            )

    def let_go(self) -> None:
        """Ends the lease. Its object stays, with the holder and a duration of zero."""
        self._gone.set()
        self._thread.join()
        with self._lock:
            if not self._lost:
                write_over(self._s3, self._bucket, self._key, Holder(self._holder.who, self.epoch, 0), self._etag)
                self._lost = "it was released"

    def _look_again(self) -> None:
        with suppress(ClientError, BotoCoreError):  # nobody can take it before it is due
            there = look(self._s3, self._bucket, self._key)
            if not self._lost and (there is None or there.holder != self._holder):
                self._lost = _why(there)

    def _renew_for_ever(self) -> None:
        while not self._gone.wait(self._holder.lasts_s / RENEWALS):
            self._renew()

    def _renew(self) -> None:
        with self._lock:
            if self._lost:
                return
            try:
                self._write_again()
            except (ClientError, BotoCoreError) as trouble:
                if time.monotonic() - self._renewed > self._holder.lasts_s:
                    self._lost = f"it could not be renewed: {trouble}"

    def _write_again(self) -> None:
        etag = write_over(self._s3, self._bucket, self._key, self._holder, self._etag)
        if etag is None:
            there = look(self._s3, self._bucket, self._key)
            if there is None or there.holder != self._holder:
                self._lost = _why(there)
                return
            etag = there.etag  # our own renewal got through, and its answer did not
        self._etag, self._renewed = etag, time.monotonic()


@dataclass(frozen=True)
class _There:
    holder: Holder
    etag: str
    age_s: float

    @property
    def left_s(self) -> float:
        return self.holder.lasts_s - self.age_s


def _why(there: _There | None) -> str:
    """Why a lease was lost, from its current object."""
    if there is None:
        return "somebody deleted it"
    return f"{there.holder.who} holds it" if there.left_s > 0 else "somebody ended it"


def place(folder: str) -> tuple[str, str]:
    """The bucket and the key of the object."""
    bucket, prefix = bucket_and_key(folder)
    return bucket, f"{prefix}/{OBJECT}".lstrip("/")


def look(s3: Any, bucket: str, key: str) -> _There | None:
    """The current object; None without one."""
    try:
        answer = s3.get_object(Bucket=bucket, Key=key)
    except ClientError as refused:
        if refused.response.get("Error", {}).get("Code") in ("NoSuchKey", "404"):
            return None
        raise
    now = parsedate_to_datetime(answer["ResponseMetadata"]["HTTPHeaders"]["date"])
    age_s = (now - answer["LastModified"]).total_seconds()
    stored = json.loads(answer["Body"].read())
    holder = Holder(stored["who"], stored["epoch"], stored["lasts_s"], stored.get("id", ""))
    return _There(holder, answer["ETag"], age_s)


def _write_or_find(s3: Any, bucket: str, key: str, holder: Holder, over: str | None) -> str | None:
    """The new etag, also where the write got through and its answer did not: boto3 repeats such a write, and S3 refuses the
    second one. None when somebody else was quicker."""
    try:
        if etag := write_over(s3, bucket, key, holder, over):
            return etag
    except (ClientError, BotoCoreError):
        there = look(s3, bucket, key)
        if there is None or there.holder != holder:
            raise
        return there.etag
    there = look(s3, bucket, key)
    return there.etag if there and there.holder == holder else None


def write_over(s3: Any, bucket: str, key: str, holder: Holder, over: str | None) -> str | None:
    """The new etag; None when the object is not the one that we meant to write over."""
    condition = {"IfMatch": over} if over else {"IfNoneMatch": "*"}
    # Equal bytes have equal etags: without the nonce, whoever read it before a renewal could still write over it.
    text = json.dumps({**asdict(holder), "nonce": uuid.uuid4().hex}).encode()
    try:
        return str(s3.put_object(Bucket=bucket, Key=key, Body=text, **condition)["ETag"])
    except ClientError as refused:
        if refused.response.get("ResponseMetadata", {}).get("HTTPStatusCode") in (404, 409, 412):
            return None
        raise
