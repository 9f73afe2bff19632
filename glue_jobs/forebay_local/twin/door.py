"""Access to the twin: only with its key, and by an address of this machine; never for a page in a browser.

Enters a WSGI application, and leaves one that answers 403 where a request

* names another host (a name that somebody's DNS turned into 127.0.0.1),
* comes from a page (browsers then send `Origin`),
* is not signed with an access key id that holds the twin's key (`clients.access_key`), or that the twin's STS made.

The twin runs what it is sent, so this matters: other users of this machine reach its port, too. The signature itself is not
checked; the key is in the id, which every client sends.
"""

from __future__ import annotations

import re
import secrets
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING
from urllib.parse import parse_qs

from forebay_local.twin.clients import keys_in

if TYPE_CHECKING:
    from _typeshed.wsgi import StartResponse, WSGIApplication, WSGIEnvironment

OF_THIS_MACHINE = ("127.0.0.1", "localhost", "[::1]")
SIGNED = re.compile(r"Credential=([^/,\s]+)/|^AWS ([^:\s]+):")
IN_QUERY = ("X-Amz-Credential", "AWSAccessKeyId")
"""Parameters of a presigned address, for somebody without credentials."""


def guarded(
    application: WSGIApplication, key: str, vended: Callable[[str], bool] = lambda access_key_id: False
) -> WSGIApplication:
    """`vended` says whether an access key id was made by the twin itself, for somebody who had the key."""

    def answer(environ: WSGIEnvironment, start_response: StartResponse) -> Iterable[bytes]:
        problem = _problem(environ, key, vended)
        if problem is None:
            return application(environ, start_response)
        start_response("403 Forbidden", [("Content-Type", "text/plain")])
        return [f"{problem}\n".encode()]

    return answer


def _problem(environ: WSGIEnvironment, key: str, vended: Callable[[str], bool]) -> str | None:
    host = environ.get("HTTP_HOST", "")
    if not _is_of_this_machine(host) or "HTTP_ORIGIN" in environ:
        return f"The twin answers only programs on this machine, by its address; this request was for {host!r}."
    signed_by = _access_key_id(environ)
    if any(secrets.compare_digest(held.encode(), key.encode()) for held in keys_in(signed_by)) or vended(signed_by):
        return None
    return (
        'The twin answers only requests with its key. Set what `forebay local env` prints: eval "$(forebay local env)".'
    )


def _access_key_id(environ: WSGIEnvironment) -> str:
    signed = SIGNED.search(environ.get("HTTP_AUTHORIZATION", ""))
    if signed:
        return signed.group(1) or signed.group(2)
    asked = parse_qs(environ.get("QUERY_STRING", ""))
    return next((asked[name][0].partition("/")[0] for name in IN_QUERY if name in asked), "")


def _is_of_this_machine(host: str) -> bool:
    name = host.lower()
    if name.rpartition(":")[2].isdigit():
        name = name.rpartition(":")[0]
    return name in OF_THIS_MACHINE or name.endswith(".localhost")
