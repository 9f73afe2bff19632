"""moto is as the patches expect it; where it is not, a sentence says which place moved."""

from __future__ import annotations

import tomllib
from importlib.metadata import PackageNotFoundError
from pathlib import Path
from typing import Any

import pytest

from forebay.errors import InvalidConfiguration
from forebay_local.twin import account, events, functions, glue, quick, rights, s3, sns, sqs
from forebay_local.twin.cloudformation import engine, rollback
from forebay_local.twin.patch import MOTO, Patch, apply, missing, moved


@pytest.mark.parametrize("patched", [sqs, sns, s3, engine, rollback, functions, events, glue, account, quick, rights])
def test_every_place_that_is_patched_is_where_the_patch_expects_it(patched: Any) -> None:
    assert "\n".join(map(str, moved(patched.PATCHES, getattr(patched, "relied_on", list)))) == ""


class Stock:
    def send(self, body: str, delay: int) -> str:
        return "stock"

    @property
    def depth(self) -> int:
        return 1


def sent(*args: object) -> str:
    return "ours"


@pytest.mark.parametrize(
    ("patch", "complaint"),
    [
        (Patch(Stock, "send", ("self", "body"), sent), "Stock.send: takes (self, body, delay) now"),
        (Patch(Stock, "receive", ("self",), sent), "Stock.receive: no longer exists in moto"),
        (Patch(Stock, "send", None, sent), "Stock.send: is no longer a property"),
        (Patch(Stock, "send", None, sent, new=True), "Stock.send: is in moto now"),
    ],
)
def test_a_place_that_moved_is_named_and_then_nothing_is_replaced(patch: Patch, complaint: str) -> None:
    fitting = Patch(Stock, "depth", None, property(lambda self: 2))
    with pytest.raises(InvalidConfiguration) as refused:
        apply([fitting, patch])
    assert complaint in str(refused.value)
    assert Stock().depth == 1


def test_an_attribute_that_a_patch_reads_and_moto_lost_is_named() -> None:
    problems = moved([], lambda: [(Stock(), "depth"), (Stock(), "_messages")])
    assert [str(problem) for problem in problems] == [
        f"{__name__}.Stock._messages: no longer exists in moto, but a patch of the twin reads it (moto {MOTO} has it)"
    ]


def test_an_object_of_moto_that_is_made_otherwise_now_is_a_sentence_too() -> None:
    (problem,) = moved([], lambda: [(Stock("more"), "send")])  # type: ignore[call-arg]
    assert "cannot look at moto's objects any more: " in str(problem)


def test_a_patch_that_is_applied_twice_is_applied_once() -> None:
    class Queue:
        def send(self, body: str) -> str:
            return "stock"

    patch = Patch(Queue, "send", ("self", "body"), sent)
    apply([patch])
    apply([patch])
    assert Queue().send("x") == "ours"


def test_the_pin_is_the_same_in_the_package() -> None:
    project = tomllib.loads((Path(__file__).parents[2] / "pyproject.toml").read_text())["project"]
    assert f"moto[server]=={MOTO}" in project["optional-dependencies"]["dev"]


def test_without_moto_one_line_says_what_to_install() -> None:
    def none_of(package: str) -> str:
        raise PackageNotFoundError(package)

    (problem,) = missing(none_of)
    assert str(problem) == ("forebay local: moto is not installed, but the local twin needs it (make setup)")


def test_another_moto_is_refused_by_its_number() -> None:
    (problem,) = missing(lambda package: "9.9.9")
    assert "moto 9.9.9 is installed, but the local twin needs exactly 5.2.5" in str(problem)


def test_moto_without_its_server_is_refused() -> None:
    def moto_only(package: str) -> str:
        if package != "moto":
            raise PackageNotFoundError(package)
        return MOTO

    (problem,) = missing(moto_only)
    assert "without its server" in str(problem)


def test_the_moto_that_is_installed_will_do() -> None:
    assert missing() == []
