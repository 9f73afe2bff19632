"""A schema of Avro becomes a function that writes a row's bytes as JSON text, each value as its producer wrote it.

In: the schema of a file, and its rows' bytes. Out: JSON. Decimals keep their digits, times are ISO 8601, bytes are base64, and
a union is the value that it holds. An invalid schema, and bytes that do not match it, are `ValueError`.

This is our own reader, because Glue has no Avro reader in Python. fastavro makes Python objects, which would have to become
JSON text again, and does not limit the elements of an array that a file declares (docs/design/reading.md).
"""

from __future__ import annotations

import base64
import json
import math
import struct
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import date, datetime, timedelta
from json.encoder import encode_basestring as quoted
from typing import Any

import numpy as np

from forebay.content.formats.json_text import spelt, uuid_of

EPOCH = datetime(1970, 1, 1)
DAY_S = 86_400
PLACES = {"millis": 3, "micros": 6, "nanos": 9}


@dataclass(slots=True)
class Cursor:
    """Bytes, and the position up to which they were read. `most_items` is how many elements of arrays and maps a row may
    still have."""

    data: bytes
    at: int = 0
    most_items: int = 0

    def take(self, size: int) -> bytes:
        begin, self.at = self.at, self.at + size
        if size < 0 or self.at > len(self.data):
            raise ValueError(f"a value of {size} bytes, and {len(self.data) - begin} are left")
        return self.data[begin : self.at]

    def number(self) -> int:
        """A zigzag number: small numbers of either sign are short."""
        data, at, value = self.data, self.at, 0
        for shift in range(0, 70, 7):
            if at >= len(data):
                raise ValueError("it ends in the middle of a number")
            byte = data[at]
            at += 1
            value |= (byte & 0x7F) << shift
            if byte < 0x80:
                self.at = at
                return (value >> 1) ^ -(value & 1)
        raise ValueError("a number of more than ten bytes")

    def items(self) -> Iterator[None]:
        """Once for each element of an array or a map. The cursor is then at its bytes; it may have none."""
        while count := self.number():
            if count < 0:
                count = -count
                self.number()
            self.most_items -= count
            if self.most_items < 0:
                raise ValueError("a row has more elements than a record may have bytes")
            for _ in range(count):
                yield None


Writer = Callable[[Cursor], str]


def writer_of(schema: Any) -> Writer:
    """The writer of a file's records."""
    if not isinstance(schema, dict) or schema.get("type") not in ("record", "error"):
        raise ValueError("its rows are not records")
    return _Schema().writer(schema, "")


@dataclass
class _Schema:
    """The named types so far. A type may refer to itself."""

    named: dict[str, Writer] = field(default_factory=dict)

    def writer(self, schema: Any, space: str) -> Writer:
        if isinstance(schema, list):
            return self._union(schema, space)
        if isinstance(schema, str):
            return PRIMITIVE[schema] if schema in PRIMITIVE else self._reference(schema, space)
        if not isinstance(schema, dict):
            raise ValueError(f"no type is {schema!r}")
        kind = schema.get("type")
        if kind in ("record", "error"):
            return self._record(schema, space)
        if kind == "enum":
            return self._name(schema, space, _enum(schema))
        if kind == "fixed":
            return self._name(schema, space, _fixed(schema))
        if kind == "array":
            return _array(self.writer(schema.get("items"), space))
        if kind == "map":
            return _map(self.writer(schema.get("values"), space))
        logical = LOGICAL.get((kind, str(schema.get("logicalType")))) if isinstance(kind, str) else None
        if logical is not None:
            return logical
        if (kind, schema.get("logicalType")) == ("bytes", "decimal"):
            return _decimal(lambda cursor: cursor.take(cursor.number()), schema)
        return self.writer(kind, space)

    def _union(self, branches: Sequence[Any], space: str) -> Writer:
        writers = [self.writer(branch, space) for branch in branches]

        def write(cursor: Cursor) -> str:
            number = cursor.number()
            if not 0 <= number < len(writers):
                raise ValueError(f"a union has no branch {number}")
            return writers[number](cursor)

        return write

    def _record(self, schema: Mapping[str, Any], space: str) -> Writer:
        inner = _full_name(schema, space).rpartition(".")[0]
        fields: list[tuple[str, Writer]] = []
        write = self._name(schema, space, lambda cursor: _object(fields, cursor))
        names = [str(one["name"]) for one in schema["fields"]]
        if len(set(names)) < len(names):
            raise ValueError(f"the record {schema.get('name')} has two fields of one name")
        for name, one in zip(names, schema["fields"], strict=True):
            fields.append((spelt(name).decode() + ":", self.writer(one.get("type"), inner)))
        return write

    def _name(self, schema: Mapping[str, Any], space: str, writer: Writer) -> Writer:
        self.named[_full_name(schema, space)] = writer
        return writer

    def _reference(self, name: str, space: str) -> Writer:
        found = self.named.get(f"{space}.{name}" if space and "." not in name else name) or self.named.get(name)
        if found is None:
            raise ValueError(f"no type is {name!r}")
        return found


