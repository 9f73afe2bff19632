"""Finds the members of JSON objects in the texts of thousands of records at once, and which of them are personal.

In: records as one Arrow array of text, and their personal fields. Out: `Members`: the places of personal values. All quotes and
brackets of all texts are found together. They show which strings are keys, the depth of each bracket, and the keys on the path
of each object. Some texts are left to `text`: those with a backslash, those that Arrow's parser does not read as one JSON
object, and those in which a personal value is an object or an array.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from forebay.nesting import DEEPEST
from forebay.privacy.text import Level
from forebay.texts import borders_of, bytes_of, pieces, read_json

BLOCK_BYTES = 1 << 20
"""The size of a block: its intermediate results stay in the processor's cache."""
FEW = 8
QUOTE, COLON, COMMA = b'":,'
OPENING, CLOSING, SMALL = 0x7B, 0x7D, 0x20
"""Both kinds of brackets have these codes after the lower-case bit is set."""
BLANK = np.isin(np.arange(256), list(b" \t\r\n"))
ENDS_SCALAR = np.isin(np.arange(256), list(b" \t\r\n,]}"))
NOTHING = -1
NO_FIELDS = pa.schema([pa.field("\x7fnone", pa.bool_())])


def blocks(texts: pa.StringArray) -> Iterator[tuple[int, pa.StringArray]]:
    """Some texts at a time, and where they begin."""
    each = max(1, len(texts) * BLOCK_BYTES // max(1, texts.nbytes))
    for at in range(0, len(texts), each):
        yield at, texts.slice(at, each)


@dataclass(frozen=True)
class Members:
    """In the order of the text, each array with one entry for each personal member: its `rows`, where its key begins (`keys`),
    where its value `starts` and `ends`, and its `level` among `levels`. `unread` are the rows that are left to `text`."""

    rows: Any
    keys: Any
    starts: Any
    ends: Any
    level: Any
    levels: list[Level]
    unread: Any

    def where(self, which: Any) -> Members:
        rows, keys, starts = self.rows[which], self.keys[which], self.starts[which]
        return Members(rows, keys, starts, self.ends[which], self.level[which], self.levels, self.unread)


class Texts:
    """The texts of one block. `raw` is their concatenation, and `ends` are their ends in it. `plain`: those that are one JSON
    object each, without a backslash; in `text` all others are blanks."""

    def __init__(self, texts: pa.StringArray) -> None:
        offsets = borders_of(texts).astype(np.int64)
        self.raw = bytes_of(texts)[offsets[0] : offsets[-1]]
        self.ends = offsets[1:] - offsets[0]
        self.plain = self._look_like_objects(texts)
        self.plain[self.plain] = _objects(texts.filter(pa.array(self.plain)))
        blanked = np.repeat(~self.plain, np.diff(offsets))
        self.text = np.where(blanked, np.uint8(SMALL), self.raw) if blanked.any() else self.raw

    def _look_like_objects(self, texts: pa.StringArray) -> Any:
        """Arrow reads them all as one text, so it must not mix a part of one with a part of the next."""
        last = pc.utf8_rtrim(texts, " \t\r\n")
        braces = pc.and_(pc.starts_with(texts, "{"), pc.ends_with(last, "}"))
        quotes = np.searchsorted(np.flatnonzero(self.raw == QUOTE), np.concatenate(([0], self.ends)))
        plain = pc.invert(pc.match_substring(texts, "\\"))
        return np.asarray(pc.and_(braces, plain)) & (np.diff(quotes) % 2 == 0)

    def members(self, level: Level) -> Members:
        """The personal ones, by what is personal of a record."""
        levels, of_container, deep = self._levels_of_containers(level)
        keys = self._keys
        inside = of_container[self._container_of_key]
        candidates = np.flatnonzero(inside != NOTHING)
        below, levels = _below(levels, inside[candidates], self._names[candidates], self._known_names)
        personal = np.array([one.field is not None for one in levels], bool)
        hits = (below != NOTHING) & personal[below]
        candidates, below = candidates[hits], below[hits]
        starts = self._values[candidates]
        # Also a text that holds one: `subject` looks into it.
        begins = starts + (self.text[starts] == QUOTE)
        nested = self.text[begins] | SMALL == OPENING
        unread = ~self.plain
        unread[self._rows(starts[nested])] = True
        unread[deep] = True
        rows = self._rows(starts)
        stay = ~unread[rows]
        candidates, below, starts, rows = candidates[stay], below[stay], starts[stay], rows[stay]
        return Members(rows, keys[candidates], starts, self._ends_of_values(starts), below, levels, unread)

    def past_blanks(self, places: Any) -> Any:
        """Where the next thing stands."""
        blank = np.flatnonzero(BLANK[self.text[places]])
        if not len(blank):
            return places
        places = places.copy()
        places[blank] = self._solid[np.searchsorted(self._solid, places[blank])]
        return places

    def before_blanks(self, places: Any) -> Any:
        """Where the last thing before stands."""
        return self._solid[np.searchsorted(self._solid, places) - 1]

    # --- inside ---

    def _rows(self, places: Any) -> Any:
        return np.searchsorted(self.ends, places, "right")

    @cached_property
    def _solid(self) -> Any:
        return np.flatnonzero(~BLANK[self.text])

    @cached_property
    def _quotes(self) -> Any:
        return np.flatnonzero(self.text == QUOTE)

    @cached_property
    def _key_borders(self) -> tuple[Any, Any, Any]:
        """The strings before a colon: where they open and close, and where the values begin."""
        opens, closes = self._quotes[0::2], self._quotes[1::2]
        behind = self.past_blanks(closes + 1)
        is_key = self.text[behind] == COLON
        return opens[is_key], closes[is_key], self.past_blanks(behind[is_key] + 1)

    @property
    def _keys(self) -> Any:
        return self._key_borders[0]

    @property
    def _values(self) -> Any:
        return self._key_borders[2]

    @cached_property
    def _named(self) -> pa.DictionaryArray:
        opens, closes, _ = self._key_borders
        return pieces(self.text, opens + 1, closes).dictionary_encode()

    @cached_property
    def _names(self) -> Any:
        """The name of each key, among these."""
        return np.asarray(self._named.indices)

    @cached_property
    def _known_names(self) -> list[str]:
        known: list[str] = self._named.dictionary.to_pylist()
        return known

    @cached_property
    def _brackets(self) -> tuple[Any, Any, Any]:
        """The brackets outside strings: where they are, whether they open, and the depth after them."""
        small = self.text | SMALL
        places = np.flatnonzero((small == OPENING) | (small == CLOSING))
        places = places[np.searchsorted(self._quotes, places) & 1 == 0]
        opens = small[places] == OPENING
        return places, opens, np.cumsum(np.where(opens, 1, -1))

    @cached_property
    def _containers(self) -> tuple[Any, Any]:
        """Objects and arrays: where they begin, and how deep they are, from 1."""
        places, opens, depth = self._brackets
        return places[opens], depth[opens]

    @cached_property
    def _container_of_key(self) -> Any:
        places, _, depth = self._brackets
        before = np.searchsorted(places, self._keys) - 1
        return self._last_of_depth(self._keys, depth[before])

    @cached_property
    def _by_depth(self) -> tuple[Any, Any]:
        """The containers in the order of their depth and place, and what that order goes by."""
        begins, depth = self._containers
        order = np.lexsort((begins, depth))
        return order, self._at_depth(begins, depth)[order]

    def _at_depth(self, places: Any, depths: Any) -> Any:
        return depths * (len(self.text) + 1) + places

    def _last_of_depth(self, places: Any, depths: Any) -> Any:
        """The last container of this depth before each place."""
        order, known = self._by_depth
        return order[np.searchsorted(known, self._at_depth(places, depths)) - 1]

    @cached_property
    def _parents(self) -> tuple[Any, Any]:
        """For each container, the surrounding one, and the name of the key whose value it is, if any."""
        begins, depth = self._containers
        inner = np.flatnonzero(depth > 1)
        around = np.full(len(begins), NOTHING)
        around[inner] = self._last_of_depth(begins[inner], depth[inner] - 1)
        behind = np.searchsorted(self._values, begins)
        is_value = np.zeros(len(begins), bool)
        within = behind < len(self._values)
        is_value[within] = self._values[behind[within]] == begins[within]
        names = np.full(len(begins), NOTHING)
        names[is_value] = self._names[behind[is_value]]
        return around, names

    def _levels_of_containers(self, top: Level) -> tuple[list[Level], Any, Any]:
        """All levels that there are, which of them each container has, and the rows that are too deep to tell."""
        begins, depth = self._containers
        around, names = self._parents
        of_container, levels = np.full(len(begins), NOTHING), [top]
        of_container[depth == 1] = 0
        for one in range(2, min(DEEPEST, int(depth.max(initial=0))) + 1):
            here = np.flatnonzero(depth == one)
            here = here[of_container[around[here]] != NOTHING]
            if not len(here):
                break
            element = names[here] == NOTHING
            of_container[here[element]] = of_container[around[here[element]]]
            members = here[~element]
            of_container[members], levels = _below(
                levels, of_container[around[members]], names[members], self._known_names
            )
        return levels, of_container, self._rows(begins[depth > DEEPEST])

    def _ends_of_values(self, starts: Any) -> Any:
        ends = np.empty(len(starts), np.int64)
        is_string = self.text[starts] == QUOTE
        ends[is_string] = self._quotes[np.searchsorted(self._quotes, starts[is_string]) + 1] + 1
        if not is_string.all():
            borders = np.flatnonzero(ENDS_SCALAR[self.text])
            ends[~is_string] = borders[np.searchsorted(borders, starts[~is_string])]
        return ends


def _below(levels: list[Level], inside: Any, names: Any, known: list[str]) -> tuple[Any, list[Level]]:
    """Behind these keys of objects with these levels: which level is there, and all levels. Each pair is looked up once."""
    pairs, which = np.unique(inside * len(known) + names, return_inverse=True)
    found = np.full(len(pairs), NOTHING)
    levels, places = list(levels), {id(one): at for at, one in enumerate(levels)}
    for at, pair in enumerate(pairs.tolist()):
        level = levels[pair // len(known)].below(known[pair % len(known)])
        if level is not None:
            if id(level) not in places:
                places[id(level)] = len(levels)
                levels.append(level)
            found[at] = places[id(level)]
    return found[which], levels


def _objects(texts: pa.StringArray) -> Any:
    """Whether each text is one JSON object. A few others near one that is not also count as none."""
    if not len(texts) or _are_objects(texts):
        return np.ones(len(texts), bool)
    if len(texts) <= FEW:
        return np.zeros(len(texts), bool)
    half = len(texts) // 2
    return np.concatenate((_objects(texts.slice(0, half)), _objects(texts.slice(half))))


def _are_objects(texts: pa.StringArray) -> bool:
    try:
        return bool(read_json(texts, NO_FIELDS, others="ignore").num_rows == len(texts))
    except pa.ArrowInvalid:
        return False
