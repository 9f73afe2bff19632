"""Finds files that kill every worker that reads them, by halving; the others are read.

Pure. In: the files of a batch, and a function that reads some of them or raises. Out: the results, in parts, and the
files that cannot be read, each with its error. A file is blamed only if its reading failed twice, the last time alone.

A sick cluster must not quarantine good files. So the original error is raised if

* it is not a failure of a task: missing credentials, a stopped driver, a wrong option, a `Halt`;
* reading no file at all fails as well;
* more than `MOST_ALONE` files fail and none of the batch can be read;
* more than `MOST` files of one batch fail.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Generic, TypeVar

from forebay.content.end import FileEnd, unread_end
from forebay.content.outcome import POISON
from forebay.errors import ForebayError
from forebay.landed_file import LandedFile

Part = TypeVar("Part")

MOST = 16
MOST_ALONE = 4

DETAIL_CHARACTERS = 500

TASK_FAILED = re.compile(r"Job aborted due to stage failure: Task\b")
OUR_FAULT = re.compile(r"^(?:botocore\.exceptions|forebay\.errors)\.\w+", re.MULTILINE)
"""Ends a Python traceback. No file is to blame for our credentials, for an endpoint or for an option."""
PYTHON_ERROR = re.compile(r"^(?!org\.|java\.|scala\.)[A-Za-z_][\w.]*(?:Error|Exception): .*$", re.MULTILINE)
WORKER_LOST = re.compile(
    r"(?:Python worker exited unexpectedly|ExecutorLostFailure|[\w.]*OutOfMemoryError).*$", re.MULTILINE
)


@dataclass(frozen=True)
class Apart(Generic[Part]):
    """Together `parts` have every file that is not in `poison`."""

    parts: Sequence[Part]
    poison: Mapping[LandedFile, Exception]


def read_apart(
    files: Sequence[LandedFile],
    read: Callable[[Sequence[LandedFile]], Part],
    again: Callable[[Sequence[LandedFile]], Part] | None = None,
) -> Apart[Part]:
    """Reads all files at once. If that fails, halves are read, and halves of the halves that fail. If there is another way to
    read `again`, all files are read so before."""
    try:
        return Apart([read(files)], {})
    except Exception as failure:
        if not files or not blames_a_file(failure):
            raise
        return _Search(read, failure).run(files) if again is None else read_apart(files, again)


class _Search(Generic[Part]):
    """The search for the files that made one reading fail."""

    def __init__(self, read: Callable[[Sequence[LandedFile]], Part], original: Exception) -> None:
        self.read, self.original = read, original
        self.parts: list[Part] = []
        self.poison: dict[LandedFile, Exception] = {}

    def run(self, files: Sequence[LandedFile]) -> Apart[Part]:
        self.narrow(files)
        none_was_read = not self.parts
        if none_was_read and (len(files) > MOST_ALONE or self.failure([]) is not None):
            raise self.original
        return Apart(self.parts, self.poison)

    def narrow(self, files: Sequence[LandedFile]) -> None:
        """These failed together. One that is alone fails once more before it is blamed."""
        if len(files) == 1:
            again = self.failure(files)
            if again is not None:
                self.blame(files[0], again)
            return
        middle = len(files) // 2
        for half in (files[:middle], files[middle:]):
            if self.failure(half) is not None:
                self.narrow(half)

    def failure(self, files: Sequence[LandedFile]) -> Exception | None:
        try:
            part = self.read(files)
        except Exception as failure:
            if not blames_a_file(failure):
                raise
            return failure
        if files:
            self.parts.append(part)
        return None

    def blame(self, file: LandedFile, failure: Exception) -> None:
        self.poison[file] = failure
        if len(self.poison) > MOST:
            raise self.original


def blames_a_file(failure: Exception) -> bool:
    """Whether a task failed, and not for a fault of ours."""
    text = str(failure)
    return not isinstance(failure, ForebayError) and bool(TASK_FAILED.search(text)) and not OUR_FAULT.search(text)


def poison_end(file: LandedFile, failure: Exception, *, private: bool = False) -> FileEnd:
    """The end of a poison file: unreadable. With `private`, no text of Python's error is kept, because it may quote a value."""
    detail = f"the task ended twice while it read this file alone: {_cause(str(failure), private)}"[:DETAIL_CHARACTERS]
    return unread_end(file, "unreadable", POISON, detail)


def _cause(text: str, private: bool) -> str:
    """The line that says most: the end of a Python traceback, else what Spark says of its worker."""
    ended = PYTHON_ERROR.findall(text)
    if ended:
        kind, _, _ = (last := str(ended[-1])).partition(":")
        return f"{kind} (the job's log has its text)" if private else last
    lost = WORKER_LOST.search(text) or TASK_FAILED.search(text)
    return text[lost.start() :].partition("\n")[0] if lost else text.strip().partition("\n")[0]
