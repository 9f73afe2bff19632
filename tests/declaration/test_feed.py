"""Feeds: which of them a file belongs to, and what of their declarations is refused."""

from __future__ import annotations

import pytest

from forebay.declaration.loading import parse_service
from forebay.declaration.place import Place, deciding
from forebay.declaration.service import Service
from forebay.errors import InvalidConfiguration

TABLES = '[[tables]]\nname = "t"\n'


def service_of(feeds: str) -> Service:
    return parse_service({"service.toml": f'name = "s"\n{feeds}\n{TABLES}'})


def test_the_longest_prefix_decides_and_then_the_bucket() -> None:
    places = [Place("in/"), Place("in/fixes/"), Place("in/", "ours"), Place(bucket="theirs")]
    asked = [
        ("any", "in/a"),
        ("any", "in/fixes/a"),
        ("ours", "in/a"),
        ("ours", "in/fixes/a"),
        ("theirs", "x"),
        ("any", "x"),
    ]
    assert [deciding(places, *one) for one in asked] == [0, 1, 2, 1, 3, None]


def test_a_file_of_this_machine_has_the_feed_of_its_key() -> None:
    assert deciding([Place("in/", "ours")], "", "in/a") == 0


def test_without_feeds_all_files_are_one() -> None:
    service = service_of('envelope = { key = "in/{game}/", records = "Records" }')
    (feed,) = service.all_feeds
    assert (feed.name, feed.key, feed.form.inside) == ("all", "in/{game}/", (("Records",),))
    assert service.feed_of("any", "any") == feed


def test_each_place_has_the_form_of_its_feed() -> None:
    forms = service_of(
        '[[feeds]]\nname = "a"\nprefix = "a/"\nrecords = ["x.y", "\\"z.z\\""]\n[[feeds]]\nname = "b"\nbucket = "b"'
    ).forms
    assert forms.of("any", "a/1").inside == (("x", "y"), ("z.z",))
    assert forms.of("b", "1").inside == forms.of("c", "1").inside == ()


@pytest.mark.parametrize(
    ("feeds", "says"),
    [
        ('[[feeds]]\nname = "A b"', "feeds.0.name: must be a lowercase letter"),
        ('[[feeds]]\nprefix = "a/"', "feeds.0.name"),
        ('[[feeds]]\nname = "a"\nprefix = "x"\n[[feeds]]\nname = "b"\nprefix = "x"', "a and b have the same files"),
        ('[[feeds]]\nname = "a"\nprefix = "x"\n[[feeds]]\nname = "a"\nprefix = "y"', "a and a have the same name"),
        ('[[feeds]]\nname = "a"\nprefx = "x"', "did you mean prefix"),
        ('[[feeds]]\nname = "a"\nprefix = "s3://b/in/"', 'feeds.0.prefix: .*name the bucket with bucket = "b"'),
        (
            '[[feeds]]\nname = "a"\nprefix = "in/*/"',
            "feeds.0.prefix: .*not a pattern; use `key` to name parts of keys",
        ),
        ('[[feeds]]\nname = "a"\nprefix = "in/{game}/"', "feeds.0.prefix: .*not a pattern"),
        ('[[feeds]]\nname = "a"\nbucket = "s3://drops"', "feeds.0.bucket: .*only the bucket's name"),
        ('[[feeds]]\nname = "a"\nprefix = "in/a/"\nkey = "out/{game}/"', "feeds.0: key: no file under in/a/ has such"),
        ('[[feeds]]\nname = "a"\nkey = "in/{a}{b}"', "feeds.0.key: .*follows another name"),
        ('envelope = { key = "in/" }\n[[feeds]]\nname = "a"', "envelope: is not allowed beside feeds"),
    ],
)
def test_a_wrong_feed_is_refused_with_its_place(feeds: str, says: str) -> None:
    with pytest.raises(InvalidConfiguration, match=says):
        service_of(feeds)


def test_a_part_of_the_key_must_be_named_by_a_feed() -> None:
    text = 'name = "s"\n[[feeds]]\nname = "a"\nkey = "in/{game}/"\n[[tables]]\nname = "{@key.gmae}"\n'
    with pytest.raises(InvalidConfiguration, match=r"the keys do not contain @key\.gmae"):
        parse_service({"service.toml": text})


def test_a_table_wants_no_feed_that_nobody_declared() -> None:
    text = 'name = "s"\n[[feeds]]\nname = "a"\n[[tables]]\nname = "t"\nwhere = { "@feed" = ["a", "aa"] }\n'
    with pytest.raises(InvalidConfiguration, match=r"no feed has the name aa \(did you mean a\?\)"):
        parse_service({"service.toml": text})


def test_the_feed_of_all_files_is_made_once_and_not_for_each_record() -> None:
    service = parse_service({"service.toml": 'name = "s"\nenvelope = { key = "in/{game}/" }\n[[tables]]\nname = "t"'})
    assert service.feed_of("b", "in/x/a.json") is service.feed_of("b", "in/y/b.json")
    assert service.with_paused(["t"]).all_feeds == service.all_feeds
