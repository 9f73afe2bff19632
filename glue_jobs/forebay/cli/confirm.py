"""Asks before a command changes or destroys something. It asks on standard error, so piped output stays clean."""

from __future__ import annotations

import sys

import typer

from forebay.cli.show import error_console
from forebay.errors import InvalidConfiguration


def confirm(question: str, *, otherwise: str = "nothing was done") -> None:
    """Comes back if the answer is yes. Without one, or with another, the command ends."""
    error_console.print(f"{question} [y/N]: ", end="")
    answer = sys.stdin.readline()
    if not answer:
        raise InvalidConfiguration.one("--yes", "is missing, and there is no terminal to ask", otherwise)
    if answer.strip().lower() not in ("y", "yes"):
        error_console.print(otherwise)
        raise typer.Exit(1)
