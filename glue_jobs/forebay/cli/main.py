"""The entrance: finds the command that was asked for, and shows every error as one line (`--debug` shows where it came from).

A command's module is imported when the command runs, and not before: `--help` must not wait for pyarrow, boto3 and Spark.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator, Mapping, Sequence
from functools import cache, partial
from importlib import import_module
from importlib.util import find_spec
from typing import Any, NamedTuple

import typer
from typer._click.exceptions import NoArgsIsHelpError, UsageError
from typer.core import TyperGroup

from forebay.cli.examples import examples
from forebay.cli.folder import folder_defaults
from forebay.cli.usage import said_of
from forebay.errors import ForebayError, InvalidConfiguration, Unreachable

EXITS = """\b
Exit status:
  0    success
  1    done, but found a problem that needs attention; or you answered no
  2    usage error: change an option, name or declaration; nothing was done
  3    AWS did not answer, or denied access; nothing was done
  4    only of `forebay wait`: not complete in time
  130  stopped by Ctrl-C; the command says what remains to be done"""
EXIT = "Exit status: 0 success, 1 a problem, 2 usage error, 3 no access, 130 Ctrl-C"
"""The last line of each command's help."""
EXIT_OF = {"wait": EXIT.replace("success", "complete").replace("130", "4 not complete in time, 130")}
"""Where it is another one."""


class Command(NamedTuple):
    """Names the place of a command, and says in one line what it does. `name` is a function, or a `typer.Typer` with commands
    of its own. `module` begins with a dot where it is in a room of `forebay.cli`."""

    module: str
    name: str
    does: str


COMMANDS = {
    "ingest": Command(".changing.ingest", "ingest", "Load files from the queue into tables."),
    "stop": Command(".changing.ingest", "stop", "Stop the running ingest job after its batch."),
    "status": Command(".looking.status", "status", "Show the state of the queue, the job and the tables."),
    "doctor": Command(".looking.doctor", "doctor", "Check the deployment, and say how to fix what is wrong."),
    "report": Command(".looking.report", "report", "Write the state of the service into one HTML file."),
    "wait": Command(".looking.wait", "wait", "Wait until all files of an hour or a day are in."),
    "plan-capacity": Command(
        ".looking.plan_capacity", "plan_capacity", "Show the delay and the cost of each freshness."
    ),
    "where": Command(".looking.where", "where", "Show what became of a file, or which file a row came from."),
    "files": Command(".changing.files", "app", "List files, leave them out, and read them again."),
    "tail": Command(".changing.files", "tail", "Follow the loaded files until Ctrl-C."),
    "history": Command(".looking.history", "history", "List what happened, and when."),
    "lineage": Command(".looking.lineage", "lineage", "Print batches as OpenLineage events, or send them."),
    "query": Command(".looking.query", "query", "Query the lake's tables and the ledger with SQL."),
    "queue": Command(".changing.queue", "app", "Look at the queue and its dead letters, and send dead letters back."),
    "lease": Command(".changing.lease", "app", "Show which job works on the lake, and end its lease."),
    "pause": Command(".changing.pause", "pause", "Pause tables: their rows wait, from the next batch on."),
    "resume": Command(
        ".changing.pause", "resume", "Resume paused tables, and load the rows that waited, exactly once."
    ),
    "replay": Command(".changing.replay", "replay", "Read files again, and replace their rows."),
    "replay-into": Command(".changing.replay", "replay_into", "Load files into another lake, with other declarations."),
    "rollback": Command(
        ".changing.rollback", "rollback", "Restore tables to an earlier version, and the ledger with them."
    ),
    "audit": Command(".looking.accounts", "accounts", "Compare the ledger with the rows in the tables."),
    "tables": Command(".declaring.tables", "app", "List the tables, and manage their declarations."),
    "try": Command(".looking.try_out", "try_out", "Show what forebay would do with sample files."),
    "schema": Command(".declaring.schema", "app", "Show and change a table's columns."),
    "backfill": Command(".changing.backfill", "backfill", "Load files that landed before forebay was deployed."),
    "quality": Command(".looking.quality", "quality", "Count the rows that violate expectations."),
    "quarantine": Command(".changing.held", "quarantine", "Look at records that were refused, and retry them."),
    "parked": Command(".changing.held", "parked", "Look at records that no table accepts, and load them."),
    "export": Command(".looking.export", "export", "Write what changed in a table as files for other tools."),
    "privacy": Command(".people.privacy", "app", "Find personal fields, and erase people."),
    "compact": Command(".changing.upkeep", "compact", "Rewrite small files into large ones; no row changes."),
    "merge": Command(".changing.upkeep", "merge", "Update the states of merge tables, and the rollups."),
    "maintain": Command(".changing.upkeep", "maintain", "Delete files that no readable version needs."),
    "find-missed": Command(
        ".changing.find_missed", "find_missed", "Find files that S3 never announced, and announce them."
    ),
}
if find_spec("forebay_local"):  # only on laptops: jobs on AWS are shipped without it
    COMMANDS["local"] = Command("forebay_local.commands", "app", "Run the whole service on this machine.")
    COMMANDS["demo"] = Command("forebay_local.demo", "demo", "Run the whole service once, with generated files.")

