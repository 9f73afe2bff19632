"""Why a record is in the quarantine: every reason, once. Metrics, documents and tests derive from this list.

A reason is a constant of the code that refuses the record; its meaning is here, for people.
"""

from __future__ import annotations

from forebay.nesting import DEEPEST

BAD_TABLE_NAME = "bad-table-name"
BAD_PARTITION_VALUE = "bad-partition-value"
EVENT_TOO_OLD = "event-too-old"
EVENT_IN_THE_FUTURE = "event-in-the-future"
NO_KEY = "no-key"
NO_SEQUENCE = "no-sequence"
EXPECTATION = "expectation"
TRANSFORM = "transform"
TABLE_FAILED = "table-failed"
TOO_MANY_NEW_TABLES = "too-many-new-tables"
EXPECTATION_FAILED = "expectation-failed"
DERIVED_TABLE = "derived-table"
PAUSED_TABLE = "paused"

REASONS = {
    "not-json": "the record is not JSON",
    "several-documents": "text follows the record's first JSON document",
    "not-an-object": "the record is JSON, but not an object",
    "not-a-row": "the row's fields do not match the header, or it has quotes in the wrong place",
    "not-utf8": "the record's bytes are not UTF-8",
    "record-too-large": "the record is larger than a record may be",
    "too-deep": f"the record nests objects and arrays more than {DEEPEST} deep",
    "torn-array": "the file ends within a JSON array: records that should follow are missing",
    BAD_TABLE_NAME: "the value that routes the record cannot name a table",
    BAD_PARTITION_VALUE: "the value that partitions the table cannot name a folder",
    EVENT_TOO_OLD: "the event time is older than the table accepts",
    EVENT_IN_THE_FUTURE: "the event time is further in the future than the table accepts",
    NO_KEY: "the change has no value for a key of its table, or the value does not fit the key's type",
    NO_SEQUENCE: "the change has no value that orders it among the changes to its key",
    EXPECTATION: "the record violates an expectation whose violations are quarantined",
    TRANSFORM: "the table's `transform` refused the record, or failed on it",
    EXPECTATION_FAILED: "too many of the table's records in this batch violate an expectation",
    TABLE_FAILED: "the table could not be written; the next start of the job retries it",
    TOO_MANY_NEW_TABLES: "the table would be new, and today's limit of new tables is reached",
    DERIVED_TABLE: "a merge or a rollup computes the table of this name, so it accepts no records; rename one of the two",
    PAUSED_TABLE: "the table is paused; `forebay resume` loads the record",
}
"""The meaning of each reason."""

OF_WHOLE_TABLES = (TABLE_FAILED, TOO_MANY_NEW_TABLES, EXPECTATION_FAILED, DERIVED_TABLE, PAUSED_TABLE)
"""Reasons for which all records of a table in a batch are in the quarantine; others concern single records."""
