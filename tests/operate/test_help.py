"""Every `--help` reads well on a terminal of 80 columns, and in a pipe."""

from __future__ import annotations

import re

import pytest

from tests.operate.command import ran
from tests.operate.test_command_line import ALL

EVERY = ["", *ALL]


@pytest.fixture(autouse=True)
def eighty(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "80")


@pytest.mark.parametrize("name", EVERY)
def test_no_line_is_too_long_for_eighty_columns(name: str) -> None:
    assert [line for line in ran(*name.split(), "--help").splitlines() if len(line) > 80] == []


@pytest.mark.parametrize("name", EVERY)
def test_the_exit_statuses_are_told(name: str) -> None:
    said = ran(*name.split(), "--help").partition("Exit status")[2]
    statuses = ("0", "1", "2", "3", *(("4",) if name in ("", "wait") else ()), "130")
    assert [status for status in statuses if not re.search(rf"\b{status} +\w", said)] == []


@pytest.mark.parametrize("name", [name for name in EVERY if hasattr(ALL.get(name), "commands")])
def test_the_line_of_each_command_is_whole(name: str) -> None:
    said = " ".join(ran(*name.split(), "--help").partition("Commands:")[2].partition("Examples:")[0].split())
    for inner, command in ALL[name].commands.items():
        first = re.split(r"(?<=\.) |\n\n", " ".join((command.help or "").split("\n\n")[0].split()))[0]
        assert f"{inner} {first}" in said


@pytest.mark.parametrize("name", ALL)
def test_completion_is_installed_for_the_whole_command_alone(name: str) -> None:
    assert "completion" not in ran(*name.split(), "--help")


@pytest.mark.parametrize("name", ALL)
def test_no_option_is_told_in_the_words_of_a_program(name: str) -> None:
    said = ran(*name.split(), "--help")
    assert "<%" not in said
    assert re.findall(r"<(?:str|int|float|path|list)\b.*?>|--\S+ <.*?>|Usage:.*[{<].*", said) == []


def test_arguments_are_written_as_in_a_manual() -> None:
    used = {name: ran(*name.split(), "--help").splitlines()[0].partition("[OPTIONS]")[2] for name in ALL}
    assert used["where"] == " ADDRESS"
    assert used["rollback"] == " TABLE..."
    assert used["compact"] == " [TABLE]..."
    assert used["privacy erase"] == " [SUBJECT]..."
    assert "--limit NUMBER" in ran("query", "--help")


def test_every_command_says_what_it_does_as_an_order() -> None:
    said = {name: (command.help or "").split()[0] for name, command in ALL.items()}
    assert [name for name, word in said.items() if word in ("What", "Every", "The", "A")] == []
