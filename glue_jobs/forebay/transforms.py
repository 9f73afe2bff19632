"""The functions that a declaration may name as its `transform`.

In: `module:function`. Out: the function, of that module in the package `transforms`; `NoFunction` where there is none. Only
this package is searched, so a declaration chooses among deployed functions and never brings code. Deployed jobs have the
package in their code. Beside local declarations it is a folder.
"""

from __future__ import annotations

import hashlib
import re
import sys
import zipfile
from collections.abc import Callable, Iterator, Sequence
from importlib import import_module, invalidate_caches
from importlib.abc import MetaPathFinder
from importlib.machinery import ModuleSpec
from importlib.util import find_spec, spec_from_file_location
from pathlib import Path
from traceback import walk_tb
from types import ModuleType
from typing import Any

from forebay.address import is_s3, local_folder

PACKAGE = "transforms"
TRANSFORM_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*:[A-Za-z_][A-Za-z0-9_]*")
NO_MODULE = "put the module into the folder transforms/ beside service.toml, and deploy that folder with the jobs"
OTHER_CODE = "deploy the code that has the function, or push declarations that do not name it"

MOST_REASON = 1_000
"""Characters of why a row is refused."""


class NoFunction(Exception):
    """The function cannot be used for any row. Its text says why. The `hint` says what to do, if it is not there."""

    def __init__(self, why: str, cause: BaseException | None = None, hint: str = "") -> None:
        super().__init__(why)
        is_gone = isinstance(cause, ModuleNotFoundError) and (cause.name or "").partition(".")[0] == PACKAGE
        self.hint = NO_MODULE if is_gone else hint


def use_folder(place: str) -> None:
    """From now on, this process finds the functions beside these declarations, if they are local and have some."""
    if (package := package_beside(place)) is not None:
        _BESIDE.find_in(package.parent)


def package_beside(place: str) -> Path | None:
    """The folder `transforms` beside declarations, if they are local and have one."""
    if not place or is_s3(place):
        return None
    around = local_folder(place).absolute()
    package = (around.parent if around.is_file() else around) / PACKAGE
    return package if package.is_dir() else None


def folders() -> tuple[str, ...]:
    """The folder that `use_folder` chose, if it chose one, for tasks on the same machine."""
    return () if _BESIDE.folder is None else (str(_BESIDE.folder),)


def function_of(name: str, places: Sequence[str] = ()) -> Callable[[Any], Any]:
    """`places` are those of the driver. On a cluster, a worker finds the package in its own code."""
    for place in places:
        use_folder(place)
    module, _, function = name.partition(":")
    try:
        code = import_module(f"{PACKAGE}.{module}")
    except (KeyboardInterrupt, MemoryError):
        raise
    except BaseException as failure:  # such as SystemExit, or the panic of a module in Rust
        raise NoFunction(f"{name} cannot be imported: {reason_of(failure)}", failure) from failure
    found = getattr(code, function, None)
    if found is None:
        raise NoFunction(f"{name}: {PACKAGE}/{module}.py has no function {function}", hint=OTHER_CODE)
    if not callable(found):
        raise NoFunction(f"{name} is not a function")
    made: Callable[[Any], Any] = found
    return made


def code_version() -> str:
    """Eight hex digits for the code of all functions that this process finds. They change with any file of it."""
    spec = find_spec(PACKAGE)
    places = (spec and spec.submodule_search_locations) or ()
    found = sorted(one for place in places for one in _code_in(Path(place)) if one[1].strip())
    return hashlib.sha256(repr(found).encode()).hexdigest()[:8]


def _code_in(package: Path) -> Iterator[tuple[str, bytes]]:
    """The names and contents of the files, of a folder or of a folder in a zip."""
    if package.is_dir():
        yield from ((file.relative_to(package).as_posix(), file.read_bytes()) for file in package.rglob("*.py"))
        return
    shipped = next((parent for parent in package.parents if parent.is_file()), None)
    if shipped is not None:
        inner = f"{package.relative_to(shipped).as_posix()}/"
        with zipfile.ZipFile(shipped) as code:
            for name in code.namelist():
                if name.startswith(inner) and name.endswith(".py"):
                    yield name.removeprefix(inner), code.read(name)


class _Beside(MetaPathFinder):
    """Finds the package in one folder. Python's own path may have a package of that name, such as that of another service in
    the current folder."""

    folder: Path | None = None

    def find_in(self, folder: Path) -> None:
        if folder == self.folder:
            return
        self.folder = folder
        for name in [name for name in sys.modules if name.partition(".")[0] == PACKAGE]:
            del sys.modules[name]
        invalidate_caches()
        if self not in sys.meta_path:
            sys.meta_path.insert(0, self)

    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        if fullname != PACKAGE or self.folder is None:
            return None
        package = self.folder / PACKAGE
        if (package / "__init__.py").is_file():
            return spec_from_file_location(fullname, package / "__init__.py")
        spec = ModuleSpec(fullname, None, is_package=True)
        spec.submodule_search_locations = [str(package)]
        return spec


_BESIDE = _Beside()


def reason_of(failure: BaseException) -> str:
    """An exception as text that Arrow can keep, whatever its own text is."""
    try:
        text = f": {failure}"
    except Exception:
        text = ""
    return f"{type(failure).__name__}{text}"[:MOST_REASON].encode(errors="replace").decode()


def line_of(failure: BaseException) -> str:
    """The last line of a function's own code in which an exception was, such as ` (shop.py, line 9)`; empty if none was."""
    frames = walk_tb(failure.__traceback__)
    own = [(frame, line) for frame, line in frames if frame.f_globals.get("__name__", "").startswith(f"{PACKAGE}.")]
    return f" ({Path(own[-1][0].f_code.co_filename).name}, line {own[-1][1]})" if own else ""
