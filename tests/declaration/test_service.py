"""Declarations: what is right is read, and everything that is wrong is said at once."""

from __future__ import annotations

import re
from contextlib import suppress
from pathlib import Path
from typing import ClassVar

import pytest

from forebay.declaration.column import widens
from forebay.declaration.kept.files import fingerprint
from forebay.declaration.loading import builtin_service, load_service, parse_service
from forebay.declaration.service import Service
from forebay.declaration.table import Table
from forebay.errors import InvalidConfiguration

GOOD = 'name = "studio"\n[[tables]]\nname = "{game}"\n'
NAMED = 'name = "s"\n'
GOOD_TABLE = '[[tables]]\nname = "{game}"\n'
EXPLODED = """[[tables]]
name = "items"
explode = "cart.items"
columns = [{ name = "id", path = "@parent.id" }, { name = "to" }]
"""
TWO = 'name = "s"\n[[tables]]\nname = "a"\ncolumns = [{name = "x"}, {name = "m", type = "map"}]\n'


def problems(texts: dict[str, str]) -> str:
    with pytest.raises(InvalidConfiguration) as refused:
        parse_service(texts)
    return str(refused.value)


def test_the_builtin_example_makes_a_table_for_each_game() -> None:
    service = builtin_service()
    assert [table.name for table in service.tables] == ["{game}"]
    assert service.tables[0].fields == ("game",)


def test_tables_may_stand_in_files_of_their_own() -> None:
    service = parse_service({"service.toml": 'name = "studio"', "tables/purchases.toml": 'name = "purchases"'})
    assert [table.name for table in service.tables] == ["purchases"]


def test_the_longest_beginning_of_a_key_decides_what_becomes_of_its_other_bytes() -> None:
    below = 'overwritten = "ignore"\noverwritten_below = { "in/" = "append", "in/fixes/" = "replace" }\n'
    service = parse_service({"service.toml": below + GOOD})
    asked = ("in/fixes/a.json", "in/a.json", "in/fixes", "out/in/a.json")
    assert [service.rule_of(key) for key in asked] == ["replace", "append", "append", "ignore"]
    assert parse_service({"service.toml": GOOD}).rule_of("in/a.json") == "append"


FLAT = '[[tables]]\nname = "flat"\nundeclared = { flatten = "_" }\n'


def test_a_field_is_personal_under_each_key_that_shares_its_column_in_a_table_that_flattens() -> None:
    privacy = "[privacy]\npersonal = ['a.b.c', 'friends.*.mail', {path = 'a_b_c', become = 'masked'}]\n"
    plain, flat = (parse_service({"service.toml": NAMED + privacy + GOOD_TABLE + more}) for more in ("", FLAT))
    assert [(one.label, one.become) for one in plain.personal] == [
        ("a.b.c", "dropped"),
        ("friends.*.mail", "dropped"),
        ("a_b_c", "masked"),
    ]
    assert [(one.label, one.become) for one in flat.personal[3:]] == [("a_b.c", "dropped"), ("a.b_c", "dropped")]
    assert {form.joints for form in flat.forms.forms} == {("_",)}


