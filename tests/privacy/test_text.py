"""Personal fields of a record are treated in its text, wherever they lie, and nothing else of it changes."""

from __future__ import annotations

import json
import re
from dataclasses import replace
from ipaddress import IPv4Address, IPv6Address, ip_address
from typing import Any, get_args

import pyarrow as pa
import pyarrow.compute as pc
import pytest
from hypothesis import given
from hypothesis import strategies as st

from forebay.declaration.personal import Become, PersonalField
from forebay.privacy.text import Originals, pattern_of, treated_text

KEYS = (
    "email",
    "Email",
    " email",
    "email\u2003",
    "device_id",
    "device.id",
    "device",
    "id",
    "ip",
    "*",
    "a.b",
    "a/b",
    "A\tB",
)


def fields(**become: Become) -> tuple[PersonalField, ...]:
    """`device__id` is the path device.id."""
    return tuple(PersonalField(tuple(path.split("__")), how) for path, how in become.items())


@pytest.mark.parametrize(
    ("text", "personal", "treated"),
    [
        ('{"email":"a@b.c","n":1}', {"email": "dropped"}, '{"n":1}'),
        ('{ "n" : 1.10 , "email":"a@b.c" }', {"email": "dropped"}, '{"n" : 1.10}'),
        ('{"email":"a@b.c"}', {"email": "dropped"}, "{}"),
        ('{"email":"a@b.c", "n":1.10}', {"email": "masked"}, '{"email":"***","n":1.10}'),
        ('{"email":null}', {"email": "masked"}, '{"email":null}'),
        ('{"email":42}', {"email": "masked"}, '{"email":"***"}'),
        # Every occurrence, also of a key that stands twice, of a twin, and of one that is spelled with an escape.
        ('{"email":1,"email":2}', {"email": "masked"}, '{"email":"***","email":"***"}'),
        ('{"E-Mail":1,"e_mail":2}', {"e_mail": "masked"}, '{"E-Mail":"***","e_mail":"***"}'),
        (r'{"\u0065mail":1}', {"email": "dropped"}, "{}"),
        (r'{"E\/Mail":1,"e\tmail":2,"e\\mail":3,"e\"mail":4,"e\/\/mail":5}', {"e_mail": "dropped"}, r'{"e\/\/mail":5}'),
        # What shares its column, whatever it is called there.
        ('{"_id":1,"x_id":2,"X-ID":3,"id":4}', {"x_id": "masked"}, '{"_id":"***","x_id":"***","X-ID":"***","id":4}'),
        ('{"_id":1,"x_id":2}', {"_id": "masked"}, '{"_id":"***","x_id":"***"}'),
        ('{"1st":1,"x_1st":2}', {"x_1st": "masked"}, '{"1st":"***","x_1st":"***"}'),
        ('{"GRÖSSE":1,"Größe":2,"GRÖßE":3}', {"größe": "masked"}, '{"GRÖSSE":1,"Größe":"***","GRÖßE":"***"}'),
        ('{"to\u212aen":1}', {"token": "masked"}, '{"to\u212aen":"***"}'),
        # With blanks around, and the mark that some files begin with.
        ('{" email":1,"email ":2,"\\temail\\n":3,"\ufeffemail":4,"e mail":5}', {"email": "dropped"}, '{"e mail":5}'),
        ('{"\u3000E-Mail\u00a0":1,"_email":2}', {"e_mail": "dropped"}, '{"_email":2}'),
        # Below objects, arrays and maps; where another value lies on the way, there is no such field.
        ('{"device":{"id":"x","os":"y"}}', {"device__id": "dropped"}, '{"device":{"os":"y"}}'),
        ('{"users":[{"ip":1,"n":2},3,[{"ip":4}]]}', {"users__ip": "dropped"}, '{"users":[{"n":2},3,[{}]]}'),
        ('{"by":{"k":{"ip":1},"l":2}}', {"by__*__ip": "dropped"}, '{"by":{"k":{},"l":2}}'),
        ('{"device":"none"}', {"device__id": "dropped"}, '{"device":"none"}'),
        # In a text that holds JSON, and in one within it. Nobody knows what is personal of one that is torn.
        (r'{"device":" [{\"ID\":1,\"n\":1.10}]"}', {"device__id": "dropped"}, r'{"device":"[{\"n\":1.10}]"}'),
        (r'{"a":"{\"b\":\"{\\\"i\\\\/d\\\":1}\"}"}', {"a__b__i_d": "dropped"}, r'{"a":"{\"b\":\"{}\"}"}'),
        (r'{"device":"{\"id\":\"a@b.c"}', {"device__id": "dropped"}, '{"device":"***"}'),
        (
            r'{"device":"[\"id\"]","n":"{\"id\":1}"}',
            {"device__id": "dropped"},
            r'{"device":"[\"id\"]","n":"{\"id\":1}"}',
        ),
        ('{"device":"[none]"}', {"device__id": "dropped"}, '{"device":"[none]"}'),
        # An object or an array: each value in it.
        ('{"tags":["a",["b",null]],"o":{"k":1}}', {"tags": "masked"}, '{"tags":["***",["***",null]],"o":{"k":1}}'),
        ('{"o":{"k":1,"l":[true]}}', {"o": "masked"}, '{"o":{"k":"***","l":["***"]}}'),
        # The other half of a pair of surrogates, and texts that look like fields.
        (r'{"t":"\ud800 \"email\":1","email":1}', {"email": "dropped"}, r'{"t":"\ud800 \"email\":1"}'),
    ],
)
def test_each_personal_field_is_treated_and_the_rest_keeps_its_text(
    text: str, personal: dict[str, Any], treated: str
) -> None:
    assert treated_text(text, fields(**personal)) == treated
    assert re.search(pattern_of(fields(**personal)), text) or treated == text


