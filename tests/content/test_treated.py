"""No row leaves the reader with anything personal in it: not a document, not a refused record, not the head of a file."""

from __future__ import annotations

import io
import json
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from forebay.declaration.form import Explosion, Form, Forms
from forebay.declaration.personal import PersonalField, of_flattened
from forebay.declaration.place import Place
from forebay.privacy.erased import add_erased
from forebay.privacy.keys import add_local_key
from forebay.privacy.secret import make_secret, secret_at
from forebay.privacy.together import NOT_KEPT
from forebay.privacy.token import token_of
from forebay.privacy.vault import unpacked
from tests.content.memory import Memory, Reading, batches_of, read

SECRET = "anna@example.org"
PERSONAL = (
    PersonalField(("email",), "dropped"),
    PersonalField(("ip",), "truncated"),
    PersonalField(("cart", "items", "gift", "email"), "masked"),
)


def read_treated(text: str, name: str = "a.json", **form: Any) -> Reading:
    reading = read({name: text.encode()}, forms=Forms(forms=(Form(personal=PERSONAL, **form),)))
    assert SECRET not in repr(reading)
    return reading


def test_a_document_keeps_its_place_and_loses_what_is_personal() -> None:
    text = f'{{"n": 1.10}}\n{{"n": 2, "email": "{SECRET}", "ip": "203.0.113.9"}}\n'
    plain = read({"a.json": text.encode()})
    treated = read_treated(text)
    assert [row.value.strip() for row in treated.documents] == ['{"n": 1.10}', '{"n": 2,"ip": "203.0.113.0"}']
    assert [(r.line, r.byte_offset) for r in treated.documents] == [(r.line, r.byte_offset) for r in plain.documents]
    assert treated.files == plain.files  # with the hash of what lies in S3


def test_a_field_is_meant_where_its_key_is_written_with_an_escape_of_two_signs() -> None:
    """As PHP writes a slash: such a key shares the column of the field that is declared."""
    text = f'{{"real\\/name": "{SECRET}"}}\n'
    reading = read(
        {"a.json": text.encode()}, forms=Forms(forms=(Form(personal=(PersonalField(("real_name",), "dropped"),)),))
    )
    assert [row.value.strip() for row in reading.documents] == ["{}"]


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("a.json", f'{{"email": "{SECRET}", broken}}\n'),
        ("a.json", f'{{"email": "{SECRET}"}} {{"email": "{SECRET}"}}\n'),
        ("a.json", f'{{"n": 1}}\n"{SECRET}"\n'),
        ("a.json", f'{{"n": 1}}\n{{"email": "{SECRET}\n'),
        ("a.csv", f"n,email\n1,{SECRET}\n2,{SECRET},3\n"),
        ("a.csv", f"{SECRET},{SECRET}\n1,2\n"),
        ("a.json", f"From: {SECRET}"),
    ],
)
def test_of_what_is_no_document_no_text_is_kept(name: str, text: str) -> None:
    """Neither where it is refused, nor in the reason or the head of its file."""
    assert "email" in text or SECRET in text
    plain, treated = read({name: text.encode()}), read_treated(text, name)
    assert [(r.line, r.byte_offset, r.problem) for r in treated.refused] == [
        (r.line, r.byte_offset, r.problem) for r in plain.refused
    ]
    assert {row.value for row in treated.refused} <= {NOT_KEPT}
    assert treated.files["a.json" if name == "a.json" else "a.csv"].outcome == plain.files[name].outcome


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("blanks.csv", f"n, email ,\t ip\n1,{SECRET},203.0.113.9\n"),
        ("quoted.csv", f'n, "email" ,"email\u2003"\n1,{SECRET},{SECRET}\n'.replace('"email\u2003"', '" ip"')),
        ("mark.tsv", f"\ufeff\ufeffemail\tip \tn\n{SECRET}\t203.0.113.9\t1\n"),
        (
            "keys.json",
            json.dumps({"n": 1, "email ": SECRET, " Email": SECRET, "\ufeffemail": SECRET, "ip": "203.0.113.9"}),
        ),
    ],
)
def test_a_field_is_meant_with_blanks_around_its_name(name: str, content: str) -> None:
    (row,) = read_treated(content, name).documents
    assert json.loads(row.value).keys() == {"n", "ip"}


