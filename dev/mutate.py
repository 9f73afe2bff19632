"""Makes small changes to a room's code, one at a time: each should make one of its tests fail. `make mutate ROOM=ledger`

In: a room of `glue_jobs/forebay`, such as `ledger` or `upkeep/erase`. Out: the mutants that no test of the room noticed,
with file and line, and a score. Only tests without a JVM run: a mutant that only a JVM test notices survives here. Each worker
has a copy of the repository, so nothing here changes. With `--record` the score goes into `tests/mutation_scores.json`.
"""

from __future__ import annotations

import argparse
import ast
import copy
import json
import os
import random
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from itertools import count
from pathlib import Path
from queue import SimpleQueue

REPOSITORY = Path(__file__).resolve().parents[1]
CODE, SCORES = Path("glue_jobs/forebay"), Path("tests/mutation_scores.json")
LEAST_S, TIMES_SLOWER = 60, 10
"""A mutant whose tests take so much longer than all others do loops for ever, and is noticed."""

COMPARISONS: dict[type[ast.cmpop], type[ast.cmpop]] = {
    ast.Lt: ast.LtE,
    ast.LtE: ast.Lt,
    ast.Gt: ast.GtE,
    ast.GtE: ast.Gt,
    ast.Eq: ast.NotEq,
    ast.NotEq: ast.Eq,
    ast.In: ast.NotIn,
    ast.NotIn: ast.In,
    ast.Is: ast.IsNot,
    ast.IsNot: ast.Is,
}


@dataclass(frozen=True)
class Mutant:
    """`source` is all of the module with the change. Its line numbers are other ones: comments are left out."""

    path: Path
    line: int
    what: str
    source: str

    def __str__(self) -> str:
        return f"{self.path}:{self.line}: {self.what}"


def mutants_of(path: Path, source: str) -> Iterator[Mutant]:
    """In the order of the module's nodes."""
    tree = ast.parse(source)
    for at, node in enumerate(_nodes(tree)):
        for number, (what, _) in enumerate(_changes(node)):
            changed = copy.deepcopy(tree)
            target = list(_nodes(changed))[at]
            _, new = list(_changes(target))[number]
            mutated = ast.fix_missing_locations(_Exchange(target, new).visit(changed))
            line = (node.target if isinstance(node, ast.comprehension) else node).lineno  # type: ignore[attr-defined]
            yield Mutant(path, line, what, ast.unparse(mutated))


def _nodes(tree: ast.AST) -> Iterator[ast.AST]:
    """All that may change: not what only types and names say."""
    yield tree
    for name, value in ast.iter_fields(tree):
        if name in ("annotation", "decorator_list", "returns", "type_params"):
            continue
        for child in value if isinstance(value, list) else [value]:
            if isinstance(child, ast.AST) and not _only_names(child):
                yield from _nodes(child)


def _only_names(node: ast.AST) -> bool:
    """Whether the node only has imports for types."""
    return isinstance(node, ast.If) and ast.unparse(node.test) == "TYPE_CHECKING"


def _changes(node: ast.AST) -> Iterator[tuple[str, ast.AST]]:
    if isinstance(node, ast.Compare):
        for at, op in enumerate(node.ops):
            ops = [COMPARISONS[type(op)]() if n == at else one for n, one in enumerate(node.ops)]
            yield from _as(node, ast.Compare(node.left, ops, node.comparators))
    elif isinstance(node, ast.BoolOp):
        yield from _as(node, ast.BoolOp(ast.Or() if isinstance(node.op, ast.And) else ast.And(), node.values))
        for at in range(len(node.values)):
            left = [value for n, value in enumerate(node.values) if n != at]
            yield from _as(node, left[0] if len(left) == 1 else ast.BoolOp(node.op, left))
    elif isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.Not):
        yield from _as(node, node.operand)
    elif isinstance(node, ast.comprehension):
        for at in range(len(node.ifs)):
            ifs = [one for n, one in enumerate(node.ifs) if n != at]
            without = ast.comprehension(node.target, node.iter, ifs, node.is_async)
            yield f"`if {ast.unparse(node.ifs[at])}` dropped", without
    elif isinstance(node, ast.Constant) and isinstance(node.value, bool):
        yield from _as(node, ast.Constant(not node.value))
    elif isinstance(node, ast.Constant) and type(node.value) is int:
        yield from _as(node, ast.Constant(node.value + 1))


def _as(node: ast.AST, new: ast.AST) -> Iterator[tuple[str, ast.AST]]:
    yield f"`{ast.unparse(node)}` became `{ast.unparse(new)}`", new


class _Exchange(ast.NodeTransformer):
    def __init__(self, old: ast.AST, new: ast.AST) -> None:
        self._old, self._new = old, new

    def visit(self, node: ast.AST) -> ast.AST:
        return self._new if node is self._old else self.generic_visit(node)


