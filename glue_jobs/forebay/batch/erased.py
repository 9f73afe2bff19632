"""The service at the start of a batch, with the newest list of erased people."""

from __future__ import annotations

from forebay.declaration.service import Service
from forebay.privacy.erased import newest_list


def without_erased(service: Service, lake: str) -> Service:
    """The service with the newest list of erased people in the lake; unchanged if the lake has none."""
    newest = newest_list(lake, service.name) if service.subject else ""
    return service.with_erased(newest) if newest else service
