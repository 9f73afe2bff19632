"""Each block in the documents runs in a test, is parsed by what would run it, or is marked why not."""

from __future__ import annotations

import json
import os
import re
import shlex
import subprocess
import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from typer.main import get_command

from forebay.cli.main import app
from tests.operate.command import given

ROOT = Path(__file__).resolve().parent.parent
DOCUMENTS = [
    *(ROOT / name for name in ("README.md", "ARCHITECTURE.md", "CONTRIBUTING.md")),
    *(ROOT / folder / "README.md" for folder in ("infra", "lambdas", "examples")),
    *sorted((ROOT / "docs").rglob("*.md")),
]
NOT_RUN = {
    "aws": "needs an account; test_other_programs.py reads each against the model of the API",
    "cdk": "needs an account; tests/twin/test_cdk_command.py deploys, compares and removes with it",
    "docker": "needs Docker; tests/infra/test_wheel.py compares the versions of the image with the lock",
    "pip": "changes the environment; tests/infra/test_wheel.py installs the wheel into a new one",
    "uvx": "runs in tests/infra/test_wheel.py",
    ".forebay/uv/bin/uv": "installs; tests/test_set_up.py",
    "python": "serves the site to a browser until it is stopped",
    ".venv/bin/python": "runs tests, whose names test_docs.py checks; the line that empties a bucket runs here",
    "make": "runs everything; test_docs.py checks that the targets exist",
    "export": "sets a variable of the shell",
    "mkdir": "makes a folder",
    "cp": "copies a sample; runs here",
    "echo": "prints",
}
"""Programs that blocks call, and why no test runs them."""
PROVED = {
    "docs/disasters.md": "tests/batch/test_without_plan.py",
    "docs/operating.md": "tests/operate/test_export.py",
    "docs/query.md": "tests/test_query_page.py",
    "docs/source.md": "tests/source/test_contents.py",
    "docs/states.md": "tests/test_query_page.py",
    "docs/tutorial.md": "tests/test_query_page.py",
    "infra/README.md": "tests/infra/test_construct.py",
}
"""Blocks of Python and SQL without a mark, by document, and the test that runs them."""
OF_THE_SHELL = {"--install-completion", "--show-completion"}
"""Options that change the shell, or print a script for it."""
MARK = re.compile(r"<!-- not run: [a-z].{10,} -->")


class Block(NamedTuple):
    document: str
    before: str
    language: str
    text: str


def blocks() -> Iterator[Block]:
    for document in DOCUMENTS:
        found = re.findall(r"([^\n]*)\n *```(\w*)\n(.*?)\n *```", document.read_text(), re.S)
        for before, language, text in found:
            yield Block(str(document.relative_to(ROOT)), before, language, text)


BLOCKS = list(blocks())
TYPED = sorted(
    {
        (block.document, line.strip())
        for block in BLOCKS
        if block.language == "console"
        for line in re.findall(r"^ *\$ (.*)$", block.text, re.M)
    }
)
OF_FOREBAY = [(document, line) for document, line in TYPED if re.match(r'(eval "\$\()?forebay ', line)]


def test_no_block_is_of_a_kind_that_nothing_checks() -> None:
    assert {block.language for block in BLOCKS} <= {"console", "toml", "json", "python", "sql", ""}


@pytest.mark.parametrize("block", [b for b in BLOCKS if b.language in ("toml", "json")], ids=lambda b: b.document)
def test_a_block_of_toml_or_json_parses(block: Block) -> None:
    if block.language == "toml":
        tomllib.loads(block.text)
    else:
        lines = block.text.splitlines()
        parsed = [line for line in lines if _is_json(line)]
        assert _is_json(block.text) or len(parsed) >= len(lines) - 1, "all but a line that is broken on purpose"


def _is_json(text: str) -> bool:
    try:
        json.loads(text)
    except json.JSONDecodeError:
        return False
    return True


def test_a_block_of_python_or_sql_runs_or_says_why_not() -> None:
    for block in BLOCKS:
        if block.language in ("python", "sql") and block.document not in PROVED:
            assert MARK.fullmatch(block.before), f"{block.document}: {block.text[:60]!r}"
    assert all((ROOT / test).exists() for test in PROVED.values())


def test_every_program_that_a_block_calls_is_forebay_or_has_a_reason() -> None:
    others = {line.split()[0] for place, line in TYPED if (place, line) not in OF_FOREBAY}
    assert others == set(NOT_RUN), "a new program needs a reason, and a reason without a program goes"


