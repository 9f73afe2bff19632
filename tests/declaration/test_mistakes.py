"""What a person who writes declarations gets wrong: each mistake is named with its line, its name and the right way."""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from forebay.declaration.loading import load_service, parse_service
from forebay.declaration.mistakes.hints import LOOKS
from forebay.errors import InvalidConfiguration


def said(text: str, **tables: str) -> list[str]:
    texts = {"service.toml": text, **{f"tables/{name}.toml": one for name, one in tables.items()}}
    with pytest.raises(InvalidConfiguration) as refused:
        parse_service(texts)
    return [str(problem) for problem in refused.value.problems]


def table(text: str) -> str:
    return f'name = "s"\n[[tables]]\nname = "sales"\n{text}\n'


COLUMN = 'columns = [{ name = "day", type = "date" }]\n'


@pytest.mark.parametrize("key", ["partitions", "cluster_by"])
def test_a_setting_behind_a_header_is_not_taken_for_a_condition(key: str) -> None:
    (one,) = said(table(f'{COLUMN}[tables.where]\nevent = "sale"\n{key} = ["day"]'))
    assert one == (
        f"service.toml:7: table sales: where.{key}: is a setting of the table, but the [tables.where] before it makes it part "
        f"of `where` (move it above [tables.where], or write where = {{ ... }} in one line; for a field of this name write "
        f"'\"{key}\"' = ...)"
    )


def test_the_same_in_a_file_of_its_own_and_behind_expectations() -> None:
    (one,) = said('name = "s"', a=f'name = "a"\n{COLUMN}[expectations]\ncheap = "n < 1"\nkeep_record = "true"\n')[:1]
    assert one.startswith("tables/a.toml:5: table a: expectations.keep_record: is a setting of the table")
    assert "[expectations] before it" in one


@pytest.mark.parametrize("where", ['where = { mode = "fast" }', '[tables.where]\n\'"mode"\' = "fast"'])
def test_a_field_may_have_the_name_of_a_setting(where: str) -> None:
    (only,) = parse_service({"service.toml": table(where)}).tables
    assert list(only.where) == ["mode"]


@pytest.mark.parametrize(
    ("key", "where"),
    [
        ('order_by = ["day"]', "belongs inside `compaction = { ... }`"),
        ('group = "night"', "belongs inside `compaction = { ... }`"),
        ("snapshot = true", "belongs inside `merge = { ... }`"),
        ('keys = ["day"]', "belongs inside `undeclared = { ... }` or inside `merge = { ... }`"),
        ("change_feed = true", "belongs inside `merge = { ... }`"),
        ('format = "csv"', "belongs in service.toml, inside `envelope`"),
        ("new_tables_per_day = 3", "belongs in service.toml, above all [[tables]]"),
        ("oldest_days = 3", "belongs inside `event_time = { ... }`"),
        ("oder_by = []", "did you mean order_by, inside `compaction = { ... }`?"),
        ("partition = []", "did you mean partitions?"),
        ("filter = 'x'", "did you mean where?"),
        ('freshness = "5 min"', "it is a setting of the deployment: cdk deploy -c freshness=..."),
    ],
)
def test_a_hint_says_where_a_key_belongs(key: str, where: str) -> None:
    (one,) = said(table(key))
    assert one == f"service.toml:4: table sales: {key.split()[0]}: is unknown ({where})"


@pytest.mark.parametrize(
    ("written", "shown"),
    [
        ('columns = { day = "date" }', 'such as columns = [{ name = "day", type = "date" }]'),
        ('columns = ["day"]', 'such as columns = [{ name = "day", type = "date" }]'),
        ('columns = "day"', 'such as columns = [{ name = "day", type = "date" }]'),
        ('where = "sale"', 'such as where = { event = "purchase" }'),
        ('dedupe = ["event_id"]', 'such as dedupe = { by = ["event_id"] }'),
        ('event_time = "at"', 'such as event_time = { column = "at", otherwise = "landed" }'),
        ('merge = "sales_now"', 'such as merge = { into = "players", keys = ["player"], sequence_by = ["at"] }'),
        ('compaction = "rewrite"', 'such as compaction = { way = "rewrite" }'),
        ('undeclared = "rescued"', 'such as undeclared = { become = "rescued" }'),
        ('partitions = "day"', 'write partitions = ["day"]'),
        ('dedupe = { by = "event_id" }', 'write by = ["event_id"]'),
    ],
)
def test_a_setting_of_another_shape_is_shown_in_the_right_one(written: str, shown: str) -> None:
    assert [one for one in said(table(written)) if one.endswith(f"({shown})")]


