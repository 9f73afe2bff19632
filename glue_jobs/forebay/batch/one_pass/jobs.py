"""The Spark jobs of a pass.

In: pieces of files or rows of held records, and `PassSpec`. Out: the answers of the tasks.
"""

from __future__ import annotations

import pickle
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any

from forebay.batch.one_pass.answers import Answer
from forebay.batch.one_pass.asking import Parcelled, QuestionsTask, sent, with_answers
from forebay.batch.one_pass.gathering import WRITER_BYTES, Parcel
from forebay.batch.one_pass.lean import EndsTask, Hands
from forebay.batch.one_pass.spec import PassSpec
from forebay.batch.one_pass.task import GatherTask, ReadTask, Task
from forebay.content.piece import deal
from forebay.declared_sql.questions import Questions, answered
from forebay.table.data_files.in_arrow import arrow_schema, map_in_arrow

if TYPE_CHECKING:
    from pyspark import RDD
    from pyspark.sql import DataFrame, SparkSession

ALONE_AT_MOST = 4
"""Up to this many tasks write the records that they read, each a file for each table. With more, rows are gathered."""
READER_BYTES = 16 << 20
"""The bytes of a batch for each task that reads."""
SENT = "writer int, parcel binary"


class Jobs:
    """Those of one driver."""

    def __init__(self, spark: SparkSession) -> None:
        self.spark = spark

    @property
    def at_once(self) -> int:
        """The number of tasks that run at once."""
        return self.spark.sparkContext.defaultParallelism

    def of_pieces(self, spec: PassSpec) -> list[Answer]:
        """Reads all pieces, and writes their records."""
        weight = sum(piece.weight for piece in spec.pieces)
        hands = deal(spec.pieces, self._tasks(weight, READER_BYTES)) or [[]]  # reading nothing may fail, too
        alone = len(hands) <= ALONE_AT_MOST and all(piece.whole for piece in spec.pieces)
        writers = self._tasks(weight, WRITER_BYTES)
        spec = replace(spec, ids_at_most=spec.ids_at_most // (len(hands) if alone else writers))
        if alone and not (spec.questions or spec.conditions):
            return self._dealt(hands).mapPartitions(Task(spec)).collect()
        parcels = self._parcels(hands, ReadTask(spec, len(hands), 1 if alone else writers))
        if alone:
            return parcels.mapPartitions(GatherTask(spec, alone=True)).collect()
        answers = parcels.partitionBy(writers, int).mapPartitions(GatherTask(spec)).collect()
        return [answers[0], *(replace(answer, ends=[]) for answer in answers[1:])] if answers else []

    def of_held(self, spec: PassSpec, rows: DataFrame) -> list[Answer]:
        """The same of held records. Each task writes those that it gets."""
        read = ReadTask(spec, self.at_once, 1)
        parcels = self._parcels_of(rows.coalesce(read.readers), read.of_held, read)
        return parcels.mapPartitions(GatherTask(spec, alone=True)).collect()

    def ends(self, spec: PassSpec, hands: Hands) -> list[Answer]:
        return self._dealt(hands).mapPartitions(EndsTask(spec)).collect()

    def of_hands(self, spec: PassSpec, hands: Hands) -> list[Answer]:
        """Each task writes what it reads."""
        documents = {end.piece: end.documents for end in spec.ends}
        if sum(documents[piece.number] for hand in hands for piece in hand) > spec.ids_at_most:
            spec = replace(spec, ids_at_most=spec.ids_at_most // len(hands))
        parcels = self._parcels(hands, ReadTask(spec, len(hands), 1))
        return parcels.mapPartitions(GatherTask(spec, alone=True)).collect()

    def _parcels(self, hands: Hands, read: ReadTask) -> RDD[tuple[int, Parcel]]:
        spec = read.spec
        if not (spec.questions or spec.conditions):
            return self._dealt(hands).mapPartitionsWithIndex(read)
        tasks = self._dealt([(number, pickle.dumps(hand)) for number, hand in enumerate(hands)])
        return self._parcels_of(self.spark.createDataFrame(tasks, "number int, pieces binary"), read.of_pieces, read)

    def _parcels_of(self, rows: DataFrame, made: Parcelled, read: ReadTask) -> RDD[tuple[int, Parcel]]:
        """The parcels that tasks make of these rows, with Spark's answers if it is asked."""
        spec = read.spec
        if spec.conditions:
            rows, made = self._with_answers(rows, made, spec.conditions), read.of_parcels
        if spec.questions:
            return self._sent(self._with_answers(rows, made, spec.questions))
        if spec.conditions:
            return self._sent(rows).mapPartitions(read.routed)
        return self._sent(map_in_arrow(rows, partial(sent, made), SENT))

    def _with_answers(self, rows: DataFrame, made: Parcelled, questions: Questions) -> DataFrame:
        asked = map_in_arrow(rows, QuestionsTask(arrow_schema(questions.sent), made), questions.sent)
        return map_in_arrow(answered(asked, questions), with_answers, SENT)

    def _sent(self, rows: DataFrame) -> RDD[tuple[int, Parcel]]:
        return rows.rdd.map(lambda row: (row["writer"], pickle.loads(row["parcel"])))

    def _dealt(self, hands: list[Any]) -> RDD[Any]:
        """Each of them to a task."""
        return self.spark.sparkContext.parallelize(hands, len(hands))

    def _tasks(self, weight: int, each: int) -> int:
        return max(1, min(self.at_once, -(-weight // each)))
