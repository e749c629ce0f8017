"""The web application of the server: its own pages, the API, the pages of each crawl, one search.

app = build_server(server, guard, binding, source_of)
/                    all crawls                       pages.py
/manage/wiki         one crawl: runs, log, acts
/crawls/wiki/...     the pages of the crawl           mount.py over web/
/search              the pages of all crawls
/api/v1/...          for programs                     api.py
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

from aiohttp import web
from scrapy.settings import BaseSettings
from yarl import URL

from larmspider.errors import HttpError
from larmspider.server import actions
from larmspider.server.api import api
from larmspider.server.api.api import Found, Server
from larmspider.server.mount import Mounts
from larmspider.server.pages import pages_of
from larmspider.server.people import provider_acts
from larmspider.server.people.people import RENEW_SECS
from larmspider.server.people.tokens import TokenGuard
from larmspider.status.crawl_view import Source
from larmspider.web.app import build
from larmspider.web.reader import Reader
from larmspider.web.request import WebRequest
from larmspider.web.server import Binding
from larmspider.web.site import SEARCH, proof_of, see_as
from larmspider.workdir.manifest import MANIFEST

MAX_BODY = 1_000_000
"""Bytes of a request; a crawl with 1,000 seeds has some 200,000."""
ALL = "*"
"""The application of the search over all crawls; no crawl has this name."""

SourceOf = Callable[[str, Path, Sequence[Source]], Source]
"""Opens the crawl of a name and directory, together with others."""


def build_server(
    server: Server, guard: TokenGuard, binding: Binding, source_of: SourceOf
) -> web.Application:
    """The application."""
    home = server.manager.home.path
    own = Source(home, lambda _: BaseSettings())
    look = binding.readers, binding.look, binding.curated, binding.query_log, binding.opens
    app = build(
        own,
        guard,
        *look,
        pages=pages_of(server),
        of_server=True,
        max_body=MAX_BODY,
        people=server.people,
    )
    mounts = Mounts(
        lambda name: _application(server, guard, binding, source_of, name),
        lambda name: _crawls(server, name),
    )

    async def search_as(request: web.Request, reader: Reader, query: str) -> dict[str, Any]:
        url = URL.build(path=SEARCH, query={"q": query, "format": "json"})
        asked = request.clone(rel_url=url, method="GET")
        identity = proof_of(request).identity
        assert identity is not None
        see_as(asked, identity, reader)
        response = await mounts.answer(asked, ALL, "")
        assert isinstance(response, web.Response)
        found = json.loads(response.text or "{}")
        if response.status != 200:
            raise HttpError(str(found.get("error", "The search failed.")), response.status)
        return dict(found)

    async def ask(request: web.Request, answer: Callable[[WebRequest], Found]) -> Found:
        return await mounts.ask(request, ALL, answer)

    api.add_routes(app.router, server, search_as, ask)
    actions.add_routes(app.router, server, mounts)
    provider_acts.add_routes(app.router, server)
    base = "/crawls/{crawl:[A-Za-z0-9][A-Za-z0-9_-]*}"

    async def crawl(request: web.Request) -> web.StreamResponse:
        name = request.match_info["crawl"]
        return await mounts.answer(request, name, f"/crawls/{name}")

    async def search(request: web.Request) -> web.StreamResponse:
        return await mounts.answer(request, ALL, "")

    async def to_the_pages(request: web.Request) -> web.StreamResponse:
        raise web.HTTPSeeOther(f"{request.rel_url.raw_path}/")

    app.router.add_get(base, to_the_pages)
    app.router.add_route("*", f"{base}/{{tail:.*}}", crawl)
    for path in (SEARCH, f"{SEARCH}/{{tail:.*}}", "/opensearch.xml"):
        app.router.add_route("*", path, search)

    async def renewing(_: web.Application) -> AsyncIterator[None]:
        async def renew() -> None:
            while True:
                await asyncio.sleep(RENEW_SECS)
                await server.people.renew(guard)

        task = asyncio.create_task(renew())
        yield
        task.cancel()
        with suppress(asyncio.CancelledError):
            await task

    async def close(_: web.Application) -> None:
        await mounts.close()

    app.cleanup_ctx.append(renewing)

    app.on_shutdown.append(close)
    return app


async def _application(
    server: Server, guard: TokenGuard, binding: Binding, source_of: SourceOf, name: str
) -> web.Application:
    source = await asyncio.to_thread(_source, server, source_of, name)
    look = binding.readers, binding.look, binding.curated, binding.query_log, binding.opens
    mounted = "" if name == ALL else name
    return build(source, guard, *look, mounted=mounted, of_server=True, people=server.people.inside)


def _crawls(server: Server, name: str) -> list[tuple[str, Path, bool]]:
    """Collection and directory of each crawl that an application shows, and whether it has
    begun."""
    manager = server.manager
    found = []
    for entry in manager.entries().values():
        if entry.crawl is not None and name in (ALL, entry.name):
            directory = manager.directory_of(entry)
            begun = (directory / MANIFEST).exists()
            found.append((entry.crawl.collection or entry.name, directory, begun))
    return found


def _source(server: Server, source_of: SourceOf, name: str) -> Source:
    manager = server.manager
    entries = manager.entries()
    if name != ALL:
        if name not in entries:
            raise HttpError("There is no such crawl.", 404)
        return source_of("", manager.directory_of(entries[name]), ())
    found = [
        source_of(entry.crawl.collection or entry.name, manager.directory_of(entry), ())
        for entry in entries.values()
        if entry.crawl is not None
    ]
    found = [source for source in found if source.exists()]
    if not found and not server.tokens.can_operate():
        raise HttpError(
            "This server has no operator yet. Open the address with the one-time key that the"
            " server printed at its start.",
            404,
        )
    if not found:
        raise HttpError("There is no page to search yet: no crawl has begun.", 404)
    if len(found) == 1:
        return source_of("", found[0].path, ())
    return source_of(found[0].name, found[0].path, found[1:])
