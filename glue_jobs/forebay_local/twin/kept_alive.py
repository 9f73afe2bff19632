"""Connections of the twin stay open from request to request, as S3's do.

werkzeug closes each after its answer, so every request would cost a connection and a thread, on both sides. An answer leaves in
one write: a client that waits for its second half would wait for 40 milliseconds.
"""

from __future__ import annotations

import traceback
from collections.abc import Iterable
from http import HTTPStatus
from io import BytesIO
from typing import TYPE_CHECKING, Any

from moto.moto_server.werkzeug_app import MotoRequestHandler

if TYPE_CHECKING:
    from _typeshed.wsgi import WSGIEnvironment

Answer = tuple[str, list[tuple[str, str]], bytes]


class Handler(MotoRequestHandler):
    """Reads a request to its end, also where the application does not, and then answers. Writes no log of requests."""

    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True
    wbufsize = -1

    def handle_expect_100(self) -> bool:
        proceeds = super().handle_expect_100()
        self.wfile.flush()
        return proceeds

    def run_wsgi(self) -> None:
        environ = self.make_environ()
        chunked = environ.get("wsgi.input_terminated")
        body = environ["wsgi.input"].read() if chunked else self.rfile.read(int(environ.get("CONTENT_LENGTH") or 0))
        environ["wsgi.input"] = BytesIO(body)
        try:
            answer = self._answer(environ)
        except Exception:
            traceback.print_exc()
            answer = f"{HTTPStatus.INTERNAL_SERVER_ERROR:d} ", [], b"the twin failed; its log says why"
        self._send(*answer)

    def _answer(self, environ: WSGIEnvironment) -> Answer:
        began: list[tuple[str, list[tuple[str, str]]]] = []

        def start_response(status: str, headers: list[tuple[str, str]], exc_info: Any = None) -> Any:
            began.append((status, headers))

        parts: Iterable[bytes] = self.server.app(environ, start_response)
        try:
            body = b"".join(parts)
        finally:
            if hasattr(parts, "close"):
                parts.close()
        return *began[-1], body

    def _send(self, status: str, headers: list[tuple[str, str]], body: bytes) -> None:
        code, _, message = status.partition(" ")
        self.send_response(int(code), message)
        bodiless = self.command == "HEAD" or int(code) in (HTTPStatus.NO_CONTENT, HTTPStatus.NOT_MODIFIED)
        for name, value in headers:
            if bodiless or name.lower() != "content-length":
                self.send_header(name, value)
        if not bodiless:
            self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        if not bodiless:
            self.wfile.write(body)
        self.wfile.flush()

    def log_request(self, code: int | str = "-", size: int | str = "-") -> None:
        """Not one line a request: the log is for what went wrong."""
