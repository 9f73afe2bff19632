"""The functions that a declaration may name as its `transform`.

In: `module:function`. Out: the function, of that module in the package `transforms`; `NoFunction` where there is none. Only
this package is searched, so a declaration chooses among deployed functions and never brings code. Deployed jobs have the
package in their code. Beside local declarations it is a folder.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Callable, Sequence
from importlib import import_module, invalidate_caches
from pathlib import Path
from typing import Any

from forebay.address import is_s3, local_folder

__all__ = [
    "HINT",
    "MOST_REASON",
    "PACKAGE",
    "TRANSFORM_NAME",
    "NoFunction",
    "folders",
    "function_of",
    "reason_of",
    "use_folder",
]

PACKAGE = "transforms"
TRANSFORM_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*:[A-Za-z_][A-Za-z0-9_]*")
HINT = "put the module into the folder transforms/ beside service.toml, and deploy that folder with the jobs"

MOST_REASON = 1_000
"""Characters of why a row is refused."""


class NoFunction(Exception):
    """The function cannot be used for any row. Its text says why."""


def use_folder(place: str) -> None:
    """From now on, this process finds the functions beside these declarations, if they are local."""
    if is_s3(place):
        return
    folder = local_folder(place).absolute()
    folder = folder.parent if folder.is_file() else folder
    if (folder / PACKAGE).is_dir() and str(folder) not in sys.path:
        sys.path.append(str(folder))
        invalidate_caches()


def folders() -> tuple[str, ...]:
    """The folders in which this process finds the package, for tasks on the same machine."""
    return tuple(place for place in sys.path if place and Path(place, PACKAGE).is_dir())


def function_of(name: str, places: Sequence[str] = ()) -> Callable[[Any], Any]:
    """`places` are those of the driver. On a cluster, a worker finds the package in its own code."""
    sys.path += [place for place in places if place not in sys.path]
    module, _, function = name.partition(":")
    try:
        found = getattr(import_module(f"{PACKAGE}.{module}"), function)
    except (KeyboardInterrupt, MemoryError):
        raise
    except BaseException as failure:  # such as SystemExit, or the panic of a module in Rust
        raise NoFunction(f"{name} cannot be imported: {reason_of(failure)}") from failure
    if not callable(found):
        raise NoFunction(f"{name} is not a function")
    made: Callable[[Any], Any] = found
    return made


def reason_of(failure: BaseException) -> str:
    """An exception as text that Arrow can keep, whatever its own text is."""
    try:
        said = f": {failure}"
    except Exception:
        said = ""
    return f"{type(failure).__name__}{said}"[:MOST_REASON].encode(errors="replace").decode()
