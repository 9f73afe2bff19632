"""A table whose rows go through a Python function: refused rows wait until a deployment has a better function."""

from __future__ import annotations

import shutil
from decimal import Decimal
from pathlib import Path

import pytest

from forebay.errors import InvalidConfiguration
from forebay.transforms import use_folder
from tests.journey.story import Story
from tests.operate.command import ran

EXAMPLE = Path(__file__).resolve().parents[2] / "examples" / "python-step"
LATE = b'{"order_id": "o-4", "amount": "EUR 20,50", "ordered_at": "2026-11-21T09:21:00Z"}\n'


def deployed(folder: Path, before: str = "", after: str = "") -> str:
    """The declarations, and the code of a deployment with such a change."""
    shutil.copytree(EXAMPLE, folder)
    function = folder / "transforms" / "shop.py"
    function.write_text(function.read_text().replace(before, after) if before else function.read_text())
    return str(folder)


def paid(told: Story) -> dict[str, Decimal]:
    return {row["order_id"]: row["paid"] for row in told.rows("orders")}


def code_of(told: Story) -> dict[str, str]:
    """By the name of the file, the version of the code that made its rows."""
    return {row["key"]: row["service_version"].partition("+")[2] for row in told.rows("_forebay/ledger")}


@pytest.mark.deep
def test_rows_that_a_function_refused_land_after_a_deployment_and_the_ledger_names_the_code(
    told: Story, tmp_path: Path
) -> None:
    told.service = deployed(tmp_path / "first")
    told.put("orders.jsonl", (EXAMPLE / "samples" / "orders.jsonl").read_bytes() + LATE)
    assert told.run().differences() == []
    of_three = {"o-1": Decimal("1299.00"), "o-2": Decimal("49.90"), "o-3": Decimal("7.00")}
    assert paid(told) == of_three
    listed = ran("quarantine", "list", "--lake", told.lake)
    assert "transform" in listed
    first = code_of(told)["in/orders.jsonl"]
    said = ran("where", f"s3://{told.bucket}/in/orders.jsonl", "--lake", told.lake)
    assert f"+{first}" in said

    told.service = deployed(
        tmp_path / "second", 'rows["amount"], "."', 'pc.replace_substring(rows["amount"], "EUR ", ""), "."'
    )
    ran(
        "quarantine",
        "retry",
        "--table",
        "orders",
        "--reason",
        "transform",
        "--service",
        told.service,
        "--lake",
        told.lake,
    )
    assert paid(told) == of_three | {"o-4": Decimal("20.50")}
    told.put("more.jsonl", LATE.replace(b"o-4", b"o-5"))
    assert told.run().differences() == []
    assert paid(told)["o-5"] == Decimal("20.50")
    assert code_of(told)["in/more.jsonl"] not in ("", first)

    # Declarations that somebody pushed before the code was ready stop the start, and lose nothing.
    ahead = tmp_path / "ahead" / "service.toml"
    ahead.parent.mkdir()
    ahead.write_text((EXAMPLE / "service.toml").read_text().replace("shop:priced", "shop:discounted"))
    use_folder(told.service)
    told.put("waits.jsonl", LATE.replace(b"o-4", b"o-6"))
    second, told.service = told.service, str(ahead)
    with pytest.raises(
        InvalidConfiguration, match=r"has no function discounted \(deploy the code that has the function"
    ):
        told.take_in()
    told.service = second
    assert told.run().differences() == []
    assert paid(told)["o-6"] == Decimal("20.50")
