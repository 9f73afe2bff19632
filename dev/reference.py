"""Writes docs/reference/ from the code, so that nobody has to keep it up to date.

    python -m dev.reference     # after a change of a setting, a command, an event or a table of forebay's own

In: models, settings, commands and events. Out: one page of Markdown for each kind. tests/test_docs.py fails if one
differs.
"""

from __future__ import annotations

import dataclasses
import importlib
import inspect
import re
from collections.abc import Iterable, Iterator, Sequence
from enum import Enum
from pathlib import Path
from typing import Any, Literal, Union, get_args, get_origin

import pyarrow as pa
from pydantic import BaseModel
from pydantic.fields import FieldInfo

import forebay

PLACE = Path(__file__).resolve().parent.parent / "docs" / "reference"
MADE = "<!-- Written by `python -m dev.reference`. Change the code, and run it again. -->"


def pages() -> dict[str, str]:
    """By file name."""
    return {
        "declarations.md": declarations(),
        "settings.md": settings(),
        "commands.md": commands(),
        "events.md": events(),
        "lake.md": lake(),
        "environment.md": environment(),
    }


def declarations() -> str:
    from forebay.declaration.column import Column, Dedupe, Undeclared
    from forebay.declaration.condition import Condition
    from forebay.declaration.event_time import EventTime
    from forebay.declaration.expectation import Expectation
    from forebay.declaration.feed import AfterLoad, Envelope, Feed
    from forebay.declaration.layout import Compaction
    from forebay.declaration.merge import Merge
    from forebay.declaration.privacy import Personal, Privacy
    from forebay.declaration.rollup import Rollup
    from forebay.declaration.schedule import Schedule
    from forebay.declaration.service import FILLED, Service
    from forebay.declaration.table import Table

    parts: list[tuple[str, str, type[BaseModel]]] = [
        ("The service", "At the top of `service.toml`.", Service),
        ("envelope", "In `service.toml`, as `[envelope]`.", Envelope),
        ("feeds", "In `service.toml`, one `[[feeds]]` for each kind of files.", Feed),
        ("privacy", "In `service.toml`, as `[privacy]`.", Privacy),
        ("privacy.personal", "Each field of `privacy.personal`. A path alone is enough.", Personal),
        ("after_load", "In `service.toml`, as `[after_load]`.", AfterLoad),
        ("schedules", "In `service.toml`, one `[schedules.NAME]` for each schedule.", Schedule),
        ("A table", "One `[[tables]]` in `service.toml`, or a file `tables/NAME.toml`.", Table),
        (
            "where",
            "The tests of one field: `where = { FIELD = { ... } }`. A value or a list of values is enough.",
            Condition,
        ),
        ("columns", "Each column of a table: `columns = [{ ... }]`.", Column),
        ("undeclared", "In a table: `undeclared = { ... }`.", Undeclared),
        ("event_time", "In a table: `event_time = { ... }`.", EventTime),
        ("expectations", "In a table: `expectations = { NAME = { ... } }`. A text is the `check` alone.", Expectation),
        ("dedupe", "In a table: `dedupe = { ... }`.", Dedupe),
        ("merge", 'In a table with `mode = "merge"`: `merge = { ... }`.', Merge),
        ("compaction", "In a table: `compaction = { ... }`.", Compaction),
        ("A rollup", "One `[[rollups]]` in `service.toml`, or a file `rollups/NAME.toml`.", Rollup),
    ]
    text = _head(
        "Declarations",
        "Every setting of a service, its tables and its rollups. How to use them: [Declarations](../declarations.md), "
        "[Files](../files.md), and [Merge tables and rollups](../states.md).",
    )
    for title, where, model in parts:
        rows = [
            (f"`{field.alias or name}`", _kind(field.annotation), _default(field), _sentence(field.description))
            for name, field in model.model_fields.items()
            if not (model is Service and name in FILLED)
        ]
        text += f"\n## {title}\n\n{where}\n\n{_table(('key', 'type', 'default', 'meaning'), rows)}"
    return text


