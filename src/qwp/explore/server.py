"""The server of the explorer: local, with a secret in every address, JSON in and out, and bounded requests.

It uses the server of the standard library, which suffices for one user and needs no installation. It answers requests
only with the right Host, an Origin of its own page, and the token at the beginning of the path. The only HTML it sends
is the page itself, which contains no data, and pages that explain an error.
"""

from __future__ import annotations

import json
import logging
import os
import re
import secrets
import sys
from base64 import b64encode
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from hashlib import sha256
from hmac import compare_digest
from html import escape
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from importlib import resources
from pathlib import Path
from threading import BoundedSemaphore
from typing import Any
from urllib.parse import unquote, urlsplit

from qwp.errors import InputError, QwpError
from qwp.explore import routes
from qwp.explore.routes import MAX_BODY, Arguments
from qwp.explore.session import Session
from qwp.showing.terminal import finite

logger = logging.getLogger(__name__)

HOST = "127.0.0.1"
STATIC = {
    "": ("index.html", "text/html"),
    "style.css": ("style.css", "text/css"),
    **{
        name: (name, "text/javascript")
        for name in (
            *("app.js", "api.js", "dom.js", "word.js", "table.js", "map.js"),
            *("points.js", "about.js", "compare.js", "charts.js"),
        )
    },
}
_NEW_FILE = os.O_CREAT | os.O_EXCL | os.O_WRONLY
# Requests answered at a time; further requests wait.
_CONCURRENT = 16
_POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data: blob:; connect-src 'self'; "
    "base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
)
HEADERS = {
    "Content-Security-Policy": _POLICY,
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Cache-Control": "no-store",
}


@dataclass(frozen=True)
class Answer:
    """A response."""

    status: HTTPStatus
    kind: str
    body: bytes
    headers: Mapping[str, str]

    @classmethod
    def of_json(cls, values: Any, status: HTTPStatus = HTTPStatus.OK) -> Answer:
        """Return an answer in JSON, with null for numbers that JSON lacks."""
        text = json.dumps(finite(values), ensure_ascii=False, allow_nan=False, separators=(",", ":"))
        # File names need not be UTF-8; words never contain unpaired surrogates.
        return cls(status, "application/json", text.encode("utf-8", "backslashreplace"), {})

    @classmethod
    def error(cls, status: HTTPStatus, message: str) -> Answer:
        """Return an error in JSON."""
        return cls.of_json({"error": message}, status)


_STYLE = "body{font:16px/1.5 system-ui,sans-serif;max-width:36em;margin:4em auto;padding:0 1em;color-scheme:light dark}"
_ERROR_POLICY = (
    f"default-src 'none'; style-src 'sha256-{b64encode(sha256(_STYLE.encode()).digest()).decode()}'; "
    "base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
)


def error_page(status: HTTPStatus, message: str) -> Answer:
    """Return an error as a page, for an address that was opened in a browser."""
    text = (
        f'<!doctype html><html lang="en"><meta charset="utf-8"><title>{status.phrase} – qwp explore</title>'
        f"<style>{_STYLE}</style><main><h1>{status.phrase}</h1><p>{escape(message)}</p></main></html>"
    )
    return Answer(status, "text/html; charset=utf-8", text.encode(), {"Content-Security-Policy": _ERROR_POLICY})


class _ClientGoneError(Exception):
    """The client closed the connection, or stopped sending, before its request was complete."""


def new_token() -> str:
    """Return a random secret of 144 bits."""
    return secrets.token_urlsafe(18)


def kept_token(path: Path) -> str:
    """Return the secret in a file, or write a new one into it. Only its owner may read the file."""
    try:
        with suppress(FileExistsError), os.fdopen(os.open(path, _NEW_FILE, 0o600), "w", encoding="ascii") as file:
            file.write(new_token() + "\n")
        if os.name == "posix" and path.stat().st_mode & 0o077:
            raise InputError(f"{path} can be read by other users, expected a file for its owner only: chmod 600 {path}")
        token = path.read_text(encoding="utf-8").strip()
    except (OSError, UnicodeDecodeError) as error:
        raise InputError(f"the token file {path} cannot be used ({error}): choose another") from error
    if not re.fullmatch(r"[A-Za-z0-9_-]{24,100}", token):
        raise InputError(f"{path} holds no token, expected 24 to 100 letters, digits, - and _: remove it for a new one")
    return token


