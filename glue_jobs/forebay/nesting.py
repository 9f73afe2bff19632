"""How deep a record may be nested: the one limit of all that reads, treats and writes records.

In each record that landed, at most `DEEPEST` objects and arrays lie inside each other. What is deeper is in the quarantine, as
`too-deep`. So code that walks a record may recurse: Python allows about a thousand calls. `JsonText.java` has the same number,
which a test compares.
"""

from __future__ import annotations

__all__ = ["DEEPEST"]

DEEPEST = 200
