"""A stream's batch that did not end. `remove_unfinished_entries` removes what the driver of a first batch left, because Spark
refuses to start with it. `first_batch` names its transaction. `begun_batch` is the batch that Spark repeats, of any stream.

In: a checkpoint. Spark writes each entry of its logs aside, as `.0.<uuid>.tmp`, and
renames it. While there is no offset, Spark 4.1 starts a stream only if `offsets`, `commits` and `state` list nothing at all,
hidden files included (`STATE_STORE_CHECKPOINT_LOCATION_NOT_EMPTY`). So a driver that dies before its first rename stops every
later start. Only files that never became an entry are deleted. Run again, it finds nothing to do.
"""

from __future__ import annotations

from forebay.jobs.generation import known_generation
from forebay.lake.layout import application
from forebay.lake.objects import Objects

OFFSETS, COMMITS = "stream/offsets/", "stream/commits/"
LOGS = (OFFSETS, COMMITS, "stream/state/")
"""The folders that Spark's `MicroBatchExecution.verifyNewCheckpointDirectory` lists."""
WRITTEN_ASIDE = (".tmp", ".crc")
"""Entries that were never renamed, and Hadoop's checksums of files."""


def remove_unfinished_entries(checkpoint: Objects) -> None:
    """Before a stream starts, and while no other driver may use the checkpoint. Does nothing once an entry is there."""
    there = [found.name for log in LOGS for found in checkpoint.found(log)]
    if not any(_last(name).isdecimal() for name in there):
        checkpoint.delete(name for name in there if _is_unfinished(_last(name)))


def first_batch(checkpoint: Objects, service: str) -> frozenset[tuple[str, int]]:
    """Its transaction, until Spark has marked it as done. A stream that was never started has none."""
    generation = known_generation(checkpoint)
    ended = any(_last(found.name).isdecimal() for found in checkpoint.found(COMMITS))
    return frozenset() if ended or generation is None else frozenset({(application(service, generation), 0)})


def begun_batch(checkpoint: Objects) -> int | None:
    """The batch that an earlier driver began, and Spark has not marked as done."""
    begun, ended = (_newest(checkpoint, log) for log in (OFFSETS, COMMITS))
    return begun if begun > ended else None


def _newest(checkpoint: Objects, log: str) -> int:
    numbers = (_last(found.name) for found in checkpoint.found(log))
    return max((int(number) for number in numbers if number.isdecimal()), default=-1)


def _is_unfinished(name: str) -> bool:
    return name.startswith(".") and name.endswith(WRITTEN_ASIDE)


def _last(name: str) -> str:
    return name.rpartition("/")[2]
