"""The picture of `make demo` in the README shows a real run, in the form that the demo has today."""

from __future__ import annotations

import re
from pathlib import Path
from types import SimpleNamespace
from typing import Any

from dev.recording import PICTURE, TEXT, drawn
from forebay.cli.show import console
from forebay_local import demo

ROOT = Path(__file__).resolve().parent.parent
ENDPOINT = re.compile(r"http://127\.0\.0\.1:\d+")


def test_the_picture_is_drawn_from_the_recorded_run() -> None:
    assert PICTURE.read_text() == drawn(TEXT.read_text()), "`python -m dev.recording` draws it"


def test_the_recorded_run_ends_as_the_demo_does() -> None:
    twin: Any = SimpleNamespace(endpoint="http://127.0.0.1:1")
    with console.capture() as captured:
        demo._what_next(twin)
    said = captured.get().rstrip().splitlines()
    recorded = ENDPOINT.sub(twin.endpoint, TEXT.read_text()).rstrip().splitlines()
    assert [line.rstrip() for line in recorded[-len(said) + 1 :]] == [line.rstrip() for line in said[1:]]
    assert re.fullmatch(rf"\d+ s in all{re.escape(said[0])}", recorded[-len(said)])


def test_the_readme_shows_the_sums_of_the_demo() -> None:
    (block,) = re.findall(r"```\n(files .*?)\n```", (ROOT / "README.md").read_text(), re.S)
    form = re.sub(r"\d+", r"[\\d,]+", re.escape(block).replace(re.escape("..."), r"[\d,]+")).replace(r"\ ", r"\s+")
    assert re.search(form, TEXT.read_text())


def test_characters_of_markup_stay_text() -> None:
    assert "a &lt; b &amp; c" in drawn("a < b & c\n")
