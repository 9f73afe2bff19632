"""The secret that a lake's tokens are of. Somebody may lose it and make another one: equal values would then get other tokens,
and records of erased people would come back. Every process reads the secret by itself, so a running job may meet both: its
driver tells the tasks a token of its own secret.

In: a lake, and a service. Out: nothing, or `InvalidConfiguration`. The lake keeps one token for each service, of a fixed value.
Only the same secret recognises it, and nobody can compute the secret from it. A lake that has none yet knows its secret by the
tokens of erased people.
"""

from __future__ import annotations

from collections.abc import Collection

from forebay.declaration.service import Service
from forebay.errors import Halt, InvalidConfiguration, Unreachable
from forebay.lake.layout import known_token_of
from forebay.lake.objects import open_object
from forebay.privacy.erased import erased_at, newest_list
from forebay.privacy.secret import secret_at
from forebay.privacy.token import looks_like_token, token_of

VALUE = "the secret of this lake"


def keep_secret(lake: str, service: Service) -> None:
    """Keeps a token of the first secret that the service has here. A second call changes nothing. Another secret is refused."""
    if not service.secret:
        return
    objects, name = open_object(known_token_of(lake, service.name))
    token = known_token(service.secret).encode()
    if objects.read(name) == token:
        return
    must_be_known_secret(lake, service)
    if not objects.write_once(name, token):
        must_be_known_secret(lake, service)


def known_token(address: str) -> str:
    """The token of the secret that this process has from there, which recognises it; empty without an address."""
    return token_of(VALUE, secret_at(address)) if address else ""


def must_be_secret_of(token: str, address: str) -> None:
    """In a task, for the token of its driver."""
    if known_token(address) != token:
        raise Halt(
            f"{address} was replaced while the job ran: equal values would get other tokens, and records of erased people "
            "would come back. No row with such tokens was written. Restore the first secret, see docs/disasters.md, A secret"
        )


def must_be_known_secret(lake: str, service: Service) -> None:
    if not service.secret:
        return
    secret = secret_at(service.secret)
    place, tokens = _known(lake, service.name)
    if tokens and not any(token_of(token, secret) == token for token in tokens):
        raise InvalidConfiguration.one(
            "privacy: secret",
            f"{service.secret} is not the secret that made the tokens in this lake: equal values would get other "
            "tokens, and records of erased people would come back",
            f"restore the first one, see docs/disasters.md, A secret; {place} has a token of it",
        )


def compared_secret(lake: str, service: Service) -> list[str]:
    """The same for people who put declarations in force, and who need not be allowed to read the secret. A sentence if so."""
    try:
        must_be_known_secret(lake, service)
    except Unreachable as denied:
        return [f"service: the secret was not compared with that of the lake, but the job compares it: {denied}"]
    return []


def _known(lake: str, service: str) -> tuple[str, Collection[str]]:
    """An object with tokens of the secret, and the tokens. Earlier versions accepted a new secret, so a list may have tokens of
    both."""
    place = known_token_of(lake, service)
    objects, name = open_object(place)
    known = objects.read(name)
    if known is not None:
        return place, (_token_in(known, place),)
    newest = newest_list(lake, service)
    return newest, erased_at(newest) if newest else ()


def _token_in(content: bytes, place: str) -> str:
    token = content.decode("utf-8", "replace").strip()
    if not looks_like_token(token):
        hint = "restore it. If the secret is still the first one, delete it: the job then writes it again"
        raise InvalidConfiguration.one(place, "does not hold a token of the secret: somebody changed it", hint)
    return token
