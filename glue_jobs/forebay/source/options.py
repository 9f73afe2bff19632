"""The options of the source. `load()` checks all of them at once.

In: the mapping of texts from Spark, which does not keep the case of names, so this module ignores case, too. Out:
`SourceOptions`. Anything unknown, missing or out of range is `InvalidConfiguration`: every problem, each with the name of its
option and what is allowed. `OPTIONS` is the one declaration, and `ELSEWHERE` explains the options of other sources of this
name; the documents' tables are made from them.
"""

from __future__ import annotations

import difflib
import os
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import tzinfo
from typing import Any
from urllib.parse import urlsplit

from forebay.address import region_of_queue
from forebay.errors import InvalidConfiguration, Problem
from forebay.events import where_numbers_go
from forebay.notification import Filter
from forebay.source.elsewhere import ELSEWHERE
from forebay.source.option import (
    Option,
    anything,
    bucket_names,
    glob,
    manifest_path,
    name_of,
    number_between,
    number_of_bytes,
    one_of,
    queue_url,
    time_zone,
    url_or_nothing,
    wait_s,
    yes_or_no,
)

REQUIRED = "required"
MANIFESTS = "FOREBAY_MANIFESTS"
"""The environment variable under whose path each queue has its manifests, where no option says so."""


@dataclass(frozen=True, kw_only=True)
class SourceOptions:
    """The checked options of one stream. The fields are the options, in Python's spelling."""

    queue_url: str
    manifest_path: str
    region: str
    endpoint: str
    max_files_per_batch: int
    max_bytes_per_batch: int
    fetch_parallelism: int
    visibility_timeout_s: int
    wait_s: int
    every_s: int
    bucket_allow_list: frozenset[str]
    path_filter: str
    with_debris: bool
    with_deletes: bool
    order: str
    drain: bool
    drain_cap_s: int
    metrics: str
    service: str
    file_format: str
    read_tasks: int
    ignore_file_deletion: bool
    mode: str
    column_name_of_corrupt_record: str
    time_zone: tzinfo

    @classmethod
    def parse(cls, given: Mapping[str, str], env: Mapping[str, str] = os.environ) -> SourceOptions:
        """The options in `given`, or `InvalidConfiguration` with everything that is wrong with them."""
        texts = {name.lower(): text for name, text in given.items()}
        problems = [_unknown(name) for name in texts if name not in _BY_LOWER_NAME]
        values: dict[str, Any] = {}
        for option in OPTIONS:
            given = {name: texts[name.lower()].strip() for name in (option.name, *option.also) if name.lower() in texts}
            name, text = next(((name, text) for name, text in given.items() if text), (option.name, ""))
            text = text or (option.default if option.name != "manifestPath" else _manifests(texts, env))
            try:
                values[option.field] = option.read(text)
            except ValueError:
                problem = f"{text!r} is not allowed" if text != REQUIRED else "is missing"
                problems.append(Problem(name, problem, f"allowed: {option.allowed}"))
            if len(set(given.values())) > 1:
                problems.append(
                    Problem(option.name, f"is set twice, as {' and '.join(given)}", "leave one of them out")
                )
        if values.get("file_format") and values.get("with_deletes"):
            problems.append(Problem("withDeletes", "is not possible with fileFormat", "a deletion has no contents"))
        if problems:
            raise InvalidConfiguration(problems)
        return cls(**{option.field: values[option.field] for option in OPTIONS if option.effect})

    @property
    def only(self) -> Filter:
        return Filter(
            buckets=self.bucket_allow_list,
            glob=self.path_filter,
            with_debris=self.with_debris,
            with_deletes=self.with_deletes,
        )

    @property
    def region_of_queue(self) -> str | None:
        """The region to ask; None leaves it to the environment and the profile."""
        return self.region or region_of_queue(self.queue_url)


def _manifests(texts: Mapping[str, str], env: Mapping[str, str]) -> str:
    """The folder of manifests that the cluster names, for queries that name none."""
    queue = urlsplit(texts.get("queueurl", "")).path.strip("/")
    return f"{env[MANIFESTS].rstrip('/')}/{queue}" if env.get(MANIFESTS) and queue else REQUIRED


def _unknown(name: str) -> Problem:
    elsewhere = next((reason for other, reason in ELSEWHERE.items() if other.lower() == name), None)
    if elsewhere:
        return Problem(name, "is not an option of this s3-sqs", elsewhere)
    near = difflib.get_close_matches(name, _BY_LOWER_NAME, n=1)
    known = f"did you mean {_BY_LOWER_NAME[near[0]].name}?" if near else f"known: {', '.join(o.name for o in OPTIONS)}"
    return Problem(name, "is not an option of s3-sqs", known)


def source_options_table() -> str:
    """The options as a table in Markdown, for docs/source.md."""
    head = "| option | type | default | allowed | meaning |\n| --- | --- | --- | --- | --- |\n"
    return head + "".join(f"| {_names(o)} | {o.type} | {o.default} | {o.allowed} | {o.meaning} |\n" for o in OPTIONS)


def _names(option: Option) -> str:
    return ", ".join(f"`{name}`" for name in (option.name, *option.also))


