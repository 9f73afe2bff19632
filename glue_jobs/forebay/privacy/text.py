"""Treats the personal fields of a record in its text. Everything else keeps its original text, digit for digit.

In: the text of a JSON object, and its personal fields. Out: the text, treated; and the original values of fields that go into
the vault. ValueError if it is not a JSON object, because its personal fields are then unknown. All spellings of a field that
would share its column are treated, and all its occurrences, also in a text that holds JSON.
"""

from __future__ import annotations

import json
import re
from functools import lru_cache

from forebay.declaration.column_name import LONGEST, safe_name
from forebay.declaration.form import Keys
from forebay.declaration.personal import ANY_KEY, PersonalField, means
from forebay.privacy.value import MASK, treated_value
from forebay.texts import BLANK, DECODER

Originals = list[tuple[str, str]]
"""For each field: its declared path, and its original value as JSON."""

MOST_KEYS = 10_000
"""How many keys of a level are remembered: keys that are identifiers have no end."""

NO_NAME = safe_name("")
"""The column name of a key that has only blanks."""

OTHER_SIGN = r'(?:[^A-Za-z0-9"\\]|\\+.?)'
"""Neither letter nor digit, in a JSON text: the sign itself, or an escape of two signs, such as the slash of PHP. JSON in a
text has more backslashes."""

# Only borders are wanted, so numbers stay text.


def treated_text(
    text: str, fields: tuple[PersonalField, ...], secret: bytes = b"", originals: Originals | None = None
) -> str:
    """`secret` is for fields that become tokens. Original values for the vault are added to `originals`."""
    try:
        found: Originals = []
        treated, end = _object(text, _past_blanks(text, 0), level_of(fields, secret), found)
        ends = _past_blanks(text, end) == len(text)
    except (IndexError, RecursionError) as torn:
        raise ValueError("the text is not a JSON object") from torn
    if not ends:
        raise ValueError("text follows the JSON object")
    if originals is not None:
        originals += found
    return treated


@lru_cache(maxsize=1000)
def pattern_of(fields: tuple[PersonalField, ...]) -> str:
    """A regular expression for texts that may have one of the fields, in the dialect that Python and Arrow share."""
    return "|".join(dict.fromkeys(_pattern(field.path) for field in fields)) if fields else "[^\\s\\S]"


def _pattern(path: Keys) -> str:
    """The pattern of the last significant key."""
    last = next((key for key in reversed(path) if key != ANY_KEY), None)
    spelt = None if last is None else spelt_so(last)
    return r"\{" if spelt is None else rf'\\u|"{spelt}'


def spelt_so(key: str) -> str | None:
    """A regular expression for the key and its twins, with blanks around and the quote behind it; None where it can be spelled
    otherwise."""
    if not re.fullmatch(r"[ !#-.0-\[\]-~]+", key):
        return None
    # A column's name does not begin with an underscore or a digit, so `_id` and `x_id` share one, and so do `1a` and `x_1a`.
    name = safe_name(key) if len(key) < LONGEST else key
    begins, rest = (f"(?:x?{OTHER_SIGN})?", name[2:]) if name.startswith("x_") else ("", key)
    spelt = "".join(sign if sign.isalnum() else OTHER_SIGN for sign in rest)
    # In lowercase letters the Turkish capital is an i and a dot above, which is not a letter.
    spelt = re.sub(f"(?i:i){re.escape(OTHER_SIGN)}", lambda found: f"(?:{found[0]}|\u0130)", spelt)
    if name == NO_NAME:
        spelt = f"(?:{spelt})?"
    return rf'(?i:{OTHER_SIGN}*{begins}{spelt}{OTHER_SIGN}*)\\*"'


class Level:
    """The personal values of an object, by their paths from it. An empty path means all of them."""

    def __init__(self, wanted: tuple[tuple[Keys, PersonalField], ...], secret: bytes) -> None:
        mine = next((field for path, field in wanted if not path), None)
        self.field, self.whole = mine, mine.become if mine else None
        self._wanted, self._secret = wanted, secret
        self._known: dict[str, Level | None] = {}
        self._made: dict[tuple[tuple[Keys, PersonalField], ...], Level] = {}

    def treated(self, value: str) -> str:
        """A value that is not an object or an array, as JSON."""
        return value if self.whole is None else treated_value(value, self.whole, self._secret)

    def below(self, key: str) -> Level | None:
        """Behind this key; None where nothing is personal there."""
        if self.whole is not None:
            return self
        if key not in self._known:
            if len(self._known) >= MOST_KEYS:
                self._known.clear()
            self._known[key] = self._behind(key)
        return self._known[key]

    def _behind(self, key: str) -> Level | None:
        """One and the same behind all keys that lead to the same fields: there are few, however many keys there are."""
        inner = tuple((path[1:], field) for path, field in self._wanted if means(path[0], key))
        if inner and inner not in self._made:
            self._made[inner] = Level(inner, self._secret)
        return self._made.get(inner)


