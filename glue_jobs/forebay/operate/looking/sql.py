"""Read-only SQL over the lake: tables by name, and forebay's own, such as `ledger` and `quarantine`.

In: a view of the lake, and one SELECT. Out: column names and rows. Only tables that the text names are opened. The engine is
DataFusion inside delta-rs, so no further package is needed; it reads Parquet with the filters pushed down. A statement
that writes, creates or drops is refused before it runs (`InvalidConfiguration`), and so is one that the engine cannot parse.
"""

from __future__ import annotations

import re
from difflib import get_close_matches
from functools import partial

import pyarrow as pa
from deltalake import QueryBuilder
from deltalake.exceptions import DeltaError

from forebay.errors import InvalidConfiguration
from forebay.lake.layout import OWN_NAMES, table_path
from forebay.lake.log.listing import has_log
from forebay.lake.objects import open_objects
from forebay.operate.lake_view import LakeView, lost_table, without_log

BEGINS = ("select", "with", "explain", "describe", "values")
WRITES = ("insert", "update", "delete", "merge", "copy", "create", "drop", "alter", "truncate", "set", "into")
DECLARED = {
    "complete": "it has hours of feeds that declare `complete`",
    "quality": "it has the expectations that tables declare",
    "after_load": "it has files of services that declare `after_load`",
}
"""The declarations that fill these tables."""
TEXT = re.compile(r"""("(?:[^"]|"")*")|'(?:[^']|'')*'|--[^\n]*|/\*.*?\*/""", re.S)
"""A text or a comment; or a name in quotes, which may have a quote of a text."""
FILE_GONE = re.compile(r"Object at location (.*?) not found")
NO_COLUMN = re.compile(r"No field named \"?(.+?)\"?\.(?:\s+Did you mean '([^']*)'\?|\s|$)")
UNPARSED = re.compile(r'ParserError\("(.*)"\)', re.S)
NAMED = re.compile(r'"((?:[^"]|"")*)"|(\w+)')


def query(view: LakeView, sql: str) -> pa.Table:
    """The answer. Unquoted names are in lowercase letters. A table of the lake goes before one of ours with the same name."""
    words = _words(sql)
    _refuse_what_writes(words, sql)
    there = {**OWN_NAMES, **{name: name for name in view.tables()}}
    builder = QueryBuilder()
    for name in sorted(there.keys() & {word for word, _ in words}):
        if (table := view.table(there[name])) is not None:
            builder = builder.register(name, table)
    try:
        return pa.table(builder.execute(sql))
    except (DeltaError, ValueError, OSError) as refused:
        raise _refused(view, sql, str(refused).strip(), sorted(there)) from refused


def _refused(view: LakeView, sql: str, message: str, there: list[str]) -> InvalidConfiguration:
    """The refusal in the words of the engine, except for a missing table and a missing data file."""
    if gone := FILE_GONE.search(message):
        problem = f"the data file {gone[1]} was deleted"
        return InvalidConfiguration.one("query", problem, "see docs/disasters.md, Deleted objects")
    known = ", ".join(filter(partial(_is_table, view), there[:20]))
    missing = re.search(r"table '(?:datafusion\.public\.)?([^']*)' not found", message)
    if missing is None:
        return _of_engine(message, sql, known)
    if missing[1] in OWN_NAMES:
        problem = f"{missing[1]} has no rows yet"
        filled = f"; {DECLARED[missing[1]]}" if missing[1] in DECLARED else ""
        return InvalidConfiguration.one("query", problem, f"forebay creates this table with its first row{filled}")
    if missing[1] in there:
        return without_log(view, missing[1])
    if (lost := lost_table(view, missing[1])) is not None:
        return lost
    meant = "".join(f"did you mean {name}? " for name in get_close_matches(missing[1], there, 1))
    return InvalidConfiguration.one("query", f"there is no table {missing[1]}", f"{meant}Tables are {known}")


def _is_table(view: LakeView, name: str) -> bool:
    """A lake has other folders, too, such as that of its declarations."""
    return name in OWN_NAMES or has_log(open_objects(table_path(view.lake, name)))


def _of_engine(message: str, sql: str, known: str) -> InvalidConfiguration:
    """In one line, and without advice about settings of the engine, which nobody can change here."""
    if column := NO_COLUMN.search(message):
        quotes = """write names in "double" quotes, and texts in 'single' quotes; """ if '"' in sql else ""
        meant = f"did you mean {column[2]}? " if column[2] else ""
        there = "".join(f"; columns are {names}" for names in re.findall(r"Valid fields are (.*?)\.?$", message, re.S))
        return InvalidConfiguration.one(
            "query", f"there is no column {column[1]}{there}", f"{meant}{quotes}tables are {known}"
        )
    if unparsed := UNPARSED.search(message):
        return InvalidConfiguration.one("query", f"is not SQL: {unparsed[1]}", f"tables are {known}")
    return InvalidConfiguration.one("query", " ".join(message.split()), f"tables are {known}")


def _words(sql: str) -> list[tuple[str, bool]]:
    """Every name in the text, and whether it is in quotes."""
    bare = TEXT.sub(lambda found: found[1] or " ", sql)
    return [(quoted.replace('""', '"') or plain.lower(), bool(quoted)) for quoted, plain in NAMED.findall(bare)]


def _refuse_what_writes(words: list[tuple[str, bool]], sql: str) -> None:
    plain = [word for word, in_quotes in words if not in_quotes]
    if not plain or plain[0] not in BEGINS:
        raise InvalidConfiguration.one("query", "must be a SELECT", f"a query begins with {', '.join(BEGINS)}")
    if ";" in TEXT.sub(" ", sql).rstrip().rstrip(";"):
        raise InvalidConfiguration.one("query", "is several statements", "write one")
    if found := [word for word in plain if word in WRITES]:
        raise InvalidConfiguration.one(
            "query",
            f"has the word {found[0]}, and only reads are allowed",
            'write a column of this name in quotes: "set"',
        )
