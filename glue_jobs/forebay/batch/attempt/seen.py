"""The facts that earlier passes over a batch's files have found, for the next pass.

In: the files that the ledger wants, and why a pass could not be used. Out: the files to read, and the tables that are not
written. Before the plan nothing happened, so a pass may be repeated; only one that keeps giving different records is a `Halt`.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace

from forebay.batch.accounting import Standing
from forebay.batch.attempt.turns import waiting_end
from forebay.batch.one_pass.outcome import IN_VAIN_AT_MOST, Pass, ReadAgain
from forebay.batch.one_pass.spec import KeptOut, Known
from forebay.content.end import FileEnd, unread_end
from forebay.errors import Halt
from forebay.landed_file import LandedFile
from forebay.ledger.versions import Sorted, standing


class Seen:
    """The findings of one attempt at a batch. Files that are `taken` wait for a retry."""

    def __init__(self, wanted: Sorted, taken: Collection[str]) -> None:
        self.wanted = wanted
        marked = wanted.to_forget
        hashes = {one: marked[one].earlier.row.get("content_hash") or "" for one in marked}
        self._unread: dict[str, FileEnd] = {}
        for file in wanted.fresh:
            if file.file_id in taken:
                self._unread[file.file_id] = waiting_end(file)
            elif file.is_deletion:
                self._unread[file.file_id] = unread_end(file, "deleted")
            elif file.file_id in hashes:
                self._unread[file.file_id] = unread_end(file, "forgotten", content_hash=hashes[file.file_id])
        self._left_out: dict[str, FileEnd] = {}
        self.kept_out: Mapping[str, KeptOut] | None = None
        """None before any pass has shown which tables are not written."""
        self.known: dict[str, Known] = {}
        """The tables whose columns a pass did not know."""
        self._records: object = None
        self._in_vain = 0

    @property
    def to_read(self) -> list[LandedFile]:
        known = self._unread | self._left_out
        return [file for file in self.wanted.fresh if file.file_id not in known]

    @property
    def ends(self) -> Sequence[FileEnd]:
        """The ends of the other files."""
        return [*self._unread.values(), *self._left_out.values()]

    @property
    def standing(self) -> Standing:
        """The rows that replayed files have now. If such a file does not land, none of its rows is added."""
        return standing(self.wanted.superseded)

    def must_agree_with(self, made: Pass, split: Sorted) -> None:
        """Tables and files are left out for what an earlier pass showed, and that must be true of this one."""
        fresh, known = {file.file_id for file in split.fresh}, self._unread | self._left_out
        if others := [end for end in made.ends if end.lands and end.file.file_id not in fresh | known.keys()]:
            raise ReadAgain("some files were left out after they had been read", files=others)
        records = made.landed, {*made.fates}
        if self._records not in (None, records) or fresh & self._left_out.keys():
            raise ReadAgain("the files gave different records when they were read again")
        self._records = records

    def learn(self, found: ReadAgain) -> None:
        """The reason why a pass could not be used."""
        is_new = bool(found.files or found.known.keys() - self.known.keys())
        is_new = is_new or found.tables not in (None, self.kept_out)
        self._unread |= {end.file.file_id: end for end in found.files if not end.lands}
        self._left_out |= {end.file.file_id: replace(end, lines_before={}) for end in found.files if end.lands}
        self.known |= found.known
        self.kept_out = found.tables
        if found.tables is None:
            self._records = None
        if not is_new:
            self._left_out = {}
            self._in_vain += 1
        if self._in_vain == IN_VAIN_AT_MOST:
            raise Halt(f"the files were read {IN_VAIN_AT_MOST} times, and nothing was marked as done: {found}")
