"""What an operator does with declarations: begin, add, compare, put in force."""

from __future__ import annotations

import json
import re
import tomllib
from pathlib import Path

import jsonschema
import pytest

from forebay.declaration.loading import load_service, parse_service
from forebay.errors import InvalidConfiguration
from forebay.lake.objects import open_objects
from forebay.operate.declaring.declarations import (
    begin,
    editor_schema,
    gets_few,
    impact,
    push,
    shares_columns,
    shares_names,
    texts_in_folder,
    texts_in_place,
    with_table,
)

BEFORE = """
name = "studio"
[[tables]]
name = "purchases"
where = { event = "purchase" }
columns = [{ name = "price", type = "double" }, { name = "old" }]
[[tables]]
name = "{game}"
"""


def changes(before: str, after: str) -> list[str]:
    return impact(parse_service({"service.toml": before}), parse_service({"service.toml": after}))


def test_the_same_declarations_change_nothing() -> None:
    assert changes(BEFORE, BEFORE + "# a comment\n") == []


def test_every_change_is_said_with_what_it_means() -> None:
    after = BEFORE.replace("double", "long").replace('{ name = "old" }', '{ name = "day", type = "date" }')
    after = after.replace('name = "{game}"', 'name = "{game}"\nkeep_record = true\npartitions = []')
    assert changes(BEFORE, after) == [
        'table purchases: column price: type was "double", is "long"',
        "table purchases: column price: a table whose column is not of type long fails until `forebay schema settle`; --lake "
        "shows these tables",
        "table purchases: column day: is new; `forebay schema settle` fills it for old rows",
        "table purchases: column old: is no longer declared; its field is treated as an undeclared one",
        "table {game}: keep_record was false, is true",
    ]


def test_of_a_changed_layout_it_is_said_what_brings_existing_tables_there() -> None:
    columns = '[{ name = "price", type = "double" }, { name = "old" }]'
    other = BEFORE.replace(columns, f'{columns}\npartitions = ["old"]')
    assert changes(BEFORE, other) == [
        'table purchases: partitions was [], is ["old"]',
        "table purchases: tables with other partitions keep them until `forebay schema settle`",
    ]
    clustered = BEFORE.replace(columns, f'{columns}\ncluster_by = ["price"]')
    assert changes(BEFORE, clustered)[1:] == [
        "table purchases: existing tables stay unchanged until ALTER TABLE ... CLUSTER BY (price)"
    ]


def test_of_a_table_whose_types_may_widen_it_is_said_who_can_still_read_it() -> None:
    before = BEFORE.replace("double", "int")
    said = changes(before, before.replace("where = {", "type_widening = true\nwhere = {"))
    assert said[0] == "table purchases: type_widening was false, is true"
    assert re.search("Delta Lake 4.0.*delta-rs.*typeWidening.*DROP FEATURE", " ".join(said[1:]))
    wider = before.replace("where = {", "type_widening = true\nwhere = {")
    assert changes(wider, wider.replace('"int"', '"long"'))[1:] == [
        "table purchases: column price: existing tables get the wider type with their next rows"
    ]
    assert "is not of type date fails until" in changes(wider, wider.replace('"int"', '"date"'))[-1]


def test_where_the_lake_is_looked_at_nothing_is_guessed_of_tables_that_exist() -> None:
    """Declarations that were wrong for an hour are put right: the tables never had the wrong type."""
    before, after = (parse_service({"service.toml": text}) for text in (BEFORE, BEFORE.replace("double", "long")))
    assert impact(after, before, compared=True) == ['table purchases: column price: type was "long", is "double"']
    partitioned = BEFORE.replace('{ name = "old" }]', '{ name = "old" }]\npartitions = ["old"]')
    other = parse_service({"service.toml": partitioned})
    assert impact(before, other, compared=True) == ['table purchases: partitions was [], is ["old"]']
    clustered = parse_service({"service.toml": partitioned.replace("partitions", "cluster_by")})
    assert impact(before, clustered, compared=True) == [
        'table purchases: cluster_by was [], is ["price"]'.replace("price", "old")
    ]


