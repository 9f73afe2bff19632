"""Once the job stops no batch begins, and nothing of it is held by what Spark still knows of the stream."""

from __future__ import annotations

import gc
import weakref
from typing import Any

import pytest

from forebay.errors import Halt
from forebay.jobs.gate import Gate


class Batches:
    def __init__(self) -> None:
        self.processed: list[int] = []

    def process(self, files: Any, batch_id: int) -> None:
        self.processed.append(batch_id)


def test_a_closed_gate_lets_no_batch_through_and_holds_none() -> None:
    batches: Any = Batches()
    gate, held, processed, files = Gate(batches), weakref.ref(batches), batches.processed, object()
    del batches
    gate.process(files, 1)  # type: ignore[arg-type]
    assert not gate.closed
    gate.close()
    gc.collect()
    assert (gate.closed, gate.failed, held()) == (True, False, None)
    with pytest.raises(Halt, match="the next run processes this batch"):
        gate.process(files, 2)  # type: ignore[arg-type]
    assert processed == [1]
