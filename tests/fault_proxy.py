"""A proxy between us and an S3 or SQS server that spoils chosen requests, counts all, and can make each one slower.

    with FaultProxy(upstream_port) as proxy:
        proxy.on("PUT", r"_delta_log/.*json$", nth=1, then=drop_answer)
        ...                                   # talk to proxy.url
        assert proxy.counts["GET"] == 7

An *action* is a function of the request and of `forward`, which sends a request to the upstream and gives its answer.
What the action returns is sent back; None closes the connection without a word, as a broken network does. The actions
here are `drop_answer`, `drop_request`, `answered`, `delayed`, `without_header`, `after` and `together`; a test may write
its own in one line.

Standard library alone, HTTP/1.1 with kept-alive connections, a thread for each connection. Bodies are held in memory.
"""

from __future__ import annotations

import http.client
import re
import threading
import time
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, replace
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from types import TracebackType
from typing import Any
from urllib.parse import unquote, urlsplit

HOP_BY_HOP = {"connection", "keep-alive", "transfer-encoding", "expect", "te", "upgrade"}


@dataclass(frozen=True)
class Request:
    """What the client asked. `target` is the request line's, still quoted; headers keep their order and their case."""

    method: str
    target: str
    headers: tuple[tuple[str, str], ...] = ()
    body: bytes = b""

    @property
    def path(self) -> str:
        """The path, unquoted and without the query: `/bucket/key`."""
        return unquote(urlsplit(self.target).path)

    @property
    def query(self) -> str:
        return unquote(urlsplit(self.target).query)

    @property
    def where(self) -> str:
        """What a rule's pattern is searched in: the path, and the query where there is one."""
        return f"{self.path}?{self.query}" if self.query else self.path

    def header(self, name: str) -> str | None:
        return next((value for key, value in self.headers if key.lower() == name.lower()), None)


@dataclass(frozen=True)
class Answer:
    """What goes back to the client."""

    status: int
    headers: tuple[tuple[str, str], ...] = ()
    body: bytes = b""


Forward = Callable[[Request], Answer]
Action = Callable[[Request, Forward], "Answer | None"]


def drop_answer(request: Request, forward: Forward) -> None:
    """The server does it; the client never hears of it."""
    forward(request)


def drop_request(request: Request, forward: Forward) -> None:
    """The server never hears of it."""


def answered(status: int, code: str = "") -> Action:
    """The proxy answers by itself, with an error as S3 words it; the server never hears of it."""
    body = f"<Error><Code>{code}</Code><Message>said by the fault proxy</Message></Error>" if code else ""
    return lambda request, forward: Answer(status, (("Content-Type", "application/xml"),), body.encode())


def delayed(seconds: float) -> Action:
    def wait_then_forward(request: Request, forward: Forward) -> Answer:
        time.sleep(seconds)
        return forward(request)

    return wait_then_forward


def without_header(name: str) -> Action:
    """As a server behaves that does not know this header."""

    def forward_stripped(request: Request, forward: Forward) -> Answer:
        kept = tuple((key, value) for key, value in request.headers if key.lower() != name.lower())
        return forward(replace(request, headers=kept))

    return forward_stripped


def after(deed: Callable[[Request], object]) -> Action:
    """Something happens elsewhere, just before the server gets the request."""

    def do_then_forward(request: Request, forward: Forward) -> Answer:
        deed(request)
        return forward(request)

    return do_then_forward


def together(how_many: int, wait_s: float = 120.0) -> Action:
    """Each request is held until `how_many` have come; then all go on at once. Who waits for too long is dropped."""
    all_here = threading.Barrier(how_many)

    def wait_for_all(request: Request, forward: Forward) -> Answer | None:
        try:
            all_here.wait(wait_s)
        except threading.BrokenBarrierError:
            return None
        return forward(request)

    return wait_for_all


class Rule:
    """From its `nth` matching request on, and for `times` of them (None: all), the action is taken."""

    def __init__(self, method: str, pattern: str, nth: int, times: int | None, action: Action) -> None:
        self._method, self._pattern, self._action = method, re.compile(pattern), action
        self._first, self._end = nth, None if times is None else nth + times
        self.met = 0
        self.taken = 0

    def action_for(self, request: Request) -> Action | None:
        """Counts; so it is asked once for each request, under the proxy's lock."""
        if self._method not in ("*", request.method) or not self._pattern.search(request.where):
            return None
        self.met += 1
        if self.met < self._first or (self._end is not None and self.met >= self._end):
            return None
        self.taken += 1
        return self._action


