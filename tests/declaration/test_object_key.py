"""Fields out of an object's key."""

from __future__ import annotations

import re

import pytest

from forebay.declaration.object_key import checked, names, pattern


@pytest.mark.parametrize(
    ("template", "key", "found"),
    [
        ("in/{game}/", "in/alpha/2026/a.json", ("alpha",)),
        ("in/{game}/{day}/", "in/alpha/2026-11-21/a.json", ("alpha", "2026-11-21")),
        ("in/{game}-{region}/", "in/big-game-eu/a.json", ("big-game", "eu")),
        ("in/game={game}/", "in/game=a b+c%20/a.json", ("a b+c%20",)),
        ("in/{game}/", "in//a.json", None),
        ("in/{game}/", "out/alpha/a.json", None),
        ("in.*/{game}/", "inside/alpha/a.json", None),
    ],
)
def test_a_template_takes_levels_of_the_key_apart(template: str, key: str, found: tuple[str, ...] | None) -> None:
    match = re.match(pattern(checked(template)), key)
    assert (match.groups() if match else None) == found
    assert len(names(template)) == len(found or ("one",))


@pytest.mark.parametrize(
    ("template", "says"),
    [
        ("in/{game}{day}/", "follows another name"),
        ("in/{a}/{a}/", "uses a name twice"),
        ("in/{}/", "must be letters"),
        ("in/{the game}/", "must be letters"),
        ("in/{game/", "has an extra {"),
        ("in/game}/", "has an extra }"),
    ],
)
def test_a_template_that_cannot_be_is_refused(template: str, says: str) -> None:
    with pytest.raises(ValueError, match=re.escape(says)):
        checked(template)
