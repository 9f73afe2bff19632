"""Answers that are remembered by the identity of an object: never those of another object."""

from __future__ import annotations

from weakref import ref

from forebay.remembered import remembered_of


class One:
    def __init__(self, name: str) -> None:
        self.name = name


def test_an_object_is_asked_once() -> None:
    asked: list[str] = []

    @remembered_of
    def name_of(one: One) -> str:
        asked.append(one.name)
        return one.name

    one = One("a")
    assert [name_of(one), name_of(one)] == ["a", "a"]
    assert asked == ["a"]


def test_objects_that_come_and_go_get_their_own_answers_and_do_not_stay() -> None:
    """Python gives the identity of an object that is gone to the next one. A worker gets new declarations with each batch."""

    @remembered_of
    def name_of(one: One) -> str:
        return one.name

    seen = []
    for number in range(3000):
        one = One(str(number))
        seen.append(ref(one))
        assert name_of(one) == str(number)
        del one
    assert not any(one() for one in seen)
