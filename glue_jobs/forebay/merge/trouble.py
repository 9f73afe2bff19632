"""The reason why a state or a rollup lags behind: a small object for each, from its first failed merge to the next successful
one.

In: results of merges. Out: objects that `tables health` reads, also where the state itself was never created. A merge ignores
them: it tries again in any case.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Iterator
from dataclasses import asdict, dataclass
from datetime import UTC, datetime

from forebay.lake.layout import NOT_MERGED
from forebay.lake.objects import open_objects


@dataclass(frozen=True)
class Trouble:
    """`since` is when the first merge failed for this reason."""

    table: str
    service: str
    detail: str
    since: str


class Troubles:
    """The troubles of one lake. They are cached, so a successful merge needs no request."""

    def __init__(self, lake: str) -> None:
        self._objects = open_objects(f"{lake.rstrip('/')}/{NOT_MERGED}")
        self._read: dict[str, Trouble] | None = None

    def all(self) -> dict[str, Trouble]:
        if self._read is None:
            self._read = {one.table: one for one in self._there()}
        return self._read

    def note(self, table: str, service: str, detail: str) -> None:
        known = self.all().get(table)
        if known is None or known.detail != detail:
            trouble = Trouble(table, service, detail, datetime.now(UTC).isoformat(timespec="seconds"))
            self._objects.write(f"{table}.json", json.dumps(asdict(trouble)).encode())
            self.all()[table] = trouble

    def are_over(self, tables: Collection[str]) -> None:
        if over := sorted(self.all().keys() & set(tables)):
            self._objects.delete([f"{table}.json" for table in over])
            for table in over:
                del self.all()[table]

    def undeclared(self, service: str, tables: Collection[str]) -> set[str]:
        """Tables with a trouble that this service no longer declares."""
        return {one.table for one in self.all().values() if one.service == service} - set(tables)

    def _there(self) -> Iterator[Trouble]:
        for found in self._objects.found():
            try:
                yield Trouble(**json.loads(self._objects.read(found.name) or b""))
            except (ValueError, TypeError):  # of another version of ours, or just deleted
                continue
