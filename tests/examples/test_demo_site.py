"""The demo intranet serves what its README and expected.toml promise, found by a small crawl."""

from __future__ import annotations

import gzip
import os
import re
import signal
import socket
import subprocess
import sys
import threading
from collections.abc import Iterator
from datetime import date
from html.parser import HTMLParser
from http.client import HTTPConnection, HTTPMessage
from pathlib import Path
from urllib.parse import quote, urljoin

import pytest

from examples.intranet.expected import Expected, load
from examples.intranet.pdf import one_page_pdf
from examples.intranet.serve import DemoServer
from larmspider.frontier.robots import RobotsRules

ROOT = Path(__file__).parents[2]
TODAY = date(2026, 11, 20)
_ATTRIBUTES = {"a": "href", "area": "href", "frame": "src", "iframe": "src"}


@pytest.fixture(scope="module")
def server() -> Iterator[DemoServer]:
    with DemoServer(today=lambda: TODAY) as server:
        yield server


@pytest.fixture(scope="module")
def connection(server: DemoServer) -> Iterator[HTTPConnection]:
    connection = HTTPConnection(server.host, server.port, timeout=60)
    yield connection
    connection.close()


def get(
    connection: HTTPConnection, path: str, method: str = "GET", **headers: str
) -> tuple[int, HTTPMessage, bytes]:
    connection.request(method, path, headers={k.replace("_", "-"): v for k, v in headers.items()})
    response = connection.getresponse()
    return response.status, response.headers, response.read()


class _Links(HTMLParser):
    """Links and title of a page, as the contract of larmspider.items names them."""

    def __init__(self) -> None:
        super().__init__()
        self.links: list[str] = []
        self.title = ""
        self._in_title = False

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        found = dict(attrs)
        self._in_title = tag == "title"
        href = found.get(_ATTRIBUTES.get(tag, ""))
        if tag == "link" and found.get("rel") in ("next", "prev", "alternate"):
            href = found.get("href")
        if tag == "meta" and (found.get("http-equiv") or "").lower() == "refresh":
            href = (found.get("content") or "").partition("url=")[2]
        if href is not None and not href.startswith("javascript:"):
            self.links.append(href)

    def handle_endtag(self, tag: str) -> None:
        self._in_title = False

    def handle_data(self, data: str) -> None:
        if self._in_title:
            self.title += data


def _decode(body: bytes, content_type: str) -> str:
    declared = re.search(r"charset=([\w-]+)", content_type + " " + body[:1024].decode("latin-1"))
    return body.decode(declared[1] if declared else "utf-8")


def _crawl(connection: HTTPConnection, expected: Expected) -> tuple[list[str], set[str]]:
    """Ask for all that is linked and not refused; the differences, and the links refused."""
    base = "http://demo"
    asked: list[tuple[str, int]] = []
    seen: set[str] = set()
    refused: set[str] = set()
    problems: list[str] = []
    waiting = ["/"]
    while waiting:
        path = waiting.pop(0)
        key = expected.path_of(path)
        if key in seen:
            continue
        if key is None:
            problems.append(f"linked, neither stored nor refused: {path}")
            continue
        seen.add(key)
        status, headers, body = get(connection, path)
        asked.append((path, status))
        promised, content_type = expected.stored[key], headers["Content-Type"]
        if content_type.partition(";")[0] != promised.mime:
            problems.append(f"{path}: {content_type}")
        links = []
        if promised.mime == "text/html":
            page = _Links()
            page.feed(_decode(body, content_type))
            links = page.links
            if promised.title != (" ".join(page.title.split()) or None):
                problems.append(f"{path}: title {page.title!r}")
        if headers["Location"]:
            links.append(headers["Location"])
        if promised.to and promised.to not in links:
            problems.append(f"{path} does not lead to {promised.to}")
        for link in links:
            url = urljoin(base + path, link).partition("#")[0]
            target = quote(url.removeprefix(base) or "/", safe="/%?=&;:+@,()~")
            if expected.refused_by(target):
                refused.add(target)
            else:
                waiting.append(target)
    return problems + expected.differences(asked), refused


@pytest.mark.parametrize("obey_nofollow", [True, False])
def test_the_expectations_are_complete_and_exact(
    connection: HTTPConnection, obey_nofollow: bool
) -> None:
    """Every link is stored or refused, every page stored is linked, every refusal occurs."""
    expected = load(TODAY, obey_nofollow=obey_nofollow)
    problems, refused = _crawl(connection, expected)
    assert problems == []
    unlinked = [
        key
        for key in expected.refused
        if not any(link.startswith(key.rstrip("*")) for link in refused)
    ]
    assert unlinked == []


