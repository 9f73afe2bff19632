"""A command as an operator gives it, in this process: what it prints, and how it ends."""

from __future__ import annotations

import sys

from typer.testing import CliRunner

from forebay.cli.main import main
from forebay.cli.show import console, error_console


def ran(*arguments: str, typed: str = "") -> str:
    """What a command printed that went well."""
    status, out, err = given(arguments, typed)
    assert (status, err) == (0, "")
    return out


def failed(status: int, *arguments: str, typed: str = "") -> str:
    """What a command said, on both ways out, that ended with this status."""
    ended, out, err = given(arguments, typed)
    assert ended == status, out + err
    return out + err


def given(arguments: tuple[str, ...], typed: str) -> tuple[int, str, str]:
    # No line is broken.
    console.width = error_console.width = 1000
    env = {"FOREBAY_LOG": "error"}
    with CliRunner().isolation(input=typed, env=env) as (out, err, *_):
        try:
            main(arguments)
            status = 0
        except SystemExit as ended:
            status = int(ended.code or 0)
        sys.stdout.flush()
        sys.stderr.flush()
        return status, out.getvalue().decode(), err.getvalue().decode()
