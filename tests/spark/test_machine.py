"""A local session takes the machine's cores, and a part of its memory."""

from __future__ import annotations

from pathlib import Path

import pytest

from forebay.spark import machine
from forebay.spark.session import laptop_settings


@pytest.mark.parametrize(("available", "taken"), [(1, 2), (2, 2), (6, 6), (64, 8)])
def test_as_many_cores_as_there_are_between_two_and_eight(available: int, taken: int) -> None:
    assert machine.cores(available) == taken


@pytest.mark.parametrize(("gigabytes", "taken"), [(4, 2), (16, 2), (32, 4), (256, 8)])
def test_an_eighth_of_the_memory_between_two_and_eight_gigabytes(gigabytes: int, taken: int) -> None:
    assert machine.jvm_gigabytes(gigabytes << 30) == taken


def test_a_containers_limit_counts_and_none_does_not(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    whole = machine._memory_bytes()
    limit, none = tmp_path / "limit", tmp_path / "max"
    limit.write_text("1073741824\n")
    none.write_text("max\n")
    monkeypatch.setattr(machine, "LIMITS", (none, limit))
    assert machine._memory_bytes() == 1 << 30
    monkeypatch.setattr(machine, "LIMITS", (none,))
    assert machine._memory_bytes() >= whole


def test_a_session_takes_them() -> None:
    settings = laptop_settings({})
    assert settings["spark.master"] == f"local[{machine.cores()}]"
    assert settings["spark.driver.memory"] == f"{machine.jvm_gigabytes()}g"