OPTIONS = (
    Option(
        "queueUrl",
        "url",
        REQUIRED,
        "an http(s) URL with a path",
        "The SQS queue that S3 announces files to.",
        queue_url,
    ),
    Option(
        "manifestPath",
        "path",
        f"`${MANIFESTS}/<account>/<queue>`",
        "`s3://bucket/prefix`, `file:/path` or an absolute path",
        "Where the source keeps the list of each batch. Give each checkpoint its own, on storage that is as durable.",
        manifest_path,
    ),
    Option(
        "region",
        "text",
        "",
        "an AWS region",
        "The region of the queue. Default: the region in its URL, or that of the environment.",
        str,
    ),
    Option(
        "endpoint",
        "url",
        "",
        "an http(s) URL",
        "The endpoint of SQS. Default: that of the environment (`AWS_ENDPOINT_URL_SQS`).",
        url_or_nothing,
    ),
    Option(
        "maxFilesPerBatch",
        "int",
        "2000",
        "1 to 100000",
        "The largest number of files in a batch. A message is never split.",
        number_between(1, 100_000),
        also=("maxFilesPerTrigger",),
    ),
    Option(
        "maxBytesPerBatch",
        "bytes",
        "2g",
        "1 to 1t",
        "The largest number of bytes in a batch. A larger file is a batch of its own.",
        number_of_bytes,
        also=("maxBytesPerTrigger",),
    ),
    Option(
        "fetchParallelism",
        "int",
        "8",
        "1 to 64",
        "The number of requests to the queue that run at once.",
        number_between(1, 64),
    ),
    Option(
        "visibilityTimeoutS",
        "int",
        "300",
        "5 to 43200",
        "The time after which messages of a dead driver return to the queue. A running driver renews it.",
        number_between(5, 43_200),
    ),
    Option(
        "waitS",
        "int",
        "5",
        "0 to 20, or a duration such as `5s`",
        "How long a poll of an empty queue waits, 20 s at most. Stopping may take this long.",
        wait_s,
        also=("sqsFetchInterval",),
    ),
    Option(
        "everyS",
        "int",
        "0",
        "0 to 3600",
        "The time between two polls of the queue. After a full batch the next poll follows at once. Needs a "
        "trigger of 0 seconds.",
        number_between(0, 3600),
    ),
    Option(
        "bucketAllowList", "list", "", "bucket names, comma-separated", "Only files in these buckets.", bucket_names
    ),
    Option(
        "pathFilter",
        "glob",
        "",
        "a glob over the whole key",
        "Only files whose key matches, such as `in/**/*.json`.",
        glob,
    ),
    Option(
        "withDebris",
        "bool",
        "false",
        "`true` or `false`",
        "Also load objects that frameworks write next to data, such as `_SUCCESS` and dot-files.",
        yes_or_no,
    ),
    Option(
        "withDeletes",
        "bool",
        "false",
        "`true` or `false`",
        "Also a row for each deleted key. Its `etag` begins with `deleted-`. Not with `fileFormat`.",
        yes_or_no,
    ),
    Option(
        "order",
        "text",
        "none",
        "`none` or `oldest-first`",
        "The order of the rows within a batch. Batches themselves have no order.",
        one_of("none", "oldest-first"),
    ),
    Option("drain", "bool", "false", "`true` or `false`", "Report when the queue is empty.", yes_or_no),
    Option(
        "drainCapS",
        "int",
        "3600",
        "1 to 604800",
        "With `drain`: the time after which the source takes no more messages, even if the queue is not empty.",
        number_between(1, 604_800),
    ),
    Option(
        "metrics",
        "text",
        "none",
        "`none`, `cloudwatch` or `cloudwatch:NAMESPACE`",
        "Where the source publishes the metrics of each poll, besides the log.",
        where_numbers_go,
    ),
    Option("service", "text", "s3-sqs", "a name", "The dimension of these metrics.", name_of),
    Option(
        "fileFormat",
        "text",
        "",
        "`json`",
        "Read the files, and yield their records in the columns of `.schema(...)` instead of names.",
        one_of("", "json"),
    ),
    Option(
        "readTasks",
        "int",
        "8",
        "1 to 1000",
        "With `fileFormat`: the number of tasks that read a batch. Each fetches 32 files at once.",
        number_between(1, 1000),
    ),
    Option(
        "ignoreFileDeletion",
        "bool",
        "false",
        "`true` or `false`",
        "With `fileFormat`: skip a deleted file, instead of stopping the query.",
        yes_or_no,
    ),
    Option(
        "mode",
        "text",
        "permissive",
        "`permissive`, `dropmalformed` or `failfast`",
        "With `fileFormat`: how to treat a record that does not fit, as with `spark.read.json`.",
        one_of("permissive", "dropmalformed", "failfast"),
    ),
    Option(
        "columnNameOfCorruptRecord",
        "text",
        "_corrupt_record",
        "a name",
        "With `fileFormat`: the string column for the text of records that do not fit, if the schema has it.",
        name_of,
    ),
    Option(
        "timeZone",
        "text",
        "UTC",
        "the name of a time zone",
        "With `fileFormat`: the time zone of times without an offset. A Python source does not know the session's time zone.",
        time_zone,
    ),
    Option(
        "multiLine",
        "bool",
        "",
        "`true` or `false`",
        "No effect: the source recognises layout, compression and encoding in each file.",
        one_of("", "true", "false"),
        effect=False,
    ),
    Option(
        "allowOverwrites",
        "bool",
        "true",
        "`true`",
        "No effect: an object that is written again is a new file.",
        one_of("true"),
        effect=False,
    ),
    Option(
        "maxFileAge",
        "text",
        "",
        "anything",
        "No effect: a file announced twice is known by the manifests of the last 100 batches, however old.",
        anything,
        effect=False,
    ),
)

_BY_LOWER_NAME = {name.lower(): option for option in OPTIONS for name in (option.name, *option.also)}
