"""Many requests at once, within bounds: pieces go in, fetched pieces come out in any order.

Bounded by count and by bytes: pieces that are requested, or fetched and not yet consumed, take at most `bytes_in_flight`. But
a single piece may exceed it. An error from `fetch` is raised to the consumer, and requests that had not begun are dropped.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from functools import partial
from queue import SimpleQueue
from typing import TypeVar

from forebay.content.limits import Limits
from forebay.content.piece import Piece

Fetched = TypeVar("Fetched")


def fetch_all(
    pieces: Iterable[Piece], fetch: Callable[[Piece], Fetched], limits: Limits
) -> Iterator[tuple[Piece, Fetched]]:
    """Each piece with the result of `fetch`."""
    waiting = deque(pieces)
    if not waiting:
        return
    pool = ThreadPoolExecutor(min(limits.files_in_flight, len(waiting)), thread_name_prefix="fetch")
    done: SimpleQueue[tuple[Piece, Future[Fetched]]] = SimpleQueue()
    asked = held_bytes = 0

    def ask_for_more() -> None:
        nonlocal asked, held_bytes
        while waiting and asked < limits.files_in_flight:
            piece = waiting[0]
            if held_bytes and held_bytes + piece.bytes_awaited > limits.bytes_in_flight:
                return
            waiting.popleft()
            asked, held_bytes = asked + 1, held_bytes + piece.bytes_awaited
            pool.submit(fetch, piece).add_done_callback(partial(_hand_over, done, piece))

    try:
        ask_for_more()
        while asked:
            piece, future = done.get()
            asked -= 1
            ask_for_more()
            yield piece, future.result()
            del future  # it holds the bytes
            held_bytes -= piece.bytes_awaited
            ask_for_more()
    finally:
        pool.shutdown(wait=False, cancel_futures=True)


def _hand_over(done: SimpleQueue[tuple[Piece, Future[Fetched]]], piece: Piece, future: Future[Fetched]) -> None:
    done.put((piece, future))
