"""`--json` for a command that changes something: one object on standard output, and its sentences on standard error.

In: a command. Out: the same command with the option `--json`. Anything that runs inside it adds to the object with `tell`,
which does nothing without the option. A preview says so: the object of a command with `--dry-run` has `dry_run`.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable
from contextvars import ContextVar
from functools import wraps
from typing import Any

import typer

from forebay.cli.options import AsJson
from forebay.cli.show import print_json

_answer: ContextVar[dict[str, Any] | None] = ContextVar("answer", default=None)


def tell(**values: Any) -> None:
    answer = _answer.get()
    if answer is not None:
        answer.update(values)


def answers(command: Callable[..., Any]) -> Callable[..., Any]:
    @wraps(command)
    def answering(*arguments: Any, as_json: bool = False, **options: Any) -> None:
        if not as_json:
            command(*arguments, **options)
            return
        answer = {name: value for name, value in options.items() if name == "dry_run"}
        before = _answer.set(answer)
        try:
            command(*arguments, **options)
        except typer.Exit:
            print_json([answer])
            raise
        finally:
            _answer.reset(before)
        print_json([answer])

    typed = inspect.signature(command, eval_str=True)
    option = inspect.Parameter("as_json", inspect.Parameter.KEYWORD_ONLY, default=False, annotation=AsJson)
    answering.__signature__ = typed.replace(parameters=[*typed.parameters.values(), option])  # type: ignore[attr-defined]
    answering.__annotations__ = {**command.__annotations__, "as_json": AsJson}
    return answering
