"""A declared function in a process of its own, for rows on which it may have ended the process that called it.

In: an array for each column. Out: the same as of `Transform`. A function that does not return in time, takes all memory or ends
its process, ends only this one. Then a tenth of the rows is tried at a time, down to single rows. `NoFunction` if too many
calls of a task ended so, or an import: a thousand tables may share a function. A process takes a quarter of a second to start,
so this is only for rows that are read again, and for `try`.
"""

from __future__ import annotations

import os
import pickle
import re
import signal
import subprocess
import sys
from collections import Counter
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING

import pyarrow as pa

from forebay.content.ceiling import ceiling
from forebay.counted import counted
from forebay.errors import Halt, InvalidConfiguration, Problem
from forebay.record.transform import Transform, refused_of
from forebay.transforms import PACKAGE, NoFunction, folders

if TYPE_CHECKING:  # without pydantic, the process of a function starts in half the time
    from forebay.declaration.service import Service

KILLED_AT_MOST = 30
"""Calls of one task that a function may fail to survive. One bad row takes four of 1,000, and six of 100,000."""
TENTH = 10
GRACE_S = 30.0
"""For all else that the process does. It ends itself when the time of the function is over."""
LATE = re.compile(r"^Timeout \(\d+:\d\d:\d\d(?:\.\d+)?\)!$", re.MULTILINE)
PLACE = re.compile(rf'File "[^"]*\b{PACKAGE}/([^"]+)", line (\d+)')
"""Of the traceback behind it, which begins with the latest call."""
LOG_BYTES = 64 << 10
"""The end of the output of a process: a function that hangs may print without end."""
ASKED, ROWS, IMPORTED, ANSWER, NO_ROOM, OUTPUT = "asked", "rows", "imported", "answer", "no-room", "output"
"""The files between the two processes."""


@dataclass(frozen=True)
class Lost:
    """Calls in vain of one task, by the name of the function; and why it is called no more."""

    calls: Counter[str] = field(default_factory=Counter)
    given_up: dict[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class ApartTransform(Transform):
    """`memory_bytes` are for the function, beside what its process has at the start. All blocks of a task have one `lost`."""

    lost: Lost = field(default_factory=Lost, compare=False)

    def made(self, rows: pa.Table) -> pa.Table:
        parts, waiting = [], [rows]
        while waiting:
            if (why := self.lost.given_up.get(self.name)) is not None:
                raise NoFunction(why)
            some = waiting.pop(0)
            done = self._called(some)
            if isinstance(done, pa.Table):
                parts.append(done)
                continue
            self.lost.calls[self.name] += 1
            if (calls := self.lost.calls[self.name]) > KILLED_AT_MOST:
                raise self._given_up(f"{done}, after {counted(calls - 1, 'other call')} of the task that ended so")
            if some.num_rows == 1:
                parts.append(refused_of(some, done))
                continue
            size = -(-some.num_rows // TENTH)
            waiting[:0] = [some.slice(start, size) for start in range(0, some.num_rows, size)]
        return pa.concat_tables(parts)

    def _called(self, rows: pa.Table) -> pa.Table | str:
        """The rows after the function, or the reason why it did not survive them. `Halt` where the machine is to blame."""
        try:
            with TemporaryDirectory(prefix="forebay-transform-") as name:
                return self._called_in(Path(name), rows)
        except OSError as failure:
            raise Halt(f"{self.name} could not get a process of its own: {failure}") from failure

    def _called_in(self, folder: Path, rows: pa.Table) -> pa.Table | str:
        (folder / ASKED).write_bytes(pickle.dumps(self))
        with pa.ipc.new_stream(folder / ROWS, rows.schema) as stream:  # a pickle has the other rows of the task, too
            stream.write_table(rows)
        code = self._run(folder, self.import_s + self.seconds_for(rows) + GRACE_S)
        log = _end_of(folder / OUTPUT)
        sys.stderr.write(log)
        if not (folder / ANSWER).exists():
            if (folder / NO_ROOM).exists():
                raise Halt(
                    f"{self.name} returned, but its rows could not be written to {folder.parent}: is the disk full?"
                )
            return self._why(rows, code, log, is_imported=(folder / IMPORTED).exists())
        answer: pa.Table | NoFunction = pickle.loads((folder / ANSWER).read_bytes())
        if isinstance(answer, NoFunction):
            raise answer
        return answer

    def _run(self, folder: Path, seconds: float) -> int | None:
        """The exit code of the process; None if it had to be killed. Processes that it started end with it."""
        command = [sys.executable, "-P", "-c", "from forebay.record.apart import answer; answer()", str(folder)]
        env = {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))}
        with (folder / OUTPUT).open("wb") as log:
            process = subprocess.Popen(
                command, stdin=subprocess.DEVNULL, stdout=log, stderr=log, env=env, start_new_session=True
            )
        try:
            return process.wait(seconds)
        except subprocess.TimeoutExpired:
            return None
        finally:
            with suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
            process.wait()

    def _why(self, rows: pa.Table, code: int | None, log: str, *, is_imported: bool) -> str:
        late = LATE.search(log)
        place = PLACE.search(log, late.end()) if late else None
        where = f" ({place[1]}, line {place[2]})" if place else ""
        is_late = code is None or late is not None
        if not is_imported:
            end = f" within {_seconds(self.import_s)}{where}" if is_late else f": its process ended{_ended(code)}"
            raise self._given_up(f"{self.name} cannot be imported{end}")
        if is_late:
            return f"{self.name} did not return within {_seconds(self.seconds_for(rows))}{where}"
        return f"{self.name} ended its process{_ended(code)}"

    def _given_up(self, why: str) -> NoFunction:
        self.lost.given_up[self.name] = why
        return NoFunction(why)