@pytest.mark.parametrize(
    "document",
    [
        '{{"Records":[{record}]}}',
        '{{"Record\\u0073":[{record}],"x":1}}',
        '{{"records":[{record}],"x":1}}',
        '{{"Records ":[{record}]}}',
        '{{"Records":{record},"x":1}}',
        '{{"Records":[[{record}]],"x":1}}',
        '{{"Records":[{{"Records":[{record}]}}]}}',
        '{{"detail":{{"Items":[{record}]}}}}',
    ],
)
def test_a_document_that_is_not_taken_apart_loses_what_is_personal_in_its_records(document: str) -> None:
    """It is one record where the array is spelled otherwise, or is none."""
    record = json.dumps({"n": 1, "email": SECRET, "ip": "203.0.113.9"})
    text = document.format(record=record)
    reading = read_treated(text, inside=(("Records",), ("detail", "items")))
    assert "203.0.113.9" not in repr(reading)
    assert [row.value.count('"n": 1') for row in reading.documents] == [1]


@pytest.mark.parametrize("mark", ["@exploded", "\\u0040exploded", "@explode\\u0064"])
def test_a_record_that_says_it_is_an_element_is_treated_as_one_however_it_is_spelled(mark: str) -> None:
    form = {"exploded": (Explosion(("cart", "items")),)}
    text = f'{{"gift":{{"email":"{SECRET}"}},"{mark}":"record.cart.items"}}'
    (row,) = read_treated(text, **form).documents
    assert json.loads(row.value)["gift"] == {"email": "***"}
    (row,) = read(
        {"a.json": text.replace("exp", "Exp").encode()}, forms=Forms(forms=(Form(personal=PERSONAL, **form),))
    ).documents
    assert json.loads(row.value)["gift"] == {"email": SECRET}


def test_a_csv_without_its_header_has_no_persons_as_names_of_columns() -> None:
    """Names are not treated, so they would stay in what is parked."""
    text = f"1,{SECRET}\n2,{SECRET.upper()}\n"
    treated = read_treated(text, "a.csv")
    assert (treated.documents, treated.files["a.csv"].reason) == ([], "bad-header")
    assert read({"a.csv": text.encode()}).files["a.csv"].outcome == "loaded"
    (one, two) = read_treated(text, "a.csv", header=("n", "email")).documents
    assert [json.loads(row.value) for row in (one, two)] == [{"n": "1"}, {"n": "2"}]


def test_a_field_is_meant_under_the_key_that_shares_its_column_where_a_table_flattens() -> None:
    personal = of_flattened([PersonalField(("device", "id"), "dropped")], ["_"])
    text = json.dumps(
        {"device_id": SECRET, "device.id": SECRET, "Device-ID": SECRET, "device": {"id": SECRET, "os": "x"}}
    )
    for inside in (text, text.replace("device", "\\u0064evice")):
        reading = read({"a.json": inside.encode()}, forms=Forms(forms=(Form(personal=personal),)))
        assert [json.loads(row.value) for row in reading.documents] == [{"device": {"os": "x"}}]


def parquet_of(records: list[dict[str, Any]]) -> bytes:
    buffer = io.BytesIO()
    pq.write_table(pa.Table.from_pylist(records), buffer)
    return buffer.getvalue()


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("lines.json", b'{"n":"a","email":"%s"}\n{"n":"b"}\n'),
        ("last.json", b'{"n":"b"}\n{"n":"a","email":"%s"}\n\n  '),
        ("array.json", b'[{"n":"a","email":"%s"} ,\n {"n":"b\\\\"}\n]\n'),
        ("rows.csv", b"n,email\na,%s\nb\\,%s\n"),
        ("rows.parquet", parquet_of([{"n": "a", "email": SECRET}, {"n": "b\\", "email": SECRET}])),
    ],
)
def test_a_dropped_field_may_be_the_last_of_any_record(name: str, content: bytes) -> None:
    content = content.replace(b"%s", SECRET.encode())
    forms = Forms(forms=(Form(personal=(PersonalField(("email",), "dropped"),)),))
    reading = read({name: content}, forms=forms)
    assert sorted(json.loads(row.value)["n"][:1] for row in reading.documents) == ["a", "b"]
    assert SECRET not in repr(reading)


