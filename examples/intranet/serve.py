"""Serves the demo intranet: some fifty pages of a small firm, with the traps that intranets have.

    $ python -m examples.intranet
    http://127.0.0.1:40123/

Tests use it as ``with DemoServer() as server:`` and read ``server.url`` and ``server.log``. Only
the standard library is needed. What a correct crawl finds here: README.md and expected.toml.
"""

from __future__ import annotations

import argparse
import gzip
import signal
import sys
import threading
import time
from collections.abc import Callable, Sequence
from datetime import date
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from types import TracebackType
from typing import NamedTuple, Self
from urllib.parse import unquote_to_bytes

if not __package__:  # run as a file: python examples/intranet/serve.py
    sys.path.insert(0, str(Path(__file__).parents[2]))

from examples.intranet import generated

SITE = Path(__file__).parent / "site"
ELSEWHERE = "http://elsewhere.invalid/order?from=huebner"

HTML = "text/html; charset=utf-8"
TYPES = {
    ".html": HTML,
    ".txt": "text/plain; charset=utf-8",
    ".css": "text/css",
    ".svg": "image/svg+xml",
}
TYPES_BY_PATH = {
    "/de/urlaub.html": "text/html; charset=ISO-8859-1",
    "/ru/ledohod.html": "text/html",  # windows-1251, which only its meta element says
}
FILES_BY_PATH = {"/wiki/übung.html": "wiki/uebung.html", "/ru/праздники.html": "ru/prazdniki.html"}
COMPRESSED = {"/wiki/glossary.html"}
REDIRECTS = {
    "/wiki/h4": (301, "/wiki/Siren-H4.html"),
    "/archive/index.html": (301, "/archive/"),  # the same page, by a crawler's comparison
    "/archive/old-wiki": (301, "/archive/old-wiki/"),
    "/goto/supplier": (302, ELSEWHERE),
}
INDEXES = {
    "/files/": (
        ";",
        [
            generated.DirectoryEntry("minutes.txt", 208, "2026-03-02 09:14"),
            generated.DirectoryEntry("old/", 0, "2025-08-19 16:40"),
            generated.DirectoryEntry("siren-h4.pdf", 883, "2026-01-27 11:02"),
        ],
    ),
    "/files/old/": ("&", [generated.DirectoryEntry("price-list.txt", 120, "2019-05-06 08:00")]),
}


LATER_CHANGED = "/wiki/coffee-machine.html"
LATER_NEW = "/wiki/Tea-kettle.html"
LATER_GONE = "/wiki/floor-plan.html"
"""What is another page, a new one and no page any more on a server that is ``later``."""


class Reply(NamedTuple):
    """Status, Content-Type, body and further headers of an answer."""

    status: int
    content_type: str
    body: bytes
    headers: tuple[tuple[str, str], ...] = ()


class Access(NamedTuple):
    """One line of the access log: ``time`` is time.monotonic() in seconds when the request came,
    ``path`` the target as sent, with its query."""

    time: float
    method: str
    path: str
    status: int


def reply_to(target: str, today: date, *, later: bool = False) -> Reply:
    """The answer to a request for ``target``, path and query as sent.

    Like the Windows server it poses as, it takes paths in any case, index.html and default.htm for
    their folder, and session ids wherever they stand.
    """
    given, _, query = target.partition("?")
    given = unquote_to_bytes(given.encode("latin-1", "replace")).decode("utf-8", "replace")
    path = "/".join(segment.partition(";")[0] for segment in given.split("/")).lower()
    if path in REDIRECTS:
        return _redirect(*REDIRECTS[path])
    for name in ("index.html", "index.htm", "default.htm"):
        if path.endswith("/" + name):
            path = path.removesuffix(name)
    if path.startswith("/calendar/"):
        return _calendar(path, query, today)
    if path.startswith("/manual/"):
        body = generated.manual_page(path)
        return Reply(200, HTML, body) if body else _not_found()
    if path in INDEXES:
        separator, entries = INDEXES[path]
        listing = generated.directory_index(path, query, entries, separator)
        return Reply(200, HTML, listing)
    if path == "/files/siren-h4.pdf":
        return Reply(200, "application/pdf", generated.data_sheet())
    if path == "/reports/yearly":
        return Reply(500, HTML, generated.page("Error", "<p>ORA-01034: not available</p>"))
    return _later(path) if later else _file(path)


def _later(path: str) -> Reply:
    """The same site when some time has passed."""
    if path == LATER_NEW.lower():
        return Reply(200, HTML, generated.page("Tea kettle", "<p>It whistles at 100 degrees.</p>"))
    if path == LATER_GONE:
        return _not_found()
    reply = _file(path)
    if path == LATER_CHANGED:
        news = f'<p>There is a <a href="{LATER_NEW}">tea kettle</a>, too.</p></body>'
        return reply._replace(body=reply.body.replace(b"</body>", news.encode()))
    return reply


def _redirect(status: int, location: str) -> Reply:
    body = generated.page("Moved", f'<p>It is <a href="{location}">here</a>.</p>')
    return Reply(status, HTML, body, (("Location", location),))