OF_SPARK = {"pyspark", "py4j", "delta"}
"""Packages that only the extra `spark` installs."""


class _Commands(Mapping[str, Any]):
    """Each is imported when it is asked for."""

    def __getitem__(self, name: str) -> Any:
        return _made(COMMANDS[name], name)

    def __iter__(self) -> Iterator[str]:
        return iter(COMMANDS)

    def __len__(self) -> int:
        return len(COMMANDS)


@cache
def _made(known: Command, name: str) -> Any:
    found = getattr(import_module(known.module, "forebay.cli"), known.name)
    if not isinstance(found, typer.Typer):
        alone = typer.Typer(add_completion=False)
        alone.command()(found)
        alone.rich_markup_mode = None
        command = typer.main.get_command(alone)
    else:
        found.rich_markup_mode, found.info.cls = None, _Group
        command = typer.main.get_group(found)  # without the options for completion, which the whole command has
    command.name, command.epilog = name, _epilog(name)
    for inner in getattr(command, "commands", {}).values():
        inner.epilog = _epilog(f"{name} {inner.name}")
        _in_words(inner)
    _in_words(command)
    return command


KINDS = {"str": "TEXT", "path": "PATH", "int": "NUMBER", "float": "NUMBER"}


def _in_words(command: Any) -> None:
    """Arguments and values as a manual writes them: `TABLE...`, `[TABLE]...` and `--limit NUMBER`; `list[str]` is Python's."""
    for parameter in command.params:
        if parameter.opts[0].startswith("-"):
            parameter.display_type_rich = partial(_kind, parameter.display_type_rich)
        else:
            parameter.metavar = (parameter.metavar or parameter.name.upper()).replace("...", "").strip("[]")
            shown = parameter.metavar if parameter.required else f"[{parameter.metavar}]"
            parameter._usage_display_name = partial(str, shown if parameter.nargs == 1 else f"{shown}...")
            parameter.display_type_rich = lambda ctx: ""


def _kind(shown: Any, ctx: Any) -> str:
    label = str(shown(ctx=ctx))
    found = re.fullmatch(r"<(?:list\[)?(\w+)\]?(?: range)?>(?:\.\.\.)?", label)
    return KINDS.get(found[1], label) if found else label.strip("<>")


def _epilog(name: str) -> str:
    return f"{examples(name)}\n\n{EXIT_OF.get(name, EXIT)}"


class _Group(TyperGroup):
    def format_commands(self, ctx: Any, formatter: Any) -> None:
        """The first sentence of each, whole."""
        with formatter.section("Commands"):
            formatter.write_dl([(name, _first_sentence(command.help)) for name, command in self.commands.items()])


