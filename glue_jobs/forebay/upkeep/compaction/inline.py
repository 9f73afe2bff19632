"""Compaction inside the stream, between two batches: for tables that are merged into, which a job beside the stream would meet.

In: a batch and its service, whose tables may say `compaction = { every_batches = k }`. Out: after every k-th one, these tables
are compacted as the job would do it, within a small budget, however hot they are: nobody else is at work on them now. What goes
wrong is told, and never stops the stream.
"""

from __future__ import annotations

from collections.abc import Callable
from fnmatch import fnmatchcase

from forebay.declaration.service import Service
from forebay.events import Emit
from forebay.lake.log.tables import tables_of
from forebay.settings import CompactSettings, JobSettings
from forebay.upkeep.compaction.events import TableNotCompacted
from forebay.upkeep.compaction.job import compact
from forebay.upkeep.compaction.policy import GIB

__all__ = ["Inline"]

BUDGET_BYTES = GIB
"""What the stream may be held up for: some seconds."""


class Inline:
    def __init__(self, settings: JobSettings, *, emit: Emit, run: Callable[..., object] = compact) -> None:
        self._settings, self._emit, self._run = settings, emit, run

    def after(self, batch: int, service: Service) -> None:
        """Called when a batch is done, with the declarations that it worked by."""
        globs = [
            table.glob
            for table in service.tables
            if table.compaction.every_batches > 0 and (batch + 1) % table.compaction.every_batches == 0
        ]
        if not globs:
            return
        try:
            there = tables_of(self._settings.lake)
            names = [name for name in there if any(fnmatchcase(name, glob) for glob in globs)]
            if names:
                self._run(self._of(names), emit=self._emit)
        except Exception as problem:
            # Whatever it is, the batch is in, and a table that is not compacted is only slower.
            said = f"{type(problem).__name__}: {problem}".splitlines()[0]
            name = ",".join(globs)
            self._emit(TableNotCompacted(service=service.name, table=name, reason="failed", detail=said))

    def _of(self, names: list[str]) -> CompactSettings:
        return CompactSettings(
            lake=self._settings.lake,
            service=self._settings.service,
            tables=",".join(names),
            hot=True,
            budget_bytes=BUDGET_BYTES,
        )
