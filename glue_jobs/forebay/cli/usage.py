"""Mistakes on the command line, in one line each, as every other error.

In: an error of Typer. Out: the line, which names the command, the mistake and the remedy.
"""

from __future__ import annotations

import os
import re
from difflib import get_close_matches
from pathlib import Path
from typing import Any

from typer._click.exceptions import MissingParameter, NoSuchOption, UsageError

from forebay.cli.examples import EXAMPLES
from forebay.errors import InvalidConfiguration

WORDS = {"why": "where", "find": "where", "trace": "where", "load": "ingest", "run": "ingest", "delete": "tables drop"}
WORDS |= {"accounts": "audit", "reconcile": "find-missed"}
"""Commands as people call them who have not read their names yet."""

OF_THE_CHECKOUT = ("local", "demo")

MOST_MEANT = 3
"""The most commands that one typed name may stand for; of more, none is likely."""

OF_THE_TWIN = {"FOREBAY_LAKE": "lake", "FOREBAY_QUEUE_URL": "queue", "FOREBAY_LANDING": "bucket"}

BOUNDS = (
    (r".*Input should be a valid integer.*", "must be a whole number"),
    (r".*Input should be a valid number.*", "must be a number"),
    (r".*Input should be greater than or equal to (\S+).*", r"must be at least \1"),
    (r".*Input should be less than or equal to (\S+).*", r"must be at most \1"),
    (r".*Input should be greater than (\S+).*", r"must be more than \1"),
    (r".*Input should be less than (\S+).*", r"must be less than \1"),
    (r"Value error, (.*?)\.?", r"\1"),
)
"""Typer's messages about a value, and ours."""


def said_of(refused: UsageError) -> str:
    of = refused.ctx.command_path.removeprefix("forebay").strip() if refused.ctx else ""
    what, hint = _what(refused)
    more = f"`forebay {of + ' ' if of else ''}--help` says more"
    return f"{of}: {what} ({hint or more})" if of else f"{what} ({hint or more})"


def _what(refused: UsageError) -> tuple[str, str]:
    message = refused.format_message()
    if isinstance(refused, NoSuchOption):
        meant = " or ".join(refused.possibilities or ())
        return f"{refused.option_name} is unknown", f"did you mean {meant}?" if meant else ""
    if isinstance(refused, MissingParameter) and refused.param is not None:
        variable = getattr(refused.param, "envvar", None)
        is_option = refused.param.opts[0].startswith("-")
        named = refused.param.opts[0] if is_option else refused.param.metavar or (refused.param.name or "").upper()
        return f"{named} is missing", hint_of(variable) if variable else ""
    if found := re.fullmatch(r"No such command '(.*?)'.*", message):
        if found[1] in OF_THE_CHECKOUT:
            return f"{found[1]} is not part of the wheel", "clone the repository, and run `make setup`"
        meant = _meant(found[1], refused.ctx)
        return f"{found[1]} is unknown", f"did you mean {meant}?" if meant else ""
    if found := re.fullmatch(r"Got unexpected extra argument(?:s|\(s\))? \((.*)\)", message, re.S):
        option = _option_for(found[1], refused.ctx)
        hint = f"did you mean {option} {found[1]}?" if option else "put quotes around a text that has blanks"
        return f"{found[1]}: too many arguments", hint
    if found := re.fullmatch(r"Invalid value for '?([^':]*)'?(?: \(.*?\))?: (.*)", message, re.S):
        for pattern, meaning in BOUNDS:
            if re.fullmatch(pattern, found[2], re.S):
                return f"{found[1]} {re.sub(pattern, meaning, found[2], flags=re.S)}", ""
        return f"{found[1]}: {found[2]}", ""
    return message.removesuffix("."), ""


def _option_for(typed: str, context: Any) -> str:
    """The option that takes the name of a table or the address of a file, if the command takes it by option alone."""
    options = [name for one in context.command.params for name in one.opts] if context else []
    option = "--file" if "://" in typed else "--table"
    takes_names = any(not name.startswith("-") for name in options)
    return option if option in options and not takes_names and " " not in typed else ""


def hint_of(variable: str) -> str:
    """Says how to set a variable. If a twin runs here, its environment has the value."""
    elsewhere = os.environ.get("FOREBAY_LOCAL")
    state = Path(elsewhere or ".forebay/local")
    if variable in OF_THE_TWIN and (state / "twin.json").exists():
        return f'a twin runs in {elsewhere or "this folder"}: `eval "$(forebay local env)"` names its {OF_THE_TWIN[variable]}'
    return f"or set {variable}, or name it in forebay.toml"


def must_be_given(command: str, name: str, value: str, variable: str) -> None:
    """For options that a command needs only in some cases."""
    if not value:
        raise InvalidConfiguration.one(command, f"{name} is missing ({hint_of(variable)})")


def _meant(typed: str, context: Any) -> str:
    """A command of a group that was typed without the group, or a name that is alike."""
    known = getattr(context.command, "commands", ()) if context else ()
    if typed in WORDS and WORDS[typed].split()[0] in known:
        return WORDS[typed]
    within = [name for name in EXAMPLES if name.endswith(f" {typed}")]
    if 0 < len(within) <= MOST_MEANT:
        return " or ".join(within)
    return next(iter(get_close_matches(typed, known, 1)), "")