def _first_sentence(text: str | None) -> str:
    paragraph = " ".join((text or "").partition("\n\n")[0].split())
    return paragraph.partition(". ")[0].removesuffix(".") + "."


class _Main(TyperGroup):
    def invoke(self, ctx: Any) -> Any:
        """Prints one line for Ctrl-C. Code that knows what is left to do raises the interrupt again, with that text."""
        try:
            return super().invoke(ctx)
        except KeyboardInterrupt as interrupt:
            echoed = "\n" if sys.stderr.isatty() else ""  # `^C`
            print(echoed + ": ".join(["forebay: stopped", *map(str, interrupt.args)]), file=sys.stderr)
            raise typer.Exit(130) from None

    def __init__(self, **settings: Any) -> None:
        super().__init__(**settings)
        self.commands = _Commands()  # type: ignore[assignment]

    def list_commands(self, ctx: Any) -> list[str]:
        return list(COMMANDS)

    def format_commands(self, ctx: Any, formatter: Any) -> None:
        with formatter.section("Commands"):
            formatter.write_dl([(name, command.does) for name, command in COMMANDS.items()])


app = typer.Typer(
    cls=_Main,
    name="forebay",
    help="Load files from S3 into Delta tables within minutes, exactly once, and lose no record.",
    epilog=f"{EXITS}\n\n{examples('')}",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
    context_settings={"help_option_names": ["-h", "--help"]},
)


def _show_version(wanted: bool) -> None:
    if wanted:
        from importlib.metadata import version

        print(f"forebay {version('forebay')}")
        raise typer.Exit


@app.callback()
def options(
    debug: bool = typer.Option(False, "--debug", help="Show where an error came from."),
    version: bool = typer.Option(False, "--version", callback=_show_version, is_eager=True, help="Show the version."),
) -> None:
    """Load files from S3 into Delta tables within minutes, exactly once, and lose no record."""


def main(arguments: Sequence[str] | None = None) -> None:
    """Ends the process with the command's status; `arguments` are those of the process if none are given."""
    arguments = sys.argv[1:] if arguments is None else arguments
    try:
        with folder_defaults():
            status = app(args=arguments, prog_name="forebay", standalone_mode=False)
    except Exception as problem:
        refusal = _as_ours(problem)
        if refusal is None or "--debug" in arguments:
            raise
        from forebay.cli.show import printable

        for line in str(refusal).splitlines():
            print(f"forebay: {printable(line)}", file=sys.stderr)
        sys.exit(3 if isinstance(refusal, Unreachable) else 2 if isinstance(refusal, InvalidConfiguration) else 1)
    sys.exit(status if isinstance(status, int) else 0)


def _as_ours(problem: Exception) -> ForebayError | None:
    """The errors that forebay and boto3 raise on purpose. None for a bug, whose traceback is worth reading."""
    if isinstance(problem, ForebayError):
        return problem
    if isinstance(problem, UsageError):
        return _as_usage(problem)
    if isinstance(problem, ModuleNotFoundError) and (problem.name or "").partition(".")[0] in OF_SPARK:
        return InvalidConfiguration.one(
            "Spark",
            "is not installed, and this command needs it",
            "pip install 'WHEEL[spark]', with the path of the wheel",
        )
    from botocore.exceptions import BotoCoreError, ClientError

    from forebay.aws.preflight import plainly

    if isinstance(problem, BotoCoreError | ClientError):
        return plainly("AWS", problem, {}, "AWS_ENDPOINT_URL")
    return None


def _as_usage(problem: UsageError) -> InvalidConfiguration:
    from forebay.errors import Problem

    if isinstance(problem, NoArgsIsHelpError):
        print(problem.format_message())
        raise SystemExit(2)
    return InvalidConfiguration([Problem("", said_of(problem))])


if __name__ == "__main__":
    main()
