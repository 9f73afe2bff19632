"""The house itself: which room may import which, and what is declared once.

The order below is the order of the journey. A module may import from its own room and from rooms before it. A room within a
room has a place of its own where it is named here.
"""

from __future__ import annotations

import ast
import re
import subprocess
import sys
import tomllib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from graphlib import CycleError, TopologicalSorter
from itertools import pairwise
from pathlib import Path

import pytest

from forebay.spark import runtime
from tests.promises import PROOFS

ROOT = Path(__file__).resolve().parent.parent
PACKAGE = ROOT / "glue_jobs" / "forebay"

ORDER = [
    "errors",
    "events address landed_file nesting counted plain remembered threads",
    "transforms",
    "texts",
    "refusal",
    "spark",
    "aws",
    "lake",
    "capacity",
    "settings",
    "declaration",
    "privacy",
    "notification",
    "content",
    "record",
    "source",
    "ledger",
    "table",
    "declared_sql",
    "batch",
    "upkeep",
    "merge",
    "jobs",
    "operate",
    "operate.page",
    "operate.stack",
    "operate.looking",
    "operate.changing",
    "operate.people",
    "operate.exporting",
    "operate.trying",
    "operate.declaring",
    "operate.doctor",
    "cli",
    "cli.looking",
    "cli.changing",
    "cli.people",
    "cli.declaring",
]
RANK = {room: rank for rank, rooms in enumerate(ORDER) for room in rooms.split()}

WITHOUT_SPARK = [
    "errors",
    "events",
    "landed_file",
    "settings",
    "aws.client",
    "aws.cloudwatch",
    "aws.preflight",
    "aws.announce",
    "spark.python_worker",
    "declaration.loading",
    "lake.objects",
    "lake.stop",
    "lake.health",
    "lake.log.snapshot",
    "lake.log.tables",
    "capacity.plan",
    "notification",
    "record.conform",
    "record.declared",
    "upkeep.compaction.plan",
    "upkeep.compaction.live_files",
    "upkeep.compaction.declared",
    "upkeep.reconcile.job",
]
"""These import no Spark, so that they are tested, and run in a Lambda, without it."""


def modules() -> list[Path]:
    return sorted(PACKAGE.rglob("*.py"))


def room_of(module: Path) -> str:
    return ranked(module.relative_to(PACKAGE).with_suffix("").parts)


def ranked(parts: Sequence[str]) -> str:
    """The room of a module or a name: the longest one that has a place in the order, or else the first part."""
    return next((room for n in (2, 1) if (room := ".".join(parts[:n])) in RANK), parts[0])


@dataclass(frozen=True)
class Source:
    """All that these tests ask of a file, from one walk over its tree. The trees of all files are a million objects."""

    imports: list[tuple[int, str, tuple[str, ...]]]
    """Every module that it imports, wherever in it, with the line and the names that it takes from it."""
    defined: set[str]
    """Names of functions and classes, variables and imports, wherever in it."""
    own_paths: list[int]
    """Lines with a path of forebay's own; what names it in prose is a docstring."""
    by_hand: list[tuple[int, str]]
    """Numbers of things that are not told by `counted`."""
    decorators: dict[str, set[str]]
    """Of its functions and classes."""


@cache
def source(path: Path) -> Source:
    found = Source([], set(), [], [], {})
    for node in ast.walk(ast.parse(path.read_text())):
        match node:
            case ast.Name(ctx=ast.Store()):
                found.defined.add(node.id)
            case ast.Import():
                found.imports.extend((node.lineno, alias.name, ()) for alias in node.names)
                found.defined.update(_bound(node.names))
            case ast.ImportFrom():
                if node.module:
                    found.imports.append((node.lineno, node.module, tuple(alias.name for alias in node.names)))
                found.defined.update(_bound(node.names))
            case ast.FunctionDef() | ast.AsyncFunctionDef() | ast.ClassDef():
                found.defined.add(node.name)
                found.decorators[node.name] = {ast.unparse(mark) for mark in node.decorator_list}
            case ast.JoinedStr():
                found.by_hand.extend(_by_hand(node))
            case ast.Constant(value=str(text)) if "_forebay/" in text and "\n" not in text and not text.endswith("."):
                found.own_paths.append(node.lineno)
    return found


PLURALS = (
    "files records rows tables messages batches games days objects notices partitions columns versions minutes commits"
)
SEVERAL = re.compile(rf"^ (?:small |dead |new )?(?:{PLURALS.replace(' ', '|')}|times(?! the record))\b")


def _bound(names: list[ast.alias]) -> Iterator[str]:
    return ((alias.asname or alias.name).split(".")[0] for alias in names)


def _by_hand(text: ast.JoinedStr) -> Iterator[tuple[int, str]]:
    for number, then in pairwise(text.values):
        if not (isinstance(number, ast.FormattedValue) and isinstance(then, ast.Constant)):
            continue
        if SEVERAL.match(str(then.value)):
            told = ast.unparse(number.value)
            if not re.fullmatch(r"[A-Z_]+|counted\(.*\)", told):
                yield text.lineno, f"{told}{then.value}"


