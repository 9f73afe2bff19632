"""The newest valid declarations at a place, for a job that looks again before each batch.

In: where the declarations are. Out: a `Service` for each batch that begins. Each batch makes one listing, and reads the
declarations only if it differs. Invalid declarations are refused with an event, and the old ones stay in force.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from botocore.exceptions import BotoCoreError, ClientError

from forebay.declaration.kept.files import fingerprint
from forebay.declaration.loading import load_service
from forebay.declaration.service import Service
from forebay.errors import ForebayError, InvalidConfiguration
from forebay.events import Emit, ErrorEvent, ServiceEvent, metric
from forebay.threads import both


@dataclass(frozen=True, kw_only=True)
class DeclarationsChanged(ServiceEvent):
    """From this batch on, other declarations are in force."""

    version: str
    before: str


@dataclass(frozen=True, kw_only=True)
class DeclarationsRefused(ErrorEvent, ServiceEvent):
    """The new declarations are invalid: a person must fix them. The old ones stay in force."""

    in_force: str
    problems: str
    refused: int = metric(default=1)


class Declarations:
    """The declarations of one job. `check` raises `InvalidConfiguration` for mistakes beyond their text."""

    def __init__(
        self,
        service: Service,
        place: str,
        *,
        emit: Emit,
        check: Callable[[Service], None] = lambda service: None,
        load: Callable[[str], Service] = load_service,
        look: Callable[[str], str] = fingerprint,
        paused: Callable[[], frozenset[str]] = frozenset,
    ) -> None:
        self._service, self._place, self._emit = service, place, emit
        self._check, self._load, self._look, self._paused = check, load, look, paused
        self._seen: str | None = None
        self._refused = ""

    def in_force(self) -> Service:
        """The declarations for a new batch, with the tables that are paused now."""
        newest, paused = both(self._newest, self._paused)
        return newest.with_paused(paused)

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
        except (ForebayError, OSError, ClientError, BotoCoreError) as refused:
            self._refuse(str(refused))
            return self._service
        self._seen, self._refused = seen, ""
        if found.version != self._service.version:
            self._emit(DeclarationsChanged(service=found.name, version=found.version, before=self._service.version))
            self._service = found
        return self._service

    def _refuse(self, why: str) -> None:
        """Reports the refusal once, not with every batch."""
        if why != self._refused:
            self._refused = why
            self._emit(DeclarationsRefused(service=self._service.name, in_force=self._service.version, problems=why))
