"""A commit to a table: the transaction that it carries, and how it can end.

`Committed`, `Repeated` (the table already has the transaction) and `CommitConflict` (the table changed: read it again) are
ordinary ends. Everything else is `LogFailed`. `CommitRefused`: S3 answered, and nothing can arrive later. `CommitUnknown`: the
commit was sent and may still arrive, even where the log does not show it yet.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from forebay.aws.retrying import attempts
from forebay.errors import ForebayError, Halt
from forebay.spark.java_failure import COMMIT_FAILED, COMMIT_REFUSED, COMMIT_UNKNOWN, causes

UNSUPPORTED = ("UnsupportedProtocolVersionException", "UnsupportedTableFeatureException")


@dataclass(frozen=True)
class Txn:
    """The transaction that makes a commit happen once: Delta keeps, for each application, the last version that is in."""

    app_id: str
    version: int


@dataclass(frozen=True)
class Committed:
    version: int


@dataclass(frozen=True)
class Repeated:
    """The transaction was in already; nothing was added."""


@dataclass(frozen=True)
class CommitConflict:
    """Another writer created the table or changed what it looks like; the files are not in it."""


class LogFailed(ForebayError):
    """The log could not be read or written. After a commit: whether it is in is not known until the log is read again."""

    def __init__(self, kind: str, message: str) -> None:
        self.kind, self.message = kind, message
        super().__init__(f"{kind}: {message}")

    @property
    def lasts(self) -> bool:
        """Whether the table asks for a feature that we do not have: to try again is of no use."""
        return self.kind in UNSUPPORTED

    @classmethod
    def of(cls, thrown: Any) -> LogFailed:
        """The exception of the JVM. Kernel says "commit failed" of conflicts, too; after those, nothing is unknown."""
        chain = list(causes(thrown))
        refused = next((java for name, java in chain if name == COMMIT_REFUSED), None)
        if refused is not None:
            return CommitRefused("CommitRefused", str(refused.getMessage()))
        sent = (java for name, java in chain if name == COMMIT_UNKNOWN)
        failed = (java for name, java in chain if name == COMMIT_FAILED and not java.isConflict())
        if (unknown := next(sent, None) or next(failed, None)) is not None:
            return CommitUnknown("CommitUnknown", str(unknown.getMessage()))
        return LogFailed(str(thrown.getClass().getSimpleName()), str(thrown.getMessage()))


class CommitRefused(LogFailed):
    """The commit is not in the log, and can no longer get there."""


class CommitUnknown(LogFailed):
    """The commit was sent, and nothing says whether it arrived. It may arrive after the log was read again."""


def until_it_commits(commit: Callable[[], Any], why_not: str, again: Callable[[Exception], bool] | None = None) -> None:
    """Commits where other writers' commits may come first. `again` says which refusals are worth another attempt, if not only
    conflicts. `why_not` is what the `Halt` says where each attempt was refused."""
    last: Exception | None = None
    for _ in attempts():
        try:
            commit()
            return
        except Exception as refused:
            if not (again or is_conflict)(refused):
                raise
            last = refused
    raise Halt(f"{why_not}: {last}")


def is_conflict(refused: Exception) -> bool:
    """Whether Spark's Delta refused a commit because another writer's came first. Then it may be tried again."""
    text = f"{type(refused).__name__}: {refused}"
    return any(word in text for word in ("DELTA_CONCURRENT", "DELTA_METADATA_CHANGED", "Concurrent", "MetadataChanged"))