def test_a_rollup_is_shown_in_its_own_shape() -> None:
    rollup = '[[rollups]]\nname = "r"\ntables = ["sales"]\n'
    told = said(f'{table("")}{rollup}group_by = ["day"]\ncolumns = ["sum(n)"]\n')
    assert [one.rpartition(" (")[2] for one in told] == [
        'such as group_by = { day = "date(at)" })',
        'such as columns = { revenue = "sum(amount)" })',
    ]


@pytest.mark.parametrize("shown", LOOKS["Table"].values())
def test_what_is_shown_has_the_right_shape(shown: str) -> None:
    with suppress(InvalidConfiguration):
        parse_service({"service.toml": table(shown)})
        return
    assert not any("must be" in one for one in said(table(shown)))


@pytest.mark.parametrize(
    ("section", "says"),
    [
        ("where = { event = { eq = 'a' } }", "where.event.eq: is unknown (did you mean one_of?)"),
        ("where = { n = { gt = 3 } }", "where.n.gt: is unknown (did you mean above?)"),
        ("where = { n = { notnull = true } }", "where.n.notnull: is unknown (did you mean exists?)"),
        ("where = { n = { regex = 'a' } }", "where.n.regex: is unknown (did you mean matches?)"),
        ("columns = [{ name = 'a', source = 'b' }]", "column a: source: is unknown (did you mean path?)"),
        ("columns = [{ name = 'a', format = 'b' }]", "column a: format: is unknown (did you mean formats?)"),
        (
            "columns = [{ name = 'a', nullable = true }]",
            "column a: nullable: is unknown (the settings here are name, type, path, formats, unit, expression)",
        ),
        (
            "expectations = { x = { check = 'n > 1', otherwise = 'drop' } }",
            "expectations.x.otherwise: is unknown (did you mean on_violation?)",
        ),
    ],
)
def test_a_hint_for_a_key_in_a_section_names_a_setting_of_that_section(section: str, says: str) -> None:
    assert said(table(section)) == [f"service.toml:4: table sales: {says}"]


def test_a_setting_of_the_table_inside_a_section_is_sent_out_of_it() -> None:
    (one,) = said(table(f'{COLUMN}[tables.compaction]\npartitions = ["day"]'))
    assert one == (
        "service.toml:6: table sales: compaction.partitions: is unknown (belongs outside this section, before its header)"
    )


@pytest.mark.parametrize(
    ("header", "line", "written"),
    [
        ("[tables.expectations]", 2, "[expectations] in place of [tables.expectations]"),
        ("[tables.where]", 2, "[where] in place of [tables.where]"),
        ("[[tables]]", 2, "its settings without [[tables]]"),
    ],
)
def test_a_header_of_service_toml_in_the_file_of_a_table_is_shown_as_it_is_written_there(
    header: str, line: int, written: str
) -> None:
    (one,) = said('name = "s"', a=f'name = "a"\n{header}\nlevel = "level > 0"\n')
    assert one == f"tables/a.toml:{line}: table a: tables: is unknown (this is one table already: write {written})"


def test_a_rollup_in_a_file_of_its_own_needs_no_header() -> None:
    texts = {"service.toml": table(""), "rollups/r.toml": '[[rollups]]\nname = "r"\n'}
    with pytest.raises(InvalidConfiguration) as refused:
        parse_service(texts)
    assert "(this is one rollup already: write its settings without [[rollups]])" in str(refused.value)


def test_a_setting_of_feeds_is_sent_into_one_of_them() -> None:
    (one,) = said('name = "s"\ncomplete = { quiet_minutes = 5 }\n[[tables]]\nname = "a"\n')
    assert one.endswith("is unknown (belongs inside `envelope = { ... }` or inside one of the [[feeds]])")


def test_a_place_that_is_none_is_shown_once() -> None:
    (one,) = said('name = "s"\nafter_load = { move = "archive/landed/" }\n[[tables]]\nname = "a"\n')
    assert one.endswith("move: is not a place in S3, such as s3://studio-archive/landed/; got 'archive/landed/'")


def test_a_wrong_column_hides_nothing_of_its_table() -> None:
    wrong = 'columns = [\n  { name = "at", type = "timestmp" },\n  { name = "m", type = "map" },\n]\n'
    found = said(table(wrong + 'event_time = { column = "at" }\npartitions = ["m", "nope"]'))
    assert [one.partition(" (")[0][:70] for one in found] == [
        "service.toml:5: table sales: column at: type: must be one of string, l",
        "service.toml:9: table sales: partitions: m is map, which cannot name a",
        "service.toml:9: table sales: partitions: nope is not a declared column",
    ]


