"""The command line itself: quick, whole in a pipe, and clear about how it ends."""

from __future__ import annotations

import os
import pty
import shlex
import subprocess
import sys
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from deltalake import write_deltalake
from typer.main import get_command

from forebay.cli.examples import EXAMPLES
from forebay.cli.main import COMMANDS, app, main
from forebay.cli.show import console, error_console
from forebay.declaration.kept.in_force import keep_in_force
from forebay.declaration.loading import load_service
from tests.operate.command import failed, ran
from tests.operate.ledger import write_ledger


def commands() -> Iterator[tuple[str, Any]]:
    """Every command that there is, by what is typed."""
    for name in COMMANDS:
        command = get_command(app).commands[name]
        yield name, command
        for inner, its in getattr(command, "commands", {}).items():
            yield f"{name} {inner}", its


ALL = dict(commands())


def modules_after(*arguments: str) -> set[str]:
    """What is imported once a command has ended."""
    code = (
        "import sys\nfrom forebay.cli.main import main\n"
        f"try:\n    main({list(arguments)!r})\nexcept SystemExit:\n    pass\n"
        "print('\\n'.join(sys.modules), file=sys.stderr)"
    )
    return set(subprocess.run([sys.executable, "-c", code], capture_output=True, text=True).stderr.split())


def test_help_waits_for_nothing_that_is_slow_to_import() -> None:
    assert not modules_after("--help") & {
        "pyarrow",
        "boto3",
        "botocore",
        "pydantic",
        "numpy",
        "deltalake",
        "pyspark",
        "rich",
    }


def test_an_answer_waits_for_neither_spark_nor_the_parsing_of_declarations(tmp_path: Path) -> None:
    write_ledger(tmp_path)
    for command in (["audit"], ["tables"], ["quarantine", "list"]):
        found = modules_after(*command, "--lake", str(tmp_path))
        assert "deltalake" in found
        assert not found & {"pyspark", "py4j", "moto", "forebay.declaration.service", "forebay.settings"}


@pytest.mark.parametrize("name", COMMANDS)
def test_the_line_in_the_list_of_commands_is_the_first_of_its_own_help(name: str) -> None:
    said = " ".join((ALL[name].help or "").split())
    assert said.startswith(COMMANDS[name].does)


@pytest.mark.parametrize("name", ALL)
def test_every_help_has_examples(name: str) -> None:
    said = ran(*name.split(), "--help")
    for typed, _ in EXAMPLES[name]:
        assert f"$ {typed}" in said


def test_every_example_is_understood() -> None:
    examples = {typed for pairs in EXAMPLES.values() for typed, _ in pairs}
    for typed in sorted(examples):
        words = shlex.split(typed.removeprefix('eval "$(').removesuffix(')"').partition(" >")[0])
        command, context = get_command(app), None
        for word in words:
            context = command.make_context(word, [], parent=context, resilient_parsing=True)
            names = getattr(command, "commands", {})
            rest = words[words.index(word) + 1 :]
            if not rest or rest[0] not in names:
                break
            command = names[rest[0]]
        options = {option for parameter in command.params for option in (*parameter.opts, *parameter.secondary_opts)}
        assert [word for word in rest if word.startswith("--") and word not in options] == [], typed


def test_the_exit_statuses_are_documented_where_people_look() -> None:
    readme = (Path(__file__).resolve().parents[2] / "docs" / "operating.md").read_text()
    for text in (ran("--help"), readme):
        for status, meaning in ((0, "success"), (1, "found a problem"), (2, "usage error"), (3, "AWS did not answer")):
            assert any(str(status) in line and meaning in line for line in text.splitlines()), (status, meaning)


def test_the_version_is_told() -> None:
    assert ran("--version").startswith("forebay ")


def test_a_mistyped_command_gets_a_suggestion() -> None:
    assert "did you mean audit?" in failed(2, "audti")


@pytest.mark.parametrize(
    ("typed", "meant"),
    [("init", "tables init"), ("redrive", "queue redrive"), ("drop", "tables drop or quarantine drop or parked drop")],
)
def test_a_command_without_its_group_gets_the_whole_name(typed: str, meant: str) -> None:
    assert f"{typed} is unknown (did you mean {meant}?)" in failed(2, typed)


