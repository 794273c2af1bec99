from __future__ import annotations

import http.client
import json
import os
import socket
import struct
from collections.abc import Iterator
from pathlib import Path
from threading import Thread
from typing import Any

import pytest

from qwp.errors import InputError
from qwp.explore import routes
from qwp.explore.server import HEADERS, STATIC, ExplorerServer, kept_token
from qwp.explore.session import Session
from qwp.explore.workspace import Workspace


@pytest.fixture
def server(workspace: Workspace) -> Iterator[ExplorerServer]:
    yield from served(ExplorerServer(Session([workspace])))


@pytest.fixture
def impatient(workspace: Workspace) -> Iterator[ExplorerServer]:
    """A server that closes idle connections soon."""
    yield from served(ExplorerServer(Session([workspace]), request_timeout=0.1))


def served(made: ExplorerServer) -> Iterator[ExplorerServer]:
    made.daemon_threads = False  # server_close waits for every request
    thread = Thread(target=made.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True)
    thread.start()
    yield made
    made.shutdown()
    made.server_close()
    thread.join()


def ask(
    server: ExplorerServer,
    path: str,
    *,
    token: str | None = None,
    method: str = "GET",
    body: bytes | None = None,
    headers: dict[str, str] | None = None,
) -> tuple[int, dict[str, str], bytes]:
    connection = http.client.HTTPConnection("127.0.0.1", server.server_port, timeout=10)
    try:
        given = server.token if token is None else token
        connection.request(method, f"/{given}/{path}", body, headers or {})
        answer = connection.getresponse()
        return answer.status, dict(answer.getheaders()), answer.read()
    finally:
        connection.close()


def post(server: ExplorerServer, path: str, values: Any, **headers: str) -> tuple[int, dict[str, Any]]:
    body = json.dumps(values).encode()
    sent = {"Content-Type": "application/json", **headers}
    status, _, answer = ask(server, path, method="POST", body=body, headers=sent)
    return status, json.loads(answer)


def test_it_listens_to_this_machine_only(server: ExplorerServer) -> None:
    assert server.server_address[0] == "127.0.0.1"
    assert len(server.token) >= 24
    assert server.token in server.address


def test_the_page_and_its_parts(server: ExplorerServer) -> None:
    for name in STATIC:
        status, headers, body = ask(server, name)
        assert status == 200, name
        assert body
        for header, value in HEADERS.items():
            assert headers[header] == value
    assert "default-src 'none'; script-src 'self'" in HEADERS["Content-Security-Policy"]
    assert "unsafe" not in HEADERS["Content-Security-Policy"]


def test_the_page_makes_no_markup_of_data() -> None:
    from importlib import resources

    for name in (entry.name for entry in (resources.files("qwp.explore") / "static").iterdir()):
        text = (resources.files("qwp.explore") / "static" / name).read_text("utf-8")
        for forbidden in (
            "innerHTML",
            "outerHTML",
            "insertAdjacentHTML",
            "document.write",
            "eval(",
            "http://",
            "https://",
        ):
            assert forbidden not in text.replace("http://www.w3.org/2000/svg", ""), (name, forbidden)


def test_json_views(server: ExplorerServer) -> None:
    status, headers, body = ask(server, "api/word?w=s0&k=3")
    assert status == 200
    assert headers["Content-Type"] == "application/json"
    assert json.loads(body)["translations"][0]["word"] == "t0"


@pytest.mark.parametrize("token", ["", "wrong", "x" * 24, "%C3%A9"])
def test_requests_without_the_token_are_refused(server: ExplorerServer, token: str) -> None:
    for path in ("", "app.js", "api/overview", "download/pairs.tsv"):
        status, _, body = ask(server, path, token=token)
        assert status == 403
        assert "the token in the address is wrong" in json.loads(body)["error"]
    status, _, _ = ask(server, "api/mark", token=token, method="POST", body=b"{}")
    assert status == 403


HTML = {"Accept": "text/html,application/xhtml+xml,*/*;q=0.8"}