def test_a_misspelt_treatment_does_not_hide_the_secret_that_it_needs() -> None:
    personal = '[privacy]\npersonal = [{ path = "ip", become = "hashed" }]\n'
    first, second = said(f'name = "s"\n{personal}[[tables]]\nname = "a"\n')
    assert first.startswith("service.toml:3: privacy.personal.0.become: must be 'dropped', ")
    assert first.endswith("; got 'hashed' (did you mean token?)")
    assert second.startswith("service.toml:2: privacy: has a token field, so it needs a secret")


def test_of_a_file_that_is_not_toml_nothing_else_is_said() -> None:
    (one,) = said("name = ", a='name = "a"')
    assert one.startswith("service.toml: is not TOML: ")


def test_a_text_without_quotes_is_pointed_at() -> None:
    (one,) = said('name = "s"\n[[tables]]\nname = "a"\nwhere = { type = match_end }\n')
    assert one.splitlines() == [
        'service.toml:4: is not TOML: Invalid value (a text needs quotes: "match_end")',
        "    where = { type = match_end }",
        "                     ^",
    ]


def test_what_else_is_no_toml_is_pointed_at_where_its_line_is_short() -> None:
    (one,) = said('name = "s"\n[[tables]\n')
    assert one.splitlines()[1:] == ["    [[tables]", "            ^"]
    (long,) = said(f'name = "s"\n# {"x" * 300}\nother = {"1" * 300} 2\n')
    assert (long[:15], len(long.splitlines())) == ("service.toml:3:", 1)


def test_a_table_that_is_declared_twice_is_named_with_both_places() -> None:
    (one,) = said('name = "s"\n[[tables]]\nname = "a"\nwhere = { x = 1 }', b='name = "a"\nwhere = { x = 1 }')
    assert one == (
        "tables/b.toml:1: table a: is declared twice with the same `where`, also at service.toml:2: table a (remove one)"
    )


