"""Many requests at once, within bounds of count and bytes."""

from __future__ import annotations

import threading
import time
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

from forebay.content import window
from forebay.content.limits import Limits
from forebay.content.piece import Piece
from forebay.content.window import fetch_all
from forebay.landed_file import LandedFile


def pieces(*sizes: int) -> list[Piece]:
    return [Piece(n, LandedFile("b", str(n), size)) for n, size in enumerate(sizes)]


class Slow:
    """A fetch that takes a while and remembers how many, and how many bytes, were on their way at once."""

    def __init__(self, seconds: float = 0.01) -> None:
        self.seconds, self.lock = seconds, threading.Lock()
        self.count = self.most_at_once = self.bytes = self.most_bytes = 0

    def __call__(self, piece: Piece) -> int:
        with self.lock:
            self.count += 1
            self.bytes += piece.bytes_awaited
            self.most_at_once = max(self.most_at_once, self.count)
            self.most_bytes = max(self.most_bytes, self.bytes)
        time.sleep(self.seconds)
        with self.lock:
            self.count -= 1
            self.bytes -= piece.bytes_awaited
        return piece.number


def test_every_piece_comes_out_once_with_what_was_fetched_for_it() -> None:
    some = pieces(*[10] * 100)
    fetched = list(fetch_all(some, Slow(0.001), Limits(files_in_flight=8)))
    assert sorted(n for _, n in fetched) == list(range(100))
    assert all(piece.number == n for piece, n in fetched)


class Together(Slow):
    """A fetch that ends only when as many as `count_at_once` have begun, so that a narrower window never ends."""

    def __init__(self, count_at_once: int) -> None:
        super().__init__(0)
        self.barrier = threading.Barrier(count_at_once, timeout=20)

    def __call__(self, piece: Piece) -> int:
        with self.lock:
            self.count += 1
            self.bytes += piece.bytes_awaited
            self.most_at_once, self.most_bytes = max(self.most_at_once, self.count), max(self.most_bytes, self.bytes)
        self.barrier.wait()
        with self.lock:
            self.count -= 1
            self.bytes -= piece.bytes_awaited
        return piece.number


def test_no_more_requests_are_made_at_once_than_allowed_and_all_of_those_are() -> None:
    together = Together(8)
    assert len(list(fetch_all(pieces(*[1] * 40), together, Limits(files_in_flight=8)))) == 40
    assert together.most_at_once == 8


def test_no_more_bytes_are_awaited_at_once_than_allowed_and_all_of_those_are() -> None:
    together = Together(3)
    assert len(list(fetch_all(pieces(*[30] * 18), together, Limits(bytes_in_flight=100)))) == 18
    assert together.most_bytes == 90


def test_what_the_consumer_holds_counts_as_well(monkeypatch: pytest.MonkeyPatch) -> None:
    """What is asked for is asked for in the consumer's own thread, so nothing has to be waited for."""
    asked: list[int] = []

    class Asked(ThreadPoolExecutor):
        def submit(self, fetch: Any, piece: Piece) -> Any:  # type: ignore[override]
            asked.append(piece.number)
            return super().submit(fetch, piece)

    monkeypatch.setattr(window, "ThreadPoolExecutor", Asked)
    stream = fetch_all(pieces(*[60] * 5), Slow(0), Limits(bytes_in_flight=100))
    next(stream)
    assert asked == [0]
    next(stream)
    assert asked == [0, 1]
    assert len(list(stream)) == 3


def test_a_piece_larger_than_the_window_goes_alone() -> None:
    slow = Slow()
    assert len(list(fetch_all(pieces(10, 500, 10), slow, Limits(bytes_in_flight=100)))) == 3
    assert slow.most_bytes == 500


def test_one_slow_request_does_not_hold_up_the_others() -> None:
    def fetch(piece: Piece) -> float:
        time.sleep(0.5 if piece.number == 0 else 0)
        return 0

    order = [piece.number for piece, _ in fetch_all(pieces(*[1] * 50), fetch, Limits(files_in_flight=4))]
    assert order[-1] == 0


def test_an_error_of_ours_reaches_the_consumer_and_nothing_more_is_begun() -> None:
    began: list[int] = []

    def fetch(piece: Piece) -> int:
        began.append(piece.number)
        raise PermissionError("expired")

    with pytest.raises(PermissionError, match="expired"):
        list(fetch_all(pieces(*[1] * 1000), fetch, Limits(files_in_flight=2)))
    assert len(began) < 10


def test_nothing_to_fetch_starts_nothing() -> None:
    before = threading.active_count()
    assert list(fetch_all([], Slow(), Limits())) == []
    assert threading.active_count() == before
