"""The way of batches from the stream into `Batch`, which can be closed.

In: a batch of file names. Out: nothing, once it is processed; `Halt` after the gate was closed.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import TYPE_CHECKING

from forebay.batch.batch import Batch
from forebay.errors import Halt

if TYPE_CHECKING:
    from pyspark.sql import DataFrame


class Gate:
    """Lets one batch at a time through, and none once it is closed: closing waits for the batch that is on its way. Stopping a
    query in the middle of a batch is safe, but would do its work twice. PySpark keeps what a stream calls until the JVM forgets
    it. So a closed gate lets go of its batches: a process that runs many streams would hold them all, and their AWS clients."""

    def __init__(self, batch: Batch, ended: Callable[[], None] = lambda: None) -> None:
        self._batch: Batch | None = batch
        self._ended = ended
        self._passage = threading.Lock()
        self.failed = False

    def process(self, files: DataFrame, batch_id: int) -> None:
        with self._passage:
            if self._batch is None:
                raise Halt("forebay is stopping; the next run processes this batch")
            try:
                self._batch.process(files, batch_id)
                self._ended()
            except BaseException:
                self.failed = True  # a thread that waits for the gate must not see an ordinary end
                raise

    def close(self) -> None:
        with self._passage:
            self._batch = None

    @property
    def closed(self) -> bool:
        return self._batch is None
