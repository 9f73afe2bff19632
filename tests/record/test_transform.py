"""A declared function gets the typed columns of records. Each row that it refuses, or fails on, is refused alone."""

from __future__ import annotations

import re
import subprocess
import sys
from decimal import Decimal
from pathlib import Path
from random import Random

import pyarrow as pa
import pytest

from forebay.declaration.loading import parse_service
from forebay.errors import InvalidConfiguration
from forebay.record.apart import check_transforms
from forebay.record.transform import Transform, with_code_version
from forebay.transforms import NoFunction, folders, use_folder
from infra.bundle import package_zip

FUNCTIONS = """
import pyarrow as pa
import pyarrow.compute as pc

constant = 7

def same(rows): return rows
def as_batch(rows): return rows.combine_chunks().to_batches()[0]
def only_amount(rows): return pa.table({"amount": pc.multiply(rows["amount"], 2)})
def inverse(rows):
    for amount in rows["amount"].to_pylist():
        1 // amount
    return rows
def refuses_negative(rows):
    why = pc.if_else(pc.less(rows["amount"], 0), "negative", pa.scalar(None, pa.string()))
    return rows.append_column("_refused", why)
def fewer(rows): return rows.slice(1)
def other_type(rows): return pa.table({"amount": rows["amount"].cast(pa.string())})
def other_column(rows): return rows.append_column("more", rows["amount"])
def as_singles(rows): return pa.table({"amount": rows["amount"].cast(pa.float32(), safe=False)})
def no_table(rows): return [1]
def nothing(rows): return pa.table({"name": pa.nulls(rows.num_rows)})
def imports(rows): import not_there_at_all
def needs_room(rows):
    if rows.num_rows > 2 or 7 in rows["amount"].to_pylist():
        raise MemoryError
    return inverse(rows)
def leaves(rows):
    if 0 in rows["amount"].to_pylist():
        raise SystemExit(3)
    return rows
class Panic(BaseException):
    def __str__(self): raise ValueError("no text")
def panics(rows): raise Panic
def column_twice(rows): return rows.append_column("amount", rows["amount"])
def odd_text(rows): raise ValueError("\\ud800" + "x" * 5000)
def by_pandas(rows):  # integers beside null are doubles there
    amount = rows["amount"]
    return pa.table({"amount": amount.cast(pa.float64(), safe=False) if amount.null_count else amount})
def halves(rows):
    return pa.table({"amount": pc.divide(rows["amount"].cast(pa.float64(), safe=False), 2)})
def long_text(rows): return pa.table({"_refused": ["x" * 5000] * rows.num_rows})
"""
AMOUNTS, NAMES = [1, 0, -3, None, 5], ["a", "b", None, "d", "e"]


@pytest.fixture(autouse=True)
def functions(tmp_path: Path) -> None:
    (tmp_path / "transforms").mkdir()
    (tmp_path / "transforms" / "of_record.py").write_text(FUNCTIONS)
    use_folder(str(tmp_path))


def applied(function: str, amounts: list[int | None] = AMOUNTS) -> tuple[dict[str, list[object]], list[str | None]]:
    names = (NAMES * len(amounts))[: len(amounts)]
    columns = {"amount": pa.array(amounts, pa.int64()), "name": pa.array(names, pa.string())}
    done = Transform(f"of_record:{function}").applied(columns)
    assert {name: values.type for name, values in done.columns.items()} == {n: v.type for n, v in columns.items()}
    return {name: values.to_pylist() for name, values in done.columns.items()}, done.refused.to_pylist()


@pytest.mark.parametrize("function", ["same", "as_batch"])
def test_a_function_may_leave_the_rows_as_they_are(function: str) -> None:
    assert applied(function) == ({"amount": AMOUNTS, "name": NAMES}, [None] * 5)


def test_columns_that_it_leaves_out_stay() -> None:
    assert applied("only_amount") == ({"amount": [2, 0, -6, None, 10], "name": NAMES}, [None] * 5)


def test_no_rows_need_no_function() -> None:
    assert applied("inverse", []) == ({"amount": [], "name": []}, [])


def test_it_may_empty_a_column() -> None:
    assert applied("nothing")[0] == {"amount": AMOUNTS, "name": [None] * 5}


def test_rows_that_it_refuses_have_its_reason() -> None:
    assert applied("refuses_negative") == (
        {"amount": AMOUNTS, "name": NAMES},
        [None, None, "negative", None, None],
    )


def test_a_row_on_which_it_fails_is_refused_alone() -> None:
    assert applied("inverse", [1, 2, 0, 3, None, 0, 7])[1] == [
        None,
        None,
        "ZeroDivisionError: integer division or modulo by zero (of_record.py, line 12)",
        None,
        "TypeError: unsupported operand type(s) for //: 'int' and 'NoneType' (of_record.py, line 12)",
        "ZeroDivisionError: integer division or modulo by zero (of_record.py, line 12)",
        None,
    ]