def _full_name(schema: Mapping[str, Any], space: str) -> str:
    name = str(schema.get("name"))
    space = str(schema.get("namespace", space))
    return name if "." in name or not space else f"{space}.{name}"


def _object(fields: Sequence[tuple[str, Writer]], cursor: Cursor) -> str:
    return "{" + ",".join([key + write(cursor) for key, write in fields]) + "}"


def _enum(schema: Mapping[str, Any]) -> Writer:
    symbols = [quoted(str(symbol)) for symbol in schema["symbols"]]

    def write(cursor: Cursor) -> str:
        number = cursor.number()
        if not 0 <= number < len(symbols):
            raise ValueError(f"an enum has no symbol {number}")
        return symbols[number]

    return write


def _fixed(schema: Mapping[str, Any]) -> Writer:
    size, logical = schema["size"], schema.get("logicalType")
    if logical == "decimal":
        return _decimal(lambda cursor: cursor.take(size), schema)
    if logical == "duration" and size == 12:
        return lambda cursor: '{{"months":{},"days":{},"milliseconds":{}}}'.format(
            *struct.unpack("<3I", cursor.take(12))
        )
    if logical == "uuid" and size == 16:
        return lambda cursor: f'"{uuid_of(cursor.take(size))}"'
    return lambda cursor: _base64(cursor.take(size))


def _decimal(take: Callable[[Cursor], bytes], schema: Mapping[str, Any]) -> Writer:
    scale = int(schema.get("scale", 0))

    def write(cursor: Cursor) -> str:
        digits = str(int.from_bytes(take(cursor), "big", signed=True))
        sign, digits = ("-", digits[1:]) if digits.startswith("-") else ("", digits)
        if scale <= 0:
            return f"{sign}{digits}"
        digits = digits.rjust(scale + 1, "0")
        return f"{sign}{digits[:-scale]}.{digits[-scale:]}"

    return write


def _array(write: Writer) -> Writer:
    return lambda cursor: "[" + ",".join([write(cursor) for _ in cursor.items()]) + "]"


def _map(write: Writer) -> Writer:
    return lambda cursor: "{" + ",".join([f"{_string(cursor)}:{write(cursor)}" for _ in cursor.items()]) + "}"


def _string(cursor: Cursor) -> str:
    """Bytes that are not UTF-8 stay unchanged: the record is refused later, alone."""
    return quoted(cursor.take(cursor.number()).decode("utf-8", "surrogateescape"))


def _base64(data: bytes) -> str:
    return f'"{base64.b64encode(data).decode()}"'


def _boolean(cursor: Cursor) -> str:
    return "true" if cursor.take(1) != b"\0" else "false"


def _float(cursor: Cursor) -> str:
    return _finite(struct.unpack("<f", cursor.take(4))[0], single=True)


def _double(cursor: Cursor) -> str:
    return _finite(struct.unpack("<d", cursor.take(8))[0])


def _finite(value: float, *, single: bool = False) -> str:
    if math.isfinite(value):
        return str(np.float32(value)) if single else repr(value)
    return json.dumps(value)


def _date(cursor: Cursor) -> str:
    """A day outside the years 1 to 9999 stays a number, and so does a time."""
    days = cursor.number()
    try:
        return f'"{date.fromordinal(EPOCH.toordinal() + days).isoformat()}"'
    except (ValueError, OverflowError):
        return str(days)


def _time_of_day(places: int) -> Writer:
    def write(cursor: Cursor) -> str:
        number = cursor.number()
        seconds, fraction = divmod(number, 10**places)
        if not 0 <= seconds < DAY_S:
            return str(number)
        return f'"{(EPOCH + timedelta(seconds=seconds)).time().isoformat()}.{fraction:0{places}}"'

    return write


def _moment(places: int, zone: str) -> Writer:
    def write(cursor: Cursor) -> str:
        number = cursor.number()
        seconds, fraction = divmod(number, 10**places)
        try:
            moment = EPOCH + timedelta(seconds=seconds)
        except OverflowError:
            return str(number)
        return f'"{moment.isoformat()}.{fraction:0{places}}{zone}"'

    return write


PRIMITIVE: dict[str, Writer] = {
    "null": lambda _: "null",
    "boolean": _boolean,
    "int": lambda cursor: str(cursor.number()),
    "long": lambda cursor: str(cursor.number()),
    "float": _float,
    "double": _double,
    "bytes": lambda cursor: _base64(cursor.take(cursor.number())),
    "string": _string,
}
LOGICAL: dict[tuple[str, str], Writer] = {
    ("int", "date"): _date,
    ("int", "time-millis"): _time_of_day(3),
    ("long", "time-micros"): _time_of_day(6),
    **{("long", f"timestamp-{unit}"): _moment(places, "Z") for unit, places in PLACES.items()},
    **{("long", f"local-timestamp-{unit}"): _moment(places, "") for unit, places in PLACES.items()},
}
