"""The log of a function: a line of JSON for each thing that it did."""

from __future__ import annotations

import json
from typing import Any


def log(message: str, **facts: Any) -> None:
    print(json.dumps({"level": "info", "message": message, **facts}, default=str, ensure_ascii=False))
