"""Options of other sources, and of Spark's file readers, that this source does not have; and what to do instead."""

from __future__ import annotations

ELSEWHERE = {
    "sqsUrl": "`queueUrl`",
    "sqsFetchIntervalSeconds": "`waitS`, and the query's trigger",
    "sqsLongPollingWaitTimeSeconds": "`waitS`",
    "sqsMaxConnections": "`fetchParallelism`",
    "sqsMaxRetries": "an unreachable queue is tried five times, then the query stops; nothing is deleted",
    "messageWrapper": "leave it out: every wrapping is recognised",
    "pathRewrites": "leave it out: files are read from the bucket that announced them, and there are no mounts",
    "pathGlobFilter": "`pathFilter`, over the whole key: `**/*.json`",
    "excludeRegex": "`pathFilter` selects the wanted files",
    "fileNameOnly": "leave it out: a file is a version of an object, and its whole key counts",
    "shouldSortFiles": "`order`",
    "latestFirst": "`order`",
    "roleArn": "the role is that of the driver's credentials (`AWS_PROFILE` can name one to assume)",
    "awsAccessKey": "credentials come from the standard chain, not from options",
    "awsSecretKey": "credentials come from the standard chain, not from options",
    "useInstanceProfileCredentials": "leave it out: the standard chain finds them",
    "timestampFormat": "declare `string`, and use `to_timestamp` with the pattern",
    "dateFormat": "declare `string`, and use `to_date` with the pattern",
    "rescuedDataColumn": "declare `_corrupt_record string`: it holds the whole record",
    "ignoreCorruptFiles": "declare `_corrupt_record string`: it has the file, the reason, and the beginning of the record",
    "ignoreMissingFiles": "`ignoreFileDeletion`",
    "encoding": "leave it out: UTF-8 and UTF-16 are recognised",
    "compression": "leave it out: gz, zstd, bz2 and snappy are recognised",
}


def other_options_table() -> str:
    """Options of other sources of this name that this one refuses, as a table in Markdown, for docs/source.md."""
    head = "| elsewhere | here |\n| --- | --- |\n"
    return head + "".join(f"| `{name}` | {instead} |\n" for name, instead in ELSEWHERE.items())
