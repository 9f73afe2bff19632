"""The versions of the ledger and of the ids after a service's last batch. Somebody may restore an older one. It lacks
later files and records: files would be loaded a second time, and duplicates would pass.

In: the present versions. Out: nothing, or `Halt`. One small object in the lake keeps the versions, and each batch writes it. It
also keeps the number of the ledger's rows: none of them leaves, except by a `RESTORE`, which makes a newer version of old rows.
Ids do leave, so a `RESTORE` of them is found in their log.
Other writers only add to both tables, so what the object says may be too little, and never too much.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import asdict, dataclass, replace

from forebay.counted import counted
from forebay.errors import Halt
from forebay.lake.layout import IDS, LEDGER
from forebay.lake.log.restored import restored_since
from forebay.lake.objects import Objects

FILES, DUPLICATES = "files that were loaded since would be loaded again", "duplicates would pass"


@dataclass(frozen=True)
class Versions:
    """`ids` is -1 without such a table, and None where the service has no `dedupe`. `rows` of the ledger are None where its log
    does not say how many there are."""

    ledger: int
    ids: int | None
    rows: int | None

    @classmethod
    def of(cls, version_of: Callable[[str], int], rows: int | None, *, has_ids: bool) -> Versions:
        """Those that the tables have now."""
        return cls(version_of(LEDGER), version_of(IDS) if has_ids else None, rows)

    def older_than(self, last: Versions) -> str:
        """The table that is older, and the consequence; empty where none is."""
        if self.ledger < last.ledger:
            return f"{LEDGER} is at version {self.ledger}, and was at {last.ledger} after its last batch: {FILES}"
        if self.rows is not None and last.rows is not None and self.rows < last.rows:
            return f"{LEDGER} has {counted(self.rows, 'row')}, and had {last.rows:,} after its last batch: {FILES}"
        if self.ids is not None and last.ids is not None and self.ids < last.ids:
            now = "is gone" if self.ids < 0 else f"is at version {self.ids}"
            return f"{IDS} {now}, and was at version {last.ids} after its last batch: {DUPLICATES}"
        return ""

    def at_least(self, seen: Versions) -> Versions:
        """The same, where the ledger was `seen` to be newer: it only grows, and a driver counts no rows of other services."""
        rows = [one for one in (self.rows, seen.rows) if one is not None]
        return replace(self, ledger=max(self.ledger, seen.ledger), rows=max(rows, default=None))


NONE = Versions(-1, None, None)


class KeptVersions:
    """Those of one service, as its only driver sees them."""

    def __init__(self, store: Objects, service: str) -> None:
        self._store, self._service = store, service
        self._name = f"{service}.json"
        self._last: Versions | None = None

    @property
    def last(self) -> Versions:
        """Those after the last batch. Before the first one, they are as little as can be."""
        if self._last is None:
            content = self._store.read(self._name)
            self._last = self._decoded(content) if content else NONE
        return self._last

    def _decoded(self, content: bytes) -> Versions:
        """Without what newer code may have added."""
        try:
            stored = json.loads(content)
            numbers = {name: stored.get(name) for name in ("ledger", "ids", "rows")}
            return replace(NONE, **{name: int(number) for name, number in numbers.items() if number is not None})
        except (ValueError, TypeError, AttributeError) as broken:
            raise Halt(
                f"the contents of {self._store.place}/{self._name} are not versions of the ledger ({broken}). Nothing was "
                "changed. Restore its newest version, or delete it, and start again"
            ) from broken

    def must_not_be_older(self, now: Callable[[], Versions], ids: Objects | None = None) -> None:
        """`Halt` if they are older than those that were kept, or a `RESTORE` made the `ids`. The tables are looked at last:
        beside a retry, a batch may end between the two looks."""
        last, found = self.last, now()
        if older := found.older_than(last) or _restored(ids, last, found):
            raise Halt(
                f"service {self._service}: {older}. Somebody restored an older version, or deleted the table. Nothing was "
                "changed. Restore the version from before, and start again. To continue with the present one, delete "
                f"{self._store.place}/{self._name}. See docs/disasters.md, An older ledger"
            )
        ids_seen = last.ids if ids is None or found.ids is None else found.ids
        self._last = replace(last, ids=ids_seen).at_least(found)

    def ids_must_stand(self, version: int, ids: Objects) -> None:
        """The same for the ids alone, at this version. Each batch asks. Only commits since the last one are read."""
        self.must_not_be_older(lambda: replace(self.last, ids=version), ids)

    def keep(self, now: Versions, *, own_commits: int = 0) -> None:
        """`own_commits` is the number of commits that the batch made to the ids since they were looked at. There may be a
        `RESTORE` among further ones: the next look tells."""
        seen = self.last.ids
        if seen is not None and now.ids is not None and now.ids > seen + own_commits:
            now = replace(now, ids=seen)
        self._last = now.at_least(self.last)
        self._store.write(self._name, json.dumps(asdict(self._last)).encode())


def _restored(ids: Objects | None, last: Versions, now: Versions) -> str:
    if ids is None or last.ids is None or now.ids is None or not 0 <= last.ids < now.ids:
        return ""
    version = restored_since(ids, last.ids)
    return "" if version is None else f"a RESTORE took {IDS} back from version {version}: {DUPLICATES}"
