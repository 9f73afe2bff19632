"""Objects in a folder of this machine, which behaves like S3.

In: a folder, which may not exist yet. Out: `Objects`. A folder that cannot be written is `InvalidConfiguration`.
"""

from __future__ import annotations

import hashlib
import os
import tempfile
from collections.abc import Iterable, Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import BinaryIO

from forebay.errors import InvalidConfiguration
from forebay.lake.listed import Listed, OldVersion


class FolderObjects:
    """A folder. For one machine: laptops, tests, and shared disks that honour hard links.

    Logs have many small objects, and a `Path` costs more than reading one: `found` and `read` work with text."""

    def __init__(self, root: Path) -> None:
        self._root, self.place = root, str(root)

    def found(self, prefix: str = "", *, after: str = "") -> Iterator[Listed]:
        folder = self._root / prefix.rpartition("/")[0]
        names: list[str] = []
        for where, _, files in os.walk(folder):
            inside = Path(where).relative_to(self._root).as_posix()
            names += files if inside == "." else (f"{inside}/{name}" for name in files)
        for name in sorted(names):
            if name.startswith(prefix) and name > after:
                try:
                    stat = os.stat(f"{self.place}/{name}")  # noqa: PTH116
                except FileNotFoundError:
                    continue  # gone since it was listed
                yield Listed(name, stat.st_size, datetime.fromtimestamp(stat.st_mtime, UTC))

    def folders(self) -> list[str]:
        return sorted(path.name for path in self._root.iterdir() if path.is_dir()) if self._root.is_dir() else []

    def names(self, folder: str) -> list[str]:
        try:
            return sorted(p.name for p in (self._root / folder).iterdir() if p.is_file() and not p.name.startswith("."))
        except FileNotFoundError:
            return []

    def read(self, name: str) -> bytes | None:
        try:
            with open(f"{self.place}/{name}", "rb") as file:  # noqa: PTH123
                return file.read()
        except (FileNotFoundError, NotADirectoryError):
            return None

    def open(self, name: str) -> BinaryIO | None:
        try:
            return (self._root / name).open("rb")
        except (FileNotFoundError, NotADirectoryError):
            return None

    def read_tagged(self, name: str) -> tuple[bytes, str] | None:
        content = self.read(name)
        return None if content is None else (content, hashlib.sha256(content).hexdigest())

    def write(self, name: str, content: bytes) -> None:
        place = self._root / name
        aside = self._write_aside(name, content)
        # Hadoop's checksum of what was there, if it was Hadoop's.
        (place.parent / f".{place.name}.crc").unlink(missing_ok=True)
        aside.replace(place)
        _make_entry_durable(place)

    def write_once(self, name: str, content: bytes) -> bool:
        place, aside = self._root / name, self._write_aside(name, content)
        try:
            os.link(aside, place)  # refuses where the name is taken, which a rename would not
        except FileExistsError:
            return self.read(name) == content
        finally:
            aside.unlink()
        _make_entry_durable(place)
        return True

    def write_over(self, name: str, content: bytes, tag: str | None) -> bool:
        """Two processes could still meet between the look and the write: no harm for what is written like this."""
        there = self.read_tagged(name)
        if (there and there[1]) != tag:
            return False
        self.write(name, content)
        return True

    def delete(self, names: Iterable[str]) -> None:
        for name in names:
            (self._root / name).unlink(missing_ok=True)

    def old_versions(self) -> Iterator[OldVersion]:
        return iter(())

    def folders_of_old_versions(self) -> list[str]:
        return []

    def open_old(self, version: OldVersion) -> BinaryIO | None:
        return None

    def delete_old(self, versions: Iterable[OldVersion]) -> None:
        """There are none."""

    def _write_aside(self, name: str, content: bytes) -> Path:
        folder, aside = (self._root / name).parent, ""
        try:
            folder.mkdir(parents=True, exist_ok=True)
            descriptor, aside = tempfile.mkstemp(dir=folder, prefix=".")
            with os.fdopen(descriptor, "wb") as file:
                file.write(content)
                file.flush()
                os.fsync(file.fileno())
        except OSError as refused:
            if aside:
                Path(aside).unlink(missing_ok=True)
            raise InvalidConfiguration.one(self.place, f"cannot be written: {refused}") from refused
        return Path(aside)


def _make_entry_durable(path: Path) -> None:
    """The entry in the folder must survive a power cut as well, not only the content."""
    folder = os.open(path.parent, os.O_RDONLY)
    try:
        os.fsync(folder)
    finally:
        os.close(folder)
