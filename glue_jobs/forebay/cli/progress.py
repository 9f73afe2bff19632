"""The progress of a long command: a bar on a terminal, otherwise a line now and then. Both go to standard error."""

from __future__ import annotations

import time
from collections.abc import Callable
from types import TracebackType
from typing import TYPE_CHECKING, Self

from rich.console import Console

from forebay.cli.show import error_console

if TYPE_CHECKING:
    from rich.progress import Progress as Bar

LINE_EVERY_S = 10.0


class Progress:
    """`total` is unknown where it is None. A line is due every ten seconds, and at the end of what has a total."""

    def __init__(
        self,
        total: int | None = None,
        *,
        console: Console = error_console,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._total, self._console, self._clock = total, console, clock
        self._bar: Bar | None = None
        self._next = clock() + LINE_EVERY_S

    def __enter__(self) -> Self:
        if self._console.is_terminal:
            from rich.progress import BarColumn, TextColumn, TimeElapsedColumn
            from rich.progress import Progress as Bar

            shown = TextColumn("{task.description}", markup=False)
            self._bar = Bar(BarColumn(20), TimeElapsedColumn(), shown, console=self._console, transient=True)
            self._bar.add_task("", total=self._total)
            self._bar.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._bar is not None:
            self._bar.stop()

    def tell(self, text: str, done: int | None = None) -> None:
        if self._bar is not None:
            self._bar.update(self._bar.task_ids[0], description=text, completed=done)
        elif self._clock() >= self._next or (done is not None and done == self._total):
            self._next = self._clock() + LINE_EVERY_S
            self._console.print(text)
