"""tests/support/servers/threaded.py: a server ends with its block, whatever its clients do."""

from __future__ import annotations

import asyncio
import os
import re
import signal
import socket
import subprocess
import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from http.client import HTTPConnection
from math import inf, nan
from pathlib import Path
from urllib.error import HTTPError
from urllib.request import urlopen

import pytest
import redis

from tests.support.crawling import begin, scrapy
from tests.support.servers.generators import GENERATORS
from tests.support.servers.many_hosts import (
    DEAD,
    HEALTHY,
    SLOW,
    HostLog,
    ManyHosts,
    Seen,
    address,
    kind_of,
)
from tests.support.servers.nginx import DOCS_SITES, NGINX, Nginx, docs_site
from tests.support.servers.redis import REDIS_SERVER, RedisServer
from tests.support.servers.scripted import DigestGuard, Raw, Reply, Request, ScriptedServer
from tests.support.servers.threaded import ThreadedServer
from tests.support.workers.crew import check_politeness
from tests.support.workers.hosts import Asked


class Echo(ThreadedServer):
    """A line back for each line."""

    def __init__(self, host: str = "127.0.0.1") -> None:
        super().__init__()
        self.host = host
        self.address = ("", 0)
        self.met = 0

    async def listen(self) -> list[asyncio.Server]:
        server = await asyncio.start_server(self.accept, self.host, 0)
        self.address = server.sockets[0].getsockname()
        return [server]

    async def converse(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.met += 1
        while True:
            writer.write(await reader.readuntil(b"\n"))


def test_who_is_connected_at_the_end_is_cut_off() -> None:
    """The block ends anyway, and the client sees the end of the connection."""
    with Echo() as server, socket.create_connection(server.address, timeout=10) as client:
        client.sendall(b"hello\n")
        assert client.recv(100) == b"hello\n"
        server.__exit__(None, None, None)
        assert client.recv(100) == b""
    with pytest.raises(ConnectionRefusedError):
        socket.create_connection(server.address, timeout=10)


def test_a_client_that_leaves_does_not_disturb_the_others() -> None:
    """One that goes in mid-line, then another."""
    with Echo() as server:
        with socket.create_connection(server.address, timeout=10) as client:
            client.sendall(b"half a li")
        with socket.create_connection(server.address, timeout=10) as client:
            client.sendall(b"hello\n")
            assert client.recv(100) == b"hello\n"
    assert server.met == 2


def test_an_address_that_cannot_be_bound_is_an_error_at_the_start() -> None:
    """Not a server that never gets ready."""
    with pytest.raises(OSError), Echo("192.0.2.1"):
        pass


# The scripted server answers exactly what its table says, well-formed or not.


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
    """Bytes that are no HTTP reach the client as they are, then the connection ends."""
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


# The Digest of the tests follows RFC 7616.


NONCE = "7ypf/xlj9XXwfDPEoM4URrv/xwf94BcCAzFZH4GiTo0v"
CNONCE = "f2/wE4q74E6zIJEtWaHKaf5wv/H5QzzpXusqGemxURZJ"
RESPONSES = {
    "MD5": "8ca523f5e9506fed4657c9700eebdbec",
    "SHA-256": "753927fa0e85d155564e2e272a28d1802ca10daf4496794697cf8db5856cb6c1",
}


def ask(guard: DigestGuard, **changed: str) -> int:
    """Status of the request of the RFC's example, 3.9.1."""
    sent = {
        "username": "Mufasa",
        "realm": "http-auth@example.org",
        "uri": "/dir/index.html",
        "nonce": NONCE,
        "cnonce": CNONCE,
        "response": RESPONSES[guard.algorithm],
    } | changed
    value = ", ".join(f'{name}="{text}"' for name, text in sent.items()) + ", nc=00000001, qop=auth"
    request = Request(0.0, "GET", "/dir/index.html", {"authorization": f"Digest {value}"})
    return guard.protect(b"inside")(request).status


@pytest.mark.parametrize("algorithm", RESPONSES)
def test_takes_the_example_of_the_rfc(algorithm: str) -> None:
    """Once: a nonce count that was seen is refused, and so is anything that differs."""
    guard = DigestGuard("Mufasa", "Circle of Life", algorithm)
    guard.realm = "http-auth@example.org"
    guard._counts[NONCE] = 0
    assert ask(guard, nonce="another") == 401
    assert ask(guard) == 200
    assert ask(guard) == 401
    for name in ("username", "realm", "uri", "cnonce", "response"):
        guard._counts[NONCE] = 0
        assert ask(guard, **{name: "another"}) == 401, name


# A documentation package that is absent skips its test, and says which one it was.


def test_an_absent_package_skips_with_its_name(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """The reason names the package and the folder."""
    monkeypatch.setitem(DOCS_SITES, "python3.11-doc", tmp_path / "html")
    with pytest.raises(pytest.skip.Exception, match=r"python3\.11-doc is not installed: .*html"):
        docs_site("python3.11-doc")


def test_a_present_package_is_its_folder(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """The folder that holds index.html."""
    (tmp_path / "index.html").write_text("x")
    monkeypatch.setitem(DOCS_SITES, "python3.11-doc", tmp_path)
    assert docs_site("python3.11-doc") == tmp_path


# Many hosts in one process: each with its address and site, and with a log that would tell.


@pytest.fixture
def servers() -> Iterator[ManyHosts]:
    with ManyHosts(20, pages=4, mixed=True, slow_secs=0.2) as running:
        yield running


def _get_from(servers: ManyHosts, number: int, path: str) -> tuple[int, str]:
    connection = HTTPConnection(address(number), servers.port, timeout=10)
    connection.request("GET", path)
    response = connection.getresponse()
    body = response.read().decode()
    connection.close()
    return response.status, body


@pytest.mark.parametrize(
    "number, name",
    [(0, "127.1.0.1"), (249, "127.1.0.250"), (250, "127.1.1.1"), (62500, "127.2.0.1")],
)
def test_each_host_has_an_address(number: int, name: str) -> None:
    """250 in each of the last two parts."""
    assert address(number) == name


def test_a_tenth_is_slow_and_a_twentieth_dead() -> None:
    """This holds for a mixed lot; another lot has none."""
    kinds = [kind_of(number, mixed=True) for number in range(300)]
    assert [kinds.count(kind) for kind in (HEALTHY, SLOW, DEAD)] == [255, 30, 15]
    assert {kind_of(number, mixed=False) for number in range(300)} == {HEALTHY}


def test_a_site_is_a_tree(servers: ManyHosts) -> None:
    """Page 1 of 4 links to 3, because there is no 4; robots.txt is not there."""
    status, body = _get_from(servers, 0, "/p1.html")
    assert (status, body.count("<a href"), "/p3.html" in body) == (200, 1, True)
    assert _get_from(servers, 0, "/p4.html")[0] == 404
    assert _get_from(servers, 0, "/robots.txt")[0] == 404
    assert servers.seeds[1] == f"http://127.1.0.2:{servers.port}/"


def test_the_log_has_each_request_of_each_host(servers: ManyHosts) -> None:
    """With times of this machine's monotonic clock, and what was open at once."""
    before = time.monotonic()
    _get_from(servers, 0, "/")
    first, second = (
        socket.create_connection((address(3), servers.port), timeout=10) for _ in range(2)
    )
    for client in (first, second):  # a slow host: both wait at once
        client.sendall(b"GET / HTTP/1.1\r\n\r\n")
    assert [client.recv(12) for client in (first, second)] == [b"HTTP/1.1 200"] * 2
    dead = socket.create_connection((address(7), servers.port), timeout=0.3)
    dead.sendall(b"GET / HTTP/1.1\r\n\r\n")
    with pytest.raises(TimeoutError):
        dead.recv(1)
    for client in (first, second, dead):
        client.close()
    logs = servers.stop()
    asked = [len(log.times) for log in logs]
    assert (asked[0], asked[3], asked[7], sum(asked)) == (1, 2, 1, 4)
    assert before <= logs[0].times[0] <= time.monotonic()
    assert (logs[3].peak_requests, logs[3].peak_connections) == (2, 2)
    assert (logs[0].peak_requests, logs[0].peak_connections) == (1, 1)


def test_a_connection_ends_where_none_is_kept() -> None:
    """Then each request needs one of its own."""
    with ManyHosts(1, keep_alive=False) as servers:
        connection = HTTPConnection(address(0), servers.port, timeout=10)
        connection.request("GET", "/")
        response = connection.getresponse()
        response.read()
        assert response.will_close
        connection.close()


def test_rates_and_gaps_are_those_of_the_log() -> None:
    """Two hosts, a gap of 2 s: one is asked as often as that allows, one half as often."""
    full = HostLog("a", times=[10.0, 12.0, 14.5, 16.0, 18.0])
    half = HostLog("b", times=[10.5, 14.5, 18.5])
    seen = Seen([full, half], gap=2.0)
    assert seen.begun == 10.0
    assert seen.rate([full], 0.0, 10.0) == 1.0
    assert seen.rate([full, half], 0.0, 8.0) == 0.75
    assert (full.shortest_gap(), half.shortest_gap()) == (1.5, 4.0)
    assert HostLog("c").shortest_gap() == inf


# The nginx of the tests serves folders by address, logs what it is asked, and leaves nothing.


needs_nginx = pytest.mark.skipif(
    NGINX is None, reason="nginx is not installed (Debian package nginx-light)"
)


def _read(url: str) -> str:
    with urlopen(url, timeout=10) as response:
        return str(response.read(), "utf-8")


def test_each_address_has_its_folder(nginx: Callable[..., Nginx], tmp_path: Path) -> None:
    """Two addresses, one port, two sites, and one log with the address in it."""
    for name in ("one", "two"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "index.html").write_text(name)
    server = nginx({"127.0.0.1": tmp_path / "one", "127.0.0.2": tmp_path / "two"})
    assert _read(server.url()) == "one"
    assert _read(server.url("127.0.0.2", "/index.html?x=1")) == "two"
    first, second = server.requests(at_least=2)
    assert (first.address, first.target, first.status, first.sent) == ("127.0.0.1", "/", 200, 3)
    assert (second.address, second.target) == ("127.0.0.2", "/index.html?x=1")
    assert first.time <= second.time
    assert second.user_agent.startswith("Python-urllib")


def test_a_folder_is_not_listed(nginx: Callable[..., Nginx], tmp_path: Path) -> None:
    """Autoindex is off: 403 without an index.html."""
    server = nginx({"127.0.0.1": tmp_path})
    with pytest.raises(HTTPError, match="403") as caught:
        _read(server.url())
    caught.value.close()


def test_takes_the_inside_of_a_server_block(nginx: Callable[..., Nginx]) -> None:
    """For what a folder cannot do."""
    server = nginx({"127.0.0.3": 'location / { return 200 "by hand"; }'})
    assert _read(server.url()) == "by hand"


def _living(group: int) -> list[str]:
    """The processes of a group, without dead ones that were not reaped yet."""
    found = []
    for stat in Path("/proc").glob("[0-9]*/stat"):
        try:
            name, _, fields = stat.read_text().rpartition(")")
        except OSError:  # it ended while we looked
            continue
        state, _, process_group = fields.split()[:3]
        if int(process_group) == group and state not in "ZX":
            found.append(name)
    return found


@needs_nginx
@pytest.mark.parametrize("stuck", [False, True])
def test_ends_with_its_context(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, stuck: bool
) -> None:
    """Master and workers are gone, and so is the folder, even if the master does not obey."""
    monkeypatch.setattr("tests.support.servers.processes.STOP_SECS", 0.0 if stuck else 5.0)
    (tmp_path / "index.html").write_text("up")
    with Nginx({"127.0.0.1": tmp_path}) as server:
        pid, folder = server.pid, server.folder
        assert _read(server.url()) == "up"
        assert len(_living(pid)) == 2
        if stuck:
            os.kill(pid, signal.SIGSTOP)
    end = time.monotonic() + 5.0
    while _living(pid) and time.monotonic() < end:  # a killed worker is not our child
        time.sleep(0.01)
    assert _living(pid) == []
    assert not folder.exists()
    assert server.pid == 0


def test_waits_for_the_log(
    nginx: Callable[..., Nginx], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """Requests that never came are an error, not a shorter list."""
    monkeypatch.setattr("tests.support.servers.nginx._LOG_SECS", 0.01)
    server = nginx({"127.0.0.1": tmp_path})
    assert server.requests() == []
    with pytest.raises(TimeoutError, match="0 of 1"):
        server.requests(at_least=1)


@needs_nginx
def test_says_why_it_did_not_start() -> None:
    """nginx's own message, and nothing left running."""
    server = Nginx({"127.0.0.1": "no_such_directive;"})
    with pytest.raises(RuntimeError, match="unknown directive"):
        server.__enter__()
    assert server.pid == 0


@pytest.mark.parametrize("package", DOCS_SITES)
def test_serves_real_documentation(nginx: Callable[..., Nginx], package: str) -> None:
    """The start page of a Debian documentation package."""
    server = nginx({"127.0.0.1": docs_site(package)})
    assert "<title>" in _read(server.url())


# The redis-server of the tests keeps what it acknowledged over a kill, and leaves nothing.


needs_redis = pytest.mark.skipif(
    REDIS_SERVER is None, reason="redis-server is not installed (Debian package redis-server)"
)


def test_answers_by_port_and_by_socket(redis_server: Callable[..., RedisServer]) -> None:
    """One server, two ways to it."""
    server = redis_server()
    server.client().set("a", 1)
    with redis.Redis.from_url(server.unix_url) as client:
        assert client.get("a") == b"1"


@pytest.mark.parametrize("end", ["kill", "stop"])
def test_comes_back_with_what_it_had(redis_server: Callable[..., RedisServer], end: str) -> None:
    """Same port, same data, another process."""
    server = redis_server()
    url, pid = server.url, server.pid
    server.client().set("a", 1)
    getattr(server, end)()
    assert server.pid == 0
    with pytest.raises(redis.ConnectionError):
        server.client().ping()
    server.start()
    assert server.url == url
    assert server.pid != pid
    assert server.client().get("a") == b"1"


def test_a_paused_server_does_not_answer(redis_server: Callable[..., RedisServer]) -> None:
    """Until it goes on."""
    server = redis_server()
    client = server.client(socket_timeout=0.1)
    client.ping()
    server.pause()
    with pytest.raises(redis.TimeoutError):
        client.ping()
    server.go_on()
    assert server.client().ping()


def test_asks_for_its_password(redis_server: Callable[..., RedisServer]) -> None:
    """The URL carries it."""
    server = redis_server(password="s3cret")
    assert server.client().ping()
    with (
        redis.Redis(host=server.host, port=server.port) as client,
        pytest.raises(redis.AuthenticationError),
    ):
        client.ping()


@needs_redis
@pytest.mark.parametrize("paused", [False, True])
def test_redis_ends_with_its_context(paused: bool) -> None:
    """Process and folder are gone."""
    with RedisServer() as server:
        pid, folder = server.pid, server.folder
        if paused:
            server.pause()
    with pytest.raises(ProcessLookupError):
        os.kill(pid, 0)
    assert not folder.exists()
    assert server.pid == 0


@needs_redis
def test_redis_says_why_it_did_not_start() -> None:
    """The server's own words."""
    with pytest.raises(RuntimeError, match="no_such_value"), RedisServer(maxmemory="no_such_value"):
        pass


# tests/support/forking.py: a fork is a process of its own, and ends when its time is over.


SLEEPS = """
import os, time
from pathlib import Path
Path("pid").write_text(str(os.getpid()))
time.sleep(600)
"""


def test_each_command_has_settings_directory_and_environment_of_its_own(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nothing of one is left for the next."""
    for name in ("one", "two"):
        folder = tmp_path / name
        folder.mkdir()
        monkeypatch.setenv("WHICH", name)
        (folder / "own.py").write_text("import os\nBOT_NAME = os.environ['WHICH'] + os.getcwd()")
        ran = scrapy("settings", "--get", "BOT_NAME", cwd=folder, settings_module="own")
        assert (ran.status, ran.out) == (0, f"{name}{folder}\n"), ran.err


def test_a_command_whose_time_is_over_is_killed(tmp_path: Path) -> None:
    """It raises what subprocess.run() does; the next command is answered."""
    (tmp_path / "own.py").write_text(SLEEPS)
    with pytest.raises(subprocess.TimeoutExpired):
        scrapy("version", cwd=tmp_path, settings_module="own", timeout=3)
    process = Path("/proc") / (tmp_path / "pid").read_text()
    assert not process.exists()
    assert scrapy("version", cwd=tmp_path).status == 0


def test_a_command_beside_a_test_is_looked_at_waited_for_and_killed(tmp_path: Path) -> None:
    """As with subprocess.Popen."""
    (tmp_path / "own.py").write_text(SLEEPS)
    with (tmp_path / "said").open("w") as out:
        running = begin("version", cwd=tmp_path, out=out, settings_module="own")
    with pytest.raises(subprocess.TimeoutExpired):
        running.wait(0.1)
    assert running.poll() is None
    running.kill()
    assert running.wait(60) == running.poll() == -signal.SIGKILL
    running.kill()  # no process is hit
    with (tmp_path / "said").open("w") as out:
        assert begin("version", cwd=tmp_path, out=out).wait(120) == 0
    assert (tmp_path / "said").read_text().startswith("Scrapy ")


# The judgement of politeness by which tests of many workers go.


A = Asked("h", "/a", "w1", begin=10.01, end=10.02, process=1, turn=10.0)


@pytest.mark.parametrize(
    ("earlier", "later", "said"),
    [
        (A, replace(A, begin=10.24, end=10.25, turn=10.23), ""),
        # it came late to a busy host, and the next one did not
        (replace(A, begin=10.19, end=10.2), replace(A, begin=10.41, end=10.42, turn=10.4), ""),
        (replace(A, begin=11.19, end=11.19), replace(A, begin=11.21, end=11.22, turn=11.2), ""),
        (A, replace(A, begin=10.41, end=10.42, turn=10.21), "0.190 s"),
        (replace(A, end=10.1), replace(A, begin=10.31, end=10.32, turn=10.25), "0.150 s"),
        # by another process: the next owner, or the worker that was started again
        (A, replace(A, begin=10.3, end=10.31, turn=10.2, process=2), ""),
        (A, replace(A, begin=10.3, end=10.31, turn=10.19, process=2), "0.190 s"),
        (replace(A, end=10.4), replace(A, begin=10.3, end=10.5, turn=10.2, process=2), "at once"),
        # a killed worker's host may notice late that the connection is lost
        (
            replace(A, end=10.4, answered=False),
            replace(A, begin=10.3, end=10.5, turn=10.2, process=2),
            "",
        ),
        (A, replace(A, turn=nan), "no turn"),
    ],
)
def test_politeness_is_judged_by_turns_not_by_a_busy_machine(
    earlier: Asked, later: Asked, said: str
) -> None:
    if not said:
        check_politeness([later, replace(A, host="other"), earlier], delay=0.2)
        return
    with pytest.raises(AssertionError, match=said):
        check_politeness([later, replace(A, host="other"), earlier], delay=0.2)


@pytest.mark.parametrize("name", GENERATORS)
def test_a_generator_has_no_end(name: str) -> None:
    """The same URL has the same answer, or a walk could not be repeated."""
    found, targets = {"/"}, ["/"]
    while targets and len(found) < 100:
        target = targets.pop(0)
        reply = GENERATORS[name](target)
        assert reply.body == GENERATORS[name](target).body
        location = dict(reply.headers).get("Location")
        links = re.findall(rb'(?:href="|url=)(/[^"]*)', reply.body)
        new = [link.decode() for link in links] + [location] * bool(location)
        targets += [link for link in dict.fromkeys(new) if link not in found]
        found.update(new)
    assert len(found) >= 100 or name == "mirrored hosts"
