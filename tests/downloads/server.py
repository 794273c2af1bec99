"""A server in a thread that answers as it is told: as it should, or in one of the ways in which things go wrong."""

from __future__ import annotations

import re
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

RIGHT = -1  # a length as it should be


@dataclass(frozen=True)
class Plan:
    """How one answer is. The defaults are an answer as it should be.

    stop: bytes of the body after which the connection is closed; length: what is said of it, None for nothing;
    ranges: "right", "ignored", "wrong", "other" (of a file of another length), "refused" (416); body: another one;
    trickle: the "headers" or the "body" are sent as single bytes, without end.
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
    trickle: str | None = None


@dataclass
class Served:
    """The files of a server by path, the plans of its next answers, and what it was asked for."""

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
        if plan.trickle == "headers":
            self.flush_headers()
            self._trickle(b"X-More: ")
            return
        self.end_headers()
        if plan.trickle == "body":
            self._trickle(b"3 2\n")
            return
        self._send(sent if plan.stop is None else sent[: plan.stop], plan)

    def _trickle(self, first: bytes) -> None:
        try:
            self.wfile.write(first)
            while True:
                time.sleep(0.002)
                self.wfile.write(b"x")
        except OSError:  # whoever asked has gone
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
        except OSError:  # whoever asked has what it wanted
            pass

    def _begin(self, plan: Plan) -> int:
        """Where to begin: as asked for, if the file is still the same."""
        found = re.fullmatch(r"bytes=(\d+)-", self.headers["Range"] or "")
        same = self.headers["If-Range"] in (plan.etag, plan.last_modified)
        return int(found[1]) if found and (same or plan.ranges != "right") else 0


@contextmanager
def serving(files: dict[str, bytes]) -> Iterator[Served]:
    """A server of these files, on a port that is free."""
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
