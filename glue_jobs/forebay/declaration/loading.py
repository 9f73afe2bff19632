"""Reads the declarations of a service.

In: `service.toml`, with `tables/*.toml` and `rollups/*.toml` beside it, from a folder or an s3:// prefix. Out: a frozen
`Service` with a version (a hash of the text), so that the ledger can record which declarations loaded a file. Every problem of
every file is reported at once, with file, key and a suggestion (`InvalidConfiguration`).
"""

from __future__ import annotations

import hashlib
import re
import tomllib
from collections.abc import Iterable, Mapping
from dataclasses import replace
from importlib import resources
from typing import Any, TypeVar

from pydantic import BaseModel, ValidationError

from forebay.declaration.agreement import declared_twice, disagreements
from forebay.declaration.kept.files import readable_at
from forebay.declaration.mistakes.corrected import mentions, without_mistakes
from forebay.declaration.mistakes.hints import hint_for, names_of, value_meant
from forebay.declaration.mistakes.places import Section, Text, sections_of
from forebay.declaration.order import in_order
from forebay.declaration.rollup import Rollup
from forebay.declaration.service import FILLED, Service
from forebay.declaration.table import Table
from forebay.errors import InvalidConfiguration, Problem
from forebay.refusal import Location, refusals_of
from forebay.transforms import use_folder

Part = TypeVar("Part", bound=BaseModel)

FREE = ("where", "expectations", "partition_values", "properties")
"""Settings of a table whose keys a person chooses, so that any key is one of theirs."""

MOST_SHOWN = 120
"""The longest line that a message repeats."""

MOST_ROUNDS = 5
"""The most rounds in which a declaration is checked again without its mistakes."""


def builtin_service() -> Service:
    """The example that is used when nothing is declared: game telemetry, one table for each game."""
    text = (resources.files("forebay.declaration") / "example" / "service.toml").read_text()
    return parse_service({"service.toml": text})


def load_service(place: str, *, s3: Any = None, strict: bool = False) -> Service:
    """From a folder, an s3:// prefix, or one .toml file in either; the built-in example where `place` is empty. The process
    finds functions beside local declarations from then on."""
    if not place:
        return builtin_service()
    texts, unread = readable_at(place, s3=s3)
    use_folder(place)
    try:
        return parse_service(texts, strict=strict, unread=unread)
    except InvalidConfiguration as invalid:
        if not place.endswith(".toml"):
            raise
        raise InvalidConfiguration(_in_file(place.rpartition("/")[2], invalid.problems)) from None


def _in_file(name: str, problems: Iterable[Problem]) -> list[Problem]:
    """A file named on the command line may have any name, and its problems show that name."""

    def by_name(text: str) -> str:
        return re.sub(r"\bservice\.toml(?=:)", lambda _: name, text)

    return [replace(problem, where=by_name(problem.where), what=by_name(problem.what)) for problem in problems]


def parse_service(texts: Mapping[str, str], *, strict: bool = False, unread: Iterable[Problem] = ()) -> Service:
    """Declarations from their texts, by file name; all problems of all files at once, with those of files that are `unread`.
    The tables are in the order in which a record tries them. Only here: the tables of a pinned service keep the order that
    they were pinned in. With `strict`, for a person who edits them, a table that never gets a record is a problem. A job runs
    with it: nothing is lost."""
    problems = list(unread)
    parsed: dict[str, dict[str, Any]] = {}
    for name, text in sorted(texts.items()):
        try:
            parsed[name] = tomllib.loads(text)
        except tomllib.TOMLDecodeError as broken:
            problems.append(_no_toml(Text(name, text), str(broken)))
    all_files = not problems
    some_unread = any(one.where.startswith("tables/") for one in problems)
    main = dict(parsed.get("service.toml", {}))
    found = {kind: _sections(main, kind, parsed, texts, problems) for kind in ("tables", "rollups")}
    tables = _valid(Table, found["tables"], problems)
    rollups = _valid(Rollup, found["rollups"], problems)
    if "service.toml" not in parsed:  # nothing is known of what the tables must agree with
        raise InvalidConfiguration(problems)
    problems += [
        Problem(f"service.toml: {name}", "is filled by forebay", hint) for name, hint in FILLED.items() if name in main
    ]
    version = version_of(texts)
    parts = {"tables": in_order([table for _, table in tables]), "rollups": [rollup for _, rollup in rollups]}
    service, wrong = _service_of(main, {**parts, "version": version, "paused": (), "erased": ""}, texts, problems)
    if not (found["tables"] or some_unread):
        problems.append(Problem("service.toml: tables", "no table is declared", "add a [[tables]] with a name"))
    problems += declared_twice(found["tables"])
    places = {id(part): section.at() for section, part in (*tables, *rollups)}
    all_tables = all_files and len(tables) == len(found["tables"])
    problems += disagreements(
        service, main, wrong, all_tables=all_tables, at=lambda part: places[id(part)], strict=strict
    )
    if problems:
        raise InvalidConfiguration(problems)
    return service