def test_a_browser_gets_errors_as_pages_without_data(server: ExplorerServer) -> None:
    for path, token, status in (("", "wrong", 403), ("<b>", None, 404), ("download/pairs.tsv?sort=<b>", None, 400)):
        found, headers, body = ask(server, path.replace("<", "%3C").replace(">", "%3E"), token=token, headers=HTML)
        assert (found, headers["Content-Type"]) == (status, "text/html; charset=utf-8")
        assert b"<h1>" in body
        assert b"<b>" not in body
        assert server.token.encode() not in body
        assert "default-src 'none'; style-src 'sha256-" in headers["Content-Security-Policy"]
        assert "script-src" not in headers["Content-Security-Policy"]


def test_an_address_without_its_final_slash_is_redirected(server: ExplorerServer) -> None:
    connection = http.client.HTTPConnection("127.0.0.1", server.server_port, timeout=10)
    for token, status, location in ((server.token, 308, f"/{server.token}/"), ("wrong", 403, None)):
        connection.request("GET", f"/{token}")
        answer = connection.getresponse()
        answer.read()
        assert (answer.status, answer.getheader("Location")) == (status, location)
    connection.close()


def test_a_token_is_kept_in_a_file_for_its_owner(tmp_path: Path, workspace: Workspace) -> None:
    path = tmp_path / "token"
    token = kept_token(path)
    assert len(token) >= 24
    assert kept_token(path) == token
    server = ExplorerServer(Session([workspace]), token=token)
    server.server_close()
    assert f"/{token}/" in server.address
    if os.name == "posix":
        assert path.stat().st_mode & 0o777 == 0o600
        path.chmod(0o644)
        with pytest.raises(InputError, match="can be read by other users"):
            kept_token(path)
        path.chmod(0o600)
    for content in ("short", "a" * 24 + "/../x", ""):
        path.write_text(content)
        with pytest.raises(InputError, match="holds no token, expected 24 to 100"):
            kept_token(path)
    with pytest.raises(InputError, match="cannot be used"):
        kept_token(tmp_path / "none" / "token")


def test_foreign_hosts_and_origins_are_refused(server: ExplorerServer) -> None:
    for headers in (
        {"Host": "evil.example"},
        {"Host": "127.0.0.1"},
        {"Origin": "http://evil.example"},
        {"Origin": "null"},
    ):
        assert ask(server, "api/overview", headers=headers)[0] == 403, headers
    own = {"Host": f"localhost:{server.server_port}", "Origin": f"http://localhost:{server.server_port}"}
    assert ask(server, "api/overview", headers=own)[0] == 200


def test_changes_are_posts_of_json(server: ExplorerServer) -> None:
    status, answer = post(server, "api/mark", {"a": 0, "pairs": [["s0", "t0"]], "mark": "right"})
    assert (status, answer["marks"]["right"]) == (200, 1)
    assert ask(server, "api/mark?a=0")[0] == 404
    status, _, body = ask(server, "api/mark", method="POST", body=b"{}", headers={"Content-Type": "text/plain"})
    assert status == 400
    assert "expected application/json" in json.loads(body)["error"]
    assert post(server, "api/nothing", {})[0] == 404


def test_errors_are_json(server: ExplorerServer) -> None:
    for path in ("api/word", "api/word?w=s0&k=0", "api/word?w=s0&x=1", "api/table?sort=x", f"api/word?w={'a' * 5000}"):
        status, _, body = ask(server, path)
        assert status == 400, path
        assert json.loads(body)["error"]
    assert ask(server, "api/nothing")[0] == 404
    assert ask(server, "../../etc/passwd")[0] == 404
    assert ask(server, "..%2f..%2fetc%2fpasswd")[0] == 404
    status, headers, body = ask(server, "api/word", method="PUT")
    assert (status, headers["Content-Type"]) == (501, "application/json")
    assert json.loads(body)["error"]


def test_bodies_are_bounded(server: ExplorerServer) -> None:
    for length in ("999999999999", "-1", "x", str((4 << 20) + 1)):
        with socket.create_connection(("127.0.0.1", server.server_port), timeout=10) as raw:
            head = f"POST /{server.token}/api/mark HTTP/1.1\r\nHost: 127.0.0.1:{server.server_port}\r\n"
            raw.sendall(f"{head}Content-Length: {length}\r\nContent-Type: application/json\r\n\r\n".encode())
            answer = raw.makefile("rb").read()
        assert answer.startswith(b"HTTP/1.1 400"), length
        assert b"expected at most 4,194,304" in answer


