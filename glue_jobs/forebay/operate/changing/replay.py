"""Replays files: reads them again, and replaces their earlier rows; or removes them without new ones
(`operate.changing.forget`).

In: a choice of files in the ledger. Out: a `Replay` to inspect; then marked rows of the ledger, and announcements. The ingest
job does the rest: it reads a marked file like a new one, and replaces its earlier rows in each table. So no row exists twice,
and rows of a file that cannot be read stay. No JVM is needed.

The mark is durable before the first announcement. `waiting` finds the files that were not loaded yet, or not in each table, to
announce them again.
A mark may be lost if a batch uses an earlier one at the same time, or replaces the file. A batch pins its plan before it
checks the marks once more, and `mark` checks for plans afterwards. So one of the two sees the other.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace
from datetime import timedelta
from typing import Any

import pyarrow as pa
from deltalake import CommitProperties

from forebay.batch.plan import Plans
from forebay.batch.reasons import OF_WHOLE_TABLES
from forebay.counted import counted
from forebay.errors import Halt, InvalidConfiguration, Problem
from forebay.lake.conflict import commit
from forebay.lake.layout import DERIVED_FROM, LEDGER, PLANS
from forebay.lake.objects import open_objects
from forebay.lake.paused import ALL, paused_tables
from forebay.ledger.entry import FORGET, FORGOTTEN, PARTLY_REPLAYED, REPLAY, UNREADABLE, WANTED_AGAIN, Outcome
from forebay.notification.order import written_later
from forebay.operate.lake_view import LakeView, known_service, quoted
from forebay.operate.looking.files import HOW_TO_NAME, URI, FileChoice, LedgerFile, files_where, of_one_service

REPLAYED = ("loaded", "empty", REPLAY)
"""The outcomes with rows in the tables, if the file has records."""
READ_AGAIN = (*REPLAYED, UNREADABLE)
"""Those of a replay. A file that could not be read has no rows to replace; the declarations may be others by now."""
FORGOTTEN_FILES = (FORGET, FORGOTTEN)
"""They are brought back only where they are named."""
WITHOUT_ROWS = (FORGOTTEN, UNREADABLE)
"""Their mark is a reason, for a batch would take the outcome `replay` for rows to replace."""
STANDING = (*REPLAYED, FORGET)
CLOCKS_DIFFER = timedelta(days=1)


@dataclass(frozen=True)
class Replay:
    """`left_out` counts files by outcome that were chosen, but have nothing to replace. Of these, `earlier` are versions
    without rows that only their id names, because a later version of the key was loaded."""

    files: tuple[LedgerFile, ...]
    left_out: dict[str, int]
    earlier: tuple[LedgerFile, ...] = ()

    @property
    def records(self) -> int:
        return sum(file.records for file in self.files)

    @property
    def rows(self) -> dict[str, int]:
        """The rows that leave, by table."""
        counted: Counter[str] = Counter()
        for file in self.files:
            counted.update(file.tables)
        return dict(sorted(counted.items()))

    @property
    def held(self) -> dict[str, int]:
        """Records beside the tables, which leave as well."""
        return {name: sum(getattr(file, name) for file in self.files) for name in ("quarantined", "parked")}


def replay_of(view: LakeView, choice: FileChoice, uris: Sequence[str] = (), file_ids: Collection[str] = ()) -> Replay:
    """An address names the versions in force, and an id any version. `InvalidConfiguration` where a file is not known, where
    files are of several services, or of several batches of one number, or where a table that would change is paused."""
    where, named = choice.where(), {URI: uris, "file_id": file_ids}
    if one_of := [f"{by} in ({', '.join(map(quoted, values))})" for by, values in named.items() if values]:
        chosen = f"({' or '.join(one_of)})"
        where = f"{where} and {chosen}" if where else f"where {chosen}"
    found = files_where(view, where)
    if not found:
        _must_be_known(view, choice)
    if choice.batch is not None:
        _must_be_one_batch(choice.batch, found)
    if unknown := {*uris, *file_ids}.difference(*((file.uri, file.file_id) for file in found)):
        raise InvalidConfiguration(Problem(one, "it is not in the ledger", HOW_TO_NAME) for one in sorted(unknown))
    earlier = _earlier_versions(view, [file for file in found if file.uri in uris and file.file_id not in file_ids])
    chosen_ones = [file for file in found if file not in earlier]
    replay = plan_of(view, chosen_ones, (*READ_AGAIN, *FORGOTTEN_FILES) if one_of else READ_AGAIN)
    left_out = Counter(replay.left_out) + Counter(_left_out_as(file) for file in earlier)
    return replace(replay, left_out=dict(left_out), earlier=tuple(earlier))


def _earlier_versions(view: LakeView, files: Sequence[LedgerFile]) -> list[LedgerFile]:
    """Those that were refused or forgotten, and after which a version of their key was loaded."""
    without_rows = [file for file in files if file.outcome in (*FORGOTTEN_FILES, UNREADABLE)]
    versions = defaultdict[str, list[LedgerFile]](list)
    for row in view.rows_with(LEDGER, "*", URI, {file.uri for file in without_rows}):
        if row["outcome"] in REPLAYED:
            versions[(one := LedgerFile.of(row)).uri].append(one)
    return [file for file in without_rows if any(_is_later(one, file) for one in versions[file.uri])]


def _is_later(one: LedgerFile, than: LedgerFile) -> bool:
    """By S3's order; where that is unknown, by the ledger's."""
    if written_later(than.landed, one.landed):
        return False
    return written_later(one.landed, than.landed) or one.committed_at > than.committed_at


def _must_be_known(view: LakeView, choice: FileChoice) -> None:
    """The service and the table of a choice that no file fits."""
    if choice.service:
        known_service(view, choice.service)
    if choice.table:
        _must_have_own_files(view, choice.table)


def _must_have_own_files(view: LakeView, name: str) -> None:
    """A state or a rollup has the rows of other tables."""
    table = view.table(name)
    origin = "" if table is None else table.metadata().configuration.get(DERIVED_FROM)
    if origin:
        hint = f"replay {' or '.join(origin.split(','))}; the next merge updates {name}"
        raise InvalidConfiguration.one(f"table {name}", f"is computed from {origin}", hint)


def plan_of(view: LakeView, found: Sequence[LedgerFile], outcomes: Sequence[str]) -> Replay:
    """The plan for the files with these outcomes. `InvalidConfiguration` if they belong to several services, or if one of
    their tables is paused."""
    replay = Replay(
        tuple(file for file in found if file.outcome in outcomes),
        dict(Counter(_left_out_as(file) for file in found if file.outcome not in outcomes)),
    )
    of_one_service(replay.files)
    paused = paused_tables(view.lake)
    if stopped := [table for table in replay.rows if table in paused or ALL in paused]:
        raise InvalidConfiguration.one(f"table {stopped[0]}", "is paused", "run `forebay resume` first")
    return replay


def _left_out_as(file: LedgerFile) -> str:
    return WANTED_AGAIN if file.reason == WANTED_AGAIN else file.outcome


def _must_be_one_batch(batch: int, files: Sequence[LedgerFile]) -> None:
    """Each stream counts its batches from 0."""
    newest: dict[tuple[str, str], LedgerFile] = {}
    for file in files:
        newest[f"{file.service}", f"{file.generation}"] = file
    if len(newest) > 1:
        hint = "; ".join(
            f"--of {service} --generation {generation} ended {file.committed_at:%Y-%m-%d %H:%M}"
            for (service, generation), file in sorted(newest.items())
        )
        raise InvalidConfiguration.one(f"--batch {batch}", f"is {counted(len(newest), 'batch')}", hint)


def marked(view: LakeView) -> Replay:
    """Files that were marked, and that no batch has read yet."""
    return replay_of(view, FileChoice(outcome=REPLAY))


def waiting(view: LakeView, service: str | None = None) -> Replay:
    """The marked ones, and those with a table that could not be written when they were read. Of these, the ones of a paused
    table wait, unless there are no others."""
    of_it = FileChoice(service=service)
    choices = (
        replace(of_it, outcome=REPLAY),
        replace(of_it, outcome=UNREADABLE, reason=WANTED_AGAIN),
        replace(of_it, reason=PARTLY_REPLAYED),
    )
    found, unread, partly = ({file.file_id: file for file in files_where(view, one.where())} for one in choices)
    found |= unread
    paused = paused_tables(view.lake)
    ready = {} if ALL in paused else {one: file for one, file in partly.items() if paused.isdisjoint(file.tables)}
    found |= ready if found or ready else partly
    if not found:
        _must_be_known(view, of_it)
    return plan_of(view, [*found.values()], READ_AGAIN)


def mark(view: LakeView, replay: Replay, to: Outcome = REPLAY) -> int:
    """Marks the files in the ledger, in one commit, and returns their number. Files with another outcome by now are left.
    `Halt` where a batch may end some of them by an earlier mark: repeat it then."""
    wanted = [file for file in replay.files if file.outcome != to]
    if not wanted:
        return len(replay.files)
    if to == REPLAY:
        _must_not_be_leaving(view, wanted)
    may_become = ", ".join(map(quoted, (*STANDING, *(WITHOUT_ROWS if to == REPLAY else ()))))
    ids = pa.table({"file_id": pa.array([file.file_id for file in wanted], pa.string())})
    days = sorted({file.committed_at.date().isoformat() for file in wanted})
    in_days = ", ".join(f"date '{day}'" for day in days)
    same = f"t.day in ({in_days}) and t.file_id = s.file_id"

    def attempt() -> int:
        ledger = view.table(LEDGER)
        assert ledger is not None
        merge = ledger.merge(
            ids,
            f"{same} and t.outcome in ({may_become})",
            source_alias="s",
            target_alias="t",
            commit_properties=CommitProperties(custom_metadata={"forebay": to}),
        )
        has_none = f"t.outcome in ({', '.join(map(quoted, WITHOUT_ROWS))})"
        merge = merge.when_matched_update({"reason": quoted(WANTED_AGAIN)}, has_none)
        done: dict[str, Any] = merge.when_matched_update({"outcome": quoted(to)}).execute()
        return int(done["num_target_rows_updated"])

    always = (
        "other writers kept changing the ledger, so the files could not be marked; nothing was done. Repeat the command"
    )
    marked = len(replay.files) - len(wanted) + commit(attempt, refused=always)
    _must_hold(view, wanted, to)
    return marked


def _must_hold(view: LakeView, files: Sequence[LedgerFile], to: Outcome) -> None:
    """Checks that no batch ends them by an earlier mark, or replaces them. First the plans, for a batch commits before its plan
    goes."""
    uris = {file.uri for file in files}
    for service in sorted({f"{file.service}" for file in files}):
        for plan in Plans(open_objects(f"{view.lake}/{PLANS}"), service).left():
            if at_work := sorted({file.uri for file in plan.files} & uris):
                raise Halt(
                    f"batch {plan.batch} of {service} is working on {len(at_work):,} of these files, such as {at_work[0]}, and "
                    "began earlier: repeat this command when it has ended"
                )
    ids = {one.file_id: one.uri for one in files if one.outcome not in WITHOUT_ROWS}
    of_before = FORGOTTEN_FILES if to == REPLAY else REPLAYED
    rows = view.rows_with(LEDGER, "file_id, outcome", "file_id", ids, where=_since(files))
    if ended := sorted(ids[row["file_id"]] for row in rows if row["outcome"] in of_before):
        why = f"a batch ended {len(ended):,} of these files, such as {ended[0]}, by an earlier mark"
        raise Halt(f"{why}: repeat this command")


def _since(files: Sequence[LedgerFile]) -> str:
    """The days of the ledger that may have these files, or later versions of them. The clocks of two drivers differ."""
    days = [file.committed_at.date() - CLOCKS_DIFFER for file in files]
    return f"day >= date '{min(days)}'" if days else "true"


def later_versions(view: LakeView, files: Sequence[LedgerFile]) -> list[LedgerFile]:
    """The versions that were loaded under the keys of these files after them."""
    before = {file.uri: file for file in files}
    found = [LedgerFile.of(row) for row in view.rows_with(LEDGER, "*", URI, before, where=_since(files))]
    return [one for one in found if one.outcome in REPLAYED and one.committed_at > before[one.uri].committed_at]


def _must_not_be_leaving(view: LakeView, files: Sequence[LedgerFile]) -> None:
    """`Halt` where a batch has begun to forget a version for a later one, and a table could not be written: it would have rows
    of both, and nothing would remove the earlier ones."""
    leaving = [one for one in files if one.outcome == FORGET and one.reason in OF_WHOLE_TABLES and not one.quarantined]
    if later := {one.uri for one in later_versions(view, leaving)}:
        one = next(one for one in leaving if one.uri in later)
        why = f"its rows could not leave {', '.join(one.tables)} yet" if one.tables else "no batch has forgotten it yet"
        raise Halt(
            f"{one.uri}: a later version took its place, and {why} ({one.reason}). "
            f"Nothing was marked. Repeat the command once its outcome is {FORGOTTEN}"
        )
