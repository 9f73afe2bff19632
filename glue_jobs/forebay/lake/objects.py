"""Objects under one place: a prefix in S3, or a folder of this machine. S3 and the folder behave alike.

In: `s3://bucket/prefix`, `file:/folder` or a path. Out: names, sizes, times and bytes. Names are relative to the place, with
slashes. Missing objects are None or left out. A write is durable when the call returns.

The checkpoint's safety depends on `write_once`: of two writers of one name, exactly one wins. A writer whose own first attempt
succeeded unnoticed also wins. A wrong or forbidden place is `InvalidConfiguration`; anything else that S3 refuses is `Halt`.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import suppress
from typing import Any, BinaryIO, Protocol

from forebay.address import is_s3, local_folder
from forebay.errors import Halt, InvalidConfiguration
from forebay.lake.folder_objects import FolderObjects
from forebay.lake.listed import Listed, OldVersion
from forebay.lake.s3_objects import S3Objects, s3_client


class Objects(Protocol):
    place: str

    def found(self, prefix: str = "", *, after: str = "") -> Iterator[Listed]:
        """Everything whose name begins so, in order, those after a name only."""

    def folders(self) -> list[str]:
        """The names of the folders directly under the place."""

    def names(self, folder: str) -> list[str]:
        """The names directly in `folder`, without it, sorted."""

    def read(self, name: str) -> bytes | None: ...

    def open(self, name: str) -> BinaryIO | None:
        """Opens an object to be read in part: only the requested ranges of a large object are fetched."""

    def read_tagged(self, name: str) -> tuple[bytes, str] | None:
        """Reads an object with a tag that changes with its content."""

    def write(self, name: str, content: bytes) -> None:
        """Creates or overwrites `name`."""

    def write_once(self, name: str, content: bytes) -> bool:
        """True when `name` now holds `content`, False when it holds something else."""

    def write_over(self, name: str, content: bytes, tag: str | None) -> bool:
        """Only if the content is still the one with this tag; None: only if there is none. False: it is not."""

    def delete(self, names: Iterable[str]) -> None:
        """Ignores missing names."""

    def old_versions(self) -> Iterator[OldVersion]:
        """None in a folder, and none in a bucket that never kept versions."""

    def folders_of_old_versions(self) -> list[str]:
        """The names of the folders directly under the place in which a bucket keeps old versions only."""

    def open_old(self, version: OldVersion) -> BinaryIO | None:
        """Opens an old version, like `open`."""

    def delete_old(self, versions: Iterable[OldVersion]) -> None:
        """Deletes old versions for good. Ignores missing ones."""


def open_objects(place: str, *, s3: Any = None) -> Objects:
    """Opens the objects with the environment's credentials and endpoint, unless a client is given."""
    if is_s3(place):
        return S3Objects(s3 or s3_client(), place)
    return FolderObjects(local_folder(place))


def open_object(address: str, *, s3: Any = None) -> tuple[Objects, str]:
    """The folder of one object, and its name there. The root of this machine is a folder, too."""
    folder, slash, name = address.rpartition("/")
    return open_objects(folder or slash, s3=s3), name


def discard(place: str, names: Iterable[str]) -> None:
    """Deletes data files that no log names, if it may. Whoever only appends to tables may delete none, and leaves them to
    maintenance."""
    with suppress(Halt, InvalidConfiguration):
        open_objects(place).delete(names)
