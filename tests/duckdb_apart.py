"""DuckDB in a process of its own. Threads of a test worker outlive the tests, and DuckDB then reports leaked objects."""

from __future__ import annotations

import pickle
import subprocess
import sys
from typing import Any

import pyarrow as pa

PROGRAM = """
import pickle, sys
import duckdb
statements, tables, parameters = pickle.load(sys.stdin.buffer)
with duckdb.connect() as database:
    for name, rows in tables.items():
        database.register(name, rows)
    *before, last = statements
    for statement in before:
        database.execute(statement)
    pickle.dump(database.execute(last, parameters).to_arrow_table(), sys.stdout.buffer)
"""


def ask_duckdb(*statements: str, tables: dict[str, pa.Table] | None = None, parameters: Any = None) -> pa.Table:
    """The answer to the last statement, which has the parameters."""
    asked = pickle.dumps((statements, tables or {}, parameters))
    done = subprocess.run([sys.executable, "-c", PROGRAM], input=asked, capture_output=True, check=False)
    assert done.returncode == 0, done.stderr.decode()
    answer: pa.Table = pickle.loads(done.stdout)
    return answer
