"""Fields that records get from the object's key: `in/{game}/{day}/` gives them `@key.game` and `@key.day`.

Pure. A template is matched from the beginning of a key, and need not reach its end; a name matches one level of the key, or
part of one. A key that does not match the template has no such fields. Fields that come from the object's metadata have names,
too: `x-amz-meta-game: alpha` is `@metadata.game`. S3 returns these names in lower case.
"""

from __future__ import annotations

import re
from functools import lru_cache

PREFIX = "@key."
METADATA_PREFIX = "@metadata."
METADATA_NAME = r"[a-z0-9][a-z0-9_\-]*"
"""The pattern of names."""

PART = re.compile(r"\{([^{}]*)\}|([^{}]+)|([{}])")


def checked(template: str) -> str:
    """The template; ValueError says what is wrong with it."""
    previous = "text"
    for name, text, stray in (match.groups() for match in PART.finditer(template)):
        if stray:
            raise ValueError(f"has an extra {stray}")
        if not text:
            if not re.fullmatch(r"[A-Za-z_]\w*", name):
                raise ValueError(f"{{{name}}} must be letters, digits or _ in braces, such as {{game}}")
            if previous == "name":
                raise ValueError(f"{{{name}}} follows another name: where does one end and the other begin?")
        previous = "text" if text else "name"
    found = names(template)
    if len(set(found)) < len(found):
        raise ValueError("uses a name twice")
    return template


@lru_cache(maxsize=1000)
def names(template: str) -> tuple[str, ...]:
    return tuple(match[1] for match in PART.finditer(template) if match[1])


@lru_cache(maxsize=1000)
def pattern(template: str) -> str:
    """The template as a regular expression, for Java and Python alike, with a group for each of `names`."""
    return "^" + "".join("([^/]+)" if match[1] else re.escape(match[0]) for match in PART.finditer(template))