def test_whole_numbers_may_come_as_doubles_which_pandas_makes_of_them_beside_null() -> None:
    assert applied("by_pandas") == ({"amount": AMOUNTS, "name": NAMES}, [None] * 5)
    large = (1 << 53) + 1
    columns, refused = applied("by_pandas", [large, None, 2])
    assert (columns["amount"], refused) == ([large, None, 2], [None] * 3), "the doubles of both would be equal"


def test_a_number_that_its_column_cannot_hold_is_refused_alone() -> None:
    columns, refused = applied("halves", [2, 3, None, 1 << 60])
    assert columns["amount"] == [1, 3, None, 1 << 60]
    assert [why is None for why in refused] == [True, False, True, False]
    assert "amount does not fit into int64: Float value 1.500000 was truncated" in str(refused[1])
    assert "amount is 576460752303423488 as double, which has lost digits; return it as int64" in str(refused[3])


@pytest.mark.parametrize("kind", [pa.decimal128(6, 2), pa.decimal128(20, 4), pa.decimal256(40, 1)])
def test_decimals_may_come_with_other_digits_if_their_column_holds_them(kind: pa.DataType, tmp_path: Path) -> None:
    function = f"def priced(rows): return pa.table({{'paid': pa.array([Decimal('7.5'), None], pa.{kind})}})"
    head = "from decimal import Decimal\nimport pyarrow as pa\n"
    (tmp_path / "transforms" / "of_decimals.py").write_text(head + function)
    done = Transform("of_decimals:priced").applied({"paid": pa.nulls(2, pa.decimal128(12, 2))})
    assert done.columns["paid"].to_pylist() == [Decimal("7.50"), None]
    assert done.refused.to_pylist() == [None, None]


MS_AS_S = 1_764_000_000_000 * 1_000_000
"""Microseconds since 1970, of milliseconds that a function took for seconds: the year 57,868."""


@pytest.mark.parametrize(
    "values",
    [
        pa.array([0, MS_AS_S, None], pa.int64()).cast(pa.timestamp("us", "UTC")),
        pa.array([0, 2_932_897, None], pa.int32()).cast(pa.date32()),
        pa.array([0, -719_163, None], pa.int32()).cast(pa.date32()),
        pa.ListArray.from_arrays([0, 0, 2, 2], pa.array([1, MS_AS_S], pa.int64()).cast(pa.timestamp("us", "UTC"))),
        pa.StructArray.from_arrays([pa.array([0, 2_932_897, None], pa.int32()).cast(pa.date32())], ["at"]),
    ],
)
def test_a_time_that_no_reader_can_show_is_refused_alone(values: pa.Array, tmp_path: Path) -> None:
    """A date after the year 9999 as a partition value makes the whole table unreadable for delta-rs."""
    with pa.OSFile(str(tmp_path / "it"), "wb") as sink, pa.ipc.new_file(sink, pa.schema([("it", values.type)])) as file:
        file.write_table(pa.table({"it": values}))
    read = f"pa.ipc.open_file({str(tmp_path / 'it')!r}).read_all()['it']"
    code = (
        f"import pyarrow as pa\ndef f(rows): return pa.table({{'it': {read}.slice(rows['n'][0].as_py(), len(rows))}})"
    )
    (tmp_path / "transforms" / "late.py").write_text(code)
    done = Transform("late:f").applied({"it": pa.nulls(3, values.type), "n": pa.array([0, 1, 2])})
    years = "ValueError: it has a time outside of the years 1 to 9999"
    assert done.refused.to_pylist() == [None, years, None]


def test_a_text_that_is_not_utf_8_is_refused_alone(tmp_path: Path) -> None:
    text = (
        "pa.Array.from_buffers(pa.string(), 1, [None, pa.py_buffer(bytes([0, 0, 0, 0, 1, 0, 0, 0])), pa.py_buffer(x)])"
    )
    code = f"""import pyarrow as pa
def f(rows):
    made = [{text} for x in rows["it"].cast(pa.binary()).to_pylist() for x in [b"\\xff" if x == b"odd" else x]]
    return pa.table({{"it": pa.chunked_array(made)}})
"""
    (tmp_path / "transforms" / "odd.py").write_text(code)
    done = Transform("odd:f").applied({"it": pa.array(["a", "odd", "b"])})
    first, odd, last = done.refused.to_pylist()
    assert (first, last) == (None, None)
    assert "Invalid UTF8 sequence" in odd


