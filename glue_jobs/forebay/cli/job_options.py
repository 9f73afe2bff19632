"""The options of a command that runs a job: each of the job's settings, with its name, type, default and meaning.

In: a function that takes checked settings as its first parameter. Out: a function that typer makes a command of. Invalid
settings are `InvalidConfiguration`, named as options.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Annotated, Any, Literal, TypeVar, get_args, get_origin, get_type_hints

import typer
from pydantic import ValidationError
from pydantic.fields import FieldInfo

from forebay.cli.folder import VARIABLES
from forebay.cli.options import as_lake
from forebay.errors import InvalidConfiguration
from forebay.refusal import problems_of
from forebay.settings import JobSettings

Settings = TypeVar("Settings", bound=JobSettings)


def options_of(settings: type[Settings]) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """The function's other parameters stay options of their own. A setting `tables` is given as arguments."""

    def of_function(run: Callable[..., None]) -> Callable[..., None]:
        types = get_type_hints(run, include_extras=True)
        _, *own = inspect.signature(run).parameters.values()
        extra = [p.replace(annotation=types[p.name], kind=inspect.Parameter.KEYWORD_ONLY) for p in own]
        made = [_parameter(name, field) for name, field in settings.model_fields.items()]

        def command(**given: Any) -> None:
            others = {p.name: given.pop(p.name) for p in own}
            run(checked(settings, **given), **others)

        parameters = [*made, *extra]
        command.__name__, command.__doc__ = run.__name__, run.__doc__
        command.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]
        command.__annotations__ = {p.name: p.annotation for p in parameters}
        return command

    return of_function


def checked(settings: type[Settings], **given: Any) -> Settings:
    values = {name: ",".join(value or ()) if name == "tables" else value for name, value in given.items()}
    try:
        return settings(**values)
    except ValidationError as refused:
        raise InvalidConfiguration(problems_of(refused, lambda path: "--" + path.replace("_", "-"))) from None


def meaning(settings: type[JobSettings], name: str) -> str:
    """A setting's own line, as a sentence."""
    text = settings.model_fields[name].description or ""
    return text[:1].upper() + text[1:] + "."


def _parameter(name: str, field: FieldInfo) -> inspect.Parameter:
    kind: Any = field.annotation
    default = inspect.Parameter.empty if field.is_required() else field.default
    if name == "tables":
        words = typer.Argument(metavar="TABLE", help="Names; without one, all tables.")
        kind, default, option = list[str] | None, None, words
    else:
        text = field.description or ""
        flag = [f"--{name.replace('_', '-')}"] if kind is bool else []
        choices = "|".join(get_args(kind)) if get_origin(kind) is Literal else None
        kind = str if choices else kind  # the settings refuse another choice, in one line like all that they refuse
        shown: dict[str, Any] = {"envvar": VARIABLES.get(name), "metavar": choices, "show_default": bool(default)}
        shown |= {"callback": as_lake} if name == "lake" else {}
        option = typer.Option(*flag, help=text[:1].upper() + text[1:] + ".", **shown)
    keyword = inspect.Parameter.KEYWORD_ONLY
    return inspect.Parameter(name, keyword, default=default, annotation=Annotated[kind, option])