@pytest.mark.parametrize("name", ["local", "demo"])
def test_a_command_that_the_wheel_lacks_says_where_it_is(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delitem(COMMANDS, name)
    assert f"{name} is not part of the wheel (clone the repository, and run `make setup`)" in failed(2, name)


def test_nothing_is_wrapped_cut_or_coloured_in_a_pipe(tmp_path: Path) -> None:
    name = "a_table_of_a_game_" + "with_a_very_long_name_" * 5
    write_ledger(tmp_path)
    write_deltalake(tmp_path / name, pa.table({"v": [1]}))
    env = {**os.environ, "COLUMNS": "80", "FORCE_COLOR": ""}
    command = [sys.executable, "-m", "forebay.cli.main", "tables", "--lake", str(tmp_path)]
    said = subprocess.run(command, capture_output=True, text=True, env=env, check=True).stdout
    assert [line.split()[0] for line in said.splitlines()] == ["table", name]
    assert "\x1b" not in said


def test_a_terminal_of_eighty_columns_shows_names_and_numbers_whole(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    name = "a_game_with_a_long_name_events"
    for _ in range(3):
        write_deltalake(tmp_path / name, pa.table({"v": [1]}), mode="append")
    monkeypatch.setattr(console, "_width", 80)
    monkeypatch.setattr(error_console, "_width", 80)
    with pytest.raises(SystemExit) as ended:
        main(["tables", "health", "--lake", str(tmp_path)])
    said = capsys.readouterr()
    assert (ended.value.code, max(map(len, said.out.splitlines())) <= 80) == (0, True)
    assert said.out.splitlines()[1].split()[:5] == [name, "3", "100", "%", "0"]
    assert "from 120 columns on" in said.err


def test_a_lake_whose_event_times_are_odd_is_listed(tmp_path: Path) -> None:
    def event_times(*moments: object, kind: pa.DataType) -> pa.Table:
        return pa.table({"event_time": pa.array(moments, kind), "at": pa.array([DAY] * len(moments), MOMENT)})

    write_ledger(tmp_path)
    in_time, to_come = DAY + timedelta(hours=5), datetime(4800, 1, 1, tzinfo=UTC)
    write_deltalake(tmp_path / "a_text", event_times("2026-01-01 10:00", kind=pa.string()))
    write_deltalake(tmp_path / "b_dirty", event_times(DAY, to_come, in_time, kind=MOMENT))
    write_deltalake(tmp_path / "c_clean", event_times(DAY, in_time, kind=MOMENT))
    write_deltalake(tmp_path / "d_future", event_times(to_come, kind=MOMENT))
    listed = [line.split()[-2:] for line in ran("tables", "--lake", str(tmp_path)).splitlines()[1:]]
    assert listed == [["0", "-"], ["2026-01-01", "15:00:00"], ["2026-01-01", "15:00:00"], ["0", "-"]]


@pytest.mark.parametrize(
    ("kind", "last", "how"),
    [
        (pa.timestamp("us", "UTC"), datetime(2610, 10, 1, tzinfo=UTC), {"use_deprecated_int96_timestamps": True}),
        (pa.timestamp("ns", "UTC"), 1767261600_000000001, {}),
    ],
    ids=["INT96", "nanoseconds"],
)
def test_the_newest_event_in_a_file_of_another_tool_is_told(
    kind: pa.DataType, last: Any, how: Any, tmp_path: Path
) -> None:
    """Spark writes INT96 unless it is told not to. In nanoseconds, the year 2610 would be 2026."""
    write_ledger(tmp_path)
    to_come = datetime(4800, 1, 1, tzinfo=UTC)
    write_deltalake(tmp_path / "alpha", pa.table({"event_time": pa.array([DAY, to_come], MOMENT)}))
    (file,) = (tmp_path / "alpha").glob("*.parquet")
    pq.write_table(pa.table({"event_time": pa.array([DAY, last], kind)}), file, **how)
    (listed,) = (line.split()[-2:] for line in ran("tables", "--lake", str(tmp_path)).splitlines()[1:])
    assert listed == ["2026-01-01", "10:00:00"]


def test_the_newest_event_is_told_by_the_declared_time(tmp_path: Path) -> None:
    write_ledger(tmp_path)
    write_deltalake(tmp_path / "alpha", pa.table({"event_time": ["no time"], "at": pa.array([DAY], MOMENT)}))
    service = tmp_path / "_service"
    service.mkdir()
    (service / "service.toml").write_text(
        'name = "games"\n[[tables]]\nname = "alpha"\ncolumns = [{ name = "at", type = "timestamp" }]\n'
        'event_time = { column = "at" }\n'
    )
    said = ran("tables", "--lake", str(tmp_path), "--service", str(service))
    assert said.splitlines()[1].split()[-2:] == ["2026-01-01", "10:00:00"]
    assert ran("tables", "--lake", str(tmp_path)) != said
    keep_in_force(str(tmp_path), load_service(str(service)))
    assert ran("tables", "--lake", str(tmp_path)) == said, "the lake knows the declarations that its job works by"


DAY = datetime(2026, 1, 1, 10, tzinfo=UTC)
MOMENT = pa.timestamp("us", "UTC")


SHOWS = """
from forebay.cli.show import error_console
error_console.print("look at: dead letters", style="red")
"""


@pytest.mark.parametrize(("asked", "coloured"), [({}, True), ({"NO_COLOR": "1"}, False)])
def test_a_terminal_has_colours_unless_somebody_wants_none(asked: dict[str, str], coloured: bool) -> None:
    master, terminal = pty.openpty()
    env = {name: value for name, value in os.environ.items() if name not in ("NO_COLOR", "FORCE_COLOR", "TERM")}
    done = subprocess.run([sys.executable, "-c", SHOWS], stderr=terminal, env={**env, "TERM": "xterm", **asked})
    said = os.read(master, 1000).decode()
    for end in (master, terminal):
        os.close(end)
    assert (done.returncode, "dead letters" in said, "\x1b[31m" in said) == (0, True, coloured)