def test_internal_errors_hide_their_details(
    server: ExplorerServer, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def fail(*_: object) -> None:
        raise ValueError("secret")

    monkeypatch.setitem(routes.VIEWS, "api/overview", fail)
    status, _, body = ask(server, "api/overview")
    assert status == 500
    assert b"secret" not in body
    assert "secret" in caplog.text


def test_a_download_is_a_file(server: ExplorerServer) -> None:
    post(server, "api/mark", {"pairs": [["s0", "t0"]], "mark": "right"})
    status, headers, body = ask(server, "download/corrections.tsv")
    assert status == 200
    assert headers["Content-Disposition"] == 'attachment; filename="planted-corrections.tsv"'
    assert body == b"s0\tt0\n"


# --------------------------------------------------------------------------- clients that go away


def connected(server: ExplorerServer) -> socket.socket:
    return socket.create_connection(("127.0.0.1", server.server_port), timeout=10)


def head(server: ExplorerServer, first: str, **headers: object) -> bytes:
    lines = [f"{first} HTTP/1.1", f"Host: 127.0.0.1:{server.server_port}"]
    lines += [f"{name.replace('_', '-')}: {value}" for name, value in headers.items()]
    return "".join(f"{line}\r\n" for line in lines).encode() + b"\r\n"


def reset(connection: socket.socket) -> None:
    """Close with RST instead of FIN."""
    connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    connection.close()


def check_silent(server: ExplorerServer, caplog: pytest.LogCaptureFixture, capfd: pytest.CaptureFixture[str]) -> None:
    """Check that the server still answers, and that nothing was printed or logged about closed requests."""
    assert ask(server, "api/word?w=s0&k=1")[0] == 200
    server.shutdown()
    server.server_close()
    assert capfd.readouterr() == ("", "")
    assert caplog.text == ""


def part_of_a_request(server: ExplorerServer, sent: str) -> bytes:
    """Return what a client has sent when it goes away."""
    body = head(server, f"POST /{server.token}/api/mark", Content_Length=100, Content_Type="application/json")
    return {"nothing": b"", "a line": b"GET /", "headers": body, "half a body": body + b'{"pairs": ['}[sent]


@pytest.mark.parametrize("sent", ["nothing", "a line", "headers", "half a body"])
def test_a_client_that_resets_its_connection_prints_nothing(
    server: ExplorerServer, caplog: pytest.LogCaptureFixture, capfd: pytest.CaptureFixture[str], sent: str
) -> None:
    with connected(server) as raw:
        raw.sendall(part_of_a_request(server, sent))
        reset(raw)
    check_silent(server, caplog, capfd)


@pytest.mark.parametrize("sent", ["nothing", "a line", "headers", "half a body"])
def test_a_client_that_stalls_is_disconnected_and_prints_nothing(
    impatient: ExplorerServer, caplog: pytest.LogCaptureFixture, capfd: pytest.CaptureFixture[str], sent: str
) -> None:
    with connected(impatient) as raw:
        raw.sendall(part_of_a_request(impatient, sent))
        assert raw.recv(1000) == b""  # closed by the server
    check_silent(impatient, caplog, capfd)


def test_a_body_shorter_than_its_length_prints_nothing(
    server: ExplorerServer, caplog: pytest.LogCaptureFixture, capfd: pytest.CaptureFixture[str]
) -> None:
    with connected(server) as raw:
        raw.sendall(head(server, f"POST /{server.token}/api/mark", Content_Length=9) + b"{}")
        raw.shutdown(socket.SHUT_WR)
        assert raw.recv(1000) == b""
    check_silent(server, caplog, capfd)


@pytest.mark.parametrize("leaves", [True, False])
def test_a_client_that_stops_reading_prints_nothing(
    impatient: ExplorerServer,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
    capfd: pytest.CaptureFixture[str],
    leaves: bool,
) -> None:
    """The answer is larger than the buffers of both sockets, so that the server has to wait for its reader."""
    monkeypatch.setitem(routes.VIEWS, "api/overview", lambda *_: "x" * (16 << 20))
    with connected(impatient) as raw:
        raw.sendall(head(impatient, f"GET /{impatient.token}/api/overview"))
        assert raw.recv(10) == b"HTTP/1.1 2"
        if leaves:
            reset(raw)
        check_silent(impatient, caplog, capfd)
