"""An erasure finds the row of whoever the reader says a record is of, however it spells the person, in every kind of table."""

from __future__ import annotations

import io
import json
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
from hypothesis import example, given
from hypothesis import strategies as st

from forebay.declaration.form import Form
from forebay.declaration.loading import parse_service
from forebay.declaration.path import parse_path
from forebay.declaration.service import Service
from forebay.privacy.subject import subject_paths, subject_tokens
from forebay.privacy.token import token_of
from forebay.record.conform import Records, writable
from forebay.record.field import text_at
from forebay.record.growth import Rules, grown
from forebay.record.kind import Struct
from forebay.record.number import read_json
from forebay.upkeep.erase.landed import left_of
from forebay.upkeep.erase.places import keys_of, subject_places
from forebay.upkeep.erase.rows import Erased, found_in

PERSONS = ("4711", "anna", "5", "9007199254740992")
SPELLINGS = ["4711", "4711.0", "47.11e2", '"4711"', '"04711"', '" 4711"', '"anna"', '"\\u0061nna"', "5", "5.00", '"5"']
SPELLINGS += ["9007199254740992", "9007199254740992.0", '"9007199254740992"']
OTHERS = [
    "null",
    "9007199254740993",
    "1.5",
    '"ben"',
    "true",
    "{}",
    "[]",
    '"Anna"',
    '"anna "',
    "1e400",
    "12345678901234567890",
]
TABLES = {
    "plain": "",
    "declared": 'columns = [{ name = "who", path = "user.id" }]\n',
    "flat": 'undeclared = { flatten = "_" }\n',
    "rescued": 'undeclared = { become = "rescued" }\n',
    "shallow": "undeclared = { depth = 0 }\n",
    "ignored": 'undeclared = { become = "ignored" }\ncolumns = [{ name = "who", path = "user.id" }]\n',
    "few": "undeclared = { new_columns = 1 }\n",
}

values = st.recursive(
    st.sampled_from(SPELLINGS + OTHERS),
    lambda inner: st.lists(inner, max_size=3).map(lambda found: "[" + ",".join(found) + "]"),
    max_leaves=4,
)
keys = st.sampled_from(
    ["user", "User", "id", "ID", "user_id", "user.id", "User-Id", "y", "id ", " ID", "\u2003id\ufeff", "user ", " user"]
)
# Not `x`: a column `x_user_id` is searched, too, because a key that begins with an underscore may have made it.
top_keys = keys | st.sampled_from(["\ufeffUser", "user\u2003"])
records = st.recursive(
    values,
    lambda inner: st.lists(st.tuples(keys, inner), max_size=3).map(
        lambda pairs: "{" + ",".join(f"{json.dumps(key)}:{value}" for key, value in pairs) + "}"
    ),
    max_leaves=6,
).filter(lambda text: text.startswith("{"))
nested = st.builds(
    lambda key, inner, value: f'{{"n":1,{json.dumps(key)}:{{{json.dumps(inner)}:{value}}}}}', top_keys, keys, values
)


def service_of(kind: str) -> Service:
    privacy = '[privacy]\nsubject = "user.id"\nsecret = "s3://b/k"\n'
    return parse_service({"service.toml": f'name = "s"\n{privacy}[[tables]]\nname = "t"\n{TABLES[kind]}'})


def rows_of(texts: list[str], kind: str, service: Service) -> tuple[pa.Table, Struct]:
    """As the job makes them, and their columns: the declared one is text, and so is what is rescued."""
    made = service.tables[0].undeclared
    is_declared = kind in ("declared", "ignored")
    rules = Rules(
        depth=made.depth,
        flatten=made.flatten,
        new_columns=made.new_columns,
        undeclared=made.become,
        declared={"user": {"id": {}}} if is_declared else {},
        reserved=frozenset({"who"}) if is_declared else frozenset(),
    )
    some = Records(pa.array(texts), rules)
    made_of = grown(Struct(), some.shape(), rules)
    done = some.conformed(writable(made_of))
    order = pa.array(sorted(range(len(texts)), key=done.rows.to_pylist().__getitem__), pa.int64())
    columns: dict[str, Any] = {"_rescued": done.rescued.take(order), "_file_id": ["f"] * len(texts)}
    for field, column in zip(done.columns.type, done.columns.flatten(), strict=True):
        columns[field.name] = column.take(order)
    if is_declared:
        columns["who"] = [text_at(read_json(text), parse_path("user.id")) for text in texts]
    return pa.table(columns), made_of


@given(st.lists(records | nested, min_size=1, max_size=6), st.sampled_from(sorted(TABLES)), st.sampled_from(PERSONS))
@example(['{"user":{"id":["4711","zother"]}}'], "declared", "4711")
@example(['{"user":{"id":4711.0}}', '{"user":{"id":1.5}}'], "plain", "4711")
@example(['{"user":{"id":4711},"x":1,"x":2}'], "declared", "4711")
@example(['{" user":{"id":"anna"}}', '{"user\\u2003":{"id":["anna"]}}'], "plain", "anna")
@example(['{"user":{"id ":"anna"}}', '{"user":{" ID":["anna"]}}', '{"user":[{"id ":"anna"}]}'], "plain", "anna")
@example(['{"user ":{" id":"anna"}}', '{" user_id ":"anna"}'], "flat", "anna")
@example(['{"user_id":"anna"}', '{"user":{"id":{"x":1}}}'], "flat", "anna")
@example(['{"user":{"id":9007199254740993}}', '{"user":{"id":1.5}}'], "plain", "9007199254740992")
def test_an_erasure_finds_each_row_whose_record_is_of_the_person(texts: list[str], kind: str, person: str) -> None:
    service = service_of(kind)
    erased = Erased(frozenset({token_of(person, b"")}), b"")
    paths = subject_paths(service.subject, (), service.joints)
    theirs = [bool(subject_tokens(text, paths, b"") & erased.tokens) for text in texts]
    table, made_of = rows_of(texts, kind, service)
    keys = keys_of({name: field.as_json()["metadata"] for name, field in made_of.fields.items()})
    pq.write_table(table, into := io.BytesIO())
    found = found_in(into, subject_places("t", service, table.column_names, None, keys), erased)
    hits = [hit for group in found.groups for hit in (group.to_pylist() if group else [False] * len(texts))]
    assert (hits or [False] * len(texts)) == theirs

    alone = [len(subject_tokens(text, paths, b"")) < 2 for text in texts]
    if all(alone):
        left = left_of("".join(f"{text}\n" for text in texts).encode(), "a.json", Form(), paths, erased)
        assert left.records == sum(theirs)
