"""moto's services, found at once.

Fixed in moto 5.2.5: for each request, the folder of all services is listed, and the addresses of all are compared with it, some
several times. That takes up to half of an answer's time.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import lru_cache
from typing import Any

from moto import backends
from moto.core.base_backend import BackendDict
from moto.moto_server.werkzeug_app import DomainDispatcherApplication

from forebay_local.twin.patch import Patch, apply


def install() -> None:
    apply(PATCHES)


_modules = tuple(backends.list_of_moto_modules())


def list_of_moto_modules() -> Iterator[str]:
    return iter(_modules)


_of_account = BackendDict.__getitem__


def of_account(self: Any, account_id: str) -> Any:
    """The part of a service that belongs to an account. moto makes it if it is not there."""
    found = self.get(account_id)
    return _of_account(self, account_id) if found is None else found


PATCHES = (
    Patch(backends, "list_of_moto_modules", (), list_of_moto_modules),
    Patch(BackendDict, "__getitem__", ("self", "account_id"), of_account),
    Patch(
        DomainDispatcherApplication,
        "get_backend_for_host",
        ("self", "host"),
        lru_cache(DomainDispatcherApplication.get_backend_for_host),
    ),
)