def test_any_rows_fail_as_each_of_them_does() -> None:
    random = Random(7)
    for _ in range(20):
        amounts = [random.choice([0, None, 1, 2, 3]) for _ in range(random.randint(1, 60))]
        assert [why is None for why in applied("inverse", amounts)[1]] == [bool(amount) for amount in amounts]


def test_rows_whose_values_are_all_empty_have_the_type_of_the_others(tmp_path: Path) -> None:
    """How many rows a task gets together must not decide whether the table fails."""
    code = "import pyarrow as pa\ndef f(rows): return pa.table({'it': pa.array(rows['it'].to_pylist())})"
    (tmp_path / "transforms" / "again.py").write_text(code)
    for kind, values in (
        (pa.list_(pa.field("element", pa.string())), [[], ["a"], [None], None]),
        (
            pa.struct([("x", pa.float64()), ("y", pa.list_(pa.field("element", pa.int64())))]),
            [{"x": 1.5, "y": [1]}, None],
        ),
        (pa.list_(pa.field("element", pa.struct([("a", pa.string())]))), [[{"a": None}], [], [{"a": "x"}]]),
    ):
        for some in (values, *([value] for value in values)):
            done = Transform("again:f").applied({"it": pa.array(some, kind)})
            assert done.columns["it"] == pa.array(some, kind)
    code = code.replace("rows['it'].to_pylist()", "[{'b': 1}]")
    (tmp_path / "transforms" / "other.py").write_text(code)
    kind = pa.struct([("a", pa.string()), ("b", pa.int64())])
    with pytest.raises(NoFunction, match="returned it as struct<b: int64>; it must be struct<a: string, b: int64>"):
        Transform("other:f").applied({"it": pa.array([{"a": "x"}], kind)})


@pytest.mark.parametrize(
    ("function", "says"),
    [
        ("leaves", [None, "SystemExit: 3 (of_record.py, line 30)", None, None, None]),
        ("panics", ["Panic (of_record.py, line 34)"] * 5),
        ("odd_text", ["ValueError: ?" + "x" * 987] * 5),
        ("long_text", ["x" * 1000] * 5),
    ],
)
def test_whatever_a_function_raises_is_a_short_text(function: str, says: list[str | None]) -> None:
    assert applied(function)[1] == says


def test_a_function_that_needs_much_memory_gets_fewer_rows() -> None:
    """Where one row is too much, the batch is read again in little memory. No row is to blame."""
    assert [why is None for why in applied("needs_room")[1]] == [True, False, True, False, True]
    with pytest.raises(MemoryError):
        applied("needs_room", [1, 2, 7])


def test_a_module_that_ends_the_process_cannot_be_imported(tmp_path: Path) -> None:
    (tmp_path / "transforms" / "ends.py").write_text("import sys\nsys.exit('no SETTING')")
    with pytest.raises(NoFunction, match="ends:f cannot be imported: SystemExit: no SETTING"):
        Transform("ends:f").applied({"amount": pa.array([1])})


@pytest.mark.parametrize(
    ("function", "says"),
    [
        ("fewer", "returned 4 of 5 rows; it must return each row once"),
        ("other_type", "returned amount as string; it must be int64"),
        ("as_singles", "returned amount as float; it must be int64"),
        ("other_column", "returned the column more, which is not among the columns that it gets"),
        ("column_twice", "returned the column amount twice"),
        ("no_table", "returned list instead of a pyarrow.Table"),
        ("imports", "cannot be imported: ModuleNotFoundError: No module named 'not_there_at_all'"),
        ("missing", "transforms/of_record.py has no function missing"),
        ("constant", "is not a function"),
    ],
)
def test_a_function_that_cannot_be_used_says_why(function: str, says: str) -> None:
    with pytest.raises(NoFunction, match=rf"of_record:{function}:? {says}"):
        applied(function)