def settings() -> str:
    from forebay import settings as home

    text = _head(
        "Settings of the jobs",
        "Each job takes its settings as arguments, such as `--queue_url X` on Glue, and each command as options. "
        "The command of the job `reconcile` is `forebay find-missed`.",
    )
    jobs = {
        "ingest": home.IngestSettings,
        "compact": home.CompactSettings,
        "maintain": home.MaintainSettings,
        "merge": home.MergeSettings,
        "reconcile": home.ReconcileSettings,
    }
    for name, model in jobs.items():
        rows = [
            (f"`{key}`", _kind(field.annotation), _default(field), _sentence(field.description))
            for key, field in model.model_fields.items()
        ]
        text += f"\n## {name}\n\n{_table(('setting', 'type', 'default', 'meaning'), rows)}"
    return text


def commands() -> str:
    from typer.main import get_command

    from forebay.cli.main import COMMANDS, EXITS, app

    text = _head(
        "Commands",
        "`forebay COMMAND --help` shows the same, with examples. With `--json` a command prints one JSON object per line. "
        "A command that changes something prints exactly one, and its sentences go to standard error. "
        "Three commands have no `--json`: the journal of `ingest` and the schema of `tables editor-schema` are JSON already, "
        "and `demo` is for people. `--service` takes declarations, and `--of` the name of a service. "
        "`tables check` and `tables diff` compare with a lake only if you give `--lake`: they ignore `FOREBAY_LAKE`. "
        "`tables push` reads it.",
    )
    text += "\n## Exit status\n\n"
    statuses = re.findall(r"^  (\d+)\s+(.*)$", EXITS, re.M)
    text += _table(("status", "meaning"), [(f"`{status}`", _sentence(meaning)) for status, meaning in statuses])
    for name in COMMANDS:
        command = get_command(app).commands[name]  # type: ignore[attr-defined]
        text += _command(f"forebay {name}", command, 2)
        for inner, its in getattr(command, "commands", {}).items():
            text += _command(f"forebay {name} {inner}", its, 3)
    return text


def events() -> str:
    text = _head(
        "Events and metrics",
        "Each line of a job's log is one event, a JSON object with these fields. Marked fields are metrics of CloudWatch, too. "
        "An event of level error needs a person.",
    )
    for event in sorted(_all_events(), key=lambda event: event.__name__):
        level = ", level error" if event.level == "error" else ""
        text += f"\n### {event.__name__}{level}\n\n{_sentence(inspect.getdoc(event))}\n\n"
        fields = [
            f"`{one.name}`" + (f" (metric, {one.metadata['unit']})" if "unit" in one.metadata else "")
            for one in dataclasses.fields(event)
        ]
        text += f"Fields: {', '.join(fields) or 'none'}.\n"
    return text


