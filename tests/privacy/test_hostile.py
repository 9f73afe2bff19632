"""Hostile records: the work of their treatment grows as their size does, whatever is said how often in them."""

from __future__ import annotations

from collections.abc import Callable

import pyarrow as pa
import pytest

from forebay.declaration.personal import Become, PersonalField
from forebay.privacy import members, subject, text, together
from forebay.privacy.subject import subject_paths
from forebay.privacy.together import Original, records_of, treated_texts
from tests.privacy.work import work_of

SECRET = b"s" * 32
MODULES = (members, subject, text, together)
SUBJECT = subject_paths(("user", "id"))
SIZES = 1_000, 4_000
MOST = 6
"""Times the work, of four times the size. Work that grows with the square of the size is sixteen times as much."""


def joined(member: Callable[[int], str], count: int) -> str:
    return ",".join(member(number) for number in range(count))


RECORDS: dict[str, Callable[[int], str]] = {
    "one key many times": lambda n: "{" + joined(lambda at: f'"email":"{at}"', n) + "}",
    "one key many times, and another one behind it": lambda n: "{" + joined(lambda at: f'"email":{at}', n) + ',"n":1}',
    "one key in each of many objects": lambda n: '{"a":[' + joined(lambda at: f'{{"email":{at}}}', n) + "]}",
    "the subject many times": lambda n: '{"user":{' + joined(lambda at: f'"id":"{at}"', n) + '},"email":1}',
    "many subjects": lambda n: '{"user":[' + joined(lambda at: f'{{"id":{at}}}', n) + '],"email":1}',
    "many keys that any key means": lambda n: '{"friends":{' + joined(lambda at: f'"f{at}":{{"email":{at}}}', n) + "}}",
    "many keys": lambda n: "{" + joined(lambda at: f'"k{at}":{at}', n) + ',"email":1}',
    "a list of many": lambda n: '{"email":[' + joined(str, n) + "]}",
    "an object of many": lambda n: '{"email":{' + joined(lambda at: f'"k{at}":{at}', n) + "}}",
    "lists in lists": lambda n: '{"a":' + "[" * (n // 5) + "]" * (n // 5) + ',"email":1}',
    "lists in lists that are personal": lambda n: '{"email":' + "[" * (n // 5) + "]" * (n // 5) + "}",
    "subjects in lists in lists": lambda n: '{"user":{"id":' + "[" * (n // 5) + "]" * (n // 5) + '},"email":1}',
    "texts that hold objects": lambda n: '{"user":"[' + joined(lambda at: rf"{{\"id\":{at}}}", n) + ']","email":1}',
    "blanks": lambda n: '{"email":' + " " * n + "1" + " " * n + "}",
}


def fields(become: Become) -> tuple[PersonalField, ...]:
    return (PersonalField(("email",), become, vault=True), PersonalField(("friends", "*", "email"), become, vault=True))


@pytest.mark.parametrize("ending", ["", r',"p":"\\"}'], ids=["together", "alone"])
@pytest.mark.parametrize("become", ["dropped", "token"])
@pytest.mark.parametrize("kind", RECORDS)
def test_the_work_of_a_treatment_grows_as_its_record_does(kind: str, become: Become, ending: str) -> None:
    """Also of one that `members` cannot tell, for it has a backslash."""

    def work(size: int) -> int:
        record = RECORDS[kind](size)
        texts = pa.array([record[:-1] + ending if ending else record])
        found = dict[int, Original]()
        return work_of(lambda: treated_texts(texts, fields(become), SECRET, subject=SUBJECT, originals=found), MODULES)

    small, large = (work(size) for size in SIZES)
    assert large < MOST * small


@pytest.mark.parametrize("ending", ["", r',"p":"\\"}'], ids=["together", "alone"])
@pytest.mark.parametrize("kind", RECORDS)
def test_the_work_of_looking_for_the_erased_grows_as_the_record_does(kind: str, ending: str) -> None:
    def work(size: int) -> int:
        record = RECORDS[kind](size)
        texts = pa.array([record[:-1] + ending if ending else record])
        return work_of(lambda: records_of(frozenset(["tok_x"]), texts, SUBJECT, SECRET), MODULES)

    small, large = (work(size) for size in SIZES)
    assert large < MOST * small
