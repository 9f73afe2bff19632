"""The options that choose files of the ledger, for each command that reads files again.

In: a function that takes `ChosenFiles` first. Out: a function that typer makes a command of, with an option for each choice.
"""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable
from dataclasses import dataclass, field, fields
from datetime import datetime
from typing import TYPE_CHECKING, Annotated, get_type_hints

import typer

from forebay.cli.options import SUCH_A_KEY, Of, moment
from forebay.errors import InvalidConfiguration

if TYPE_CHECKING:
    from forebay.operate.changing.replay import Replay
    from forebay.operate.lake_view import LakeView


@dataclass(frozen=True, kw_only=True)
class ChosenFiles:
    """The files that fit every field; each field is an option."""

    file: Annotated[
        list[str] | None,
        typer.Option(
            help="This file, s3://bucket/key; may be repeated. An earlier version without rows is left out if a later one "
            "was loaded."
        ),
    ] = None
    file_id: Annotated[
        list[str] | None, typer.Option(help="Only this version, by its id in the ledger; may be repeated.")
    ] = None
    key: Annotated[str, typer.Option(help=f"Files with {SUCH_A_KEY}")] = ""
    since: Annotated[datetime | None, moment("Loaded since this time, in UTC.")] = None
    until: Annotated[datetime | None, moment("Loaded before this time, in UTC.")] = None
    table: Annotated[str, typer.Option(help="Files with rows in this table.")] = ""
    batch: Annotated[int | None, typer.Option(help="Files of this batch.")] = None
    generation: Annotated[
        str,
        typer.Option(
            help="With --batch: the checkpoint's generation, if several had this batch; the error lists them."
        ),
    ] = ""
    quarantined: Annotated[bool, typer.Option("--quarantined", help="Files with records in the quarantine.")] = False
    of: Of = field(default="")

    def __post_init__(self) -> None:
        if self.generation and self.batch is None:
            raise InvalidConfiguration.one("--generation", "needs --batch", "name the batch")
        for one in self.file_id or ():
            must_be_an_id(one)

    def __bool__(self) -> bool:
        return self != ChosenFiles(of=self.of)

    def found(self, view: LakeView) -> Replay:
        """`InvalidConfiguration` where nothing is chosen, or a name is unknown."""
        from forebay.operate.changing.replay import replay_of
        from forebay.operate.lake_view import known_table
        from forebay.operate.looking.files import FileChoice

        if not self:
            raise InvalidConfiguration.one("files", "must be chosen", "such as --table alpha --since 2026-05-01")
        choice = FileChoice(
            key=self.key,
            since=self.since,
            until=self.until,
            table=self.table,
            batch=self.batch,
            generation=self.generation,
            quarantined=self.quarantined,
            service=self.of,
        )
        found = replay_of(view, choice, self.file or (), self.file_id or ())
        if self.table and not found.files:
            known_table(view, self.table)
        return found


def must_be_an_id(file_id: str) -> None:
    """A mistyped one would mean nothing, and the beginning of one other files."""
    if file_id and not re.fullmatch("[0-9a-f]{32}", file_id):
        raise InvalidConfiguration.one(
            f"--file-id {file_id}", "is not the id of a file", "`forebay files show` shows it"
        )


def choosing_files(run: Callable[..., None]) -> Callable[..., None]:
    """The function's other parameters stay options of their own."""
    types = get_type_hints(run, include_extras=True)
    _, *own = inspect.signature(run).parameters.values()
    extra = [one.replace(annotation=types[one.name], kind=inspect.Parameter.KEYWORD_ONLY) for one in own]
    choices = get_type_hints(ChosenFiles, include_extras=True)
    made = [
        inspect.Parameter(one.name, inspect.Parameter.KEYWORD_ONLY, default=one.default, annotation=choices[one.name])
        for one in fields(ChosenFiles)
    ]

    def command(**given: object) -> None:
        run(ChosenFiles(**{one.name: given.pop(one.name) for one in made}), **given)  # type: ignore[arg-type]

    command.__name__, command.__doc__, command.__module__ = run.__name__, run.__doc__, run.__module__
    command.__signature__ = inspect.Signature([*made, *extra])  # type: ignore[attr-defined]
    command.__annotations__ = {one.name: one.annotation for one in (*made, *extra)}
    return command