def _no_toml(text: Text, broken: str) -> Problem:
    """Points to the place, where Python names one."""
    at = re.fullmatch(r"(.*) \(at line (\d+), column (\d+)\)", broken, re.S)
    if at is None:
        return Problem(text.file, f"is not TOML: {broken}")
    problem, number, column = at[1], int(at[2]), int(at[3]) - 1
    line = (text.text.splitlines() or [""])[number - 1]
    word = re.compile(r"[A-Za-z_][\w.\-]*").match(line, column)
    if word and problem == "Invalid value":
        problem += f' (a text needs quotes: "{word[0]}")'
    shown = f"\n    {line}\n    {' ' * column}^" if len(line) <= MOST_SHOWN else ""
    return Problem(f"{text.file}:{number}", f"is not TOML: {problem}{shown}")


def version_of(texts: Mapping[str, str]) -> str:
    return hashlib.sha256("\0".join(f"{n}\0{t}" for n, t in sorted(texts.items())).encode()).hexdigest()[:12]


def _sections(
    main: dict[str, Any],
    name: str,
    parsed: Mapping[str, dict[str, Any]],
    texts: Mapping[str, str],
    problems: list[Problem],
) -> list[Section]:
    """All tables, or all rollups: those of service.toml, then those of files of their own."""
    given, text = main.pop(name, []), Text("service.toml", texts.get("service.toml", ""))
    if not isinstance(given, list):
        hint = f"write [[{name}]] before each, in two brackets"
        problems.append(Problem(f"service.toml: {name}", "must be a list", hint))
        given = []
    own = [file for file in parsed if file != "service.toml" and file.startswith("rollups/") == (name == "rollups")]
    return [
        *sections_of(text, name, given),
        *(
            Section(text := Text(file, texts[file]), name.removesuffix("s"), 0, parsed[file], text.all_lines)
            for file in own
        ),
    ]


def _valid(model: type[Part], sections: Iterable[Section], problems: list[Problem]) -> list[tuple[Section, Part]]:
    good: list[tuple[Section, Part]] = []
    for section in sections:
        given, swallowed = _taken_out(section, model)
        problems += swallowed
        try:
            part = model.model_validate(given)
        except ValidationError as refused:
            problems += _explained(refused, replace(section, given=given), model)
        else:
            good.append((section, part))
    return good


def _taken_out(section: Section, model: type[BaseModel]) -> tuple[Any, list[Problem]]:
    """A header such as [tables.where] ends where the next one begins, so it swallows the settings that follow it."""
    given, problems = section.given, []
    for name in FREE if isinstance(given, dict) else ():
        inner = given.get(name)
        if not isinstance(inner, dict) or not section.is_opened(name):
            continue
        for key in [key for key in inner if key in model.model_fields and key not in given]:
            header = f"[{section.prefix}{name}]"
            problem = f"is a setting of the table, but the {header} before it makes it part of `{name}`"
            hint = f"move it above {header}, or write {name} = {{ ... }} in one line"
            more = f"; for a field of this name write '\"{key}\"' = ..." if name == "where" else ""
            problems.append(Problem(section.at((name, key)), problem, hint + more))
            inner = {k: v for k, v in inner.items() if k != key}
            given = {**given, name: inner, key: given[name][key]}
    return given, problems


def _service_of(
    main: dict[str, Any], filled: dict[str, Any], texts: Mapping[str, str], problems: list[Problem]
) -> tuple[Service, set[str]]:
    """The service without its invalid sections, and their names."""
    section = Section(text := Text("service.toml", texts["service.toml"]), "", 0, main, text.all_lines)
    try:
        return Service.model_validate({**main, **filled}), set()
    except ValidationError as refused:
        problems += _explained(refused, section, Service, filled)
        wrong = {str(at[0]) for at, _ in refusals_of(refused) if at}
        # The sections that hold are still compared with the tables.
        left = {name: value for name, value in main.items() if name not in wrong}
        return Service.model_validate({"name": "unnamed", **left, "tables": filled["tables"]}), wrong


def _explained(
    refused: ValidationError, section: Section, model: type[BaseModel], filled: Mapping[str, Any] | None = None
) -> list[Problem]:
    """These mistakes and further ones. pydantic checks a section as a whole only if each of its parts is valid."""
    found, given, damaged = dict.fromkeys(refusals_of(refused)), section.given, set()
    removed: set[tuple[Location, str]] = set()
    for _ in range(MOST_ROUNDS):
        wrong = {at: value_meant(model, names_of(at), _given(given, at)) for at, _ in refusals_of(refused) if at}
        if not wrong or not isinstance(given, dict):
            break
        given, lost = without_mistakes(given, wrong)
        damaged |= lost
        removed |= {(at, "is missing") for at in wrong}
        try:
            model.model_validate({"name": "unnamed", **given, **(filled or {})})
            break
        except ValidationError as again:
            refused = again
            news = (one for one in refusals_of(again) if one not in removed and not mentions(one[1], damaged))
            found |= dict.fromkeys(news)
    return [
        Problem(section.at(at, what), what, hint_for(model, at, what, _given(section.given, at), within=Service))
        for at, what in found
    ]


def _given(section: Any, location: Location) -> Any:
    for step in location:
        try:
            section = section[step]
        except (KeyError, IndexError, TypeError):
            return None
    return section
