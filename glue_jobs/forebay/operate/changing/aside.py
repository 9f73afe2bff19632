"""Reads files again into another lake, to see the effect of declarations. This lake does not change.

In: a session, files, declarations, and the place of the side lake. Out: how many files are read so far. The side lake has its
own tables, quarantine and ledger, so that every command works there. A repeated command continues: the side lake's ledger
knows its files. A batch that was interrupted is finished first.
"""

from __future__ import annotations

import uuid
from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from typing import TYPE_CHECKING

from forebay.address import overlap
from forebay.batch.batch import Batch
from forebay.declaration.service import Service
from forebay.errors import InvalidConfiguration
from forebay.events import Emit
from forebay.lake.layout import writer_of
from forebay.lake.lease import hold
from forebay.landed_file import LandedFile
from forebay.ledger.ledger import Ledger
from forebay.upkeep.after_load.readers import must_not_be_landed

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

FILES_A_BATCH = 200


def side_lake(lake: str, place: str) -> str:
    """The place, of a lake that is another one and not within this one. A folder in a lake would pass for a table. Nor where
    files land: its own files would be loaded, and have all rows once more."""
    if overlap(place, lake):
        raise InvalidConfiguration.one(place, "is a part of this lake", "name another place")
    must_not_be_landed(lake, place)
    return place.rstrip("/")


def load_aside(
    spark: SparkSession, files: Sequence[LandedFile], service: Service, side: str, *, emit: Emit
) -> Iterator[int]:
    """Loads the files, and yields the number that is loaded after each batch."""
    generation = uuid.uuid4().hex[:12]
    with ExitStack() as leaving:
        lease = hold(writer_of(side, service.name), wait_s=0)
        leaving.callback(lease.let_go)
        batch = Batch(
            spark,
            service.without_vault,
            lake=side,
            generation=lambda: generation,
            ledger=Ledger(spark, side, service.name),
            emit=emit,
            still_ours=lease.check,
            may_have_begun=lambda batch: False,  # its generation is new
        )
        leaving.callback(batch.close)
        batch.finish_earlier()
        for number, at in enumerate(range(0, len(files), FILES_A_BATCH)):
            some = files[at : at + FILES_A_BATCH]
            batch.load(some, number)
            yield at + len(some)