def lake() -> str:
    from dev.lake_columns import AFTER_LOAD, COMPLETE, HELD, LEDGER, OTHER_REASONS, OWN, QUALITY
    from forebay.batch import expectations
    from forebay.batch.one_pass import held
    from forebay.batch.reasons import REASONS
    from forebay.content import outcome
    from forebay.declared_sql.columns import OWN_COLUMNS
    from forebay.ledger import entry, periods
    from forebay.ledger.ignored import RULES
    from forebay.upkeep.after_load import notes

    text = _head("The lake", "The columns that forebay adds to yours, and the words that it uses in the ledger.")
    text += "\n## Columns that forebay adds to a table\n\n"
    text += _table(("column", "meaning"), [(f"`{name}`", OWN[name]) for name in (*OWN_COLUMNS, "_rescued", "_record")])
    text += "\n## Outcomes of files\n\n"
    text += _table(
        ("outcome", "final", "meaning"),
        [
            (f"`{name}`", "no" if name in entry.NOT_FINAL else "yes", _sentence(meaning))
            for name, meaning in _explained(entry, entry.Outcome)
        ],
    )
    text += "\n## Reasons of files that were not loaded\n\n"
    text += "The ledger has them beside `missing`, `denied`, `unavailable` and `unreadable`.\n\n"
    reasons = _explained(outcome, outcome.FileReason)
    text += _table(("reason", "meaning"), [(f"`{name}`", _sentence(meaning)) for name, meaning in reasons])
    text += "\n## Other reasons of files\n\n"
    text += _table(("reason", "meaning"), [(f"`{name}`", meaning) for name, meaning in sorted(OTHER_REASONS.items())])
    text += "\n## Reasons of ignored files\n\n" + _table(
        ("reason", "meaning"), [(f"`{name}`", _sentence(meaning)) for name, meaning in RULES.items()]
    )
    text += "\n## Reasons of the quarantine\n\n" + _table(
        ("reason", "meaning"), [(f"`{name}`", _sentence(meaning)) for name, meaning in REASONS.items()]
    )
    for title, table, columns, meanings in (
        ("the ledger", "ledger", _columns(entry.COLUMNS), LEDGER),
        ("the quarantine, and of parked records", "quarantine", _columns(held.COLUMNS), HELD),
        ("expectations", "quality", _columns(expectations.COLUMNS), QUALITY),
        ("complete hours and days", "complete", [(one.name, IN_SPARK[one.type]) for one in periods.SCHEMA], COMPLETE),
        (
            "landed files after they were loaded",
            "after_load",
            [(one.name, IN_SPARK[one.type]) for one in notes.SCHEMA],
            AFTER_LOAD,
        ),
    ):
        more = ", and parked records are in `_forebay/parked`" if table == "quarantine" else ""
        text += f"\n## Columns of {title}\n\nThe table `_forebay/{table}`{more}. `forebay query` knows "
        text += "both names without the folder.\n\n" if more else f"it as `{table}`.\n\n"
        text += _table(
            ("column", "type", "meaning"), [(f"`{name}`", f"`{kind}`", meanings[name]) for name, kind in columns]
        )
    return text


IN_SPARK = {
    pa.int64(): "long",
    pa.bool_(): "boolean",
    pa.string(): "string",
    pa.timestamp("us", "UTC"): "timestamp",
}


def _explained(module: Any, names: Any) -> list[tuple[str, str]]:
    """Each of these names, with the comment beside it."""
    there = dict(re.findall(r'^    "([a-z0-9-]+)",  # (.*)$', inspect.getsource(module), re.M))
    return [(name, there[name]) for name in get_args(names)]


def _columns(text: str) -> list[tuple[str, str]]:
    return re.findall(r"(\w+) (map<[^>]+>|\w+)(?:, |$)", text)


def environment() -> str:
    from forebay.cli.environment import ENVIRONMENT, OF_AWS
    from forebay.cli.folder import VARIABLES

    text = _head(
        "Environment variables",
        "An option overrides a variable, and a variable overrides `forebay.toml` in the current folder.",
    )
    text += "\n## Of forebay\n\n" + _table(
        ("variable", "meaning"), [(f"`{name}`", meaning) for name, meaning in ENVIRONMENT.items()]
    )
    text += "\n## Of AWS, OpenLineage and the terminal\n\n" + _table(
        ("variable", "meaning"), [(f"`{name}`", meaning) for name, meaning in OF_AWS.items()]
    )
    text += "\n## forebay.toml\n\nA file in the current folder with texts for these keys:\n\n"
    return text + _table(("key", "same as"), [(f"`{key}`", f"`{name}`") for key, name in VARIABLES.items()])


# --- inside ---


def _head(title: str, text: str) -> str:
    return f"# {title}\n\n{MADE}\n\n{text}\n"


