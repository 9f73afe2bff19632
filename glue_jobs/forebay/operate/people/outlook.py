"""The people to erase, and the rows that are kept of them, before anything is changed.

In: a view of the lake, the declarations, and people. Out: an `Outlook`: the rows of each table, and the people who are
unknown, already erased, or probably not people. Every data file is read, in the columns of the subject.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from forebay.counted import counted
from forebay.declaration.service import CODE, Service
from forebay.errors import InvalidConfiguration
from forebay.lake.layout import LEDGER, PARKED, QUARANTINE, TOMBSTONES
from forebay.lake.log.listing import BrokenLog, NoTable, UnsupportedTable
from forebay.lake.log.tables import own_tables
from forebay.operate.lake_view import LakeView, quoted
from forebay.operate.people.person import known_to_vault
from forebay.operate.people.unseen import Unseen, unseen
from forebay.privacy.erased import erased_at, newest_list
from forebay.privacy.known_secret import must_be_known_secret
from forebay.privacy.secret import secret_at
from forebay.privacy.token import one_spelling, token_of
from forebay.upkeep.erase.due import erasure_of
from forebay.upkeep.erase.keeping import must_keep_subject
from forebay.upkeep.erase.plan import Done, ErasePlan
from forebay.upkeep.erase.table import Refused, TableErasure, Tally

NOBODY = frozenset(
    {
        "",
        "-",
        "-1",
        "0",
        "anonymous",
        "false",
        "guest",
        "n/a",
        "nan",
        "nil",
        "none",
        "null",
        "true",
        "undefined",
        "unknown",
    }
)
"""Values that producers write for an unknown person."""
MANY_ROWS, LARGE_SHARE = 1000, 0.05
"""Numbers and shares of a table's rows that no single person has."""


@dataclass(frozen=True)
class Outlook:
    """`tokens` by person. `tables` has the rows of each table with some. Nothing is kept of `unknown` people;
    `common` ones are probably not people, with the reason. `unseen` are landed objects that the tables do not show whole."""

    tokens: Mapping[str, str]
    tables: Mapping[str, Tally]
    unknown: tuple[str, ...]
    known_before: tuple[str, ...]
    common: Mapping[str, str]
    unseen: Sequence[Unseen] = ()


def look(view: LakeView, service: Service, people: Iterable[str]) -> Outlook:
    must_keep_subject(view.lake, service)
    must_be_known_secret(view.lake, service)
    tokens = {person: token_of(person, _secret(service)) for person in dict.fromkeys(people)}
    plan = ErasePlan(0, "", service.name, tuple(sorted(tokens.values())))
    looked = {
        name: tally
        for name in tables_of_service(view, service)
        if (tally := _tally(erasure_of(view.lake, name, service, plan, note=_nothing))) is not None
    }
    tables = {name: tally for name, tally in looked.items() if tally.by_token}
    found = {token for tally in tables.values() for token in tally.by_token}
    found |= known_to_vault(service, tokens.values())
    before = everybody_erased(view, service)
    return Outlook(
        tokens,
        tables,
        tuple(person for person, token in tokens.items() if token not in found | before),
        tuple(person for person, token in tokens.items() if token in before - found),
        {person: why for person, token in tokens.items() if (why := _too_common(person, token, tables))},
        unseen(view, service, [name for name, tally in looked.items() if tally.searched]),
    )


def last_version(view: LakeView, service: Service) -> str:
    """The version of the declarations that loaded the newest file: a job whose declarations have no subject keeps nobody
    out."""
    of_service = f"where service = {quoted(service.name)}"
    rows = view.query(LEDGER, f"select service_version from t {of_service} order by committed_at desc limit 1")
    return str(rows[0]["service_version"]).partition(CODE)[0] if rows else ""


def everybody_erased(view: LakeView, service: Service) -> frozenset[str]:
    """The tokens of all people that were ever erased."""
    newest = newest_list(view.lake, service.name)
    return erased_at(newest) if newest else frozenset()


def tables_of_service(view: LakeView, service: Service) -> list[str]:
    """The tables that may have rows of its records: those that the ledger names, those computed from them, also by earlier
    declarations, and held records. Each comes after those that it is computed from. A merge meanwhile would otherwise restore a
    row in it, for a time, and the log keeps the bounds of such files."""
    rows = view.query(LEDGER, f"select tables from t where service = {quoted(service.name)}")
    found = {name for row in rows for name in dict(row["tables"] or ())} | {one.name for one in service.rollups}
    there, own = view.tables(), [*own_tables(view.lake)]
    merged = (name for name in there if any(one.may_merge_into(name) for one in service.tables))
    found |= {*merged, *(name for name in there if service.maker_of(name))}
    origins = view.origins([*there, *own])
    while more := {name for name in there if found.intersection(origins[name])} - found:
        found |= more
    of_states = {f"{TOMBSTONES}/{name}" for name in found}
    ours = [name for name in own if name in {QUARANTINE, PARKED, *of_states}]
    return sorted([*sorted(found.intersection(there)), *ours], key=lambda name: _steps(name, origins))


# --- inside ---


def _steps(table: str, origins: Mapping[str, Sequence[str]], most: int = 9) -> int:
    """From tables of records to this one."""
    before = origins.get(table, ()) if most else ()
    return 1 + max(_steps(one, origins, most - 1) for one in before) if before else 0


def _secret(service: Service) -> bytes:
    if not service.subject or service.privacy is None:
        what = "does not declare which field identifies a person"
        raise InvalidConfiguration.one(f"service {service.name}", what, "add [privacy] subject, such as user_id")
    return secret_at(service.privacy.secret)


def _nothing(done: Done) -> None:
    """Nobody notes what is only looked at."""


def _tally(erasure: TableErasure) -> Tally | None:
    try:
        return erasure.tally()
    except (NoTable, BrokenLog, UnsupportedTable, Refused):
        return None


def _too_common(person: str, token: str, tables: Mapping[str, Tally]) -> str:
    if one_spelling(person.strip().lower()) in NOBODY:
        return "identifies nobody"
    for name, tally in tables.items():
        rows = tally.by_token.get(token, 0)
        if rows > MANY_ROWS and rows > LARGE_SHARE * tally.rows:
            return f"has {counted(rows, 'row', of=tally.rows)} of {name}"
    return ""
