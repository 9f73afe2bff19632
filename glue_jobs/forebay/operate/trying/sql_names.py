"""Names of tables that need no quotes in a query, whichever engine reads it.

In: a name. Out: the same one, or a longer one if it is a keyword of Athena, Trino, Redshift, Spark or DuckDB, a word that
`forebay query` refuses, or the name of a table of forebay's.
"""

from __future__ import annotations

from forebay.lake.layout import OWN_NAMES
from forebay.operate.looking.sql import WRITES

KEYWORDS = """
all alter analyse analyze and anti any array as asc asof asymmetric at authorization backup between binary both by
case cast check collate collation column columns commit concurrently constraint create credentials cross cube current
database date default deferrable deferred defrag desc describe disable distinct do double drop else enable encode end
escape except exchange execute exists explain external extract false fetch filter float for foreign freeze from full
function glob global grant group grouping having identity if ignore ilike import in initially inner int integer
intersect interval into is isnull join lambda language lateral leading left like limit listagg local localtime
localtimestamp map minus natural new none normalize not notnull null numeric of off offline offset oid old on only
open or order outer over overlaps parallel partition percent permissions pivot pivot_longer pivot_wider placing
positional precision prepare primary procedure qualify range raw recover recursive references reject resort respect
restore returning revoke right rlike rollback rollup row rows select semi session set show similar skip smallint
snapshot some start struct summarize symmetric system table tablesample tag then time timestamp to top trailing
transform trigger trim true truncate uescape union unique unnest unpack unpivot user using values variadic verbose
wallet when where window with within without
"""
TAKEN = {*KEYWORDS.split(), *WRITES, *OWN_NAMES}


def unquoted(name: str) -> str:
    return f"{name}_events" if name in TAKEN else name


def needs_quotes(name: str) -> list[str]:
    """For the person who chose the name."""
    if name in OWN_NAMES:
        return [f"table {name}: `forebay query` then reads this table, and no longer forebay's own"]
    return [f"table {name}: is a keyword of SQL, so queries must write it in quotes"] if name in TAKEN else []