def _command(name: str, command: Any, depth: int) -> str:
    text = f"\n{'#' * depth} {name}\n\n{_flow(command.help)}\n"
    rows = [
        (
            _spelt(parameter),
            "required" if parameter.required else _shown(parameter),
            " ".join([_flow(parameter.help or "").replace("\n", " "), *_variable(parameter)]),
        )
        for parameter in command.params
        if not getattr(parameter, "hidden", False) and parameter.name != "help"
    ]
    return text + (f"\n{_table(('option', 'default', 'meaning'), rows)}" if rows else "")


def _spelt(parameter: Any) -> str:
    names = [option for option in (*parameter.opts, *parameter.secondary_opts) if option.startswith("-")]
    return ", ".join(f"`{name}`" for name in names) or f"`{parameter.metavar or parameter.name.upper()}`"


def _variable(parameter: Any) -> list[str]:
    return [f"Variable: `{parameter.envvar}`."] if parameter.envvar else []


def _shown(parameter: Any) -> str:
    value = parameter.default
    value = value.value if isinstance(value, Enum) else value
    value = ", ".join(value) if isinstance(value, list) else parameter.opts[0] if value is True else value
    return "" if callable(value) or value in (None, "", False, (), []) or "Sentinel" in repr(value) else f"`{value}`"


def _flow(text: str | None) -> str:
    paragraphs = re.split(r"\n\s*\n", inspect.cleandoc(text or ""))
    return "\n\n".join(_escaped(" ".join(paragraph.split())) for paragraph in paragraphs)


def _all_events() -> set[Any]:
    """The events of every module that defines some."""
    from forebay.events import Event

    root = Path(forebay.__path__[0])
    for file in sorted(root.rglob("*.py")):
        if re.search(r"^class \w+\(\w*Event\b", file.read_text(), re.M):
            importlib.import_module(".".join(("forebay", *file.relative_to(root).with_suffix("").parts)))
    return set(_below(Event))


def _below(of: Any) -> Iterator[Any]:
    for one in of.__subclasses__():
        if one.__module__.startswith("forebay.") and not one.__subclasses__():
            yield one
        yield from _below(one)


def _kind(annotation: Any) -> str:
    origin, parts = get_origin(annotation), get_args(annotation)
    if origin is Literal:
        return " or ".join(f"`{part}`" for part in parts)
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        return "table"
    if origin is tuple:
        return f"list: {_kind(parts[0])}"
    if origin is dict:
        return f"table of names: {_kind(parts[1])}"
    if origin is Union or type(annotation).__name__ == "UnionType":
        return " or ".join(_kind(part) for part in parts if part is not type(None))
    if hasattr(annotation, "__metadata__"):
        return _kind(parts[0])
    return {str: "text", int: "whole number", float: "number", bool: "true or false"}.get(annotation, "moment")


def _default(field: FieldInfo) -> str:
    if field.is_required():
        return "required"
    value = field.get_default(call_default_factory=True)
    if value in (None, "", (), {}) or isinstance(value, BaseModel):
        return ""
    return f"`{str(value).lower() if isinstance(value, bool) else ', '.join(value) if isinstance(value, tuple) else value}`"


def _sentence(text: str | None) -> str:
    text = _escaped(" ".join((text or "").split()))
    return text[:1].upper() + text[1:] + ("" if text.endswith((".", "?", "")) and text[-1:] == "." else ".")


def _escaped(text: str) -> str:
    """`<env>` and the like would be taken for HTML, and dropped."""
    return re.sub(r"(?<!`)<([a-z-]+)>", r"`<\1>`", text)


def _table(heads: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    lines = [heads, ["---"] * len(heads), *([cell.replace("|", r"\|") for cell in row] for row in rows)]
    return "".join(f"| {' | '.join(line)} |\n" for line in lines)


def main() -> None:
    PLACE.mkdir(parents=True, exist_ok=True)
    for name, text in pages().items():
        (PLACE / name).write_text(text)


if __name__ == "__main__":
    main()
