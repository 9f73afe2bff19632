"""What it costs a driver to know all files of a long history: the time to load the index, its memory, and a look-up.

In: a ledger in a folder, written without Spark, with so many rows on so many days. Out: `run()`'s figures, measured for these
rows and modelled for 100 million and a billion, and the bars. Loading and memory are linear in rows. Sorting takes n log n.
"""

from __future__ import annotations

import argparse
import json
import math
import resource
import tempfile
import time
from concurrent.futures import ProcessPoolExecutor
from datetime import date, timedelta
from multiprocessing import get_context
from typing import Any

import numpy as np
import pyarrow as pa
from deltalake import write_deltalake

from forebay.lake.objects import open_objects
from forebay.ledger.index import Index, load_index
from tests.bench.bars import at_most

MODELLED = (100_000_000, 1_000_000_000)
ROWS_OF_A_FILE = 1_000_000
LOOKED_UP = 10_000


def run(*, history: int = 10_000_000, days: int = 100) -> dict[str, Any]:
    """A driver on AWS has 16 GB and more; a batch of a thousand files must not notice the index."""
    with tempfile.TemporaryDirectory(prefix="forebay-bench-") as folder:
        with ProcessPoolExecutor(1, get_context("spawn")) as another:  # the memory that writing takes is not ours
            hashes = another.submit(_write_history, folder, history, days).result()
        before = _most_memory()
        began = time.perf_counter()
        index = load_index(open_objects(folder), ["s"])
        load_s = time.perf_counter() - began
        grew = _most_memory() - before
    lookup_us = _lookup_us(index, hashes)
    figures: dict[str, Any] = {
        "history": history,
        "load_s": round(load_s, 2),
        "index_mb": round(index.bytes / 1e6, 1),
        "peak_mb_while_loading": round(grew / 1e6, 1),
        "lookup_us": round(lookup_us, 2),
    }
    for rows in MODELLED:
        times = rows / history
        figures[f"modelled_{rows // 1_000_000}_million"] = {
            "load_s": round(load_s * times * math.log(rows) / math.log(history), 1),
            "index_gb": round(index.bytes * times / 1e9, 2),
            "peak_gb_while_loading": round(grew * times / 1e9, 2),
        }
    a_thousand_ms = lookup_us * 1000 / 1000
    bars = [
        at_most("bytes a row", index.bytes / history, 8),
        at_most("ms for 1,000 files", a_thousand_ms, 50),
    ]
    return {"name": "index", "figures": figures, "bars": bars}


def _write_history(folder: str, rows: int, days: int) -> Any:
    """Only what a start reads, and a text of the usual length beside it, which it must not read."""
    random = np.random.default_rng(20261122)
    hashes = random.integers(-(2**63), 2**63 - 1, rows)
    for first in range(0, rows, ROWS_OF_A_FILE):
        some = hashes[first : first + ROWS_OF_A_FILE]
        of_days = [date(2026, 1, 1) + timedelta(days=int(n)) for n in np.arange(len(some)) * days // len(some)]
        texts = pa.array(some).cast(pa.string())
        table = pa.table({"day": pa.array(of_days), "key_hash": some, "key": texts})
        write_deltalake(folder, table, mode="append", partition_by=["day"])
    return hashes[:LOOKED_UP]


def _lookup_us(index: Index, hashes: Any) -> float:
    asked = [int(hash_) for hash_ in hashes]
    began = time.perf_counter()
    assert len(index.days_of(asked)) == len(asked)
    return (time.perf_counter() - began) * 1e6 / len(asked)


def _most_memory() -> int:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--history", type=int, default=10_000_000)
    options.add_argument("--days", type=int, default=100)
    print(json.dumps(run(**vars(options.parse_args()))))


if __name__ == "__main__":
    main()
