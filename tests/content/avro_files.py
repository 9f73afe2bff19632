"""Avro files for tests: a small writer of the object container, apart from the reader that it tests."""

from __future__ import annotations

import json
import struct
import zlib
from collections.abc import Sequence
from typing import Any

SYNC = bytes(range(16))


def avro_file(schema: Any, rows: Sequence[Any], *, codec: str = "null", rows_of_block: int = 2) -> bytes:
    told = {"avro.schema": json.dumps(schema).encode(), "avro.codec": codec.encode()}
    header = number(len(told)) + b"".join(_counted(k.encode()) + _counted(v) for k, v in told.items()) + number(0)
    blocks = [rows[at : at + rows_of_block] for at in range(0, len(rows), rows_of_block)]
    return b"Obj\x01" + header + SYNC + b"".join(block(schema, some, codec) for some in blocks)


def block(schema: Any, rows: Sequence[Any], codec: str) -> bytes:
    body = b"".join(encoded(schema, row) for row in rows)
    if codec == "deflate":
        packer = zlib.compressobj(wbits=-15)
        body = packer.compress(body) + packer.flush()
    return number(len(rows)) + _counted(body) + SYNC


def number(value: int) -> bytes:
    value = (value << 1) ^ (value >> 63)
    written = bytearray()
    while value >= 0x80:
        written.append(value & 0x7F | 0x80)
        value >>= 7
    return bytes([*written, value])


def encoded(schema: Any, value: Any) -> bytes:
    kind = schema["type"] if isinstance(schema, dict) else schema
    if isinstance(schema, list):  # null and one other
        branch = 0 if value is None else 1
        return number(branch) + encoded(schema[branch], value)
    match kind:
        case "null":
            return b""
        case "boolean":
            return bytes([value])
        case "int" | "long":
            return number(value)
        case "float" | "double":
            return struct.pack("<f" if kind == "float" else "<d", value)
        case "string":
            return _counted(value.encode("utf-8", "surrogateescape"))
        case "bytes":
            return _counted(value)
        case "fixed":
            return bytes(value)
        case "enum":
            return number(schema["symbols"].index(value))
        case "array":
            items = b"".join(encoded(schema["items"], item) for item in value)
            return (number(-len(value)) + number(len(items)) + items if value else b"") + number(0)
        case "map":
            items = b"".join(_counted(k.encode()) + encoded(schema["values"], v) for k, v in value.items())
            return (number(len(value)) + items if value else b"") + number(0)
        case "record":
            return b"".join(encoded(field["type"], value[field["name"]]) for field in schema["fields"])
    raise AssertionError(f"the writer does not know {kind}")


def _counted(data: bytes) -> bytes:
    return number(len(data)) + data
