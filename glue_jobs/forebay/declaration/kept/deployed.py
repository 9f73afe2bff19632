"""Copies the deployed declarations to the place that `forebay tables push` writes, unless those are newer.

In: the place that jobs follow, and the deployed file. Out: the place with the newer of the two, and one event if one replaced
the other. A deployment with the same declarations changes nothing, so it undoes no push. Replaced ones are kept under
`REPLACED`. A second run changes nothing. The caller holds the leases of the service.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime

from forebay.declaration.kept.files import is_declaration, text_of, texts_at, written_at
from forebay.declaration.loading import load_service, version_of
from forebay.events import Emit, ErrorEvent
from forebay.lake.layout import DEPLOYED, REPLACED
from forebay.lake.objects import Objects, open_objects


@dataclass(frozen=True, kw_only=True)
class PushReplaced(ErrorEvent):
    """A deployment has newer declarations than the pushed ones, and replaced them. Push them again if they were meant to
    stay."""

    pushed: str
    deployed: str
    kept: str


@dataclass(frozen=True, kw_only=True)
class DeploymentGaveWay(ErrorEvent):
    """The pushed declarations are newer than the deployed ones, and stay in force. A person should combine them."""

    pushed: str
    deployed: str


def take_up_deployed(place: str, deployed: str, lake: str, *, emit: Emit) -> None:
    offered, home, there = load_service(deployed), open_objects(lake), open_objects(place)
    known = json.loads(home.read(DEPLOYED) or b"{}")
    if known.get("deployed") == offered.version:
        return
    texts, pushed_at = _texts(there)
    mine = version_of(texts)
    if texts and mine not in (offered.version, known.get("seeded")):
        if pushed_at > written_at(deployed):
            emit(DeploymentGaveWay(pushed=mine, deployed=offered.version))
            _note(home, {**known, "deployed": offered.version})
            return
        _keep(home, f"{REPLACED}/{mine}", texts)
        emit(PushReplaced(pushed=mine, deployed=offered.version, kept=f"{home.place}/{REPLACED}/{mine}"))
    if mine != offered.version:
        there.write("service.toml", texts_at(deployed)["service.toml"].encode())
        there.delete(sorted(texts.keys() - {"service.toml"}))
    _note(home, {"deployed": offered.version, "seeded": offered.version})


def _texts(place: Objects) -> tuple[dict[str, str], datetime]:
    """The files of declarations, and when the last of them was written."""
    found = [one for one in place.found() if is_declaration(one.name)]
    texts = {one.name: text_of(one.name, place.read(one.name) or b"") for one in found}
    return texts, max((one.modified for one in found), default=datetime.min.replace(tzinfo=UTC))


def _keep(home: Objects, folder: str, texts: Mapping[str, str]) -> None:
    for name, text in texts.items():
        home.write(f"{folder}/{name}", text.encode())


def _note(home: Objects, known: Mapping[str, str]) -> None:
    home.write(DEPLOYED, json.dumps(known).encode())
