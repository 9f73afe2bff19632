"""A record of as many levels as may be is taken by all that meets it, and one of a level more by nothing."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pytest
from pyspark.sql import types as T

from forebay.content.limits import Limits
from forebay.declaration.form import Explosion, Form, Forms
from forebay.declaration.loading import parse_service
from forebay.declaration.personal import PersonalField
from forebay.errors import InvalidConfiguration
from forebay.nesting import DEEPEST
from forebay.operate.trying.samples import read_samples
from forebay.operate.trying.trial import try_out
from forebay.privacy.text import treated_text
from forebay.privacy.together import treated_texts
from forebay.record.conform import Records, writable
from forebay.record.growth import Rules, grown
from forebay.record.kind import Struct
from forebay.record.number import read_json, write_json
from forebay.source.columns import columns_of
from tests.content.memory import read, read_one

ROOT = Path(__file__).resolve().parent.parent


def of_levels(levels: int, kind: str) -> str:
    """A record whose innermost value is 1.50."""
    opens, closes = {"objects": ('{"a":', "}"), "lists": ("[", "]")}[kind]
    inner = levels - 1
    return f'{{"game":"g","x":{opens * inner}1.50{closes * inner}}}'


KINDS = pytest.mark.parametrize("kind", ["objects", "lists"])


@KINDS
def test_the_reader_takes_the_deepest_and_refuses_what_is_deeper(kind: str) -> None:
    deepest, deeper = of_levels(DEEPEST, kind), of_levels(DEEPEST + 1, kind)
    reading = read_one(f"{deepest}\n{deeper}\n".encode())
    assert reading.of("file.json") == [deepest]
    assert [(row.value, row.problem) for row in reading.refused] == [(deeper, "too-deep")]


def test_no_option_lets_deeper_records_in() -> None:
    with pytest.raises(InvalidConfiguration, match=f"max_depth: {DEEPEST + 1} is above {DEEPEST}"):
        Limits(max_depth=DEEPEST + 1)


@KINDS
def test_what_surrounds_a_record_counts_as_one_level_more(kind: str) -> None:
    inside = Forms(forms=(Form(inside=(("items",),)),))
    exploded = Forms(forms=(Form(exploded=(Explosion(("items",), ("x",)),)),))
    for levels, refused in ((DEEPEST - 1, []), (DEEPEST, ["too-deep"])):
        text = of_levels(levels, kind)[:-1] + ',"items":[{"b":1}]}'
        whole = [row.value for row in read({"a.json": text.encode()}, forms=inside).documents if "items" in row.value]
        assert whole == ([text] if refused else [])
        reading = read({"a.json": text.encode()}, forms=exploded)
        assert ([row.problem for row in reading.refused], len(reading.documents)) == (refused, 2 - len(refused))


@KINDS
def test_the_deepest_record_is_treated_and_keeps_its_other_fields(kind: str) -> None:
    text = of_levels(DEEPEST, kind)[:-1] + ',"email":"x@y.org"}'
    fields = (PersonalField(("email",), "dropped"),)
    kept = of_levels(DEEPEST, kind)
    assert treated_text(text, fields) == kept
    assert treated_texts(pa.array([text]), fields, b"").to_pylist() == [kept]


@KINDS
def test_the_deepest_record_has_its_columns_and_is_written_again(kind: str) -> None:
    text = of_levels(DEEPEST, kind)
    some = Records(pa.array([text]), Rules())
    done = some.conformed(writable(grown(Struct(), some.shape(), Rules())))
    assert (done.columns.to_pylist()[0]["game"], done.rescued.to_pylist()) == ("g", [None])
    assert write_json(read_json(text)) == text
    schema = T.StructType([T.StructField("x", T.StringType())])
    assert columns_of([text], schema, None).arrays[0].to_pylist() == [text[len('{"game":"g","x":') : -1]]  # type: ignore[arg-type]


def test_any_depth_is_written_and_what_python_cannot_read_is_a_wrong_value() -> None:
    deep: object = 1
    for _ in range(5000):
        deep = [deep]
    assert write_json(deep) == "[" * 5000 + "1" + "]" * 5000
    with pytest.raises(ValueError, match="nested too deep"):
        read_json("[" * 100_000 + "]" * 100_000)


@KINDS
def test_a_trial_takes_what_the_job_takes(kind: str, tmp_path: Path) -> None:
    service = parse_service(
        {"service.toml": 'name = "s"\n[[tables]]\nname = "{game}"\ncolumns = [{ name = "x", type = "string" }]'}
    )
    (tmp_path / "a.json").write_text(of_levels(DEEPEST, kind) + "\n" + of_levels(DEEPEST + 1, kind) + "\n")
    trial = try_out(service, read_samples([str(tmp_path)], service))
    assert [(table.name, table.rows, table.rescued) for table in trial.tables] == [("g", 1, 0)]
    assert [row["reason"] for row in trial.refused] == ["too-deep"]
