"""One convention for each thing, in every command: a new command that breaks one fails here."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tests.operate.command import failed, given, ran
from tests.operate.ledger import write_ledger
from tests.operate.test_command_line import ALL

LEAVES = {name: command for name, command in ALL.items() if not getattr(command, "commands", {})}
WITHOUT_JSON = {
    "ingest": "its journal is JSON already",
    "tables editor-schema": "it prints a JSON document",
    "demo": "a story for people",
}
ONE_MEANING = {
    "--lake": "FOREBAY_LAKE",
    "--service": "FOREBAY_SERVICE",
    "--stack": "FOREBAY_STACK",
    "--queue-url": "FOREBAY_QUEUE_URL",
    "--state": "FOREBAY_LOCAL",
}
"""Options with the same meaning in every command, and the variable that replaces each."""
ASKED_FOR = {("tables check", "--lake"), ("tables diff", "--lake")}
"""These compare with a lake only where somebody names it."""
OTHER_NAMES = {"--plan", "--preview", "--check-only", "--writer", "--as-json", "--format-json", "--force-yes"}
"""Foreign names of a convention."""


def options(command: Any) -> dict[str, Any]:
    return {
        name: one
        for one in command.params
        if one.param_type_name == "option" and not one.hidden
        for name in (*one.opts, *one.secondary_opts)
    }


@pytest.mark.parametrize("name", sorted(set(LEAVES) - set(WITHOUT_JSON)))
def test_every_command_answers_in_json(name: str) -> None:
    assert "--json" in options(LEAVES[name])


def test_the_commands_without_json_still_exist() -> None:
    assert all("--json" not in options(LEAVES[name]) for name in WITHOUT_JSON)


@pytest.mark.parametrize("name", sorted(LEAVES))
def test_an_option_has_the_same_name_variable_and_help_everywhere(name: str) -> None:
    found = options(LEAVES[name])
    assert not OTHER_NAMES & set(found)
    for option, variable in ONE_MEANING.items():
        if option in found:
            assert found[option].envvar == (None if (name, option) in ASKED_FOR else variable)
    for option, beginning in {
        "--json": "Print JSON, one object per line.",
        "--of": "The name of the service, if the lake has several.",
        "--yes": "Do not ask for confirmation.",
    }.items():
        if option in found:
            assert found[option].help == beginning


@pytest.mark.parametrize("name", sorted(name for name, one in LEAVES.items() if "--lake" in options(one)))
def test_every_command_refuses_a_lake_whose_scheme_was_forgotten(name: str) -> None:
    said = failed(2, *name.split(), "--lake", "studio-lake")
    hint = "write s3://studio-lake for a bucket, or ./studio-lake for a new folder"
    assert said == f"forebay: lake studio-lake: is not a folder here ({hint})\n"


@pytest.mark.parametrize("name", sorted(LEAVES))
def test_a_command_that_asks_can_be_previewed_and_answered(name: str) -> None:
    found = options(LEAVES[name])
    if "--yes" in found and name not in ("lease break", "queue dlq", "queue refused"):  # their list is the preview
        assert "--dry-run" in found


@pytest.mark.parametrize("name", sorted(ALL))
def test_the_short_way_to_ask_for_help_works_everywhere(name: str) -> None:
    assert ran(*name.split(), "-h") == ran(*name.split(), "--help")


@pytest.mark.parametrize("name", sorted(LEAVES))
def test_a_mistyped_option_is_one_line_everywhere(name: str) -> None:
    said = failed(2, *name.split(), "--no-such-option")
    assert said.startswith("forebay: ")
    assert said.count("\n") == 1


@pytest.mark.parametrize(
    ("command", "has"),
    [
        (("files", "skip", "s3://b/in/a.json"), {"skipped"}),
        (("pause", "all"), {"dry_run", "paused"}),
        (("tables", "init", "{folder}/games"), {"wrote"}),
        (("lease", "break", "--yes"), {"held"}),
        (("stop",), {"checkpoint", "ended"}),
    ],
)
def test_a_change_is_one_object_and_its_sentences_are_no_part_of_it(
    command: tuple[str, ...], has: set[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    lake = tmp_path / "lake"
    write_ledger(lake)
    monkeypatch.setenv("FOREBAY_LAKE", str(lake))
    typed = tuple(part.format(folder=tmp_path) for part in command)
    status, out, err = given((*typed, "--json"), "")
    assert (status, set(json.loads(out))) == (0, has)
    assert err
    assert ran("parked", "list") == "no records\n", "the next command speaks on standard output again"
