"""The lines of the command line about landed files that `after_load` moves or deletes."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING

from forebay.cli.show import console, error_console, print_json, size, styled
from forebay.counted import counted

if TYPE_CHECKING:
    from forebay.operate.lake_view import LakeView
    from forebay.operate.looking.files import LedgerFile
    from forebay.settings import MaintainSettings
    from forebay.upkeep.after_load.job import Cleared

_FROM_ARCHIVE = "Such a file is read from there"
_ELSEWHERE = "Such a file is read again once former_archives names its archive, or if you copy it back to its key"
_DELETED = "Such a file is read again only if you put it back under its key, or if the bucket still has its old version"


def preview_landed(settings: MaintainSettings, *, as_json: bool) -> None:
    """Landed files that the next run of maintenance moves or deletes."""
    from datetime import UTC, datetime

    from forebay.declaration.kept.in_force import service_for
    from forebay.upkeep.after_load.job import landed_due

    service = service_for(settings.service, settings.lake, settings.deployed_service)
    found = landed_due(settings.lake, service, now=datetime.now(UTC))
    if as_json:
        such_as = [{"uri": uri, "place": place or None} for uri, place in found.due]
        facts = {"files": found.files, "bytes": found.bytes, "waiting": found.waiting, "left": _left(found)}
        print_json([{**facts, "such_as": such_as}])
        return
    if service.after_load is None:
        error_console.print(f"service {service.name} does not declare after_load: landed files stay")
        return
    for uri, place in found.due:
        console.print(f"{uri} → {place}" if place else uri)
    if more := found.files - len(found.due):
        console.print(f"and {counted(more, 'more file')}")
    then = f"move to {service.after_load.move}" if service.after_load.move else "delete"
    days = service.after_load.after_days
    due = f"{counted(days, 'day')} after it was loaded" if days else "once it is loaded"
    rest = f", {size(found.bytes)}" if found.files else f"; a file is due {due}"
    console.print(f"{counted(found.files, 'landed file')} to {then}{rest}")
    _show_rest(found)


def show_landed(done: Cleared) -> None:
    parts = [f"{done.actions[action]:,} {action}" for action in ("moved", "deleted", "gone", "replaced")]
    console.print(f"landed files: {', '.join(parts)}, {size(done.bytes)}")
    _show_rest(done)


def landed_rows(done: Cleared | None) -> Iterator[dict[str, object]]:
    if done is not None:
        yield {"kind": "landed", **done.actions, "waiting": done.waiting, "bytes": done.bytes, "left": _left(done)}


def tell_away(view: LakeView, files: Iterable[LedgerFile]) -> None:
    """Tells before files are read again that are no longer in the landing bucket."""
    from forebay.declaration.kept.in_force import kept_services
    from forebay.operate.looking.files import away_of

    named = {file.file_id: file for file in files}
    away = away_of(view, named.values())
    if not away:
        return
    archives = {service.name: service.archives for service in kept_services(view.lake)}
    moved = {file_id for file_id, it in away.items() if it.place}
    read = {one for one in moved if away[one].is_in(archives.get(named[one].service or "", ()), named[one])}
    for some, what in ((read, _FROM_ARCHIVE), (moved - read, _ELSEWHERE), (away.keys() - moved, _DELETED)):
        if some:
            first = min(some, key=lambda file_id: named[file_id].key)
            error_console.print(
                f"{counted(len(some), 'file', 'is')} no longer in the landing bucket, by after_load: "
                f"{named[first].uri} was {away[first]}. {what}"
            )


def _left(found: Cleared) -> dict[str, int]:
    return {reason: files for reason, (files, _) in sorted(found.left.items())}


def _show_rest(found: Cleared) -> None:
    """The files that wait, and those that cannot be moved or deleted."""
    if found.waiting:
        console.print(
            f"{counted(found.waiting, 'file', 'waits')} for records in the quarantine or parked, a replay, a lost "
            "table, a batch, or another service. `forebay quarantine` and `forebay parked` retry or drop such records"
        )
    for reason, (files, first) in sorted(found.left.items()):
        example = f" {counted(files, 'file')}, such as {first.file.uri}: {first.detail}"
        error_console.print(styled(f"landed files: {reason}", "red", example))