def test_the_version_changes_with_any_text() -> None:
    one, other = parse_service({"service.toml": GOOD}), parse_service({"service.toml": GOOD + "# a comment\n"})
    assert one.version != other.version
    assert one.version == parse_service({"service.toml": GOOD}).version


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("name = ", r"service\.toml: is not TOML"),
        ('[[tables]]\nname = "a"', r"service\.toml: name: is missing"),
        ('name = "studio"', r"no table is declared"),
        ('name = "Studio!"\n[[tables]]\nname = "a"', r"name: must be a lowercase letter.*got 'Studio!'"),
        ("on_delete = 'forget'\noverwritten = 'ignore'\n" + GOOD, r"on_delete: .*not possible with overwritten"),
        ("on_delete = 'forget'\nafter_load = { delete = true }\n" + GOOD, r"on_delete: .*files that after_load moves"),
        (
            "on_delete = 'forget'\nprivacy = { subject = 'u', secret = 's3://b/k', landing = 'rewrite' }\n" + GOOD,
            r"on_delete: .*rows of other people .*privacy\.landing = \"list\"",
        ),
        ("overwriten = 'append'\n" + GOOD, r"overwriten: is unknown \(did you mean overwritten\?\)"),
        (GOOD + 'overwritten = "replace"', r"overwritten is decided for a whole file, .* declare it in service\.toml"),
        (
            GOOD + 'personal = ["player.email"]',
            r"personal is decided .* declare it in service\.toml, such as \[privacy\]",
        ),
        (
            NAMED + "[privacy]\npersonal = []\n" + GOOD_TABLE,
            r"privacy: names no field: remove the section",
        ),
        (
            NAMED + '[privacy]\npersonal = ["ip"]\nsecret = "s3://b/k"\n' + GOOD_TABLE,
            r"secret, but no field becomes a token",
        ),
        (
            NAMED + "[privacy]\npersonal = [{path = 'ip', become = 'token'}]\n" + GOOD_TABLE,
            r"a token field, so it needs a secret",
        ),
        (
            NAMED + '[privacy]\npersonal = [{path = "ip", vault = true}]\n' + GOOD_TABLE,
            r"a field for the vault, so it needs subject and vault and vault_key",
        ),
        (
            NAMED + '[privacy]\npersonal = ["ip"]\nvault = "s3://b/v"\n' + GOOD_TABLE,
            r"has a vault, but no field uses it: give a field vault = true",
        ),
        (
            NAMED + '[privacy]\npersonal = ["ip"]\nvault = "vault"\n' + GOOD_TABLE,
            r"vault is not the address of a vault, such as s3://bucket/forebay",
        ),
        (
            NAMED + '[privacy]\npersonal = ["ip"]\nvault_key = "my-key"\n' + GOOD_TABLE,
            r"my-key is neither the ARN nor the alias of a key of KMS",
        ),
        (
            NAMED + '[privacy]\npersonal = ["ip"]\nsecret = "s3://b/"\n' + GOOD_TABLE,
            r"s3://b/ is not the address of an object",
        ),
        (
            NAMED + '[privacy]\npersonal = ["ip"]\nsecret = "k"\n' + GOOD_TABLE,
            r"secret: k is not the address of an object",
        ),
        (
            NAMED + '[privacy]\npersonal = ["@key.user"]\n' + GOOD_TABLE,
            r"@key\.user belongs to the file and not to the record",
        ),
        (
            NAMED + '[privacy]\npersonal = ["users[0].ip"]\n' + GOOD_TABLE,
            r"treated in all elements, so leave out the position",
        ),
        (NAMED + '[privacy]\npersonal = ["ip", "ip"]\n' + GOOD_TABLE, r"ip is named twice"),
        (
            NAMED + "[privacy]\nsubject = 'user_id'\n" + GOOD_TABLE,
            r"needs a secret, because .*`forebay privacy secret s3://",
        ),
        (
            NAMED + "[privacy]\nsubject = 'user.id'\nsecret = 's3://b/k'\npersonal = ['user']\n" + GOOD_TABLE,
            r"the subject user\.id is dropped, so nobody could search for it: make it a token",
        ),
        (
            NAMED + "[privacy]\nsubject = 'users[0].id'\nsecret = 's3://b/k'\n" + GOOD_TABLE,
            r"privacy\.subject: users\[0\]\.id: the subject is one field of the record",
        ),
        (
            NAMED + '[privacy]\npersonal = ["a.ip", "a"]\n' + GOOD_TABLE,
            r"a\.ip is inside a, which is treated as",
        ),
        (
            NAMED + '[privacy]\npersonal = [{path = "ip", become = "truncatd"}]\n' + GOOD_TABLE,
            r"become: .*'dropped', .*got 'truncatd'",
        ),
        (
            NAMED
            + "[privacy]\nsubject = 'user_id'\nsecret = 's3://b/k'\npersonal = ['user.id']\n"
            + GOOD_TABLE
            + '[[tables]]\nname = "flat"\nundeclared = { flatten = "_" }\n',
            r"subject: shares a column with a personal field that is dropped, in a table that flattens objects",
        ),
        (
            NAMED + '[privacy]\npersonal = ["cart"]\n' + GOOD_TABLE + EXPLODED,
            r"personal: cart: the elements of cart\.items become their own records in table items",
        ),
        (
            NAMED + '[privacy]\npersonal = ["cart.items.to", "id"]\n' + GOOD_TABLE + EXPLODED,
            r"(?s)items: reads @parent\.id, which is personal and dropped.*items: reads to, which is personal and dropped",
        ),
        (
            NAMED + '[privacy]\npersonal = ["game"]\n' + GOOD_TABLE,
            r"\{game\}: reads game, which is personal and dropped",
        ),
        (
            NAMED
            + '[privacy]\npersonal = ["cart.items.to", { path = "who", become = "masked" }]\n'
            + EXPLODED
            + '[[tables]]\nname = "a"\ncolumns = [{ name = "items", type = "array<struct<to: string>>", path = "cart.items" }, '
            + '{ name = "who", type = "struct<x: map, n: array<long>>" }]\n',
            r"(?s)table a: columns\.items: has the field to, which is personal and dropped"
            r".*table a: columns\.who: has the field n as long, but it is personal, and its values become texts",
        ),
        (GOOD + 'mode = "merge"', r"mode: .*needs a section `merge`"),
        ('overwritten_below = {"in/" = "never"}\n' + GOOD, r"overwritten_below\.in/: .*'replace'; got 'never'"),
        ('overwritten = "never"\n' + GOOD, r"overwritten: .*'append', 'ignore' or 'replace'; got 'never'"),
        (
            GOOD + '[schedules.night]\njob = "compact"\nat = "2:30"',
            r"schedules\.night\.at: must be daily 04:00, .*got '2:30'",
        ),
        (
            GOOD + '[schedules.night]\njob = "compact"\nat = "daily 02:30"\nzone = "Mars/Base"',
            r"schedules\.night\.zone: must be a time zone's name",
        ),
        (
            GOOD + '[schedules.night]\njob = "maintain"\nat = "daily 02:30"\ngroup = "default"',
            r"schedules\.night: group: the job maintain has no such setting",
        ),
        (
            GOOD + '[schedules.night]\njob = "compact"\nat = "daily 02:30"\ngroup = "defualt"',
            r"schedules\.night\.group: no table is in the group 'defualt' \(did you mean default\?\)",
        ),
        (
            GOOD + '[schedules.Night]\njob = "compact"\nat = "never"',
            r"schedules: 'Night' must be words of lowercase letters",
        ),
        ('name = "s"\n[[tables]]\nname = "Big"', r"name 'Big' must be lowercase letters"),
        ('name = "s"\n[[tables]]\nname = "{@key.game}"', r"table \{@key.game\}: the keys do not contain @key.game"),
        ('name = "s"\n[[tables]]\nname = "{@metadata.Game}"', r"@metadata\. needs one plain name"),
        ('name = "s"\n[envelope]\nkey = "in/{a}{b}/"\n[[tables]]\nname = "a"', r"envelope.key: .*follows another name"),
        ('name = "s"\n[[tables]]\nname = "../up"', r"must be lowercase letters"),
        ('name = "s"\n[[tables]]\nname = "a"\nvalues = "["', r"is not a regular expression"),
        ('name = "s"\n[[tables]]\nname = "a"\ncolumns = [{name = "_x"}]', r"column _x: name: must be a letter"),
        (
            'name = "s"\n[[tables]]\nname = "a"\ncolumns = [{name = "x", type = "words"}]',
            r"column x: type: .*got 'words'",
        ),
        (
            'name = "s"\n[[tables]]\nname = "a"\ncolumns = [{name = "x", path = "a..b"}]',
            r"column x: path: a key is missing here\n    a\.\.b\n      \^$",
        ),
        ('name = "s"\n[[tables]]\nname = "a"\ncolumns = [{name = "x"}, {name = "X"}]', r"names a column twice: x"),
        ('name = "s"\n[[tables]]\nname = "a"\npartitions = ["x"]', r"partitions: x is not a declared column"),
        (
            'name = "s"\n[[tables]]\nname = "a"\ncolumns = [{name = "x", type = "map"}]\npartitions = ["x"]',
            r"partitions: x is map, which cannot name a folder",
        ),
        (
            'name = "s"\n[[tables]]\nname = "a"\ncolumns = [{name = "x", type = "double"}]\npartitions = ["x"]',
            r"partitions: x is double, which cannot name a folder",
        ),
        (
            'name = "s"\n[[tables]]\nname = "a"\ncolumns = [{name = "x", type = "float"}]\ndedupe = { by = ["x"] }',
            r"dedupe: x is float, which Java and Python write differently; make it a decimal or string",
        ),
        (
            'name = "s"\n[[tables]]\nname = "a"\ncolumns = [{name = "x", type = "map"}]\ndedupe = { by = ["x"] }',
            r"dedupe: x is map, whose keys have no order; make it json",
        ),
        (
            'name = "s"\n[[tables]]\nname = "a"\ntransform = "a:f"\ncolumns = [{name = "x", type = "binary"}]\n'
            'dedupe = { by = ["x"] }',
            r"dedupe: x is binary, and its bytes may be no text; make it a string",
        ),
        (
            'name = "s"\n[[tables]]\nname = "a"\ncolumns = [{name = "x", type = "binary", expression = "unhex(y)"}]\n'
            'dedupe = { by = ["x"] }',
            r"dedupe: x is binary, and its bytes may be no text; make it a string",
        ),
        (
            'name = "s"\n[[tables]]\nname = "a"\ncolumns = [{name = "x"}]\npartitions = ["x"]\npartition_values = {x = "["}',
            r"partition_values: x is not a regular expression",
        ),
        (
            'name = "s"\n[[tables]]\nname = "a"\ncolumns = [{name = "at", type = "timestamp"}]\n'
            'event_time = { column = "at", oldest_days = inf, ahead_hours = 1e9 }',
            r"(?s)oldest_days: must be at most 3650000.*ahead_hours: must be at most 87600000",
        ),
        (
            'name = "s"\n[[tables]]\nname = "a"\ncolumns = [{name = "event_time"}]\nevent_time = {}',
            r"event_time: event_time is not a declared column of type timestamp",
        ),
        (
            'name = "s"\n[[tables]]\nname = "a"\ncolumns = [{name = "x", path = "y", expression = "z"}]',
            r"has an expression",
        ),
        (
            TWO + 'cluster_by = ["x"]\npartitions = ["x"]',
            r"cluster_by: cannot be combined with partitions",
        ),
        (
            TWO + 'cluster_by = ["x", "x"]',
            r"cluster_by: must be at most 4 columns, each once",
        ),
        (
            TWO + 'cluster_by = ["y"]',
            r"cluster_by: y is not a declared column",
        ),
        (
            TWO + 'cluster_by = ["m"]',
            r"cluster_by: m is map",
        ),
        (
            TWO + 'cluster_by = ["x"]\ncompaction = { order_by = ["x"] }',
            r"cluster_by: OPTIMIZE orders the rows",
        ),
        ('name = "s"\n[[tables]]\nname = "a"\n[[tables]]\nname = "a"', r"a: is declared twice"),
    ],
)
def test_a_mistake_is_named_with_its_place_and_what_would_be_right(text: str, says: str) -> None:
    assert re.search(says, problems({"service.toml": text}))


