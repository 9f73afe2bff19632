"""A proxy before an S3 server on this machine: every request waits as if the server were far away, and is counted.

In: the server's port and a delay in seconds. Out: a `LatencyProxy` with a port of its own and the requests that it has
seen. With `keep` it answers for an object that it has handed out whole before, since a server in Python on the same
cores is slower than S3, and not because it is far away. It runs in a thread, or alone: `python -m
tests.bench.latency_proxy --upstream PORT --delay 0.03` prints its port and, on SIGTERM, one JSON object of methods and
their counts.
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import json
import signal
import threading
from collections import Counter
from dataclasses import dataclass
from types import TracebackType

BLOCK_BYTES = 1 << 18
HEAD_BYTES = 1 << 16


@dataclass(frozen=True)
class _Kept:
    """An object as the server answered for it."""

    head: bytes
    body: bytes

    def answer(self, request: bytes) -> bytes:
        """All of it, its head, or a range."""
        asked = _header(request, b"range")
        if request.startswith(b"HEAD "):
            return self.head
        if asked is None:
            return self.head + self.body
        first, _, last = asked.removeprefix(b"bytes=").partition(b"-")
        start, size = int(first), len(self.body)
        part = self.body[start : int(last) + 1 if last else None]
        lines = [b"HTTP/1.1 206 Partial Content", *self.head.rstrip().split(b"\r\n")[1:]]
        # A checksum is one of the whole.
        lines = [line for line in lines if not line.lower().startswith((b"content-length:", b"x-amz-checksum-"))]
        lines.append(b"Content-Length: %d" % len(part))
        lines.append(b"Content-Range: bytes %d-%d/%d" % (start, start + len(part) - 1, size))
        return b"\r\n".join(lines) + b"\r\n\r\n" + part


class LatencyProxy:
    """Use it as a context; `requests` holds a method and a target for each request."""

    def __init__(self, upstream: int, delay_s: float = 0.0, *, keep: bool = False) -> None:
        self.upstream, self.delay_s = upstream, delay_s
        self._kept: dict[str, _Kept] | None = {} if keep else None
        self.port = 0
        self.requests: list[tuple[str, str]] = []
        self._loop = asyncio.new_event_loop()
        self._stop = asyncio.Event()
        self._ready = threading.Event()
        self._connections: set[asyncio.Task[None]] = set()
        self._thread = threading.Thread(target=self._run, name="latency-proxy", daemon=True)

    def __enter__(self) -> LatencyProxy:
        self._thread.start()
        self._ready.wait(10)
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self._loop.call_soon_threadsafe(self._stop.set)
        self._thread.join(10)

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    def methods(self) -> Counter[str]:
        return Counter(method for method, _ in self.requests)

    async def serve(self) -> None:
        server = await asyncio.start_server(self._accept, "127.0.0.1", 0, limit=HEAD_BYTES)
        self.port = server.sockets[0].getsockname()[1]
        self._ready.set()
        await self._stop.wait()
        server.close()

    def stop(self) -> None:
        self._stop.set()

    def _run(self) -> None:
        asyncio.set_event_loop(self._loop)
        try:
            self._loop.run_until_complete(self.serve())
            self._loop.run_until_complete(self._end_connections())
        finally:
            self._loop.close()

    async def _end_connections(self) -> None:
        others = asyncio.all_tasks() - {asyncio.current_task()}
        for task in others:
            task.cancel()
        await asyncio.gather(*others, return_exceptions=True)

    async def _accept(self, client: asyncio.StreamReader, to_client: asyncio.StreamWriter) -> None:
        """The loop itself forgets tasks that nobody holds."""
        task = asyncio.create_task(self._connection(client, to_client))
        self._connections.add(task)
        task.add_done_callback(self._connections.discard)

    async def _connection(self, client: asyncio.StreamReader, to_client: asyncio.StreamWriter) -> None:
        server, to_server = await asyncio.open_connection("127.0.0.1", self.upstream)
        try:
            while await self._exchange(client, to_client, server, to_server):
                pass
        except (ConnectionError, asyncio.IncompleteReadError, asyncio.CancelledError):
            pass  # either side may leave at any time
        finally:
            for writer in (to_client, to_server):
                writer.close()
                with contextlib.suppress(ConnectionError, asyncio.CancelledError):
                    await writer.wait_closed()

    async def _exchange(
        self,
        client: asyncio.StreamReader,
        to_client: asyncio.StreamWriter,
        server: asyncio.StreamReader,
        to_server: asyncio.StreamWriter,
    ) -> bool:
        """One request and its answer; whether another may follow on these connections."""
        head = await client.readuntil(b"\r\n\r\n")
        method, target, _ = head.split(b"\r\n", 1)[0].decode("latin-1").split(" ")
        self.requests.append((method, target))
        await asyncio.sleep(self.delay_s)
        if (kept := self._known(method, target, head)) is not None:
            to_client.write(kept.answer(head))
            await to_client.drain()
            return True
        if _header(head, b"expect") == b"100-continue":  # the client holds its body back until it hears this
            to_client.write(b"HTTP/1.1 100 Continue\r\n\r\n")
            head = b"\r\n".join(line for line in head.split(b"\r\n") if not line.lower().startswith(b"expect:"))
        to_server.write(head)
        await _relay(client, to_server, _length(head) or 0)
        answer = await server.readuntil(b"\r\n\r\n")
        to_client.write(answer)
        length = 0 if method == "HEAD" or answer.split(b" ", 2)[1] in (b"204", b"304") else _length(answer)
        if (
            self._kept is not None
            and length
            and length <= BLOCK_BYTES
            and _is_whole_object(method, target, head, answer)
        ):
            self._kept[target] = _Kept(answer, await server.readexactly(length))
            to_client.write(self._kept[target].body)
            await to_client.drain()
        else:
            await _relay(server, to_client, length)
        return length is not None and _header(answer, b"connection") != b"close"

    def _known(self, method: str, target: str, head: bytes) -> _Kept | None:
        if self._kept is None:
            return None
        if method not in ("GET", "HEAD"):
            self._kept.pop(target, None)
        conditional = b"\r\nif-" in head.lower()
        return None if conditional else self._kept.get(target)


def _is_whole_object(method: str, target: str, head: bytes, answer: bytes) -> bool:
    ok = answer.split(b" ", 2)[1] == b"200" and _header(answer, b"connection") != b"close"
    return ok and method == "GET" and "?" not in target and _header(head, b"range") is None


async def _relay(source: asyncio.StreamReader, target: asyncio.StreamWriter, length: int | None) -> None:
    """So many bytes, or all that come where the length was not said."""
    while length is None or length > 0:
        block = await source.read(BLOCK_BYTES if length is None else min(BLOCK_BYTES, length))
        if not block:
            return
        target.write(block)
        await target.drain()
        length = None if length is None else length - len(block)
    await target.drain()


def _length(head: bytes) -> int | None:
    value = _header(head, b"content-length")
    return None if value is None else int(value)


def _header(head: bytes, name: bytes) -> bytes | None:
    for line in head.split(b"\r\n")[1:]:
        key, _, value = line.partition(b":")
        if key.strip().lower() == name:
            return value.strip().lower()
    return None


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--upstream", type=int, required=True)
    options.add_argument("--delay", type=float, default=0.0)
    given = options.parse_args()
    with LatencyProxy(given.upstream, given.delay) as proxy:
        print(proxy.port, flush=True)
        with contextlib.suppress(KeyboardInterrupt):
            signal.sigwait({signal.SIGTERM, signal.SIGINT})
        print(json.dumps(proxy.methods()), flush=True)


if __name__ == "__main__":
    main()
