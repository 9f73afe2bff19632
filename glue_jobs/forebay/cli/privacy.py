"""`forebay privacy`: find personal data that nobody declared, and make the secret of tokens."""

from __future__ import annotations

from dataclasses import asdict
from typing import Annotated

import typer

from forebay.cli.options import AsJson, Lake
from forebay.cli.show import columns, console, print_json
from forebay.errors import Halt, InvalidConfiguration

__all__ = ["app"]

app = typer.Typer(help="Find what is personal, and make the secret of tokens.", no_args_is_help=True)


@app.callback()
def privacy() -> None:
    """Find what is personal, and make the secret of tokens."""


@app.command()
def scan(
    lake: Lake,
    table: Annotated[str, typer.Argument(help="The table's name, or quarantine, or parked.")],
    rows: Annotated[int, typer.Option(min=1, help="Rows that are looked at.")] = 10_000,
    as_json: AsJson = False,
) -> None:
    """Name the fields of a table whose values look personal: a guess, for you to judge.

    E-mail and IP addresses, numbers of cards and phones, and long ids; also in _rescued and kept records. No value is shown.
    """
    from forebay.operate.lake_view import view_of
    from forebay.operate.personal import scanned

    told = scanned(view_of(lake), table, rows)
    if as_json:
        print_json(map(asdict, told.found))
        return
    if not told.found:
        console.print(f"nothing in {told.rows:,} row{'s' * (told.rows != 1)} looks personal")
        return
    shown = columns("column", "field", "looks like", ">values", ">of")
    for one in told.found:
        shown.add_row(one.column, one.field, one.kind, f"{one.values:,}", f"{one.of:,}")
    console.print(shown)


@app.command()
def secret(address: Annotated[str, typer.Argument(help="Where it shall lie: s3://BUCKET/KEY or a file.")]) -> None:
    """Make the secret of tokens, unless it is there already.

    Only the ingest job needs to read it. Who has it can try values until a token fits. Without it, or with another one, later
    tokens of the same values are others, so it is never written over. Undo: delete the object, before tokens were made.
    """
    from forebay.declaration.privacy import is_address
    from forebay.privacy.secret import make_secret, secret_at

    if not is_address(address):
        raise InvalidConfiguration.one("ADDRESS", f"{address!r} names no object", "such as s3://bucket/forebay-tokens")
    if make_secret(address):
        console.print(f"made {address}; let nobody but the ingest job read it")
    elif secret_at(address):
        raise Halt(f"{address} holds a secret already, and it stays")