PYTHON = re.compile(r"[\[{]'|\bTrue\b|\bFalse\b|\bNone\b|<class|datetime|dictionary|tuple|instance of")


@pytest.mark.parametrize("given", ["true", "7", '"x"', "1979-05-27", "[1, 2]", '[{ a = "b" }]', "{ a = 1 }"])
def test_a_value_of_another_kind_is_told_in_the_words_of_the_file(given: str) -> None:
    said = [problems({"service.toml": f'name = "s"\ntables = {given}'})]
    for of, model in (("", Service), ("[[tables]]\n", Table)):
        for name in model.model_fields.keys() - {"tables"}:
            named = "" if name == "name" else 'name = "a"\n'
            with suppress(InvalidConfiguration):  # some fields take it
                parse_service({"service.toml": f"{of}{named}{name} = {given}\n" + ("" if of else GOOD_TABLE)})
                continue
            said.append(problems({"service.toml": f"{of}{named}{name} = {given}\n" + ("" if of else GOOD_TABLE)}))
    assert [one for one in said if PYTHON.search(one)] == []


def test_a_table_in_one_bracket_is_told_how_to_be_written() -> None:
    said = problems({"service.toml": 'name = "s"\n[tables]\nname = "a"'})
    assert "service.toml: tables: must be a list (write [[tables]] before each, in two brackets)" in said


