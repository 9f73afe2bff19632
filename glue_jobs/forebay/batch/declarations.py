"""The declarations that a batch works by: the newest that make sense, and for a replayed batch those of its first try.

In: where the declarations are, and the checkpoint's store. Out: a `Service` for each batch. They are looked at anew before
each batch (a listing; they are read only where it is another one). What cannot be understood is refused with an event, and the
old ones stay in force. Before a batch writes anything, its declarations are durable beside its manifest: a record that went
to one table before a crash must not go to another one after it. Which tables are paused is pinned with them.
"""

from __future__ import annotations

import json
from collections.abc import Callable

from botocore.exceptions import BotoCoreError, ClientError

from forebay.batch.events import DeclarationsChanged, DeclarationsRefused
from forebay.declaration.pinned import pinned, unpinned
from forebay.declaration.service import Service, fingerprint, load_service
from forebay.errors import ForebayError, Halt, InvalidConfiguration
from forebay.events import Emit
from forebay.lake.objects import Objects

__all__ = ["Declarations"]


class Declarations:
    """Of one job. `check` says what is wrong with declarations beyond their text, with `InvalidConfiguration`."""

    def __init__(
        self,
        service: Service,
        place: str,
        store: Objects,
        *,
        emit: Emit,
        check: Callable[[Service], None] = lambda service: None,
        load: Callable[[str], Service] = load_service,
        look: Callable[[str], str] = fingerprint,
        paused: Callable[[], frozenset[str]] = frozenset,
    ) -> None:
        self._service, self._place, self._store, self._emit = service, place, store, emit
        self._check, self._load, self._look, self._paused = check, load, look, paused
        self._seen: str | None = None
        self._refused = ""

    def of_batch(self, generation: str, batch: int) -> Service:
        """Asked again for the same batch of a stream, also by another driver of this checkpoint, it says the same."""
        name = f"declarations/{generation}-{batch}.json"
        text = self._store.read(name)
        if text is None:
            service = self._newest().with_paused(self._paused())
            if self._store.write_once(name, json.dumps(pinned(service)).encode()):
                # The batch before the last one is over: this one could not have begun otherwise.
                self._store.delete([f"declarations/{generation}-{batch - 2}.json"])
                return service
            text = self._store.read(name)
            if text is None:
                raise Halt(f"{self._store.place}/{name} went away; does somebody else tidy the checkpoint?")
        return unpinned(json.loads(text), f"batch {batch}")

    def _newest(self) -> Service:
        if not self._place:
            return self._service
        try:
            seen = self._look(self._place)
            if seen == self._seen:
                return self._service
            found = self._load(self._place)
            if found.name != self._service.name:
                raise InvalidConfiguration.one("service.toml: name", "must not change", f"it was {self._service.name}")
            if found.version != self._service.version:
                self._check(found)
        except (ForebayError, OSError, ClientError, BotoCoreError, UnicodeDecodeError) as refused:
            self._refuse(str(refused))
            return self._service
        self._seen, self._refused = seen, ""
        if found.version != self._service.version:
            self._emit(DeclarationsChanged(service=found.name, version=found.version, before=self._service.version))
            self._service = found
        return self._service

    def _refuse(self, why: str) -> None:
        """Said once, not with every batch."""
        if why != self._refused:
            self._refused = why
            self._emit(DeclarationsRefused(service=self._service.name, in_force=self._service.version, problems=why))
