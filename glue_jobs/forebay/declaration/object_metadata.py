"""What the metadata of an object says of all its records: put with `x-amz-meta-game: alpha`, they have a field
`@metadata.game`.

Pure. S3 gives the names in small letters, whatever they were put with; an object without the name has no such field.
"""

from __future__ import annotations

__all__ = ["NAME", "PREFIX"]

PREFIX = "@metadata."

NAME = r"[a-z0-9][a-z0-9_\-]*"
"""What a name may look like, as a regular expression."""
