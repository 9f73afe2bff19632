"""The service in the twin for hours, with everything at random: does every sum hold, and does no memory grow?

Files are put, overwritten (added under `in/add/`, replaced under `in/new/`), deleted, announced again and denied; drivers
die at random points or are killed; held records are retried, tables compacted, S3's bucket reconciled. Every few minutes and
in the end all is mended, and every sum must hold. In: minutes (SOAK_MINUTES), a seed. Out: `run()`'s figures and bars: the
accounts, the model in plain Python that the histories have as well, and what the driver's memory has grown by since a fifth of
the time. Where a sum does not hold, it ends at once, the lake stays, and what was said of the files is printed.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter, deque
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import datetime
from pathlib import Path
from typing import Any

from forebay.aws.announce import announce
from forebay.errors import Halt
from forebay.events import Event
from forebay.landed_file import LandedFile
from forebay.ledger.entry import NOT_FINAL
from forebay_local.twin.twin import Twin, running
from tests.batch.model import Model, Put
from tests.bench.bars import at_most
from tests.bench.endurance import PAUSE_S, measured
from tests.fault_proxy import FaultProxy, answered
from tests.journey.story import Story, event, lines, story

ROOT = Path(__file__).resolve().parents[2]
LIMIT_MIB = 100
KEYS = 40
ROUNDS_BETWEEN_LOOKS = 12
REMEMBERED_EVENTS = 20_000
SERVICE = """
name = "studio"
overwritten_below = { "in/new/" = "replace" }
[[tables]]
name = "{game}"
columns = [{ name = "event_id" }]
dedupe = { by = ["event_id"], days = 3 }
"""
OFTEN = {"overwrite": 10, "announce again": 4, "delete": 2, "deny": 2, "give again": 2}
UPKEEP = ("retry", "compact", "reconcile")
KILLED = "after table 2 of 3"
KEPT = "kept"
SETTINGS: dict[str, Any] = {"max_files_per_batch": 4, "visibility_timeout_s": 10, "tables_at_once": 1}


def run(*, minutes: float = 120, seed: int | None = None) -> dict[str, Any]:
    """Figures and bars."""
    seed = random.randrange(1 << 32) if seed is None else seed
    with (
        _folder() as folder,
        running(Path(folder) / "twin") as twin,
        FaultProxy(int(twin.endpoint.rsplit(":", 1)[1])) as proxy,
        _session(twin, proxy) as spark,
        story(twin) as told,
    ):
        told.service = f"{folder}/service.toml"
        Path(told.service).write_text(SERVICE)
        soak = _Soak(told, proxy, random.Random(seed))
        early = _rounds(soak, spark, minutes)
        wrong = soak.wrong_when_mended()
        late = measured(spark, _pause_s(minutes))
    bars = [at_most("sums and files that are wrong", len(wrong), 0)]
    for name in early:
        grown = round(late[name] - early[name], 1)
        bars.append(at_most(f"{name}: MiB grown", grown, LIMIT_MIB, digits=1))
    figures = {
        "minutes": minutes,
        "seed": seed,
        **soak.count,
        "wrong": wrong[:10],
        "early_mib": early,
        "late_mib": late,
    }
    return {"name": "soak", "figures": figures, "bars": bars}


@contextmanager
def _folder() -> Iterator[str]:
    """Where the lake is; `KEPT` in it says that it is to stay."""
    folder = tempfile.mkdtemp(prefix="forebay-soak-")
    yield folder
    if not (Path(folder) / KEPT).exists():
        shutil.rmtree(folder, ignore_errors=True)


@contextmanager
def _session(twin: Twin, proxy: FaultProxy) -> Iterator[Any]:
    """One that reaches S3 through the proxy."""
    os.environ.update({**twin.env, "AWS_ENDPOINT_URL_S3": proxy.url, "FOREBAY_LOG": "error"})
    from forebay.spark.session import session

    spark = session("soak")
    try:
        yield spark
    finally:
        spark.stop()


def _rounds(soak: _Soak, spark: Any, minutes: float) -> dict[str, float]:
    """Returns the memory after a fifth of the time."""
    began, early = time.monotonic(), dict[str, float]()
    while (passed := time.monotonic() - began) < minutes * 60:
        if not early and passed > minutes * 12:
            early = measured(spark, _pause_s(minutes))
        soak.round()
        said = {"seconds": round(passed), **soak.count}
        if soak.count["runs"] % ROUNDS_BETWEEN_LOOKS == 0:
            if soak.wrong_when_mended():
                break
            said |= measured(spark, 0)
        print(json.dumps(said), file=sys.stderr, flush=True)
    return early or measured(spark, _pause_s(minutes))


def _pause_s(minutes: float) -> float:
    """A short run has no time for a long look."""
    return min(PAUSE_S, minutes * 3)


class _Soak:
    """The bucket, the queue and the operator."""

    def __init__(self, told: Story, proxy: FaultProxy, draw: random.Random) -> None:
        self.told, self.proxy, self.draw = told, proxy, draw
        self.model, self.count = Model(), Counter[str]()
        self.denied: set[str] = set()
        self.told_of: deque[str] = deque(maxlen=REMEMBERED_EVENTS)
        told.events = _Last(self.told_of)

    def round(self) -> None:
        """Some deeds, and a run that may not live to its end."""
        for _ in range(self.draw.randint(2, 8)):
            deed = self.draw.choices(list(OFTEN), list(OFTEN.values()))[0]
            self.count[deed] += 1
            {
                "overwrite": self.put,
                "announce again": self.announce_again,
                "delete": self.delete,
                "deny": self.deny,
                "give again": self.denied.clear,
            }[deed]()
        self.proxy.forget()
        for key in self.denied:
            self.proxy.on("*", rf"^/{self.told.bucket}/{key}(\?|$)", then=answered(403, "AccessDenied"), times=None)
        luck = self.draw.random()
        if luck < 0.02:
            self.killed()
        elif luck < 0.3:
            self.dies()
        else:
            self.take_in()
        self.count["runs"] += 1
        if self.draw.random() < 0.15:
            self.upkeep(self.draw.choice(UPKEEP))

    def some_key(self) -> str:
        return f"in/{self.draw.choice(('add', 'new'))}/{self.draw.randrange(KEYS)}.json"

    def put(self) -> None:
        """No two versions hold the same records."""
        key, number = self.some_key(), self.count["overwrite"]
        tables = {game: self.draw.randint(1, 3) for game in ("alpha", "beta", "gamma")}
        records = [event(game, number * 10 + n) for game, rows in tables.items() for n in range(rows)]
        body = lines([*records, "{broken", '{"event": "no game"}'])
        answer = self.told.twin.client("s3").put_object(Bucket=self.told.bucket, Key=key, Body=body)
        sequencer = f"{number:016X}"
        file = LandedFile(self.told.bucket, key, len(body), answer["ETag"].strip('"'), None, sequencer)
        self.model.put(Put(file, tables, held=2, replaces=key.startswith("in/new/")))
        self.note(f"put {file}")
        self.told.announce_files(file)

    def announce_again(self) -> None:
        if self.model.puts:
            put = self.draw.choice(list(self.model.puts.values()))
            self.note(f"announced again {put.file}")
            self.told.announce_files(put.file)

    def deny(self) -> None:
        self.denied.add(key := self.some_key())
        self.note(f"denied {key}")

    def note(self, deed: str) -> None:
        self.told_of.append(f"{datetime.now():%H:%M:%S} {deed}")

    def delete(self) -> None:
        key = self.some_key()
        self.note(f"deleted {key}")
        self.told.twin.client("s3").delete_object(Bucket=self.told.bucket, Key=key)
        self.model.delete(key)

    def take_in(self) -> None:
        """A file of which a part stands, and that is denied now, is waited for."""
        self.note(f"a run, denied {sorted(self.denied)}")
        try:
            self.told.take_in(wait_s=1, lease_wait_s=90, late_commit_wait_s=5, **SETTINGS)
        except Halt as halted:
            if "S3 does not give it now" not in str(halted):
                raise
            self.count["halted"] += 1
            self.denied.clear()

    def dies(self) -> None:
        """In this process, which lives on."""
        from tests.chaos.driver import POINTS, dying

        point = self.draw.choice([point for point in POINTS if not point.startswith("never")])
        try:
            with dying(point):
                self.take_in()
        except Exception as died:
            if "Killed" not in str(died):
                raise
            self.count["died"] += 1

    def killed(self) -> None:
        """With SIGKILL: driver, JVM and planner at once."""
        given = {"queue_url": self.told.queue_url, "lake": self.told.lake, "service": self.told.service}
        given |= {name: value for name, value in SETTINGS.items() if name != "tables_at_once"}
        settings = [f"{name}={value}" for name, value in given.items()]
        command = [sys.executable, "-m", "tests.chaos.driver", KILLED, *settings]
        done = subprocess.run(command, cwd=ROOT, start_new_session=True, capture_output=True, text=True, timeout=600)
        if done.returncode not in (0, -signal.SIGKILL):
            raise AssertionError(done.stderr[-2000:])
        self.count["killed"] += done.returncode != 0

    def upkeep(self, which: str) -> None:
        {"retry": self.retry, "compact": self.compact, "reconcile": self.reconcile}[which]()
        self.count[which] += 1

    def retry(self) -> None:
        from forebay.batch.retrying.retry import Choice, Retry
        from forebay.declaration.loading import load_service
        from forebay.spark.session import session

        tries = Retry(
            session("soak"), load_service(self.told.service), lake=self.told.lake, emit=self.told.events.append
        )
        try:
            tries.run(Choice("quarantine"))
        finally:
            tries.logs.close()

    def compact(self) -> None:
        from forebay.settings import CompactSettings
        from forebay.upkeep.compaction.job import compact

        compact(CompactSettings(lake=self.told.lake, service=self.told.service, now=True), emit=self.told.events.append)

    def reconcile(self) -> None:
        from forebay.settings import ReconcileSettings
        from forebay.upkeep.reconcile.job import reconcile

        settings = ReconcileSettings(
            lake=self.told.lake,
            queue_url=self.told.queue_url,
            service=self.told.service,
            landing=f"s3://{self.told.bucket}/in/",
            settle_hours=0,
        )
        reconcile(settings, emit=self.told.events.append)

    def mend(self) -> None:
        """Everything can be read again, and what was withheld is announced again, as `forebay files retry` does. The notice
        that S3 sent, sent once more, is a redelivery: the source deletes it for as long as it retains the batch."""
        self.denied.clear()
        self.proxy.forget()
        self.take_in()
        self.compact()
        withheld = {row["file_id"] for row in self.ledger() if row["outcome"] in NOT_FINAL}
        self.note(f"mended; announced {[str(put.file) for one, put in self.model.puts.items() if one in withheld]}")
        again = [put.file for one, put in self.model.puts.items() if one in withheld]
        assert announce(self.told.twin.client("sqs"), self.told.queue_url, again) == []
        self.take_in()

    def ledger(self) -> list[dict[str, Any]]:
        return [{**row, "tables": dict(row["tables"] or {})} for row in self.told.rows("_forebay/ledger")]

    def wrong_when_mended(self) -> list[str]:
        self.mend()
        wrong = self.wrong()
        if wrong:
            self.keep(wrong)
        return wrong

    def keep(self, wrong: list[str]) -> None:
        """The lake, and what is known of the files that are wrong."""
        folder = Path(self.told.service).parent
        (folder / KEPT).write_text("\n".join(wrong))
        keys = {
            key for key in (f"in/{kind}/{n}.json" for kind in ("add", "new") for n in range(KEYS)) if key in str(wrong)
        }
        rows = [str(row) for row in self.ledger() if row["key"] in keys]
        said = [one for one in self.told_of if any(key in one for key in keys)]
        print("\n".join([f"kept: {folder}", *wrong, *rows, *said[-200:]]), file=sys.stderr, flush=True)

    def wrong(self) -> list[str]:
        messages = sum(self.told.waiting())
        left = [f"{messages} messages are left in the queue"] if messages else []
        return [*self.told.accounts().differences(), *self.model.wrong(self.ledger()), *left]


class _Last(list[Event]):
    """Only the last ones are kept, as text."""

    def __init__(self, told: deque[str]) -> None:
        super().__init__()
        self._told = told

    def append(self, event: Event) -> None:
        self._told.append(f"{datetime.now():%H:%M:%S} {event}")


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--minutes", type=float, default=float(os.environ.get("SOAK_MINUTES", "120")))
    options.add_argument("--seed", type=int)
    said = run(**vars(options.parse_args()))
    print(json.dumps(said))
    sys.exit(not all(bar["holds"] for bar in said["bars"]))


if __name__ == "__main__":
    main()