class FaultProxy:
    """Listens on a free loopback port from `with` on; forwards to `upstream_port`, each request `latency_s` later."""

    def __init__(self, upstream_port: int, *, upstream_host: str = "127.0.0.1", latency_s: float = 0.0) -> None:
        self.latency_s = latency_s
        self._upstream = (upstream_host, upstream_port)
        self._lock = threading.Lock()
        self._rules: list[Rule] = []
        self._requests: list[Request] = []
        self._statuses: Counter[tuple[str, int | None]] = Counter()
        self._server = _Server(self)
        self._thread = threading.Thread(target=self._server.serve_forever, args=(0.05,), daemon=True)

    def __enter__(self) -> FaultProxy:
        self._thread.start()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()

    @property
    def port(self) -> int:
        return int(self._server.server_address[1])

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    def on(self, method: str, pattern: str, *, then: Action, nth: int = 1, times: int | None = 1) -> Rule:
        """Adds a rule; the first rule with something to do for a request does it. `method` may be "*".

        `pattern` is searched in the unquoted path with its query, `/bucket/key?query`.
        """
        rule = Rule(method, pattern, nth, times, then)
        with self._lock:
            self._rules.append(rule)
        return rule

    @property
    def counts(self) -> Counter[str]:
        """Requests that came in, by method."""
        return Counter(request.method for request in self.requests())

    @property
    def statuses(self) -> Counter[tuple[str, int | None]]:
        """Answers that went back, by method and status; None for a connection closed without a word."""
        with self._lock:
            return Counter(self._statuses)

    def requests(self, method: str = "*", pattern: str = "") -> list[Request]:
        """What came in, in order, without the bodies."""
        with self._lock:
            seen = list(self._requests)
        return [r for r in seen if method in ("*", r.method) and re.search(pattern, r.where)]

    def forget(self) -> None:
        """Starts the counts anew, and drops all rules."""
        with self._lock:
            self._requests.clear()
            self._statuses.clear()
            self._rules.clear()

    def handle(self, request: Request) -> Answer | None:
        with self._lock:
            self._requests.append(replace(request, body=b""))
            action = next((a for rule in self._rules if (a := rule.action_for(request))), None)
        if self.latency_s:
            time.sleep(self.latency_s)
        answer = action(request, self.forward) if action else self.forward(request)
        with self._lock:
            self._statuses[request.method, answer.status if answer else None] += 1
        return answer

    def forward(self, request: Request) -> Answer:
        connection = http.client.HTTPConnection(*self._upstream, timeout=120)
        try:
            connection.putrequest(request.method, request.target, skip_host=True, skip_accept_encoding=True)
            for key, value in request.headers:
                if key.lower() not in HOP_BY_HOP:
                    connection.putheader(key, value)
            if request.body and request.header("Content-Length") is None:
                connection.putheader("Content-Length", str(len(request.body)))
            connection.endheaders(request.body or None)
            reply = connection.getresponse()
            return Answer(reply.status, tuple(reply.getheaders()), reply.read())
        finally:
            connection.close()


class _Server(ThreadingHTTPServer):
    daemon_threads = True
    block_on_close = False
    request_queue_size = 256

    def __init__(self, proxy: FaultProxy) -> None:
        self.proxy = proxy
        super().__init__(("127.0.0.1", 0), _Handler)

    def handle_error(self, request: Any, client_address: Any) -> None:
        """A client that goes away in the middle is what this proxy is for."""


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    # Headers and body in one packet, and no waiting for more: otherwise each answer costs 40 ms of Nagle's.
    wbufsize = 1 << 16
    disable_nagle_algorithm = True
    server: _Server

    def answer_it(self) -> None:
        request = Request(self.command, self.path, tuple(self.headers.items()), self._body())
        answer = self.server.proxy.handle(request)
        if answer is None:
            self.close_connection = True
            return
        self.send_response_only(answer.status)
        for key, value in answer.headers:
            if key.lower() not in HOP_BY_HOP and (key.lower() != "content-length" or self.command == "HEAD"):
                self.send_header(key, value)
        body = b"" if self.command == "HEAD" else answer.body
        if self.command != "HEAD" and answer.status not in (204, 304):
            self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    do_GET = do_PUT = do_POST = do_DELETE = do_HEAD = answer_it  # noqa: N815 (the names are http.server's)

    def handle_expect_100(self) -> bool:
        self.send_response_only(100)
        self.end_headers()
        self.wfile.flush()
        return True

    def _body(self) -> bytes:
        if "chunked" in self.headers.get("Transfer-Encoding", ""):
            return b"".join(self._chunks())
        return self.rfile.read(int(self.headers.get("Content-Length") or 0))

    def _chunks(self) -> Any:
        while size := int(self.rfile.readline().split(b";")[0], 16):
            yield self.rfile.read(size)
            self.rfile.readline()
        while self.rfile.readline().strip():
            pass

    def log_message(self, format: str, *args: Any) -> None:  # noqa: A002 (the name is http.server's)
        pass
