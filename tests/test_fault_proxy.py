"""The proxy that other tests lean on: it spoils what it was told to, nothing else, and counts right."""

from __future__ import annotations

import http.client
import threading
import time
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from inspect import getclosurevars

import pytest

from tests.fault_proxy import (
    FaultProxy,
    after,
    answered,
    delayed,
    drop_answer,
    drop_request,
    together,
    without_header,
)


class Echo(BaseHTTPRequestHandler):
    """Answers with what it heard: method, target, one header and the body."""

    protocol_version = "HTTP/1.1"
    heard: list[str]

    def echo(self) -> None:
        body = self.rfile.read(int(self.headers.get("Content-Length") or 0)).decode()
        said = f"{self.command} {self.path} {self.headers.get('If-None-Match')} {body}"
        self.server.heard.append(said)  # type: ignore[attr-defined]
        self.send_response(200)
        self.send_header("Content-Length", str(len(said)))
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(said.encode())

    do_GET = do_PUT = do_HEAD = echo  # noqa: N815

    def log_message(self, *args: object) -> None:
        pass


@pytest.fixture
def upstream() -> Iterator[ThreadingHTTPServer]:
    server = ThreadingHTTPServer(("127.0.0.1", 0), Echo)
    server.heard = []  # type: ignore[attr-defined]
    thread = threading.Thread(target=server.serve_forever, args=(0.05,))
    thread.start()
    yield server
    server.shutdown()
    thread.join()
    server.server_close()


@pytest.fixture
def proxy(upstream: ThreadingHTTPServer) -> Iterator[FaultProxy]:
    with FaultProxy(upstream.server_port) as running:
        yield running


def ask(proxy: FaultProxy, method: str, target: str, body: str = "", **headers: str) -> tuple[int, str]:
    connection = http.client.HTTPConnection("127.0.0.1", proxy.port, timeout=10)
    try:
        connection.request(method, target, body or None, headers)
        answer = connection.getresponse()
        return answer.status, answer.read().decode()
    finally:
        connection.close()


def test_what_no_rule_names_goes_through_unchanged(proxy: FaultProxy) -> None:
    assert ask(proxy, "PUT", "/b/a%20b?x=1", "body") == (200, "PUT /b/a%20b?x=1 None body")
    assert ask(proxy, "HEAD", "/b/k") == (200, "")
    assert proxy.counts == {"PUT": 1, "HEAD": 1}
    assert proxy.statuses == {("PUT", 200): 1, ("HEAD", 200): 1}
    assert [r.where for r in proxy.requests("PUT", "a b")] == ["/b/a b?x=1"]


def test_a_connection_is_kept_for_many_requests(proxy: FaultProxy) -> None:
    connection = http.client.HTTPConnection("127.0.0.1", proxy.port, timeout=10)
    proxy.on("*", "spoiled", then=answered(409, "Conflict"), times=None)
    for target in ("/spoiled", "/fine", "/spoiled", "/fine"):
        for method in ("HEAD", "PUT", "GET"):
            connection.request(method, target, "x" if method == "PUT" else None)
            answer = connection.getresponse()
            answer.read()
            assert answer.status == (409 if target == "/spoiled" else 200)
    connection.close()


def test_only_the_nth_match_is_spoiled(proxy: FaultProxy) -> None:
    rule = proxy.on("GET", "k$", then=answered(503, "SlowDown"), nth=2, times=2)
    statuses = [ask(proxy, "GET", target)[0] for target in ("/k", "/other", "/k", "/k", "/k")]
    assert statuses == [200, 200, 503, 503, 200]
    assert (rule.met, rule.taken) == (4, 2)


def test_a_dropped_answer_was_heard_and_a_dropped_request_was_not(
    proxy: FaultProxy, upstream: ThreadingHTTPServer
) -> None:
    proxy.on("PUT", "answer", then=drop_answer)
    proxy.on("PUT", "request", then=drop_request)
    for target in ("/answer", "/request"):
        with pytest.raises(http.client.RemoteDisconnected):
            ask(proxy, "PUT", target, "body")
    assert upstream.heard == ["PUT /answer None body"]  # type: ignore[attr-defined]
    assert proxy.statuses == {("PUT", None): 2}


def test_a_header_can_be_taken_away(proxy: FaultProxy) -> None:
    proxy.on("PUT", "", then=without_header("if-none-match"))
    spoiled, fine = (ask(proxy, "PUT", "/k", "b", **{"If-None-Match": "*"})[1] for _ in range(2))
    assert (spoiled, fine) == ("PUT /k None b", "PUT /k * b")


def test_something_can_happen_just_before(proxy: FaultProxy, upstream: ThreadingHTTPServer) -> None:
    proxy.on("PUT", "ours", then=after(lambda request: ask(proxy, "PUT", "/theirs")))
    ask(proxy, "PUT", "/ours")
    assert upstream.heard == ["PUT /theirs None ", "PUT /ours None "]  # type: ignore[attr-defined]


def test_a_request_can_be_late_and_all_can_be(proxy: FaultProxy, upstream: ThreadingHTTPServer) -> None:
    proxy.on("GET", "slow", then=delayed(0.2))
    assert seconds(lambda: ask(proxy, "GET", "/slow")) >= 0.2
    with FaultProxy(upstream.server_port, latency_s=0.1) as far_away:
        assert seconds(lambda: ask(far_away, "GET", "/k")) >= 0.1


def test_requests_can_be_held_until_all_have_come(proxy: FaultProxy, upstream: ThreadingHTTPServer) -> None:
    held = together(2)
    all_here: threading.Barrier = getclosurevars(held).nonlocals["all_here"]
    proxy.on("GET", "k", then=held, times=2)
    first = threading.Thread(target=ask, args=(proxy, "GET", "/k1"))
    first.start()
    while not all_here.n_waiting:
        assert first.is_alive(), "it was not held"
        time.sleep(0.01)
    assert upstream.heard == []  # type: ignore[attr-defined]
    ask(proxy, "GET", "/k2")
    first.join()
    assert len(upstream.heard) == 2  # type: ignore[attr-defined]


def test_a_body_in_chunks_arrives_whole(proxy: FaultProxy) -> None:
    connection = http.client.HTTPConnection("127.0.0.1", proxy.port, timeout=10)
    connection.request("PUT", "/k", iter([b"one ", b"two"]), encode_chunked=True)
    assert connection.getresponse().read() == b"PUT /k None one two"
    connection.close()


def seconds(deed: object) -> float:
    began = time.monotonic()
    deed()  # type: ignore[operator]
    return time.monotonic() - began