@pytest.mark.parametrize(
    ("value", "becomes"),
    [
        ('"203.0.113.77"', '"203.0.113.0"'),
        ('"2001:db8:1:2:3::4"', '"2001:db8:1::"'),
        ('"::ffff:203.0.113.77"', '"203.0.113.0"'),
        ('"1984-05-06"', '"1984-01-01"'),
        ('"1984-05-06T07:08:09+02:00"', '"1984-01-01"'),
        ('"1984-05"', '"1984-01-01"'),
        ('"1984"', '"1984"'),
        ("1984", "1984"),
        # An IPv4 address within one of IPv6: mapped, 6to4, Teredo.
        ('"2002:cb00:714d:1:2::3"', '"203.0.113.0"'),
        ('"2001:0:4136:e378:8000:63bf:34ff:8eb2"', '"2001::"'),
        ('"2001::"', '"2001::"'),
        ('"64:ff9b::203.0.113.77"', '"64:ff9b::"'),
        ('"::203.0.113.77"', '"::"'),
        # What is no year and no date.
        ('"0412"', '"***"'),
        ("9731", '"***"'),
        ('"4711-23"', '"***"'),
        ('"4711-12"', '"***"'),
        ('"1984-13-01"', '"***"'),
        ('"1984-05-32"', '"***"'),
        ('"0001-01-01"', '"0001-01-01"'),
        ('"9999-12-31 00:00"', '"9999-01-01"'),
        ('"203.0.113.77:80"', '"***"'),
        ('"Anna"', '"***"'),
        ("455155200", '"***"'),
        ("true", '"***"'),
        ("null", "null"),
        ('["203.0.113.77","x"]', '["203.0.113.0","***"]'),
    ],
)
def test_an_address_is_truncated_to_its_network_and_a_date_to_its_year(value: str, becomes: str) -> None:
    assert treated_text(f'{{"v":{value}}}', fields(v="truncated")) == f'{{"v":{becomes}}}'


@pytest.mark.parametrize(
    "text", ["", "{", "[]", '{"a":1', '{"a":1} x', '{"a":1} {"email":2}', '{"a" 1}', '{"a":01}', "{a:1}", '{"a":1,}']
)
def test_a_text_that_is_no_object_is_refused(text: str) -> None:
    with pytest.raises(ValueError):
        treated_text(text, fields(email="dropped"))


some_keys = st.sampled_from(KEYS) | st.text(max_size=3)
documents = st.dictionaries(
    some_keys,
    st.recursive(
        st.none() | st.booleans() | st.integers() | st.text(max_size=5) | st.sampled_from(["1.2.3.4", "1984-05-06"]),
        lambda inner: st.lists(inner, max_size=3) | st.dictionaries(some_keys, inner) | inner.map(json.dumps),
        max_leaves=12,
    ),
    max_size=5,
)
personal_fields = st.lists(
    st.builds(
        PersonalField,
        st.lists(st.sampled_from(KEYS), min_size=1, max_size=3).map(tuple),
        st.sampled_from(get_args(Become)),
        st.booleans(),
    ),
    max_size=3,
).map(tuple)


@given(st.ip_addresses() | st.dates() | st.from_regex(r"[0-9]{4}(-[0-9]{2}){0,2}", fullmatch=True))
def test_what_was_truncated_is_truncated_again_to_the_same(value: Any) -> None:
    once = treated_text(json.dumps({"v": str(value)}), fields(v="truncated"))
    assert treated_text(once, fields(v="truncated")) == once