def test_all_mistakes_of_all_files_are_told_at_once() -> None:
    said = problems({"service.toml": 'nam = "x"', "tables/a.toml": "=", "tables/b.toml": 'name = "B"'})
    assert re.search(r"tables/a\.toml:1: is not TOML", said)
    assert re.search(r"tables/b\.toml:1: table B: name 'B'", said)
    assert re.search(r"service\.toml:1: nam: is unknown \(did you mean name\?\)", said)


def test_declarations_are_read_from_a_folder(tmp_path: Path) -> None:
    (tmp_path / "service.toml").write_text('name = "studio"')
    (tmp_path / "tables").mkdir()
    (tmp_path / "tables" / "a.toml").write_text('name = "a"')
    service: Service = load_service(str(tmp_path))
    assert [table.name for table in service.tables] == ["a"]


def test_a_place_without_declarations_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InvalidConfiguration, match=r"has no service\.toml"):
        load_service(str(tmp_path))
    with pytest.raises(InvalidConfiguration, match="does not exist"):
        load_service(str(tmp_path / "nowhere"))


class FakeS3:
    """Two objects in a bucket, and one that is no declaration."""

    objects: ClassVar = {
        "cfg/service.toml": b'name = "studio"',
        "cfg/tables/a.toml": b'name = "a"',
        "cfg/notes.txt": b"?",
    }

    def get_paginator(self, _: str) -> FakeS3:
        return self

    def paginate(self, *, Bucket: str, Prefix: str) -> list[dict[str, object]]:  # noqa: N803 (boto3's names)
        assert (Bucket, Prefix) == ("bucket", "cfg/")
        return [{"Contents": [{"Key": key} for key in self.objects]}]

    def get_object(self, *, Bucket: str, Key: str) -> dict[str, object]:  # noqa: N803
        import io

        return {"Body": io.BytesIO(self.objects[Key])}


