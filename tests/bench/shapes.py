"""What the shape of a file costs its reader: seconds for each record, and memory for documents of 20 and of 200 MB.

In: the same records as JSON lines, as CloudTrail has them (one document with an array), as CSV, and with an array that is
exploded. Each is read from a file by the job's reader and made into columns, as a task does. That happens in a process of its
own, so its peak is its own. Nothing is fetched. The shapes take turns. Out: `run()`'s figures and the bars.
"""

from __future__ import annotations

import argparse
import io
import json
import resource
import statistics
import time
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from csv import DictWriter
from multiprocessing import get_context
from pathlib import Path
from tempfile import NamedTemporaryFile
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from forebay.content.limits import Limits
from forebay.content.piece import cut
from forebay.content.reading import read_pieces
from forebay.declaration.form import Explosion, Form, Forms
from forebay.landed_file import LandedFile
from forebay.record.conform import Records, writable
from forebay.record.growth import Rules, grown
from forebay.record.kind import Struct
from tests.bench.bars import at_most

HALF_AS_FAST, AS_FAST = 2.0, 1.0


def run(*, megabytes: int = 20, rounds: int = 3) -> dict[str, Any]:
    """Bars: a CloudTrail-like document is at least half as fast for each record as lines, and CSV as fast."""
    seconds: dict[str, list[float]] = {shape: [] for shape in SHAPES}
    reading: dict[str, list[float]] = {shape: [] for shape in SHAPES}
    for _ in range(rounds):
        for shape in SHAPES:
            found = _alone(shape, megabytes)
            seconds[shape].append(found["read"] + found["columns"])
            reading[shape].append(found["read"])
    cost = {shape: statistics.median(found) for shape, found in seconds.items()}
    peaks = {f"{size}_mb": _alone("document", size)["peak_mb"] for size in (megabytes, 10 * megabytes)}
    figures = {
        "microseconds_a_record": {shape: round(found, 2) for shape, found in cost.items()},
        "of_these_to_read": {shape: round(statistics.median(found), 2) for shape, found in reading.items()},
        "peak_mb_of_a_document": peaks,
        "bytes_of_memory_a_byte": round(
            (peaks[f"{10 * megabytes}_mb"] - peaks[f"{megabytes}_mb"]) / (9 * megabytes), 2
        ),
    }
    bars = [
        at_most("a document, times a line", cost["document"] / cost["lines"], HALF_AS_FAST),
        at_most("a row of CSV, times a line", cost["csv"] / cost["lines"], AS_FAST),
    ]
    return {"name": "shapes", "figures": figures, "bars": bars}


def _alone(shape: str, megabytes: int) -> dict[str, float]:
    """The memory that writing takes is not the reader's."""
    with NamedTemporaryFile(prefix="forebay-bench-") as file:
        for step in (_write, _read):
            with ProcessPoolExecutor(1, get_context("spawn")) as another:
                found = another.submit(step, shape, megabytes, file.name).result()
    return found


def _write(shape: str, megabytes: int, place: str) -> dict[str, float]:
    write, _, _ = SHAPES[shape]
    Path(place).write_bytes(write(megabytes << 20))
    return {}


def _read(shape: str, megabytes: int, place: str) -> dict[str, float]:
    _, form, name = SHAPES[shape]
    size = Path(place).stat().st_size
    pieces = cut([LandedFile("landing", name, size, "etag")], Limits(piece_bytes=1 << 30))

    def get(file: LandedFile, start: int = 0, stop: int | None = None) -> bytes:
        return Path(place).read_bytes()[start:stop]

    before, began, rows, columns_s = _peak_mb(), time.process_time(), 0, 0.0
    for batch in read_pieces(pieces, get, Limits(), forms=form):
        rows += batch.num_rows
        columns_s -= time.process_time()
        _make_columns(batch.column("value").filter(pc.is_valid(batch.column("line"))))
        columns_s += time.process_time()
    read_s = time.process_time() - began - columns_s
    figures = {"read": read_s, "columns": columns_s}
    return {name: 1e6 * s / rows for name, s in figures.items()} | {"peak_mb": round(_peak_mb() - before, 1)}


def _make_columns(texts: pa.StringArray) -> None:
    records = Records(texts, Rules())
    records.conformed(writable(grown(Struct(), records.shape(), Rules())))


def _peak_mb() -> float:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


def _record(number: int) -> dict[str, Any]:
    return {
        "eventVersion": "1.11",
        "userIdentity.arn": f"arn:aws:sts::123456789012:assumed-role/reader-{number % 97}/session",
        "eventTime": "2026-11-22T10:00:00Z",
        "eventSource": "s3.amazonaws.com",
        "eventName": "GetObject",
        "sourceIPAddress": f"10.0.{number % 256}.7",
        "requestParameters.key": f"in/2026/11/22/{number:012}.json",
        "requestParameters.bucketName": "landing-of-a-studio",
        "additionalEventData.bytesTransferredOut": 1000 + number % 5000,
        "eventID": f"00000000-0000-4000-8000-{number:012}",
        "readOnly": True,
        "userAgent": "[aws-sdk-java/2.29 Linux/6.1 OpenJDK_64-Bit_Server_VM/17 md/internal exec-env/AWS_ECS_FARGATE]",
    }


def _records(size: int) -> range:
    return range(size // len(json.dumps(_record(0))))


def _lines(size: int) -> bytes:
    return "".join(f"{json.dumps(_record(n))}\n" for n in _records(size)).encode()


def _document(size: int) -> bytes:
    return f'{{"Records": [{", ".join(json.dumps(_record(n)) for n in _records(size))}]}}'.encode()


def _csv(size: int) -> bytes:
    text = io.StringIO()
    rows = DictWriter(text, list(_record(0)))
    rows.writeheader()
    rows.writerows(map(_record, _records(size)))
    return text.getvalue().encode()


def _with_arrays(size: int) -> bytes:
    """Lines that each hold ten records in an array."""
    tens = (json.dumps({"id": n, "items": [_record(10 * n + m) for m in range(10)]}) for n in _records(size // 10))
    return "".join(f"{ten}\n" for ten in tens).encode()


def _formed(**form: Any) -> Forms:
    return Forms(forms=(Form(**form),))


SHAPES: dict[str, tuple[Callable[[int], bytes], Forms, str]] = {
    "lines": (_lines, _formed(), "a.json"),
    "document": (_document, _formed(inside=(("Records",),)), "a.json"),
    "csv": (_csv, _formed(format="csv"), "a.csv"),
    "exploded": (_with_arrays, _formed(exploded=(Explosion(("items",), ("id",)),)), "a.json"),
}


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--megabytes", type=int, default=20)
    options.add_argument("--rounds", type=int, default=3)
    print(json.dumps(run(**vars(options.parse_args()))))


if __name__ == "__main__":
    main()