def test_tables_that_come_go_or_change_places_are_said() -> None:
    first, second = BEFORE.split("[[tables]]\n")[1:]
    swapped = f'name = "studio"\n[[tables]]\n{second}\n[[tables]]\n{first}'
    assert changes(BEFORE, swapped) == []
    asked = second + "where = { event = { exists = true } }\n"
    one, other = f"[[tables]]\n{first}", f"[[tables]]\n{asked}"
    assert changes(f'name = "studio"\n{one}{other}', f'name = "studio"\n{other}{one}') == [
        "tables: are tried in a different order, so records that fit several may go elsewhere",
        "table purchases: gets no record that has game, because {game} comes first",
    ]
    without = f'name = "studio"\n[[tables]]\n{first}'
    assert changes(BEFORE, without)[0].startswith("table {game}: is no longer declared")
    assert changes(without, BEFORE) == ["table {game}: is new; it can adopt matching parked records"]


def test_of_a_table_whose_records_others_take_before_it_is_said() -> None:
    first, second = BEFORE.split("[[tables]]\n")[1:]
    asked = second + 'where = { event = "purchase" }\n'
    swapped = f'name = "studio"\n[[tables]]\n{asked}\n[[tables]]\n{first}'
    assert gets_few(parse_service({"service.toml": BEFORE})) == []
    assert gets_few(parse_service({"service.toml": swapped})) == [
        "table purchases: gets no record that has game, because {game} comes first"
    ]
    with pytest.raises(
        InvalidConfiguration, match=r"table purchases: never gets a record: .*table everything comes first"
    ):
        parse_service({"service.toml": swapped.replace("{game}", "everything")}, strict=True)


def test_what_is_begun_added_and_pushed_is_in_force(tmp_path: Path) -> None:
    folder, place = tmp_path / "mine", open_objects(str(tmp_path / "in-force"))
    begin(folder)
    with_table(folder, "crashes", {"event": "crash"})
    push(texts_in_folder(folder), place)
    assert texts_in_place(place) == texts_in_folder(folder)
    (folder / "tables" / "crashes.toml").unlink()
    push(texts_in_folder(folder), place)
    assert [table.name for table in load_service(str(tmp_path / "in-force")).tables] == ["{game}"]


def test_what_is_wrong_is_not_written_and_not_pushed(tmp_path: Path) -> None:
    begin(tmp_path)
    for wrong in ("Crashes!", "{game}"):
        with pytest.raises(InvalidConfiguration):
            with_table(tmp_path, wrong, {})
    assert not list(tmp_path.glob("tables/*"))
    place = open_objects(str(tmp_path / "in-force"))
    with pytest.raises(InvalidConfiguration, match="is not TOML"):
        push({"service.toml": "="}, place)
    assert texts_in_place(place) == {}


def test_an_editor_can_check_by_the_schema() -> None:
    schema = editor_schema()
    assert schema["additionalProperties"] is False
    table = schema["$defs"]["Table"]["properties"]
    assert {"name", "columns", "expectations", "partitions", "undeclared"} <= table.keys()
    assert all("description" in said for said in table.values())


FAMILY = """
name = "studio"
[[tables]]
name = "{game}_log"
mode = "merge"
columns = [{ name = "id" }, { name = "at", type = "long" }]
merge = { into = "{game}", keys = ["id"], sequence_by = ["at"] }
"""
PLAIN = '[[tables]]\nname = "all_now"\nwhere = { kind = "x" }\n'


