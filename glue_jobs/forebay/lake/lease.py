"""One driver at a time: the holder of a folder's lease may work there; a second driver waits, or ends with a message.

In: a folder, such as a checkpoint. Out: a `Lease` that renews itself until it is released, with an epoch that grows with every
holder. A process that sleeps longer than its lease may lose it to another driver. `check` then halts; it is called before a
batch is marked as done.

In S3 the lease is one object, written with If-Match, so that of two drivers one wins. Its age is taken from S3's own clock
(the answer's Date against the object's Last-Modified), so no driver's clock needs to be right. In a folder it is a lock of the
operating system, which ends with its process.
"""

from __future__ import annotations

import fcntl
import json
import os
import socket
import threading
import time
import uuid
from collections.abc import Callable
from contextlib import suppress
from dataclasses import asdict, dataclass, replace
from email.utils import parsedate_to_datetime
from pathlib import Path
from typing import IO, Any, Protocol

from botocore.exceptions import BotoCoreError, ClientError

from forebay.address import bucket_and_key, is_s3, local_folder
from forebay.aws.client import client
from forebay.errors import Halt, InvalidConfiguration
from forebay.events import Emit, Event

OBJECT = "lease.json"
LASTS_S = 60.0
RENEWALS = 3
"""While a lease lasts."""


@dataclass(frozen=True)
class Holder:
    """The holder of a lease, for the error of a second driver. `id` distinguishes two holders with the same name of the machine
    and number of the process, as in containers."""

    who: str
    epoch: int
    lasts_s: float
    id: str = ""

    @classmethod
    def me(cls, epoch: int, lasts_s: float) -> Holder:
        return cls(f"process {os.getpid()} on {socket.gethostname()}", epoch, lasts_s, uuid.uuid4().hex)


@dataclass(frozen=True, kw_only=True)
class LeaseAwaited(Event):
    """Another driver holds a lease that this driver needs. If that driver is dead, its lease ends in `seconds`, and this driver
    continues. If it runs, this driver waits for `lease_wait_s`, then leaves."""

    place: str
    holder: str
    seconds: int | None


class Lease(Protocol):
    """A lease that is held."""

    epoch: int

    def check(self) -> None:
        """Halts if the lease is no longer ours."""

    def let_go(self) -> None:
        """Lets the next driver in at once. Harmless when run twice."""


def hold(folder: str, *, wait_s: float, lasts_s: float = LASTS_S, s3: Any = None, emit: Emit = lambda _: None) -> Lease:
    """Takes the lease, waiting for at most `wait_s`; `LeaseHeld` says who has it."""
    if is_s3(folder):
        return S3Lease.take(s3 or client("s3"), folder, wait_s=wait_s, lasts_s=lasts_s, emit=emit)
    return FolderLease.take(local_folder(folder), wait_s=wait_s, emit=emit)


def holder(folder: str, *, s3: Any = None) -> Holder | None:
    """The current holder of the lease, or None."""
    if not is_s3(folder):
        return FolderLease.holder(local_folder(folder))
    there = _look(s3 or client("s3"), *_place(folder))
    return there.holder if there and there.left_s > 0 else None


def renewed_lately(folder: str, *, s3: Any = None) -> float | None:
    """The seconds since the lease was renewed, if no renewal is missing: its holder lives, or died right after it.
    None where one was missed. A lock is held by a process that lives."""
    if not is_s3(folder):
        return 0.0 if FolderLease.holder(local_folder(folder)) else None
    there = _look(s3 or client("s3"), *_place(folder))
    lately = there is not None and there.left_s > 0 and there.age_s <= there.holder.lasts_s / RENEWALS
    return there.age_s if there and lately else None


def break_lease(folder: str, seen: Holder, *, s3: Any = None) -> None:
    """Ends the lease of the holder that was seen; `InvalidConfiguration` where somebody else has it by now, or where it is a
    lock."""
    if not is_s3(folder):
        raise InvalidConfiguration.one(
            folder, f"is locked by {seen.who}, which is running", "end the process: its lock ends with it"
        )
    s3 = s3 or client("s3")
    there = _look(s3, *_place(folder))
    if there is None or there.holder != seen or not _write(s3, *_place(folder), replace(seen, lasts_s=0), there.etag):
        raise InvalidConfiguration.one(
            folder, f"is no longer held by {seen.who}, or was renewed", "`forebay lease show` shows the holder"
        )