def _end_of(file: Path) -> str:
    with file.open("rb") as log:
        log.seek(max(0, file.stat().st_size - LOG_BYTES))
        return log.read(LOG_BYTES).decode(errors="replace")


def _seconds(number: float) -> str:
    return counted(max(1, round(number)), "second")


def _ended(code: int | None) -> str:
    return f" with {signal.Signals(-code).name}" if code is not None and code < 0 else f" with the exit code {code}"


def check_transforms(service: Service) -> None:
    """`InvalidConfiguration` if there is a function that a table names, and that cannot be imported here."""
    failures = {name: _failure_of(name) for name in {table.transform for table in service.tables if table.transform}}
    problems = [
        Problem(f"table {table.name}: transform", str(why), why.hint)
        for table in service.tables
        if table.transform and (why := failures[table.transform]) is not None
    ]
    if problems:
        raise InvalidConfiguration(problems)


def _failure_of(name: str) -> NoFunction | None:
    """An import may not end either, or end its process."""
    try:
        ApartTransform(name, folders()).made(pa.table({}))
    except NoFunction as why:
        return why
    return None


def answer() -> None:
    """The work of the process. If memory becomes short on the machine, it is the first that the system ends."""
    with suppress(OSError):
        Path("/proc/self/oom_score_adj").write_text("1000")
    folder = Path(sys.argv[1])
    asked: ApartTransform = pickle.loads((folder / ASKED).read_bytes())
    rows = pa.ipc.open_stream((folder / ROWS).read_bytes()).read_all()
    memory = asked.memory_bytes
    step = Transform(asked.name, asked.places, asked.call_s, asked.import_s, is_alone=True, memory_bytes=memory)
    try:
        with ceiling(memory):
            step.function()
            (folder / IMPORTED).touch()
            made: pa.Table | NoFunction = step.made(rows) if rows.num_rows else rows
    except NoFunction as failure:
        made = failure
    try:
        (folder / "made").write_bytes(pickle.dumps(made))
        (folder / "made").rename(folder / ANSWER)
    except OSError:
        (folder / NO_ROOM).touch()
        raise