def _not_found() -> Reply:
    return Reply(404, HTML, generated.page("Not found", "<p>There is no such page.</p>"))


def _calendar(path: str, query: str, today: date) -> Reply:
    if path == "/calendar/" and "month=" not in query:
        return _redirect(302, f"/calendar/{today:%Y-%m}/")
    month = generated.calendar_month(path, query)
    return Reply(200, HTML, generated.calendar_page(month)) if month else _not_found()


def _files() -> dict[str, Path]:
    """Path in lower case -> file; a folder's path is that of its index.html."""
    files = {}
    for file in SITE.rglob("*"):
        if file.is_file():
            path = "/" + file.relative_to(SITE).as_posix().lower()
            files[path.removesuffix("index.html")] = file
    return files | {path: SITE / name for path, name in FILES_BY_PATH.items()}


_FILES = _files()


def _file(path: str) -> Reply:
    file = _FILES.get(path)
    if file is None:
        return _not_found()
    content_type = TYPES_BY_PATH.get(path, TYPES.get(file.suffix, "application/octet-stream"))
    return Reply(200, content_type, file.read_bytes())


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    server_version = "HuebnerWeb/2.0"
    wbufsize = -1  # head and body leave in one packet
    disable_nagle_algorithm = True
    server: _Server

    def do_GET(self) -> None:
        came = time.monotonic()
        reply = reply_to(self.path, self.server.today(), later=self.server.later)
        body = reply.body
        self.server.note(Access(came, self.command, self.path, reply.status))
        self.send_response(reply.status)
        self.send_header("Content-Type", reply.content_type)
        for name, value in reply.headers:
            self.send_header(name, value)
        if self.path.lower() in COMPRESSED:
            self.send_header("Vary", "Accept-Encoding")
            if "gzip" in self.headers.get("Accept-Encoding", ""):
                body = gzip.compress(body, mtime=0)
                self.send_header("Content-Encoding", "gzip")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(body)

    do_HEAD = do_GET  # noqa: N815 - the name http.server looks for

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002
        """Nothing: the server keeps its own log."""


class _Server(ThreadingHTTPServer):
    daemon_threads = True
    block_on_close = False
    request_queue_size = 256

    def __init__(
        self,
        address: tuple[str, int],
        note: Callable[[Access], None],
        today: Callable[[], date],
        later: bool,
    ) -> None:
        self.note = note
        self.today = today
        self.later = later
        super().__init__(address, _Handler)

    def handle_error(self, request: object, client_address: object) -> None:
        """Silent where a client left in the middle; all else is a defect and shown."""
        if not isinstance(sys.exception(), OSError):
            super().handle_error(request, client_address)  # type: ignore[arg-type]


class DemoServer:
    """The demo intranet in a thread, from ``with`` to its end.

    ``port`` 0 takes a free one. ``url`` is the seed, such as "http://127.0.0.1:40123/"; ``log``
    grows by one Access for each request. ``today`` is where the calendar starts. ``later``: some
    time has passed, and one page is another, one new and one gone.
    """

    def __init__(
        self,
        host: str = "127.0.0.1",
        port: int = 0,
        today: Callable[[], date] = date.today,
        on_access: Callable[[Access], None] | None = None,
        later: bool = False,
    ) -> None:
        self.host, self.port, self.today, self.later = host, port, today, later
        self.log: list[Access] = []
        self._on_access = on_access
        self._server: _Server | None = None

    @property
    def url(self) -> str:
        """The URL of the home page, with its slash."""
        return f"http://{self.host}:{self.port}/"

    def at(self, path: str) -> str:
        """The URL of ``path``, which begins with a slash."""
        return self.url + path.removeprefix("/")

    def __enter__(self) -> Self:
        self._server = _Server((self.host, self.port), self._note, self.today, self.later)
        self.port = self._server.server_address[1]
        threading.Thread(target=self._server.serve_forever, args=(0.05,), daemon=True).start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if self._server is not None:
            self._server.shutdown()
            self._server.server_close()
            self._server = None

    def _note(self, access: Access) -> None:
        self.log.append(access)
        if self._on_access:
            self._on_access(access)


def main(arguments: Sequence[str] | None = None) -> int:
    """Serve until SIGINT or SIGTERM. The first line on standard output is the URL."""
    parser = argparse.ArgumentParser(
        prog="python -m examples.intranet",
        description="Serve the demo intranet. The first line printed is its URL; Ctrl-C ends it.",
    )
    parser.add_argument("--host", default="127.0.0.1", help="address to listen on (%(default)s)")
    parser.add_argument("--port", type=int, default=0, help="0 takes a free one (%(default)s)")
    parser.add_argument("--log", action="store_true", help="show each request on standard error")
    options = parser.parse_args(arguments)

    ended = threading.Event()

    def show(access: Access) -> None:
        print(access.status, access.method, access.path, file=sys.stderr)

    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, lambda *_: ended.set())
    try:
        server = DemoServer(options.host, options.port, on_access=show if options.log else None)
        with server:
            print(server.url, flush=True)
            ended.wait()
    except (OSError, OverflowError) as error:
        print(f"cannot listen on {options.host}:{options.port}: {error}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