@pytest.mark.parametrize(
    "name",
    [
        *("tables/a.yaml", "tables/a.yml", "tables/a.json", "tables/more/a.toml", "service.yaml"),
        *("tables/A.TOML", "Tables/a.toml", "table/a.toml", "rollup/a.toml", "tables.toml", "rollups.toml"),
    ],
)
def test_a_file_that_would_be_passed_over_is_an_error(tmp_path: Path, name: str) -> None:
    (tmp_path / "service.toml").write_text('name = "s"\n[[tables]]\nname = "a"\n')
    (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
    (tmp_path / name).write_text("")
    with pytest.raises(InvalidConfiguration, match=rf"{name}: is not read \(declarations are service\.toml, "):
        load_service(str(tmp_path))


def test_a_folder_named_like_a_declaration_is_not_read(tmp_path: Path) -> None:
    (tmp_path / "service.toml").write_text(table(""))
    (tmp_path / "tables" / "a.toml").mkdir(parents=True)
    with pytest.raises(InvalidConfiguration, match=r"tables/a\.toml: is not read \(declarations are "):
        load_service(str(tmp_path))


def test_a_byte_order_mark_is_no_part_of_a_declaration(tmp_path: Path) -> None:
    """Some editors write one."""
    file = tmp_path / "service.toml"
    file.write_text(table(""))
    plain = load_service(str(tmp_path))
    file.write_bytes(b"\xef\xbb\xbf" + table("").encode())
    assert load_service(str(tmp_path)) == plain


@pytest.mark.parametrize("place", ["", "service.toml"])
@pytest.mark.parametrize("text", [table("# caf\xe9").encode("latin-1"), table("").encode("utf-16")])
def test_a_declaration_in_another_encoding_is_named(tmp_path: Path, text: bytes, place: str) -> None:
    (tmp_path / "service.toml").write_bytes(text)
    with pytest.raises(InvalidConfiguration, match=r"^service\.toml: is not UTF-8 \(save it as UTF-8\)$"):
        load_service(str(tmp_path / place))


@pytest.mark.parametrize("place", ["tables", "tables/a.toml"])
def test_a_part_of_a_service_is_not_taken_for_one(tmp_path: Path, place: str) -> None:
    (tmp_path / "service.toml").write_text(table(""))
    (tmp_path / "tables").mkdir()
    (tmp_path / "tables/a.toml").write_text('name = "a"\nwhere = { event = "a" }\n')
    with pytest.raises(InvalidConfiguration) as refused:
        load_service(str(tmp_path / place))
    assert str(refused.value) == f"{tmp_path}/{place}: is a part of a service (name the folder {tmp_path})"


def test_a_file_that_is_no_toml_is_not_taken_for_declarations(tmp_path: Path) -> None:
    (tmp_path / "samples.jsonl").write_text("{}")
    with pytest.raises(InvalidConfiguration, match=r"samples\.jsonl: is neither a folder nor a \.toml file"):
        load_service(str(tmp_path / "samples.jsonl"))


def test_problems_of_a_file_of_another_name_show_that_name(tmp_path: Path) -> None:
    (tmp_path / "games.toml").write_text(
        'name = "s"\nnmae = 1\n[[tables]]\nname = "all"\n[[tables]]\nname = "all"\n', encoding="utf-8"
    )
    with pytest.raises(InvalidConfiguration) as invalid:
        load_service(str(tmp_path / "games.toml"), strict=True)
    assert "games.toml:2: nmae: is unknown" in str(invalid.value)
    assert "service.toml" not in str(invalid.value)


@pytest.mark.parametrize(
    ("typed", "kind"),
    [
        ("bigint", "long"),
        ("integer", "int"),
        ("varchar", "string"),
        ("text", "string"),
        ("datetime", "timestamp"),
        ("bool", "boolean"),
        ("BIGINT", "long"),
        ("numeric(12,2)", "decimal(12,2)"),
    ],
)
def test_the_type_names_that_people_type_are_understood(typed: str, kind: str) -> None:
    (only,) = parse_service({"service.toml": table(f'columns = [{{ name = "x", type = "{typed}" }}]')}).tables
    assert only.columns[0].type == kind


@pytest.mark.parametrize(
    ("typed", "says"),
    [
        ("object", "struct<x: long, y: string>, json, or map"),
        ("array", "array<string>, or json"),
        ("number", "double, or decimal(18,2)"),
        ("uuid", "string"),
        ("varchar(20)", "string"),
        ("double precision", "double"),
        ("number(10,2)", "double, or decimal(18,2)"),
        ("array<strin>", "string"),
        ("array<list>", "array<string>, or json"),
        ("text[]", "array<string>"),
        ("object[]", "array<string>, or json"),
        ("variant", "json"),
        ("map<string,string>", "map"),
    ],
)
def test_a_type_that_is_none_gets_one_suggested(typed: str, says: str) -> None:
    (one,) = said(table(f'columns = [{{ name = "x", type = "{typed}" }}]'))
    assert f"(did you mean {says}?)" in one


def test_a_path_of_jsonpath_is_read_from_the_record() -> None:
    paths = ['"$.player.level"', """'"$".x'""", '"$id"']
    columns = ", ".join(f'{{ name = "c{at}", path = {path} }}' for at, path in enumerate(paths))
    (only,) = parse_service({"service.toml": table(f"columns = [{columns}]")}).tables
    assert [column.source for column in only.columns] == ["player.level", '"$".x', "$id"]


@pytest.mark.parametrize("path", ["$", "$[0].a", "$['a']", "$..a", "items[*].sku"])
def test_what_else_jsonpath_has_is_refused(path: str) -> None:
    assert len(said(table(f'columns = [{{ name = "a", path = "{path}" }}]'))) == 1


def test_jsonl_is_json_and_the_hint_says_so() -> None:
    (one,) = said('name = "s"\nenvelope = { format = "jsonl" }\n[[tables]]\nname = "a"\n')
    assert one.endswith("; got 'jsonl' (did you mean json?)")


LINES = st.sampled_from(
    [
        "[[tables]]",
        "[tables.where]",
        "[tables.expectations]",
        "[privacy]",
        "[[feeds]]",
        'name = "x"',
        "name = 3",
        'where = "x"',
        'partitions = ["day"]',
        'mode = "merge"',
        "merge = { into = 1 }",
        'columns = [3, "x", { name = 1 }, { name = "at", type = "x" }, { name = "day", type = "date" }]',
        'personal = [{ path = "a", become = "hashed" }, 3]',
        'envelope = { records = 3, format = "jsonl" }',
        "compaction = { files = 'x', partitions = [] }",
        'schedules = { a = { job = "x" } }',
        "tables = 3",
        'x = """',
    ]
)


@given(st.lists(LINES, max_size=9))
def test_whatever_a_file_says_it_is_understood_or_its_mistakes_are_named(lines: list[str]) -> None:
    problems = None
    try:
        parse_service({"service.toml": "\n".join(lines)}, strict=True)
    except InvalidConfiguration as refused:
        problems = refused.problems
    assert problems != (), "a person learns nothing from it"


def test_two_mistakes_of_one_section_are_both_named() -> None:
    text = 'name = "s"\nenvelope = { records = 3, format = "jsonl" }\n[[tables]]\nname = "a"\n'
    assert [one.partition(": ")[2].partition(":")[0] for one in said(text)] == ["envelope.records", "envelope.format"]
