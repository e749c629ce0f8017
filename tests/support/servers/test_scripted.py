"""The scripted server answers exactly what its table says, well-formed or not."""

from __future__ import annotations

import socket
import time
from collections.abc import Callable
from http.client import HTTPConnection

import pytest

from tests.support.servers.scripted import Raw, Reply, ScriptedServer

Start = Callable[..., ScriptedServer]


def _get(server: ScriptedServer, path: str, timeout: float = 10) -> tuple[int, str | None, bytes]:
    connection = HTTPConnection(server.host, server.port, timeout=timeout)
    try:
        connection.request("GET", path)
        response = connection.getresponse()
        return response.status, response.headers["Content-Type"], response.read()
    finally:
        connection.close()


@pytest.mark.parametrize(
    "path, answer",
    [
        ("/text", (200, "text/html; charset=utf-8", "grün".encode())),
        ("/bytes", (200, "text/html; charset=utf-8", b"\xff")),
        ("/tuple", (418, "a/b", b"tea")),
        ("/reply", (799, None, b"")),
        ("/call?x=1", (200, "text/html; charset=utf-8", b"/call?x=1")),
        ("/query?a=1", (200, "text/html; charset=utf-8", b"one")),
        ("/query?a=2", (200, "text/html; charset=utf-8", b"any")),
        ("/else", (404, "text/plain", b"not in the script\n")),
    ],
)
def test_answers_by_its_table(
    scripted_server: Start, path: str, answer: tuple[int, str | None, bytes]
) -> None:
    """Path with query first, then path; each kind of route."""
    server = scripted_server(
        {
            "/text": "grün",
            "/bytes": b"\xff",
            "/tuple": (418, {"Content-Type": "a/b"}, b"tea"),
            "/reply": Reply(799),
            "/call": lambda request: request.target,
            "/query": "any",
            "/query?a=1": "one",
        }
    )
    assert _get(server, path) == answer


def test_logs_each_request_with_its_time(scripted_server: Start) -> None:
    """Target, headers, connection and a monotonic time."""
    server = scripted_server({"*": "x"})
    before = time.monotonic()
    _get(server, "/a?b=c")
    _get(server, "/d")
    first, second = server.log
    assert (first.method, first.target, first.path) == ("GET", "/a?b=c", "/a")
    assert first.headers["host"] == f"127.0.0.1:{server.port}"
    assert before <= first.time <= second.time <= time.monotonic()
    assert (first.connection, second.connection, server.connections) == (1, 2, 2)
    assert server.requests("/d") == [second]


def test_keeps_connections_and_closes_on_demand(scripted_server: Start) -> None:
    """Two requests over one connection; ``close`` ends it."""
    server = scripted_server({"/keep": "x", "/close": Reply(close=True)})
    connection = HTTPConnection(server.host, server.port, timeout=10)
    for path in ("/keep", "/close"):
        connection.request("GET", path)
        response = connection.getresponse()
        response.read()
    assert response.will_close
    connection.close()
    assert [request.connection for request in server.log] == [1, 1]


def test_replays_raw_bytes(scripted_server: Start) -> None:
    """What is no HTTP reaches the client as it stands, then the connection ends."""
    server = scripted_server({"/": Raw([b"nonsense\r\n", b"\0"])})
    with socket.create_connection((server.host, server.port), timeout=10) as client:
        client.sendall(b"GET / HTTP/1.1\r\n\r\n")
        received = b"".join(iter(lambda: client.recv(100), b""))
    assert received == b"nonsense\r\n\0"


def _at_end(client: socket.socket) -> bool:
    """Whether the server closed or reset the connection."""
    try:
        return client.recv(1) == b""
    except ConnectionError:
        return True


def test_hangs_until_the_client_leaves(scripted_server: Start) -> None:
    """``hang`` keeps the connection open without a word; the end of the server ends it, too."""
    server = scripted_server({"/": Raw(b"", hang=True)})
    with pytest.raises(TimeoutError):
        _get(server, "/", timeout=0.1)
    left = socket.create_connection((server.host, server.port), timeout=10)
    left.sendall(b"GET / HTTP/1.1\r\n\r\n")
    while len(server.log) < 2:
        time.sleep(0.005)
    server.__exit__(None, None, None)
    with left:
        assert _at_end(left)


def test_a_delay_holds_no_one_else_up(scripted_server: Start) -> None:
    """The slow answer is late, the quick one is not, and both were open at once."""
    server = scripted_server({"/slow": Reply(delay=0.2), "/quick": "x"})
    slow = HTTPConnection(server.host, server.port, timeout=10)
    began = time.monotonic()
    slow.request("GET", "/slow")
    _get(server, "/quick")
    quick_after = time.monotonic() - began
    slow.getresponse().read()
    assert time.monotonic() - began >= 0.2 > quick_after
    slow.close()
    assert server.peak_open == 2


def test_a_taken_port_is_an_error(scripted_server: Start) -> None:
    """Raised where the server is started."""
    taken = scripted_server()
    with pytest.raises(OSError, match="in use"):
        ScriptedServer(port=taken.port).__enter__()


def test_takes_a_body(scripted_server: Start) -> None:
    """A POST's body is in the log."""
    server = scripted_server({"/": lambda request: request.body + b"!"})
    connection = HTTPConnection(server.host, server.port, timeout=10)
    connection.request("POST", "/", body=b"abc")
    assert connection.getresponse().read() == b"abc!"
    connection.close()
    assert server.log[0].body == b"abc"
