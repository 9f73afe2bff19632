"""The entrance: commands are put together here, and every error ends here as one line (`--debug` shows where it came
from).
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from importlib import import_module
from importlib.util import find_spec

import typer
from botocore.exceptions import BotoCoreError, ClientError

from forebay.aws.preflight import plainly
from forebay.cli import health, kept, lake, quality, schema, tables, upkeep
from forebay.errors import ForebayError, Misdeclared, Unreachable

__all__ = ["app", "main"]

app = typer.Typer(
    name="forebay",
    help="JSON files that land in S3 become Delta tables: minutes later, exactly once, nothing lost.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode="rich",
)


@app.callback()
def options(debug: bool = typer.Option(False, "--debug", help="Show where an error came from.")) -> None:
    """JSON files that land in S3 become Delta tables: minutes later, exactly once, nothing lost."""


app.command()(lake.ingest)
app.command()(lake.stop)
app.command()(lake.accounts)
app.command()(upkeep.compact)
app.command()(upkeep.maintain)
app.command()(upkeep.reconcile)
app.command()(quality.quality)
tables.app.command()(health.health)
app.add_typer(tables.app, name="tables")
app.add_typer(schema.app, name="schema")
app.add_typer(kept.quarantine, name="quarantine")
app.add_typer(kept.parked, name="parked")
if find_spec("forebay_local"):  # only on laptops: jobs on AWS are shipped without it
    import_module("forebay_local.commands").add_to(app)


def main(arguments: Sequence[str] | None = None) -> None:
    """Ends the process with the command's status; `arguments` are those of the process if none are given."""
    arguments = sys.argv[1:] if arguments is None else arguments
    try:
        app(args=arguments)
    except (ForebayError, ClientError, BotoCoreError) as problem:
        if "--debug" in arguments:
            raise
        if isinstance(problem, ClientError | BotoCoreError):
            problem = plainly("AWS", problem, {}, "AWS_ENDPOINT_URL")
        for line in str(problem).splitlines():
            print(f"forebay: {line}", file=sys.stderr)
        sys.exit(3 if isinstance(problem, Unreachable) else 2 if isinstance(problem, Misdeclared) else 1)
    except KeyboardInterrupt:
        print("forebay: stopped", file=sys.stderr)
        sys.exit(130)


if __name__ == "__main__":
    main()