def imports(module: Path) -> Iterator[tuple[int, str]]:
    for line, name, taken_from_it in source(module).imports:
        yield line, name
        if name.split(".")[0] == "forebay":
            yield from ((line, f"{name}.{one}") for one in taken_from_it)


@pytest.mark.parametrize("module", modules(), ids=lambda m: str(m.relative_to(PACKAGE)))
def test_imports_point_up_the_river(module: Path) -> None:
    mine = room_of(module)
    if mine == "__init__":
        assert [*imports(module)] == []
        return
    wrong = []
    for line, name in imports(module):
        if name == "awsglue" or name.startswith("awsglue."):
            wrong.append(f"{module.name}:{line} imports {name}: nothing may need Glue's own library")
        parts = name.split(".")
        if parts[0] == "forebay_local":
            wrong.append(f"{module.name}:{line} imports {name}, which is not shipped to AWS")
        if parts[0] == "forebay" and len(parts) > 1:
            other = ranked(parts[1:])
            if other != mine and RANK[other] >= RANK[mine]:
                wrong.append(
                    f"{module.name}:{line}: {mine} may not import {other}, which comes after it in the journey"
                )
    assert not wrong, "\n".join(wrong)


def test_a_room_within_a_room_has_a_place_of_its_own() -> None:
    """So a command that looks imports none that changes."""
    assert room_of(PACKAGE / "cli" / "looking" / "status.py") == "cli.looking"
    assert room_of(PACKAGE / "cli" / "show.py") == room_of(PACKAGE / "cli" / "__init__.py") == "cli"
    assert room_of(PACKAGE / "lake" / "log" / "tables.py") == "lake"
    assert ranked(("cli", "looking", "status")) == ranked(("cli", "looking")) == "cli.looking"


SOURCES = {
    ".".join(path.relative_to(base).with_suffix("").parts).removesuffix(".__init__"): path
    for base in (PACKAGE.parent, ROOT)
    for folder in (("forebay", "forebay_local") if base != ROOT else ("infra", "lambdas", "tests", "dev"))
    for path in (base / folder).rglob("*.py")
}


@cache
def taken(path: Path) -> list[tuple[int, str, str]]:
    """Names that this module imports from ours, wherever in it, with the line; no name where it imports a whole module."""
    found = []
    for line, module, names in source(path).imports:
        for name in names:
            whole = f"{module}.{name}"
            found.append((line, whole, "") if whole in SOURCES else (line, module, name))
        if not names:
            found.append((line, module, ""))
    return [one for one in found if one[1] in SOURCES]


def test_no_two_files_import_each_other() -> None:
    """Not by way of others, nor inside a function or for the sake of types."""
    files = {name: path for name, path in SOURCES.items() if not name.startswith("tests.")}
    imported = {name: {other for _, other, _ in taken(path)} - {name} for name, path in files.items()}
    try:
        TopologicalSorter(imported).prepare()
    except CycleError as circle:
        pytest.fail(" <- ".join(circle.args[1]))


def test_whatever_is_imported_exists() -> None:
    """Also in tests that no quick run imports: a name that moved is missed there at once."""

    gone = [
        f"{path.relative_to(ROOT)}:{line}: {module} has no {name}"
        for path in SOURCES.values()
        for line, module, name in taken(path)
        if name and name not in source(SOURCES[module]).defined
    ]
    assert gone == []


MOST_FILES = 25


@pytest.mark.parametrize("init", sorted(PACKAGE.rglob("__init__.py")), ids=lambda i: str(i.parent.relative_to(PACKAGE)))
def test_a_room_has_no_more_files_than_one_remembers(init: Path) -> None:
    own = {path.name for path in init.parent.glob("*.py")} - {"__init__.py"}
    assert len(own) <= MOST_FILES


def rooms() -> list[Path]:
    local = PACKAGE.with_name("forebay_local")
    return sorted(init.parent for package in (PACKAGE, local) for init in package.rglob("__init__.py"))


@pytest.mark.parametrize("room", rooms(), ids=lambda r: str(r.relative_to(PACKAGE.parent)))
def test_the_map_of_a_room_names_every_module_in_it(room: Path) -> None:
    text = ast.get_docstring(ast.parse((room / "__init__.py").read_text())) or ""
    here = {path.stem for path in room.glob("*.py")} - {"__init__", "__main__"}
    here |= {path.name for path in room.iterdir() if (path / "__init__.py").exists()}
    named = set(re.findall(r"`([a-z0-9_]+)`", text))
    assert here <= named, f"the map of {room.name} does not name {sorted(here - named)}"


