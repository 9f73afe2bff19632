"""What tasks answer with travels to the driver in few bytes, and arrives as it was."""

from __future__ import annotations

import pickle
from collections import Counter

from pyspark import cloudpickle

from forebay.batch.one_pass.answers import Answer, Judged


def test_the_fates_of_many_files_arrive_as_they_were() -> None:
    fates = Counter(
        {
            Judged(f"file-{file}", "write", f"table-{table}", 0, violated=("positive",) if table else ()): file + 1
            for file in range(20)
            for table in range(3)
        }
    )
    fates[Judged("file-1", "refuse", reason="not-json")] = 4
    sent = cloudpickle.dumps(Answer(fates=fates.copy(), odd="why", runs=frozenset({(1, "a")})))
    arrived = pickle.loads(sent)
    assert arrived == Answer(fates=fates, odd="why", runs=frozenset({(1, "a")}))
    assert all(type(one) is Judged for one in arrived.fates)
    assert b"Judged" not in sent, "cloudpickle calls Python for each named tuple"