def test_declarations_are_read_from_s3() -> None:
    assert [t.name for t in load_service("s3://bucket/cfg", s3=FakeS3()).tables] == ["a"]


def test_one_file_in_s3_is_read_by_its_name_without_a_listing() -> None:
    class OneFile(FakeS3):
        objects: ClassVar = {"assets/1234.toml": GOOD.encode()}

        def get_paginator(self, _: str) -> FakeS3:
            raise AssertionError("it may be forbidden to list")

        def head_object(self, *, Bucket: str, Key: str) -> dict[str, object]:  # noqa: N803
            return {"ETag": f'"{hash(self.objects[Key])}"'}

    place = "s3://bucket/assets/1234.toml"
    assert [t.name for t in load_service(place, s3=OneFile()).tables] == ["{game}"]
    assert fingerprint(place, s3=OneFile()) == fingerprint(place, s3=OneFile())


@pytest.mark.parametrize(
    ("before", "after", "wider"),
    [
        ("int", "long", True),
        ("int", "double", True),
        ("float", "double", True),
        ("int", "decimal(10,0)", True),
        ("int", "decimal(10,2)", False),
        ("long", "decimal(22,2)", True),
        ("decimal(9,2)", "decimal(11,4)", True),
        ("decimal(9,2)", "decimal(11,1)", False),
        ("long", "double", False),
        ("long", "int", False),
        ("string", "long", False),
        ("int", "int", False),
    ],
)
def test_a_type_is_wider_if_it_holds_every_value_of_the_other(before: str, after: str, wider: bool) -> None:
    assert widens(before, after) is wider


def test_what_is_wrong_between_sections_is_told_with_what_is_wrong_within_one() -> None:
    texts = {
        "service.toml": (
            "name = 1\nnew_tables_per_day = -1\n[schedules.night]\njob = 'compact'\nat = 'daily 02:30'\ngroup = 'nobody'"
        ),
        "tables/a.toml": 'name = "{@key.game}"',
        "tables/b.toml": 'name = "b"',
        "tables/c.toml": 'name = "b"',
    }
    with pytest.raises(InvalidConfiguration) as refused:
        parse_service(texts)
    said = str(refused.value)
    for one in (
        "name: ",
        "new_tables_per_day",
        "no table is in the group",
        "the keys do not contain @key.game",
        "is declared twice",
    ):
        assert one in said


def test_everything_that_is_wrong_with_a_table_is_told_at_once_and_without_python() -> None:
    text = """
    name = "games"
    [[tables]]
    name = "a-b"
    columns = [{ name = "x" }, { name = "X" }, { name = "m", type = "map" }]
    partitions = ["day", "m"]
    partition_values = { hour = "[" }
    cluster_by = ["y"]
    dedupe = { by = ["id"], days = 3 }
    expectations = { _mine = "x > 1" }
    event_time = { column = "at" }
    """
    with pytest.raises(InvalidConfiguration) as refused:
        parse_service({"service.toml": text})
    said = [str(problem).partition(": table a-b: ")[2] for problem in refused.value.problems]
    assert said == [
        "name 'a-b' must be lowercase letters, digits and _, with {field} for a value of the record",
        "names a column twice: x (Spark ignores case)",
        "partitions: day is not a declared column",
        "partitions: m is map, which cannot name a folder",
        "partition_values: hour is not one of the partitions",
        "partition_values: hour is not a regular expression: unterminated character set at position 0",
        "cluster_by: cannot be combined with partitions",
        "cluster_by: y is not a declared column",
        "dedupe: id is not a declared column",
        "expectations: _mine begins with _, which is reserved for forebay",
        "event_time: at is not a declared column of type timestamp",
    ]


def test_a_table_may_not_be_called_as_what_else_lies_in_a_lake() -> None:
    with pytest.raises(InvalidConfiguration, match="is the folder of a lake's declarations"):
        parse_service({"service.toml": 'name = "s"\n[[tables]]\nname = "declarations"'})