def test_an_element_of_an_array_is_treated_and_so_is_what_it_keeps_of_its_record() -> None:
    gift = {"sku": "a", "gift": {"email": SECRET, "wrap": True}}
    order = json.dumps({"id": 1, "email": SECRET, "ip": "203.0.113.9", "cart": {"items": [gift]}})
    exploded = (Explosion(("cart", "items"), ("id", "email", "ip")),)
    record, element = (json.loads(row.value) for row in read_treated(order, exploded=exploded).documents)
    gift = {"sku": "a", "gift": {"email": "***", "wrap": True}}
    assert record == {"id": 1, "ip": "203.0.113.0", "cart": {"items": [gift]}}
    assert element == {"@ordinal": 0, "@exploded": "cart.items", "@parent": {"id": 1, "ip": "203.0.113.0"}, **gift}


def test_what_surrounds_the_records_of_a_document_is_treated_as_they_are() -> None:
    text = json.dumps({"email": SECRET, "day": 1, "Records": [{"email": SECRET, "n": 1}]})
    (row,) = read_treated(text, inside=(("Records",),)).documents
    assert json.loads(row.value) == {"@parent": {"day": 1}, "n": 1}


def test_tokens_are_made_with_the_secret_that_the_form_names(tmp_path: Path) -> None:
    address = f"{tmp_path}/secret"
    make_secret(address)
    personal = (PersonalField(("user", "id"), "token"),)
    forms = Forms(forms=(Form(personal=personal, secret=address),))
    (row,) = read({"a.json": b'{"user": {"id": 42}, "n": 1.10}'}, forms=forms).documents
    assert row.value == '{"user": {"id": "%s"}, "n": 1.10}' % token_of("42", secret_at(address))  # noqa: UP031
    assert secret_at(address).hex() not in repr(forms)


def test_of_a_record_of_an_erased_person_nothing_leaves_but_its_place(tmp_path: Path) -> None:
    address = f"{tmp_path}/secret"
    make_secret(address)
    erased = add_erased(str(tmp_path), "studio", [token_of("42", secret_at(address))])
    forms = Forms(forms=(Form(personal=PERSONAL, secret=address, subject=("user_id",), erased=erased),))
    text = f'{{"user_id": 42, "email": "{SECRET}"}}\n{{"user_id": 43, "n": 1}}\n{{"n": 42}}\n{{"User-ID": "42"}}\n'
    reading = read({"a.json": text.encode()}, forms=forms)
    assert [row.line for row in reading.documents] == [2, 3]
    assert [(row.line, row.problem, row.value) for row in reading.refused] == [(n, "erased", NOT_KEPT) for n in (1, 4)]
    assert reading.files["a.json"].documents == 4


def test_what_a_field_was_leaves_beside_its_record_for_the_vault_and_belongs_to_its_subjects(tmp_path: Path) -> None:
    make_secret(f"{tmp_path}/secret")
    add_local_key(f"{tmp_path}/key")
    personal = (PersonalField(("email",), "masked", vault=True), PersonalField(("phone",), "dropped"))
    places = {name: f"{tmp_path}/{name}" for name in ("secret", "vault")}
    form = Form(personal=personal, subject=("user",), vault_key=f"{tmp_path}/key", **places)
    lines = [
        {"user": "anna", "email": SECRET, "phone": "1"},
        {"user": "anna", "phone": "1"},
        {"email": SECRET},
        {"user": "ben", "n": 1},
        {"user": "ben", "email": 7},
    ]
    memory = Memory({"a.json": "".join(json.dumps(one) + "\n" for one in lines).encode(), "b.csv": b"n\n1\n"})
    elsewhere = Form(format="csv")
    forms = Forms((Place("a"), Place("b")), (form, elsewhere))
    batches = batches_of(memory, forms)
    rows = [row["personal"] for batch in batches for row in batch.to_pylist() if row["line"]]
    token = {name: token_of(name, secret_at(f"{tmp_path}/secret")) for name in ("anna", "ben")}
    told = [row and (row["subjects"], unpacked(row["values"])) for row in rows]
    assert told == [
        ([token["anna"]], [("email", SECRET)]),
        None,
        None,
        None,
        ([token["ben"]], [("email", 7)]),
        None,
    ]
    keys = [row["key"] for row in rows if row]
    assert len(set(keys)) == 2
    assert len({row["key_id"] for row in rows if row}) == 1
    assert all(key not in path.read_bytes() for path in (tmp_path / "vault").rglob("*.json") for key in keys)
