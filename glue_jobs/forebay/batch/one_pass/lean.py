"""A pass in little memory, for files that the first one had no room for. It reads them twice.

In: the spec of the pass. Out: an `Answer` for all pieces. The first job keeps nothing but the ends of pieces. The
second one reads the pieces of files that land, and knows all ends before it begins, so no record waits for the end of its
file. Large pieces have a task each. A piece that has its own task, and needs more memory than that task has, is too large: its
end says so, and its file goes to the quarantine.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace

import pyarrow as pa

from forebay.batch.one_pass.answers import Answer, together
from forebay.batch.one_pass.reader import read_ends
from forebay.batch.one_pass.spec import PassSpec
from forebay.content.ceiling import ceiling
from forebay.content.end import PieceEnd, file_ends
from forebay.content.piece import Piece, deal
from forebay.spark.python_worker import spare_repeats

LARGE_BYTES = 64 << 20
"""Pieces with more, packed or unpacked, have a task each."""
CROWDED = (MemoryError, pa.ArrowException)
READINGS = 10
"""Readings that begin in little memory after one that ran short. After them, a reading tries more again."""

Hands = list[list[Piece]]


@dataclass(frozen=True)
class EndsTask:
    """Reads, and keeps no record. Answers with the ends of its pieces, or gives up without enough memory."""

    spec: PassSpec

    def __call__(self, hands: Iterable[list[Piece]]) -> Iterator[Answer]:
        for pieces in hands:
            with ceiling(self.spec.limits.task_memory_bytes):
                spare_repeats()
                try:
                    yield Answer(ends=[*self.ends(pieces)])
                except CROWDED as odd:
                    yield Answer(odd=f"{type(odd).__name__}: {odd}", is_crowded=True)

    def ends(self, pieces: Sequence[Piece]) -> Iterator[PieceEnd]:
        """A piece that found no room beside others is read once more, alone."""
        for end in read_ends(self.spec, pieces):
            if end.reason == "too-large" and len(pieces) > 1:
                yield from read_ends(self.spec, [piece for piece in pieces if piece.number == end.piece])
            else:
                yield end


@dataclass
class ShortMemory:
    """A driver's record of the sizes of pieces for which memory was short. If each batch is that large, a first pass over each
    would be useless. It is only a guess, so it is kept nowhere else."""

    weight: int = 0
    left: int = 0

    def is_expected(self, weight: int) -> bool:
        """Asked once for each reading."""
        if not self.left or weight < self.weight:
            return False
        self.left -= 1
        return True

    def learn(self, weight: int) -> None:
        self.weight, self.left = weight, READINGS


@dataclass
class Lean:
    """The lean pass of one batch, with its two jobs and the function that deletes the data files of an answer. `tasks` is the
    number of tasks that run at once."""

    spec: PassSpec
    tasks: int
    read: Callable[[PassSpec, Hands], list[Answer]]
    write: Callable[[PassSpec, Hands], list[Answer]]
    undo: Callable[[Answer], None]
    alone: set[int] = field(default_factory=set)
    """Pieces that have a task each."""
    too_large: dict[int, PieceEnd] = field(default_factory=dict)

    def answer(self) -> Answer:
        ends = self.ends()
        while True:
            ends |= self.too_large
            spec = replace(self.spec, ends=tuple(ends.values()))
            landing = {n for end in file_ends(spec.pieces, spec.ends) if end.lands for n in end.lines_before}
            hands = self.hands((piece for piece in spec.pieces if piece.number in landing), ends)
            answers = self.write(spec, hands) if hands else []
            answer = together(answers)
            if not self.blame(hands, answers):
                return replace(answer, ends=list(spec.ends))
            self.undo(answer)

    def ends(self) -> dict[int, PieceEnd]:
        found: dict[int, PieceEnd] = {}
        while len(found) + len(self.too_large) < len(self.spec.pieces):
            left = (piece for piece in self.spec.pieces if piece.number not in {*found, *self.too_large})
            hands = self.hands(left, {})
            answers = self.read(self.spec, hands)
            found |= {end.piece: end for one in answers for end in one.ends}
            self.blame(hands, answers)
        return found

    def hands(self, pieces: Iterable[Piece], ends: Mapping[int, PieceEnd]) -> Hands:
        alone: list[Piece] = []
        others: list[Piece] = []
        for piece in pieces:
            size = max(piece.weight, ends[piece.number].expanded_bytes if ends else 0)
            (alone if piece.number in self.alone or size > LARGE_BYTES else others).append(piece)
        return [*([piece] for piece in alone), *deal(others, self.tasks)]

    def blame(self, hands: Hands, answers: Sequence[Answer]) -> bool:
        """Whether a task had too little memory. Its pieces are read alone from now on; one that was alone is too large."""
        crowded = [(hand, one.odd) for hand, one in zip(hands, answers, strict=True) if one.is_crowded]
        for hand, why in crowded:
            if len(hand) != 1:
                self.alone.update(piece.number for piece in hand)
                continue
            detail = f"it needs more memory than a task has: {why}"
            end = PieceEnd(piece=hand[0].number, outcome="unreadable", reason="too-large", detail=detail)
            self.too_large[end.piece] = end
        return bool(crowded)
