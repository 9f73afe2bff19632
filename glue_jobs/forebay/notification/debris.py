"""The objects that frameworks leave beside the data, recognised by their names; such an object is never a file.

Spark hides every name that begins with "_" or ".". We hide less, because a producer may call a folder `_games`. So
the names are listed one by one: a "_" alone must not lose data.
"""

from __future__ import annotations

from forebay.landed_file import LandedFile
from forebay.notification.outcome import Ignored

_HIDDEN_FOLDERS = frozenset({"_delta_log", "_spark_metadata"})


def debris(file: LandedFile) -> Ignored | None:
    """Why nobody wants this object; None for a file."""
    reason = _reason(file.key, file.size)
    return Ignored(reason, file.uri) if reason else None


def _reason(key: str, size: int | None) -> str:
    *folders, name = key.split("/")
    if size == 0 and (not name or name.endswith("_$folder$")):
        return "folder-marker"
    if name == "_SUCCESS":
        return "success-marker"
    if name.startswith(("_committed_", "_started_")):
        return "commit-marker"
    if name.endswith("._COPYING_") or any(_is_temporary(folder) for folder in folders):
        return "temporary"
    if name.startswith(".") or any(_is_hidden(folder) for folder in folders):
        return "hidden"
    return ""


def _is_temporary(folder: str) -> bool:
    return folder == "_temporary" or folder.startswith("__magic")


def _is_hidden(folder: str) -> bool:
    return folder.startswith(".") or folder in _HIDDEN_FOLDERS