@pytest.mark.parametrize(("document", "line"), OF_FOREBAY)
def test_a_command_in_a_block_is_understood_as_it_stands(
    document: str, line: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The parser reads it, with all its arguments. The variables are those that a twin or the runbook sets."""
    for name in ("LAKE", "QUEUE_URL", "LANDING", "SERVICE", "STACK"):
        monkeypatch.setenv(f"FOREBAY_{name}", "s3://b/p/")
    monkeypatch.chdir(tmp_path)
    typed = line.partition("  #")[0].removeprefix('eval "$(').removesuffix(')"').strip()
    words = shlex.split(re.split(r" (?:>|\\||&&) ", typed)[0])[1:]
    if words[0] in OF_THE_SHELL:
        return
    command: Any = get_command(app)
    while getattr(command, "commands", {}) and not words[0].startswith("-"):
        command = command.commands[words.pop(0)]
    command.make_context(line, words)


@pytest.mark.parametrize("document", DOCUMENTS, ids=lambda one: str(one.relative_to(ROOT)))
def test_a_name_to_fill_in_is_no_redirection_and_no_tag(document: Path) -> None:
    """A shell takes `<bucket>` for a file, and GitHub drops it as a tag: write BUCKET. In backticks it may stand."""
    text = document.read_text()
    commands = [line for block in re.findall(r"```console\n(.*?)```", text, re.S) for line in block.splitlines()]
    assert [line for line in commands if re.search(r"<[a-zA-Z ]+>", line)] == []
    prose = re.sub(r"```.*?```|`[^`\n]*`|<!--.*?-->", "", text, flags=re.S)
    assert set(re.findall(r"<[a-zA-Z][^>\n]*>", prose)) <= {"<br>"}


@pytest.mark.parametrize("document", DOCUMENTS, ids=lambda one: str(one.relative_to(ROOT)))
def test_what_belongs_to_an_item_of_a_list_is_indented_by_four(document: Path) -> None:
    """With less, the site ends the list there and counts from 1 again. GitHub takes both."""
    text = document.read_text()
    assert re.findall(r"^ {1,3}(?:[*-] |```).*", text, re.M) == []
    prose = re.sub(r"```.*?```", "", text, flags=re.S)
    assert re.findall(r"\n\n( {1,3}\S.*)", prose) == []


def test_the_command_that_empties_a_bucket_leaves_no_version(monkeypatch: pytest.MonkeyPatch) -> None:
    import boto3
    from moto import mock_aws

    typed = {line for _, line in TYPED if "object_versions" in line}
    (code,) = {re.findall(r'-c "(.*)"', line)[0] for line in typed}
    for name in [name for name in os.environ if name.startswith("AWS_ENDPOINT_URL")]:
        monkeypatch.delenv(name)
    monkeypatch.setenv("AWS_DEFAULT_REGION", "us-east-1")
    with mock_aws():
        s3 = boto3.client("s3")
        s3.create_bucket(Bucket="BUCKET")
        s3.put_bucket_versioning(Bucket="BUCKET", VersioningConfiguration={"Status": "Enabled"})
        for key in ("a", "a", "b"):
            s3.put_object(Bucket="BUCKET", Key=key, Body=b"1")
        s3.delete_object(Bucket="BUCKET", Key="b")
        exec(code, {})
        left = s3.list_object_versions(Bucket="BUCKET")
        assert (left.get("Versions"), left.get("DeleteMarkers")) == (None, None)


def test_the_first_steps_of_the_tutorial_print_what_it_shows(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """From a sample to declarations, a trial, and a second table: typed as on the page, in an empty folder."""
    tutorial = (ROOT / "docs" / "tutorial.md").read_text()
    monkeypatch.chdir(tmp_path)
    sample, reviews = re.findall(r"```json\n(.*?)```", tutorial, re.S)
    (tmp_path / "samples").mkdir()
    (tmp_path / "samples" / "2026-11-24.jsonl").write_text(sample)
    (tmp_path / "reviews.jsonl").write_text(reviews)
    (declared,) = re.findall(r"```toml\n(#:schema.*?)```", tutorial, re.S)
    steps = re.findall(r"^\$ forebay ((?:try|tables init|tables add) .*)\n((?:(?!\$|```).*\n)*)", tutorial, re.M)
    for line, shown in steps:
        _, out, err = given(tuple(shlex.split(line)), "")
        assert _lines(out + err) == _lines(shown), line
        if line.startswith("tables init"):
            (tmp_path / "shop" / "service.toml").write_text(declared)
    assert len(steps) == 5


def test_the_guide_to_functions_prints_what_it_shows(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Typed as on the page, in the folder of this repository; only the copy of the sample is made elsewhere."""
    (typed,) = (block.text for block in BLOCKS if block.document == "docs/how-to.md" and "cp examples" in block.text)
    (tmp_path / "examples").symlink_to(ROOT / "examples")
    monkeypatch.chdir(tmp_path)
    *before, line = re.findall(r"^\$ (.*)$", typed, re.M)
    subprocess.run("\n".join(before), shell=True, check=True)
    _, out, err = given(tuple(shlex.split(line)[1:]), "")
    assert _lines(out + err) == _lines(typed.partition(line)[2])


def test_the_readme_shows_lines_that_a_trial_of_the_tutorials_sample_prints(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    sample = re.findall(r"```json\n(.*?)```", (ROOT / "docs" / "tutorial.md").read_text(), re.S)[0]
    (shown,) = re.findall(r"^\$ forebay try samples/\n(.*?)```", (ROOT / "README.md").read_text(), re.S | re.M)
    monkeypatch.chdir(tmp_path)
    (tmp_path / "samples").mkdir()
    (tmp_path / "samples" / "2026-11-24.jsonl").write_text(sample)
    _, out, _ = given(("try", "samples/"), "")
    assert {line for line in _lines(shown) if line != "..."} <= set(_lines(out))


def _lines(text: str) -> list[str]:
    return sorted(line.rstrip() for line in text.splitlines() if line.strip())