@pytest.mark.parametrize("horizon", [0, 1, 12, 30])
def test_the_calendar_ends_at_any_horizon(connection: HTTPConnection, horizon: int) -> None:
    """The rule in expected.toml holds for other settings, too."""
    assert _crawl(connection, load(TODAY, horizon))[0] == []


def test_the_demo_stays_small() -> None:
    """At the default horizon of 12 months the calendar has 13 pages."""
    stored = load(TODAY).stored
    assert sum("/calendar/20" in path for path in stored) == 13
    assert 40 <= sum(page.status == 200 for page in stored.values()) <= 60


def test_differences_name_each_kind_of_mistake() -> None:
    """Missing, twice under another spelling, wrong status, not expected."""
    expected = load(TODAY)
    right = [(path, page.status) for path, page in expected.stored.items()]
    assert expected.differences(right) == []
    wrong = [*right[1:], ("/wiki/default.htm", 200), ("/private/", 200)]
    assert expected.differences(wrong) == [
        "stored twice: /wiki/, again as /wiki/default.htm",
        "not expected: /private/ (200)",
        "missing: /",
    ]
    assert expected.differences([("/", 404), *right[1:]]) == ["status 404 instead of 200: /"]


def test_every_spelling_answers_with_the_same_page(connection: HTTPConnection) -> None:
    """Case, index.html, default.htm and session ids make no difference to the server."""
    spelled = 0
    for path, page in load(TODAY).stored.items():
        for other in page.spellings:
            assert get(connection, other)[2] == get(connection, path)[2]
            spelled += 1
    assert spelled > 8


def test_robots_refusals_are_those_of_robots_txt(connection: HTTPConnection) -> None:
    """robots.txt refuses exactly the links that are expected to fall to it."""
    status, _, body = get(connection, "/robots.txt")
    rules = RobotsRules.parse(body, "larmspider/0.1")
    expected = load(TODAY)
    assert status == 200
    assert [path for path, name in expected.refused.items() if name == "robots"] == [
        path
        for path in [*expected.refused, *expected.stored]
        if path.startswith("/") and not rules.allowed("http://demo" + path)
    ]
    assert rules.crawl_delay is None


def test_search_words_stand_on_their_pages(connection: HTTPConnection) -> None:
    """Each search of expected.toml names all the pages that hold the word, and no other."""
    expected = load(TODAY)
    texts = {}
    for path, page in expected.stored.items():
        _, headers, body = get(connection, path)
        if page.mime != "application/pdf" and not page.noindex:
            texts[path] = _decode(body, headers["Content-Type"]).casefold()
    for word, paths in expected.searches.items():
        found = {path for path, text in texts.items() if word.casefold() in text}
        assert found == set(paths), word


def test_bytes_are_in_the_encoding_that_is_declared(connection: HTTPConnection) -> None:
    """Latin-1 by the header alone, windows-1251 by the meta element alone."""
    _, headers, body = get(connection, "/de/urlaub.html")
    assert headers["Content-Type"] == "text/html; charset=ISO-8859-1"
    assert b"charset" not in body
    assert "Käsekuchen".encode("latin-1") in body
    _, headers, body = get(connection, "/ru/ledohod.html")
    assert headers["Content-Type"] == "text/html"
    assert "Ледоход".encode("windows-1251") in body


def test_the_glossary_is_compressed_for_who_asks(connection: HTTPConnection) -> None:
    """gzip with Accept-Encoding, plain without."""
    _, headers, packed = get(connection, "/wiki/Glossary.html", Accept_Encoding="gzip, br")
    _, plain_headers, plain = get(connection, "/wiki/Glossary.html", Accept_Encoding="identity")
    assert headers["Content-Encoding"] == "gzip"
    assert plain_headers["Content-Encoding"] is None
    assert gzip.decompress(packed) == plain


def test_the_appendix_is_empty(connection: HTTPConnection) -> None:
    """Status 200 and no byte."""
    status, headers, body = get(connection, "/handbook/appendix.html")
    assert (status, headers["Content-Length"], body) == (200, "0", b"")


def test_head_has_no_body(server: DemoServer) -> None:
    """The bytes end where the head ends, although Content-Length is the page's."""
    with socket.create_connection((server.host, server.port), timeout=60) as client:
        client.sendall(b"HEAD / HTTP/1.1\r\nHost: demo\r\nConnection: close\r\n\r\n")
        received = b"".join(iter(lambda: client.recv(4096), b""))
    assert received.endswith(b"\r\n\r\n")
    assert b"Content-Length: 0" not in received


def test_takes_unescaped_bytes_in_a_path(server: DemoServer) -> None:
    """A client that escapes nothing gets the page anyway."""
    with socket.create_connection((server.host, server.port), timeout=60) as client:
        client.sendall("GET /wiki/Übung.html HTTP/1.1\r\nHost: demo\r\n\r\n".encode())
        assert client.recv(100).startswith(b"HTTP/1.1 200 ")


