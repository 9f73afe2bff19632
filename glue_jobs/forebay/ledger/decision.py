"""Decides which files of a batch are loaded, one after the other. All versions of a key follow the same rule.

Pure. In: a `Claim`. Out: `Sorted`, before the files are read and after it. The same question always gets the same answer.

* `append`: other bytes are loaded beside the earlier ones. * `ignore`: they are left out.
* `replace`: they replace the earlier ones, unless they are themselves older and were announced late. A later version that was
  a duplicate shows that the bytes of its equal were written again.

A file that an operator replays replaces itself, whatever the rule. A file that an operator forgets leaves nothing. The same
bytes then stay out, under any version of their key.

A deletion of a key replaces all earlier versions, whatever the rule (see `deletions`). An older version that arrives later is
left out, and one that is written later is loaded again.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import cmp_to_key, reduce
from typing import TYPE_CHECKING

from forebay.landed_file import LandedFile
from forebay.ledger.claim import Claim, Key, same_bytes
from forebay.ledger.deletions import deleted_by, is_deleted, is_put_again
from forebay.ledger.entry import IGNORED, SKIPPED_BY_OPERATOR, UNREADABLE, WANTED_AGAIN, Entry
from forebay.ledger.ignored import RULES
from forebay.ledger.versions import OVERWRITTEN, SAME_BYTES, SAME_BYTES_FORGOTTEN, Earlier, Sorted
from forebay.notification.order import written_later

if TYPE_CHECKING:
    from forebay.declaration.service import Overwritten


def files_to_read(claim: Claim) -> Sorted:
    """Before anything is read. If a key has several new versions, the batch must read all of them to decide which one to
    load."""
    return decide_files(claim, {})


def decide_files(claim: Claim, readable: Mapping[str, str]) -> Sorted:
    """`readable` are the ids of the files that could be read, with the hashes of what was read. Of several new versions of
    a key, one that could not be read neither takes the place of another one nor makes it a duplicate."""
    decision = _Decision(claim, readable)
    for file in _in_turn(claim):
        decision.take(file)
    return decision.sorted()


def _in_turn(claim: Claim) -> Iterator[LandedFile]:
    """The files in order of arrival. Under `ignore`, the first version is the one that S3 wrote first."""
    versions: dict[Key, list[LandedFile]] = {}
    for file in claim.files:
        versions.setdefault((file.bucket, file.key), []).append(file)
    oldest_first = cmp_to_key(_oldest_first)
    turns = {
        (bucket, key): iter(sorted(some, key=oldest_first) if claim.rule_of(key) == "ignore" else some)
        for (bucket, key), some in versions.items()
    }
    return (next(turns[file.bucket, file.key]) for file in claim.files)


class _Decision:
    def __init__(self, claim: Claim, readable: Mapping[str, str]) -> None:
        self.claim, self.readable = claim, readable
        self.here: set[str] = set()
        self.hashes = claim.hashes(readable)
        self.fresh: dict[Key, list[LandedFile]] = {}
        self.duplicates = {
            key: [seen.file for seen in some if seen.is_duplicate] for key, some in claim.earlier.items()
        }
        self.order: dict[str, LandedFile] = {}
        self.known: list[LandedFile] = []
        self.returning: list[Earlier] = []
        self.put_again: list[Earlier] = []
        self.left_out: list[Entry] = []
        self.retried: dict[str, LandedFile] = {}
        self.replays: set[str] = set()
        self.asked_for: set[str] = set()
        self.tries: dict[str, int] = {}
        self.released: list[LandedFile] = []
        versions: dict[Key, set[str]] = {}
        self.deletions: dict[Key, list[LandedFile]] = {}
        for file in claim.files:
            if not file.is_deletion:
                versions.setdefault(self._key(file), set()).add(file.file_id)
            elif not self._is_left_out(file):
                self.deletions.setdefault(self._key(file), []).append(file)
        self.contested = {key for key, ids in versions.items() if len(ids) > 1}

    def take(self, file: LandedFile) -> None:
        his = [seen for seen in self._earlier(file) if seen.file.file_id == file.file_id]
        forget = any(seen.wants_forgetting for seen in his)
        skip, rule = file.file_id in self.claim.skipped and not forget, "" if forget else self.claim.ignored(file)
        stays = skip and any(seen.skipped_by_operator or seen.is_marked for seen in his)
        stays = stays or (bool(rule) and any(seen.ignored or seen.is_marked for seen in his))
        final = any(seen.final and not seen.ignored for seen in his) and not self._is_back(file, his)
        if file.file_id in self.here or stays or final:
            self.known.append(file)
            # One that stays may be read later: bytes from in between must not count as newer.
            put = (seen for seen in his if seen.put_again or (stays and is_put_again(file, seen)))
            self.put_again += [replace(seen, row=seen.with_time_of(file)) for seen in put]
            return
        self.here.add(file.file_id)
        if any(seen.is_marked and self._leaves(seen) for seen in his):
            return  # its row changes with those of the other versions that leave
        waits = skip or bool(rule)
        if any((seen.is_leaving and (waits or self.claim.dedupe)) or (seen.came_back and waits) for seen in his):
            self.known.append(file)
            self.returning += [
                replace(seen, row=seen.with_time_of(file)) if written_later(file, seen.file) else seen for seen in his
            ]
            return
        for seen in his:
            self.retried[file.file_id] = file
            self.tries[file.file_id] = seen.row.get("tries") or 1
        if any(seen.stands for seen in his):
            self.replays.add(file.file_id)
        if any(seen.is_marked or seen.row.get("reason") == WANTED_AGAIN for seen in his):
            self.asked_for.add(file.file_id)
        if any(seen.row["outcome"] == UNREADABLE for seen in his):
            self.released.append(file)
        by = next((seen.row.get("superseded_by") for seen in his), None)  # a rollback may bring earlier rows back
        if skip:
            self.left_out.append(Entry(file=file, outcome="skipped", reason=SKIPPED_BY_OPERATOR, superseded_by=by))
            return
        if rule:
            entry = Entry(file=file, outcome=IGNORED, reason=rule, detail=RULES[rule], superseded_by=by)
            self.left_out.append(entry)
            return
        if not file.is_deletion and self._is_deleted(file):
            self.left_out.append(Entry(file=file, outcome="superseded", reason="announced-late"))
        elif (
            file.is_deletion
            or forget
            or self._is_unread(file)
            or (file.file_id in self.replays and self._is_outdone(file))
        ):
            self.order[file.file_id] = file
        else:
            self._decide(file)

    def _decide(self, file: LandedFile) -> None:
        rule, rivals = self.claim.rule_of(file.key), self._rivals(file)
        if self._is_duplicate(file, rivals, rule):
            content_hash = self.hashes.get(file.file_id) or ""
            self.left_out.append(Entry(file=file, outcome="duplicate", reason=SAME_BYTES, content_hash=content_hash))
            self.duplicates.setdefault(self._key(file), []).append(file)
        elif any(self._same_bytes(file, gone) for gone in self._forgotten(file)):
            self.left_out.append(Entry(file=file, outcome="duplicate", reason=SAME_BYTES_FORGOTTEN))
        elif rivals and rule == "ignore":
            self.left_out.append(Entry(file=file, outcome="skipped", reason=OVERWRITTEN))
        elif rule == "replace" and (later := [one for one in [*rivals, *self._gone(file)] if self._later(one, file)]):
            by = self._latest(later).file_id
            self.left_out.append(Entry(file=file, outcome="superseded", reason="announced-late", superseded_by=by))
        else:
            if rule == "replace":
                for outdone in self.fresh.pop(self._key(file), []):
                    self._outdo(outdone, file)
            self.fresh.setdefault(self._key(file), []).append(file)
            self.order[file.file_id] = file

    def _outdo(self, file: LandedFile, by: LandedFile) -> None:
        """The row of a replay changes with those of the other versions that leave. A rollback may restore rows of one that was
        forgotten before, so its row says which version took its place."""
        del self.order[file.file_id]
        if file.file_id in self.replays:
            del self.retried[file.file_id]
        else:
            entry = Entry(file=file, outcome="superseded", reason=OVERWRITTEN, superseded_by=by.file_id)
            self.left_out.append(entry)

    def _is_duplicate(self, file: LandedFile, rivals: Sequence[LandedFile], rule: Overwritten) -> bool:
        """Under `replace` only the newest version stands, so only its bytes count: A, B, A ends at A."""
        if rule == "replace" and rivals:
            rivals = [self._latest(rivals)]
        return any(self._same_bytes(file, rival) for rival in rivals)

    def _same_bytes(self, file: LandedFile, rival: LandedFile) -> bool:
        return same_bytes(file, rival, self.hashes)

    def _is_back(self, file: LandedFile, his: Sequence[Earlier]) -> bool:
        """Without versions, a key that gets its first bytes back is the same file again: under `replace` it replaces the
        bytes in between. Rows that tables still have of it, or have again since a rollback, leave as those of a replay do. With
        `dedupe`, a superseded file waits until its rows have left: their ids are gone, so a copy may be loaded beside
        them. A new version is never a file that is back."""
        deletions = self._deletions(file)
        deleted = all(is_deleted(seen.file, [d for d in deletions if written_later(file, d)]) for seen in his)
        outdone = all(
            seen.row["outcome"] == "superseded" or seen.came_back or (deleted and seen.is_duplicate) for seen in his
        )
        replaces = self.claim.rule_of(file.key) == "replace"
        if file.has_own_version or not outdone or not (replaces or deleted):
            return False
        others = [seen.file for seen in self._earlier(file) if seen in his or (seen.loaded and replaces)] + deletions
        return all(self._later(file, other) for other in others)

    def _earlier(self, file: LandedFile) -> Sequence[Earlier]:
        return self.claim.earlier.get(self._key(file), ())

    def _rivals(self, file: LandedFile) -> list[LandedFile]:
        """The rivals of a file. A replay has none: it replaces itself."""
        if file.file_id in self.replays:
            return []
        loaded = [
            seen.file
            for seen in self._earlier(file)
            if seen.loaded and not (seen.rolled_back or seen.forgotten) and seen.file.file_id != file.file_id
            if not self._leaves(seen)
        ]
        return loaded + self.fresh.get(self._key(file), [])

    def _gone(self, file: LandedFile) -> list[LandedFile]:
        """They are in nobody's way, but an older version does not come back for them."""
        rolled_back = [seen.file for seen in self._earlier(file) if seen.rolled_back]
        return [] if file.file_id in self.asked_for else [*rolled_back, *self._forgotten(file)]

    def _forgotten(self, file: LandedFile) -> list[LandedFile]:
        """Other versions of its key. They say nothing against one that an operator names."""
        if file.file_id in self.asked_for:
            return []
        return [seen.file for seen in self._earlier(file) if seen.forgotten and seen.file.file_id != file.file_id]

    def _is_left_out(self, deletion: LandedFile) -> bool:
        """A deletion that the ledger has, or that a rule leaves out."""
        known = any(seen.deletes for seen in self._earlier(deletion) if seen.file.file_id == deletion.file_id)
        return known or deletion.file_id in self.claim.skipped or bool(self.claim.ignored(deletion))

    def _deletions(self, file: LandedFile) -> list[LandedFile]:
        """All of its key: those of the ledger, then those of the batch."""
        return [
            *(seen.file for seen in self._earlier(file) if seen.deletes),
            *self.deletions.get(self._key(file), ()),
        ]

    def _is_deleted(self, file: LandedFile) -> bool:
        """Deletions in the ledger say nothing against a file that an operator asks for."""
        asked_for = file.file_id in self.asked_for
        return is_deleted(file, self.deletions.get(self._key(file), ()) if asked_for else self._deletions(file))

    def _leaves(self, seen: Earlier) -> bool:
        """Whether a deletion of the batch takes it out."""
        new = self.deletions.get(self._key(seen.file), ())
        return bool(new) and deleted_by(seen, self._earlier(seen.file), new, self._same_bytes) is not None

    @staticmethod
    def _key(file: LandedFile) -> Key:
        return file.bucket, file.key

    def _leave_unread_to_later_versions(self) -> None:
        """A replay, and a version that could not be read: they are outdone whether somebody can read them or not."""
        for file in [*self.order.values()]:
            if (file.file_id in self.replays or self._is_unread(file)) and self._is_outdone(file):
                self._outdo(file, self._latest(self._others(file)))

    def _is_unread(self, file: LandedFile) -> bool:
        """Whether it is one of several new versions of a key that was not read, or could not be."""
        contested = self._key(file) in self.contested and not file.is_deletion
        return contested and file.file_id not in self.readable

    def _is_outdone(self, file: LandedFile) -> bool:
        """If neither of two files is known to be later, the one that came first is the older one."""
        if self._has_stand_in(file):
            return True
        if self.claim.rule_of(file.key) != "replace":
            return False
        here = self._others(file)
        if any(self._later(other, file) for other in here):
            return True
        behind = self.claim.files[self.claim.files.index(file) + 1 :]
        return any(other in behind and not self._later(file, other) for other in here)

    def _others(self, file: LandedFile) -> list[LandedFile]:
        return [other for other in self.fresh.get(self._key(file), []) if other.file_id != file.file_id]

    def _has_stand_in(self, file: LandedFile) -> bool:
        """Whether the batch could read a duplicate that was marked in place of this replay. Of two of those, the later one is
        loaded."""
        his = self._marks(file)
        if not his or any(seen.wants_forgetting for seen in his):
            return False
        stands_in, place = any(seen.stands_in for seen in his), self.claim.files.index
        return any(
            any(seen.stands_in for seen in self._marks(other))
            and self._same_bytes(file, other)
            and (
                not stands_in or (written_later(other, file), place(other)) > (written_later(file, other), place(file))
            )
            for other in self.fresh.get(self._key(file), [])
        )

    def _marks(self, file: LandedFile) -> list[Earlier]:
        """The rows of a file that was marked."""
        return [seen for seen in self._earlier(file) if seen.file.file_id == file.file_id and seen.is_marked]

    def _latest(self, files: Iterable[LandedFile]) -> LandedFile:
        return reduce(lambda a, b: a if self._later(a, b) else b, files)

    def _later(self, a: LandedFile, b: LandedFile) -> bool:
        return written_later(self._written_last(a), self._written_last(b))

    def _written_last(self, file: LandedFile) -> LandedFile:
        """The latest version that has its bytes: the file, or a duplicate of it."""
        twins = (one for one in self.duplicates.get(self._key(file), ()) if self._same_bytes(one, file))
        return reduce(lambda a, b: b if written_later(b, a) else a, twins, file)

    def _stand_in(self, file: LandedFile) -> Earlier | None:
        """The latest duplicate of a replay. If it is a duplicate itself, the one before it: so none is read twice."""
        stands_in = any(seen.stands_in for seen in self._earlier(file) if seen.file.file_id == file.file_id)
        found = [
            seen
            for seen in self._earlier(file)
            if seen.is_duplicate
            and self._same_bytes(seen.file, file)
            and (not stands_in or written_later(file, seen.file))
        ]
        return reduce(lambda a, b: b if written_later(b.file, a.file) else a, found) if found else None

    def sorted(self) -> Sorted:
        self._leave_unread_to_later_versions()
        fresh = tuple(self.order.values())
        superseded = tuple(self.claim.superseded(fresh, self.readable))
        again = (tuple(self.retried.values()), self.tries, tuple(self.released))
        replayed = (file for file in fresh if file.file_id in self.replays)
        stand_ins = {file.file_id: seen for file in replayed if (seen := self._stand_in(file)) is not None}
        found = Sorted(fresh, tuple(self.known), tuple(self.left_out), superseded, *again, stand_ins)
        leaving = {one.earlier.file.file_id for one in superseded}
        put_again = {seen.file.file_id: seen for seen in self.put_again if seen.file.file_id not in leaving}
        found = replace(found, put_again=tuple(put_again.values()), landed=frozenset(self.readable))
        by = {one.earlier.file.file_id: one.by for one in superseded}
        returning = tuple(seen for seen in self.returning if not _is_outdone_by(by.get(seen.file.file_id), seen))
        skipped = tuple(file.file_id for file in self.claim.files if file.file_id in self.claim.skipped)
        return replace(found, returning=returning, skipped=skipped)


def _is_outdone_by(by: LandedFile | None, waits: Earlier) -> bool:
    """Whether the version to which its rows make room is later than its bytes, which were put again. A replay need not be."""
    return by is not None and written_later(by, Earlier.of(waits.row).file)


def _oldest_first(a: LandedFile, b: LandedFile) -> int:
    return written_later(a, b) - written_later(b, a)
