"""The maximum nesting of a record: one limit for all code that reads, treats and writes records.

A record that landed has at most `DEEPEST` nested objects and arrays. Deeper records are in the quarantine, as `too-deep`. So
code that walks a record may recurse: Python allows about a thousand calls.
"""

from __future__ import annotations

DEEPEST = 200

DEEPEST_COLUMN = 20
"""The most arrays and structs inside each other in the type of a column."""
