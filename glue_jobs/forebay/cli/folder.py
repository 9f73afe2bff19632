"""`forebay.toml` in the current folder: defaults for the commands that run there.

In: a file such as

    lake = "s3://studio-lake"
    service = "./my-service"
    queue_url = "https://sqs.eu-west-1.amazonaws.com/123456789012/landed"
    stack = "forebay-prod"

Out: the same as defaults, for as long as a command runs. An environment variable overrides the file, and an option overrides
both. Paths are relative to the folder.
"""

from __future__ import annotations

import os
import tomllib
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from forebay.errors import InvalidConfiguration

VARIABLES = {
    "lake": "FOREBAY_LAKE",
    "service": "FOREBAY_SERVICE",
    "queue_url": "FOREBAY_QUEUE_URL",
    "landing": "FOREBAY_LANDING",
    "stack": "FOREBAY_STACK",
}
"""Settings that several commands take, and the variables that stand for them."""

FILE = "forebay.toml"


@contextmanager
def folder_defaults(file: Path = Path(FILE)) -> Iterator[None]:
    given = {VARIABLES[name]: value for name, value in _read(file).items()}
    new = {name: value for name, value in given.items() if not os.environ.get(name)}
    os.environ.update(new)
    try:
        yield
    finally:
        for name in new:
            os.environ.pop(name, None)


def _read(file: Path) -> dict[str, str]:
    try:
        text = file.read_text()
    except OSError:
        return {}
    try:
        given = tomllib.loads(text)
    except tomllib.TOMLDecodeError as broken:
        raise InvalidConfiguration.one(FILE, f"is not TOML: {broken}") from None
    for name, value in given.items():
        if name not in VARIABLES:
            raise InvalidConfiguration.one(f"{FILE}: {name}", "is unknown", f"it takes {', '.join(VARIABLES)}")
        if not isinstance(value, str):
            raise InvalidConfiguration.one(f"{FILE}: {name}", "must be a text")
    return given
