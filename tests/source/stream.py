"""A streaming query on one checkpoint, run after run, and what a test waits for."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any


class Stream:
    def __init__(self, spark: Any, folder: Path) -> None:
        self.spark, self.folder = spark, folder
        self.query: Any = None

    def until(self, seen: Callable[[], bool]) -> None:
        for _ in range(600):
            if seen():
                return
            assert not self.query.awaitTermination(0.1)
        raise AssertionError(f"not seen in time: {self.found_so_far}")

    @property
    def found_so_far(self) -> Any:
        raise NotImplementedError

    def until_committed(self, batches: int) -> None:
        """The sink has the rows before Spark has the batch; a query stopped in between runs it once more."""
        commits = self.folder / "checkpoint" / "commits"
        self.until(lambda: (commits / str(batches - 1)).exists())

    def stop(self) -> None:
        if self.query is not None:
            self.query.stop()
