"""The declarations that a lake's ingest job uses, kept in the lake for commands without `--service`.

In: a lake, and a service. Out: one small object for each service, which the job writes when it adopts declarations; and the
service again. A lake with several services, or with one that no job has stored yet, is `InvalidConfiguration`: the built-in
example never replaces a user's own declarations.
"""

from __future__ import annotations

import json

from forebay.declaration.kept.pinned import pinned, unpinned
from forebay.declaration.loading import builtin_service, load_service
from forebay.declaration.service import Service
from forebay.errors import InvalidConfiguration
from forebay.lake.layout import SERVICES, writers_of
from forebay.lake.objects import Objects, open_objects


def keep_in_force(lake: str, service: Service) -> None:
    """Keeps the declarations. A second call changes nothing."""
    plain = pinned(service.with_paused(()).with_erased(""))
    open_objects(lake).write(f"{SERVICES}/{service.name}.json", json.dumps(plain).encode())


def kept_service(lake: str, name: str) -> Service | None:
    """The declarations that the job of this service uses; None if no job has kept them yet."""
    text = open_objects(lake).read(f"{SERVICES}/{name}.json")
    return None if text is None else unpinned(json.loads(text), f"the service {name}")


def kept_services(lake: str) -> list[Service]:
    """Every service that a job has kept."""
    return [service for name in kept_names(open_objects(lake)) if (service := kept_service(lake, name)) is not None]


def service_for(place: str, lake: str, deployed: str = "") -> Service:
    """The declarations at this place; without a place, those that the lake's job uses. `deployed` is used while the place
    is empty."""
    if place:
        is_empty = deployed and open_objects(place).read("service.toml") is None
        return load_service(deployed if is_empty else place)
    objects, example = open_objects(lake), builtin_service()
    kept = kept_names(objects)
    known = sorted({*kept, *open_objects(writers_of(lake)).folders()})
    if len(known) > 1 or (known and known != kept and known != [example.name]):
        problem = f"is missing: this lake has files of {_listed(known)}"
        raise InvalidConfiguration.one("--service", problem, "name the folder with the declarations of that service")
    if not kept:
        return example
    return kept_service(lake, kept[0]) or example


def kept_names(objects: Objects) -> list[str]:
    return [name.removesuffix(".json") for name in objects.names(SERVICES) if name.endswith(".json")]


def _listed(services: list[str]) -> str:
    return f"the service {services[0]}" if len(services) == 1 else f"the services {', '.join(services)}"
