"""Histories on paper of a bucket whose versioning is switched on and suspended in turn. What is put while it is suspended has
the version "null", and takes the place of an earlier version "null" only. All bytes stand once; of a key that is replaced,
those of the newest version.

FOREBAY_PAPER_HISTORIES and FOREBAY_PAPER_HISTORY are those of `test_paper_histories`.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from dataclasses import replace
from datetime import datetime

import pytest

from forebay.landed_file import LandedFile
from tests.batch.model import Put
from tests.batch.paper import Record
from tests.batch.test_paper_histories import TABLES, Play, in_time, play_all


class NullVersions(Play):
    def __init__(self, seed: int, patch: pytest.MonkeyPatch) -> None:
        super().__init__(seed, patch)
        self.versioned, self.beside, self.suspended = True, None, False
        self.keys = ("add/a", "new/a", "new/b")
        self.notices: list[LandedFile] = []

    def more_deeds(self) -> dict[Callable[[str], None], int]:
        return {self.switch: 8, self.put: 8, self.notice_again: 5}

    def do(self, deeds: dict[Callable[[str], None], int], most: int) -> None:
        super().do(deeds, 2 * most)

    def switch(self, key: str) -> None:
        self.suspended = not self.suspended
        self.said.append(f"suspended: {self.suspended}")

    def put(self, key: str) -> None:
        number = self.versions[key] = self.versions[key] + 1
        version = "null" if self.suspended else f"v{number}"
        file = LandedFile("landing", key, 1, f"{key}-{number}", version, f"{self.versions.total():016X}", self.now())
        shared = "add" if key.startswith("add/") else key
        ids = self.draw.sample(range(4), self.draw.randint(1, 4))
        records = [Record(self.draw.choice(TABLES), f"{shared} {n}") for n in ids]
        records += [Record((None, *TABLES)[number % 3], "", broken=True), Record(None, "")]
        tables = Counter(record.game for record in records if record.game and not record.broken)
        self.lay(Put(file, dict(tables), held=2, replaces=key.startswith("new/")), records, file.etag)

    def put_same_bytes(self, put: Put, at: datetime) -> None:
        number = f"v{self.versions[put.file.key]}"
        etag = put.file.etag if self.draw.random() < 0.7 else f"{put.file.key}-{number}"
        version, sequencer = "null" if self.suspended else number, f"{self.versions.total():016X}"
        file = replace(put.file, version_id=version, etag=etag, sequencer=sequencer, event_time=at)
        self.lay(replace(put, file=file), self.contents[put.file.file_id], self.lake.hashes[put.file.file_id])

    def lay(self, put: Put, records: list[Record], content_hash: str) -> None:
        file = put.file
        if file.version_id == "null":
            nulls = [one for one in self.model.puts.values() if one.file.key == file.key]
            for one in (one.file.file_id for one in nulls if one.file.version_id == "null"):
                self.lake.answers[one] = "changed"
                self.expired.add(one)
        self.expired.discard(file.file_id)
        self.contents[file.file_id] = self.lake.answers[file.file_id] = records  # type: ignore[assignment]
        self.lake.hashes[file.file_id] = content_hash
        self.said.append(f"{file.key} {file.version_id} {file.etag} {content_hash} {file.sequencer[-2:]}")
        self.announce(put)
        self.notices.append(file)

    def notice_again(self, key: str) -> None:
        self.waiting.append(self.draw.choice(self.notices))


@in_time
def test_versions_null_and_others_alternate_and_all_bytes_stand_once() -> None:
    play_all(NullVersions)
