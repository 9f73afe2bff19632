"""`forebay query`: SQL over the lake."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated

import typer

from forebay.cli.options import AsJson, Lake
from forebay.cli.show import columns, console, error_console, print_json
from forebay.counted import counted

WIDEST = 60
"""The characters of a value that a terminal shows. A pipe gets all of them."""
NARROWEST = 12
"""A column of the answer may shrink to this many columns of the terminal."""


def query(
    lake: Lake,
    sql: Annotated[str, typer.Argument(help="One SELECT.", metavar="SQL")],
    limit: Annotated[int, typer.Option(min=1, help="The largest number of rows to show.")] = 100,
    as_json: AsJson = False,
) -> None:
    """Query the lake's tables and the ledger with SQL.

    Use the names of tables. `ledger`, `quarantine`, `parked`, `quality`, `complete` and `after_load` are forebay's own. A
    statement that would write is refused.
    """
    from forebay.operate.looking.sql import query as ask
    from forebay.operate.named_lake import view_of

    found = ask(view_of(lake), sql)
    rows = found.slice(0, limit).to_pylist()
    if as_json:
        print_json(rows)
    else:
        _show(found.column_names, [[_text(value) for value in row.values()] for row in rows])
    if found.num_rows > limit:
        error_console.print(f"{counted(limit, 'row', of=found.num_rows)}; --limit shows more")


def _text(value: object) -> str:
    text = "-" if value is None else value if isinstance(value, str) else _inner(value)
    return f"{text[:WIDEST]}…" if console.is_terminal and len(text) > WIDEST else text


def _inner(value: object) -> str:
    """Also of parts of arrays and structs, whose texts have quotes."""
    if isinstance(value, dict):
        return f"{{{', '.join(f'{name!r}: {_inner(part)}' for name, part in value.items())}}}"
    if isinstance(value, list):
        return f"[{', '.join(map(_inner, value))}]"
    return repr(value) if isinstance(value, str) else str(value)


def _show(names: Sequence[str], rows: Sequence[Sequence[str]]) -> None:
    """A line for each row; where the terminal is too narrow for that, a line for each column of a row."""
    widths = [max(map(len, column)) for column in zip(names, *rows, strict=True)]
    if sum(min(width, NARROWEST) for width in widths) + 2 * (len(widths) - 1) <= console.width:
        shown = columns(*names)
        for row in rows:
            shown.add_row(*row)
        console.print(shown)
        return
    longest = max(map(len, names))
    for number, row in enumerate(rows):
        if number:
            console.print()
        for name, text in zip(names, row, strict=True):
            console.print(f"{name:<{longest}}  {text}")