class Tests:
    """Those of a room, in copies of the repository: one for each worker."""

    def __init__(self, wanted: Sequence[str], copies: Sequence[Path]) -> None:
        self._wanted, self._copies, self._times = wanted, SimpleQueue[Path](), count(1)
        for one in copies:
            self._copies.put(one)
        began = time.monotonic()
        self._most_s = float(os.environ.get("MUTATE_TIMEOUT_S", "600"))
        if self._fail_in(copies[0]):
            raise SystemExit(f"the tests fail without a change: {' '.join(wanted)}")
        self._most_s = max(LEAST_S, TIMES_SLOWER * (time.monotonic() - began))

    def notice(self, mutant: Mutant) -> bool:
        place = self._copies.get()
        before = (place / mutant.path).read_text()
        try:
            self._write(place / mutant.path, mutant.source)
            return self._fail_in(place)
        finally:
            self._write(place / mutant.path, before)
            self._copies.put(place)

    def _write(self, module: Path, source: str) -> None:
        """At a time of its own: Python keeps what it compiled for as long as a file has the same time and size."""
        module.write_text(source)
        at = next(self._times)
        os.utime(module, (at, at))

    def _fail_in(self, place: Path) -> bool:
        options = ("-q", "-x", "-m", "not jvm", "-p", "no:cacheprovider", "-p", "no:randomly", "--tb=no")
        compiled = str(place / ".bytecode")
        env = {**os.environ, "PYTHONPATH": str(place / "glue_jobs"), "PYTHONPYCACHEPREFIX": compiled}
        command = [sys.executable, "-m", "pytest", *options, *self._wanted]
        try:
            done = subprocess.run(command, cwd=place, env=env, capture_output=True, timeout=self._most_s, check=False)
        except subprocess.TimeoutExpired:
            return True
        return done.returncode != 0


def copied(into: Path) -> Path:
    """The files of the repository that are kept or new, and what set-up made."""
    (into / ".forebay").mkdir(parents=True)
    for made in ("jars", "job-packages"):
        (into / ".forebay" / made).symlink_to(REPOSITORY / ".forebay" / made)
    listed = ("git", "ls-files", "-co", "--exclude-standard")
    names = subprocess.run(listed, cwd=REPOSITORY, capture_output=True, text=True, check=True).stdout.splitlines()
    for name in names:
        if (REPOSITORY / name).is_file():
            (into / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(REPOSITORY / name, into / name)
    return into


def tests_of(room: str) -> str:
    """The room's folder of tests, or that of its parent room."""
    place = Path("tests") / room
    while not (REPOSITORY / place).is_dir():
        place = place.parent
    return str(place)


def record(room: str, mutants: int, noticed: int) -> None:
    file = REPOSITORY / SCORES
    scores = json.loads(file.read_text()) if file.exists() else {}
    scores[room] = {"mutants": mutants, "noticed": noticed}
    file.write_text(json.dumps(dict(sorted(scores.items())), indent=1) + "\n")


def main() -> None:
    asked = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    asked.add_argument("room", help="such as ledger, upkeep/erase, or one module: upkeep/erase/purge")
    asked.add_argument("--tests", nargs="+", help="other tests than those of the room's folder")
    asked.add_argument("--jobs", type=int, default=2, help="how many tests run at once")
    asked.add_argument("--most", type=int, default=0, help="the number of mutants, always the same ones; 0: all")
    asked.add_argument("--record", action="store_true", help=f"write the score into {SCORES}")
    options = asked.parse_args()
    place = CODE / options.room
    modules = [place.with_suffix(".py")] if (REPOSITORY / place.with_suffix(".py")).is_file() else None
    paths = modules or [path.relative_to(REPOSITORY) for path in sorted((REPOSITORY / place).rglob("*.py"))]
    mutants = [one for path in paths for one in mutants_of(path, (REPOSITORY / path).read_text())]
    if not mutants:
        raise SystemExit(f"{place} has nothing to change: is it spelled correctly?")
    if options.most and options.most < len(mutants):
        mutants = sorted(random.Random(0).sample(mutants, options.most), key=lambda one: (one.path, one.line))
    with tempfile.TemporaryDirectory(prefix="mutate-") as folder:
        copies = [copied(Path(folder) / str(n)) for n in range(options.jobs)]
        tests = Tests(options.tests or [tests_of(options.room)], copies)
        print(f"{len(mutants)} mutants of {options.room}", flush=True)
        noticed = 0
        with ThreadPoolExecutor(options.jobs) as workers:
            for mutant, seen in zip(mutants, workers.map(tests.notice, mutants), strict=True):
                noticed += seen
                if not seen:
                    print(f"survived: {mutant}", flush=True)
    print(f"{noticed} of {len(mutants)} were noticed: {100 * noticed / len(mutants):.0f} %")
    if options.record:
        record(options.room, len(mutants), noticed)


if __name__ == "__main__":
    main()
