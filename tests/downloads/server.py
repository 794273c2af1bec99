"""A server in a thread whose answers are correct or wrong in a chosen way."""

from __future__ import annotations

import re
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

RIGHT = -1  # the correct length


@dataclass(frozen=True)
class Plan:
    """An answer of the server; correct by default.

    Attributes:
        stop: bytes of the body after which the connection is closed.
        length: Content-Length; None for none.
        ranges: "right", "ignored", "wrong", "other" (range of a file of another length) or "refused" (416).
        body: body to send in place of the file.
        trickle: send the body as single bytes, without end.
    """

    status: int = 200
    stop: int | None = None
    length: int | None = RIGHT
    ranges: str = "right"
    body: bytes | None = None
    etag: str | None = '"one"'
    last_modified: str | None = None
    redirect: str | None = None
    chunked: bool = False
    delay: float = 0.0
    trickle: bool = False


@dataclass
class Served:
    """State of the server: files by path, plans of the next answers, received requests."""

    files: dict[str, bytes]
    plans: list[Plan] = field(default_factory=list)
    usual: Plan = field(default_factory=Plan)
    asked: list[tuple[str, str | None, str | None]] = field(default_factory=list)
    sent: int = 0
    url: str = ""


class _Handler(BaseHTTPRequestHandler):
    served: Served

    def log_message(self, format: str, *args: Any) -> None:
        pass

    def do_GET(self) -> None:
        served = self.served
        served.asked.append((self.path, self.headers["Range"], self.headers["If-Range"]))
        plan = served.plans.pop(0) if served.plans else served.usual
        time.sleep(plan.delay)
        if plan.redirect is not None:
            self.send_response(302)
            self.send_header("Location", plan.redirect)
            self.end_headers()
        elif plan.status >= 400 or self.path not in served.files:
            self.send_error(plan.status if plan.status >= 400 else 404)
        else:
            self._file(plan, served.files[self.path] if plan.body is None else plan.body)
        self.close_connection = True

    def _file(self, plan: Plan, body: bytes) -> None:
        if plan.chunked:
            self.protocol_version = "HTTP/1.1"
        begin = self._begin(plan)
        if begin and plan.ranges == "refused":
            self.send_error(416)
            return
        partial = begin > 0 and plan.ranges != "ignored"
        sent = body[begin:] if partial else body
        self.send_response(206 if partial else 200)
        if partial:
            shown = begin + 1 if plan.ranges == "wrong" else begin
            total = len(body) + (1 if plan.ranges == "other" else 0)
            self.send_header("Content-Range", f"bytes {shown}-{len(body) - 1}/{total}")
        for name, value in (("ETag", plan.etag), ("Last-Modified", plan.last_modified)):
            if value is not None:
                self.send_header(name, value)
        if plan.chunked:
            self.send_header("Transfer-Encoding", "chunked")
        elif plan.length is not None:
            self.send_header("Content-Length", str(len(sent) if plan.length == RIGHT else plan.length))
        self.send_header("Connection", "close")
        self.end_headers()
        if plan.trickle:
            self._trickle(b"3 2\n")
            return
        self._send(sent if plan.stop is None else sent[: plan.stop], plan)

    def _trickle(self, first: bytes) -> None:
        try:
            self.wfile.write(first)
            while True:
                time.sleep(0.002)
                self.wfile.write(b"x")
        except OSError:  # the client has disconnected
            pass

    def _send(self, data: bytes, plan: Plan) -> None:
        step = 4096
        try:
            for at in range(0, len(data), step):
                piece = data[at : at + step]
                self.wfile.write(b"%x\r\n%s\r\n" % (len(piece), piece) if plan.chunked else piece)
                self.served.sent += len(piece)
            if plan.chunked and plan.stop is None:
                self.wfile.write(b"0\r\n\r\n")
        except OSError:  # the client has disconnected
            pass

    def _begin(self, plan: Plan) -> int:
        """Return the first byte: as requested, if the version is unchanged."""
        found = re.fullmatch(r"bytes=(\d+)-", self.headers["Range"] or "")
        same = self.headers["If-Range"] in (plan.etag, plan.last_modified)
        return int(found[1]) if found and (same or plan.ranges != "right") else 0


@contextmanager
def serving(files: dict[str, bytes]) -> Iterator[Served]:
    """Serve files on a free port."""
    served = Served(files)
    handler = type("Handler", (_Handler,), {"served": served})
    server = ThreadingHTTPServer(("127.0.0.1", 0), handler)
    server.daemon_threads = True
    served.url = f"http://127.0.0.1:{server.server_address[1]}"
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.001}, daemon=True)
    thread.start()
    try:
        yield served
    finally:
        server.shutdown()
        server.server_close()
