"""Who may ask the twin: programs of this machine, by an address of this machine; no page in a browser.

Enters a WSGI application, leaves one that answers 403 where a request names another host (a name that somebody's DNS turned
into 127.0.0.1) or comes from a page (browsers then send `Origin`). The twin runs what it is sent, so this matters.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from _typeshed.wsgi import StartResponse, WSGIApplication, WSGIEnvironment

__all__ = ["guarded"]

OF_THIS_MACHINE = ("127.0.0.1", "localhost", "[::1]")


def guarded(application: WSGIApplication) -> WSGIApplication:
    def answer(environ: WSGIEnvironment, start_response: StartResponse) -> Iterable[bytes]:
        host = environ.get("HTTP_HOST", "")
        if _is_of_this_machine(host) and "HTTP_ORIGIN" not in environ:
            return application(environ, start_response)
        start_response("403 Forbidden", [("Content-Type", "text/plain")])
        return [f"The twin answers programs of this machine only, by its address; this came for {host!r}.\n".encode()]

    return answer


def _is_of_this_machine(host: str) -> bool:
    name = host.lower()
    if name.rpartition(":")[2].isdigit():
        name = name.rpartition(":")[0]
    return name in OF_THIS_MACHINE or name.endswith(".localhost")
