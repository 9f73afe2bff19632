"""The erased subjects: lists of their tokens, which keep their late records out. No list names a person.

In: the place of a service's lists, and tokens to add. Out: lists, each with all tokens of the one before. A list never changes,
so a repeated batch uses the list that its plan names.
"""

from __future__ import annotations

from collections.abc import Iterable
from functools import lru_cache

from forebay.declaration.service import Service
from forebay.errors import Halt
from forebay.lake.layout import erased_of
from forebay.lake.objects import open_object, open_objects

LISTS = "lists"


def newest_list(lake: str, service: str) -> str:
    """Its address; empty where nobody was erased."""
    names = open_objects(erased_of(lake, service)).names(LISTS)
    return f"{erased_of(lake, service)}/{LISTS}/{max(names)}" if names else ""


def without_erased(service: Service, lake: str) -> Service:
    """The service with the newest list of erased people in the lake; unchanged if the lake has none."""
    newest = newest_list(lake, service.name) if service.subject else ""
    return service.with_erased(newest) if newest else service


def list_number(address: str) -> int:
    """Later lists have greater numbers, however their lake is spelled; 0 for no list."""
    return int(address.rpartition("/")[2] or 0)


@lru_cache(maxsize=4)
def erased_at(address: str) -> frozenset[str]:
    objects, name = open_object(address)
    found = objects.read(name)
    if found is None:
        raise Halt(f"{address}, a list of erased subjects, is missing: without it, their records would be loaded again")
    return frozenset(found.decode().split())


def add_erased(lake: str, service: str, tokens: Iterable[str]) -> str:
    """The address of a list with all of them. A second call returns the same list."""
    newest = newest_list(lake, service)
    before = erased_at(newest) if newest else frozenset()
    after = before | frozenset(tokens)
    if newest and after == before:
        return newest
    name = f"{LISTS}/{list_number(newest) + 1:010}"
    content = "".join(f"{token}\n" for token in sorted(after)).encode()
    if not open_objects(erased_of(lake, service)).write_once(name, content):
        raise Halt("another erasure of this service is running; run the command again when it has ended")
    return f"{erased_of(lake, service)}/{name}"