def test_a_state_that_may_get_the_name_of_another_table_is_told_with_such_a_name() -> None:
    def told(text: str) -> list[str]:
        return [said.partition("; ")[0] for said in shares_names(parse_service({"service.toml": text}))]

    same = "table {game}_log: its state {game} and the table {game}_log may have the same name, such as a_log"
    assert told(FAMILY) == [same]
    now = FAMILY.replace('"{game}"', '"{game}_now"')
    assert same in "\n".join(changes(now, FAMILY))
    assert told(now) == []
    assert told(now + PLAIN) == [
        "table {game}_log: its state {game}_now and the table all_now may have the same name, such as all_now"
    ]
    only = now.replace('mode = "merge"', 'mode = "merge"\nvalues = "alpha|beta"')
    assert told(only + PLAIN) == []
    twice = f"{now}{now.partition('[[tables]]')[2].join(['[[tables]]', ''])}".replace('"{game}_now"', '"now_{game}"', 1)
    twice = twice.replace('"{game}_log"', '"{game}_changes"', 1)
    state = "its state now_{game} and the state {game}_now may have the same name, such as now_now"
    assert f"table {{game}}_changes: {state}" in told(twice)


def test_a_family_whose_tables_may_belong_to_another_is_told_with_such_a_name() -> None:
    def told(*names: str) -> list[str]:
        tables = (f"[[tables]]\nname = {name}\ncolumns = [{{ name = 'n{at}' }}]\n" for at, name in enumerate(names))
        return [*shares_columns(parse_service({"service.toml": "name = 's'\n" + "".join(tables)}))]

    (said,) = told("'{game}'", "'{kind}'")
    assert said.startswith(
        "table {kind}: {game} is declared earlier and may have a table of the same name, such as a; its"
    )
    assert told("'{game}'", "'{kind}_log'") == []
    assert told("'{game}'", "'{kind}'\nvalues = 'a|b'") == []
    assert told("'{game}_now'", "'{kind}_log'") == []


EXAMPLES = Path(__file__).parents[2] / "examples"
DECLARED = [*EXAMPLES.glob("*/service.toml"), *EXAMPLES.glob("*/rollups/*.toml"), *EXAMPLES.glob("*/tables/*.toml")]


def complaints(text: str, kind: str) -> list[str]:
    validator = jsonschema.Draft202012Validator(editor_schema(kind))
    return [f"{list(error.path)}: {error.message}" for error in validator.iter_errors(tomllib.loads(text))]


@pytest.mark.parametrize("file", sorted(DECLARED), ids=lambda file: str(file.relative_to(EXAMPLES)))
def test_the_schema_accepts_every_example(file: Path) -> None:
    kind = {"rollups": "rollup", "tables": "table"}.get(file.parent.name, "service")
    assert complaints(file.read_text(), kind) == []


@pytest.mark.parametrize(
    "setting",
    [
        'expectations = { cheap = "n < 1", dear = { check = "n > 1" } }',
        'where = { a = 1, b = [1, "x"], c = { not = ["x"] }, d = { not = "x" } }',
        'explode = "cart.items"',
        "compaction = { files = 4 }",
    ],
)
def test_the_schema_accepts_each_way_to_write_a_setting(setting: str) -> None:
    assert complaints(f'name = "a"\n{setting}', "table") == []
    assert complaints(f'name = "s"\n[[tables]]\nname = "a"\n{setting}', "service") == []


def test_the_schema_accepts_personal_fields_by_their_path_alone() -> None:
    text = 'name = "s"\nprivacy = { personal = ["email", { path = "ip", become = "truncated" }] }\n'
    assert complaints(text, "service") == []


def test_the_schema_refuses_what_the_service_refuses() -> None:
    assert complaints('name = "a"\npartition = ["x"]', "table")
    assert complaints('name = "a"\ncolumns = [{ name = "x", typ = "long" }]', "table")
    assert complaints('name = "s"\nenvelope = { format = "jsonl" }', "service")


def test_an_editor_finds_the_schema_beside_the_files(tmp_path: Path) -> None:
    begin(tmp_path)
    with_table(tmp_path, "crashes", {"event": "crash"})
    for file, kind in (("service.toml", "service"), ("tables/crashes.toml", "table")):
        place = re.match(r"#:schema (\S+)\n", (tmp_path / file).read_text())
        assert place is not None
        assert json.loads((tmp_path / file).parent.joinpath(place[1]).read_text()) == editor_schema(kind)
