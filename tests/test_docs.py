"""What the documents say is true: commands exist, options are those of the code, examples parse."""

from __future__ import annotations

import ast
import json
import re
import textwrap
import tomllib
from collections.abc import Iterator
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pytest
from typer.main import get_command

from dev import lake_columns, performance, plain_english, reference, site
from forebay.declaration.loading import parse_service
from forebay.operate.trying.samples import read_samples
from forebay.operate.trying.trial import try_out
from forebay.settings import (
    CompactSettings,
    IngestSettings,
    JobSettings,
    MaintainSettings,
    MergeSettings,
    ReconcileSettings,
)
from tests.source.notebook import NOTEBOOK

ROOT = Path(__file__).resolve().parent.parent
README = (ROOT / "README.md").read_text()
SOURCE = (ROOT / "docs" / "source.md").read_text()
DOCUMENTS = [
    *(ROOT / name for name in ("README.md", "ARCHITECTURE.md", "CHANGELOG.md", "CONTRIBUTING.md")),
    *sorted((ROOT / "docs").glob("*.md")),
    *sorted((ROOT / "docs" / "concepts").glob("*.md")),
    *sorted((ROOT / "docs" / "design").glob("*.md")),
]


@pytest.mark.parametrize("document", DOCUMENTS, ids=lambda d: d.name)
def test_every_command_in_a_document_exists(document: Path) -> None:
    from forebay.cli.main import app

    commands = get_command(app)
    for line in re.findall(r"^\$ .*?\bforebay (.+?)(?:  #.*)?$", document.read_text(), re.M):
        words = line.strip().removesuffix(')"').split()
        command = commands
        while hasattr(command, "commands") and words and not words[0].startswith("-"):
            assert words[0] in command.commands, f"{document.name}: `forebay {line}`: there is no {words[0]}"
            command = command.commands[words.pop(0)]
        options = {o for parameter in command.params for o in (*parameter.opts, *parameter.secondary_opts)}
        for word in words:
            if word.startswith("--"):
                assert word in options, f"{document.name}: `forebay {line}`: there is no {word}"


def test_every_command_is_in_a_document() -> None:
    from forebay.cli.main import app

    def leaves(command: Any, name: str) -> Iterator[str]:
        for word, inner in getattr(command, "commands", {}).items():
            yield from leaves(inner, f"{name} {word}") if hasattr(inner, "commands") else [f"{name} {word}"]

    texts = "\n".join(document.read_text() for document in [*DOCUMENTS, *(ROOT / "docs").glob("reference/*.md")])
    several = re.findall(r"\b(forebay [a-z-]+) ([a-z-]+(?:\|[a-z-]+)+)", texts)
    named = {f"{group} {word}" for group, words in several for word in words.split("|")}
    missing = [name for name in leaves(get_command(app), "forebay") if not re.search(rf"{name}\b", texts)]
    assert set(missing) <= named


def test_every_make_target_in_the_documents_exists() -> None:
    targets = set(re.findall(r"^([a-z-]+):", (ROOT / "Makefile").read_text(), re.M))
    for document in DOCUMENTS:
        named = set(re.findall(r"(?:`|\$ )make ([a-z-]+)", document.read_text()))
        assert named <= targets, f"{document.name} names {named - targets}"


def test_what_a_quick_run_leaves_out_is_there() -> None:
    """pytest ignores the name of a file that moved, and a quick run would take long again."""
    (named,) = re.findall(r"^LONG := ((?:.*\\\n)*.*)$", (ROOT / "Makefile").read_text(), re.M)
    assert [name for name in named.replace("\\", "").split() if not (ROOT / "tests" / name).exists()] == []


def test_the_time_that_the_demo_takes_is_told_alike() -> None:
    """`make demo` prints what it took; 92 s were seen on two busy cores."""
    makefile, demo = (ROOT / "Makefile").read_text(), (ROOT / "glue_jobs/forebay_local/demo.py").read_text()
    assert re.search(r"^demo: .*one to two minutes", makefile, re.M)
    assert demo.startswith('"""`forebay demo`: the whole story in one to two minutes')
    said = " ".join(README.split())
    assert "The first run installs packages and libraries, which takes two to three minutes" in said
    assert "The demo then takes up to two minutes" in said


def test_the_declarations_in_the_readme_parse() -> None:
    (text,) = re.findall(r"```toml\n# service.toml\n(.*?)```", README, re.S)
    service = parse_service({"service.toml": text})
    assert [table.name for table in service.tables] == ["purchases", "{game}_events"]


@pytest.mark.parametrize("document", DOCUMENTS, ids=lambda d: d.name)
def test_links_between_documents_lead_somewhere(document: Path) -> None:
    for target in re.findall(r"\]\(([^)#:]+)\)", document.read_text()):
        assert (document.parent / target).exists(), f"{document.name} links to {target}"


