"""The time that a record costs is in proportion to its bytes, however hostile it is."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterator
from itertools import islice, product

import pyarrow as pa
import pytest

from forebay.record import walk
from forebay.record.conform import Records, writable
from forebay.record.growth import Rules, grown
from forebay.record.kind import Struct

DECLARED = "a_declared_player_name"
MOST_US = 10
"""Microseconds of a processor for each byte; about two are usual."""
MORE_S = 2
RULES = (
    Rules(),
    Rules(flatten="_"),
    Rules(undeclared="rescue"),
    Rules(declared={DECLARED: {}, "in": {DECLARED: {}}}),
    Rules(declared={DECLARED: {}}, undeclared="ignore"),
)


def twins(name: str, count: int) -> Iterator[str]:
    """Spellings of a name that all mean the same column."""
    signs = ([one, one.upper()] if one.isalpha() else ["_", "-", " "] for one in name)
    return ("".join(one) for one in islice(product(*signs), count))


HOSTILE: dict[str, Callable[[int], object]] = {
    "keys": lambda n: {f"k{i}": i for i in range(n)},
    "keys of another script": lambda n: {f"ключ{i}": "x" for i in range(n)},
    "half characters as keys": lambda n: {f"\ud800{i}": 1 for i in range(n)},
    "twins": lambda n: dict.fromkeys(twins("some_player_or_other_name", n), 1),
    "twins of a declared field": lambda n: dict.fromkeys(twins(DECLARED, n), 1),
    "twins within an object": lambda n: {"in": dict.fromkeys(twins(DECLARED, n), 1)},
    "empty objects": lambda n: {f"k{i}": {} for i in range(n)},
    "small objects": lambda n: {f"k{i}": {f"j{j}": 1 for j in range(9)} for i in range(n // 9)},
    "a list of objects that differ": lambda n: {"a": [{f"k{i}": 1} for i in range(n)]},
    "a list of all kinds": lambda n: {"a": [[1, "x", None, 1.5, {}, []][i % 6] for i in range(n)]},
    "numbers that no double holds": lambda n: {"a": [10**40 + i for i in range(n)]},
    "minus zeros": lambda n: {"a": [-0.0] * n},
}


@pytest.mark.parametrize("rules", RULES, ids=["columns", "flatten", "rescue", "declared", "ignore"])
@pytest.mark.parametrize("hostile", HOSTILE)
def test_a_hostile_record_costs_time_in_proportion_to_its_bytes(hostile: str, rules: Rules) -> None:
    text = json.dumps(HOSTILE[hostile](4_000))
    began = time.process_time()
    some = Records(pa.array([text], pa.string()), rules)
    some.conformed(writable(grown(Struct(), some.shape(), rules)))
    assert time.process_time() - began < MORE_S + MOST_US * 1e-6 * len(text)


def test_twins_of_a_declared_field_are_rescued_in_proportion_to_their_number() -> None:
    def seconds(count: int) -> float:
        record = walk.parsed(json.dumps(dict.fromkeys(twins(DECLARED, count), 1)), RULES[3])
        began = time.process_time()
        _, rescued = walk.conformed(record, Struct(), RULES[3])
        assert len(rescued) == count - 1
        return time.process_time() - began

    few, many = (min(seconds(count) for _ in range(3)) for count in (2_000, 16_000))
    assert many < 30 * few + 0.05, "eight times as many take 64 times as long"
