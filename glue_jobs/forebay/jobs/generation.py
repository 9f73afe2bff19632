"""The generation of a stream: the name that its transactions carry, bound to the id that Spark gave the stream.

In: a checkpoint. Out: a name. Spark counts the batches of each new stream from 0. A stream that was deleted and started
from scratch has another id, and so another generation: Delta never confuses its batches with those of the old one.
"""

from __future__ import annotations

import json
import uuid

from forebay.errors import Halt
from forebay.lake.objects import Objects

NAME = "generation"
STREAM = "stream/metadata"
"""Where Spark writes the id of a stream, before its first batch."""


def generation_of(checkpoint: Objects) -> str:
    """The generation of the current stream; a second call returns the same."""
    stream = _stream(checkpoint)
    if stream is None:
        raise Halt(f"{checkpoint.place}/{STREAM} disappeared while the stream was running; start again")
    stored = _stored(checkpoint)
    if stored.get("stream") == stream:
        return stored["generation"]
    # Before generations were bound to streams, the object held the name alone.
    name = stored["generation"] if stored and "stream" not in stored else uuid.uuid4().hex[:12]
    checkpoint.write(NAME, json.dumps({"generation": name, "stream": stream}).encode())
    return name


def known_generation(checkpoint: Objects) -> str | None:
    """None where no batch of the current stream has begun. Writes nothing."""
    stream, stored = _stream(checkpoint), _stored(checkpoint)
    return stored.get("generation") if stream is not None and stored.get("stream", stream) == stream else None


def _stream(checkpoint: Objects) -> str | None:
    content = checkpoint.read(STREAM)
    return None if content is None else str(json.loads(content)["id"])


def _stored(checkpoint: Objects) -> dict[str, str]:
    content = checkpoint.read(NAME)
    if content is None:
        return {}
    text = content.decode()
    found: dict[str, str] = json.loads(text) if text.startswith("{") else {"generation": text}
    return found
