"""How far a long command is: a bar where somebody looks, lines now and then where nobody does."""

from __future__ import annotations

import io

from rich.console import Console

from forebay.cli.progress import Progress


def told(*, terminal: bool, seconds: list[float], total: int | None = 30) -> str:
    out = io.StringIO()
    console = Console(file=out, force_terminal=terminal, width=80, highlight=False, markup=False)
    with Progress(total, console=console, clock=lambda: seconds.pop(0) if seconds else 99) as shown:
        for done in (10, 20, 30):
            shown.tell(f"{done} of [30] in/a.json", done)
    return out.getvalue()


def test_in_a_pipe_a_line_is_due_every_ten_seconds_and_at_the_end() -> None:
    assert told(terminal=False, seconds=[0, 3, 12, 12, 13, 13]) == "20 of [30] in/a.json\n30 of [30] in/a.json\n"
    assert "\x1b" not in told(terminal=False, seconds=[0])


def test_on_a_terminal_it_is_a_bar_that_goes_when_it_is_done() -> None:
    said = told(terminal=True, seconds=[0, 1, 2, 3])
    assert "30 of [30] in/a.json" in said
    assert "\u2501" in said
    assert said.endswith("\x1b[2K")


def test_what_has_no_total_is_shown_too() -> None:
    assert "30 of [30]" in told(terminal=True, seconds=[0], total=None)


def test_brackets_in_a_name_are_no_markup() -> None:
    out = io.StringIO()
    console = Console(file=out, force_terminal=True, width=80, highlight=False, markup=False)
    with Progress(1, console=console) as shown:
        shown.tell("in/[/red][bold]a.json", 1)
    assert "in/[/red][bold]a.json" in out.getvalue()
