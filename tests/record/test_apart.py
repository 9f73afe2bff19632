"""A declared function that hangs, takes all memory or ends its process: only the rows to blame are refused."""

from __future__ import annotations

import subprocess
import sys
import time
import traceback
from pathlib import Path

import pyarrow as pa
import pytest

from forebay.batch.poison import blames_a_file
from forebay.declaration.loading import parse_service
from forebay.errors import Halt, InvalidConfiguration
from forebay.record.apart import LOG_BYTES, ApartTransform, Lost, check_transforms
from forebay.record.transform import Transform
from forebay.transforms import NoFunction, folders, use_folder

FUNCTIONS = """
import os, signal, time
import pyarrow as pa

def doubled(rows):
    return pa.table({"n": pa.array([2 * n for n in rows["n"].to_pylist()], pa.int64())})
def _at_seven(rows, then):
    if 7 in rows["n"].to_pylist():
        then()
    return doubled(rows)
def _for_ever():
    while True:
        try:
            time.sleep(60)
        except BaseException:
            pass
def _all_memory():
    taken = []
    while True:
        taken.append(bytearray(64 << 20))
def waits(rows): return _at_seven(rows, _for_ever)
def matches(rows):  # in C, without giving the interpreter back
    return _at_seven(rows, lambda: pow(3, 10 ** 9))
def leaves(rows): return _at_seven(rows, lambda: os._exit(3))
def _by_another(rows):
    print("Timeout (5 s) of a lock")
    print('File "/code/transforms/other.py", line 1')
    os._exit(3)
def tells(rows): return _at_seven(rows, lambda: _by_another(rows))
def chatters(rows):
    print('File "/code/transforms/other.py", line 1')
    print("words " * 100_000)
    return waits(rows)
def crashes(rows): return _at_seven(rows, lambda: os.kill(os.getpid(), signal.SIGSEGV))
def eats(rows): return _at_seven(rows, _all_memory)
def raises(rows): return _at_seven(rows, lambda: 1 // 0)
def starts(rows):  # leaves a process behind
    if os.fork() == 0:
        time.sleep(600)
    return doubled(rows)
def speaks(rows):
    print("some words")
    return doubled(rows)
def measured(rows):
    from pathlib import Path
    import sys
    size = sum(file.stat().st_size for file in Path(sys.argv[1]).iterdir())
    Path(__file__).with_name("bytes").write_text(str(size))
    return doubled(rows)
def limited(rows):
    import resource
    return pa.table({"n": pa.repeat(resource.getrlimit(resource.RLIMIT_AS)[0], rows.num_rows)})
def fills(rows):  # the disk, for all that comes after it
    import resource
    resource.setrlimit(resource.RLIMIT_FSIZE, (0, 0))
    return doubled(rows)
def always(rows): os._exit(0)
def fewer(rows): return rows.slice(1)
"""
MEMORY = 512 << 20


@pytest.fixture(autouse=True)
def functions(tmp_path: Path) -> None:
    (tmp_path / "transforms").mkdir()
    (tmp_path / "transforms" / "sick.py").write_text(FUNCTIONS)
    (tmp_path / "transforms" / "endless.py").write_text("import time\ntime.sleep(600)")
    (tmp_path / "transforms" / "left.py").write_text("import os\nos._exit(0)")
    use_folder(str(tmp_path))


def apart(function: str, numbers: list[int], call_s: float = 1.0) -> tuple[list[object], list[str | None]]:
    step = ApartTransform(f"sick:{function}", folders(), call_s=call_s, memory_bytes=MEMORY)
    done = step.applied({"n": pa.array(numbers, pa.int64())})
    return done.columns["n"].to_pylist(), done.refused.to_pylist()


NUMBERS = [6, 7, 8]


@pytest.mark.parametrize(
    ("function", "why"),
    [
        ("waits", "sick:waits did not return within 1 second (sick.py, line "),
        ("matches", "sick:matches did not return within 1 second (sick.py, line "),
        ("leaves", "sick:leaves ended its process with the exit code 3"),
        ("tells", "sick:tells ended its process with the exit code 3"),
        ("chatters", "sick:chatters did not return within 1 second (sick.py, line "),
        ("crashes", "sick:crashes ended its process with SIGSEGV"),
        ("eats", "MemoryError"),
        ("raises", "ZeroDivisionError"),
    ],
)
def test_only_the_row_that_a_function_does_not_survive_is_refused(function: str, why: str) -> None:
    changed, refused = apart(function, NUMBERS, call_s=1.0 if "1 second" in why else 60.0)
    assert changed == [12, 7, 16]
    assert [text is None for text in refused] == [True, False, True]
    assert str(refused[1]).startswith(why)


def test_a_function_that_returns_is_called_once_whatever_it_prints(capfd: pytest.CaptureFixture[str]) -> None:
    assert apart("speaks", NUMBERS) == ([12, 14, 16], [None] * 3)
    out, err = capfd.readouterr()
    assert (out, err.count("some words")) == ("", 1)


def test_only_the_end_of_what_a_process_prints_is_kept(capfd: pytest.CaptureFixture[str]) -> None:
    apart("chatters", [7])
    assert len(capfd.readouterr().err) == LOG_BYTES


