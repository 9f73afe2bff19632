"""The options of the source: what a user writes, checked once and all at once, at `load()`.

In goes the mapping of texts that Spark hands over; Spark does not keep the case of the names, so neither does this. Out
comes `SourceOptions`. Anything unknown, missing or out of range is `Misdeclared`: every problem, each with the name of
its option and what is allowed. `OPTIONS` is the one declaration; the table for readers is made from it.
"""

from __future__ import annotations

import difflib
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlsplit

from forebay.errors import Misdeclared, Problem
from forebay.notification import Filter

__all__ = ["OPTIONS", "Option", "SourceOptions", "source_options_table"]

REQUIRED = "required"


@dataclass(frozen=True)
class Option:
    """One declaration. `read` makes the value out of the text, or raises ValueError; `allowed` is for a person."""

    name: str
    type: str
    default: str
    allowed: str
    meaning: str
    read: Callable[[str], Any]

    @property
    def field(self) -> str:
        return re.sub(r"(?<!^)(?=[A-Z])", "_", self.name).lower()


@dataclass(frozen=True, kw_only=True)
class SourceOptions:
    """What the user asked for, checked. The fields are the options, in Python's spelling."""

    queue_url: str
    manifest_path: str
    region: str
    endpoint: str
    max_files_per_batch: int
    max_bytes_per_batch: int
    fetch_parallelism: int
    visibility_timeout_s: int
    wait_s: int
    bucket_allow_list: frozenset[str]
    path_filter: str
    order: str
    drain: bool
    drain_cap_s: int

    @classmethod
    def parse(cls, given: Mapping[str, str]) -> SourceOptions:
        """The options in `given`, or `Misdeclared` with everything that is wrong with them."""
        texts = {name.lower(): text for name, text in given.items()}
        problems = [_unknown(name) for name in texts if name not in _BY_LOWER_NAME]
        values: dict[str, Any] = {}
        for option in OPTIONS:
            text = texts.get(option.name.lower(), "").strip() or option.default
            try:
                values[option.field] = option.read(text)
            except ValueError:
                what = f"{text!r} is not allowed" if text != REQUIRED else "is missing"
                problems.append(Problem(option.name, what, f"allowed: {option.allowed}"))
        if problems:
            raise Misdeclared(problems)
        return cls(**values)

    @property
    def only(self) -> Filter:
        return Filter(buckets=self.bucket_allow_list, glob=self.path_filter)

    @property
    def region_of_queue(self) -> str | None:
        """The region to ask; None leaves it to the environment and the profile."""
        in_host = re.match(r"sqs\.([a-z0-9-]+)\.amazonaws\.", urlsplit(self.queue_url).hostname or "")
        return self.region or (in_host[1] if in_host else None)


def _unknown(name: str) -> Problem:
    near = difflib.get_close_matches(name, _BY_LOWER_NAME, n=1)
    known = f"did you mean {_BY_LOWER_NAME[near[0]].name}?" if near else f"known: {', '.join(o.name for o in OPTIONS)}"
    return Problem(name, "is not an option of s3-sqs", known)


def source_options_table() -> str:
    """The options as a table in Markdown, for the README."""
    head = "| option | type | default | allowed | meaning |\n| --- | --- | --- | --- | --- |\n"
    rows = (f"| `{o.name}` | {o.type} | {o.default} | {o.allowed} | {o.meaning} |" for o in OPTIONS)
    return head + "\n".join(rows) + "\n"


def _between(least: int, most: int) -> Callable[[str], int]:
    def read(text: str) -> int:
        number = int(text)
        if not least <= number <= most:
            raise ValueError(text)
        return number

    return read


_BYTES = re.compile(r"(\d+)\s*([kmgt]?)(?:i?b)?", re.IGNORECASE)
_MOST_BYTES = 1 << 40


def _bytes(text: str) -> int:
    match = _BYTES.fullmatch(text)
    number = int(match[1]) << (10 * " kmgt".index(match[2].lower() or " ")) if match else 0
    if not 1 <= number <= _MOST_BYTES:
        raise ValueError(text)
    return number


