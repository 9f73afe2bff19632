"""The batch data source `forebay-content`: the rows of many files, read by many tasks at once.

In: options. `files` is a JSON array of objects with the fields of `LandedFile`. `forms` is the JSON of `Forms`. `metadata`
is true where rows get the metadata of their object. Also `tasks`, and any of `Limits`. Out: the rows of `rows`.
The executors' environment says which S3 (`AWS_ENDPOINT_URL`, `AWS_REGION`, credentials). A bad file is a row; a wrong option is
`InvalidConfiguration`; a fault of our credentials fails the task.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.datasource import DataSource, DataSourceReader, InputPartition
from pyspark.sql.types import StructType

from forebay.content.ceiling import ceiling
from forebay.content.fetch import Metadata, Retrying, s3_of_this_process
from forebay.content.limits import Limits
from forebay.content.originals import COLUMN
from forebay.content.piece import Piece, cut, deal
from forebay.content.reading import read_pieces
from forebay.content.rows import COLUMNS
from forebay.declaration.form import Forms
from forebay.errors import InvalidConfiguration, Problem
from forebay.landed_file import LandedFile
from forebay.spark.python_worker import spare_repeats

__all__ = ["FORMAT", "ContentSource", "read_content", "register"]

FORMAT = "forebay-content"

FILE_FIELDS = frozenset({"bucket", "key", "size", "etag", "version_id"})


def register(spark: SparkSession) -> None:
    """Makes the format known to the session; again is harmless."""
    spark.dataSource.register(ContentSource)


def read_content(
    spark: SparkSession,
    files: Sequence[LandedFile],
    limits: Limits,
    tasks: int | None = None,
    *,
    metadata: bool = False,
    forms: Forms | None = None,
) -> DataFrame:
    """The rows of the files, by `tasks` tasks (the session's parallelism unless said). Their pieces are `cut(files,
    limits)`. `forms` say how records are laid out in them."""
    reader = spark.read.format(FORMAT).option("files", _to_json(files))
    reader = reader.option("tasks", tasks or spark.sparkContext.defaultParallelism).option("metadata", metadata)
    reader = reader.option("forms", (forms or Forms()).to_json())
    for name, value in asdict(limits).items():
        reader = reader.option(name, value)
    return reader.load()


class ContentSource(DataSource):
    """The interface of the format to Spark."""

    def __init__(self, options: dict[str, str]) -> None:
        super().__init__(options)
        spare_repeats()

    @classmethod
    def name(cls) -> str:
        return FORMAT

    def schema(self) -> str:
        return f"{COLUMNS}, {COLUMN}" if self._forms.have_a_vault else COLUMNS

    @property
    def _forms(self) -> Forms:
        return Forms.from_json(self.options.get("forms", Forms().to_json()))

    def reader(self, schema: StructType) -> DataSourceReader:
        spare_repeats()
        options = dict(self.options)
        _refuse_unknown(options)
        limits = Limits.from_options(options)
        pieces = cut(_from_json(options.get("files", "")), limits)
        hands = deal(pieces, _tasks(options.get("tasks", "1")))
        metadata = _switch("metadata", options.get("metadata", "false"))
        return ContentReader(hands, limits, metadata, self._forms)


@dataclass(frozen=True)
class Hand(InputPartition):
    """The pieces of one task."""

    pieces: list[Piece]


class ContentReader(DataSourceReader):
    """Plans on the driver's side and reads on the executors'. Spark sends it to every task, so the plan stays
    behind."""

    def __init__(self, hands: list[list[Piece]], limits: Limits, metadata: bool, forms: Forms) -> None:
        self.hands, self.limits, self.metadata, self.forms = hands, limits, metadata, forms

    def __getstate__(self) -> dict[str, Any]:
        return {"hands": [], "limits": self.limits, "metadata": self.metadata, "forms": self.forms}

    def partitions(self) -> Sequence[InputPartition]:
        return [Hand(pieces) for pieces in self.hands] or [Hand([])]

    def read(self, partition: InputPartition) -> Iterator[Any]:
        assert isinstance(partition, Hand)
        metadata: Metadata | None = {} if self.metadata else None
        get = Retrying.over_s3(s3_of_this_process(self.limits.files_in_flight), self.limits, metadata)
        spare_repeats()
        with ceiling(self.limits.task_memory_bytes):
            yield from read_pieces(partition.pieces, get, self.limits, metadata, self.forms)


def _to_json(files: Sequence[LandedFile]) -> str:
    rows = [
        {
            name: value
            for name in ("bucket", "key", "size", "etag", "version_id")
            if (value := getattr(f, name)) is not None
        }
        for f in files
    ]
    return json.dumps(rows, separators=(",", ":"))


def _from_json(text: str) -> list[LandedFile]:
    try:
        return [_file(row) for row in json.loads(text)]
    except (ValueError, TypeError, AttributeError) as error:
        raise InvalidConfiguration.one(
            "files", f"not a JSON array of files: {error}", 'such as [{"bucket": "b", "key": "k"}]'
        ) from error


def _file(row: Mapping[str, Any]) -> LandedFile:
    if not {"bucket", "key"} <= row.keys() <= FILE_FIELDS:
        raise ValueError(
            f"a file has bucket and key, and perhaps size, etag and version_id; this one has {sorted(row)}"
        )
    return LandedFile(**row)


def _tasks(text: str) -> int:
    if not text.isdigit():
        raise InvalidConfiguration.one("tasks", f"{text!r} is not a whole number")
    return int(text)


def _switch(name: str, text: str) -> bool:
    if text.lower() not in ("true", "false"):
        raise InvalidConfiguration.one(name, f"{text!r} is neither true nor false")
    return text.lower() == "true"


def _refuse_unknown(options: Mapping[str, str]) -> None:
    unknown = sorted(options.keys() - Limits.names() - {"files", "tasks", "metadata", "forms"})
    if unknown:
        known = ", ".join(sorted(Limits.names()))
        raise InvalidConfiguration(
            [
                Problem(name, f"no option of {FORMAT}", f"there are files, tasks, metadata, forms, {known}")
                for name in unknown
            ]
        )