class LeaseHeld(Halt):
    """Somebody else holds it."""

    def __init__(self, folder: str, holder: str, wait_s: float) -> None:
        self.folder, self.holder, self.wait_s = folder, holder, wait_s
        super().__init__(
            f"{folder} is in use by {holder}, which did not end within {wait_s:g} s. Only one driver at a time may "
            "work there: stop the other one, then start again"
        )

    def __reduce__(self) -> tuple[type[LeaseHeld], tuple[str, str, float]]:
        return type(self), (self.folder, self.holder, self.wait_s)


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
        (bucket, key), until, told = _place(folder), clock() + wait_s, False
        while True:
            there = _look(s3, bucket, key)
            if there is None or there.left_s <= 0:
                holder = Holder.me(there.holder.epoch + 1 if there else 1, lasts_s)
                etag = _write_or_find(s3, bucket, key, holder, there.etag if there else None)
                if etag:
                    return cls(s3, bucket, key, etag, holder)
            if clock() >= until:
                raise LeaseHeld(folder, there.holder.who if there else "another driver", wait_s)
            if there and there.left_s > 0 and not told:
                told = True
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
                _write(self._s3, self._bucket, self._key, Holder(self._holder.who, self.epoch, 0), self._etag)
                self._lost = "it was released"

    def _look_again(self) -> None:
        with suppress(ClientError, BotoCoreError):  # nobody can take it before it is due
            there = _look(self._s3, self._bucket, self._key)
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
        etag = _write(self._s3, self._bucket, self._key, self._holder, self._etag)
        if etag is None:
            there = _look(self._s3, self._bucket, self._key)
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


def _place(folder: str) -> tuple[str, str]:
    bucket, prefix = bucket_and_key(folder)
    return bucket, f"{prefix}/{OBJECT}".lstrip("/")


def _look(s3: Any, bucket: str, key: str) -> _There | None:
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
        if etag := _write(s3, bucket, key, holder, over):
            return etag
    except (ClientError, BotoCoreError):
        there = _look(s3, bucket, key)
        if there is None or there.holder != holder:
            raise
        return there.etag
    there = _look(s3, bucket, key)
    return there.etag if there and there.holder == holder else None


def _write(s3: Any, bucket: str, key: str, holder: Holder, over: str | None) -> str | None:
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


class FolderLease:
    """A locked file; the operating system lets go of it when the process ends, however it ends."""

    def __init__(self, file: IO[str], epoch: int) -> None:
        self._file, self.epoch = file, epoch

    @classmethod
    def take(cls, folder: Path, *, wait_s: float, emit: Emit = lambda _: None) -> FolderLease:
        folder.mkdir(parents=True, exist_ok=True)
        file, until, told = (folder / OBJECT).open("a+"), time.monotonic() + wait_s, False
        while True:
            file.seek(0)
            try:
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                driver = json.loads(file.read() or "{}").get("who", "another driver")
                if time.monotonic() < until:
                    if not told:
                        told = True
                        emit(LeaseAwaited(place=str(folder), holder=driver, seconds=None))
                    time.sleep(0.1)
                    continue
                file.close()
                raise LeaseHeld(str(folder), driver, wait_s) from None
            held = Holder.me(json.loads(file.read() or '{"epoch": 0}')["epoch"] + 1, 0)
            file.truncate(0)
            file.write(json.dumps(asdict(held)))
            file.flush()
            return cls(file, held.epoch)

    @classmethod
    def holder(cls, folder: Path) -> Holder | None:
        try:
            file = (folder / OBJECT).open()
        except FileNotFoundError:
            return None
        with file:
            try:
                fcntl.flock(file, fcntl.LOCK_SH | fcntl.LOCK_NB)
            except BlockingIOError:
                return Holder(**json.loads(file.read()))
        return None

    def check(self) -> None:
        """Nobody can take a lock from a process that lives."""

    def let_go(self) -> None:
        self._file.close()
