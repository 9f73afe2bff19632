"""Values that producers write every day are parsed together by Arrow: a record that is read alone costs ten times as much."""

from __future__ import annotations

import base64
import json
import uuid
from collections.abc import Callable
from random import Random
from typing import Any

import pyarrow as pa
import pytest

from forebay.record.conform import Records
from forebay.record.growth import Rules

Draw = Callable[[Random], Any]

ORDINARY: dict[str, Draw] = {
    "a uuid": lambda draw: str(uuid.UUID(int=draw.getrandbits(128), version=4)),
    "a token": lambda draw: "tok_" + base64.urlsafe_b64encode(draw.randbytes(24)).decode(),
    "base64": lambda draw: base64.b64encode(draw.randbytes(24)).decode(),
    "hexadecimal": lambda draw: f"{draw.getrandbits(128):032x}",
    "a time with its zone": lambda draw: f"2026-11-{draw.randint(1, 28):02}T{draw.randint(0, 23):02}:00:00.05-05:00",
    "an address": lambda draw: ".".join(str(draw.randint(0, 255)) for _ in range(4)),
    "a link": lambda draw: f"https://a.example/p/{draw.randint(0, 9)}?x={draw.random()}&y=1e5-0",
    "a browser": lambda draw: f"Mozilla/5.0 (X11; Linux x86_64) AppleWebKit/537.{draw.randint(0, 99)} (KHTML)",
    "a version": lambda draw: f"1.{draw.randint(0, 9)}.0-0{draw.choice('abc')}+{draw.randint(0, 9)}",
    "escapes": lambda draw: f'a "quoted" \n line \\ {draw.randint(0, 9)}',
    "other letters": lambda draw: f"é😀{draw.randint(0, 9)}",
    "a share": lambda draw: draw.random(),
    "a number with or without a fraction": lambda draw: draw.choice([1, 1.5]),
    "a place": lambda draw: [round(draw.uniform(-180, 180), 7), round(draw.uniform(-90, 90), 7)],
    "a large number": lambda draw: draw.getrandbits(62),
    "a tiny number": lambda draw: 1.5e-9 * draw.random(),
    "nothing or a number": lambda draw: draw.choice([None, 5]),
    "nothing or an object": lambda draw: draw.choice([None, {"a": 1}]),
    "a list that may be empty": lambda draw: [{"sku": "a", "n": 1}] * draw.randint(0, 2),
    "an object that may be empty": lambda draw: draw.choice([{}, {"a": 1}]),
}


@pytest.mark.parametrize("kind", ORDINARY)
def test_records_with_ordinary_values_are_parsed_together(kind: str) -> None:
    draw = Random(kind)
    values = (ORDINARY[kind](draw) for _ in range(3_000))
    texts = [json.dumps({"game": "g", "n": n, "v": value}) for n, value in enumerate(values)]
    records = Records(pa.array(texts), Rules())
    assert [texts[at] for at in records.walked_positions[:3]] == []
