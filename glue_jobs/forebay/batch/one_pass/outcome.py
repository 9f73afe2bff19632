"""The result of one pass over files, and the reasons why they are read again."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

from forebay.batch.accounting import Fate
from forebay.batch.one_pass.answers import Identified, Moved, Vaulted
from forebay.batch.one_pass.spec import KeptOut, Known
from forebay.batch.plan import delete_files
from forebay.content.end import FileEnd, unread_end
from forebay.counted import counted
from forebay.declaration.service import Service
from forebay.lake.layout import VAULT
from forebay.privacy.vault import place_of
from forebay.table.data_files.data_file import DataFile, Written

if TYPE_CHECKING:
    import pyarrow as pa

TOO_MANY_IDS = "too-many-ids"
IN_VAIN_AT_MOST = 3
"""Passes that showed nothing to leave out, and yet could not be used."""


class ReadAgain(Exception):
    """A pass cannot be used. `files` are left out of the next one, with the ends that they had. `tables` are those that are not
    written, once that is decided: their rows go to the quarantine. `known` are tables whose columns the tasks must know. Where
    there are none of these, the same pass may well succeed."""

    def __init__(
        self,
        why: str,
        *,
        files: Sequence[FileEnd] = (),
        tables: Mapping[str, KeptOut] | None = None,
        known: Mapping[str, Known] | None = None,
    ) -> None:
        super().__init__(why)
        self.files, self.tables, self.known = files, tables, known or {}


@dataclass(frozen=True)
class Pass:
    """`identified` are the data files of tables that leave out duplicates, and `vaulted` those of the vault; `ids` are those of
    the rows that stay, as the table of ids has them, some at a time. `read_twice` says why files were read once more.
    `moved` are records that were held, and `duplicates` gives the `file_id` and the `byte_offset` of those that came before."""

    ends: Sequence[FileEnd]
    fates: Sequence[Fate]
    written: Written
    lake: str
    identified: Sequence[Identified] = ()
    ids: Iterable[pa.Table] = ()
    vault: str = ""
    vaulted: Sequence[Vaulted] = ()
    read_twice: str = ""
    moved: Sequence[Moved] = ()
    duplicates: Callable[[], pa.Table] | None = None

    @cached_property
    def landed(self) -> Mapping[str, str]:
        """The ids of the files that could be read, with the hash of what was read."""
        return {end.file.file_id: end.content_hash for end in self.ends if end.lands}

    @cached_property
    def files_by_piece(self) -> Mapping[int, str]:
        """The ids of the files that land, by the numbers of their pieces."""
        return {piece: end.file.file_id for end in self.ends if end.lands for piece in end.lines_before}

    @property
    def rows_for_vault(self) -> int:
        return sum(file.rows for file in self.written.files.get(VAULT, ()))

    def unaccounted(self) -> list[str]:
        """Files with a record that has no fate: a task that is repeated may read another object."""
        rows: Counter[str] = Counter()
        for fate in self.fates:
            rows[fate.file_id] += fate.rows
        return [e.file.uri for e in self.ends if e.lands and e.documents + e.refused != rows[e.file.file_id]]

    @contextmanager
    def undone_if_unusable(self) -> Iterator[None]:
        """After `ReadAgain` no data file of it is left."""
        try:
            yield
        except ReadAgain:
            self.undo()
            raise

    def undo(self) -> None:
        """Its data files are in no plan."""
        self.delete(file for files in self.written.files.values() for file in files)

    def delete(self, files: Iterable[DataFile]) -> None:
        delete_files(files, self.lake, self.vault)

    def place_of(self, name: str) -> str:
        """The folder of a table's data files."""
        return place_of(name, self.lake, self.vault)


def rows_with_ids(fates: Iterable[Fate], service: Service) -> Counter[str]:
    """The rows of tables that leave out duplicates, by file."""
    rows: Counter[str] = Counter()
    for fate in fates:
        if fate.fate == "write" and fate.declared is not None and service.tables[fate.declared].dedupe:
            rows[fate.file_id] += fate.rows
    return rows


def too_many(ends: Sequence[FileEnd], rows: Counter[str], most: int) -> list[FileEnd]:
    """The ends of files that wait because the driver cannot compare the ids of all rows of a batch at once. They are received
    again by themselves, like files that S3 withheld. Only a file that has too many on its own is refused. The first files
    stay."""
    room, found = most, []
    for end in ends:
        mine = rows[end.file.file_id]
        if mine > most:
            why = f"{counted(mine, 'row', 'is')} in tables with `dedupe`, and {most:,} is the limit"
            found.append(unread_end(end.file, "unreadable", "too-many-records", why))
        elif mine > room:
            why = f"with its {counted(mine, 'row')} in tables with `dedupe`, the files of the batch have more than {most:,}"
            found.append(unread_end(end.file, "unavailable", TOO_MANY_IDS, f"{why}; it will be received again"))
        else:
            room -= mine
    return found