def test_the_modules_that_the_design_names_exist() -> None:
    """`batch.poison` is a module of a room, `twin/s3.py` a file."""
    places = (ROOT, *(ROOT / "glue_jobs" / name for name in ("forebay", "forebay_local", "")))
    rooms = {room.name for room in places[1].iterdir() if room.is_dir()}
    for document in (ROOT / "ARCHITECTURE.md", *(ROOT / "docs" / "design").glob("*.md")):
        for named in re.findall(r"`([\w./]+)`", document.read_text()):
            room, _, module = named.partition(".")
            if "/" in named and named.endswith(".py"):
                assert any((place / named).exists() for place in places), f"{document.name} names {named}"
            elif room in rooms and re.fullmatch(r"[a-z_]+(\.[A-Z]\w*)?", module):
                found = places[1] / room / module.partition(".")[0]
                assert found.is_dir() or found.with_suffix(".py").exists(), f"{document.name} names {named}"


def test_the_readme_and_the_architecture_are_each_read_in_one_sitting() -> None:
    assert len(README.splitlines()) <= 120
    assert len((ROOT / "ARCHITECTURE.md").read_text().splitlines()) <= 250


def test_the_options_of_the_source_are_those_of_the_code() -> None:
    from forebay.source.elsewhere import other_options_table
    from forebay.source.options import source_options_table

    assert source_options_table() + "\n" in SOURCE
    assert other_options_table() + "\n" in SOURCE + "\n"


def test_the_example_of_the_source_is_the_one_that_is_tested() -> None:
    import forebay.source

    alone, contents = re.findall(r"```python\n(.*?)\n```", SOURCE, re.S)
    assert textwrap.indent(alone, "    ", lambda line: bool(line.strip())) in (forebay.source.__doc__ or "")
    assert contents == textwrap.dedent(NOTEBOOK).strip()


def test_the_version_has_an_entry_in_the_changelog() -> None:
    version = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["version"]
    assert f"## {version}" in (ROOT / "CHANGELOG.md").read_text()


def test_the_documents_and_the_image_are_of_this_version() -> None:
    """As a part of names that a reader copies: of the wheel, of the image, and of the producer of lineage events."""
    version = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["version"]
    for file in (*DOCUMENTS, ROOT / "Dockerfile"):
        found = re.findall(r"forebay[-:](\d+\.\d+\.\d+)", file.read_text())
        assert {*found} <= {version}, f"{file.relative_to(ROOT)}: write {version}"


def test_a_reason_of_the_quarantine_is_spelt_in_one_place() -> None:
    """A constant of `batch.reasons`, or one of the reader's, which are types."""
    from forebay.batch import reasons

    named = {value for name, value in vars(reasons).items() if name.isupper() and isinstance(value, str)}
    assert named <= reasons.REASONS.keys()
    spelt = [
        f"{module.name}:{node.lineno}: {node.value}"
        for module in (ROOT / "glue_jobs" / "forebay" / "batch").glob("*.py")
        if module.name != "reasons.py"
        for node in ast.walk(ast.parse(module.read_text()))
        if isinstance(node, ast.Constant) and node.value in named - {"expectation"}
    ]
    assert spelt == []


@pytest.mark.parametrize(
    ("command", "settings", "more"),
    [
        ("ingest", IngestSettings, set()),
        ("compact", CompactSettings, {"dry_run", "as_json"}),
        ("maintain", MaintainSettings, {"dry_run", "as_json"}),
        ("merge", MergeSettings, {"as_json"}),
        ("find-missed", ReconcileSettings, {"dry_run", "as_json"}),
    ],
)
def test_every_setting_of_a_job_is_an_option_with_the_same_default(
    command: str, settings: type[JobSettings], more: set[str]
) -> None:
    from forebay.cli.main import app

    options = {parameter.name: parameter for parameter in get_command(app).commands[command].params}  # type: ignore[attr-defined]
    assert options.keys() - more == settings.model_fields.keys()
    for name, field in settings.model_fields.items():
        if name != "tables":
            assert options[name].required == field.is_required()
            assert field.is_required() or options[name].default == field.default


def test_the_files_and_tests_that_contributing_names_exist() -> None:
    text = (ROOT / "CONTRIBUTING.md").read_text()
    package = ROOT / "glue_jobs" / "forebay"
    for row in re.findall(r"^\| (?:a|an|what) .*\|$", text, re.M):
        _, edit, test = (cell.strip() for cell in row.strip("|").split("|"))
        for named in re.findall(r"`([\w/]+(?:\.py|\.md|/))`", edit):
            assert (ROOT / named).exists() or (package / named).exists(), f"{row} names {named}"
        folder = ROOT
        for named in re.findall(r"`([\w/.]+)`", test):
            found = ROOT / named if "/" in named else folder / named
            assert found.exists(), f"{row} names {named}"
            folder = found.parent
    tests = "".join(path.read_text() for path in (ROOT / "tests").rglob("test_*.py"))
    for name in re.findall(r"`(test_\w+)`", text):
        assert f"def {name}(" in tests, f"there is no {name}"