def test_declarations_get_the_functions_beside_them(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Whatever Python's path has by that name: the current folder of `python -m`, or a package that somebody installed."""
    for name in ("first", "second", "installed"):
        (tmp_path / name / "transforms").mkdir(parents=True)
        (tmp_path / name / "transforms" / "shop.py").write_text("from transforms.more import here as name")
        (tmp_path / name / "transforms" / "more.py").write_text(f"def here(rows): raise ValueError({name!r})")
    (tmp_path / "installed" / "transforms" / "__init__.py").touch()
    monkeypatch.syspath_prepend(str(tmp_path / "installed"))
    for name in ("first", "second", "first"):
        use_folder(str(tmp_path / name))
        assert folders() == (str(tmp_path / name),)
        places = (str(tmp_path / name), str(tmp_path / "not" / "there"))
        done = Transform("shop:name", places).applied({"amount": pa.array([1])})
        assert done.refused.to_pylist() == [f"ValueError: {name} (more.py, line 1)"]


def service_of(transform: str, columns: str = '{ name = "amount", type = "long" }', more: str = "") -> str:
    return f'name = "s"\n{more}[[tables]]\nname = "sales"\ntransform = "{transform}"\ncolumns = [{columns}]'


def test_declarations_name_functions_that_are_there() -> None:
    check_transforms(parse_service({"service.toml": service_of("of_record:same")}))
    for name in ("other:same", "os:getcwd"):
        with pytest.raises(
            InvalidConfiguration, match=rf"table sales: transform: {name} cannot be imported: .*transforms"
        ):
            check_transforms(parse_service({"service.toml": service_of(name)}))


@pytest.mark.parametrize(
    ("name", "says"),
    [
        ("gone:same", r"\(put the module into the folder transforms/ beside service.toml, and deploy"),
        ("of_record:missing", r"\(deploy the code that has the function, or push declarations that do not name it\)"),
        ("needs:same", "'not_there_at_all'$"),
    ],
)
def test_a_function_that_is_not_there_has_advice_that_fits(name: str, says: str, tmp_path: Path) -> None:
    (tmp_path / "transforms" / "needs.py").write_text("import not_there_at_all")
    with pytest.raises(InvalidConfiguration, match=says):
        check_transforms(parse_service({"service.toml": service_of(name)}))


@pytest.mark.parametrize(
    ("text", "says"),
    [
        (service_of("clean"), "transform: 'clean' is not module:function, such as shop:clean"),
        (service_of("a.b:clean"), "transform: 'a.b:clean' is not module:function"),
        (service_of("a:b", '{ name = "x", type = "long", expression = "1" }'), "the function would get no column"),
    ],
)
def test_a_declaration_that_makes_no_sense_is_refused(text: str, says: str) -> None:
    with pytest.raises(InvalidConfiguration, match=says):
        parse_service({"service.toml": text})


def test_the_version_of_declarations_names_the_code_of_functions_wherever_it_lies(tmp_path: Path) -> None:
    text = service_of("of_record:same")
    service = parse_service({"service.toml": text})
    version = with_code_version(service).version
    assert re.fullmatch(rf"{service.version}\+[0-9a-f]{{8}}", version)
    assert with_code_version(with_code_version(service)).version == version
    assert with_code_version(service).text_version == service.version
    without = parse_service({"service.toml": text.replace("transform", "#")})
    assert with_code_version(without) == without, "nothing changes where no function is named"

    (tmp_path / "transforms" / "more").mkdir()
    (tmp_path / "transforms" / "more" / "inner.py").write_text("rate = 1")
    assert (changed := with_code_version(service).version) != version
    (tmp_path / "else" / "transforms").mkdir(parents=True)
    use_folder(str(tmp_path / "else"))
    assert with_code_version(service).version not in (version, changed)

    zipped = package_zip(tmp_path / "forebay.zip", functions=tmp_path / "transforms")
    says = f"import sys; sys.path.insert(0, {str(zipped)!r}); from forebay.transforms import code_version as of; print(of())"
    asked = subprocess.run(
        [sys.executable, "-c", says], capture_output=True, text=True, check=True, cwd=tmp_path / "else"
    )
    assert changed.endswith(f"+{asked.stdout.strip()}")


def test_it_does_not_get_the_subject_of_a_record() -> None:
    """An erasure finds rows by it."""
    columns = (
        '{ name = "user" }, { name = "who", path = "user" }, { name = "amount" }, { name = "at", type = "timestamp" }'
    )
    more = (
        '[privacy]\npersonal = [{ path = "user", become = "token" }]\nsubject = "user"\nsecret = "file:///tmp/secret"\n'
    )
    service = parse_service({"service.toml": service_of("a:b", columns, more)})
    assert [column.name for column in service.transformed(service.tables[0])] == ["amount", "at"]
    with pytest.raises(InvalidConfiguration, match=r"transform: the function would get no column.*privacy\.subject"):
        parse_service({"service.toml": service_of("a:b", '{ name = "user" }', more)})


def test_it_does_not_get_the_subject_from_the_column_of_a_flattened_field() -> None:
    """The field device_id of a record shares the column of device.id, by which an erasure finds rows as well."""
    more = '[privacy]\nsubject = "device.id"\nsecret = "file:///tmp/secret"\n'
    flattens = '[[tables]]\nname = "flat"\nundeclared = { flatten = "_" }\n'
    columns = '{ name = "device_id" }, { name = "own", path = "a.Device_ID" }, { name = "amount" }'
    service = parse_service({"service.toml": service_of("a:b", columns, more) + "\n" + flattens})
    assert [column.name for column in service.transformed(service.tables[0])] == ["amount"]