def test_a_process_that_a_function_started_is_not_waited_for() -> None:
    began = time.monotonic()
    assert apart("starts", [1, 2], call_s=60) == ([2, 4], [None] * 2)
    assert time.monotonic() - began < 60


def test_a_process_gets_its_rows_and_not_all_of_the_task(tmp_path: Path) -> None:
    rows = pa.table({"n": pa.array(range(100_000), pa.int64())})
    step = ApartTransform("sick:measured", folders())
    assert step.made(rows.slice(7, 3))["n"].to_pylist() == [14, 16, 18]
    assert int((tmp_path / "transforms" / "bytes").read_text()) < 10_000


def test_no_rows_need_no_process() -> None:
    assert apart("always", []) == ([], [])


def test_a_function_that_cannot_be_used_says_why_as_elsewhere() -> None:
    with pytest.raises(NoFunction, match="sick:fewer returned 2 of 3 rows"):
        apart("fewer", NUMBERS)
    with pytest.raises(NoFunction, match=r"has no function missing") as failure:
        apart("missing", NUMBERS)
    assert "deploy the code" in failure.value.hint


def test_a_function_that_survives_no_row_fails_its_table_and_not_each_row(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("forebay.record.apart.KILLED_AT_MOST", 4)
    with pytest.raises(NoFunction, match="exit code 0, after 4 other calls of the task that ended so"):
        apart("always", [*range(500)])


def test_a_function_that_survives_no_row_of_many_tables_is_called_no_more_in_the_task(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each table may have one row of it, and each call may take 20 seconds. So may each import."""
    monkeypatch.setattr("forebay.record.apart.KILLED_AT_MOST", 2)
    one, lost, row = {"n": pa.array([1], pa.int64())}, Lost(), "sick:always ended its process with the exit code 0"
    tables = [ApartTransform("sick:always", folders(), lost=lost) for _ in range(4)]
    assert [step.applied(one).refused.to_pylist() for step in tables[:2]] == [[row], [row]]
    for step in tables[2:]:
        with pytest.raises(NoFunction, match="after 2 other calls of the task that ended so"):
            step.applied(one)
    assert lost.calls == {"sick:always": 3}
    assert ApartTransform("sick:doubled", folders(), lost=lost).applied(one).columns["n"].to_pylist() == [2]
    for _ in range(2):
        with pytest.raises(NoFunction, match="left:f cannot be imported: its process ended"):
            ApartTransform("left:f", folders(), lost=lost).applied(one)
        (tmp_path / "transforms" / "left.py").write_text("def f(rows): return rows")


def test_a_machine_without_room_is_to_blame_and_not_a_row_or_its_file(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(Halt, match=r"sick:fills returned, but its rows could not be written to /.*: is the disk full"):
        apart("fills", NUMBERS)
    monkeypatch.setattr("tempfile.tempdir", "/no/such/folder")
    with pytest.raises(Halt, match=r"sick:doubled could not get a process of its own: \[Errno 2\]") as halted:
        apart("doubled", NUMBERS)
    told = "".join(traceback.format_exception(halted.value))
    assert not blames_a_file(Exception(f"Job aborted due to stage failure: Task 0 in stage 1.0 failed.\n{told}"))


def test_a_module_whose_import_does_not_end_cannot_be_used() -> None:
    declared = 'name = "s"\n[[tables]]\nname = "t"\ntransform = "left:f"\ncolumns = [{ name = "n" }]\n'
    with pytest.raises(InvalidConfiguration, match="table t: transform: left:f cannot be imported: its process ended"):
        check_transforms(parse_service({"service.toml": declared}))
    step = ApartTransform("endless:f", folders(), import_s=1.0)
    with pytest.raises(NoFunction, match=r"endless:f cannot be imported within 1 second \(endless.py, line 2\)"):
        step.applied({"n": pa.array([1])})


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="only Linux enforces the limit")
def test_in_the_process_of_its_caller_a_function_has_the_memory_of_a_task() -> None:
    import resource

    before, mapped = resource.getrlimit(resource.RLIMIT_AS), int(Path("/proc/self/statm").read_text().split()[0])
    step = Transform("sick:limited", folders(), memory_bytes=MEMORY)
    (limit,) = step.applied({"n": pa.array([1], pa.int64())}).columns["n"].to_pylist()
    assert 0 <= limit - MEMORY - mapped * resource.getpagesize() < MEMORY
    assert resource.getrlimit(resource.RLIMIT_AS) == before


def test_in_the_process_of_its_caller_a_function_that_hangs_ends_that_process() -> None:
    """Spark then repeats the task, with the function apart."""
    code = (
        "import sys, pyarrow as pa\n"
        "from forebay.record.transform import Transform\n"
        "step = Transform(sys.argv[1], (sys.argv[2],), call_s=0.5)\n"
        "print(step.applied({'n': pa.array([1])}).columns['n'].to_pylist(), flush=True)\n"
        "step.applied({'n': pa.array([7])})\n"
    )
    for function in ("sick:waits", "sick:matches"):
        done = subprocess.run(
            [sys.executable, "-c", code, function, *folders()], capture_output=True, text=True, timeout=60
        )
        assert (done.returncode, done.stdout) == (1, "[2]\n")
        assert "Timeout" in done.stderr
        assert "sick.py" in done.stderr
