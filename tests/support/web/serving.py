"""The web application on a port of its own, in a thread, over any directory.

with Served(folder / "crawl") as site:
    assert site.get("/hosts").status == 200
"""

from __future__ import annotations

import asyncio
import http.client
import json
import threading
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Any, Self
from urllib.parse import quote, urlencode, urlsplit

from scrapy.settings import Settings

from larmspider.command import with_crawls_settings
from larmspider.crawl.reader import CrawlDir
from larmspider.search.curated import Curated
from larmspider.status.crawl_view import Source
from larmspider.status.crawl_workers import Controller
from larmspider.urls.file_urls import NOWHERE, OpenableUrls
from larmspider.web.app import build
from larmspider.web.auth import Guard
from larmspider.web.connections import Connections
from larmspider.web.look import Look
from larmspider.web.query_log import QueryLog
from larmspider.web.readers import Readers
from larmspider.web.server import Server
from larmspider.web.site import SITE

TOKEN = "a token of the tests, 32 letters"
ADDRESS = "127.0.0.1"


@dataclass(frozen=True)
class Got:
    """An answer, read whole."""

    status: int
    headers: Mapping[str, str]
    body: bytes

    @property
    def text(self) -> str:
        return self.body.decode("utf-8")

    @property
    def json(self) -> Any:
        return json.loads(self.body)


def request(
    url: str,
    method: str = "GET",
    headers: Mapping[str, str] | None = None,
    form: Mapping[str, str] | bytes | None = None,
    timeout: float = 30,
) -> Got:
    """One request, sent as it stands: no redirect is followed, no path is tidied."""
    parts = urlsplit(url)
    target = url[url.index(parts.netloc) + len(parts.netloc) :] or "/"
    connection = http.client.HTTPConnection(parts.netloc, timeout=timeout)
    body = urlencode(form).encode() if isinstance(form, Mapping) else form
    headers = dict(headers or {})
    if isinstance(form, Mapping):
        headers.setdefault("Content-Type", "application/x-www-form-urlencoded")
    try:
        connection.request(method, target, body, headers)
        response = connection.getresponse()
        return Got(response.status, dict(response.getheaders()), response.read())
    finally:
        connection.close()


class Served:
    """``guard`` and ``controller`` as the application takes them; ``connections`` in place of its
    own, so that fewer fill it."""

    def __init__(
        self,
        path: Path,
        guard: Guard | None = None,
        controller: Controller | None = None,
        connections: Connections | None = None,
        readers: Readers | None = None,
        look: Look | None = None,
        curated: Curated | None = None,
        query_log: QueryLog | None = None,
        others: Sequence[Path] = (),
        opens: OpenableUrls | None = None,
    ) -> None:
        base = Settings()
        base.setmodule("larmspider.settings", priority="default")
        self.source = Source(
            path,
            lambda crawl: with_crawls_settings(base.copy(), crawl),
            controller,
            name="first" if others else "",
            others=[
                Source(other, lambda crawl: with_crawls_settings(base.copy(), crawl), name=str(n))
                for n, other in enumerate(others)
            ],
        )
        self.guard = guard or Guard(TOKEN)
        self._connections, self._readers, self._look = connections, readers, look
        self._curated, self._query_log = curated, query_log
        self._opens = opens or NOWHERE
        self.url = ""
        self._ready = threading.Event()
        self._thread = threading.Thread(target=lambda: asyncio.run(self._run()), daemon=True)
        self._stop: asyncio.Event | None = None
        self._loop: asyncio.AbstractEventLoop | None = None

    def __enter__(self) -> Self:
        self._thread.start()
        assert self._ready.wait(120)
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.tell_to_stop()
        self.wait()

    def tell_to_stop(self) -> None:
        """The server stops soon; once is enough."""
        assert self._loop is not None
        assert self._stop is not None
        if not self._loop.is_closed():
            self._loop.call_soon_threadsafe(self._stop.set)

    def wait(self) -> None:
        """Until the server has stopped."""
        self._thread.join(120)

    async def _run(self) -> None:
        self._loop, self._stop = asyncio.get_running_loop(), asyncio.Event()
        app = build(
            self.source,
            self.guard,
            self._readers,
            self._look,
            self._curated,
            self._query_log,
            self._opens,
        )
        self.site = app[SITE]
        if self._connections is not None:
            self.site.connections = self._connections
        server = await Server.start(app, ADDRESS, 0)
        self.url = server.url.rstrip("/")
        self._ready.set()
        await self._stop.wait()
        await server.stop()

    def get(self, target: str, **headers: str) -> Got:
        """GET; a header ``X_Name`` is sent as X-Name."""
        return request(
            self.url + target, headers={name.replace("_", "-"): v for name, v in headers.items()}
        )


# The pages that every test of looks, safety and speed opens: one line each, for the demo crawl.


LOOKS = {
    "overview": "/",
    "search": "/search",
    "search-results": "/search?q=siren%20wiki",
    "search-nothing": "/search?q=zzyzzx&type=pdf",
    "control": "/control",
    "login": "/login",
    "hosts": "/hosts?sort=stored",
    "host": "/host?u={site}private/plan.html",
    "links": "/links",
    "most-linked": "/links?show=pages",
    "linked-hosts": "/links?show=hosts",
    "url": "/url?u={site}wiki/",
    "url-refused": "/url?u={site}private/plan.html",
    "url-unknown": "/url?u={site}wiki/Nowhere.html",
    "url-start": "/url",
    "view": "/view?u={site}",
}
"""By the name of the screenshot: a target that shows the page with something on it; ``{site}`` is
the demo server's URL, quoted for a query."""
EVERY = {
    **LOOKS,
    "deletes": "/deletes",
    "mirrors": "/mirrors",
    "traps": "/traps",
    "words": "/control/search",
    "queries": "/control/queries",
    "why": "/control/why?q=siren&u={site}wiki/",
    "cached": "/search/copy?u={site}",
    "similar": "/search?similar={site}",
    "error": "/nowhere",
    "no-host": "/hosts/nowhere:80",
}
"""Every page of a crawl, as an operator sees it."""
QUERIES = (
    "/?q={text}",
    "/search?q={text}",
    "/search?q=siren&host={text}&lang={text}",
    "/search?q=siren&since={text}",
    "/search?similar={text}",
    "/control?host={text}&restrict={text}&said={text}",
    "/login?next={text}",
    "/{text}",
    "/static/{text}",
    "/hosts?q={text}&state={text}",
    "/hosts?sort={text}&page={text}",
    "/hosts/{text}",
    "/url?u={text}",
    "/url?u=http://h/{text}",
    "/view?u={text}",
    "/copy?u={text}",
    "/search/copy?u={text}&q={text}",
    "/search?q=siren&sort={text}&collection={text}",
    "/control/why?q={text}&u={text}",
    "/control/why?q=siren&u={text}&sort={text}",
    "/control/search?said={text}",
    "/control/queries?sort={text}",
    "/mirrors?said={text}",
    "/links?show={text}&format={text}&page={text}",
)
"""Targets that take text from a user; ``{text}`` is quoted for a query."""


def shown(target: str, directory: Path) -> str:
    """The target over the crawl in a directory."""
    return target.replace("{site}", quote(CrawlDir(directory).seeds[0], safe=""))


def asked(target: str, text: str) -> str:
    """The target with what a user wrote."""
    return target.replace("{text}", quote(text.encode("utf-8", "replace"), safe=""))
