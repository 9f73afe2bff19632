"""`forebay privacy scan` names fields that look personal, and never a value of them."""

from __future__ import annotations

import json
from pathlib import Path

import pyarrow as pa
import pytest
from deltalake import write_deltalake

from tests.operate.command import failed, ran
from tests.operate.ledger import write_ledger

NAME = "anna@example.org"


@pytest.fixture
def lake(tmp_path: Path) -> str:
    write_ledger(tmp_path)
    rows = [
        {
            "n": n,
            "contact": NAME if n == 7 else None,
            "device": {"ip": f"203.0.113.{n + 1}", "os": "ios"},
            "friends": [{"mail": NAME}],
            "_file_id": "9f86d081884c7d659a2feaa0c55ad015",
            "_rescued": json.dumps({"card": "4111 1111 1111 1111", "n": 1.10}) if n == 3 else None,
            "version": "1.2.3.4" if n == 1 else "none",
        }
        for n in range(50)
    ]
    rows[5]["_rescued"] = json.dumps({"": json.dumps({"phone": "+44 20 7946 0958"})[:-1] + ',"n":1,"n":2}'})
    write_deltalake(tmp_path / "alpha", pa.Table.from_pylist(rows))
    parked = [{"record": json.dumps({"user.mail": NAME}), "reason": None}, {"record": f"From: {NAME}", "reason": "no"}]
    write_deltalake(tmp_path / "_forebay" / "parked", pa.Table.from_pylist(parked))
    return str(tmp_path)


def scanned(lake: str, table: str) -> list[tuple[str, str, str, int, int]]:
    told = [json.loads(line) for line in ran("privacy", "scan", table, "--lake", lake, "--json").splitlines()]
    return [(one["column"], one["field"], one["kind"], one["values"], one["of"]) for one in told]


def test_fields_are_named_by_column_path_and_kind_also_inside_objects_arrays_and_rescued(lake: str) -> None:
    assert scanned(lake, "alpha") == [
        ("_rescued", "card", "card number", 1, 1),
        ("_rescued", "phone", "phone number", 1, 1),
        ("contact", "contact", "e-mail address", 1, 1),
        ("device", "device.ip", "IP address", 50, 50),
        ("friends", "friends.mail", "e-mail address", 50, 50),
    ]


def test_kept_records_are_looked_at_as_well(lake: str) -> None:
    assert scanned(lake, "parked") == [
        ("record", '""', "e-mail address", 1, 1),
        ("record", '"user.mail"', "e-mail address", 1, 1),
    ]


def test_no_value_is_shown(lake: str) -> None:
    for said in (ran("privacy", "scan", "alpha", "--lake", lake), ran("privacy", "scan", "parked", "--lake", lake)):
        assert "anna" not in said
        assert "e-mail address" in said


def test_a_table_that_is_not_there_and_one_where_nothing_looks_personal(lake: str) -> None:
    assert "did you mean alpha" in failed(2, "privacy", "scan", "alhpa", "--lake", lake)
    write_deltalake(f"{lake}/beta", pa.table({"n": [1]}))
    assert "nothing in 1 row looks personal" in ran("privacy", "scan", "beta", "--lake", lake)