def _sentences(text: str) -> Iterator[str]:
    text = re.sub(r"```.*?```", "", text, flags=re.S)
    text = "\n".join(line for line in text.splitlines() if not line.startswith(("|", "#")))
    text = re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", re.sub(r"`[^`]*`", "x", text))
    for paragraph in re.split(r"\n\s*\n|\n(?=[-*] |\d\. )", text):
        yield from re.split(r"(?<=[.!?:])\s+", " ".join(paragraph.split()))


MORE = [ROOT / "infra" / "README.md", ROOT / "lambdas" / "README.md"]


@pytest.mark.parametrize("document", [*DOCUMENTS, *MORE], ids=lambda d: str(d.relative_to(ROOT)))
def test_sentences_have_at_most_28_words(document: Path) -> None:
    long = [sentence for sentence in _sentences(document.read_text()) if len(sentence.split()) > 28]
    assert long == []


def test_the_reference_is_what_the_code_says() -> None:
    """`python -m dev.reference` writes it."""
    written = {page.name: page.read_text() for page in (ROOT / "docs" / "reference").glob("*.md")}
    made = reference.pages()
    assert written.keys() == made.keys()
    assert [name for name, text in made.items() if written[name] != text] == [], "`make reference` writes it"


def test_every_reason_that_a_decision_gives_is_in_the_reference() -> None:
    """The others are constants, which the meanings name."""
    given = re.findall(r'reason="([a-z-]+)"', (ROOT / "glue_jobs/forebay/ledger/decision.py").read_text())
    assert set(given) - set(lake_columns.OTHER_REASONS) == set()
    assert given


def test_the_performance_page_is_what_the_benches_gave() -> None:
    """`python -m dev.performance` writes it."""
    made = performance.pages(json.loads(performance.RESULTS.read_text()), performance.PAGE.read_text())
    assert [name for name, text in made.items() if (ROOT / "docs" / name).read_text() != text] == []


def test_every_variable_of_the_environment_is_in_the_reference() -> None:
    from forebay.cli.environment import ENVIRONMENT

    code = "".join(file.read_text() for file in (ROOT / "glue_jobs").rglob("*.py") if file.name != "environment.py")
    of_tests = {name for name in re.findall(r"\bFOREBAY_[A-Z_]+", code) if name.startswith("FOREBAY_TWIN_")}
    assert set(re.findall(r"\bFOREBAY_[A-Z_]+", code)) - of_tests == set(ENVIRONMENT)


def test_the_declarations_in_the_tutorial_are_right() -> None:
    tutorial = (ROOT / "docs" / "tutorial.md").read_text()
    (text,) = re.findall(r"```toml\n(#:schema.*?)```", tutorial, re.S)
    review = 'name = "reviews"\nwhere = { event = "review" }\n'
    service = parse_service({"service.toml": text, "tables/reviews.toml": review}, strict=True)
    assert [table.name for table in service.tables] == ["orders", "refunds", "reviews"]
    sample, reviews = re.findall(r"```json\n(.*?)```", tutorial, re.S)
    with TemporaryDirectory() as folder:
        Path(folder, "2026-11-24.jsonl").write_text(sample)
        Path(folder, "reviews.jsonl").write_text(reviews)
        trial = try_out(service, read_samples([folder], service))
    assert {table.name: (table.rows, table.rescued) for table in trial.tables} == {
        "orders": (3, 1),
        "refunds": (2, 0),
        "reviews": (2, 0),
    }
    assert [one["reason"] for one in trial.refused] == ["not-json"]


def test_the_site_fetches_nothing_from_other_hosts() -> None:
    settings = (ROOT / "mkdocs.yml").read_text()
    assert "font: false" in settings
    assert "offline" not in settings, "this plugin adds a script of unpkg.com to each page"


def test_the_site_has_every_document_and_what_it_links_to(tmp_path: Path) -> None:
    nav = re.findall(r"([\w./-]+\.md)$", (ROOT / "mkdocs.yml").read_text(), re.M)
    assert sorted(nav) == sorted(str(document.relative_to(ROOT)) for document in site.documents())
    site.stage(tmp_path)
    assert (tmp_path / "docs" / "journey.svg").exists()
    assert (tmp_path / "README.md").read_text() == README


def test_no_file_has_a_phrase_that_readers_stumble_over() -> None:
    assert plain_english.counts() == {}, "`python dev/plain_english.py FILE` says where, and what to write instead"


def test_a_phrase_of_the_list_is_found(tmp_path: Path) -> None:
    (tmp_path / "a.md").write_text("day is no declared column.\nThe job tries again.\n")
    assert [(line, phrase) for line, phrase, _ in plain_english.places_in(tmp_path / "a.md")] == [(1, "is no d")]
