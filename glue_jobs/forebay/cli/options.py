"""Options that several commands share. Light: every command imports this."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Annotated, Any

import typer

from forebay.address import lake_address, typed_address
from forebay.errors import InvalidConfiguration


def moment(meaning: str) -> Any:
    return typer.Option(parser=_in_utc, metavar="YYYY-MM-DD[THH:MM[:SS]]", help=meaning)


def _in_utc(text: str) -> datetime:
    """Without a zone, in UTC. A time with another zone, such as a scheduler passes, is converted."""
    try:
        found = datetime.fromisoformat(text)
        return found.astimezone(UTC).replace(tzinfo=None) if found.tzinfo else found
    except (ValueError, OverflowError):
        raise typer.BadParameter(f"{text!r} is not a time, such as 2026-05-01T12:00") from None


def _sentences_aside(context: typer.Context, as_json: bool) -> bool:
    """Programs read standard output. So sentences of a command that prints JSON go to standard error."""
    from forebay.cli.show import console

    def speak_again() -> None:
        console.stderr = False

    console.stderr = as_json
    context.call_on_close(speak_again)
    return as_json


def as_lake(text: str) -> str:
    """Empty where a command needs none."""
    return lake_address(text) if text else ""


def as_place(text: str) -> str:
    return typed_address(text, "place")


def lake_option(meaning: str) -> Any:
    return typer.Option("--lake", envvar="FOREBAY_LAKE", callback=as_lake, help=meaning, show_default=False)


Lake = Annotated[str, lake_option("Where the tables are: s3://bucket/prefix, or a folder such as ./lake.")]
LakeOfStack = Annotated[str, lake_option("Where the tables are; with --stack, the lake of that stack.")]
Service = Annotated[
    str,
    typer.Option(
        envvar="FOREBAY_SERVICE",
        help="The declarations: a folder, service.toml or s3:// prefix; without it those that the lake's job used last.",
        show_default=False,
    ),
]
SUCH_A_KEY = "this key, or s3://bucket/key; * matches any text."
Of = Annotated[str, typer.Option("--of", help="The name of the service, if the lake has several.", show_default=False)]
AsJson = Annotated[bool, typer.Option("--json", callback=_sentences_aside, help="Print JSON, one object per line.")]
DryRun = Annotated[bool, typer.Option("--dry-run", help="Show what would be done, but do nothing.")]
Yes = Annotated[bool, typer.Option("--yes", help="Do not ask for confirmation.")]
QueueUrl = Annotated[
    str, typer.Option(envvar="FOREBAY_QUEUE_URL", help="The queue that S3 announces files to.", show_default=False)
]
Checkpoint = Annotated[
    str, typer.Option(help="The ingest job's checkpoint; by default the lake's own.", show_default=False)
]
Stack = Annotated[
    str,
    typer.Option(
        envvar="FOREBAY_STACK",
        help="The deployed stack, such as forebay-prod: adds its runs and alarms from AWS.",
        show_default=False,
    ),
]


def version_or_moment(option: str, text: str) -> int | datetime:
    """A version of a table, or a past time. A time without a zone is in UTC."""
    if text.isdecimal():
        return int(text)
    try:
        moment = datetime.fromisoformat(text)
    except ValueError:
        raise InvalidConfiguration.one(
            f"{option} {text}", "is neither a version nor a time", "such as 2026-05-01T12:00"
        ) from None
    moment = moment if moment.tzinfo else moment.replace(tzinfo=UTC)
    if moment > datetime.now(UTC):
        raise InvalidConfiguration.one(f"{option} {text}", "is in the future", "times are in UTC")
    return moment
