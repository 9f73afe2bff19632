"""Fields that records get from their object's metadata: `x-amz-meta-game: alpha` gives them `@metadata.game`.

Pure. S3 returns the names in lower case. Without the metadata, records lack the field.
"""

from __future__ import annotations

__all__ = ["NAME", "PREFIX"]

PREFIX = "@metadata."

NAME = r"[a-z0-9][a-z0-9_\-]*"
"""The pattern of names."""
