"""The declarations in force: the newest valid ones.

In: where the declarations are. Out: a `Service` for each batch that begins. Each batch makes one listing, and reads the
declarations only if it differs. Invalid declarations are refused with an event, and the old ones stay in force. A batch's
`Plan` pins them before its first commit, and a repeated batch follows its plan.
"""

from __future__ import annotations

from collections.abc import Callable

from botocore.exceptions import BotoCoreError, ClientError

from forebay.batch.events import DeclarationsChanged, DeclarationsRefused
from forebay.declaration.kept.files import fingerprint
from forebay.declaration.loading import load_service
from forebay.declaration.service import Service
from forebay.errors import ForebayError, InvalidConfiguration
from forebay.events import Emit
from forebay.lake.layout import table_path
from forebay.lake.log.tables import tables_of
from forebay.lake.paused import ALL
from forebay.table.commit import LogFailed, Txn
from forebay.table.kernel import TableLogs
from forebay.threads import answers_by, both


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


def with_begun_tables(service: Service, lake: str, txn: Txn, logs: TableLogs, *, at_once: int) -> Service:
    """The service without pauses of tables that had the batch before: somebody deleted its plan, which knew that. Nor are all
    tables paused at once, if one of them has the batch: that pause came later. A table whose log cannot be read stays paused,
    and stops no other one. `at_once` tables are asked at the same time."""

    def has_batch(table: str) -> bool:
        try:
            return logs.has(table_path(lake, table), txn)
        except LogFailed:
            return False

    paused = {*service.paused}
    names = tables_of(lake) if ALL in paused else paused
    begun = {name for name, has in answers_by(has_batch, names, at_once).items() if has}
    return service.with_paused(paused - begun - {ALL}) if begun else service
