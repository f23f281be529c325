"""A small HTTP server with scripted answers, for faults that no real registry produces on demand."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any


@dataclass
class Answer:
    """An answer: `body` is JSON unless it is bytes; `announced` is the length that the header states.

    If `is_silent`, the answer never comes; if `drops`, the connection is closed instead. With `drip`, the body comes
    byte by byte, with a pause of so many seconds after each.
    """

    status: int = 200
    body: Any = None
    headers: dict[str, str] = field(default_factory=dict)
    announced: int | None = None
    drip: float = 0.0
    drops: bool = False
    is_silent: bool = False


@dataclass
class Server:
    """A running server; `asked` lists the method, path and headers of each request."""

    url: str
    asked: list[tuple[str, str, dict[str, str]]]


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    wbufsize = -1  # sent in one piece; otherwise each answer waits for the client's acknowledgement

    def do_GET(self) -> None:
        self.rfile.read(int(self.headers.get("Content-Length") or 0))
        answer = self.server.next_answer(self.command, self.path, dict(self.headers))
        if answer.drops:
            self.close_connection = True
            self.connection.close()
            return
        body = answer.body if isinstance(answer.body, bytes) else json.dumps(answer.body).encode()
        self.send_response(answer.status)
        for name, value in ({"Content-Type": "application/json"} | answer.headers).items():
            self.send_header(name, value)
        self.send_header("Content-Length", str(len(body) if answer.announced is None else answer.announced))
        self.end_headers()
        self.close_connection |= answer.announced is not None
        self._send(body, answer.drip)

    do_POST = do_PUT = do_GET  # noqa: N815  the names that http.server requires

    def _send(self, body: bytes, drip: float) -> None:
        for part in (body[i : i + 1] for i in range(len(body))) if drip else (body,):
            self.wfile.write(part)
            self.wfile.flush()
            self.server.stopped.wait(drip)

    def handle(self) -> None:
        with suppress(OSError):  # the client went away
            super().handle()

    def log_message(self, *_: Any) -> None:
        """Log nothing."""


class _HttpServer(ThreadingHTTPServer):
    daemon_threads = True

    def __init__(self, answers: Sequence[Answer]) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.asked: list[tuple[str, str, dict[str, str]]] = []
        self.stopped = threading.Event()
        self._left = list(answers)

    def next_answer(self, *asked: Any) -> Answer:
        self.asked.append(asked)
        answer = self._left.pop(0) if len(self._left) > 1 else self._left[0]
        if answer.is_silent:
            self.stopped.wait()
        return answer

    def handle_error(self, *_: Any) -> None:
        """Log nothing."""


@contextmanager
def serving(answers: Sequence[Answer], context: Any = None) -> Iterator[Server]:
    """Run a server that gives one answer per request and repeats the last; with a TLS `context`, over HTTPS."""
    server = _HttpServer(answers)
    if context is not None:
        server.socket = context.wrap_socket(server.socket, server_side=True)
    threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True).start()
    try:
        yield Server(f"http{'s' if context else ''}://127.0.0.1:{server.server_port}", server.asked)
    finally:
        server.stopped.set()
        server.shutdown()
        server.server_close()