@pytest.mark.parametrize("room", rooms(), ids=lambda r: str(r.relative_to(PACKAGE.parent)))
def test_the_map_of_a_room_names_no_module_that_is_gone(room: Path) -> None:
    text = ast.get_docstring(ast.parse((room / "__init__.py").read_text())) or ""
    listed = re.findall(r"(?:^|  )\* ((?:`[a-z0-9_]+`(?:, )?)+)", text, re.M)
    named = {name for names in listed for name in re.findall(r"`([a-z0-9_]+)`", names)}
    gone = {name for name in named if not (room / f"{name}.py").exists() and not (room / name).is_dir()}
    assert not gone, f"the map of {room.name} names {sorted(gone)}"


def test_every_room_has_its_place_in_the_order() -> None:
    rooms = {room_of(module) for module in modules()} - {"__init__"}
    assert rooms == set(RANK)


@pytest.mark.parametrize("room", WITHOUT_SPARK)
def test_a_room_without_spark_imports_none(room: str) -> None:
    code = f"import sys, forebay.{room}; print([m for m in ('pyspark', 'py4j', 'delta') if m in sys.modules])"
    ran = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert ran.stdout.strip() == "[]"


def test_the_declared_packages_are_those_of_the_pinned_runtime() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    spark = project["optional-dependencies"]["spark"]
    assert f"pyspark=={runtime.SPARK}" in spark
    assert f"delta-spark=={runtime.DELTA}" in spark
    (arrow,) = (package for package in runtime.GLUE_HAS if package.startswith("pyarrow"))
    assert arrow in project["dependencies"]
    low, high = (".".join(map(str, version)) for version in (runtime.PYTHON_MIN, runtime.PYTHON_MAX))
    assert project["requires-python"] == f">={low},<3.{runtime.PYTHON_MAX[1] + 1}"
    assert f"Programming Language :: Python :: {high}" in project["classifiers"]


def test_the_locked_jars_are_those_of_the_pinned_runtime() -> None:
    jars = [line.split()[0] for line in (ROOT / "jars.lock").read_text().splitlines()]
    assert runtime.DELTA_SPARK_JAR in jars
    assert f"org.apache.hadoop:hadoop-aws:{runtime.HADOOP}" in jars
    sdk = {jar.rsplit(":", 1)[1] for jar in jars if jar.startswith("software.amazon.awssdk:")}
    assert sdk == {runtime.AWS_SDK}
    assert not [jar for jar in jars if ":bundle:" in jar], "the SDK's bundle is 600 MB, and not needed"


def test_paths_of_forebays_own_are_spelt_in_one_place() -> None:
    """`lake.layout`; what names them in prose is a docstring."""
    deployed = [*modules(), *(ROOT / "lambdas").rglob("*.py"), *(ROOT / "infra").rglob("*.py")]
    spelt = [
        f"{module.relative_to(ROOT)}:{line}"
        for module in deployed
        if module != PACKAGE / "lake" / "layout.py"
        for line in source(module).own_paths
    ]
    assert spelt == []


def test_whatever_writes_takes_its_session_from_the_probe_of_the_lake() -> None:
    """`cli/tables` only has Spark look at expressions."""
    users = {
        str(module.relative_to(PACKAGE))
        for module in modules()
        for _, name, names in source(module).imports
        if name == "forebay.spark.session" and "session" in names
    }
    assert users == {"lake/safety.py", "cli/declaring/check.py"}


def test_a_number_of_things_is_told_by_counted() -> None:
    """`1 files` is what an operator reads first. A constant is never 1, and the twin speaks as AWS does."""
    deployed = [*(ROOT / "glue_jobs").rglob("*.py"), *(ROOT / "lambdas").rglob("*.py"), *(ROOT / "infra").rglob("*.py")]
    by_hand = [
        f"{module.relative_to(ROOT)}:{line}: {told}"
        for module in deployed
        if "twin" not in module.parts
        for line, told in source(module).by_hand
    ]
    assert by_hand == []


def test_no_name_says_nothing() -> None:
    vague = {"utils", "util", "helpers", "helper", "common", "manager", "misc"}
    named = {part.removesuffix(".py") for m in [*modules(), *(ROOT / "tests").rglob("*.py")] for part in m.parts}
    assert not named & vague


def test_nothing_that_set_up_makes_and_no_link_is_committed() -> None:
    tracked = subprocess.run(
        ["git", "ls-files", "--stage"], cwd=ROOT, capture_output=True, text=True, check=True
    ).stdout
    names = {line.split("\t", 1)[1].split("/")[0] for line in tracked.splitlines()}
    assert not names & {".venv", ".forebay", "build", "dist", "cdk.out"}
    assert not [line for line in tracked.splitlines() if line.startswith("120000")], "a link is a path of one machine"


@pytest.mark.parametrize("promise", PROOFS)
def test_each_promise_is_proved_in_every_run(promise: str) -> None:
    """`make test` leaves out what is marked `deep`, and no promise may be left out with it."""
    for test in PROOFS[promise]:
        file, _, name = test.partition("::")
        marks = source(ROOT / file).decorators.get(name)
        assert marks is not None, f"{test} is named in tests/promises.py, and does not exist"
        assert "pytest.mark.deep" not in marks, f"{test} proves {promise!r}, and `make test` leaves it out"