@lru_cache(maxsize=100)
def level_of(fields: tuple[PersonalField, ...], secret: bytes = b"") -> Level:
    return Level(tuple((field.path, field) for field in fields), secret)


def _value(text: str, at: int, level: Level | None, originals: Originals) -> tuple[str, int]:
    """The value that begins here, treated, and where it ends."""
    if level is not None and text[at] == "{":
        return _object(text, at, level, originals)
    if level is not None and text[at] == "[":
        return _array(text, at, level, originals)
    decoded, end = DECODER.raw_decode(text, at)
    if level is None:
        return text[at:end], end
    if level.whole is None and text[at] == '"' and (begins := start_of_json(decoded)) is not None:
        return _within(text[at:end], decoded, begins, level, originals), end
    return level.treated(text[at:end]), end


def start_of_json(decoded: str) -> int | None:
    """Where a text begins to say an object or an array that may have keys."""
    begins = _past_blanks(decoded, 0)
    return begins if decoded[begins : begins + 1] in ("{", "[") and '"' in decoded else None


def _within(value: str, decoded: str, begins: int, level: Level, originals: Originals) -> str:
    """A text that holds JSON: a declared array, struct or map reads it. Of what is not JSON nobody knows what is personal."""
    found: Originals = []
    try:
        treated, end = _value(decoded, begins, level, found)
        is_json = _past_blanks(decoded, end) == len(decoded)
    except (ValueError, IndexError, RecursionError):
        is_json = False
    if not is_json:
        return f'"{MASK}"'
    originals += found
    return value if treated == decoded[begins:end] else json.dumps(treated)


def _object(text: str, start: int, level: Level, originals: Originals) -> tuple[str, int]:
    if text[start] != "{":
        raise ValueError("no object")
    members, changed = [], False
    at = _past_blanks(text, start + 1)
    while text[at] != "}":
        if text[at] != '"':
            raise ValueError("no key")
        key, behind = DECODER.raw_decode(text, at)
        colon = _past_blanks(text, behind)
        if text[colon] != ":":
            raise ValueError("no colon")
        begins = _past_blanks(text, colon + 1)
        inner = level.below(key)
        value, ends = _value(text, begins, inner, originals)
        if inner is not None and inner is not level and inner.field is not None and inner.field.vault:
            originals += [(inner.field.label, text[begins:ends])] * (text[begins:ends] != "null")
        if inner is not None and inner.whole == "dropped":
            changed = True
        else:
            changed = changed or len(value) != ends - begins or not text.startswith(value, begins)
            members.append(text[at:begins] + value)
        at = _behind_comma(text, ends, "}")
    return ("{" + ",".join(members) + "}" if changed else text[start : at + 1]), at + 1


def _array(text: str, start: int, level: Level, originals: Originals) -> tuple[str, int]:
    """Elements are treated as the array is."""
    elements, changed = [], False
    at = _past_blanks(text, start + 1)
    while text[at] != "]":
        value, ends = _value(text, at, level, originals)
        changed = changed or not text.startswith(value, at) or len(value) != ends - at
        elements.append(value)
        at = _behind_comma(text, ends, "]")
    return ("[" + ",".join(elements) + "]" if changed else text[start : at + 1]), at + 1


def _behind_comma(text: str, at: int, close: str) -> int:
    """Where the next value begins, or the container closes."""
    at = _past_blanks(text, at)
    if text[at] == close:
        return at
    if text[at] != ",":
        raise ValueError("no comma")
    at = _past_blanks(text, at + 1)
    if text[at] == close:
        raise ValueError("a comma is followed by nothing")
    return at


def _past_blanks(text: str, at: int) -> int:
    found = BLANK.match(text, at)
    return at if found is None else found.end()
