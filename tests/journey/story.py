"""What the journey tests tell their stories with: files put into S3, a run of the job, and the accounts afterwards."""

from __future__ import annotations

import gzip
import json
import threading
import uuid
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from forebay.events import Event
from forebay.jobs.ingest import ingest
from forebay.landed_file import LandedFile
from forebay.operate.lake_view import LakeView
from forebay.operate.looking.accounts import accounts
from forebay.privacy.keys import add_local_key
from forebay.privacy.secret import make_secret
from forebay.settings import IngestSettings
from forebay.upkeep.accounts.accounts import Accounts
from forebay_local.twin.twin import Twin


def event(game: str, number: int, **more: Any) -> dict[str, Any]:
    return {"game": game, "event": "tick", "event_id": f"{game}-{number}", "event_time": "2026-11-21T10:00:00Z", **more}


def lines(records: Iterable[Any], *, gz: bool = False) -> bytes:
    text = "".join((r if isinstance(r, str) else json.dumps(r)) + "\n" for r in records).encode()
    return gzip.compress(text) if gz else text


@dataclass
class Story:
    """One service on the shared twin: a folder of the landing bucket, a queue of its own, a lake of its own."""

    twin: Twin
    name: str = field(default_factory=lambda: uuid.uuid4().hex[:8])
    service: str = ""
    events: list[Event] = field(default_factory=list)
    queue_url: str = ""
    place: str = ""

    @property
    def lake(self) -> str:
        return self.place or f"s3://{self.twin.lake_bucket}/{self.name}"

    def declare_private(self, service: str, place: Path) -> str:
        """The service, once {place} holds its secret and key; returns the {vault}."""
        make_secret(f"{place}/secret")
        add_local_key(f"{place}/key")
        vault = f"s3://{self.twin.lake_bucket}/{self.name}-vault"
        declared = place / "service.toml"
        declared.write_text(service.format(place=place, vault=vault))
        self.service = str(declared)
        return vault

    def put(self, name: str, body: bytes, **more: Any) -> None:
        """Puts a file, and announces it as S3 would."""
        answer = self.twin.client("s3").put_object(Bucket=self.bucket, Key=f"in/{name}", Body=body, **more)
        self.announce(name, len(body), answer["ETag"], answer.get("VersionId"))

    def announce(self, name: str, size: int, etag: str, version: str | None = None) -> None:
        self.announce_files(LandedFile(self.bucket, f"in/{name}", size, etag.strip('"'), version))

    def announce_files(self, *files: LandedFile) -> None:
        from forebay_local.fabricate import body

        for file in files:
            self.twin.client("sqs").send_message(QueueUrl=self.queue_url, MessageBody=body([file]))

    @property
    def bucket(self) -> str:
        return f"landing-{self.name}"

    def run(self, *, wait_s: int = 0, **more: Any) -> Accounts:
        self.take_in(wait_s=wait_s, **more)
        return self.accounts()

    def take_in(self, *, wait_s: int = 0, **more: Any) -> None:
        """Everything, in drain mode. The twin's queue tells all that it has at once: no poll needs to wait."""
        settings = IngestSettings(
            lake=self.lake, queue_url=self.queue_url, service=self.service, drain=True, wait_s=wait_s, **more
        )
        ingest(settings, emit=self.events.append, stop=threading.Event())

    def accounts(self) -> Accounts:
        return accounts(LakeView(self.lake))

    def rows(self, table: str, sql: str = "select * from t") -> list[dict[str, Any]]:
        return LakeView(self.lake).query(table, sql)

    def waiting(self) -> tuple[int, int]:
        """Messages visible and in flight."""
        names = ["ApproximateNumberOfMessages", "ApproximateNumberOfMessagesNotVisible"]
        sqs = self.twin.client("sqs")
        found = sqs.get_queue_attributes(QueueUrl=self.queue_url, AttributeNames=names)["Attributes"]
        return int(found[names[0]]), int(found[names[1]])


@contextmanager
def story(twin: Twin) -> Iterator[Story]:
    told = Story(twin)
    where = {"CreateBucketConfiguration": {"LocationConstraint": twin.region}}
    twin.client("s3").create_bucket(Bucket=told.bucket, **where)
    told.queue_url = twin.client("sqs").create_queue(QueueName=f"arrivals-{told.name}")["QueueUrl"]
    yield told
