"""Folders and paths of partitions, without Spark."""

from __future__ import annotations

from pathlib import PurePosixPath
from urllib.parse import unquote

import pytest
from hypothesis import given
from hypothesis import strategies as st

from forebay.table.data_files.partition import folder, parse_destination, quoted, uri_path


@pytest.mark.parametrize(
    ("values", "expected"),
    [
        ((), ""),
        ((("day", "2026-01-31"),), "day=2026-01-31/"),
        ((("day", "2026-01-31"), ("game", "a b")), "day=2026-01-31/game=a b/"),
        ((("zone", None),), "zone=__HIVE_DEFAULT_PARTITION__/"),
        ((("zone", "a/b:c=d%e"),), "zone=a%2Fb%3Ac%3Dd%25e/"),
        ((("zone", "*?\"'#\\{[]^\x7f\n"),), "zone=%2A%3F%22%27%23%5C%7B%5B%5D%5E%7F%0A/"),
        ((("zone", "größe"),), "zone=größe/"),
    ],
)
def test_a_folder_is_named_as_hive_names_it(values: tuple[tuple[str, str | None], ...], expected: str) -> None:
    assert folder(values) == expected


def test_a_path_in_the_log_is_a_uri() -> None:
    assert uri_path("zone=a%2Fb c/ö.parquet") == "zone=a%252Fb%20c/%C3%B6.parquet"


@given(st.text(min_size=1))
def test_a_value_is_one_folder_whatever_it_holds_and_a_reader_finds_it(value: str) -> None:
    value = value.encode("utf-8", "replace").decode()
    path = f"{folder((('zone', value),))}part.parquet"
    assert len(PurePosixPath(path).parts) == 2
    assert unquote(uri_path(path)) == path


def test_a_destination_gives_back_table_and_values() -> None:
    assert parse_destination('["sales","2026-01-31",null]', {"sales": ("day", "zone"), "other": ()}) == (
        "sales",
        (("day", "2026-01-31"), ("zone", None)),
    )


def test_a_column_with_a_dot_or_a_tick_is_one_name() -> None:
    assert quoted("a.b`c") == "`a.b``c`"