@pytest.mark.parametrize(
    "path", ["/calendar/1066-10/", "/calendar/9300-01/", "/calendar/?month=1999-12"]
)
def test_the_calendar_has_every_month(connection: HTTPConnection, path: str) -> None:
    """Past and future alike, in the path and in the query."""
    status, _, body = get(connection, path)
    assert (status, body.count(b"<a href=")) == (200, 2)


@pytest.mark.parametrize(
    "path",
    [
        "/nothing",
        "/calendar/2026-13/",
        "/calendar/2026-12",
        "/calendar/9999-12/",
        "/calendar/a/b/c/",
        "/manual/",
        "/../serve.py",
        "/%2e%2e/serve.py",
        "/wiki/..%2f..%2fserve.py",
        "/%00",
        "/%ff",
        "//[/",
    ],
)
def test_what_is_not_there_is_404(connection: HTTPConnection, path: str) -> None:
    """Neither an error nor a file from outside the site."""
    assert get(connection, path)[0] == 404


def test_the_manual_never_ends(connection: HTTPConnection) -> None:
    """Any depth of the relative link is answered."""
    assert get(connection, "/manual" + "/parts/list" * 500 + "/")[0] == 200


def test_directory_indexes_sort(connection: HTTPConnection) -> None:
    """?C=N;O=D turns the order round, and its own link turns it back."""
    down = get(connection, "/files/?C=N;O=D")[2].decode()
    assert down.index('href="siren-h4.pdf"') < down.index('href="minutes.txt"')
    assert 'href="?C=N;O=A"' in down


def test_one_connection_carries_many_requests(server: DemoServer) -> None:
    """HTTP/1.1 keep-alive, and a log line for each request."""
    connection = HTTPConnection(server.host, server.port, timeout=60)
    try:
        before = len(server.log)
        status, headers, _ = get(connection, "/robots.txt", "HEAD")
        assert (status, int(headers["Content-Length"]) > 50) == (200, True)
        used = connection.sock
        assert get(connection, "/nothing?x=1")[0] == 404
        assert connection.sock is used
    finally:
        connection.close()
    lines = server.log[before:]
    assert [line[1:] for line in lines] == [
        ("HEAD", "/robots.txt", 200),
        ("GET", "/nothing?x=1", 404),
    ]
    assert lines[0].time <= lines[1].time


def test_the_pdf_is_valid() -> None:
    """The cross-reference table points at its objects, and startxref at the table."""
    pdf = one_page_pdf("A (b) \\", ["ü"])
    start = int(pdf.rsplit(b"startxref\n", 1)[1].split()[0])
    assert pdf[start:].startswith(b"xref\n0 7\n")
    for number in range(1, 7):
        offset = int(pdf[start + 9 + 20 * number :][:10])
        assert pdf[offset:].startswith(b"%d 0 obj\n" % number)
    length = int(re.search(rb"/Length (\d+)", pdf)[1])  # type: ignore[index]
    assert len(pdf.partition(b"stream\n")[2].partition(b"\nendstream")[0]) == length
    assert rb"(A \(b\) \\)" in pdf


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
@pytest.mark.parametrize("command", [["-m", "examples.intranet"], ["examples/intranet/serve.py"]])
def test_one_command_prints_its_url_and_ends_on_a_signal(
    command: list[str], number: signal.Signals
) -> None:
    """The URL is the first line, at once; the signal ends it with status 0, a kept-alive client
    or not."""
    child = subprocess.Popen(
        [sys.executable, *command, "--port", "0"],
        cwd=ROOT,
        env={name: value for name, value in os.environ.items() if name != "PYTHONUNBUFFERED"},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    watchdog = threading.Timer(20, child.kill)
    watchdog.start()
    with child:
        try:
            assert child.stdout is not None
            url = child.stdout.readline().strip()
            assert re.fullmatch(r"http://127\.0\.0\.1:\d+/", url)
            client = HTTPConnection(url.split("/")[2], timeout=60)
            assert get(client, "/")[0] == 200
            child.send_signal(number)
            out, err = child.communicate(timeout=60)
            client.close()
            assert (child.returncode, out, err) == (0, "", "")
        finally:
            watchdog.cancel()
            child.kill()


def test_a_taken_port_is_said_in_one_line(server: DemoServer) -> None:
    """No traceback, status 1."""
    done = subprocess.run(
        [sys.executable, "-m", "examples.intranet", "--port", str(server.port)],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
        timeout=120,
    )
    assert (done.returncode, done.stdout) == (1, "")
    assert re.fullmatch(r"cannot listen on 127\.0\.0\.1:\d+: .*in use\n", done.stderr)
