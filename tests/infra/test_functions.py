"""What functions ship with is all that they import: they run where this repository is not."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

from infra.functions.function import gather_code


def imported(module: Path) -> Iterator[str]:
    """Of ours, when the module is imported or a function of it runs; not what only types need."""
    tree = ast.parse(module.read_text())
    for node in ast.walk(tree):
        if isinstance(node, ast.If) and "TYPE_CHECKING" in ast.unparse(node.test):
            node.body = []
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom) and node.module:
            yield node.module
        elif isinstance(node, ast.Import):
            yield from (name.name for name in node.names)


def test_every_module_that_a_function_imports_is_shipped(tmp_path: Path) -> None:
    gather_code(tmp_path)
    modules = [path for room in ("forebay", "lambdas") for path in (tmp_path / room).rglob("*.py")]
    missing = {
        f"{module.relative_to(tmp_path)} imports {name}"
        for module in modules
        for name in imported(module)
        if name.partition(".")[0] in ("forebay", "lambdas")
        and not (tmp_path / f"{name.replace('.', '/')}.py").exists()
        and not (tmp_path / name.replace(".", "/") / "__init__.py").exists()
    }
    assert missing == set()
