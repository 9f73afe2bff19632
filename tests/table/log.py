"""A table's log and folder, read without Spark: what the tests compare with."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any


def folder(path: str) -> Path:
    return Path(path.removeprefix("file://"))


def commits(path: str) -> list[list[dict[str, Any]]]:
    """The actions of each version."""
    files = sorted((folder(path) / "_delta_log").glob("*.json"))
    return [[json.loads(line) for line in file.read_text().splitlines()] for file in files]


def adds(path: str) -> list[dict[str, Any]]:
    return [action["add"] for commit in commits(path) for action in commit if "add" in action]


def stats(path: str) -> list[dict[str, Any]]:
    return [json.loads(add["stats"]) for add in adds(path)]


def data_files(path: str) -> list[Path]:
    return sorted(file for file in folder(path).rglob("*.parquet") if "_delta_log" not in file.parts)
