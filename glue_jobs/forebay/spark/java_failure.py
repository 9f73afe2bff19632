"""An exception of the JVM and its chain of causes, by the names of their classes.

In: an exception of PySpark or py4j, or a Java throwable. Out: pairs of class name and throwable, outermost first; none for
an exception that did not come from the JVM.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from forebay.spark.session import LOG_STORE

COMMIT_REFUSED, COMMIT_UNKNOWN = f"{LOG_STORE}$CommitRefused", f"{LOG_STORE}$CommitUnknown"
COMMIT_FAILED = "io.delta.kernel.commit.CommitFailedException"
DEEPEST = 20


def java_exception(failure: BaseException) -> Any | None:
    """py4j carries the throwable openly. PySpark keeps it at the exceptions that it makes of some."""
    return getattr(failure, "java_exception", None) or getattr(failure, "_origin", None)


def causes(thrown: Any | None) -> Iterator[tuple[str, Any]]:
    for _ in range(DEEPEST):
        if thrown is None:
            return
        yield str(thrown.getClass().getName()), thrown
        thrown = thrown.getCause()
