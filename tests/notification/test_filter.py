"""Which files are wanted, above all what a glob means."""

from __future__ import annotations

import pickle

import pytest

from forebay.errors import InvalidConfiguration
from forebay.notification import Filter, Ignored
from forebay_local.fabricate import file_named

GLOBS = [
    ("in/*.json", "in/a.json", True),
    ("in/*.json", "in/x/a.json", False),
    ("in/**.json", "in/x/y/a.json", True),
    ("in/**/a.json", "in/a.json", True),
    ("in/**/a.json", "in/x/y/a.json", True),
    ("in/**/a.json", "in/xa.json", False),
    ("**/a.json", "a.json", True),
    ("**/a.json", "x/a.json", True),
    ("x**/a.json", "x/a.json", True),
    ("x**/a.json", "x.a.json", False),
    ("**", "any/key\nat all", True),
    ("in/?.json", "in/a.json", True),
    ("in/?.json", "in//.json", False),
    ("in/?.json", "in/.json", False),
    ("[abc].json", "b.json", True),
    ("[abc].json", "d.json", False),
    ("[a-c0-9]", "7", True),
    ("[!a-c]", "d", True),
    ("[^a-c]", "a", False),
    ("x[!a]y", "x/y", False),
    ("[]-]", "]", True),
    ("[]-]", "-", True),
    ("[a-]", "-", True),
    ("[[&&~~||]", "&", True),
    ("[\\d]", "5", False),
    ("a[*]b", "a*b", True),
    ("a[*]b", "axb", False),
    ("*.{json,csv}", "a.csv", True),
    ("*.{json,csv}", "a.xml", False),
    ("*.json{,.gz}", "a.json", True),
    ("*.json{,.gz}", "a.json.gz", True),
    ("{a,b{c,d}}.json", "bd.json", True),
    ("{a/*,b}.json", "a/x.json", True),
    ("a,b", "a,b", True),
    ("a.json", "aXjson", False),
    ("a.json", "a.json.gz", False),
    ("größe/*", "größe/1", True),
    ("a+b(c)$", "a+b(c)$", True),
]


@pytest.mark.parametrize(("glob", "key", "wanted"), GLOBS)
def test_a_glob_speaks_of_the_whole_key(glob: str, key: str, wanted: bool) -> None:
    assert (Filter(glob=glob).refuses(file_named(key)) is None) is wanted


@pytest.mark.parametrize("glob", ["[a", "[]", "[!]", "a]b[", "{a", "a}", "{a,{b}", "[z-a]"])
def test_a_glob_that_is_not_well_formed_is_refused_when_it_is_declared(glob: str) -> None:
    with pytest.raises(InvalidConfiguration, match="glob"):
        Filter(glob=glob)


def test_an_empty_filter_wants_everything() -> None:
    assert Filter().refuses(file_named("any key")) is None


def test_all_parts_of_a_filter_must_agree() -> None:
    only = Filter(buckets=frozenset({"landing"}), prefix="in/", suffix=".json", glob="in/*/*")
    assert only.refuses(file_named("in/x/a.json")) is None
    assert only.refuses(file_named("out/x/a.json")) == Ignored("filtered", "s3://landing/out/x/a.json")
    assert only.refuses(file_named("in/x/a.csv")) == Ignored("filtered", "s3://landing/in/x/a.csv")
    assert only.refuses(file_named("in/a.json")) == Ignored("filtered", "s3://landing/in/a.json")
    assert only.refuses(file_named("in/x/a.json", "b")) == Ignored("bucket-not-allowed", "s3://b/in/x/a.json")


def test_a_filter_travels_to_another_process() -> None:
    only = Filter(buckets=frozenset({"landing"}), glob="in/**")
    assert pickle.loads(pickle.dumps(only)) == only


def test_no_glob_and_no_key_take_more_time_than_a_step_for_each_character_and_place_of_the_glob() -> None:
    """A regular expression would share 1024 letters out among twelve stars."""
    assert Filter(glob="**a" * 12 + "*b").refuses(file_named("a" * 1024)) is not None
    assert Filter(glob="{**a,*}" * 12 + "*b").refuses(file_named("a" * 1023 + "b")) is None
