"""The answer of AWS about a resource that may not exist. A refusal for another reason is raised."""

from __future__ import annotations

from collections.abc import Callable, Collection
from typing import TypeVar

from botocore.exceptions import ClientError

Answer = TypeVar("Answer")


def answer_or_none(ask: Callable[[], Answer], absent: Collection[str]) -> Answer | None:
    """None where AWS refuses with one of the codes `absent`: the thing is not there."""
    try:
        return ask()
    except ClientError as refused:
        if refused.response["Error"]["Code"] not in absent:
            raise
        return None