def _one_of(*words: str) -> Callable[[str], str]:
    def read(text: str) -> str:
        if text.lower() not in words:
            raise ValueError(text)
        return text.lower()

    return read


def _yes_or_no(text: str) -> bool:
    return _one_of("true", "false")(text) == "true"


def _url(text: str) -> str:
    parts = urlsplit(text)
    if parts.scheme not in ("http", "https") or not parts.hostname:
        raise ValueError(text)
    return text


def _queue_url(text: str) -> str:
    if len(urlsplit(_url(text)).path.strip("/")) == 0:
        raise ValueError(text)
    return text


def _manifest_path(text: str) -> str:
    parts = urlsplit(text)
    in_s3 = parts.scheme in ("s3", "s3a", "s3n") and parts.netloc
    local = parts.scheme in ("", "file") and not parts.netloc and parts.path.startswith("/") and parts.path.strip("/")
    if not in_s3 and not local:
        raise ValueError(text)
    return text.rstrip("/")


def _endpoint(text: str) -> str:
    return text and _url(text)


def _buckets(text: str) -> frozenset[str]:
    names = frozenset(name.strip() for name in text.split(",")) if text else frozenset()
    if not all(re.fullmatch(r"[a-z0-9][a-z0-9._-]{1,253}", name, re.IGNORECASE) for name in names):
        raise ValueError(text)
    return names


def _glob(text: str) -> str:
    try:
        Filter(glob=text)
    except Misdeclared as problem:
        raise ValueError(text) from problem
    return text


OPTIONS = (
    Option(
        "queueUrl", "url", REQUIRED, "an http(s) URL with a path", "The SQS queue that S3 announces to.", _queue_url
    ),
    Option(
        "manifestPath",
        "path",
        REQUIRED,
        "`s3://bucket/prefix`, `file:/path` or an absolute path",
        "Where the list of each batch is kept; one per checkpoint, and as durable as it.",
        _manifest_path,
    ),
    Option("region", "text", "", "an AWS region", "Of the queue; else from its URL, else the environment.", str),
    Option(
        "endpoint", "url", "", "an http(s) URL", "Of SQS; else the environment (`AWS_ENDPOINT_URL_SQS`).", _endpoint
    ),
    Option(
        "maxFilesPerBatch",
        "int",
        "2000",
        "1 to 100000",
        "Most files in a batch; a message is never split.",
        _between(1, 100_000),
    ),
    Option(
        "maxBytesPerBatch",
        "bytes",
        "2g",
        "1 to 1t",
        "Most bytes in a batch; one larger file makes a batch alone.",
        _bytes,
    ),
    Option("fetchParallelism", "int", "8", "1 to 64", "How many requests to the queue run at once.", _between(1, 64)),
    Option(
        "visibilityTimeoutS",
        "int",
        "300",
        "5 to 43200",
        "After how long messages of a driver that died come back; renewed while it lives.",
        _between(5, 43_200),
    ),
    Option(
        "waitS",
        "int",
        "5",
        "0 to 20",
        "How long a look at an empty queue waits; stopping may take as long.",
        _between(0, 20),
    ),
    Option("bucketAllowList", "list", "", "bucket names, comma-separated", "Only files of these buckets.", _buckets),
    Option(
        "pathFilter", "glob", "", "a glob over the whole key", "Only files whose key fits, e.g. `in/**/*.json`.", _glob
    ),
    Option(
        "order",
        "text",
        "none",
        "`none` or `oldest-first`",
        "Of the rows in a batch; there is none between batches.",
        _one_of("none", "oldest-first"),
    ),
    Option("drain", "bool", "false", "`true` or `false`", "Say so once the queue has run empty.", _yes_or_no),
    Option(
        "drainCapS",
        "int",
        "3600",
        "1 to 604800",
        "With `drain`: after how long to take nothing more, empty or not.",
        _between(1, 604_800),
    ),
)

_BY_LOWER_NAME = {option.name.lower(): option for option in OPTIONS}