class ExplorerServer(ThreadingHTTPServer):
    """Serves one session on this machine.

    token: the secret in every address; by default a new one.
    request_timeout: seconds after which the connection of a client that neither sends nor reads is closed.
    """

    daemon_threads = True

    def __init__(
        self, session: Session, port: int = 0, *, token: str | None = None, request_timeout: float = 30.0
    ) -> None:
        self.session = session
        self.request_timeout = request_timeout
        self.token = new_token() if token is None else token
        self.concurrent = BoundedSemaphore(_CONCURRENT)
        super().__init__((HOST, port), _Handler)

    @property
    def address(self) -> str:
        """The address of the page."""
        return f"http://{HOST}:{self.server_port}/{self.token}/"

    @property
    def hosts(self) -> tuple[str, ...]:
        """The allowed values of Host: another value may come from a foreign page (DNS rebinding)."""
        return tuple(f"{name}:{self.server_port}" for name in (HOST, "localhost"))

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Log errors of the program, but not the OSError of a client that closed its connection."""
        if not isinstance(sys.exc_info()[1], OSError):
            logger.exception("a request failed")


class _Handler(BaseHTTPRequestHandler):
    server: ExplorerServer
    protocol_version = "HTTP/1.1"
    server_version, sys_version = "qwp", ""

    def setup(self) -> None:
        """Apply the timeout of the server to the connection."""
        super().setup()
        self.connection.settimeout(self.server.request_timeout)

    def do_GET(self) -> None:
        """Answer with a page, a view or a download."""
        self._respond(self._get)

    def do_POST(self) -> None:
        """Answer a change."""
        self._respond(self._post)

    def _respond(self, work: Callable[[], Answer]) -> None:
        with self.server.concurrent:
            try:
                answer = self._refusal() or work()
            except _ClientGoneError:
                self.close_connection = True
                return
            except QwpError as error:
                answer = Answer.error(HTTPStatus.BAD_REQUEST, str(error))
            except Exception:
                logger.exception("a request failed")
                answer = Answer.error(HTTPStatus.INTERNAL_SERVER_ERROR, "the request failed; the terminal says why")
        if answer.status >= HTTPStatus.BAD_REQUEST and "text/html" in self.headers.get("Accept", ""):
            answer = error_page(answer.status, str(json.loads(answer.body)["error"]))
        self._send(answer)

    def _refusal(self) -> Answer | None:
        """Return an error for a request that is not allowed, else None."""
        if self.headers.get("Host") not in self.server.hosts:
            return self._refused(f"received Host {self.headers.get('Host')!r}, expected {self.server.hosts[0]}")
        origin = self.headers.get("Origin")
        if origin is not None and origin not in [f"http://{host}" for host in self.server.hosts]:
            return self._refused(f"received Origin {origin!r}, expected that of this page")
        if not compare_digest(self._parts()[0].encode(), self.server.token.encode()):
            return self._refused("the token in the address is wrong: open the address that `qwp explore` printed")
        return None

    def _refused(self, message: str) -> Answer:
        self.close_connection = True  # its body is not read
        return Answer.error(HTTPStatus.FORBIDDEN, message)

    def _parts(self) -> tuple[str, str, str]:
        """Split the address into the token, the rest of the path and the query."""
        address = urlsplit(self.path)
        token, _, rest = address.path.lstrip("/").partition("/")
        return unquote(token), rest, address.query

    def _get(self) -> Answer:
        token, path, query = self._parts()
        if not path and not urlsplit(self.path).path.endswith("/"):
            # The page loads its parts by relative addresses. The answer is empty: browsers follow the header.
            return Answer(HTTPStatus.PERMANENT_REDIRECT, "text/plain", b"", {"Location": f"/{token}/"})
        if path in STATIC:
            name, kind = STATIC[path]
            content = (resources.files("qwp.explore") / "static" / name).read_bytes()
            return Answer(HTTPStatus.OK, f"{kind}; charset=utf-8", content, {})
        arguments = Arguments.of_query(query)
        if path in routes.VIEWS:
            return Answer.of_json(routes.VIEWS[path](self.server.session, arguments))
        if path in routes.DOWNLOADS:
            name, text = routes.DOWNLOADS[path](self.server.session, arguments)
            saved = {"Content-Disposition": f'attachment; filename="{name}"'}
            return Answer(HTTPStatus.OK, "text/tab-separated-values; charset=utf-8", text.encode(), saved)
        return Answer.error(HTTPStatus.NOT_FOUND, "there is nothing at this address")

    def _post(self) -> Answer:
        body = self._body()
        path = self._parts()[1]
        if path not in routes.CHANGES:
            return Answer.error(HTTPStatus.NOT_FOUND, "there is nothing at this address")
        return Answer.of_json(routes.CHANGES[path](self.server.session, Arguments.of_body(body)))

    def _body(self) -> bytes:
        length = self.headers.get("Content-Length", "")
        kind = self.headers.get("Content-Type", "")
        if not (length.isascii() and length.isdigit() and len(length) < 12 and int(length) <= MAX_BODY):
            self.close_connection = True
            raise InputError(f"received a body of {length[:20] or 'unknown'} bytes, expected at most {MAX_BODY:,}")
        try:
            body = self.rfile.read(int(length))
        except OSError:
            raise _ClientGoneError from None
        if len(body) < int(length):
            raise _ClientGoneError
        # A form of a foreign page cannot send this type without a preflight request, which the server never grants.
        if kind.partition(";")[0].strip() != "application/json":
            raise InputError(f"received a body of type {kind[:50]!r}, expected application/json")
        return body

    def _send(self, answer: Answer) -> None:
        try:
            self.send_response(answer.status)
            for name, value in {**HEADERS, **answer.headers}.items():
                self.send_header(name, value)
            self.send_header("Content-Type", answer.kind)
            self.send_header("Content-Length", str(len(answer.body)))
            self.end_headers()
            self.wfile.write(answer.body)
        except OSError:
            self.close_connection = True

    def send_error(self, code: int, message: str | None = None, explain: str | None = None) -> None:
        """Send the errors of the library in JSON too."""
        status = HTTPStatus(code)
        self.close_connection = True
        self._send(Answer.error(status, message or status.phrase))

    def log_message(self, format: str, *args: Any) -> None:
        """Log no requests: they contain the token."""
