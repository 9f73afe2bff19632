"""The meaning of each column that forebay adds to tables, and of those of its own tables: words of docs/reference/lake.md.

A column without a meaning here fails `python -m dev.reference`.
"""

from __future__ import annotations

from forebay.batch.attempt.turns import RETRY_UNDER_WAY
from forebay.batch.one_pass.outcome import TOO_MANY_IDS
from forebay.ledger.entry import (
    FORGET,
    PARTLY_REPLAYED,
    PUT_AGAIN,
    REPLAY,
    ROLLED_BACK,
    SKIPPED_BY_OPERATOR,
    TABLE_DROPPED,
    WANTED_AGAIN,
)
from forebay.ledger.versions import NOT_DONE, OVERWRITTEN, SAME_BYTES, SAME_BYTES_FORGOTTEN

OTHER_REASONS = {
    "announced-late": "A later version of the key, or its deletion, was announced before this version.",
    OVERWRITTEN: "The key has an earlier version that stays, or a later one that replaces this one.",
    SAME_BYTES: "The same bytes were already loaded under this key.",
    SAME_BYTES_FORGOTTEN: "The same bytes under this key were forgotten. `forebay replay --file` loads them.",
    SKIPPED_BY_OPERATOR: "`forebay files skip` left it out.",
    PUT_AGAIN: "The key of a superseded file got its bytes again. With `dedupe`, it is read once its rows have left a "
    "table that could not be written.",
    WANTED_AGAIN: "`forebay replay` or `files retry --forgotten` wants it read again, and no batch has read it yet.",
    PARTLY_REPLAYED: "A table has rows of an earlier reading, after a failed replay or a rollback. `detail` names it.",
    ROLLED_BACK: "Rows of the file left with a `forebay rollback`.",
    TABLE_DROPPED: "Rows of the file left with their table, by `forebay tables drop`.",
    NOT_DONE[REPLAY]: "A replay could not read the file, so the earlier rows stay.",
    NOT_DONE[FORGET]: "The rows could not leave a table yet, so they stay.",
    RETRY_UNDER_WAY: "A retry works on records of the version that this file replaces. The job reads the file again.",
    TOO_MANY_IDS: "The batch had too many rows in tables with `dedupe`. The job reads the file again.",
}
"""Reasons in the ledger that neither S3 nor the content of a file gives."""

OWN = {
    "_file_id": "The file that the row came from: the ledger's `file_id`. `forebay where` names the file.",
    "_line": "The line in that file, from 1. Of a format without lines, the number of the record.",
    "_batch": "The number of the batch that wrote the row.",
    "_ingested_at": "When the batch began. `keep_days` counts from it.",
    "_rescued": "JSON of the values that fit no column, by their paths. Null for most rows.",
    "_record": "The record's text as it came, where the table declares `keep_record = true`.",
}

_OF_A_BATCH = {
    "day": "The day of the row, in UTC. The table is partitioned by it.",
    "at": "When the batch began.",
    "service": "The name of the service.",
    "generation": "The checkpoint of the job. A new checkpoint numbers its batches from 0 again.",
    "batch": "The number of the batch.",
}
_OF_A_FILE = {
    "file_id": "The id of the file version. Rows of tables have it as `_file_id`.",
    "bucket": "The bucket of the file.",
    "key": "The key of the file.",
    "version_id": "The version of the object. Null in a bucket without versions.",
}
LEDGER = {
    **_OF_A_BATCH,
    **_OF_A_FILE,
    "file_hash": "The first eight bytes of `file_id`, as a number.",
    "key_hash": "The same for the key without its version.",
    "etag": "The etag that S3 announced.",
    "size": "The bytes that S3 announced.",
    "event_time": "When the object was created, by the announcement.",
    "claimed_at": "When the batch began to work on the file.",
    "committed_at": "When the batch ended.",
    "service_version": "The version of the declarations that the batch used, and after + that of the functions' code.",
    "outcome": "One of the [outcomes](#outcomes-of-files).",
    "reason": "Why, in one word. Null for most loaded files.",
    "detail": "Why, in a sentence.",
    "records": "Records that were read: written + quarantined + parked + dropped.",
    "written": "Rows in tables.",
    "quarantined": "Records in the quarantine.",
    "parked": "Records that no table takes.",
    "dropped": "Records that a declared rule or a command dropped.",
    "tables": "Rows by table.",
    "sequencer": "The order of versions of one key, by S3.",
    "superseded_by": "The `file_id` of the later version that replaced this one.",
    "tries": "How many batches asked S3 for the file. While it waits as `put-again`: how often it was announced.",
    "content_hash": "The hash of the bytes. Later hashes are of the object as an erasure rewrote it.",
}
HELD = {
    **_OF_A_BATCH,
    **_OF_A_FILE,
    "line": "The line of the record, from 1. Null for a whole file.",
    "byte_offset": "The byte at which the record begins, or its number in Parquet and Avro.",
    "table": "The table that the record was meant for. Null if it was refused before that was known.",
    "reason": "One of the [reasons](#reasons-of-the-quarantine). A whole file has one of [these]"
    "(#reasons-of-files-that-were-not-loaded).",
    "detail": "The reason in a sentence, with the value.",
    "record": "The text of the record, or the beginning of a whole file.",
    "metadata": "The metadata of the object that the declarations use, as JSON.",
}
QUALITY = {
    **_OF_A_BATCH,
    "table": "The table.",
    "expectation": "The name of the expectation.",
    "on_violation": "What becomes of a record that violates it.",
    "rows": "Rows for the table in the batch, also those that another rule refused.",
    "violated": "Rows that violate it.",
    "failed": "Whether more rows violate it than `fail_above_percent` allows.",
}
COMPLETE = {
    "service": "The name of the service.",
    "feed": "The name of the feed.",
    "period": "When the hour or day begins.",
    "ends": "When it ends.",
    "files": "Its files, at `complete_at`.",
    "rows": "Rows in tables from these files.",
    "refused": "Their records in the quarantine.",
    "first_arrival": "When its first file landed.",
    "last_arrival": "When its last file landed.",
    "complete_at": "When it became complete. Null if it is not.",
    "revised_at": "When a late file opened it again.",
    "revision": "How often it became complete.",
    "why": "What it waits for.",
    "since": "When a batch first saw a file of it.",
    "check": "The check that is under way, if there is one.",
    "told": "Whether EventBridge has the event.",
}
AFTER_LOAD = {
    "file_id": "The id of the file, as in the ledger.",
    "service": "The name of the service.",
    "bucket": "The landing bucket.",
    "key": "The key of the file there.",
    "action": "What became of it: `moved`, `deleted`, `gone` (somebody else had deleted it), `replaced` (the object is "
    "another version, and stays), or `started` (a row before it is moved or deleted; another row follows).",
    "place": "The address of its copy. Null if it has none.",
    "at": "When.",
}