@given(st.ip_addresses(v=4), st.integers(0, 2**80 - 1))
def test_a_truncated_address_does_not_tell_the_last_part_of_an_ipv4_address_within_it(inner: Any, rest: int) -> None:
    """Two addresses of one network become the same, in each way to put them into IPv6."""
    for whole in (
        lambda v4: (0x2002 << 112) + (int(v4) << 80) + rest,
        lambda v4: (0x20010000 << 96) + (int(v4) << 64) + (rest & (2**64 - 1)),
        lambda v4: (0x20010000 << 96) + ((rest & (2**32 - 1)) << 64) + int(v4),
        lambda v4: (0xFFFF << 32) + int(v4),
        lambda v4: (0x64FF9B << 96) + int(v4),
        int,
    ):
        texts = [
            str(ip_address(whole(v4)) if whole is int else IPv6Address(whole(v4))) for v4 in (inner, _neighbour(inner))
        ]
        one, other = (treated_text(json.dumps({"v": text}), fields(v="truncated")) for text in texts)
        assert one == other


def _neighbour(address: IPv4Address) -> IPv4Address:
    return IPv4Address(int(address) ^ 0x55)


@given(documents, personal_fields)
def test_what_was_treated_is_treated_again_to_the_same(value: Any, personal: tuple[PersonalField, ...]) -> None:
    """A record that was kept is treated again when it is retried."""
    once = treated_text(json.dumps(value), personal)
    assert treated_text(once, personal) == once
    json.loads(once)


@given(documents, personal_fields)
def test_a_text_that_names_no_personal_field_need_not_be_read(value: Any, personal: tuple[PersonalField, ...]) -> None:
    for text in (json.dumps(value), json.dumps(value).replace("/", "\\/")):
        if re.search(pattern_of(personal), text) is None:
            assert treated_text(text, personal) == text


@given(documents, personal_fields)
def test_a_text_that_holds_json_is_treated_as_that_json(value: Any, personal: tuple[PersonalField, ...]) -> None:
    within = tuple(replace(one, path=("device", *one.path)) for one in personal)
    as_text = json.loads(treated_text(json.dumps({"device": json.dumps(value)}), within))
    assert json.loads(as_text["device"]) == json.loads(treated_text(json.dumps({"device": value}), within))["device"]


@pytest.mark.parametrize("escape", [r"\/", r"\t", r"\n", r"\r", r"\b", r"\f", r"\\", r"\"", r"\u002f", "/", "\t"])
def test_a_text_whose_key_is_a_twin_by_an_escape_is_read(escape: str) -> None:
    """A document that is not looked at keeps its values, so the pattern must find every spelling."""
    text = f'{{"e{escape}mail":"a@b.c"}}'
    assert treated_text(text, fields(e_mail="dropped")) == "{}"
    pattern = pattern_of(fields(e_mail="dropped"))
    assert pc.match_substring_regex(pa.array([text]), pattern).to_pylist() == [True]
    assert re.search(pattern, text)


@pytest.mark.parametrize(
    ("step", "key"),
    [
        ("wifi_mac", "wif\u0130mac"),
        ("i_p", "\u0130P"),
        ("api__key", "ap\u0130_\u212aey"),
        ("empty", ""),
        ("empty", " \ufeff"),
        ("empty", "\n"),
    ],
)
def test_a_text_whose_key_becomes_the_column_in_small_letters_is_read(step: str, key: str) -> None:
    """The capital of the Turkish i becomes two signs, and the sign of kelvin a k. A key of blanks has a column, too."""
    for text in (json.dumps({key: "a@b.c"}), json.dumps({key: "a@b.c"}, ensure_ascii=False)):
        personal = (PersonalField((step,), "dropped"),)
        assert treated_text(text, personal) == "{}"
        assert pc.match_substring_regex(pa.array([text]), pattern_of(personal)).to_pylist() == [True]
        assert re.search(pattern_of(personal), text)


@pytest.mark.parametrize(
    ("text", "originals"),
    [
        ('{"email": "a@b.c" , "n":1, "ip":1.10}', [("email", '"a@b.c"'), ("ip", "1.10")]),
        ('{"email":null,"ip":[]}', [("ip", "[]")]),
        ('{"email":{"home":["x", 2]}}', [("email", '{"home":["x", 2]}')]),
        ('{"device":[{"id":1},{"id":2,"email":3}]}', [("device.id", "1"), ("device.id", "2")]),
        # Keys that stand twice: each value goes where it stands.
        ('{"device":{"x":1},"email":2,"device":{"id":3}}', [("email", "2"), ("device.id", "3")]),
        ('{"email":1,"EMAIL":2}', [("email", "1"), ("email", "2")]),
        (r'{"\u0065mail":"\u0061"}', [("email", r'"\u0061"')]),
        (r'{"device":"[{\"id\":\"a\"}]"}', [("device.id", '"a"')]),
        ('{"secret":1}', []),
    ],
)
def test_what_stood_there_is_told_as_it_was_written(text: str, originals: Originals) -> None:
    kept = tuple(replace(one, vault=True) for one in fields(email="masked", device__id="masked", ip="truncated"))
    personal = (*kept, *fields(secret="masked"))
    found: Originals = []
    treated_text(text, personal, originals=found)
    assert found == originals
