"""Errors, by what happens next. Each says what went wrong, where, why, and what to do.

* `InvalidConfiguration`: a person must edit a file, a setting or a permission. All problems at once. Exit status 2.
* `Unreachable`: AWS did not answer, or denied access: no network, no credentials, no permission. Exit status 3.
* `Quarantined`: this file or record is bad; it is kept with its reason, and the rest is processed.
* `TryAgain`: nothing is wrong with the data; leave the message on the queue and receive it again.
* `Halt`: continuing would lose or repeat data; stop, say why, delete nothing. Exit status 1.

Ordinary outcomes (a duplicate, a missing object, an empty file) are values, not exceptions.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Self


class ForebayError(Exception):
    """An error that forebay raises on purpose; its text is for a person."""


@dataclass(frozen=True)
class Problem:
    """One mistake to correct: where it is, what is wrong, and what would be valid."""

    where: str
    what: str
    suggestion: str = ""

    def __str__(self) -> str:
        where = f"{self.where}: " if self.where else ""
        return f"{where}{self.what}" + (f" ({self.suggestion})" if self.suggestion else "")


def meant(name: str, known: Iterable[str], otherwise: str, *, most: int = 1) -> str:
    """The suggestion for an unknown name: the known ones that are most like it, or what else helps."""
    import difflib  # a mistake can wait for it

    near = difflib.get_close_matches(name, known, most)
    return f"did you mean {' or '.join(near)}?" if near else otherwise


class InvalidConfiguration(ForebayError):
    """A person must edit something; carries every problem found, not only the first."""

    def __init__(self, problems: Iterable[Problem]) -> None:
        self.problems = tuple(problems)
        super().__init__("\n".join(map(str, self.problems)))

    @classmethod
    def one(cls, where: str, what: str, suggestion: str = "") -> Self:
        return cls([Problem(where, what, suggestion)])

    def __reduce__(self) -> tuple[type[InvalidConfiguration], tuple[tuple[Problem, ...]]]:
        return type(self), (self.problems,)


class Unreachable(InvalidConfiguration):
    """AWS did not answer, or denied access; the declaration itself may be valid."""


class Quarantined(ForebayError):
    """This file or record cannot be taken; `reason` is one of a small, countable vocabulary, `detail` is for a person."""

    def __init__(self, reason: str, detail: str = "") -> None:
        self.reason, self.detail = reason, detail
        super().__init__(f"{reason}: {detail}" if detail else reason)

    def __reduce__(self) -> tuple[type[Quarantined], tuple[str, str]]:
        return type(self), (self.reason, self.detail)


class TryAgain(ForebayError):
    """Leave it where it is; a later attempt may succeed."""


class Halt(ForebayError):
    """Continuing would lose or repeat data."""
