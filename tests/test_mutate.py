"""`make mutate` changes one thing at a time, and nothing that only names or types say."""

from __future__ import annotations

import ast
import importlib.util
import json
import sys
from pathlib import Path
from types import ModuleType

import pytest


@pytest.fixture(scope="module")
def mutate() -> ModuleType:
    """`dev` is no package."""
    spec = importlib.util.spec_from_file_location("mutate", Path(__file__).parents[1] / "dev/mutate.py")
    assert spec is not None
    assert spec.loader is not None
    module = sys.modules["mutate"] = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.mark.parametrize(
    ("source", "mutants"),
    [
        ("a < b", ["a <= b"]),
        ("a in b", ["a not in b"]),
        ("0 < a <= b", ["0 <= a <= b", "0 < a < b", "1 < a <= b"]),
        ("a and b", ["a or b", "b", "a"]),
        ("a or b or c", ["a and b and c", "b or c", "a or c", "a or b"]),
        ("not a", ["a"]),
        ("[a for a in b if c]", ["[a for a in b]"]),
        ("f(True, 7, 'x', 1.5, None)", ["f(False, 7, 'x', 1.5, None)", "f(True, 8, 'x', 1.5, None)"]),
        ("a: Literal[1] = b", []),
        ("@dataclass(frozen=True)\nclass A:\n    pass", []),
        ("if TYPE_CHECKING:\n    x = 1", []),
        ("x = 1\ny = 1", ["x = 2\ny = 1", "x = 1\ny = 2"]),
    ],
)
def test_each_mutant_has_one_change(mutate: ModuleType, source: str, mutants: list[str]) -> None:
    found = list(mutate.mutants_of(Path("a.py"), source))
    assert [one.source for one in found] == [ast.unparse(ast.parse(one)) for one in mutants]
    assert all(str(one).startswith("a.py:") for one in found)


def test_a_room_has_its_own_tests_or_those_of_the_room_around_it(mutate: ModuleType) -> None:
    assert mutate.tests_of("ledger") == "tests/ledger"
    assert mutate.tests_of("upkeep/erase/purge") == "tests/upkeep/erase"
    assert mutate.tests_of("no_such_room") == "tests"


def test_a_score_is_noted_beside_those_of_other_rooms(
    mutate: ModuleType, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(mutate, "REPOSITORY", tmp_path)
    (tmp_path / "tests").mkdir()
    mutate.record("ledger", 9, 8)
    mutate.record("lake", 4, 4)
    mutate.record("ledger", 9, 9)
    scores = {"lake": {"mutants": 4, "noticed": 4}, "ledger": {"mutants": 9, "noticed": 9}}
    assert json.loads((tmp_path / "tests/mutation_scores.json").read_text()) == scores
