"""Sends events to an OpenLineage endpoint, such as that of Marquez or DataHub, with one POST each.

In: the endpoint's address, and a key. Out: nothing, once the endpoint took the event; else `Refused`. The answers 429 and 5xx
and a lost connection are tried again. Redirects are not followed: the key must go nowhere else. The connection goes through the
proxy of the environment, like boto3's.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any
from urllib.request import getproxies, proxy_bypass

from urllib3 import BaseHTTPResponse, PoolManager, ProxyManager, Timeout
from urllib3.exceptions import HTTPError
from urllib3.util import make_headers, parse_url

from forebay.aws.retrying import attempts
from forebay.errors import ForebayError, InvalidConfiguration

KEY = "OPENLINEAGE_API_KEY"
PATH = "/api/v1/lineage"
"""Where OpenLineage's own clients send to, and where Marquez listens."""
TRIES, FIRST_WAIT_S = 4, 1.0
ONCE: dict[str, Any] = {"timeout": Timeout(connect=5, read=20), "retries": False, "redirect": False}
MOST_SAID = 300


class Refused(ForebayError):
    """The endpoint did not take an event."""


class Endpoint:
    """One that keeps its connection. An address without a path is a server, with the usual path."""

    def __init__(self, address: str, key: str) -> None:
        try:
            url = parse_url(address)
        except HTTPError:
            url = parse_url("")
        if url.scheme not in ("http", "https") or not url.host:
            raise InvalidConfiguration.one(
                f"--to {address}", "is not an HTTP address", f"such as http://marquez:5000{PATH}"
            )
        if url.auth:
            raise InvalidConfiguration.one("--to", "contains a password", f"put the key into {KEY}")
        self._headers = {"Content-Type": "application/json"}
        if key := key.strip():
            if not key.isascii() or not key.isprintable():
                raise InvalidConfiguration.one(KEY, "has a character that no HTTP header may have")
            self._headers["Authorization"] = f"Bearer {key}"
        self.address = (url if (url.path or "/") != "/" else url._replace(path=PATH)).url
        self._pool = _through(None if proxy_bypass(url.host) else getproxies().get(url.scheme))

    def send(self, event: Mapping[str, Any]) -> None:
        body, why = json.dumps(event).encode(), ""
        for _ in attempts(TRIES, first_s=FIRST_WAIT_S):
            try:
                answer = self._pool.request("POST", self.address, body=body, headers=self._headers, **ONCE)
            except HTTPError as lost:
                why = f"does not answer: {lost}"
                continue
            if 200 <= answer.status < 300:
                return
            why = _message_of(answer)
            if answer.status != 429 and answer.status < 500:
                break
        raise Refused(f"{self.address} {why}")


def _through(proxy: str | None) -> PoolManager:
    if not proxy:
        return PoolManager()
    url = parse_url(proxy if "://" in proxy else f"http://{proxy}")
    return ProxyManager(url._replace(auth=None).url, proxy_headers=make_headers(proxy_basic_auth=url.auth))


def _message_of(answer: BaseHTTPResponse) -> str:
    if place := answer.headers.get("Location"):
        return f"answered {answer.status}, and names another address: {place}"
    text = " ".join(answer.data.decode(errors="replace").split())[:MOST_SAID]
    return f"answered {answer.status}" + (f": {text}" if text else "")
